"""What is observed of a run: facts read from the objects that carry its UID."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from typing import TypeVar

from pydantic import ValidationError

from plimsoll.api.errors import SpecError
from plimsoll.api.names import RESULT_KIND, RunPhase
from plimsoll.api.state import RunState
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import Child, ClaimFact, JobFact, Object, PodFact, child_of, warnings_about
from plimsoll.lifecycle.measured import Measured, ResultFact
from plimsoll.lifecycle.members import Members
from plimsoll.lifecycle.ownership import is_departing, is_of_run
from plimsoll.lifecycle.platform import Platform
from plimsoll.lifecycle.refusal import Refusal
from plimsoll.lifecycle.render.common import PLAN_FILE, STATE_FILE
from plimsoll.plan.document import Plan, RunIdentity, load_plan

Process = TypeVar("Process", JobFact, PodFact)


@dataclass(frozen=True, kw_only=True)
class Observed:
    """Everything that is observed of a run.

    Attributes:
        plan: the frozen plan; None before it is stored.
        plan_problem: why the stored plan is unusable; empty if it is usable.
        plan_sha256: of the stored plan; empty if there is none.
        results: digest of each existing result, by point.
        unreadable_results: names of results whose status this version cannot read.
        foreign_results: names of results that an earlier run with the same name left permanently.
        departing: objects of an earlier run with the same name that are being deleted with it.
        name_taken: another owner's object that occupies the plan's name; empty if there is none.
        others: objects that need only to be deleted.
        warnings: UID of a PVC, a Job or a pod -> the newest warning about it.
        external: what the storage provider found outside the run's namespace; None if there can be nothing.
        platform: the cluster; None if the operator may not inspect it, or once the plan describes it.
        ahead: runs that come before this one on the same target, by name; empty if it is its turn.
        refusal: what the API server refused last; None if nothing.

    """

    plan: Plan | None = None
    plan_problem: str = ""
    plan_sha256: str = ""
    state: RunState | None = None
    results: Mapping[str, Measured]
    unreadable_results: tuple[str, ...] = ()
    foreign_results: tuple[str, ...] = ()
    departing: tuple[str, ...] = ()
    name_taken: str = ""
    jobs: tuple[JobFact, ...] = ()
    pods: tuple[PodFact, ...] = ()
    claims: tuple[ClaimFact, ...] = ()
    others: tuple[Child, ...] = ()
    warnings: Mapping[str, str]
    external: object | None = None
    platform: Platform | None = None
    ahead: tuple[str, ...] = ()
    refusal: Refusal | None = None

    @property
    def conductor_job(self) -> JobFact | None:
        """Return the conductor's Job; None if it does not exist."""
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
        """Whether a pod of the conductor's Job has succeeded; the Job itself is complete a second or two later."""
        job = self.conductor_job
        return job is not None and (job.complete or any(pod.phase == "Succeeded" for pod in self.conductor_pods))

    @property
    def unbound_claims(self) -> Sequence[ClaimFact]:
        """Return the PVCs that have no volume yet."""
        return [claim for claim in self.claims if claim.phase != "Bound"]

    @cached_property
    def conductor_pods(self) -> tuple[PodFact, ...]:
        """Return the conductor's pods, the newest last."""
        return tuple(sorted(self.client_pods(None), key=lambda pod: pod.created))

    def names(self, kind: str) -> AbstractSet[str]:
        """Return the names of the existing objects of a kind."""
        return self._names_by_kind.get(kind, frozenset())

    def client_jobs(self, client: int) -> Sequence[JobFact]:
        """Return a client's Jobs, in order of their attempts."""
        return self._jobs_by_client.get(client, ())

    def client_pod(self, client: int) -> PodFact | None:
        """Return the pod of a client's latest process; None if there is none."""
        pods = self.client_pods(client)
        return pods[-1] if pods else None

    def client_pods(self, client: int | None) -> Sequence[PodFact]:
        """Return a client's pods in order of its processes, or the conductor's."""
        return self._pods_by_client.get(client, ())

    # A run may have 1000 clients, and each look queries every client several times.

    @cached_property
    def _names_by_kind(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        processes = (*(job.child for job in self.jobs), *(pod.child for pod in self.pods))
        for child in (*processes, *(claim.child for claim in self.claims), *self.others):
            found.setdefault(child.kind, set()).add(child.name)
        return found

    @cached_property
    def _jobs_by_client(self) -> dict[int | None, list[JobFact]]:
        return _by_client(self.jobs)

    @cached_property
    def _pods_by_client(self) -> dict[int | None, list[PodFact]]:
        return _by_client(self.pods)


def _by_client(facts: Iterable[Process]) -> dict[int | None, list[Process]]:
    """Return Jobs or pods by client, in order of their attempts."""
    found: dict[int | None, list[Process]] = {}
    for fact in sorted(facts, key=lambda fact: fact.attempt):
        found.setdefault(fact.client, []).append(fact)
    return found


def observe(
    objects: Iterable[Object],
    *,
    run: RunIdentity,
    members: Members,
    fixed: Sequence[Child] = (),
    results: Sequence[ResultFact] = (),
    events: Sequence[Object] = (),
) -> Observed:
    """Return the facts about a run's objects, and about other owners' objects with the same names.

    Objects that only carry the run's labels are ignored. `members` are its Jobs, pods and PVCs, `fixed` its objects
    that only the operator changes, `results` those with the run's name, `events` those about its PVCs and Jobs.
    """
    everything = list(objects)
    own = [obj for obj in everything if is_of_run(obj, run.uid)]
    conflicts = [obj for obj in everything if _has_plan_name(obj, run) and not is_of_run(obj, run.uid)]
    maps = {obj["metadata"]["name"]: obj for obj in own if obj["kind"] == "ConfigMap"}
    plan_map = maps.get(naming.plan_config_map(run.name))
    plan, problem = _plan(plan_map, run)
    own_results = [result for result in results if result.run_uid == run.uid]
    foreign_results = [result for result in results if result.run_uid != run.uid]
    jobs = tuple(job.fact for job in members.jobs if job.own)
    claims = tuple(claim.fact for claim in members.claims if claim.own)
    uids = {fact.child.uid for facts in (claims, jobs, members.own_pods) for fact in facts}
    return Observed(
        plan=plan,
        plan_problem=problem,
        plan_sha256=sha256(_text(plan_map, PLAN_FILE).encode()).hexdigest() if plan_map else "",
        state=_state(maps.get(naming.state_config_map(run.name))),
        results={result.point: result.measured or Measured() for result in own_results},
        unreadable_results=tuple(result.name for result in own_results if result.measured is None),
        foreign_results=tuple(result.name for result in foreign_results if not result.departing),
        departing=(
            *(f"{RESULT_KIND} {result.name}" for result in foreign_results if result.departing),
            *(_name(obj) for obj in conflicts if is_departing(obj)),
        ),
        name_taken=next((_name(obj) for obj in conflicts if not is_departing(obj)), ""),
        jobs=jobs,
        pods=members.own_pods,
        claims=claims,
        others=(*map(child_of, own), *fixed),
        warnings=warnings_about(uids, events),
    )


def _has_plan_name(obj: Object, run: RunIdentity) -> bool:
    return bool(obj["kind"] == "ConfigMap" and obj["metadata"]["name"] == naming.plan_config_map(run.name))


def _name(obj: Object) -> str:
    return f"{obj['kind']} {obj['metadata']['name']}"


def _plan(config_map: Object | None, run: RunIdentity) -> tuple[Plan | None, str]:
    """Return the plan, or why it is unusable."""
    if config_map is None:
        return None, ""
    if config_map.get("immutable") is not True:
        return None, f"ConfigMap {config_map['metadata']['name']} is not immutable"
    try:
        plan = load_plan(_text(config_map, PLAN_FILE))
    except SpecError as error:
        return None, str(error)
    if plan.run != run:
        return None, f"it belongs to run {plan.run.namespace}/{plan.run.name} (UID {plan.run.uid})"
    return plan, ""


def _text(config_map: Object, file: str) -> str:
    return str((config_map.get("data") or {}).get(file, ""))


def _state(config_map: Object | None) -> RunState | None:
    """Return the conductor's state; None if there is none that can be read."""
    if config_map is None:
        return None
    try:
        return RunState.model_validate_json(_text(config_map, STATE_FILE))
    except ValidationError:
        return None


def age_seconds(since: datetime | None, now: datetime) -> float:
    """Return the seconds since a time; 0 without one."""
    return (now - since).total_seconds() if since else 0.0
