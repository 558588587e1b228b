"""Where a conductor keeps what it knows: the seam between files and a cluster."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from plimsoll.api.errors import SpecError, problems_of
from plimsoll.api.result import BenchmarkResult, ResultMeta, ResultSpec, ResultStatus, Trial
from plimsoll.api.state import RunState
from plimsoll.plan.document import Plan, Point, load_plan

PLAN_FILE = "plan.json"
STATE_FILE = "state.json"
RESULTS_DIRECTORY = "results"


class Sink(Protocol):
    """Durable storage of one run's state and results.

    Attributes:
        progress_seconds: how often mere progress is worth a write.
        pulse_seconds: how often what changes all the time is: the rates of a trial under way, and the time that a run
            has been active, which its deadline counts.

    """

    progress_seconds: float
    pulse_seconds: float

    async def load(self) -> tuple[Mapping[str, Sequence[Trial]], RunState | None]:
        """Return the recorded trials by point, and the state that an earlier conductor left."""
        ...

    async def publish(self, state: RunState) -> None:
        """Keep the state. Survives the death of the process."""
        ...

    async def record(self, point: str, status: ResultStatus) -> None:
        """Keep a point's status. Survives the death of the machine."""
        ...


class FilesSink:
    """A directory: `plan.json`, `state.json`, and one `BenchmarkResult` per point under `results/`."""

    progress_seconds = 0.5
    pulse_seconds = 2.0

    def __init__(self, directory: Path) -> None:
        """Use a directory that holds a frozen plan."""
        self.directory = directory
        self.plan = read_plan(directory)

    async def load(self) -> tuple[Mapping[str, Sequence[Trial]], RunState | None]:
        """Read back what was kept; see `Sink.load`."""
        return await asyncio.to_thread(self._load)

    async def publish(self, state: RunState) -> None:
        """Write `state.json`; see `Sink.publish`."""
        text = state.model_dump_json(indent=1)
        await asyncio.to_thread(replace_file, self.directory / STATE_FILE, text, sync=False)

    async def record(self, point: str, status: ResultStatus) -> None:
        """Write the result of a point; see `Sink.record`."""
        result = result_of(self.plan, self.plan.point(point), status)
        path = self.directory / RESULTS_DIRECTORY / f"{result.metadata.name}.json"
        await asyncio.to_thread(replace_file, path, result.model_dump_json(indent=1), sync=True)

    def _load(self) -> tuple[Mapping[str, Sequence[Trial]], RunState | None]:
        trials = {result.spec.point: result.status.trials for result in read_results(self.directory)}
        return trials, read_state(self.directory)


def result_of(plan: Plan, point: Point, status: ResultStatus) -> BenchmarkResult:
    """Return the result object of a point."""
    return BenchmarkResult(
        metadata=ResultMeta(
            name=f"{plan.run.name}-{point.name}",
            namespace=plan.run.namespace,
            labels={"plimsoll.dev/run": plan.run.name, "plimsoll.dev/workload": point.workload},
        ),
        spec=ResultSpec(
            run=plan.run.name,
            run_uid=plan.run.uid,
            point=point.name,
            workload=point.workload,
            tool=point.tool,
            label=point.label,
            parameters=point.parameters,
            clients=point.clients,
            runtime_seconds=point.runtime_seconds,
            ramp_seconds=point.ramp_seconds,
            repetitions=plan.repetitions,
        ),
        status=status,
    )


def read_plan(directory: Path) -> Plan:
    """Read the frozen plan of a results directory; see `load_plan` for errors."""
    return load_plan((directory / PLAN_FILE).read_text())


def read_state(directory: Path) -> RunState | None:
    """Read the state of a results directory; None before the first conductor wrote one.

    Raises:
        SpecError: naming the file and the field that is wrong.

    """
    path = directory / STATE_FILE
    if not path.exists():
        return None
    try:
        return RunState.model_validate_json(path.read_text())
    except ValidationError as error:
        raise SpecError(problems_of(error, prefix=[str(path)])) from error


def read_results(directory: Path) -> list[BenchmarkResult]:
    """Read every result of a results directory, by name.

    Raises:
        SpecError: naming the file and the field that is wrong.

    """
    results = []
    for path in sorted((directory / RESULTS_DIRECTORY).glob("*.json")):
        try:
            results.append(BenchmarkResult.model_validate_json(path.read_text()))
        except ValidationError as error:
            raise SpecError(problems_of(error, prefix=[str(path)])) from error
    return results


def replace_file(path: Path, text: str, *, sync: bool) -> None:
    """Replace a file's content in one step: a reader, or a crash, sees the old text or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.new")
    with draft.open("w") as file:
        file.write(text)
        file.flush()
        if sync:
            os.fsync(file.fileno())
    draft.replace(path)
    if sync:
        _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
