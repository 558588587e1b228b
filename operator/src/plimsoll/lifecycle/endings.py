"""Has the run ended, and how? Read from what the conductor said and what became of the pods."""

from datetime import datetime

from plimsoll.api.names import Verdict
from plimsoll.lifecycle import provisioning
from plimsoll.lifecycle.decision import Ending
from plimsoll.lifecycle.observed import Observed, age_seconds
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.settings import Settings
from plimsoll.plan.document import Plan

_REMEDY = {
    "ImagePullFailed": "check the runner image and imagePullSecrets",
    "Unschedulable": "free or add nodes, lower clients.count or clients.resources, or set clients.spread: Preferred",
    "ContainerFailed": "look at the pod's events",
    "ClientFailed": "look at the client's last words",
    "ClaimsNotBound": "check the StorageClass, its provisioner and its capacity",
    "ClientsNotReady": "look at the events of these Jobs and pods",
}


def ending_of(run: Run, plan: Plan, seen: Observed, settings: Settings, now: datetime) -> Ending | None:
    """Return how a run ended; None while it goes on. A run that is suspended misses nothing, and no deadline."""
    ending = _failed_by_conductor(plan, seen) or _measured(plan, seen)
    if ending is not None or run.is_suspended:
        return ending
    return (
        _conductor_gave_up(plan, seen, now)
        or _clients_gave_up(plan, seen, settings)
        or _not_provisioned(run, plan, seen, now)
    )


def said_before(run: Run) -> Ending | None:
    """Return how a run ended according to its status: what was said once stays, whatever becomes of its objects."""
    condition = run.conditions.get("Succeeded")
    if condition is None or condition["status"] == "Unknown":
        return None
    return Ending(
        succeeded=condition["status"] == "True", reason=condition["reason"], message=condition.get("message", "")
    )


def _failed_by_conductor(plan: Plan, seen: Observed) -> Ending | None:
    """Return the conductor's own word, joined with what the pods of the clients it misses say."""
    if seen.state is None or seen.state.failure is None:
        return None
    failure = seen.state.failure
    clients = provisioning.clients_fact(plan, seen)
    details = f". {clients.message}" if seen.state.missing and clients.message else ""
    return Ending(succeeded=False, reason=failure.reason, message=f"{failure.message}{details}")


def _measured(plan: Plan, seen: Observed) -> Ending | None:
    """Measured means both: the conductor's Job is complete, and every result is final. Its state is for showing."""
    job = seen.conductor_job
    if job is None or not job.complete:
        return None
    verdicts = [seen.results[point.name].verdict for point in plan.points if point.name in seen.results]
    final = sum(result.final for result in seen.results.values())
    if final < len(plan.points):
        message = (
            f"the conductor is done, but only {final} of {len(plan.points)} results are final; was one deleted or "
            "changed? run it again"
        )
        return Ending(succeeded=False, reason="ResultsIncomplete", message=message)
    invalid = verdicts.count(Verdict.INVALID)
    suspect = verdicts.count(Verdict.SUSPECT)
    if invalid:
        message = f"{invalid} of {len(verdicts)} points are Invalid; their findings say why: kubectl get bres"
        return Ending(succeeded=False, reason="InvalidResults", message=message)
    if suspect:
        message = f"all {len(verdicts)} points are measured, {suspect} are Suspect; their findings say why"
        return Ending(succeeded=True, reason="Suspect", message=message)
    return Ending(succeeded=True, reason="Valid", message=f"all {len(verdicts)} points are measured and Valid")


def _conductor_gave_up(plan: Plan, seen: Observed, now: datetime) -> Ending | None:
    job = seen.conductor_job
    if job is None:
        return None
    words = "; ".join(pod.last_words or pod.problem for pod in seen.conductor_pods if pod.last_words or pod.problem)
    if job.failure:
        return Ending(succeeded=False, reason="ConductorFailed", message=f"{job.failure} {words}".strip())
    runs = any(pod.phase == "Running" for pod in seen.conductor_pods)
    late = age_seconds(job.created, now) > plan.timeouts.ready_seconds
    if late and not runs and not job.complete and (seen.state is None or not seen.state.epoch):
        message = f"the conductor does not run after {plan.timeouts.ready_seconds} s: {words or 'no pod'}"
        return Ending(succeeded=False, reason="ConductorNotReady", message=message)
    return None


def _clients_gave_up(plan: Plan, seen: Observed, settings: Settings) -> Ending | None:
    for client in range(plan.clients):
        if provisioning.is_out_of_restarts(client, seen, settings):
            trouble = provisioning.client_trouble(client, seen) or f"client {client} was lost"
            message = f"{trouble}; it was lost {settings.max_client_restarts + 1} times; {_REMEDY['ClientFailed']}"
            return Ending(succeeded=False, reason="ClientsFailed", message=message)
    return None


def _not_provisioned(run: Run, plan: Plan, seen: Observed, now: datetime) -> Ending | None:
    """Give up on volumes and pods that do not come; once there is a conductor, it is the one who waits."""
    limit = plan.timeouts.provision_seconds
    if seen.conductor_job is not None or provisioning.waited_seconds(run, now) <= limit:
        return None
    storage, clients = provisioning.storage_fact(plan, seen), provisioning.clients_fact(plan, seen)
    pods = provisioning.worst_reason(seen.pods)
    # A claim that waits for its first consumer is unbound because of the pod, not the other way round.
    fact = clients if pods == "ImagePullFailed" or storage.holds else storage
    if fact is storage and pods == "Unschedulable" and not seen.claim_events:
        fact = clients
    if fact.reason == "Starting":
        fact = provisioning.not_running_fact(plan, seen)
    remedy = _REMEDY.get(fact.reason, "look at the pods of the run")
    message = f"not ready within timeouts.provisionSeconds ({limit} s): {fact.message}; {remedy}"
    return Ending(succeeded=False, reason=fact.reason, message=message)
