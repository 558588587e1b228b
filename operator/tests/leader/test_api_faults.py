"""The operator's connection to the API server fails in ways that a proxy can cause, and the server itself stops."""

import asyncio
import itertools
import os
import signal
import ssl
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from leader.operators import AuditLog, OperatorProcess, StartOperator
from plimsoll.api.names import RunPhase
from support.apiserver import ApiServer
from support.local_run import command_line, descendants
from support.served_world import Installed, ServedWorld, installed_world
from support.specs import document

pytestmark = [pytest.mark.crd, pytest.mark.timeout(400)]

_COMPACTION_SECONDS = 2
_STORM_SECONDS = 30
_WATCH_SECONDS = 70  # until the operator renews a watch that is silent


class Proxy:
    """Stands in front of an API server, with its certificate, and fails as a test says.

    Attributes:
        refuse: answer every other request with an error.
        silent: the watches that are open carry nothing any more, and do not end.
        expired: how many watches were told that their version is gone.

    """

    def __init__(self, api: ApiServer, certificates: Path) -> None:
        self.refuse = self.silent = False
        self.expired = 0
        self.refused: Counter[int] = Counter()
        self._target = f"https://127.0.0.1:{api.port}"
        self._files = certificates / "apiserver.crt", certificates / "apiserver.key"
        self._numbers = itertools.count(1)
        self._watches: list[web.Request] = []
        self.port = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        started = threading.Event()
        thread = threading.Thread(target=asyncio.run, args=(self._serve(started),), daemon=True)
        thread.start()
        assert started.wait(30)
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(self._ended.set)
            thread.join(30)

    def drop_watches(self) -> None:
        """Break the connections of all watches."""
        self._loop.call_soon_threadsafe(self._drop)

    def _drop(self) -> None:
        for request in self._watches:
            if request.transport is not None:
                request.transport.abort()
        self._watches.clear()

    async def _serve(self, started: threading.Event) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(*self._files)
        trust = ssl.create_default_context(cafile=str(self._files[0]))
        application = web.Application(client_max_size=2**24)
        application.router.add_route("*", "/{path:.*}", self._forward)
        runner = web.AppRunner(application, shutdown_timeout=0)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust), auto_decompress=False) as session:
            self._session = session
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
            await site.start()
            self.port = runner.addresses[0][1]
            started.set()
            await self._ended.wait()
            self._drop()
            await runner.cleanup()
        # TLS connections close a moment later.
        await asyncio.sleep(0.25)

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        if self.refuse and (number := next(self._numbers)) % 2:
            status = 429 if number % 4 == 1 else 500
            self.refused[status] += 1
            return web.json_response(
                {"kind": "Status", "message": "storm"}, status=status, headers={"Retry-After": "1"}
            )
        kept = {"Authorization", "Accept", "Content-Type", "Accept-Encoding", "User-Agent"}
        headers = {name: value for name, value in request.headers.items() if name in kept}
        async with self._session.request(
            request.method,
            self._target + str(request.rel_url),
            headers=headers,
            data=await request.read() or None,
            timeout=aiohttp.ClientTimeout(total=None),
        ) as answer:
            names = ("Content-Type", "Content-Encoding", "Date")
            response = web.StreamResponse(
                status=answer.status, headers={name: answer.headers[name] for name in names if name in answer.headers}
            )
            await response.prepare(request)
            is_watch = request.query.get("watch") in {"true", "1"}
            is_new = self.silent
            if is_watch:
                self._watches.append(request)
            async for chunk in answer.content.iter_any():
                if is_watch and self.silent and not is_new:
                    await self._ended.wait()
                self.expired += is_watch and b'"code":410' in chunk
                await response.write(chunk)
            return response


@pytest.fixture
def proxy(installed: Installed) -> Iterator[Proxy]:
    proxy = Proxy(installed.world.api, installed.directory / "certificates")
    with proxy.running():
        yield proxy


@pytest.fixture
def namespace(installed: Installed) -> str:
    return new_namespace(installed.world)


def new_namespace(world: ServedWorld) -> str:
    """Return a new namespace, and a StorageClass of that name."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    world.cluster.kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    world.make_storage_class(name)
    return name


def create(world: ServedWorld, namespace: str, name: str = "r") -> None:
    storage = {"storageClass": {"name": namespace}, "volume": {"size": "64Mi", "mode": "Filesystem"}}
    run = document(storage=storage, repetitions=2, prepare={"settleSeconds": 0})
    world.create(run | {"metadata": {"name": name, "namespace": namespace}})


@contextmanager
def operator_at(installed: Installed, directory: Path, port: int) -> Iterator[OperatorProcess]:
    """Run an operator without a Lease, which a busy machine would cost it, and without another one."""
    kubeconfig = installed.kubeconfig(directory / "operator.yaml", port)
    environment = {**installed.environment, "POD_NAME": "operator"}
    operator = OperatorProcess(kubeconfig, directory / "process.log", environment)
    try:
        installed.world.until(lambda: operator.is_ready, "the operator is ready")
        yield operator
    finally:
        operator.kill()


def leading(world: ServedWorld, start: StartOperator) -> OperatorProcess:
    operator = start()
    world.until(lambda: operator.leads, "the operator leads")
    return operator


def assert_measured_and_clean(world: ServedWorld, namespace: str, name: str = "r") -> None:
    world.until_condition(namespace, name, "Succeeded", status="True")
    world.until(lambda: not world.in_use(namespace), "the run is clean")


def assert_created_once(audit: AuditLog) -> None:
    assert {name: times for name, times in audit.created().items() if times > 1} == {}


@pytest.mark.storm
@pytest.mark.fault(
    "API server",
    "Every other request of the operator is refused with 429 or 500 for 30 s",
    "from the creation of a run",
    ends="`Succeeded=True`; requests are repeated, and nothing is created twice",
    within="15 s after the last refusal",
)
def test_a_storm_of_refusals_delays_a_run(
    installed: Installed, namespace: str, proxy: Proxy, audit: AuditLog, tmp_path: Path
) -> None:
    with operator_at(installed, tmp_path, proxy.port) as operator:
        proxy.refuse = True
        create(installed.world, namespace)
        ends = time.monotonic() + _STORM_SECONDS
        installed.world.until(lambda: time.monotonic() > ends, "the storm is over")
        proxy.refuse = False
        assert_measured_and_clean(installed.world, namespace)
    assert min(proxy.refused[429], proxy.refused[500]) > 0, proxy.refused
    assert_created_once(audit)
    assert "Traceback" not in operator.log()


@pytest.mark.storm
@pytest.mark.fault(
    "API server",
    "All watches of the operator fall silent and do not end",
    "while a run measures, and another one is created",
    ends="both are measured, `Succeeded=True`",
    within="30 s for a run that measures, 15 s for another under way, 70 s for a new, changed or deleted one",
)
def test_silent_watches_are_renewed(installed: Installed, namespace: str, proxy: Proxy, tmp_path: Path) -> None:
    world = installed.world
    world.conductors.knobs.stays = RunPhase.MEASURING
    with operator_at(installed, tmp_path, proxy.port):
        create(world, namespace)
        world.until_phase(namespace, "r", RunPhase.MEASURING)
        proxy.silent = True
        world.conductors.knobs.stays = None
        begun = time.monotonic()
        assert_measured_and_clean(world, namespace)
        create(world, namespace, "later")
        world.until_condition(namespace, "later", "Admitted", status="True")
        assert time.monotonic() - begun < _WATCH_SECONDS + 30
        assert_measured_and_clean(world, namespace, "later")


@pytest.mark.storm
@pytest.mark.fault(
    "API server",
    "etcd is compacted while watches are broken, so that their versions are gone (410)",
    "while measuring",
    ends="objects are listed again, `Succeeded=True`; a run that was created meanwhile is measured too",
    within="a few seconds",
)
def test_a_compaction_loses_no_change(tmp_path: Path) -> None:
    options = (f"--etcd-compaction-interval={_COMPACTION_SECONDS}s", "--watch-cache=false", *AuditLog.options(tmp_path))
    with installed_world(tmp_path, *options) as installed:
        world, audit = installed.world, AuditLog(tmp_path)
        proxy = Proxy(world.api, tmp_path / "certificates")
        namespace = new_namespace(world)
        with proxy.running(), operator_at(installed, tmp_path, proxy.port):
            world.conductors.knobs.stays = RunPhase.MEASURING
            create(world, namespace)
            world.until_phase(namespace, "r", RunPhase.MEASURING)
            time.sleep(3 * _COMPACTION_SECONDS)
            proxy.drop_watches()
            create(world, namespace, "later")
            world.until(lambda: proxy.expired, "a watch is told that its version is gone")
            world.conductors.knobs.stays = None
            for name in ("r", "later"):
                assert_measured_and_clean(world, namespace, name)
            assert_created_once(audit)


@pytest.mark.storm
@pytest.mark.fault(
    "API server",
    "It is frozen for 60 s",
    "while a run provisions, measures or cleans up",
    ends="the operator cannot renew its Lease, exits and is restarted; `Succeeded=True`, nothing is created twice",
    within="30 s after it answers again",
)
@pytest.mark.parametrize("phase", ["Provisioning", "Measuring", "CleaningUp"])
def test_a_frozen_api_server_delays_a_run(
    installed: Installed, namespace: str, start: StartOperator, audit: AuditLog, phase: str
) -> None:
    world = installed.world
    operator = leading(world, start)
    world.conductors.knobs.stays = RunPhase.MEASURING if phase == "Measuring" else None
    create(world, namespace)
    match phase:
        case "Provisioning":
            world.until(lambda: world.exist("Job", namespace), "the Jobs exist")
        case "Measuring":
            world.until_phase(namespace, "r", RunPhase.MEASURING)
        case _:
            world.until_condition(namespace, "r", "Succeeded", status="True")
    (server,) = (pid for pid in descendants(os.getpid()) if f"--secure-port={world.api.port} " in command_line(pid))
    os.kill(server, signal.SIGSTOP)
    try:
        begun = time.monotonic()
        assert operator.wait(60) == 1, operator.log()
        time.sleep(max(0.0, begun + 60 - time.monotonic()))
    finally:
        os.kill(server, signal.SIGCONT)
    begun = time.monotonic()
    successor = leading(world, start)
    world.conductors.knobs.stays = None
    assert_measured_and_clean(world, namespace)
    print(f"{phase}: clean {time.monotonic() - begun:.0f} s after the API server answers")  # noqa: T201 - to be read
    assert_created_once(audit)
    assert "Traceback" not in successor.log()
