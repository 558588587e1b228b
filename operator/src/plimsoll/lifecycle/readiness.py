"""How far a run is from measuring, and what keeps it from it: volumes, clients, conductor."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from plimsoll.api.names import ConditionStatus, ConditionType
from plimsoll.lifecycle import ceph_storage
from plimsoll.lifecycle.children import ClaimFact, JobFact, PodFact
from plimsoll.lifecycle.decision import Fact
from plimsoll.lifecycle.observed import Observed
from plimsoll.lifecycle.refusal import REASONS as REFUSALS
from plimsoll.lifecycle.refusal import reason_of_words
from plimsoll.lifecycle.render.client import has_claim
from plimsoll.lifecycle.rook.storage import needs_storage_class
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.wording import are, counted, have
from plimsoll.plan.document import Plan

_NAMED = 3


def storage_fact(plan: Plan, seen: Observed) -> Fact:
    """Return whether every client has its volume, or what else it measures, and if not why."""
    provided = ceph_storage.storage_fact(plan, seen) if plan.ceph else None
    if provided is not None and not (provided.holds and has_claim(plan)):
        return provided
    if plan.volume is None:
        return Fact(holds=True, reason="NotNeeded", message="no workload uses a volume")
    unbound = _unbound(seen)
    absent = plan.clients - len(seen.claims)
    if not unbound and absent <= 0:
        return Fact(holds=True, reason="Bound", message=f"{counted(plan.clients, 'claim')} {are(plan.clients)} bound")
    problems = [
        f"claim {claim.child.name} is {claim.phase}"
        + (f" ({seen.warnings[claim.child.uid]})" if claim.child.uid in seen.warnings else "")
        for claim in unbound
    ]
    not_made = f"{counted(absent, 'claim')} {are(absent)} not made yet"
    return Fact(holds=False, reason="ClaimsNotBound", message=_listed(problems) or not_made)


def clients_fact(plan: Plan, seen: Observed) -> Fact:
    """Return whether every client is there, joining what the conductor misses with what the pods say."""
    troubles = [text for client in range(plan.clients) if (text := client_trouble(client, seen))]
    conductor = conductor_fact(seen)
    if troubles:
        texts = [_listed(troubles), *([conductor.message] if conductor else [])]
        return Fact(holds=False, reason=_clients_reason(plan, seen), message="; ".join(texts))
    if conductor is not None:
        return conductor
    if seen.all_registered:
        return Fact(
            holds=True,
            reason="Registered",
            message=f"{counted(plan.clients, 'client')} {have(plan.clients)} registered",
        )
    return Fact(holds=False, reason="Starting", message="clients are starting")


def conductor_fact(seen: Observed) -> Fact | None:
    """Return why no conductor is in charge; None if one is, or if it is not its turn yet."""
    job, pods = seen.conductor_job, seen.conductor_pods
    if job is None or seen.conductor_in_charge:
        return None
    message = f"the conductor {_conductor_trouble(job, pods[-1] if pods else None, seen)}"
    return Fact(holds=False, reason=_conductor_reason(job, seen), message=message)


def conductor_absent_since(seen: Observed) -> datetime | None:
    """Return since when no conductor has been in charge; None if one is, or if there is none to wait for.

    A conductor that runs and whose word cannot be read is left alone: it may be of another version.
    """
    job = seen.conductor_job
    silent = seen.state is None and any(pod.runs for pod in seen.conductor_pods)
    if job is None or job.complete or silent or seen.conductor_in_charge:
        return None
    changes = [pod.gone_by or pod.changed or pod.created for pod in seen.conductor_pods]
    return max(job.deleted or job.created, *changes) if changes else job.deleted or job.created


def not_running_fact(plan: Plan, seen: Observed) -> Fact:
    """Return which clients do not run though nothing is known to keep them from it: no pod, or no container yet."""
    texts = []
    for client in range(plan.clients):
        pod = seen.client_pod(client)
        if pod is None:
            texts.append(f"client {client} (Job {_newest_job(client, seen) or 'not made yet'}) has no pod")
        elif pod.phase != "Running":
            texts.append(f"client {client} (pod {pod.child.name} on {pod.node or 'no node'}) is {pod.phase}")
    return Fact(holds=False, reason="ClientsNotReady", message=_listed(texts) or "the conductor is not made yet")


def waiting_fact(storage: Fact, clients: Fact, seen: Observed) -> Fact:
    """Return what a run waits for: of volumes and clients the one that is the cause.

    A claim that waits for its first consumer is unbound because of the pod, not the other way round.
    """
    if storage.holds or clients.reason == "ImagePullFailed" or clients.reason in REFUSALS:
        return clients
    complaints = any(claim.child.uid in seen.warnings for claim in _unbound(seen))
    return clients if clients.reason == "Unschedulable" and not complaints else storage


def client_trouble(client: int, seen: Observed) -> str:
    """Return what keeps a client from taking part; empty if nothing is known to."""
    if refused := _refused_pod(client, seen):
        return refused
    pod = seen.client_pod(client)
    missing = _is_missed(client, seen)
    if pod is None:
        return f"client {client} has no pod yet" if missing else ""
    where = f"client {client} (pod {pod.child.name}{f' on {pod.node}' if pod.node else ''})"
    if pod.problem:
        return f"{where}: {pod.problem}"
    if pod.child.deleting:
        return f"{where} is being deleted; its node may be gone"
    if pod.phase == "Failed":
        return f"{where} failed: {pod.last_words}"
    return f"{where} is {pod.phase} and has not registered" if missing else ""


def worst_reason(pods: Sequence[PodFact]) -> str:
    """Return why pods do not run, in one word that names the remedy's place; empty if they do."""
    problems = " ".join(pod.problem for pod in pods)
    for words, reason in (
        (("ErrImage", "ImagePull", "InvalidImageName"), "ImagePullFailed"),
        (("Unschedulable", "SchedulerError"), "Unschedulable"),
        (("CrashLoop", "CreateContainer", "RunContainer"), "ContainerFailed"),
    ):
        if any(word in problems for word in words):
            return reason
    return ""


def waited_seconds(run: Run, now: datetime) -> float:
    """Return how long a run has been active since it was admitted, or last resumed; 0 if it is resumed only now.

    Of a run that was not admitted yet: since it was created. One that lost its place by resting has waited for nothing
    until it is admitted again.
    """
    since = run.start_time or run.created
    admitted, suspended = run.conditions.get(ConditionType.ADMITTED), run.conditions.get(ConditionType.SUSPENDED)
    if run.start_time is not None and admitted is not None:
        if admitted.status is not ConditionStatus.TRUE:
            return 0.0
        since = max(since, datetime.fromisoformat(admitted.last_transition_time))
    if suspended is not None and suspended.status is ConditionStatus.TRUE:
        return 0.0
    if suspended is not None:
        since = max(since, datetime.fromisoformat(suspended.last_transition_time))
    return (now - since).total_seconds()


def _is_missed(client: int, seen: Observed) -> bool:
    """Tell whether the conductor misses a client; what one said that is gone counts only if it was its last word."""
    if seen.state is None or not (seen.conductor_in_charge or seen.state.failure):
        return False
    return client in seen.state.missing


def _refused_pod(client: int, seen: Observed) -> str:
    """Return why a client's newest Job can make no pod; empty if nothing is known to keep it from that."""
    jobs = seen.client_jobs(client) if seen.warnings else []
    if not jobs or any((pod.client, pod.attempt) == (client, jobs[-1].attempt) for pod in seen.pods):
        return ""
    warning = seen.warnings.get(jobs[-1].child.uid)
    return f"client {client} (Job {jobs[-1].child.name}) has no pod: {warning}" if warning else ""


def _clients_reason(plan: Plan, seen: Observed) -> str:
    """Return the most telling of the clients' reasons."""
    refused = " ".join(_refused_pod(client, seen) for client in range(plan.clients)).strip()
    if refused:
        return reason_of_words(refused)
    pods = [pod for client in range(plan.clients) if (pod := seen.client_pod(client)) is not None]
    failed = any(pod.phase == "Failed" for pod in pods)
    worst = worst_reason(pods)
    if worst == "Unschedulable" and _unbound(seen) and _binds_immediately(plan):
        return "ClaimsNotBound"
    return worst or ("ClientFailed" if failed else "ClientsMissing")


def _unbound(seen: Observed) -> list[ClaimFact]:
    return [claim for claim in seen.claims if claim.phase != "Bound"]


def _binds_immediately(plan: Plan) -> bool:
    """Whether claims are bound before their pods have a node, so that pods without one wait for the claims."""
    storage_class = plan.environment.get("storageClass")
    mode = storage_class.get("volumeBindingMode") if isinstance(storage_class, Mapping) else None
    return mode == "Immediate" or needs_storage_class(plan)


def _conductor_trouble(job: JobFact, pod: PodFact | None, seen: Observed) -> str:
    warning = seen.warnings.get(job.child.uid, "")
    if pod is None:
        return f"(Job {job.child.name}) has no pod: {warning or 'none is made yet'}"
    where = f"(pod {pod.child.name}{f' on {pod.node}' if pod.node else ''})"
    if pod.problem:
        return f"{where} does not run: {pod.problem}"
    if pod.child.deleting:
        return f"{where} is being deleted; its node may be gone"
    if _has_ended(pod):
        return f"{where} ended: {pod.last_words}; {warning or 'its Job is about to start another'}"
    return f"{where} is {pod.phase} and has not taken over yet"


def _conductor_reason(job: JobFact, seen: Observed) -> str:
    pods = seen.conductor_pods
    warning = seen.warnings.get(job.child.uid, "")
    if warning and (not pods or _has_ended(pods[-1])):
        return reason_of_words(warning)
    return worst_reason(pods[-1:]) or "ConductorStarting"


def _has_ended(pod: PodFact) -> bool:
    return pod.phase in {"Failed", "Succeeded"}


def _newest_job(client: int, seen: Observed) -> str:
    jobs = seen.client_jobs(client)
    return jobs[-1].child.name if jobs else ""


def _listed(texts: Sequence[str]) -> str:
    more = f"; and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return "; ".join(texts[:_NAMED]) + more
