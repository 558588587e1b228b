"""Run the stages of hack/stages.toml, independent ones in parallel, and print the time of each.

usage: stages.py [--keep-going] [STAGE...]

  STAGE         run these stages and their dependencies; without names, all but those with `by_name = true`
  --keep-going  after a failure, run all stages that do not depend on the failed one

Each stage is a shell command that runs in the root of the tree. Its output goes to build/stages/STAGE.log and, when it
ends, to standard output: the last lines, or everything after a failure. The first failure stops all other stages,
except with --keep-going.

Tests that measure depend on other load. A stage with `repeats = true` that fails in MOST_REPEATED tests at most, or in
one file, whose tests may share a cause, does not end the run: when all else is over, these tests run once more, alone,
and must pass. The closing lines name them, since frequent repeats are a fault of the test or of the program. Failures
in teardowns, or that keep other tests from running, are not repeated. A stage with `repeats_whole = true` measures
without tests: all of it is repeated.

Tests that pytest skipped, and stages that were not run, are in the last lines with the reason, and in NOT_TESTED below
build/stages: nothing is left out in silence.

A stage that takes longer than DEADLINE_FACTOR budgets, and longer than LEAST_DEADLINE_SECONDS, fails. A stopped stage
gets SIGTERM and two minutes to clean up.

The closing table compares each stage with its budget, and lists the slowest tests of a stage over its budget. That is
not a failure, because a machine may be slow. Budgets are for a machine with two cores; `cold` applies if the cache was
empty at the start.
"""

# ruff: noqa: INP001 - a script, run by path
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import TextIO

from stage_table import clock, skipped, slowest, table

ROOT = Path(__file__).resolve().parent.parent
DEFINITIONS = ROOT / "hack" / "stages.toml"
LOGS = ROOT / "build" / "stages"
NOT_TESTED = "not-tested"
TOTAL = "total"
KEEP_GOING = "--keep-going"
TIMED_OUT = 124
PROGRESS_SECONDS = 30
POLL_SECONDS = 0.2
SHOWN_LINES = 12
DEADLINE_FACTOR = 4
LEAST_DEADLINE_SECONDS = 3600.0
STOP_SECONDS = 120.0
KILLED_SECONDS = 10.0
MOST_REPEATED = 12
GROUP = re.compile(r"@[^@\]]+$")
NOT_OF_ONE_TEST = re.compile(r"^(?:INTERNALERROR>|!{3}|_+ ERROR at teardown of )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Stage:
    """One command with its dependencies and budgets.

    Attributes:
        warm: the budget in seconds with a filled cache.
        cold: the budget in seconds with an empty cache.
        nice: the niceness of its session as a whole, against other sessions; ignored by kernels that do not know it.
        repeats: whether failed tests are repeated alone. Its command passes the environment variable ONLY, the quoted
            names of tests, to pytest.
        repeats_whole: whether the whole command is repeated alone after a failure.
        by_name: whether it runs only if it is named, because other stages contain what it does.

    """

    name: str
    command: str
    warm: float
    cold: float
    after: tuple[str, ...] = ()
    nice: int = 0
    repeats: bool = False
    repeats_whole: bool = False
    by_name: bool = False


@dataclass(slots=True)
class Execution:
    """A started stage."""

    stage: Stage
    process: "subprocess.Popen[bytes]"
    log: Path
    started: float
    ended: float | None = None
    code: int | None = None

    @property
    def seconds(self) -> float:
        """Its duration until now or until its end."""
        return (self.ended or time.monotonic()) - self.started


@dataclass(slots=True)
class Progress:
    """The stages by state."""

    waiting: list[Stage]
    running: dict[str, Execution] = field(default_factory=dict)
    done: dict[str, Execution] = field(default_factory=dict)
    to_repeat: dict[str, list[str]] = field(default_factory=dict)
    repeated: dict[str, list[str]] = field(default_factory=dict)

    def startable(self) -> list[Stage]:
        """Return the waiting stages whose dependencies have passed."""
        return [stage for stage in self.waiting if all(self._passed(name) for name in stage.after)]

    def _passed(self, name: str) -> bool:
        return name in self.done and (self.done[name].code == 0 or name in {*self.to_repeat, *self.repeated})


def read_stages(text: str) -> dict[str, Stage]:
    """Return the stages of a definition by name.

    Raises:
        ValueError: a stage depends on one that is not defined before it.

    """
    stages: dict[str, Stage] = {}
    for name, found in tomllib.loads(text).items():
        after = tuple(found.get("after", ()))
        if unknown := [each for each in after if each not in stages]:
            raise ValueError(f"stage {name} needs {', '.join(unknown)}, not defined before it")
        warm = float(found["warm"])
        cold, nice = float(found.get("cold", warm)), found.get("nice", 0)
        repeats, whole = found.get("repeats", False), found.get("repeats_whole", False)
        by_name = found.get("by_name", False)
        stages[name] = Stage(name, found["command"], warm, cold, after, nice, repeats, whole, by_name)
    return stages


def select(stages: Mapping[str, Stage], names: Sequence[str]) -> list[Stage]:
    """Return the named stages and their dependencies in the order of definition.

    Without names, return all stages except those that run only if they are named.

    Raises:
        ValueError: a stage does not exist.

    """
    wanted = set(names or (name for name, stage in stages.items() if not stage.by_name))
    if unknown := sorted(wanted - set(stages)):
        raise ValueError(f"no stage {', '.join(unknown)}; there are {', '.join(stages)}")
    for stage in reversed(stages.values()):
        if stage.name in wanted:
            wanted.update(stage.after)
    return [stage for stage in stages.values() if stage.name in wanted]


class Runner:
    """Runs stages and reports on a stream."""

    def __init__(self, stages: Sequence[Stage], *, cold: bool, keep_going: bool = False, output: TextIO) -> None:
        self._progress = Progress(list(stages))
        self._cold = cold
        self._keep_going = keep_going
        self._output = output
        self._began = time.monotonic()
        self._next_report = self._began + PROGRESS_SECONDS
        self._interrupted = 0

    def interrupt(self, number: int, _frame: FrameType | None) -> None:
        """Note a signal, after which the run stops all stages; more of them change nothing."""
        self._interrupted = 128 + number

    def run(self) -> int:
        """Return 0, or the exit code of the first stage that failed."""
        LOGS.mkdir(parents=True, exist_ok=True)
        (LOGS / NOT_TESTED).unlink(missing_ok=True)
        progress, code = self._progress, 0
        try:
            while self._goes_on(code):
                for stage in progress.startable():
                    progress.waiting.remove(stage)
                    self._start(stage)
                if not progress.running:
                    self._repeat_one()
                failure = self._collect()
                code = code or failure
                self._report_progress()
                time.sleep(POLL_SECONDS)
        finally:
            self._stop()
        self._say(self._table())
        if not_tested := self._not_tested():
            (LOGS / NOT_TESTED).write_text(not_tested)
            self._say(not_tested.rstrip("\n"))
        return self._interrupted or code

    def _goes_on(self, code: int) -> bool:
        """Whether there is work and, with that exit code so far, nothing to stop for."""
        progress = self._progress
        has_work = progress.running or progress.startable() or progress.to_repeat
        return not self._interrupted and (code == 0 or self._keep_going) and bool(has_work)

    def _repeat_one(self) -> None:
        """Start the failed tests of one stage, if there are any."""
        for name, tests in self._progress.to_repeat.items():
            del self._progress.to_repeat[name]
            self._progress.repeated[name] = tests
            stage = replace(
                self._progress.done[name].stage, name=f"{name}-repeated", after=(), repeats=False, repeats_whole=False
            )
            self._start(stage, tests)
            return

    def _start(self, stage: Stage, only: Sequence[str] = ()) -> None:
        log = LOGS / f"{stage.name}.log"
        cache = _pytest_cache(stage)
        shutil.rmtree(cache, ignore_errors=True)
        options = [os.environ.get("PYTEST_ADDOPTS", ""), f"--color=no -o cache_dir={shlex.quote(str(cache))}"]
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", stage.command],
                cwd=ROOT,
                env={
                    **os.environ,
                    "PLIMSOLL_STAGE": stage.name,
                    "PYTEST_ADDOPTS": " ".join(options).strip(),
                    "ONLY": shlex.join(only),
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        if stage.nice:
            with suppress(OSError):
                Path(f"/proc/{process.pid}/autogroup").write_text(f"{stage.nice}\n")
        self._progress.running[stage.name] = Execution(stage, process, log, time.monotonic())
        self._say(f"{self._now()} {stage.name}: started")

    def _collect(self) -> int:
        """Move ended stages to `done`; return the exit code of a failed one, or 0."""
        failure = 0
        for name, execution in list(self._progress.running.items()):
            code = execution.process.poll()
            if code is None and execution.seconds > self._deadline(execution.stage):
                self._say(
                    f"{self._now()} {name}: timed out after {clock(self._deadline(execution.stage))}, stopping it"
                )
                _end_group(execution.process)
                code = TIMED_OUT
            if code is None:
                continue
            execution.ended, execution.code = time.monotonic(), code
            self._progress.done[name] = self._progress.running.pop(name)
            self._report(execution)
            if code != 0 and not self._postpone(execution):
                failure = code if code > 0 else 1
        return failure

    def _postpone(self, execution: Execution) -> bool:
        """Note the parts of a stage to repeat; False if it failed for good."""
        stage = execution.stage
        if stage.repeats_whole and execution.code != TIMED_OUT:
            self._progress.to_repeat[stage.name] = []
            self._say(f"{self._now()} {stage.name}: will be repeated alone")
            return True
        repeats = stage.repeats and execution.code != TIMED_OUT
        repeats = repeats and not NOT_OF_ONE_TEST.search("\n".join(_lines(execution.log)))
        tests = failed_tests(_pytest_cache(stage)) if repeats else []
        files = {name.partition("::")[0] for name in tests}
        if not tests or (len(tests) > MOST_REPEATED and len(files) > 1):
            return False
        self._progress.to_repeat[stage.name] = tests
        self._say(f"{self._now()} {stage.name}: will be repeated alone: {', '.join(tests)}")
        return True

    def _report(self, execution: Execution) -> None:
        outcome = "passed" if execution.code == 0 else f"FAILED with exit code {execution.code}"
        self._say(f"\n{self._now()} {execution.stage.name}: {outcome} in {clock(execution.seconds)}")
        lines = _lines(execution.log)
        self._say("\n".join(lines if execution.code else lines[-SHOWN_LINES:]) + "\n")

    def _report_progress(self) -> None:
        if time.monotonic() < self._next_report:
            return
        self._next_report = time.monotonic() + PROGRESS_SECONDS
        for execution in self._progress.running.values():
            last = next((line for line in reversed(_lines(execution.log)) if line.strip()), "")
            self._say(f"{self._now()} {execution.stage.name}, {clock(execution.seconds)}: {last[-100:]}")

    def _stop(self) -> None:
        """End all running stages, and wait for their processes."""
        for execution in self._progress.running.values():
            _signal_group(execution.process, signal.SIGTERM)
        for execution in self._progress.running.values():
            _end_group(execution.process)
            self._say(f"{self._now()} {execution.stage.name}: stopped after {clock(execution.seconds)}")

    def _table(self) -> str:
        done = self._progress.done.values()
        rows = [(each.stage.name, each.seconds, self._budget(each.stage)) for each in done]
        if not self._progress.waiting and not self._progress.running:
            stages = {each.stage.name: each.stage for each in done}
            rows.append((TOTAL, time.monotonic() - self._began, longest_path(stages, cold=self._cold)))
        details = {each.stage.name: slowest(_lines(each.log)) for each in done}
        kind = "an empty cache" if self._cold else "a filled cache"
        closing = f"\nFrom {kind}:\n{table(rows, details)}"
        for name, tests in self._progress.repeated.items():
            closing += f"\nrepeated alone after a failure in {name}: {', '.join(tests) or 'all of it'}"
        return closing

    def _not_tested(self) -> str:
        """Return a line for each reason why something was not tested; nothing if everything was."""
        left_out = [stage.name for stage in self._progress.waiting]
        lines = [f"not run: {', '.join(left_out)}"] if left_out else []
        for name, execution in self._progress.done.items():
            lines += [f"not tested in {name}: {each}" for each in skipped(_lines(execution.log))]
        return "".join(f"{line}\n" for line in lines)

    def _budget(self, stage: Stage) -> float:
        return stage.cold if self._cold else stage.warm

    def _deadline(self, stage: Stage) -> float:
        return max(LEAST_DEADLINE_SECONDS, DEADLINE_FACTOR * self._budget(stage))

    def _now(self) -> str:
        return f"[{clock(time.monotonic() - self._began):>6}]"

    def _say(self, text: str) -> None:
        self._output.write(f"{text}\n")
        self._output.flush()


def longest_path(stages: Mapping[str, Stage], *, cold: bool) -> float:
    """Return the total seconds if each stage waits for its dependencies and takes its budget."""
    ends: dict[str, float] = {}
    for stage in stages.values():
        begin = max((ends[name] for name in stage.after), default=0)
        ends[stage.name] = begin + (stage.cold if cold else stage.warm)
    return max(ends.values(), default=0)


def failed_tests(cache: Path) -> list[str]:
    """Return the names of the tests that failed, from pytest's cache, without the groups of pytest-xdist."""
    with suppress(OSError, ValueError):
        return sorted(GROUP.sub("", name) for name in json.loads((cache / "v/cache/lastfailed").read_text()))
    return []


def _pytest_cache(stage: Stage) -> Path:
    return LOGS / f"{stage.name}.pytest"


def _signal_group(process: "subprocess.Popen[bytes]", number: int) -> None:
    """Send a signal to all processes of a stage."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _has_members(group: int) -> bool:
    """Whether a process group has a running process; init may be slow to reap ended ones."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, number = path.read_text().rpartition(")")[2].split()[:3]
            if int(number) == group and state != "Z":
                return True
    return False


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    """End all processes of a stage; kill those that take too long to clean up."""
    for number, seconds in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, KILLED_SECONDS)):
        deadline = time.monotonic() + seconds
        _signal_group(process, number)
        while process.poll() is None or _has_members(process.pid):
            if time.monotonic() > deadline:
                break
            time.sleep(POLL_SECONDS)


def _lines(log: Path) -> list[str]:
    return log.read_text(errors="replace").splitlines()


def main(arguments: Sequence[str]) -> int:
    """Return the exit code."""
    keep_going = KEEP_GOING in arguments
    names = [argument for argument in arguments if argument != KEEP_GOING]
    try:
        stages = select(read_stages(DEFINITIONS.read_text()), names)
    except ValueError as error:
        sys.stderr.write(f"stages.py: {error}\n")
        return 2
    cache = Path(os.environ.get("PLIMSOLL_CACHE") or Path.home() / ".cache" / "plimsoll")
    is_cold = not cache.exists() or not any(cache.iterdir())
    runner = Runner(stages, cold=is_cold, keep_going=keep_going, output=sys.stdout)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, runner.interrupt)
    return runner.run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
