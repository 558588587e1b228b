"""What an agent reports while it prepares, and while it stages a trial."""

import asyncio
from typing import Any

from plimsoll.agent.agent import Agent, Identity
from plimsoll.agent.worker import PreparationError
from plimsoll.api.state import TrialKey
from plimsoll.protocol.messages import AgentState, Ordered, Prepare, Report, Stage, Wait

STAGE = Stage(
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
        self.heard: list[Report] = []
        self.told = asyncio.Event()

    async def report(self, report: Report) -> None:
        self.heard.append(report)
        self.told.set()


class Preparing:
    """A preparation that goes on until its progress has been heard of."""

    def __init__(self, conductor: Listening) -> None:
        self._conductor = conductor

    async def prepare(self, _: Prepare, progress: Any) -> int:
        progress(5, 10, "overwriting at random, 1 of 2 s")
        await self._conductor.told.wait()
        return 10

    async def stage(self, _: Stage, progress: Any) -> None:
        progress(0, 0, "writing, 0 s")
        await self._conductor.told.wait()


class Broken:
    """Work that fails."""

    async def stage(self, _: Stage, progress: Any) -> None:
        progress(0, 0, "writing, 0 s")
        raise PreparationError("error 1: (1) Operation not permitted")


class Endless:
    """Work that goes on until it is dropped."""

    def __init__(self) -> None:
        self.begun, self.dropped = asyncio.Event(), asyncio.Event()

    async def stage(self, _: Stage, progress: Any) -> None:
        del progress
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.dropped.set()


def make(conductor: Listening, doing: Any) -> Agent:
    connection: Any = conductor
    identity = Identity(client=0, attempt=0, node="here")
    return Agent(identity=identity, connection=connection, work=doing, silence_seconds=9)


async def test_an_agent_says_what_it_is_at() -> None:
    conductor = Listening()
    agent = make(conductor, Preparing(conductor))
    await agent._prepare(Prepare(discard=True, prefill=True, fill_percent=80, seed=1), 3)
    first, last = conductor.heard[0], conductor.heard[-1]
    assert (first.state, first.message) == (AgentState.PREPARING, "overwriting at random, 1 of 2 s")
    assert (first.done_bytes, first.total_bytes, first.sequence) == (5, 10, 3)
    assert (last.state, last.done_bytes, last.message) == (AgentState.PREPARED, 10, "")


async def test_an_agent_says_that_it_stages_and_when_it_has() -> None:
    conductor = Listening()
    await make(conductor, Preparing(conductor))._stage(STAGE, 4)
    first, last = conductor.heard[0], conductor.heard[-1]
    assert (first.state, first.message, first.sequence) == (AgentState.STAGING, "writing, 0 s", 4)
    assert (last.state, last.message, last.sequence) == (AgentState.STAGED, "", 4)


async def test_a_failed_staging_is_told_in_the_tool_s_words() -> None:
    conductor = Listening()
    await make(conductor, Broken())._stage(STAGE, 4)
    last = conductor.heard[-1]
    assert (last.state, last.message) == (AgentState.FAILED, "error 1: (1) Operation not permitted")


async def test_a_new_order_ends_a_staging() -> None:
    conductor, work = Listening(), Endless()
    agent = make(conductor, work)
    async with asyncio.timeout(60):
        await agent._obey(Ordered(epoch="e", sequence=4, order=STAGE))
        await work.begun.wait()
        await agent._obey(Ordered(epoch="e", sequence=5, order=Wait()))
        assert work.dropped.is_set()
        while not any(report.state is AgentState.IDLE for report in conductor.heard):
            conductor.told.clear()
            await conductor.told.wait()
    assert AgentState.STAGED not in {report.state for report in conductor.heard}
