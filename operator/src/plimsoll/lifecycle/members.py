"""Jobs, pods and PVCs, of which a run has one or more per client. Each version is read once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from plimsoll.lifecycle.children import ClaimFact, JobFact, Object, PodFact
from plimsoll.lifecycle.ownership import is_of_run, jobs_of

F = TypeVar("F")

_MAY_BELONG_TO_A_JOB = {"Pending", "Running"}


@dataclass(frozen=True, slots=True)
class Member(Generic[F]):
    """What decisions need from an object with a run's label.

    Attributes:
        own: whether it really belongs to the run.
        jobs: for a pod, the UIDs of the Jobs that own it.

    """

    fact: F
    own: bool
    jobs: frozenset[str]


def member(fact: Callable[[Object], F], uid: str, obj: Object) -> Member[F]:
    """Read an object that carries the UID of a run."""
    return Member(fact(obj), is_of_run(obj, uid), frozenset(jobs_of(obj) if obj["kind"] == "Pod" else ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """All of them, as observed by one look."""

    jobs: Sequence[Member[JobFact]] = ()
    pods: Sequence[Member[PodFact]] = ()
    claims: Sequence[Member[ClaimFact]] = ()

    @property
    def own_pods(self) -> tuple[PodFact, ...]:
        """Return the run's pods, without those of other owners' Jobs."""
        foreign = {job.fact.child.uid for job in self.jobs if not job.own}
        return tuple(pod.fact for pod in self.pods if pod.own and not pod.jobs & foreign)

    @property
    def has_unbound_claim(self) -> bool:
        """Whether a PVC is still unbound."""
        return any(claim.fact.phase != "Bound" for claim in self.claims)

    @property
    def has_pod_without_container(self) -> bool:
        """Whether a pod has a node, but its containers are not created yet: its volumes are mounted before."""
        return any(pod.fact.phase == "Pending" and pod.fact.node for pod in self.pods)

    @property
    def has_job_without_pod(self) -> bool:
        """Whether a Job has no pod but may still create one."""
        pods = (pod for pod in self.pods if pod.fact.phase in _MAY_BELONG_TO_A_JOB)
        owners = {uid for pod in pods for uid in pod.jobs}
        return any(not job.fact.is_concluded and job.fact.child.uid not in owners for job in self.jobs)
