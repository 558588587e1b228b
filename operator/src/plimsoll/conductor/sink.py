"""Durable storage of a conductor: the interface for files and for a cluster."""

import asyncio
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, Self, TypeVar

from pydantic import BaseModel, ValidationError

from plimsoll.api.errors import SpecError, problems_of
from plimsoll.api.result import BenchmarkResult, Matrix, ResultMeta, ResultSpec, ResultStatus, Trial
from plimsoll.api.status import STATE_FILE, RunState
from plimsoll.plan.document import PLAN_FILE, Plan, Point, load_plan
from plimsoll.plan.expand import most_trials

RESULTS_DIRECTORY = "results"

M = TypeVar("M", bound=BaseModel)


class Stored(NamedTuple):
    """What earlier conductors of a run have stored."""

    trials: Mapping[str, Sequence[Trial]]  # the recorded trials by point
    state: RunState | None
    matrices: Mapping[str, Matrix]  # the recorded matrices by point
    ended: Collection[str]  # the points whose search for the line ended

    @classmethod
    def of(cls, results: Mapping[str, ResultStatus], state: RunState | None) -> Self:
        """Return the part of the results, by point, with which a conductor continues, and the state."""
        summaries = {point: status.summary for point, status in results.items()}
        return cls(
            trials={point: status.trials for point, status in results.items()},
            state=state,
            matrices={point: summary.matrix for point, summary in summaries.items() if summary and summary.matrix},
            ended={point for point, status in results.items() if status.line and status.line.ending},
        )


class Sink(Protocol):
    """Durable storage of one run's state and results.

    Attributes:
        progress_seconds: minimum interval between writes of mere progress.
        pulse_seconds: minimum interval between writes of values that always change: live rates and elapsed time.

    """

    progress_seconds: float
    pulse_seconds: float

    async def load(self) -> Stored:
        """Return what earlier conductors have stored."""

    async def publish(self, state: RunState) -> None:
        """Store the state so that it survives the process."""

    async def record(self, point: str, status: ResultStatus) -> None:
        """Store a point's status so that it survives the machine."""


class FilesSink:
    """A directory: `plan.json`, `state.json`, and one `BenchmarkResult` per point under `results/`."""

    progress_seconds = 0.5
    pulse_seconds = 2.0

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.plan = read_plan(directory)

    async def load(self) -> Stored:
        """Read results and state; see `read_state` for errors."""
        results = await asyncio.to_thread(read_results, self.directory)
        state = await asyncio.to_thread(read_state, self.directory)
        return Stored.of({result.spec.point: result.status for result in results}, state)

    async def publish(self, state: RunState) -> None:
        """Write `state.json`; see `Sink.publish`."""
        text = state.model_dump_json(indent=1)
        await asyncio.to_thread(replace_file, self.directory / STATE_FILE, text, sync=False)

    async def record(self, point: str, status: ResultStatus) -> None:
        """Write the result of a point; see `Sink.record`."""
        result = result_of(self.plan, self.plan.point(point), status)
        path = self.directory / RESULTS_DIRECTORY / f"{result.metadata.name}.json"
        await asyncio.to_thread(replace_file, path, result.model_dump_json(indent=1), sync=True)


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
            repetitions=most_trials(plan, point),
            line=point.line,
        ),
        status=status,
    )


def read_plan(directory: Path) -> Plan:
    """Read the frozen plan of a results directory; see `load_plan` for errors."""
    return load_plan((directory / PLAN_FILE).read_text())


def read_state(directory: Path) -> RunState | None:
    """Read the state of a results directory; None before a conductor has written one.

    SpecError: the file is invalid; the message names file and field.
    """
    path = directory / STATE_FILE
    return _validated(RunState, path) if path.exists() else None


def read_results(directory: Path) -> list[BenchmarkResult]:
    """Read every result of a results directory, in order of name; see `read_state` for errors."""
    return [_validated(BenchmarkResult, path) for path in sorted((directory / RESULTS_DIRECTORY).glob("*.json"))]


def _validated(model: type[M], path: Path) -> M:
    try:
        return model.model_validate_json(path.read_text())
    except ValidationError as error:
        raise SpecError(problems_of(error, prefix=[str(path)])) from error


def replace_file(path: Path, text: str, *, sync: bool) -> None:
    """Replace a file atomically: readers see the old or the new content, even after a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.new")
    with draft.open("w") as file:
        file.write(text)
        file.flush()
        if sync:
            os.fsync(file.fileno())
    draft.replace(path)
    if sync:
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
