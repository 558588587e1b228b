"""What is observed of a run: facts read from the objects that carry its UID, or occupy its names."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from types import MappingProxyType
from typing import TypeVar

from pydantic import ValidationError

from plimsoll.api.errors import SpecError
from plimsoll.api.names import RESULT_KIND, RunPhase
from plimsoll.api.status import STATE_FILE, RunState
from plimsoll.lifecycle import children, naming
from plimsoll.lifecycle.children import Child, ClaimFact, JobFact, Members, Object, PodFact, ResultFact
from plimsoll.lifecycle.refusals import Refusal
from plimsoll.lifecycle.run import Platform, Run
from plimsoll.measure.text import first_few
from plimsoll.plan.document import PLAN_FILE, Plan, RunIdentity, load_plan

Process = TypeVar("Process", JobFact, PodFact)

_UNSHOWN = {"elapsed_seconds", "live", "prefill", "registered"}
"""Fields of the conductor's state that no status shows; conductors and `kubectl plimsoll watch` read them."""

_MAX_STATE_CHARACTERS = 128 * 2**10  # with 1000 clients a state has about 20,000

_FACTS: Mapping[str, Callable[[str, Object], object]] = {
    "Job": children.job_fact,
    "Pod": children.pod_fact,
    "PersistentVolumeClaim": children.claim_fact,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A run's turn in the queue of its target."""

    ahead: tuple[str, ...] = ()  # the runs that come before it, in order, for people; empty if it is its turn
    own_ahead: int = 0  # how many of them are waiting runs of its own namespace
    namespace_served: str = ""  # when a run of its namespace was last admitted; empty if none was, or it is admitted


@dataclass(frozen=True, kw_only=True)
class Observed:
    """Everything that is observed of a run."""

    plan: Plan | None = None  # the frozen plan; None before it is stored
    plan_problem: str = ""  # why the stored plan is unusable; empty if it is usable
    plan_sha256: str = ""  # of the stored plan; empty if there is none
    state: RunState | None = None
    results: Mapping[str, children.Measured]  # digest of each existing result, by point
    unreadable_results: tuple[str, ...] = ()  # names of results whose status this version cannot read
    foreign_results: tuple[str, ...] = ()  # names of results that an earlier run with the same name left permanently
    departing: tuple[str, ...] = ()  # objects of an earlier run with the same name that are being deleted with it
    name_taken: str = ""  # another owner's object that occupies the plan's name; empty if there is none
    jobs: tuple[JobFact, ...] = ()
    pods: tuple[PodFact, ...] = ()  # of these Jobs
    orphans: tuple[PodFact, ...] = ()  # pods whose Job is gone: they may load the storage, and decide nothing else
    claims: tuple[ClaimFact, ...] = ()
    others: tuple[Child, ...] = ()  # objects that need only to be deleted
    warnings: Mapping[str, str]  # UID of a PVC, a Job or a pod -> the newest warning about it
    external: object | None = None  # what the storage provider found elsewhere; None if there can be nothing
    platform: Platform | None = None  # None if it may not be inspected, or once the plan describes it
    turn: Turn = Turn()
    refusal: Refusal | None = None  # what the API server refused last; None if nothing

    @property
    def conductor_job(self) -> JobFact | None:
        return next((job for job in self.jobs if job.client is None), None)

    @cached_property
    def conductor_in_charge(self) -> bool:
        """Whether a running conductor, or one that has just finished, wrote the state."""
        epoch = self.state.epoch if self.state else ""
        pods = (pod for pod in self.conductor_pods if pod.child.uid == epoch)
        return any(pod.is_running or pod.phase == "Succeeded" for pod in pods)

    @property
    def all_registered(self) -> bool:
        """Whether a conductor is active and misses no client."""
        state = self.state
        done = state is None or bool(state.missing) or state.phase is RunPhase.INTERRUPTED
        return self.conductor_in_charge and not done

    @property
    def has_gathered(self) -> bool:
        """Whether all clients have registered with a conductor of the current Job."""
        job = self.conductor_job
        return job is not None and self.state is not None and self.state.gathered == job.child.uid

    @property
    def conductor_succeeded(self) -> bool:
        """Whether the conductor has succeeded. Its Job is complete later, or never while a sidecar keeps the pod."""
        job = self.conductor_job
        return job is not None and (job.complete or any(pod.phase == "Succeeded" for pod in self.conductor_pods))

    @property
    def loading_pods(self) -> tuple[PodFact, ...]:
        return (*self.pods, *self.orphans)

    @property
    def unbound_claims(self) -> Sequence[ClaimFact]:
        return [claim for claim in self.claims if claim.phase != "Bound"]

    @cached_property
    def conductor_pods(self) -> tuple[PodFact, ...]:
        """Return the conductor's pods, the newest last."""
        return tuple(sorted(self.client_pods(None), key=lambda pod: pod.created))

    def names(self, kind: str) -> AbstractSet[str]:
        return self._names_by_kind.get(kind, frozenset())

    def client_jobs(self, client: int) -> Sequence[JobFact]:
        return self._jobs_by_client.get(client, ())

    def client_pod(self, client: int) -> PodFact | None:
        pods = self.client_pods(client)
        return pods[-1] if pods else None

    def client_pods(self, client: int | None) -> Sequence[PodFact]:
        """Return a client's pods in order of its processes, or the conductor's."""
        return self._pods_by_client.get(client, ())

    # A run may have 1000 clients, and each look queries every client several times.

    @cached_property
    def _names_by_kind(self) -> dict[str, set[str]]:
        names: dict[str, set[str]] = {}
        processes = (*(job.child for job in self.jobs), *(pod.child for pod in self.loading_pods))
        for child in (*processes, *(claim.child for claim in self.claims), *self.others):
            names.setdefault(child.kind, set()).add(child.name)
        return names

    @cached_property
    def _jobs_by_client(self) -> dict[int | None, list[JobFact]]:
        return _by_client(self.jobs)

    @cached_property
    def _pods_by_client(self) -> dict[int | None, list[PodFact]]:
        return _by_client(self.pods)


def observe(
    config_maps: Iterable[Object],
    *,
    run: RunIdentity,
    members: Members,
    fixed: Sequence[Child] = (),
    results: Sequence[ResultFact] = (),
    warnings: Mapping[str, str] = MappingProxyType({}),
) -> Observed:
    """Return the facts about a run's objects, of which only the operator changes the `fixed`, and about its names."""
    run_maps, foreign_maps = dict[str, Object](), dict[str, Object]()
    for config_map in config_maps:
        maps = run_maps if children.is_of_run(config_map, run.uid) else foreign_maps
        maps[config_map["metadata"]["name"]] = config_map
    plan_name = naming.plan_config_map(run.name)
    plan_map, conflict = run_maps.get(plan_name), foreign_maps.get(plan_name)
    is_departing = conflict is not None and children.is_departing(conflict)
    plan, problem = _plan(plan_map, run)
    state = _state(_text(run_maps.get(naming.state_config_map(run.name)), STATE_FILE))
    own_results = [result for result in results if result.run_uid == run.uid]
    foreign_results = [result for result in results if result.run_uid != run.uid]
    pods = members.own_pods
    of_process: dict[tuple[int | None, int], list[PodFact]] = {}
    for pod in pods:
        of_process.setdefault((pod.client, pod.attempt), []).append(pod)

    def with_pods(job: JobFact) -> JobFact:
        # The conductor's Job decides itself whether it creates another pod.
        return children.job_with_pods(job, () if job.client is None else of_process.get((job.client, job.attempt), ()))

    return Observed(
        plan=plan,
        plan_problem=problem,
        plan_sha256=sha256(_text(plan_map, PLAN_FILE).encode()).hexdigest() if plan_map else "",
        state=state,
        results={result.point: result.measured or children.Measured() for result in own_results},
        unreadable_results=tuple(result.name for result in own_results if result.measured is None),
        foreign_results=tuple(result.name for result in foreign_results if not result.departing),
        departing=(
            *(f"{RESULT_KIND} {result.name}" for result in foreign_results if result.departing),
            *([f"ConfigMap {plan_name}"] if is_departing else []),
        ),
        name_taken=f"ConfigMap {plan_name}" if conflict is not None and not is_departing else "",
        jobs=tuple(with_pods(job) for job in members.jobs if job.own),
        pods=pods,
        orphans=members.orphans,
        claims=tuple(claim for claim in members.claims if claim.own),
        others=(*map(children.child_of, run_maps.values()), *fixed),
        warnings=warnings,
    )


def noticeable(obj: Object, run_uid: str) -> object:
    """Return a value that differs whenever a look could notice a change of a Job, pod, PVC or ConfigMap of the run."""
    kind = obj["kind"]
    if kind in _FACTS:
        return _FACTS[kind](run_uid, obj)
    data, metadata = dict(obj.get("data") or {}), obj["metadata"]
    text = str(data.pop(STATE_FILE, ""))
    readable = _state(text)
    state = readable.model_dump(exclude=_UNSHOWN) if readable is not None else sha256(text.encode()).digest()
    files = {name: sha256(content.encode()).digest() for name, content in data.items()}
    is_own = children.is_of_run(obj, run_uid)
    return metadata["uid"], "deletionTimestamp" in metadata, is_own, obj.get("immutable"), files, state


def age_seconds(since: datetime | None, now: datetime) -> float:
    return (now - since).total_seconds() if since else 0.0


def is_own_plan(run: Run, seen: Observed) -> bool:
    """Whether the operator created the plan, whose digest it records first."""
    return run.status.get("planSha256") == seen.plan_sha256


def _by_client(facts: Iterable[Process]) -> dict[int | None, list[Process]]:
    by_client: dict[int | None, list[Process]] = {}
    for fact in sorted(facts, key=lambda fact: fact.attempt):
        by_client.setdefault(fact.client, []).append(fact)
    return by_client


def _state(text: str) -> RunState | None:
    """Return the conductor's state; None if this version cannot read it, or if no conductor writes so much."""
    with suppress(ValidationError):
        return RunState.model_validate_json(text) if len(text) <= _MAX_STATE_CHARACTERS else None
    return None


def _plan(config_map: Object | None, run: RunIdentity) -> tuple[Plan | None, str]:
    if config_map is None:
        return None, ""
    if config_map.get("immutable") is not True:
        return None, f"ConfigMap {config_map['metadata']['name']} is not immutable"
    try:
        plan = load_plan(_text(config_map, PLAN_FILE))
    except SpecError as error:
        fields = first_few([problem.field or PLAN_FILE for problem in error.problems], 3)
        return None, f"another version of Plimsoll froze it, or it is damaged: this version cannot read {fields}"
    if plan.run != run:
        return None, f"it belongs to run {plan.run.namespace}/{plan.run.name} (UID {plan.run.uid})"
    return plan, ""


def _text(config_map: Object | None, file: str) -> str:
    return str(((config_map or {}).get("data") or {}).get(file, ""))
