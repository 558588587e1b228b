"""An agent's reports while it prepares, and while it stages a trial."""

import asyncio
from typing import Any

from plimsoll.agent.agent import Agent, AgentIdentity
from plimsoll.agent.process import PreparationError
from plimsoll.api.status import TrialKey
from plimsoll.protocol.messages import AgentState, Ordered, PrepareOrder, Report, StageOrder, WaitOrder

STAGE = StageOrder(
    trial=TrialKey(point="w-000", pass_number=0, attempt=0),
    tool="radosBench",
    parameters={},
    ramp_seconds=0,
    runtime_seconds=1,
    seed=1,
)


class Listening:
    """A conductor that only listens."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.reported = asyncio.Event()

    async def report(self, report: Report) -> None:
        self.reports.append(report)
        self.reported.set()


class Preparing:
    """A preparation that continues until its progress has been reported."""

    unended = ""

    def __init__(self, conductor: Listening) -> None:
        self._conductor = conductor

    async def prepare(self, _: PrepareOrder, progress: Any) -> int:
        progress(5, 10, "overwriting at random, 1 of 2 s")
        await self._conductor.reported.wait()
        return 10

    async def stage(self, _: StageOrder, progress: Any) -> None:
        progress(0, 0, "writing, 0 s")
        await self._conductor.reported.wait()


class Broken:
    """Work that fails."""

    unended = ""

    async def stage(self, _: StageOrder, progress: Any) -> None:
        progress(0, 0, "writing, 0 s")
        raise PreparationError("error 1: (1) Operation not permitted")


class Endless:
    """Work that continues until it is dropped."""

    unended = ""

    def __init__(self) -> None:
        self.begun, self.dropped = asyncio.Event(), asyncio.Event()

    async def stage(self, _: StageOrder, progress: Any) -> None:
        del progress
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.dropped.set()


def make(conductor: Listening, doing: Any) -> Agent:
    connection: Any = conductor
    identity = AgentIdentity(client=0, attempt=0, node="here")
    return Agent(identity=identity, connection=connection, work=doing, silence_seconds=9)


async def test_an_agent_reports_its_preparation() -> None:
    conductor = Listening()
    agent = make(conductor, Preparing(conductor))
    await agent._prepare(PrepareOrder(discard=True, prefill=True, fill_percent=80, seed=1), 3)
    first, last = conductor.reports[0], conductor.reports[-1]
    assert (first.state, first.message) == (AgentState.PREPARING, "overwriting at random, 1 of 2 s")
    assert (first.done_bytes, first.total_bytes, first.sequence) == (5, 10, 3)
    assert (last.state, last.done_bytes, last.message) == (AgentState.PREPARED, 10, "")


async def test_an_agent_reports_staging_and_its_end() -> None:
    conductor = Listening()
    await make(conductor, Preparing(conductor))._stage(STAGE, 4)
    first, last = conductor.reports[0], conductor.reports[-1]
    assert (first.state, first.message, first.sequence) == (AgentState.STAGING, "writing, 0 s", 4)
    assert (last.state, last.message, last.sequence) == (AgentState.STAGED, "", 4)


async def test_a_failed_staging_is_reported_with_the_tool_s_output() -> None:
    conductor = Listening()
    async with asyncio.timeout(60):
        await make(conductor, Broken())._obey(Ordered(epoch="e", sequence=4, order=STAGE))
        while not any(report.state is AgentState.FAILED for report in conductor.reports):
            conductor.reported.clear()
            await conductor.reported.wait()
    last = conductor.reports[-1]
    assert (last.state, last.message, last.sequence) == (
        AgentState.FAILED,
        "error 1: (1) Operation not permitted",
        4,
    )


async def test_a_new_order_ends_a_staging() -> None:
    conductor, work = Listening(), Endless()
    agent = make(conductor, work)
    async with asyncio.timeout(60):
        await agent._obey(Ordered(epoch="e", sequence=4, order=STAGE))
        await work.begun.wait()
        await agent._obey(Ordered(epoch="e", sequence=5, order=WaitOrder()))
        assert work.dropped.is_set()
        while not any(report.state is AgentState.IDLE for report in conductor.reports):
            conductor.reported.clear()
            await conductor.reported.wait()
    assert AgentState.STAGED not in {report.state for report in conductor.reports}
