import asyncio
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from plimsoll.agent import process
from plimsoll.agent.process import Programs
from plimsoll.tools.base import Command, HeldInput, Output, StepContext, StepKind, Timing
from plimsoll.tools.dd import Dd, DdParameters
from plimsoll.tools.target import VolumeKind, VolumeTarget
from support.agents import together

DD = Dd()

CONTEXT = StepContext(
    step=StepKind.MEASURE,
    target=VolumeTarget(kind=VolumeKind.FILE, path="/data", size=2**30),
    timing=Timing(ramp_seconds=0, runtime_seconds=60),
    seed=1,
    work_directory="/work",
)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def text_of(directory: Path, name: str) -> str:
    """Return what a command has written to a file, once there is something."""
    while not (text := (directory / name).read_text() if (directory / name).exists() else ""):
        await asyncio.sleep(0.01)
    return text


async def has_ended(pid: int) -> None:
    while is_running(pid):
        await asyncio.sleep(0.01)


async def cancel(task: asyncio.Task[Output]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_command_leaves_its_output_and_its_files(tmp_path: Path) -> None:
    script = "echo out; echo err >&2; echo kept > file; exit 3"
    finished = await process.run(Command(argv=("sh", "-c", script), environment={"LC_ALL": "C"}), directory=tmp_path)
    assert 0 < finished.launched_at < finished.finished_at
    undated = replace(finished, launched_at=0, finished_at=0)
    assert undated == Output(exit_code=3, stdout="out\n", stderr="err\n", files={"file": "kept\n"})


async def test_a_command_is_watched_from_its_start_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_POLL_SECONDS", 0.01)
    watched: list[int] = []

    def watch(pid: int) -> None:
        watched.append(pid)
        if len(watched) == 3:
            (tmp_path / "enough").touch()

    script = "echo $$; until [ -e enough ]; do sleep 0.01; done"
    finished = await process.run(Command(argv=("sh", "-c", script)), directory=tmp_path, watches=[watch])
    assert finished.exit_code == 0
    assert len(watched) >= 3
    assert set(watched) == {int(finished.stdout)}


async def test_a_cancelled_command_is_gone_with_its_children(tmp_path: Path) -> None:
    script = "sleep 60 & echo $! > child; wait"
    task = asyncio.create_task(process.run(Command(argv=("sh", "-c", script)), directory=tmp_path))
    async with asyncio.timeout(60):
        child = int(await text_of(tmp_path, "child"))
        await cancel(task)
        await has_ended(child)


RUN = """
import asyncio, sys
from pathlib import Path
from plimsoll.agent import process
from plimsoll.tools.base import Command
asyncio.run(process.run(Command(argv=tuple(sys.argv[2:])), directory=Path(sys.argv[1])))
"""


async def test_dd_does_not_outlive_an_agent_that_is_killed(tmp_path: Path) -> None:
    """timeout is between the two."""
    measured = DD.command(DdParameters(), CONTEXT).argv
    start = measured[: measured.index("dd")]
    endless = (*start, "sh", "-c", "echo $$ > pid; exec dd if=/dev/zero of=/dev/null bs=512 count=1000000000")
    agent = await asyncio.create_subprocess_exec(sys.executable, "-c", RUN, str(tmp_path), *endless)
    async with asyncio.timeout(60):
        dd = int(await text_of(tmp_path, "pid"))
        assert is_running(dd)
        agent.kill()
        await agent.wait()
        await has_ended(dd)


async def test_a_cancelled_command_may_clean_up(tmp_path: Path) -> None:
    script = "trap 'touch closed; exit' TERM; echo > ready; while :; do sleep 0.01; done"
    task = asyncio.create_task(process.run(Command(argv=("sh", "-c", script)), directory=tmp_path))
    async with asyncio.timeout(60):
        await text_of(tmp_path, "ready")
        await cancel(task)
    assert (tmp_path / "closed").exists()


async def test_a_cancelled_command_that_ignores_sigterm_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_TERM_SECONDS", 0.05)
    script = "trap '' TERM; echo $$ > pid; while :; do sleep 0.01; done"
    task = asyncio.create_task(process.run(Command(argv=("sh", "-c", script)), directory=tmp_path))
    async with asyncio.timeout(60):
        pid = int(await text_of(tmp_path, "pid"))
        await cancel(task)
    assert not is_running(pid)


async def test_a_command_that_takes_too_long_is_gone_with_its_children_and_leaves_its_words(tmp_path: Path) -> None:
    script = "sleep 60 & echo $! > child; echo no monitor answers >&2; wait"
    with pytest.raises(process.OverdueError, match=r"did not end within 0\.5 s, and was killed; .* no monitor answers"):
        await process.run(Command(argv=("sh", "-c", script)), directory=tmp_path, limit_seconds=0.5)
    child = int((tmp_path / "child").read_text())
    async with asyncio.timeout(60):
        await has_ended(child)


async def test_a_command_whose_watch_has_seen_enough_is_gone(tmp_path: Path) -> None:
    pids: list[int] = []

    def watch(pid: int) -> None:
        pids.append(pid)
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        await process.run(Command(argv=("sleep", "60")), directory=tmp_path, watches=[watch])
    assert not is_running(pids[0])


async def test_a_command_reads_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "input").write_text("words\n")
    finished = await process.run(Command(argv=("cat",), stdin=str(tmp_path / "input")), directory=tmp_path)
    assert (finished.exit_code, finished.stdout) == (0, "words\n")


async def test_a_metered_command_ends_in_time_and_leaves_the_bytes_that_it_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_POLL_SECONDS", 0.2)
    finished = await process.run(Command(argv=("cat",), stdin="/dev/zero", metered_seconds=1), directory=tmp_path)
    lines = [[int(word) for word in line.split()] for line in finished.stdout.splitlines()]
    assert finished.exit_code == 0
    assert len(lines) >= 3
    assert lines == sorted(lines)
    assert finished.launched_at <= lines[0][0]
    assert lines[-1][0] <= finished.finished_at
    assert lines[-1][0] - finished.launched_at >= 10**9
    assert lines[-1][1] > lines[0][1] + 2**20


async def test_a_metered_command_that_ends_early_keeps_its_exit_code(tmp_path: Path) -> None:
    finished = await process.run(
        Command(argv=("sh", "-c", "echo unheard; exit 3"), metered_seconds=60), directory=tmp_path
    )
    assert finished.exit_code == 3
    assert "unheard" not in finished.stdout


async def test_commands_beside_each_other_have_outputs_of_their_own(tmp_path: Path) -> None:
    words = ("one", "two", "three")
    command = together(Command(argv=("sh", "-c", f"echo {word}; echo {word} > {word}")) for word in words)
    finished = await Programs(tmp_path, {}).run(command, tmp_path)
    assert [one.stdout for one in finished.all] == ["one\n", "two\n", "three\n"]
    assert finished.files.keys() <= set(words)
    outputs = await asyncio.to_thread(lambda: {path.name for path in tmp_path.glob("std*")})
    assert outputs == {"stderr", "stderr-1", "stderr-2", "stdout", "stdout-1", "stdout-2"}


async def test_a_command_that_fails_ends_those_beside_it(tmp_path: Path) -> None:
    script = "echo $$ > pid; exec sleep 60"
    command = together(
        [
            Command(argv=("sh", "-c", script)),
            Command(argv=("sh", "-c", "until [ -s pid ]; do sleep 0.01; done; echo no >&2; exit 4")),
        ]
    )
    async with asyncio.timeout(30):
        finished = await Programs(tmp_path, {}).run(command, tmp_path)
    assert (finished.exit_code, finished.stderr, finished.parallel) == (4, "no\n", ())
    assert not is_running(int((tmp_path / "pid").read_text()))


async def test_cancelling_ends_all_commands(tmp_path: Path) -> None:
    command = together(Command(argv=("sh", "-c", f"echo $$ > pid-{n}; exec sleep 60")) for n in range(3))
    running = asyncio.create_task(Programs(tmp_path, {}).run(command, tmp_path))
    async with asyncio.timeout(30):
        pids = [int(await text_of(tmp_path, f"pid-{n}")) for n in range(3)]
        await cancel(running)
    assert not any(map(is_running, pids))


class UnkillableProcess:
    """A process in uninterruptible sleep: its `wait` does not return before it wakes up."""

    def __init__(self) -> None:
        self.pid = 2**22 + 1  # no process has this number
        self.returncode: int | None = None
        self.has_started, self._is_awake = asyncio.Event(), asyncio.Event()

    def wake_up(self) -> None:
        self.returncode = -9
        self._is_awake.set()

    async def wait(self) -> int:
        self.has_started.set()
        await self._is_awake.wait()
        return -9


@pytest.fixture
def unkillable(monkeypatch: pytest.MonkeyPatch) -> UnkillableProcess:
    """Have all commands start as a process that cannot be ended."""
    sleeper = UnkillableProcess()

    async def start(*_: object, **__: object) -> UnkillableProcess:
        return sleeper

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    monkeypatch.setattr(process, "_TERM_SECONDS", 0.01)
    monkeypatch.setattr(process, "_KILL_SECONDS", 0.01)
    monkeypatch.setattr(process, "_POLL_SECONDS", 0.01)
    return sleeper


async def test_a_cancelled_command_that_cannot_be_ended_blocks_nobody_and_is_named(
    tmp_path: Path, unkillable: UnkillableProcess
) -> None:
    programs = Programs(tmp_path, {})
    running = asyncio.create_task(programs.run(Command(argv=("fio", "job")), tmp_path))
    async with asyncio.timeout(60):
        await unkillable.has_started.wait()
        await cancel(running)
    assert programs.unended.startswith(f"fio (process {unkillable.pid}) cannot be ended")
    unkillable.wake_up()
    assert programs.unended == ""


async def test_a_command_that_cannot_be_ended_exceeds_its_limit_only_a_little(
    tmp_path: Path, unkillable: UnkillableProcess
) -> None:
    programs = Programs(tmp_path, {})
    async with asyncio.timeout(60):
        with pytest.raises(process.OverdueError):
            await programs.run(Command(argv=("fio",)), tmp_path, limit_seconds=0.01)
    assert str(unkillable.pid) in programs.unended


@pytest.mark.usefixtures("unkillable")
async def test_a_metered_command_that_cannot_be_ended_has_failed(tmp_path: Path) -> None:
    async with asyncio.timeout(60):
        finished = await process.run(Command(argv=("cat",), metered_seconds=1), directory=tmp_path)
    assert finished.exit_code == 137


async def test_commands_that_have_ended_are_not_named(tmp_path: Path) -> None:
    programs = Programs(tmp_path, {})
    await programs.run(Command(argv=("true",)), tmp_path)
    assert programs.unended == ""


HELD = HeldInput(arguments=("-",), unfinished="be", rest="gin\n")
WAITING = Command(argv=("sh", "-c", 'echo $$ > pid; cat; echo "$1"', "sh"), held=HELD)
"""Prints its input, and then the argument with which it waits, if it does."""


async def test_a_command_that_can_wait_is_started_before_it_may_begin(tmp_path: Path) -> None:
    gate = process.Gate()
    running = asyncio.create_task(process.run(WAITING, directory=tmp_path, gate=gate))
    assert is_running(int(await text_of(tmp_path, "pid")))
    assert not running.done()
    before = time.time_ns()
    gate.is_open.set()
    finished = await running
    assert (finished.exit_code, finished.stdout) == (0, "begin\n-\n")
    assert finished.launched_at >= before


async def test_a_command_that_cannot_wait_is_not_started_before_it_may_begin(tmp_path: Path) -> None:
    gate = process.Gate()
    running = asyncio.create_task(process.run(replace(WAITING, held=None), directory=tmp_path, gate=gate))
    await asyncio.sleep(0.5)
    assert not (tmp_path / "pid").exists()
    gate.is_open.set()
    assert (await running).stdout == "\n"


async def test_a_command_that_waits_ends_when_it_is_cancelled(tmp_path: Path) -> None:
    running = asyncio.create_task(process.run(WAITING, directory=tmp_path, gate=process.Gate()))
    pid = int(await text_of(tmp_path, "pid"))
    await cancel(running)
    assert not is_running(pid)


@pytest.mark.parametrize("argv", [("sh", "-c", "exit 127"), ("plimsoll-no-such-program",)])
async def test_a_command_that_fails_before_it_may_begin_has_its_exit_code(
    tmp_path: Path, argv: tuple[str, ...]
) -> None:
    launch = process.Launch(partial(process.run, Command(argv=argv, held=HELD), directory=tmp_path))
    await launch.start()
    assert (await launch.output()).exit_code == 127


async def test_a_launch_has_started_once_its_command_has_read_its_input(tmp_path: Path) -> None:
    """A process that exists may still have to load its libraries."""
    slow = replace(WAITING, argv=("sh", "-c", "echo $$ > pid; until [ -e ready ]; do sleep 0.02; done; cat"))
    launch = process.Launch(partial(process.run, slow, directory=tmp_path))
    starting = asyncio.create_task(launch.start())
    await text_of(tmp_path, "pid")
    await asyncio.sleep(0.3)
    assert not starting.done()
    (tmp_path / "ready").touch()
    await starting
    assert (await launch.output()).exit_code == 0


async def test_a_launch_starts_once_and_ends_when_it_is_cancelled(tmp_path: Path) -> None:
    launch = process.Launch(partial(process.run, WAITING, directory=tmp_path))
    await launch.cancel()
    await launch.start()
    pid = int((tmp_path / "pid").read_text())
    await launch.start()
    assert (await launch.output()).exit_code == 0
    await launch.cancel()
    assert not is_running(pid)
    assert int((tmp_path / "pid").read_text()) == pid
