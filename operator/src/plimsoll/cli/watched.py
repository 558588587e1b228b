"""What is seen of a run in one look at a cluster.

The documents are read leniently: a conductor or an operator of another version may say more than this one knows.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from plimsoll.api.model import Model
from plimsoll.api.names import ConditionStatus, ConditionType, RunPhase
from plimsoll.cli.source import RESULT
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render.common import STATE_FILE

if TYPE_CHECKING:
    from plimsoll.kube.client import AioKube

_BAD_IF_TRUE = {ConditionType.RECONCILING, ConditionType.STALLED}
_READY = {ConditionType.STORAGE_READY, ConditionType.CLIENTS_READY}
_MEASURING = "Measuring"

D = TypeVar("D", bound="_Lenient")


class _Lenient(Model):
    """A part of a document, of which the rest does not matter."""

    model_config = Model.model_config | {"extra": "ignore"}


class SeenCondition(_Lenient):
    """A condition of the run."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


class SeenDisplay(_Lenient):
    """What the operator says for people."""

    progress: str = ""
    status: str = ""
    message: str = ""


class SeenPoints(_Lenient):
    """How many points there are, are measured, and are not to be believed."""

    total: int = 0
    completed: int = 0
    invalid: int = 0


class SeenStatus(_Lenient):
    """The run's status."""

    conditions: tuple[SeenCondition, ...] = ()
    estimated_completion_time: datetime | None = None
    points: SeenPoints = SeenPoints()
    display: SeenDisplay = SeenDisplay()


class _Key(_Lenient):
    point: str
    pass_number: int
    attempt: int


class SeenTrial(_Lenient):
    """The trial under way; Unix seconds by the conductor's clock."""

    key: _Key
    label: str = ""
    clients: tuple[int, ...] = ()
    starts_at: float
    ends_at: float


class SeenRate(_Lenient):
    """What one operation does at this moment."""

    operation: str
    iops: float
    bytes_per_second: float


class SeenLive(_Lenient):
    """The sum of what some clients' tools say."""

    clients: int = 0
    rates: tuple[SeenRate, ...] = ()


class SeenPrefill(_Lenient):
    """How much is written, bytes over all clients."""

    done_bytes: int = 0
    total_bytes: int = 0


class SeenState(_Lenient):
    """What the conductor says it is doing."""

    phase: str = ""
    message: str = ""
    prefill: SeenPrefill = SeenPrefill()
    current: SeenTrial | None = None
    live: SeenLive | None = None
    trials_done: int = 0
    trials_total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPoint:
    """A row of `kubectl get benchmarkresults`, as text."""

    name: str
    label: str
    clients: str
    operation: str
    iops: str
    p99: str
    trials: str
    verdict: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A run, looked at.

    Attributes:
        state: None if the conductor has not said anything, or it may not be read.
        is_going: the run is being deleted.

    """

    status: SeenStatus
    state: SeenState | None
    points: Sequence[SeenPoint]
    is_going: bool = False

    @property
    def ending(self) -> SeenCondition | None:
        """Return how the run ended; None while it goes on."""
        succeeded = self.condition(ConditionType.SUCCEEDED)
        return succeeded if succeeded is not None and succeeded.status != ConditionStatus.UNKNOWN else None

    @property
    def trials(self) -> tuple[int, int]:
        """Return how many trials are done, of how many."""
        if self.state is not None and self.state.trials_total:
            return self.state.trials_done, self.state.trials_total
        done, _, total = self.status.display.progress.partition("/")
        return (int(done), int(total)) if done.isdecimal() and total.isdecimal() else (0, 0)

    @property
    def trial(self) -> SeenTrial | None:
        """Return the trial under way."""
        is_measuring = self.state is not None and self.state.phase == RunPhase.MEASURING
        return self.state.current if self.state is not None and is_measuring else None

    @property
    def problems(self) -> Sequence[str]:
        """Return what else keeps the run from getting on, beside what its display says.

        That something is not ready is news only while the run is measured: before that, it is what is waited for.
        """
        if self.ending is not None:
            return []
        display = self.status.display
        matters = _BAD_IF_TRUE | _READY if display.status == _MEASURING else _BAD_IF_TRUE
        said = [display.message]
        for one in self.status.conditions:
            is_fine = one.status == (ConditionStatus.FALSE if one.type in _BAD_IF_TRUE else ConditionStatus.TRUE)
            if one.type in matters and not is_fine and not any(one.message in text for text in said):
                said.append(one.message)
        return said[1:]

    @property
    def remains(self) -> str:
        """Return what the run has made and is still there, in words; empty if it is clean."""
        clean = self.condition(ConditionType.CLEANED_UP)
        return clean.message if clean is not None and clean.status != ConditionStatus.TRUE else ""

    def condition(self, kind: ConditionType) -> SeenCondition | None:
        """Return the condition of a type."""
        return next((one for one in self.status.conditions if one.type == kind), None)


async def rows_of(kube: "AioKube", namespace: str, run: Mapping[str, Any]) -> Sequence[SeenPoint]:
    """Return the rows of a run's results, in the order of their names."""
    name, labels = run["metadata"]["name"], {naming.LABEL_RUN_UID: run["metadata"]["uid"]}
    rows = await kube.table(RESULT, namespace=namespace, labels=labels)
    return sorted((_point(name, row) for row in rows), key=lambda point: point.name)


def _point(run: str, row: Mapping[str, Any]) -> SeenPoint:
    def cell(column: str) -> str:
        value = row.get(column)
        return "" if value is None else str(value)

    return SeenPoint(
        name=cell("Name").removeprefix(f"{run}-"),
        label=cell("Point"),
        clients=cell("Clients"),
        operation=cell("Op"),
        iops=cell("IOPS"),
        p99=cell("P99"),
        trials=cell("Trials"),
        verdict=cell("Verdict"),
        reason=cell("Reason"),
    )


def run_seen(run: Mapping[str, Any], state: SeenState | None, points: Sequence[SeenPoint]) -> Seen:
    """Put together a run, what its conductor says, and the rows of its results."""
    metadata = run["metadata"]
    return Seen(
        status=_read(SeenStatus, run.get("status") or {}) or SeenStatus(),
        state=state,
        points=points,
        is_going="deletionTimestamp" in metadata,
    )


def state_seen(config_map: Mapping[str, Any], uid: str) -> SeenState | None:
    """Read what a conductor says; None if it is that of another run, or says nothing that can be read."""
    if config_map["metadata"].get("labels", {}).get(naming.LABEL_RUN_UID) != uid:
        return None
    return _read(SeenState, _json(config_map.get("data", {}).get(STATE_FILE, "")))


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _read(model: type[D], document: object) -> D | None:
    try:
        return model.model_validate(document)
    except ValidationError:
        return None
