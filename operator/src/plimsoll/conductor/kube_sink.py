"""The sink of a run in a cluster: its results' status, and the ConfigMap `<run>-state`.

All of these objects are the operator's making. The conductor may only get and patch them, by name.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pydantic import TypeAdapter, ValidationError

from plimsoll.api.errors import SpecError, problems_of
from plimsoll.api.names import API_VERSION, RESULT_KIND, RunPhase
from plimsoll.api.result import ResultStatus, Trial
from plimsoll.api.state import RunState, TrialKey
from plimsoll.conductor.display import result_display
from plimsoll.conductor.sink import STATE_FILE
from plimsoll.kube.errors import NotFoundError
from plimsoll.kube.port import Kind, Kube, Object
from plimsoll.kube.retry import persist
from plimsoll.lifecycle import naming
from plimsoll.plan.document import Plan

RESULT = Kind(api_version=API_VERSION, kind=RESULT_KIND)
CONFIG_MAP = Kind(api_version="v1", kind="ConfigMap")

RETRY_SECONDS = 60.0
"""An API server that is away longer ends the conductor; another process goes on from what is recorded."""

_CONCURRENCY = 8
_ENDS = {RunPhase.COMPLETE, RunPhase.FAILED, RunPhase.INTERRUPTED}
_TRIALS = TypeAdapter(tuple[Trial, ...])


class KubeSink:
    """Keeps what a conductor knows in its run's objects. ApiError after `retry_seconds` in vain, from every method."""

    progress_seconds = 3.0
    # Every write wakes up the operator.
    pulse_seconds = 15.0

    def __init__(self, kube: Kube, plan: Plan, namespace: str, *, retry_seconds: float = RETRY_SECONDS) -> None:
        """Use the objects of the plan's run."""
        self._kube = kube
        self._plan = plan
        self._namespace = namespace
        self._retry_seconds = retry_seconds
        self._state: RunState | None = None
        self._written: RunState | None = None
        self._writing: asyncio.Task[None] | None = None

    async def load(self) -> tuple[Mapping[str, Sequence[Trial]], RunState | None]:
        """Read back what was kept; see `Sink.load`.

        Raises:
            NotFoundError: if the operator has not made an object, or it is another run's.
            SpecError: if what an object holds cannot be read; saying which object.

        """
        reading = asyncio.Semaphore(_CONCURRENCY)

        async def read(point: str) -> tuple[Trial, ...]:
            async with reading:
                return await self._trials(point)

        names = [point.name for point in self._plan.points]
        state = await self._load_state()
        trials = await asyncio.gather(*map(read, names))
        return dict(zip(names, trials, strict=True)), state

    async def publish(self, state: RunState) -> None:
        """Write the state; see `Sink.publish`.

        Returns when it is kept if somebody depends on it: with another phase, another trial in flight, or at the end.
        Mere progress is written in the background, the latest of it: an API server that is slow while storage is under
        load must not hold up a trial.
        """
        before, self._state = self._state, state
        if self._writing is None or self._writing.done():
            if self._writing is not None:
                self._writing.result()
            self._writing = asyncio.create_task(self._write())
        if before is None or state.phase in _ENDS or _resumed_from(before) != _resumed_from(state):
            await self._writing

    async def record(self, point: str, status: ResultStatus) -> None:
        """Write the status of a point's result; see `Sink.record`."""
        # Every field, so that what is not known any more goes away.
        document: dict[str, Any] = {**dict.fromkeys(_status_fields()), **_dumped(status)}
        document["display"] = result_display(status, self._plan.repetitions).model_dump(mode="json", exclude_none=True)
        name = naming.result(self._plan.run.name, point)
        ask = partial(self._kube.patch_status, RESULT, name, self._namespace, document)
        await persist(ask, seconds=self._retry_seconds)

    async def _write(self) -> None:
        """Write the newest state until it is the one that is written."""
        while self._written is not self._state and self._state is not None:
            state = self._state
            patch = {"data": {STATE_FILE: state.model_dump_json()}}
            name = naming.state_config_map(self._plan.run.name)
            ask = partial(self._kube.patch, CONFIG_MAP, name, self._namespace, patch)
            await persist(ask, seconds=self._retry_seconds)
            self._written = state

    async def _load_state(self) -> RunState | None:
        name = naming.state_config_map(self._plan.run.name)
        text = (await self._get(CONFIG_MAP, name)).get("data", {}).get(STATE_FILE)
        try:
            return RunState.model_validate_json(text) if text else None
        except ValidationError as error:
            raise SpecError(problems_of(error, prefix=[f"ConfigMap {name}", STATE_FILE])) from error

    async def _trials(self, point: str) -> tuple[Trial, ...]:
        name = naming.result(self._plan.run.name, point)
        result = await self._get(RESULT, name)
        if result["spec"]["runUid"] != self._plan.run.uid:
            raise NotFoundError(f"get {RESULT_KIND} {self._namespace}/{name}", "it is of another run of that name")
        try:
            return _TRIALS.validate_python(result.get("status", {}).get("trials", ()))
        except ValidationError as error:
            raise SpecError(problems_of(error, prefix=[f"{RESULT_KIND} {name}", "status", "trials"])) from error

    async def _get(self, kind: Kind, name: str) -> Object:
        found = await persist(partial(self._kube.get, kind, name, self._namespace), seconds=self._retry_seconds)
        if found is None:
            asked = f"get {kind.kind} {self._namespace}/{name}"
            raise NotFoundError(asked, "it is not there; the operator makes it before the conductor")
        return found


def _resumed_from(state: RunState) -> tuple[RunPhase, TrialKey | None]:
    """Return what of a state a later conductor cannot do without."""
    return state.phase, state.in_flight


def _status_fields() -> list[str]:
    return [field.serialization_alias or name for name, field in ResultStatus.model_fields.items()]


def _dumped(status: ResultStatus) -> dict[str, Any]:
    return status.model_dump(mode="json", exclude_none=True)
