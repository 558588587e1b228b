"""The sink of a run in a cluster: the status of its results, and the ConfigMap `<run>-state`.

The operator creates these objects; the conductor may only get and patch them, by name. Users may edit ConfigMaps, but
not the status of results: what shows that an attempt has begun is in the result to which it belongs.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic import ValidationError

from plimsoll.api.errors import SpecError, problems_of
from plimsoll.api.names import API_VERSION, RESULT_KIND, RunPhase
from plimsoll.api.result import InFlight, ResultStatus
from plimsoll.api.status import STATE_FILE, RunState, TrialKey
from plimsoll.conductor.reporting import result_display
from plimsoll.conductor.sink import Stored
from plimsoll.kube.port import Kind, Kube, NotFoundError, Object, persist
from plimsoll.lifecycle import naming
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import most_trials

RESULT = Kind(api_version=API_VERSION, kind=RESULT_KIND)
CONFIG_MAP = Kind(api_version="v1", kind="ConfigMap")

RETRY_SECONDS = 60.0
"""A longer outage of the API server ends the conductor; its successor continues from what is recorded."""

_ENDS = {RunPhase.COMPLETE, RunPhase.FAILED, RunPhase.INTERRUPTED}


class KubeSink:
    """Stores state and results in the run's objects. Every method raises ApiError after `retry_seconds` of retries."""

    progress_seconds = 3.0
    # Every watcher of the run receives every write.
    pulse_seconds = 15.0

    def __init__(self, kube: Kube, plan: Plan, namespace: str, *, retry_seconds: float = RETRY_SECONDS) -> None:
        self._kube = kube
        self._plan = plan
        self._namespace = namespace
        self._retry_seconds = retry_seconds
        self._noted: tuple[str, InFlight] | None = None  # the point of the last attempt that a result shows in flight
        self._state: RunState | None = None
        self._written: RunState | None = None
        self._writing: asyncio.Task[None] | None = None

    async def load(self) -> Stored:
        """Load results and state; see `Sink.load`.

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
        points, reading = [point.name for point in self._plan.points], asyncio.Semaphore(8)
        results = await asyncio.gather(*(self._status(point, reading) for point in points))
        by_point = dict(zip(points, results, strict=True))
        return Stored.of(by_point, _with_attempt_in_flight(state, by_point))

    async def publish(self, state: RunState) -> None:
        """Store the state; see `Sink.publish`.

        Waits for the write only if a successor depends on it: a change of the phase, of the attempt in flight or of its
        T0, or the end. Progress is written in the background, so that a slow API server does not delay a trial.
        """
        await self._note_attempt(state)
        before, self._state = self._state, state
        if self._writing is None or self._writing.done():
            if self._writing is not None:
                self._writing.result()
            self._writing = asyncio.create_task(self._write())
        if before is None or state.phase in _ENDS or before.phase is not state.phase:
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

    async def _note_attempt(self, state: RunState) -> None:
        """Store the attempt in flight with its T0 in its result; recording the attempt removes that again."""
        key = state.in_flight
        if key is None:
            return
        attempt = InFlight(
            pass_number=key.pass_number,
            attempt=key.attempt,
            started_at=state.in_flight_since,
            t0_nanoseconds=state.in_flight_t0_nanoseconds or None,
        )
        if self._noted != (key.point, attempt):
            note = {"inFlight": attempt.model_dump(mode="json", exclude_none=True)}
            name = naming.result(self._plan.run.name, key.point)
            ask = partial(self._kube.patch_status, RESULT, name, self._namespace, note)
            await persist(ask, seconds=self._retry_seconds)
            self._noted = key.point, attempt

    async def _write(self) -> None:
        """Write until the newest state is stored."""
        while self._written is not self._state and self._state is not None:
            state = self._state
            patch = {"data": {STATE_FILE: state.model_dump_json()}}
            name = naming.state_config_map(self._plan.run.name)
            ask = partial(self._kube.patch, CONFIG_MAP, name, self._namespace, patch)
            await persist(ask, seconds=self._retry_seconds)
            self._written = state

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
            return ResultStatus.model_validate(fields)
        except ValidationError as error:
            raise SpecError(problems_of(error, prefix=[f"{RESULT_KIND} {name}", "status"])) from error

    async def _get(self, kind: Kind, name: str) -> Object:
        obj = await persist(partial(self._kube.get, kind, name, self._namespace), seconds=self._retry_seconds)
        if obj is None:
            asked = f"get {kind.kind} {self._namespace}/{name}"
            raise NotFoundError(asked, "it does not exist; the operator creates it before the conductor")
        return obj


def _with_attempt_in_flight(state: RunState | None, results: Mapping[str, ResultStatus]) -> RunState | None:
    """Return the state with the attempt in flight that the results show, whatever the state says of it."""
    for point, status in results.items():
        if (attempt := status.in_flight) is not None:
            update = {
                "in_flight": TrialKey(point=point, pass_number=attempt.pass_number, attempt=attempt.attempt),
                "in_flight_since": attempt.started_at,
                "in_flight_t0_nanoseconds": attempt.t0_nanoseconds or 0,
            }
            return (state or RunState()).model_copy(update=update)
    return state and state.model_copy(update={"in_flight": None})
