"""A `BenchmarkRun` as the operator sees it: identity, specification, and what it said of it before."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from plimsoll.api.errors import SpecError
from plimsoll.api.names import API_VERSION, RUN_KIND
from plimsoll.api.run import BenchmarkRun, decode_run


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run.

    Attributes:
        spec_problem: why the specification cannot be used; empty if it can.
        document: the specification; None if it cannot be used.
        conditions: what the status says, by type.
        start_time: when it was admitted, from the status; None before.

    """

    name: str
    namespace: str
    uid: str
    generation: int
    created: datetime
    deleting: bool
    document: BenchmarkRun | None
    spec_problem: str
    status: Mapping[str, Any]

    @property
    def conditions(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the status's conditions by type."""
        return {condition["type"]: condition for condition in self.status.get("conditions", [])}

    @property
    def is_suspended(self) -> bool:
        """Tell whether the run is to rest."""
        return self.document is not None and self.document.spec.suspend

    @property
    def start_time(self) -> datetime | None:
        """Return when the run was admitted; None if it was not yet."""
        text = self.status.get("startTime")
        return datetime.fromisoformat(text) if text else None

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
        deleting="deletionTimestamp" in metadata,
        document=document,
        spec_problem=problem,
        status=body.get("status") or {},
    )
