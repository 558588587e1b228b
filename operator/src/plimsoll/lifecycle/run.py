"""A `BenchmarkRun` as the operator sees it: identity, specification, and what it said of it before."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from plimsoll.api.errors import SpecError
from plimsoll.api.names import API_VERSION, RUN_KIND, ConditionType
from plimsoll.api.run import BenchmarkRun, decode_run
from plimsoll.api.status import Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run.

    Attributes:
        spec_problem: why the specification cannot be used; empty if it can.
        deleted: when its deletion was asked for; None if it was not.
        document: the specification; None if it cannot be used.
        written: the specification as it stands there, of which this version may understand but a part.
        status: what was said of it, as it stands there.
        conditions: those of the status, by type.

    """

    name: str
    namespace: str
    uid: str
    generation: int
    created: datetime
    deleted: datetime | None
    document: BenchmarkRun | None
    written: Mapping[str, Any]
    spec_problem: str
    status: Mapping[str, Any]
    conditions: Mapping[ConditionType, Condition]

    @property
    def is_suspended(self) -> bool:
        """Tell whether the run is to rest."""
        return self.written.get("suspend") is True

    @property
    def start_time(self) -> datetime | None:
        """Return when the run was admitted; None if it was not yet."""
        return _time(self.status.get("startTime"))

    @property
    def end_time(self) -> datetime | None:
        """Return since when nothing more is made for the run: since its end, or its deletion; None if it goes on."""
        times = [time for time in (self.deleted, _time(self.status.get("completionTime"))) if time is not None]
        return max(times, default=None)

    @property
    def owner_reference(self) -> dict[str, Any]:
        """Return the reference that makes an object go when the run goes."""
        return {
            "apiVersion": API_VERSION,
            "kind": RUN_KIND,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }


def run_of(body: Mapping[str, Any]) -> Run:
    """Read a run as the API server stores it. A specification that cannot be used does not raise, but is told."""
    metadata = body["metadata"]
    document, problem = None, ""
    try:
        document = decode_run(dict(body))
    except SpecError as error:
        problem = str(error)
    return Run(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        generation=metadata.get("generation", 1),
        created=datetime.fromisoformat(metadata["creationTimestamp"]),
        deleted=_time(metadata.get("deletionTimestamp")),
        document=document,
        written=body.get("spec") or {},
        spec_problem=problem,
        status=body.get("status") or {},
        conditions={condition.type: condition for condition in _conditions(body.get("status") or {})},
    )


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _conditions(status: Mapping[str, Any]) -> Iterator[Condition]:
    """Yield the conditions that can be read; one that a later version wrote counts as one that was not said."""
    for entry in status.get("conditions", []):
        with suppress(ValidationError):
            yield Condition.model_validate(entry)
