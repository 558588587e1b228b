"""Many real agents in one process, which only pretend to work.

`simulated_agents.py URL SECRET FIRST COUNT RUNTIME OUTPUT`
"""

import asyncio
import json
import logging
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from plimsoll.agent.agent import Agent, AgentIdentity, Connection
from plimsoll.agent.observation import HostObservation
from plimsoll.agent.process import PreparationError, Progress
from plimsoll.agent.readings import Host
from plimsoll.agent.worker import Armed, Worker
from plimsoll.api.names import Operation
from plimsoll.api.status import LiveRate
from plimsoll.conductor.secret import client_directory
from plimsoll.measure.sample import ClientDocument, Clock
from plimsoll.protocol.helpers import CacheDrop
from plimsoll.protocol.messages import (
    AgentState,
    ArmOrder,
    DropCachesOrder,
    GoOrder,
    Ordered,
    PrepareOrder,
    Report,
    ServeOrder,
    StageOrder,
)
from plimsoll.tools.base import StepContext, StepKind, Timing
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.target import VolumeKind, VolumeTarget
from synthetic import KINDS, SECOND, document, samples

_DATA_SET = VolumeTarget(kind=VolumeKind.FILE, path="/nowhere", size=2**30)


@dataclass
class Notes:
    """When one agent saw what: event -> attempt -> Unix nanoseconds."""

    client: int
    t0: dict[str, int] = field(default_factory=dict)
    ordered: dict[str, int] = field(default_factory=dict)
    armed: dict[str, int] = field(default_factory=dict)
    released: dict[str, int] = field(default_factory=dict)
    woke: dict[str, int] = field(default_factory=dict)


class NotingConnection(Connection):
    """A connection that notes when orders come in and when the word that it is armed has arrived."""

    def __init__(self, url: str, secret: Path, notes: Notes) -> None:
        super().__init__(url, secret)
        self._notes = notes
        self._trial = ""

    async def orders(self, *, client: int, instance: str, epoch: str, after: int, hold: float) -> Ordered:
        ordered = await super().orders(client=client, instance=instance, epoch=epoch, after=after, hold=hold)
        if ordered.sequence > after and isinstance(ordered.order, ArmOrder | GoOrder):
            self._trial = str(ordered.order.trial)
            noted = self._notes.ordered if isinstance(ordered.order, ArmOrder) else self._notes.released
            noted.setdefault(self._trial, time.time_ns())
            if isinstance(ordered.order, GoOrder):
                self._notes.t0[self._trial] = ordered.order.t0_nanoseconds
        return ordered

    async def report(self, report: Report) -> None:
        await super().report(report)
        if report.state is AgentState.ARMED:
            self._notes.armed.setdefault(self._trial, time.time_ns())


class PretendedWork(Worker):
    """Notes when it would have started its tool, waits, and makes up a document."""

    unended: str = ""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    async def facts(self) -> dict[str, JsonValue]:
        return {"kernel": "simulated", "tools": {"fio": "fio-3.39"}}

    async def prepare(self, order: PrepareOrder, progress: Progress) -> int:
        del order
        progress(_DATA_SET.size, _DATA_SET.size, "")
        return _DATA_SET.size

    async def stage(self, order: StageOrder, progress: Progress) -> None:
        del order, progress

    async def serve(self, order: ServeOrder, ready: Callable[[], Awaitable[None]]) -> None:
        del order
        await ready()

    async def drop_caches(self, order: DropCachesOrder) -> CacheDrop:
        raise PreparationError(f"{order.trial}: simulated agents have no caches")

    async def arm(self, order: ArmOrder) -> Armed:
        timing = Timing(ramp_seconds=order.ramp_seconds, runtime_seconds=order.runtime_seconds)
        context = StepContext(
            step=StepKind.MEASURE, target=_DATA_SET, timing=timing, seed=order.seed, work_directory="/nowhere"
        )
        nothing: Any = None
        observation = HostObservation(Host(), None, work_directory=context.work_directory)
        return Armed(
            order=order,
            parameters=FioParameters(),
            context=context,
            argv=("fio",),
            observation=observation,
            launch=nothing,
        )

    async def launch(self, armed: Armed) -> None:
        del armed

    async def disarm(self, armed: Armed) -> None:
        del armed

    def live(self, armed: Armed) -> tuple[LiveRate, ...]:
        del armed
        return (LiveRate(operation=Operation.READ, iops=100.0, bytes_per_second=409_600),)

    async def measure(self, armed: Armed, clock: Clock | None) -> ClientDocument:
        order = armed.order
        self._notes.woke[str(order.trial)] = time.time_ns()
        t0 = self._notes.t0[str(order.trial)]
        ends_at = t0 + (order.ramp_seconds + order.runtime_seconds) * SECOND
        await asyncio.sleep((ends_at - time.time_ns()) / SECOND)
        return document(
            self._notes.client,
            t0,
            ramp=order.ramp_seconds,
            runtime=order.runtime_seconds,
            clock=clock,
        )


async def _serve(url: str, secret: Path, notes: Notes) -> int:
    connection = NotingConnection(url, client_directory(secret, notes.client), notes)
    identity = AgentIdentity(client=notes.client, attempt=0, node=f"node-{notes.client % 20}")
    try:
        return await Agent(
            identity=identity, connection=connection, work=PretendedWork(notes), silence_seconds=60.0
        ).run()
    finally:
        await connection.close()


async def _serve_all(url: str, secret: Path, everybody: list[Notes]) -> list[int]:
    return await asyncio.gather(*(_serve(url, secret, notes) for notes in everybody))


def main() -> None:
    url, secret, first, count, runtime, output = sys.argv[1:]
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
    for kind in range(KINDS):
        samples(kind, int(runtime))  # now, because it would delay all agents when the first of them ends
    everybody = [Notes(client=int(first) + number) for number in range(int(count))]
    codes = asyncio.run(_serve_all(url, Path(secret), everybody))
    found = {"codes": codes, "agents": [vars(notes) for notes in everybody]}
    Path(output).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
