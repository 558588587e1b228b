"""The sink of a run in a cluster: the status of its results, and the ConfigMap `<run>-state`.

The operator creates these objects; the conductor may only get and patch them, by name.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from plimsoll.api.errors import SpecError, problems_of
from plimsoll.api.line import Line
from plimsoll.api.names import API_VERSION, RESULT_KIND, RunPhase
from plimsoll.api.result import Matrix, ResultStatus, Summary, Trial
from plimsoll.api.status import STATE_FILE, RunState, TrialKey
from plimsoll.conductor.reporting import result_display
from plimsoll.kube.errors import NotFoundError, persist
from plimsoll.kube.port import Kind, Kube, Object
from plimsoll.lifecycle import naming
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import most_trials
from plimsoll.tools.registry import TOOLS

RESULT = Kind(api_version=API_VERSION, kind=RESULT_KIND)
CONFIG_MAP = Kind(api_version="v1", kind="ConfigMap")

RETRY_SECONDS = 60.0
"""A longer outage of the API server ends the conductor; its successor continues from what is recorded."""

_CONCURRENCY = 8
_ENDS = {RunPhase.COMPLETE, RunPhase.FAILED, RunPhase.INTERRUPTED}
_TRIALS = TypeAdapter(tuple[Trial, ...])
_SUMMARY = TypeAdapter(Summary)
_LINE = TypeAdapter(Line)

M = TypeVar("M")


class KubeSink:
    """Stores state and results in the run's objects. Every method raises ApiError after `retry_seconds` of retries."""

    progress_seconds = 3.0
    # Everybody who watches the run reads every write.
    pulse_seconds = 15.0

    def __init__(self, kube: Kube, plan: Plan, namespace: str, *, retry_seconds: float = RETRY_SECONDS) -> None:
        self._kube = kube
        self._plan = plan
        self._namespace = namespace
        self._retry_seconds = retry_seconds
        self._state: RunState | None = None
        self._written: RunState | None = None
        self._writing: asyncio.Task[None] | None = None

    async def load(self) -> tuple[Mapping[str, Sequence[Trial]], RunState | None]:
        """Load trials and state; see `Sink.load`.

        Raises:
            NotFoundError: an object does not exist or belongs to another run.
            SpecError: an object's content is invalid; the message names the object.

        """
        name = naming.state_config_map(self._plan.run.name)
        text = (await self._get(CONFIG_MAP, name)).get("data", {}).get(STATE_FILE)
        try:
            state = RunState.model_validate_json(text) if text else None
        except ValidationError as error:
            raise SpecError(problems_of(error, prefix=[f"ConfigMap {name}", STATE_FILE])) from error
        trials = await self._parts([point.name for point in self._plan.points], "trials", _TRIALS)
        return {point: of_point or () for point, of_point in trials.items()}, state

    async def load_matrices(self) -> Mapping[str, Matrix]:
        """Load the matrices of the points that have one; see `load` for errors."""
        matrices: dict[str, Matrix] = {}
        for point in (point.name for point in self._plan.points if TOOLS[point.tool].quantities.cells):
            summary = await self._part(point, "summary", _SUMMARY)
            if summary is not None and summary.matrix is not None:
                matrices[point] = summary.matrix
        return matrices

    async def load_ended(self) -> Collection[str]:
        """Load the points whose search for the line ended; see `load` for errors."""
        searched = [point.name for point in self._plan.points if point.line is not None]
        lines = await self._parts(searched, "line", _LINE)
        return {point for point, line in lines.items() if line is not None and line.ending is not None}

    async def publish(self, state: RunState) -> None:
        """Store the state; see `Sink.publish`.

        Waits for the write only if a successor depends on it: a change of the phase or of the trial in flight, or the
        end. Progress is written in the background, so that a slow API server does not delay a trial.
        """
        before, self._state = self._state, state
        if self._writing is None or self._writing.done():
            if self._writing is not None:
                self._writing.result()
            self._writing = asyncio.create_task(self._write())
        if before is None or state.phase in _ENDS or _resumed_from(before) != _resumed_from(state):
            await self._writing

    async def record(self, point: str, status: ResultStatus) -> None:
        """Store the status of a point's result; see `Sink.record`."""
        # Name every field, so that the patch removes those without a value.
        fields = (field.serialization_alias or name for name, field in ResultStatus.model_fields.items())
        document: dict[str, Any] = dict.fromkeys(fields) | status.model_dump(mode="json", exclude_none=True)
        planned = most_trials(self._plan, self._plan.point(point))
        display = result_display(status, planned, self._plan.point(point).line)
        document["display"] = display.model_dump(mode="json", exclude_none=True)
        name = naming.result(self._plan.run.name, point)
        ask = partial(self._kube.patch_status, RESULT, name, self._namespace, document)
        await persist(ask, seconds=self._retry_seconds)

    async def _write(self) -> None:
        """Write until the newest state is stored."""
        while self._written is not self._state and self._state is not None:
            state = self._state
            patch = {"data": {STATE_FILE: state.model_dump_json()}}
            name = naming.state_config_map(self._plan.run.name)
            ask = partial(self._kube.patch, CONFIG_MAP, name, self._namespace, patch)
            await persist(ask, seconds=self._retry_seconds)
            self._written = state

    async def _parts(self, points: Sequence[str], field: str, model: TypeAdapter[M]) -> dict[str, M | None]:
        reading = asyncio.Semaphore(_CONCURRENCY)

        async def read(point: str) -> M | None:
            async with reading:
                return await self._part(point, field, model)

        return dict(zip(points, await asyncio.gather(*map(read, points)), strict=True))

    async def _part(self, point: str, field: str, model: TypeAdapter[M]) -> M | None:
        """Return a field of the status of a point's result; None if it has none."""
        name = naming.result(self._plan.run.name, point)
        result = await self._get(RESULT, name)
        if result["spec"]["runUid"] != self._plan.run.uid:
            raise NotFoundError(f"get {RESULT_KIND} {self._namespace}/{name}", "it belongs to another run of that name")
        try:
            value = result.get("status", {}).get(field)
            return None if value is None else model.validate_python(value)
        except ValidationError as error:
            raise SpecError(problems_of(error, prefix=[f"{RESULT_KIND} {name}", "status", field])) from error

    async def _get(self, kind: Kind, name: str) -> Object:
        obj = await persist(partial(self._kube.get, kind, name, self._namespace), seconds=self._retry_seconds)
        if obj is None:
            asked = f"get {kind.kind} {self._namespace}/{name}"
            raise NotFoundError(asked, "it does not exist; the operator creates it before the conductor")
        return obj


def _resumed_from(state: RunState) -> tuple[RunPhase, TrialKey | None]:
    return state.phase, state.in_flight
