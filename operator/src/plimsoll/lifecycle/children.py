"""A run's objects, reduced to the facts that decisions need."""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from plimsoll.lifecycle import naming

Object = Mapping[str, Any]

_STARTED = {"running", "terminated"}
_WAITS = frozenset({"ExternalProvisioning"})
"""Reasons of Normal events: a missing CSI driver causes no warning. Source: Kubernetes' volume controller."""

_NOT_A_PROBLEM = {"ContainerCreating", "PodInitializing"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """An object's identity: what it takes to delete exactly that one. `namespace` is empty if it has none."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    deleting: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFact:
    """A Job.

    Attributes:
        deleted: when its deletion was requested; None if it was not.
        client: None for the conductor's.
        failure: why it failed; empty if it did not.

    """

    child: Child
    created: datetime
    deleted: datetime | None
    client: int | None
    attempt: int
    complete: bool
    failure: str

    @property
    def is_concluded(self) -> bool:
        """Whether it will create no further pod."""
        return self.complete or bool(self.failure) or self.child.deleting


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFact:
    """A pod.

    Attributes:
        changed: when its container started or ended, by the API server's clock; None before. The kubelet reports times
            of its node's clock, which may be wrong.
        gone_by: deletion deadline: its deletion plus the grace period; None if it is not being deleted.
        problem: why its containers are not running: `Unschedulable: ...`, `ImagePullBackOff: ...`; empty if they are.
        exit_message: exit code and termination message of a container that failed; empty otherwise. The pod's phase can
            lag behind a container that succeeded.
        exit_code: of a container that failed; 0 otherwise.

    """

    child: Child
    client: int | None
    attempt: int
    node: str
    phase: str
    created: datetime
    changed: datetime | None
    gone_by: datetime | None
    problem: str
    exit_message: str
    exit_code: int = 0

    @property
    def is_running(self) -> bool:
        """Whether it is running and not being deleted."""
        return self.phase == "Running" and not self.child.deleting


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimFact:
    """A client's PVC.

    Attributes:
        finalizers: what delays its deletion; empty unless it is being deleted.

    """

    child: Child
    client: int
    phase: str
    finalizers: tuple[str, ...] = ()


def child_of(obj: Object) -> Child:
    """Return an object's identity."""
    metadata = obj["metadata"]
    return Child(
        api_version=obj["apiVersion"],
        kind=obj["kind"],
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata["uid"],
        deleting="deletionTimestamp" in metadata,
    )


def job_fact(obj: Object) -> JobFact:
    """Read a Job."""
    conditions = {c["type"]: c for c in obj.get("status", {}).get("conditions", []) if c["status"] == "True"}
    failed = conditions.get("Failed") or conditions.get("FailureTarget")
    return JobFact(
        child=child_of(obj),
        created=datetime.fromisoformat(obj["metadata"]["creationTimestamp"]),
        deleted=_time(obj["metadata"].get("deletionTimestamp")),
        client=_number(obj, naming.LABEL_CLIENT),
        attempt=_number(obj, naming.LABEL_ATTEMPT) or 0,
        complete="Complete" in conditions,
        failure=f"{failed.get('reason', 'Failed')}: {failed.get('message', '')}" if failed else "",
    )


def pod_fact(obj: Object) -> PodFact:
    """Read a pod."""
    status = obj.get("status", {})
    states = [container.get("state", {}) for container in status.get("containerStatuses", [])]
    return PodFact(
        child=child_of(obj),
        client=_number(obj, naming.LABEL_CLIENT),
        attempt=_number(obj, naming.LABEL_ATTEMPT) or 0,
        node=obj.get("spec", {}).get("nodeName", ""),
        phase=status.get("phase", "Pending"),
        created=datetime.fromisoformat(obj["metadata"]["creationTimestamp"]),
        changed=_status_written(obj) if any(state.keys() & _STARTED for state in states) else None,
        gone_by=_time(obj["metadata"].get("deletionTimestamp")),
        problem=_problem(status),
        exit_message=_exit_message(status),
        exit_code=next((int(ended["exitCode"]) for ended in _failures(status)), 0),
    )


def claim_fact(obj: Object) -> ClaimFact:
    """Read a PVC; one without a client's label has the client -1."""
    client = _number(obj, naming.LABEL_CLIENT)
    child = child_of(obj)
    return ClaimFact(
        child=child,
        client=-1 if client is None else client,
        phase=obj.get("status", {}).get("phase", "Pending"),
        finalizers=tuple(obj["metadata"].get("finalizers") or ()) if child.deleting else (),
    )


def label(obj: Object, name: str) -> str:
    """Return the value of a label; empty if it is missing."""
    return str((obj["metadata"].get("labels") or {}).get(name, ""))


def warnings_on(objects: Iterable[Object], events: Iterable[Object]) -> dict[str, str]:
    """Return the newest warning about each of these objects, as `warnings_about` does."""
    return warnings_about({obj["metadata"]["uid"] for obj in objects}, events)


def warnings_about(uids: AbstractSet[str], events: Iterable[Object]) -> dict[str, str]:
    """Return the newest warning about each object with one of these UIDs, by UID: `ProvisioningFailed: ...`.

    Without a warning, an event that names what the object waits for counts.
    """
    newest: dict[str, tuple[bool, str, str]] = {}
    for event in events:
        uid, is_warning = event.get("involvedObject", {}).get("uid", ""), event.get("type") == "Warning"
        if uid in uids and (is_warning or event.get("reason") in _WAITS):
            when = event.get("lastTimestamp") or event.get("eventTime") or ""
            found = (is_warning, when, f"{event.get('reason')}: {event.get('message')}")
            newest[uid] = max(newest.get(uid, found), found)
    return {uid: message for uid, (_, _, message) in newest.items()}


def _number(obj: Object, name: str) -> int | None:
    text = label(obj, name)
    return int(text) if text.isdecimal() else None


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _status_written(obj: Object) -> datetime | None:
    """Return when the status was last written, according to the managed fields."""
    entries = obj["metadata"].get("managedFields") or ()
    times = (entry.get("time") for entry in entries if entry.get("subresource") == "status")
    return max((datetime.fromisoformat(text) for text in times if text), default=None)


def _problem(status: Object) -> str:
    for condition in status.get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return f"{condition.get('reason', 'Unschedulable')}: {condition.get('message', '')}"
    for container in status.get("containerStatuses", []):
        waiting = container.get("state", {}).get("waiting")
        if waiting and waiting.get("reason") not in _NOT_A_PROBLEM:
            return f"{waiting.get('reason', 'Waiting')}: {waiting.get('message', '')}"
    return ""


def _exit_message(status: Object) -> str:
    for ended in _failures(status):
        message = (ended.get("message") or ended.get("reason") or "").strip()
        return f"exit code {ended['exitCode']}: {message}"
    return str(status.get("reason", ""))


def _failures(status: Object) -> Iterator[Object]:
    """Yield how each container that failed ended."""
    for container in status.get("containerStatuses", []):
        ended = container.get("state", {}).get("terminated")
        if ended and ended.get("exitCode"):
            yield ended
