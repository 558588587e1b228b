"""What is there of a run, as facts: read from the objects that carry its UID."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from hashlib import sha256

from pydantic import ValidationError

from plimsoll.api.errors import SpecError
from plimsoll.api.names import RESULT_KIND, RunPhase
from plimsoll.api.state import RunState
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import (
    Child,
    ClaimFact,
    JobFact,
    Object,
    PodFact,
    child_of,
    warnings_about,
)
from plimsoll.lifecycle.elsewhere import Elsewhere
from plimsoll.lifecycle.measured import Measured, ResultFact
from plimsoll.lifecycle.members import Members
from plimsoll.lifecycle.ownership import is_departing, is_of_run
from plimsoll.lifecycle.platform import Platform
from plimsoll.lifecycle.refusal import Refusal
from plimsoll.lifecycle.render.common import PLAN_FILE, STATE_FILE
from plimsoll.plan.document import Plan, RunIdentity, load_plan


@dataclass(frozen=True, kw_only=True)
class Observed:
    """Everything that is there of a run.

    Attributes:
        plan: the frozen plan; None before it is made.
        plan_problem: why the plan that is there cannot be used; empty if it can.
        plan_sha256: of the frozen plan, as it stands there; empty before it is made.
        results: what is measured of each point whose result exists.
        unreadable_results: names of results of which this version cannot read what is measured.
        foreign_results: names of results that an earlier run of the same name left for good.
        departing: objects of an earlier run of the same name that go with it, but are still there.
        name_taken: an object of somebody else's that stands where the plan has to; empty if there is none.
        others: objects that need no looking into.
        warnings: UID of a claim or a Job -> the newest warning about it.
        elsewhere: what of it is outside its namespace; None if there can be nothing.
        platform: the cluster; None if it may not be looked at, and once there is a plan, in which it stands.
        ahead: runs that come before this one on the same target, by name; empty if it is its turn.
        refusal: what the API server said no to at the last attempt; None if it did all that was asked.

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
    elsewhere: Elsewhere | None = None
    platform: Platform | None = None
    ahead: tuple[str, ...] = ()
    refusal: Refusal | None = None

    @property
    def conductor_job(self) -> JobFact | None:
        """Return the conductor's Job; None if it is not there."""
        return next((job for job in self.jobs if job.client is None), None)

    @cached_property
    def conductor_in_charge(self) -> bool:
        """Tell whether the state is the word of a conductor that runs, or has just done all there was to do."""
        epoch = self.state.epoch if self.state else ""
        return any(pod.child.uid == epoch and (pod.runs or pod.phase == "Succeeded") for pod in self.conductor_pods)

    @property
    def all_registered(self) -> bool:
        """Tell whether a conductor is in charge, and misses no client."""
        state = self.state
        done = state is None or bool(state.missing) or state.phase is RunPhase.INTERRUPTED
        return self.conductor_in_charge and not done

    @cached_property
    def conductor_pods(self) -> tuple[PodFact, ...]:
        """Return the conductor's pods, the newest last."""
        return tuple(sorted(self.client_pods(None), key=lambda pod: pod.created))

    def names(self, kind: str) -> AbstractSet[str]:
        """Return the names of the objects of a kind that are there."""
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

    # A run may have 1000 clients, each of which is asked for several times at every look.

    @cached_property
    def _names_by_kind(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        children = (
            *(job.child for job in self.jobs),
            *(pod.child for pod in self.pods),
            *(claim.child for claim in self.claims),
            *self.others,
        )
        for child in children:
            found.setdefault(child.kind, set()).add(child.name)
        return found

    @cached_property
    def _jobs_by_client(self) -> dict[int | None, list[JobFact]]:
        found: dict[int | None, list[JobFact]] = {}
        for job in sorted(self.jobs, key=lambda job: job.attempt):
            found.setdefault(job.client, []).append(job)
        return found

    @cached_property
    def _pods_by_client(self) -> dict[int | None, list[PodFact]]:
        found: dict[int | None, list[PodFact]] = {}
        for pod in sorted(self.pods, key=lambda pod: pod.attempt):
            found.setdefault(pod.client, []).append(pod)
        return found


def observe(
    objects: Iterable[Object],
    *,
    run: RunIdentity,
    members: Members,
    results: Sequence[ResultFact] = (),
    events: Sequence[Object] = (),
) -> Observed:
    """Read the facts out of a run's objects, and of what others have under the same names.

    Objects that only carry the run's labels are ignored. `members` are its Jobs, pods and claims, `results`
    those of the run's name, `events` those on the run's claims and Jobs.
    """
    by_kind: dict[str, list[Object]] = {}
    others: list[Object] = []
    for obj in objects:
        if is_of_run(obj, run.uid):
            by_kind.setdefault(obj["kind"], []).append(obj)
        else:
            others.append(obj)
    maps = {obj["metadata"]["name"]: obj for obj in by_kind.get("ConfigMap", [])}
    plan_map = maps.get(naming.plan_config_map(run.name))
    plan, problem = _plan(plan_map, run)
    own_results = [result for result in results if result.run_uid == run.uid]
    foreign_results = [result for result in results if result.run_uid != run.uid]
    in_the_way = [obj for obj in others if _is_in_the_way(obj, run)]
    jobs = tuple(job.fact for job in members.jobs if job.own)
    claims = tuple(claim.fact for claim in members.claims if claim.own)
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
            *(f"{obj['kind']} {obj['metadata']['name']}" for obj in in_the_way if is_departing(obj)),
        ),
        name_taken=next((f"{o['kind']} {o['metadata']['name']}" for o in in_the_way if not is_departing(o)), ""),
        jobs=jobs,
        pods=members.own_pods,
        claims=claims,
        others=tuple(child_of(obj) for kind in by_kind.values() for obj in kind),
        warnings=warnings_about(
            {child.uid for child in (*(c.child for c in claims), *(j.child for j in jobs))}, events
        ),
    )


def _is_in_the_way(obj: Object, run: RunIdentity) -> bool:
    """Tell whether a stranger's object stands where the plan of the run has to."""
    return bool(obj["kind"] == "ConfigMap" and obj["metadata"]["name"] == naming.plan_config_map(run.name))


def _plan(config_map: Object | None, run: RunIdentity) -> tuple[Plan | None, str]:
    """Return the plan, or why it cannot be used."""
    if config_map is None:
        return None, ""
    if config_map.get("immutable") is not True:
        return None, f"ConfigMap {config_map['metadata']['name']} is not immutable, as the operator makes it"
    try:
        plan = load_plan(_text(config_map, PLAN_FILE))
    except SpecError as error:
        return None, str(error)
    if plan.run != run:
        return None, f"it is of the run {plan.run.namespace}/{plan.run.name} with the UID {plan.run.uid}"
    return plan, ""


def _text(config_map: Object, file: str) -> str:
    return str((config_map.get("data") or {}).get(file, ""))


def _state(config_map: Object | None) -> RunState | None:
    """Return the conductor's state; one that cannot be read counts as one that is not there."""
    if config_map is None:
        return None
    try:
        return RunState.model_validate_json(_text(config_map, STATE_FILE))
    except ValidationError:
        return None


def age_seconds(since: datetime | None, now: datetime) -> float:
    """Return the seconds since a time; 0 if there is none."""
    return (now - since).total_seconds() if since else 0.0
