"""One run's conductor and agents over real TLS, with simulated work."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from plimsoll.agent.agent import Agent, AgentIdentity, Connection, UnreachableError
from plimsoll.agent.process import PreparationError, Progress
from plimsoll.agent.worker import Armed, Worker
from plimsoll.api.names import Operation
from plimsoll.api.status import LiveRate, TrialKey
from plimsoll.api.surroundings import NodeCaches
from plimsoll.cli.launch import free_port
from plimsoll.conductor.attempt import Timings
from plimsoll.conductor.ceph.watch import CephCluster
from plimsoll.conductor.main import Listen, conduct, exit_code
from plimsoll.conductor.secret import client_directory, server_context, write_session
from plimsoll.conductor.sink import FilesSink, Sink
from plimsoll.measure.sample import Cells, ClientDocument, Clock
from plimsoll.plan.document import PLAN_FILE, Plan
from plimsoll.protocol.assignment import CERTIFICATE_FILE, TOKEN_FILE, TOKEN_KEY_FILE
from plimsoll.protocol.helpers import CacheDrop
from plimsoll.protocol.messages import (
    PROTOCOL_VERSION,
    SERVER_NAME,
    ArmOrder,
    DropCachesOrder,
    PrepareOrder,
    Registration,
    ResultPost,
    ServeOrder,
    StageOrder,
)
from support.client_documents import make_document

REGISTRATION = Registration(protocol=PROTOCOL_VERSION, client=0, instance="i", node="n")
# Short where a test waits for it; long where a busy machine may delay all of a run, which is one process here.
QUICK = Timings(hold=1.0, start_grace=15.0, lead=0.4, linger=2.0, live=0.1)


class PretendedWork(Worker):
    """Prepares immediately and measures the numbers of `make_document`."""

    unended: str = ""

    def __init__(self, client: int, *, broken: str = "") -> None:
        self.client = client
        self.broken = broken
        self.started_at: list[int] = []
        self.done: list[str] = []

    async def facts(self) -> dict[str, JsonValue]:
        return {"kernel": "pretended"}

    async def prepare(self, order: PrepareOrder, progress: Progress) -> int:
        if self.broken:
            raise PreparationError(self.broken)
        progress(0, 2**30, "")
        self.done.append("prepared")
        return 2**30

    async def stage(self, order: StageOrder, progress: Progress) -> None:
        progress(0, 0, "")

    async def serve(self, order: ServeOrder, ready: Callable[[], Awaitable[None]]) -> None:
        await ready()

    async def drop_caches(self, order: DropCachesOrder) -> CacheDrop:
        if self.broken:
            raise PreparationError(self.broken)
        node = NodeCaches(node="here", dropped_at="2026-01-01T00:00:00Z", before_bytes=2**30, after_bytes=2**20)
        return CacheDrop(node=node)

    async def arm(self, order: ArmOrder) -> Armed:
        nothing: Any = None
        return Armed(
            order=order,
            parameters=nothing,
            context=nothing,
            argv=(),
            observation=nothing,
            launch=nothing,
        )

    async def launch(self, armed: Armed) -> None:
        del armed

    async def disarm(self, armed: Armed) -> None:
        self.done.append("disarmed")

    def live(self, armed: Armed) -> tuple[LiveRate, ...]:
        return ()

    async def measure(self, armed: Armed, clock: Clock) -> ClientDocument:
        self.started_at.append(time.time_ns())
        self.done.append("measured")
        await asyncio.sleep(0.1)
        return make_document(self.client, self.started_at[-1])


class Setting:
    """The conductor and the session secret of one run."""

    def __init__(self, directory: Path, plan: Plan) -> None:
        self.plan = plan
        self.caches_token: Path | None = None
        self.results = directory / "results"
        self.results.mkdir()
        (self.results / PLAN_FILE).write_text(plan.model_dump_json())
        self.secret = directory / "secret"
        write_session(self.secret, plan.members)
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"

    def secret_of(self, client: int) -> Path:
        return client_directory(self.secret, client)

    def token(self, client: int = 0) -> str:
        return (self.secret_of(client) / TOKEN_FILE).read_text()

    async def raw(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        context = ssl.create_default_context(cafile=str(self.secret / CERTIFICATE_FILE))
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=context, server_hostname=SERVER_NAME)

    def head(self, path: str, length: int, *, client: int) -> bytes:
        """Return the head of a client's post of `length` bytes."""
        lines = (f"POST {path} HTTP/1.1", "Host: c", f"Authorization: Bearer {self.token(client)}")
        return "\r\n".join((*lines, f"Content-Length: {length}", "", "")).encode()

    async def conduct(
        self,
        epoch: str | None = None,
        cluster: CephCluster | None = None,
        *,
        metrics_port: int | None = None,
        sink: Sink | None = None,
    ) -> int:
        listen = Listen(
            host="127.0.0.1",
            port=self.port,
            tls=server_context(self.secret),
            token_key=(self.secret / TOKEN_KEY_FILE).read_bytes(),
            caches_token=self.caches_token,
        )

        options: dict[str, Any] = {"timings": QUICK, "epoch": epoch, "cluster": cluster, "metrics_port": metrics_port}
        return exit_code(await conduct(plan=self.plan, sink=sink or FilesSink(self.results), listen=listen, **options))

    async def agent(
        self,
        client: int,
        *,
        secret: Path | None = None,
        work: PretendedWork | None = None,
        silence_seconds: float = QUICK.silence,
    ) -> int:
        connection = Connection(self.url, secret or self.secret_of(client))
        identity = AgentIdentity(client=client, attempt=0, node="here")
        try:
            return await Agent(
                identity=identity,
                connection=connection,
                work=work or PretendedWork(client),
                silence_seconds=silence_seconds,
            ).run()
        finally:
            await connection.close()


@asynccontextmanager
async def running(setting: Setting) -> AsyncIterator[Connection]:
    """Run a conductor that waits for its agents, and yield a connection of client 0 to it."""
    task = asyncio.create_task(setting.conduct("epoch"))
    connection = Connection(setting.url, setting.secret_of(0))
    try:
        await until_up(connection)
        yield connection
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await connection.close()


async def until_up(connection: Connection) -> None:
    async with asyncio.timeout(60):
        while True:
            with suppress(UnreachableError):
                await connection.clock(1)
                return
            await asyncio.sleep(0.05)


def large_post(epoch: str, *, seconds: int, client: int = 0) -> ResultPost:
    rates = tuple(100_000 + (second * 0.6180339887498949) % 1 for second in range(seconds))
    document = make_document(client, 0)
    assert document.measurement is not None
    (read,) = document.measurement.operations
    cells = Cells(width_nanoseconds=10**9, ios=rates, bytes=tuple(4096 * rate for rate in rates))
    operations = [read.model_copy(update={"operation": operation, "cells": cells}) for operation in Operation][:3]
    measurement = document.measurement.model_copy(update={"operations": tuple(operations)})
    return ResultPost(
        epoch=epoch,
        client=client,
        instance="i",
        trial=TrialKey(point="w-000", pass_number=0, attempt=0),
        document=document.model_copy(update={"measurement": measurement}),
    )
