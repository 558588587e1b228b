"""Durable storage of a conductor: files, or for a run in a cluster the status of its results and a ConfigMap.

In a cluster, the operator creates the results and the ConfigMap `<run>-state`; the conductor may only get and patch
them, by name. Users may edit ConfigMaps, but not the status of results: so the result to which an attempt belongs shows
that it has begun.

A conductor claims the state with its first write, and writes the state before it begins an attempt. An earlier one that
is still alive then stops, and overwrites nothing: each write has the version of the object that the conductor last read
or wrote.
"""

import asyncio
import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from pydantic import BaseModel, ValidationError

from plimsoll.api.errors import SpecError, problems_of
from plimsoll.api.line import Line, LineSearch
from plimsoll.api.names import API_VERSION, RESULT_KIND, Operation, RunPhase, format_duration
from plimsoll.api.operation import OperationSummary
from plimsoll.api.result import BenchmarkResult, InFlight, Matrix, ResultMeta, ResultSpec, ResultStatus, Trial
from plimsoll.api.status import STATE_FILE, ResultDisplay, RunState, TrialKey
from plimsoll.kube.port import ApiError, ConflictError, Kind, Kube, NotFoundError, Object, persist
from plimsoll.lifecycle import naming
from plimsoll.measure.checks.judge import reasons_of
from plimsoll.measure.line.summary import progress_text, short_text
from plimsoll.measure.rates import rate_text
from plimsoll.measure.summary import iops_of
from plimsoll.plan.document import PLAN_FILE, Plan, Point, load_plan
from plimsoll.plan.expand import most_trials

RESULTS_DIRECTORY = "results"

RESULT = Kind(api_version=API_VERSION, kind=RESULT_KIND)
CONFIG_MAP = Kind(api_version="v1", kind="ConfigMap")

RETRY_SECONDS = 60.0
"""A longer outage of the API server ends the conductor; its successor continues from what is recorded."""

_REPLACED = "another conductor of this run has written since; this one stops"

_ENDS = {RunPhase.COMPLETE, RunPhase.FAILED, RunPhase.INTERRUPTED}
_MAX_CHARACTERS = 64

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
    """Durable storage of one run's state and results."""

    progress_seconds: float  # minimum interval between writes of mere progress
    pulse_seconds: float  # ... and of values that always change: live rates and elapsed time

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
        text = state.model_dump_json(indent=1)
        await asyncio.to_thread(replace_file, self.directory / STATE_FILE, text, sync=False)

    async def record(self, point: str, status: ResultStatus) -> None:
        result = result_of(self.plan, self.plan.point(point), status)
        path = self.directory / RESULTS_DIRECTORY / f"{result.metadata.name}.json"
        await asyncio.to_thread(replace_file, path, result.model_dump_json(indent=1), sync=True)


def result_of(plan: Plan, point: Point, status: ResultStatus) -> BenchmarkResult:
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
    """Read a results directory's state; None before there is one. SpecError with file and field if it is invalid."""
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
    try:
        with draft.open("w") as file:
            file.write(text)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        # Errors of a write name no file.
        draft.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error
    if sync:
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


class ReplacedError(ApiError):
    """Another conductor of the run has written: this one may not. A retry does not help."""


_Attempts = tuple[Sequence[tuple[int, int, str]], Mapping[str, Any] | None]
"""What of a result's status tells which attempts it has: the recorded ones, and the one in flight. Only conductors
change it."""


def _attempts(status: Mapping[str, Any], before: Sequence[tuple[int, int, str]] = ()) -> _Attempts:
    """Return the attempts of a status; the recorded ones are those `before` if a patch leaves them as they are."""
    recorded = before
    if "trials" in status:
        recorded = [(trial["passNumber"], trial["attempt"], trial["epoch"]) for trial in status["trials"]]
    return [*recorded], status.get("inFlight")


def _seen(result: Object) -> tuple[str, _Attempts]:
    return _version(result), _attempts(result.get("status", {}))


def _version(obj: Object) -> str:
    version: str = obj["metadata"]["resourceVersion"]
    return version


def _epoch(stored: Object) -> str:
    """Return the epoch of the conductor that wrote a state; empty if users removed it or made it unreadable."""
    try:
        return str(json.loads(stored["data"][STATE_FILE])["epoch"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""


class KubeSink:
    """Stores state and results in the run's objects.

    Every method raises ApiError after `retry_seconds` of retries, or ReplacedError, before which it overwrites nothing.
    """

    progress_seconds = 3.0
    pulse_seconds = 15.0  # every watcher of the run receives every write

    def __init__(self, kube: Kube, plan: Plan, namespace: str, *, retry_seconds: float = RETRY_SECONDS) -> None:
        self._kube = kube
        self._plan = plan
        self._namespace = namespace
        self._retry_seconds = retry_seconds
        self._noted: tuple[str, InFlight] | None = None  # the point of the last attempt that a result shows in flight
        self._state: RunState | None = None
        self._written: RunState | None = None
        self._writing: asyncio.Task[None] | None = None
        self._seen: dict[str, tuple[str, _Attempts]] = {}  # version and attempts, as last read or written, by name
        self._state_version = ""
        self._before = ""  # the epoch of the conductor before this one; empty once this one has claimed the state

    async def load(self) -> Stored:
        """Load results and state; NotFoundError for an object of no or another run, SpecError for an invalid one."""
        name = naming.state_config_map(self._plan.run.name)
        stored = await self._get(CONFIG_MAP, name)
        self._state_version, self._before = _version(stored), _epoch(stored)
        text = stored.get("data", {}).get(STATE_FILE)
        try:
            state = RunState.model_validate_json(text) if text else None
        except ValidationError as error:
            raise SpecError(problems_of(error, prefix=[f"ConfigMap {name}", STATE_FILE])) from error
        points, reading = [point.name for point in self._plan.points], asyncio.Semaphore(8)
        results = await asyncio.gather(*(self._status(point, reading) for point in points))
        by_point = dict(zip(points, results, strict=True))
        # Only results show the attempt in flight; the state's may be outdated.
        state = state and state.model_copy(update={"in_flight": None})
        for point, status in by_point.items():
            if (attempt := status.in_flight) is not None:
                update = {
                    "in_flight": TrialKey(point=point, pass_number=attempt.pass_number, attempt=attempt.attempt),
                    "in_flight_since": attempt.started_at,
                    "in_flight_t0_nanoseconds": attempt.t0_nanoseconds or 0,
                }
                return Stored.of(by_point, (state or RunState()).model_copy(update=update))
        return Stored.of(by_point, state)

    async def publish(self, state: RunState) -> None:
        """Store the state; see `Sink.publish`.

        Waits for the write only if a successor depends on it: a change of the phase, of the attempt in flight or its
        earliest T0, or the end. Progress is written in the background, so that a slow API server does not delay a
        trial.
        """
        before, self._state = self._state, state
        if self._writing is None or self._writing.done():
            self._check()
            self._writing = asyncio.create_task(self._write())
        # Before the note of a new attempt: a conductor that was replaced may begin none.
        if (
            before is None
            or state.phase in _ENDS
            or before.phase is not state.phase
            or before.in_flight != state.in_flight
        ):
            await self._writing
        if (key := state.in_flight) is not None:
            # Recording the attempt removes the note again.
            attempt = InFlight(
                pass_number=key.pass_number,
                attempt=key.attempt,
                started_at=state.in_flight_since,
                t0_nanoseconds=state.in_flight_t0_nanoseconds or None,
            )
            if self._noted != (key.point, attempt):
                note = {"inFlight": attempt.model_dump(mode="json", exclude_none=True)}
                await self._patch_result(key.point, note)
                self._noted = key.point, attempt

    def _check(self) -> None:
        """Raise the error of the last write of the state, if it has failed."""
        if self._writing is not None and self._writing.done():
            self._writing.result()

    async def record(self, point: str, status: ResultStatus) -> None:
        self._check()
        # Name every field, so that the patch removes those without a value.
        fields = (field.serialization_alias or name for name, field in ResultStatus.model_fields.items())
        document: dict[str, Any] = dict.fromkeys(fields) | status.model_dump(mode="json", exclude_none=True)
        planned = self._plan.point(point)
        display = result_display(status, most_trials(self._plan, planned), planned.line)
        document["display"] = display.model_dump(mode="json", exclude_none=True)
        await self._patch_result(point, document)

    async def _patch_result(self, point: str, status: dict[str, Any]) -> None:
        name = naming.result(self._plan.run.name, point)
        _, before = self._seen[name]
        wanted = _attempts(status, before[0])

        async def write() -> None:
            version, _ = self._seen[name]
            result = await self._kube.patch_status(RESULT, name, self._namespace, status, version=version)
            self._seen[name] = _seen(result)

        async def patch() -> None:
            try:
                await write()
            except ConflictError as error:
                self._seen[name] = _seen(await self._read(RESULT, name))
                # Either somebody changed its metadata, or an earlier try succeeded and its answer was lost.
                if self._seen[name][1] not in (before, wanted):
                    raise ReplacedError(error.asked, _REPLACED) from error
                # At once: somebody may change it often.
                await write()

        await persist(patch, seconds=self._retry_seconds)

    async def _write(self) -> None:
        """Write until the newest state is stored."""
        while self._written is not self._state and self._state is not None:
            state = self._state
            await persist(partial(self._patch_state, state), seconds=self._retry_seconds)
            self._written = state

    async def _patch_state(self, state: RunState) -> None:
        name = naming.state_config_map(self._plan.run.name)
        patch = {"metadata": {"resourceVersion": self._state_version}, "data": {STATE_FILE: state.model_dump_json()}}
        try:
            stored = await self._kube.patch(CONFIG_MAP, name, self._namespace, patch)
        except ConflictError as error:
            stored = await self._read(CONFIG_MAP, name)
            if _epoch(stored) not in {"", state.epoch, self._before}:
                raise ReplacedError(error.asked, _REPLACED) from error
            self._state_version = _version(stored)
            raise
        self._state_version, self._before = _version(stored), ""

    async def _status(self, point: str, reading: asyncio.Semaphore) -> ResultStatus:
        """Return the part of a result's status with which a conductor continues."""
        name = naming.result(self._plan.run.name, point)
        async with reading:
            result = await self._get(RESULT, name)
        if result["spec"]["runUid"] != self._plan.run.uid:
            raise NotFoundError(f"get {RESULT_KIND} {self._namespace}/{name}", "it belongs to another run of that name")
        try:
            stored = result.get("status", {})
            names = ("trials", "inFlight", "summary", "line")
            fields = {field: stored[field] for field in names if field in stored}
            status = ResultStatus.model_validate(fields)
        except ValidationError as error:
            raise SpecError(problems_of(error, prefix=[f"{RESULT_KIND} {name}", "status"])) from error
        self._seen[name] = _seen(result)
        return status

    async def _get(self, kind: Kind, name: str) -> Object:
        return await persist(partial(self._read, kind, name), seconds=self._retry_seconds)

    async def _read(self, kind: Kind, name: str) -> Object:
        obj = await self._kube.get(kind, name, self._namespace)
        if obj is None:
            asked = f"get {kind.kind} {self._namespace}/{name}"
            raise NotFoundError(asked, "it does not exist; the operator creates it before the conductor")
        return obj


def result_display(status: ResultStatus, repetitions: int, search: LineSearch | None = None) -> ResultDisplay:
    """Return a point's columns; of a search, the trials are its probes, and the line replaces the numbers."""
    reasons = reasons_of(status)
    more = f" +{len(reasons) - 1}" if len(reasons) > 1 else ""
    # The main reason of the verdict, and the number of others: `ClientThrottled +2`.
    reason = f"{reasons[0]}{more}"[:_MAX_CHARACTERS] if reasons else None
    if search is not None:
        text = short_text(status.line, search)[:_MAX_CHARACTERS] if status.line else None
        return ResultDisplay(line=text, trials=progress_text(status.line or Line(probes=0, counted=0)), reason=reason)
    summary = status.summary
    trials = f"{summary.trials if summary else 0}/{repetitions}"
    operations = summary.operations if summary else ()
    # Without syncs, unless there are only syncs.
    shown = tuple(summed for summed in operations if summed.operation is not Operation.SYNC) or operations
    if not shown:
        return ResultDisplay(trials=trials, reason=reason)
    percentiles = [operation.percentiles.get("99") for operation in shown]

    def joined(texts: Iterable[str]) -> str:
        return " / ".join(texts)[:_MAX_CHARACTERS]

    return ResultDisplay(
        operation=joined(operation.operation.value for operation in shown),
        iops=joined(map(_rate, shown)),
        bytes_per_second=joined(f"{operation.bytes_per_second.mean / 2**20:,.1f} MiB/s" for operation in shown),
        p99=joined("-" if percentile is None else format_duration(percentile.mean) for percentile in percentiles),
        trials=trials,
        reason=reason,
    )


def _rate(operation: OperationSummary) -> str:
    """Return the operations per second; a dash if they are not counted."""
    statistic = iops_of(operation)
    if statistic is None:
        return "-"
    if statistic.low is None or statistic.high is None:
        return rate_text(statistic.mean)
    return rate_text(statistic.mean, (statistic.high - statistic.low) / 2)
