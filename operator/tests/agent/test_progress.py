"""An agent's reports while it prepares, and while it stages a trial."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from plimsoll.agent import agent as agent_module
from plimsoll.agent import process
from plimsoll.agent.agent import Agent, AgentIdentity
from plimsoll.agent.process import PreparationError
from plimsoll.agent.readings import Host
from plimsoll.agent.volume import FileVolume
from plimsoll.agent.worker import Worker
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

    async def wait_for(self, state: AgentState, *, number: int = 1) -> None:
        """Wait until so many reports had that state."""
        while sum(report.state is state for report in self.reports) < number:
            self.reported.clear()
            await self.reported.wait()


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
    await agent._perform(PrepareOrder(discard=True, prefill=True, fill_percent=80, seed=1), 3)
    first, last = conductor.reports[0], conductor.reports[-1]
    assert (first.state, first.message) == (AgentState.PREPARING, "overwriting at random, 1 of 2 s")
    assert (first.done_bytes, first.total_bytes, first.sequence) == (5, 10, 3)
    assert (last.state, last.done_bytes, last.message) == (AgentState.PREPARED, 10, "")


async def test_an_agent_reports_staging_and_its_end() -> None:
    conductor = Listening()
    await make(conductor, Preparing(conductor))._perform(STAGE, 4)
    first, last = conductor.reports[0], conductor.reports[-1]
    assert (first.state, first.message, first.sequence) == (AgentState.STAGING, "writing, 0 s", 4)
    assert (last.state, last.message, last.sequence) == (AgentState.STAGED, "", 4)


async def test_a_failed_staging_is_reported_with_the_tool_s_output() -> None:
    conductor = Listening()
    async with asyncio.timeout(60):
        await make(conductor, Broken())._obey(Ordered(epoch="e", sequence=4, order=STAGE))
        await conductor.wait_for(AgentState.FAILED)
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
        await conductor.wait_for(AgentState.IDLE)
    assert AgentState.STAGED not in {report.state for report in conductor.reports}


async def test_an_agent_whose_storage_hangs_still_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = threading.Event()
    monkeypatch.setattr(agent_module, "_PROGRESS_SECONDS", 0.01)
    monkeypatch.setattr(process, "_KILL_SECONDS", 0.05)
    monkeypatch.setattr(FileVolume, "target", lambda *_: answers.wait(20))
    volume = FileVolume(path=tmp_path / "plimsoll.data")
    worker = Worker(client=0, node="here", volume=volume, directory=tmp_path / "work", binaries={}, host=Host())
    conductor = Listening()
    agent = make(conductor, worker)
    prepare = PrepareOrder(discard=True, prefill=True, fill_percent=80, seed=1)
    async with asyncio.timeout(15):
        await agent._obey(Ordered(epoch="e", sequence=1, order=prepare))
        await conductor.wait_for(AgentState.PREPARING, number=3)
        await agent._obey(Ordered(epoch="e", sequence=2, order=WaitOrder()))
        await conductor.wait_for(AgentState.FAILED)
        assert "the check of the volume cannot be ended" in conductor.reports[-1].message
        answers.set()
        await conductor.wait_for(AgentState.IDLE)
