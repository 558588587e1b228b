"""What is there of a run, as facts: read from the objects that carry its UID."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from plimsoll.api.errors import SpecError
from plimsoll.api.names import RESULT_KIND, RUN_KIND, RunPhase
from plimsoll.api.result import ResultStatus
from plimsoll.api.state import RunState
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render.common import PLAN_FILE, STATE_FILE
from plimsoll.plan.document import Plan, load_plan

Object = Mapping[str, Any]

_NOT_A_PROBLEM = {"ContainerCreating", "PodInitializing"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """An object of a run, as far as it takes to delete exactly that one."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    component: str
    deleting: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFact:
    """A Job. `client` is None for the conductor's; `failure` is why it failed, empty if it did not."""

    child: Child
    created: datetime
    client: int | None
    attempt: int
    complete: bool
    failure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFact:
    """A pod.

    Attributes:
        problem: why its containers do not run: `Unschedulable: ...`, `ImagePullBackOff: ...`; empty if they do.
        last_words: termination message or exit of its container; empty while it runs.

    """

    child: Child
    client: int | None
    attempt: int
    node: str
    phase: str
    problem: str
    last_words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimFact:
    """A client's volume claim."""

    child: Child
    client: int
    phase: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Everything that is there of a run.

    Attributes:
        plan: the frozen plan; None before it is made.
        plan_problem: why the plan that is there cannot be used; empty if it can.
        results: status of each point whose result exists.
        foreign_results: names of results that an earlier run of the same name left for good.
        departing: objects of an earlier run of the same name that go with it, but are still there.
        name_taken: an object of somebody else's that stands where the plan has to; empty if there is none.
        others: objects that need no looking into.
        claim_events: client -> the newest warning about its claim.
        ahead: runs that come before this one on the same target, by name; empty if it is its turn.

    """

    plan: Plan | None = None
    plan_problem: str = ""
    state: RunState | None = None
    results: Mapping[str, ResultStatus]
    foreign_results: tuple[str, ...] = ()
    departing: tuple[str, ...] = ()
    name_taken: str = ""
    jobs: tuple[JobFact, ...] = ()
    pods: tuple[PodFact, ...] = ()
    claims: tuple[ClaimFact, ...] = ()
    others: tuple[Child, ...] = ()
    claim_events: Mapping[int, str]
    ahead: tuple[str, ...] = ()

    @property
    def conductor_job(self) -> JobFact | None:
        """Return the conductor's Job; None if it is not there."""
        return next((job for job in self.jobs if job.client is None), None)

    @property
    def all_registered(self) -> bool:
        """Tell whether a conductor is in charge, and misses no client."""
        state = self.state
        return state is not None and bool(state.epoch) and not state.missing and state.phase is not RunPhase.INTERRUPTED

    @property
    def conductor_pods(self) -> tuple[PodFact, ...]:
        """Return the conductor's pods, the newest last as far as the API orders them."""
        return tuple(pod for pod in self.pods if pod.client is None)

    def names(self, kind: str) -> set[str]:
        """Return the names of the objects of a kind that are there."""
        children = [
            *(job.child for job in self.jobs),
            *(pod.child for pod in self.pods),
            *(claim.child for claim in self.claims),
            *self.others,
        ]
        return {child.name for child in children if child.kind == kind}

    def client_jobs(self, client: int) -> list[JobFact]:
        """Return a client's Jobs, in order of their attempts."""
        return sorted((job for job in self.jobs if job.client == client), key=lambda job: job.attempt)

    def client_pod(self, client: int) -> PodFact | None:
        """Return the pod of a client's latest process; None if there is none."""
        pods = sorted((pod for pod in self.pods if pod.client == client), key=lambda pod: pod.attempt)
        return pods[-1] if pods else None


def observe(objects: Iterable[Object], *, run_uid: str, events: Sequence[Object] = ()) -> Observed:
    """Read the facts out of a run's objects, and of what others have under the same names.

    `events` are those on the run's claims.
    """
    by_kind: dict[str, list[Object]] = {}
    others: list[Object] = []
    for obj in objects:
        if _is_of(obj, run_uid):
            by_kind.setdefault(obj["kind"], []).append(obj)
        else:
            others.append(obj)
    maps = {_label(obj, naming.LABEL_COMPONENT): obj for obj in by_kind.get("ConfigMap", [])}
    plan, problem = _plan(maps.get("plan"))
    results = by_kind.pop("BenchmarkResult", [])
    staying = [obj for obj in others if not _is_departing(obj)]
    jobs, pods = by_kind.pop("Job", []), by_kind.pop("Pod", [])
    claims = by_kind.pop("PersistentVolumeClaim", [])
    claim_facts = tuple(_claim(obj) for obj in claims)
    return Observed(
        plan=plan,
        plan_problem=problem,
        state=_state(maps.get("state")),
        results={obj["spec"]["point"]: _result(obj) for obj in results},
        foreign_results=tuple(obj["metadata"]["name"] for obj in staying if obj["kind"] == RESULT_KIND),
        departing=tuple(f"{obj['kind']} {obj['metadata']['name']}" for obj in others if _is_departing(obj)),
        name_taken=next((f"{o['kind']} {o['metadata']['name']}" for o in staying if o["kind"] != RESULT_KIND), ""),
        jobs=tuple(_job(obj) for obj in jobs),
        pods=tuple(_pod(obj) for obj in pods),
        claims=claim_facts,
        others=tuple(_child(obj) for kind in by_kind.values() for obj in kind),
        claim_events=_claim_events(events, claim_facts),
    )


def _is_of(obj: Object, run_uid: str) -> bool:
    """Tell whether an object is the run's; of results their specification says it, labels may be changed."""
    if obj["kind"] == RESULT_KIND:
        return bool(obj["spec"]["runUid"] == run_uid)
    return _label(obj, naming.LABEL_RUN_UID) == run_uid


def _is_departing(obj: Object) -> bool:
    """Tell whether another run's object goes by itself: it belongs to a run that is no more, or is going already."""
    metadata = obj["metadata"]
    owned = any(owner["kind"] == RUN_KIND for owner in metadata.get("ownerReferences", ()))
    return owned or "deletionTimestamp" in metadata


def _label(obj: Object, name: str) -> str:
    return str((obj["metadata"].get("labels") or {}).get(name, ""))


def _plan(config_map: Object | None) -> tuple[Plan | None, str]:
    if config_map is None:
        return None, ""
    try:
        return load_plan(config_map.get("data", {}).get(PLAN_FILE, "")), ""
    except SpecError as error:
        return None, str(error)


def _state(config_map: Object | None) -> RunState | None:
    """Return the conductor's state; one that cannot be read counts as one that is not there."""
    if config_map is None:
        return None
    try:
        return RunState.model_validate_json(config_map.get("data", {}).get(STATE_FILE, ""))
    except ValidationError:
        return None


def _result(obj: Object) -> ResultStatus:
    """Return what is measured of a point; `display` is for people and not read back.

    One that cannot be read counts as one without numbers: it must not keep a run from being taken away.
    """
    status = {key: value for key, value in (obj.get("status") or {}).items() if key != "display"}
    try:
        return ResultStatus.model_validate(status)
    except ValidationError:
        return ResultStatus()


def _child(obj: Object) -> Child:
    metadata = obj["metadata"]
    return Child(
        api_version=obj["apiVersion"],
        kind=obj["kind"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        component=_label(obj, naming.LABEL_COMPONENT),
        deleting="deletionTimestamp" in metadata,
    )


def _client(obj: Object) -> int | None:
    text = _label(obj, naming.LABEL_CLIENT)
    return int(text) if text.isdecimal() else None


def _attempt(obj: Object) -> int:
    text = _label(obj, naming.LABEL_ATTEMPT)
    return int(text) if text.isdecimal() else 0


def _job(obj: Object) -> JobFact:
    conditions = {c["type"]: c for c in obj.get("status", {}).get("conditions", []) if c["status"] == "True"}
    failed = conditions.get("Failed") or conditions.get("FailureTarget")
    return JobFact(
        child=_child(obj),
        created=datetime.fromisoformat(obj["metadata"]["creationTimestamp"]),
        client=_client(obj),
        attempt=_attempt(obj),
        complete="Complete" in conditions,
        failure=f"{failed.get('reason', 'Failed')}: {failed.get('message', '')}" if failed else "",
    )


def _pod(obj: Object) -> PodFact:
    status = obj.get("status", {})
    return PodFact(
        child=_child(obj),
        client=_client(obj),
        attempt=_attempt(obj),
        node=obj.get("spec", {}).get("nodeName", ""),
        phase=status.get("phase", "Pending"),
        problem=_pod_problem(status),
        last_words=_last_words(status),
    )


def _pod_problem(status: Object) -> str:
    for condition in status.get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return f"{condition.get('reason', 'Unschedulable')}: {condition.get('message', '')}"
    for container in status.get("containerStatuses", []):
        waiting = container.get("state", {}).get("waiting")
        if waiting and waiting.get("reason") not in _NOT_A_PROBLEM:
            return f"{waiting.get('reason', 'Waiting')}: {waiting.get('message', '')}"
    return ""


def _last_words(status: Object) -> str:
    for container in status.get("containerStatuses", []):
        ended = container.get("state", {}).get("terminated")
        if ended:
            words = (ended.get("message") or ended.get("reason") or "").strip()
            return f"exit code {ended.get('exitCode')}: {words}"
    return str(status.get("reason", ""))


def _claim(obj: Object) -> ClaimFact:
    client = _client(obj)
    return ClaimFact(
        child=_child(obj),
        client=-1 if client is None else client,
        phase=obj.get("status", {}).get("phase", "Pending"),
    )


def _claim_events(events: Iterable[Object], claims: Sequence[ClaimFact]) -> dict[int, str]:
    by_uid = {claim.child.uid: claim.client for claim in claims}
    newest: dict[int, tuple[str, str]] = {}
    for event in events:
        client = by_uid.get(event.get("involvedObject", {}).get("uid", ""))
        if client is None or event.get("type") != "Warning":
            continue
        when = event.get("lastTimestamp") or event.get("eventTime") or ""
        newest[client] = max(newest.get(client, ("", "")), (when, f"{event.get('reason')}: {event.get('message')}"))
    return {client: message for client, (_, message) in newest.items()}


def age_seconds(since: datetime | None, now: datetime) -> float:
    """Return the seconds since a time; 0 if there is none."""
    return (now - since).total_seconds() if since else 0.0
