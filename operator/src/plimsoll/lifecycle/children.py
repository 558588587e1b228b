"""A run's objects, reduced to the facts that decisions need."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from plimsoll.api.environment import Environment
from plimsoll.api.line import Line
from plimsoll.api.names import RESULT_KIND, RUN_KIND, Outcome, Verdict
from plimsoll.api.result import ResultStatus
from plimsoll.api.status import HeadlineLatency, moment_of
from plimsoll.lifecycle import naming
from plimsoll.measure.checks.judge import reasons_of, remedy_of
from plimsoll.plan.document import base_name, file_system_name

Object = Mapping[str, Any]

_WAITS = frozenset({"ExternalProvisioning"})  # Normal events about a missing CSI driver (Kubernetes' volume controller)
_SHOWN = frozenset({"p50", "p99"})  # percentiles

_MAX_WARNING = 2000  # characters of a warning that are kept: users can create events
Warnings = Mapping[str, tuple[bool, str, str]]
"""UID of an object -> the newest event about it: whether it is a warning, when it was last seen, and its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """What identifies an object for its deletion. `namespace` is empty for a cluster-scoped one."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    deleting: bool = False

    @property
    def place(self) -> str:
        """Return its name in its namespace: `bench/demo`."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFact:
    """A Job."""

    child: Child
    created: datetime
    deleted: datetime | None  # when its deletion was requested; None if it was not
    client: int | None  # None for the conductor's
    attempt: int
    complete: bool
    failure: str  # why it failed; empty if it did not
    own: bool = True  # whether it belongs to the run whose UID it carries


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFact:
    """A pod."""

    child: Child
    client: int | None
    attempt: int
    node: str
    phase: str  # Succeeded or Failed once its container has ended, even if others, such as sidecars, still run
    created: datetime
    # When its container started or ended, by the API server's clock, because the node's may be wrong; None before.
    changed: datetime | None
    gone_by: datetime | None  # deletion deadline: its deletion plus the grace period; None if it is not being deleted
    problem: str  # why its container does not start: `Unschedulable: ...`, `ImagePullBackOff: ...`; empty otherwise
    exit_message: str  # exit code and termination message of the container that failed; empty otherwise
    exit_code: int = 0  # of a container that failed; 0 otherwise
    is_held: bool = False  # whether its container has ended, and another one, such as a sidecar, keeps it running
    own: bool = True  # whether it belongs to the run whose UID it carries
    jobs: frozenset[str] = frozenset()  # UIDs of the Jobs that own it; they may be gone

    @property
    def is_running(self) -> bool:
        return self.phase == "Running" and not self.child.deleting


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimFact:
    """A client's PVC."""

    child: Child
    client: int
    phase: str
    finalizers: tuple[str, ...] = ()  # what delays its deletion; empty unless it is being deleted
    own: bool = True  # whether it belongs to the run whose UID it carries


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """A run's Jobs, pods and PVCs, as observed by one look."""

    jobs: Sequence[JobFact] = ()
    pods: Sequence[PodFact] = ()
    claims: Sequence[ClaimFact] = ()

    @property
    def uids(self) -> frozenset[str]:
        facts: list[JobFact | ClaimFact | PodFact] = [*self.jobs, *self.claims, *self.own_pods]
        return frozenset(fact.child.uid for fact in facts if fact.own)

    @property
    def own_pods(self) -> tuple[PodFact, ...]:
        """Return the pods of the run's Jobs: anybody who may create pods can copy their labels."""
        run_jobs = {job.child.uid for job in self.jobs if job.own}
        return tuple(pod for pod in self.pods if pod.own and pod.jobs & run_jobs)

    @property
    def orphans(self) -> tuple[PodFact, ...]:
        """Return the pods whose Job is gone, which may have been one of the run's."""
        jobs = {job.child.uid for job in self.jobs}
        return tuple(pod for pod in self.pods if pod.own and not pod.jobs & jobs)

    @property
    def waiting_kinds(self) -> Sequence[str]:
        """Return the kinds of those that wait for something, which events about them explain."""
        owners = {uid for pod in self.pods if pod.phase in {"Pending", "Running"} for uid in pod.jobs}
        jobs = [job for job in self.jobs if job.child.uid not in owners]
        waiting = {
            "PersistentVolumeClaim": any(claim.phase != "Bound" for claim in self.claims),
            # A Job without a pod that may still create one.
            "Job": any(not (job.complete or job.failure or job.child.deleting) for job in jobs),
            # A pod with a node whose containers are not created yet: its volumes are mounted before.
            "Pod": any(pod.phase == "Pending" and pod.node for pod in self.pods),
        }
        return [kind for kind, waits in waiting.items() if waits]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFact:
    """When an attempt took place, by the conductor's clock, and how it ended."""

    epoch: str
    outcome: Outcome
    started: datetime
    finished: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The digest of a result's status."""

    final: bool = False
    verdict: Verdict | None = None
    reason: str = ""  # the first reason of its verdict; empty if it is Valid
    remedy: str = ""  # what to do about it
    operations: tuple[Mapping[str, Any], ...] = ()  # of each operation the fields of a `Headline`
    line: Line | None = None  # of a search, as far as it is known
    trials: tuple[TrialFact, ...] = ()
    environment: Environment = field(default_factory=Environment)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFact:
    """A result."""

    name: str
    run_uid: str  # of the run that its specification names; users may change its labels
    point: str
    departing: bool  # whether it is deleted with a run, or is being deleted
    measured: Measured | None  # None if this version cannot read its status, or it is another run's


def child_of(obj: Object) -> Child:
    metadata = obj["metadata"]
    return Child(
        api_version=obj["apiVersion"],
        kind=obj["kind"],
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata["uid"],
        deleting="deletionTimestamp" in metadata,
    )


def job_fact(uid: str, obj: Object) -> JobFact:
    conditions = {c["type"]: c for c in obj.get("status", {}).get("conditions", []) if c["status"] == "True"}
    failed = conditions.get("Failed") or conditions.get("FailureTarget")
    return JobFact(
        child=child_of(obj),
        created=datetime.fromisoformat(obj["metadata"]["creationTimestamp"]),
        deleted=time_of(obj["metadata"].get("deletionTimestamp")),
        client=_number(obj, naming.LABEL_CLIENT),
        attempt=_number(obj, naming.LABEL_ATTEMPT) or 0,
        complete="Complete" in conditions,
        failure=f"{failed.get('reason', 'Failed')}: {failed.get('message', '')}" if failed else "",
        own=is_of_run(obj, uid),
    )


def pod_fact(uid: str, obj: Object) -> PodFact:
    metadata, status = obj["metadata"], obj.get("status", {})
    states = {container["name"]: container.get("state", {}) for container in status.get("containerStatuses", [])}
    state: Object = next((state for name, state in states.items() if name in naming.CONTAINERS), {})
    ended, phase = state.get("terminated"), status.get("phase", "Pending")
    is_held = bool(ended) and any("terminated" not in other for other in states.values())
    if ended:  # Kubernetes also calls a pod Failed because of another container.
        phase = "Failed" if ended["exitCode"] else "Succeeded"
    managed = [entry for entry in metadata.get("managedFields") or () if entry.get("subresource") == "status"]
    written = [datetime.fromisoformat(entry["time"]) for entry in managed if entry.get("time")]
    exit_code, exit_message = (ended or {}).get("exitCode", 0), str(status.get("reason", ""))
    if ended and exit_code:
        exit_message = _last_words(ended)
    elif not ended and phase == "Failed":
        ends = [(entry["name"], entry.get("state", {}).get("terminated")) for entry in _containers(status)]
        failed = next(((name, end) for name, end in ends if end and end["exitCode"]), None)
        exit_message = exit_message or (f"container {failed[0]}: {_last_words(failed[1])}" if failed else "")
    return PodFact(
        child=child_of(obj),
        client=_number(obj, naming.LABEL_CLIENT),
        attempt=_number(obj, naming.LABEL_ATTEMPT) or 0,
        node=obj.get("spec", {}).get("nodeName", ""),
        phase=phase,
        created=datetime.fromisoformat(metadata["creationTimestamp"]),
        changed=max(written, default=None) if state.keys() & {"running", "terminated"} else None,
        gone_by=time_of(metadata.get("deletionTimestamp")),
        problem="" if state.keys() & {"running", "terminated"} else _problem(status),
        exit_message=exit_message,
        exit_code=int(exit_code),
        is_held=is_held,
        own=is_of_run(obj, uid),
        jobs=frozenset(_jobs_of(obj)),
    )


def job_with_pods(job: JobFact, pods: Iterable[PodFact]) -> JobFact:
    """Return a Job judged by its own containers: others keep Kubernetes from ending it, or make it fail."""
    pods = list(pods)
    is_complete = job.complete or any(pod.phase == "Succeeded" for pod in pods)
    held_failure = next((pod.exit_message for pod in pods if pod.is_held and pod.phase == "Failed"), "")
    return replace(job, complete=is_complete, failure="" if is_complete else job.failure or held_failure)


def claim_fact(uid: str, obj: Object) -> ClaimFact:
    """Read a PVC; one without a client's label has the client -1."""
    client, child = _number(obj, naming.LABEL_CLIENT), child_of(obj)
    return ClaimFact(
        child=child,
        client=-1 if client is None else client,
        phase=obj.get("status", {}).get("phase", "Pending"),
        finalizers=tuple(obj["metadata"].get("finalizers") or ()) if child.deleting else (),
        own=is_of_run(obj, uid),
    )


def label(obj: Object, name: str) -> str:
    return str((obj["metadata"].get("labels") or {}).get(name, ""))


def time_of(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def warnings_on(objects: Iterable[Object], events: Iterable[Object]) -> dict[str, str]:
    """Return the newest warning about each of these objects, by UID: `ProvisioningFailed: ...`."""
    found = newest_warnings({obj["metadata"]["uid"] for obj in objects}, events, {})
    return {uid: message for uid, (*_, message) in found.items()}


def newest_warnings(uids: AbstractSet[str], events: Iterable[Object], earlier: Warnings) -> Warnings:
    """Return the newest warning, or else the newest event about a wait, of each of these UIDs, given earlier ones."""
    newest = dict(earlier)
    for event in events:
        uid, is_warning = event.get("involvedObject", {}).get("uid", ""), event.get("type") == "Warning"
        if uid in uids and (is_warning or event.get("reason") in _WAITS):
            message = f"{event.get('reason')}: {event.get('message')}"[:_MAX_WARNING]
            candidate = (is_warning, last_seen(event), message)
            newest[uid] = max(newest.get(uid, candidate), candidate)
    return newest


def last_seen(event: Object) -> str:
    """Return when an event, or the last of its series, was seen, in a format that sorts by time; empty if unknown."""
    series = event.get("series") or {}
    return str(series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or "")


def is_of_run(obj: Object, uid: str) -> bool:
    """Whether an object is the run's: by label and owner, a pod by a Job; a result, which may outlive it, by spec."""
    if obj["kind"] == RESULT_KIND:
        return bool(obj.get("spec", {}).get("runUid") == uid)
    if label(obj, naming.LABEL_RUN_UID) != uid:
        return False
    if obj["kind"] == "Pod":
        return bool(_jobs_of(obj))
    return any(owner["uid"] == uid for owner in owners(obj))


def belongs_to_a_run(obj: Object) -> bool:
    """Whether an object carries a run's UID. A run must not use or name one that carries another run's."""
    return bool(label(obj, naming.LABEL_RUN_UID))


def is_external_object_of(obj: Object, name: str, uid: str) -> bool:
    """Whether an object outside the run's namespace is the run's: by label, and by name with a digest of the UID."""
    base = base_name(name, uid)
    pools = {base, f"{base}-data", file_system_name(name, uid)}
    names = {*pools, f"{base}-conductor", f"{base}-agent", naming.teardown(uid)}
    names |= {naming.restoration(uid), naming.key_renewal(uid)}
    return label(obj, naming.LABEL_RUN_UID) == uid and obj["metadata"]["name"] in names


def belongs_to_same_run(existing: Object, wanted: Object) -> bool:
    """Whether an existing object belongs to the same run as one that was to be created under its name."""
    uid = label(wanted, naming.LABEL_RUN_UID)
    if owners(wanted) or wanted["kind"] == RESULT_KIND:
        return is_of_run(existing, uid)
    return label(existing, naming.LABEL_RUN_UID) == uid


def _jobs_of(pod: Object) -> set[str]:
    return {str(owner["uid"]) for owner in owners(pod) if owner["kind"] == "Job"}


def is_departing(obj: Object) -> bool:
    """Whether another owner's object will disappear by itself: another run owns it, or it is being deleted."""
    return "deletionTimestamp" in obj["metadata"] or any(owner["kind"] == RUN_KIND for owner in owners(obj))


def result_fact(run_uid: str, obj: Object) -> ResultFact:
    """Read a result; of one of another run, not its status."""
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    measured = None
    if spec.get("runUid") == run_uid:
        # `display` is never read back.
        status = {key: value for key, value in (obj.get("status") or {}).items() if key != "display"}
        with suppress(ValueError):
            measured = digest(ResultStatus.model_validate(status))
    return ResultFact(
        name=metadata["name"],
        run_uid=str(spec.get("runUid", "")),
        point=str(spec.get("point", "")),
        departing=is_departing(obj),
        measured=measured,
    )


def digest(status: ResultStatus) -> Measured:
    """Return what decisions need from a status; raises ValueError if a time is invalid."""
    operations = []
    for summary in status.summary.operations if status.summary else ():
        means = {f"p{name}": round(interval.mean) for name, interval in summary.percentiles.items()}
        latency = HeadlineLatency.model_validate({name: mean for name, mean in means.items() if name in _SHOWN})
        operations.append(
            {
                "operation": summary.operation,
                "iops": round(summary.iops.mean),
                "bytes_per_second": round(summary.bytes_per_second.mean),
                "latency_nanoseconds": latency if latency.model_fields_set else None,
            }
        )
    trials = (
        TrialFact(
            epoch=trial.epoch,
            outcome=trial.outcome,
            started=moment_of(trial.started_at),
            finished=moment_of(trial.finished_at),
        )
        for trial in status.trials
    )
    reason = next(iter(reasons_of(status)), "")
    return Measured(
        final=status.final,
        verdict=status.verdict,
        reason=reason,
        remedy=remedy_of(reason, status),
        operations=tuple(operations),
        line=status.line,
        trials=tuple(trials),
        environment=status.environment,
    )


def _number(obj: Object, name: str) -> int | None:
    text = label(obj, name)
    return int(text) if text.isdecimal() else None


def _problem(status: Object) -> str:
    for condition in status.get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return f"{condition.get('reason', 'Unschedulable')}: {condition.get('message', '')}"
    for container in _containers(status):
        waiting = container.get("state", {}).get("waiting")
        if waiting and waiting.get("reason") not in {"ContainerCreating", "PodInitializing"}:
            return f"{waiting.get('reason', 'Waiting')}: {waiting.get('message', '')}"
    return ""


def _last_words(end: Object) -> str:
    message = (end.get("message") or end.get("reason") or "").strip()
    return f"exit code {end['exitCode']}: {message}"


def _containers(status: Object) -> list[Any]:
    """Return the states of a pod's containers; injected init containers and sidecars start before Plimsoll's."""
    return [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]


def owners(obj: Object) -> list[Any]:
    return list(obj["metadata"].get("ownerReferences") or ())
