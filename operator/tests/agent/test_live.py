"""The rates that an agent reports while a tool runs, and that losing them costs nothing."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from plimsoll.agent import process
from plimsoll.agent.agent import Agent, AgentIdentity, Connection, UnreachableError
from plimsoll.agent.readings import Host
from plimsoll.agent.volume import FileVolume
from plimsoll.agent.worker import Armed, Worker
from plimsoll.api.names import Operation
from plimsoll.api.status import LiveRate, TrialKey
from plimsoll.api.storage import Prepare as Preparation
from plimsoll.conductor.main import EXIT_COMPLETE
from plimsoll.conductor.sink import FilesSink, read_state
from plimsoll.measure.sample import ClientDocument, Clock
from plimsoll.protocol.messages import AgentState, ArmOrder, PrepareOrder, Report
from plimsoll.tools.base import Command
from support.client_documents import make_plan
from support.rendezvous import QUICK, PretendedWork, Setting

MEBIBYTE = 2**20
RATE = LiveRate(operation=Operation.READ, iops=100.0, bytes_per_second=409_600)
STATUS = "Jobs: 1 (f=1): [r(1)][50.0%][r=4000KiB/s][r=1000 IOPS][eta 00m:05s]"


# -- what a tool prints


def test_the_end_of_a_long_output_is_read(tmp_path: Path) -> None:
    assert process.recent_output(tmp_path) == ""
    (tmp_path / "stdout").write_text("x" * 100_000 + "\nlast\n")
    recent = process.recent_output(tmp_path)
    assert recent.endswith("x\nlast\n")
    assert len(recent) == 4096


def test_output_of_a_silent_tool_is_stale(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("output\n")
    assert process.recent_output(tmp_path) == "output\n"
    before = time.time() - 6
    os.utime(tmp_path / "stdout", (before, before))
    assert process.recent_output(tmp_path) == ""


async def test_of_overwritten_lines_only_the_last_text_is_kept(tmp_path: Path) -> None:
    script = r"printf 'first\n10 %%\r20 %%\r30 %%\rdone\nends like Windows\r\nlast \r'"
    finished = await process.run(Command(argv=("sh", "-c", script)), directory=tmp_path)
    assert finished.stdout == "first\ndone\nends like Windows\r\n"


async def test_a_long_line_does_not_hold_up_the_agent(tmp_path: Path) -> None:
    """With quadratic time in the length of a line it would never end."""
    (tmp_path / "long").write_text("x" * 4 * MEBIBYTE)
    finished = await process.run(Command(argv=("cat", str(tmp_path / "long"))), directory=tmp_path)
    assert len(finished.stdout) == 4 * MEBIBYTE


async def test_the_rates_of_a_tool_are_known_while_it_runs_and_not_kept(tmp_path: Path) -> None:
    fio = tmp_path / "fio"
    prints = f"printf '{STATUS.replace('%', '%%')}\\r%.0s' 1 2"
    fio.write_text(f"#!/bin/sh\n{prints}\nuntil [ -e go ]; do sleep 0.02; done\n")
    fio.chmod(0o755)
    volume = FileVolume(path=tmp_path / "plimsoll.data", capacity=8 * MEBIBYTE)
    worker = Worker(
        client=0, node="here", volume=volume, directory=tmp_path / "work", binaries={"fio": str(fio)}, host=Host()
    )
    prepare = PrepareOrder(discard=False, prefill=False, fill_percent=100, seed=1)
    await worker.prepare(prepare, lambda *_: None)
    armed = await worker.arm(
        ArmOrder(
            trial=TrialKey(point="w-000", pass_number=0, attempt=0),
            tool="fio",
            parameters={"pattern": "randread"},
            ramp_seconds=0,
            runtime_seconds=1,
            seed=1,
        )
    )
    assert worker.live(armed) == ()
    measuring = asyncio.create_task(worker.measure(armed, Clock(offset=0, error=0)))
    async with asyncio.timeout(60):
        while not (rates := worker.live(armed)):
            await asyncio.sleep(0.02)
    assert rates == (LiveRate(operation=Operation.READ, iops=1000.0, bytes_per_second=4000 * 1024),)
    (Path(armed.context.work_directory) / "go").touch()
    document = await measuring
    assert worker.live(armed) == (), "its last output is not its current rate"
    assert document.parse_error is not None, "it has left no document"
    assert document.stderr_tail == ""


# -- what becomes of it


def short_setting(directory: Path) -> Setting:
    plan = make_plan(points=1, clients=1, repetitions=1)
    return Setting(directory, plan.model_copy(update={"prepare": Preparation(settle_seconds=0)}))


class RatedWork(PretendedWork):
    """A tool that prints its rates and runs until the test has seen enough."""

    def __init__(self) -> None:
        super().__init__(0)
        self.enough = asyncio.Event()

    def live(self, armed: Armed) -> tuple[LiveRate, ...]:
        return (RATE,)

    async def measure(self, armed: Armed, clock: Clock) -> ClientDocument:
        await self.enough.wait()
        return await super().measure(armed, clock)


class DeafConnection(Connection):
    """Loses every report with rates, at once or by never answering."""

    def __init__(self, setting: Setting, work: RatedWork, *, hangs: bool) -> None:
        super().__init__(setting.url, setting.secret_of(0))
        self.work = work
        self.hangs = hangs
        self.lost: list[Report] = []

    async def report(self, report: Report) -> None:
        if not report.rates:
            await super().report(report)
            return
        self.lost.append(report)
        if self.hangs or len(self.lost) == 3:
            self.work.enough.set()
        if self.hangs:
            await asyncio.Event().wait()
        raise UnreachableError("lost")


def make_agent(connection: Connection, work: PretendedWork) -> Agent:
    identity = AgentIdentity(client=0, attempt=0, node="here")
    return Agent(identity=identity, connection=connection, work=work, silence_seconds=QUICK.silence)


async def test_rates_are_in_the_state_while_the_tool_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FilesSink, "pulse_seconds", 0.0)
    setting, work = short_setting(tmp_path), RatedWork()
    run = asyncio.gather(setting.conduct(), setting.agent(0, work=work))
    async with asyncio.timeout(60):
        while (state := read_state(setting.results)) is None or state.live is None:
            await asyncio.sleep(0.02)
    assert state.live.clients == 1
    assert state.live.rates == (RATE,)
    work.enough.set()
    code, left = await run
    assert (code, left) == (EXIT_COMPLETE, 0)
    state = read_state(setting.results)
    assert state is not None
    assert state.live is None


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_report_of_rates_that_is_lost_costs_nothing(tmp_path: Path, hangs: bool) -> None:  # noqa: FBT001 - a case
    setting, work = short_setting(tmp_path), RatedWork()
    connection = DeafConnection(setting, work, hangs=hangs)
    code, left = await asyncio.gather(setting.conduct(), make_agent(connection, work).run())
    assert (code, left) == (EXIT_COMPLETE, 0)
    await connection.close()
    assert len(connection.lost) >= (1 if hangs else 3)
    assert {report.state for report in connection.lost} == {AgentState.RUNNING}
    trials = (await FilesSink(setting.results).load()).trials
    (trial,) = trials["w-000"]
    assert trial.abort is None
