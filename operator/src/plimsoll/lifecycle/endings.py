"""Has the run ended, and how? Read from what the conductor said and what became of the pods."""

from collections.abc import Sequence
from datetime import datetime

from plimsoll.api.names import ConditionStatus, ConditionType, Verdict
from plimsoll.lifecycle import provisioning, readiness
from plimsoll.lifecycle.decision import Ending, Fact
from plimsoll.lifecycle.measured import Measured
from plimsoll.lifecycle.observed import Observed, age_seconds
from plimsoll.lifecycle.refusal import REASONS as REFUSALS
from plimsoll.lifecycle.refusal import Refusal, remedy_of
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.settings import Settings
from plimsoll.lifecycle.wording import are, counted
from plimsoll.measure.checking.reasons import main_reasons
from plimsoll.plan.document import Plan

_NAMED = 3

_REMEDY = {
    "ImagePullFailed": "check the runner image and imagePullSecrets",
    "Unschedulable": "free or add nodes, lower clients.count or clients.resources, or set clients.spread: Preferred",
    "ContainerFailed": "look at the pod's events",
    "ClientFailed": "look at the client's last words",
    "ClaimsNotBound": "check the StorageClass, its provisioner and its capacity",
    "PoolNotReady": "look at the CephBlockPool and at the log of Rook's operator, or raise timeouts.provisionSeconds",
    "PoolFailed": "change spec.storage.rook.pool to what the cluster can place",
    "UserNotReady": "look at the CephClient and at the log of Rook's operator",
    "UserFailed": "look at the CephClient and at the log of Rook's operator",
    "KeySecretsTaken": "delete runs whose storage is kept",
    "RookNotFound": "install Rook, and create the run anew",
    "CephClusterNotReady": "look at the CephCluster, and create the run anew when it is well",
    "ClientsNotReady": "look at the events of these Jobs and pods",
    "ConductorStarting": "look at the events of the conductor's Job and pod, and at its log",
    **{reason: remedy_of(reason) for reason in REFUSALS},
}

_FINDINGS = "the findings of kubectl get bres say more"


def ending_of(run: Run, plan: Plan, seen: Observed, settings: Settings, now: datetime) -> Ending | None:
    """Return how a run ended; None while it goes on. A run that is suspended misses nothing, and no deadline."""
    ending = _failed_by_conductor(seen) or _measured(plan, seen)
    if ending is not None or run.is_suspended or hindrance(run, seen):
        return ending
    return (
        _conductor_gave_up(run, plan, seen, now)
        or _clients_gave_up(plan, seen, settings)
        or _not_provisioned(run, plan, seen, now)
    )


def hindrance(run: Run, seen: Observed) -> Fact | None:
    """Return what this version cannot read of a run that another one began; None if it can. That does not end a run."""
    remedy = "use the version of the operator that wrote it, or a later one"
    if run.document is None:
        message = f"{run.spec_problem}. The run was begun, so what runs goes on, but nothing more is made; {remedy}"
        return Fact(holds=True, reason="SpecUnreadable", message=message)
    job = seen.conductor_job
    if seen.unreadable_results and job is not None and job.complete:
        names = ", ".join(seen.unreadable_results[:_NAMED])
        message = f"the status of {counted(len(seen.unreadable_results), 'result')} cannot be read: {names}; {remedy}"
        return Fact(holds=True, reason="ResultsUnreadable", message=message)
    return None


def said_before(run: Run) -> Ending | None:
    """Return how a run ended according to its status: what was said once stays, whatever becomes of its objects."""
    condition = run.conditions.get(ConditionType.SUCCEEDED)
    if condition is None or condition.status is ConditionStatus.UNKNOWN:
        return None
    succeeded = condition.status is ConditionStatus.TRUE
    return Ending(succeeded=succeeded, reason=condition.reason, message=condition.message)


def _failed_by_conductor(seen: Observed) -> Ending | None:
    """Return the conductor's own word, joined with what is known of the clients it misses."""
    if seen.state is None or seen.state.failure is None:
        return None
    failure, missing = seen.state.failure, seen.state.missing
    known = [text for client in missing[:_NAMED] if (text := readiness.client_trouble(client, seen))]
    if missing and seen.refusal is not None:
        known.append(seen.refusal.message)
    return Ending(succeeded=False, reason=failure.reason, message=". ".join([failure.message, *known]))


def _measured(plan: Plan, seen: Observed) -> Ending | None:
    """Measured means both: the conductor's Job is complete, and every result is final. Its state is for showing."""
    job = seen.conductor_job
    if job is None or not job.complete:
        return None
    results = [seen.results[point.name] for point in plan.points if point.name in seen.results]
    final = sum(result.final for result in seen.results.values())
    if final < len(plan.points) and seen.unreadable_results:
        return None
    if final < len(plan.points):
        message = (
            f"the conductor is done, but only {final} of {counted(len(plan.points), 'result')} {are(final)} final; was "
            "one deleted or changed? run it again"
        )
        return Ending(succeeded=False, reason="ResultsIncomplete", message=message)
    invalid = [result for result in results if result.verdict is Verdict.INVALID]
    suspect = [result for result in results if result.verdict is Verdict.SUSPECT]
    if invalid:
        message = f"{len(invalid)} of {counted(len(results), 'point')} {are(len(invalid))} Invalid"
        message = f"{message}: {_main_reasons(invalid)}; {_FINDINGS}"
        return Ending(succeeded=False, reason="InvalidResults", message=message)
    if suspect:
        suspects = " and" if len(results) == 1 else f", {len(suspect)} {are(len(suspect))}"
        message = f"{_all_measured(results)}{suspects} Suspect: {_main_reasons(suspect)}"
        return Ending(succeeded=True, reason="Suspect", message=f"{message}; {_FINDINGS}")
    return Ending(succeeded=True, reason="Valid", message=f"{_all_measured(results)} and Valid")


def _all_measured(results: Sequence[Measured]) -> str:
    return "the only point is measured" if len(results) == 1 else f"all {len(results)} points are measured"


def _main_reasons(results: Sequence[Measured]) -> str:
    return main_reasons(result.reason for result in results)


def _conductor_gave_up(run: Run, plan: Plan, seen: Observed, now: datetime) -> Ending | None:
    """Give up on a conductor whose Job has failed, or on one, be it the first or a later one, that does not come."""
    job = seen.conductor_job
    if job is not None and job.failure:
        words = "; ".join(pod.last_words or pod.problem for pod in seen.conductor_pods if pod.last_words or pod.problem)
        return Ending(succeeded=False, reason="ConductorFailed", message=f"{job.failure} {words}".strip())
    fact, since, limit = (
        readiness.conductor_fact(seen),
        readiness.conductor_absent_since(seen),
        plan.timeouts.ready_seconds,
    )
    absent = min(age_seconds(since, now), readiness.waited_seconds(run, now))
    if fact is None or absent <= limit:
        return None
    message = f"no conductor is in charge within timeouts.readySeconds ({limit} s): {fact.message}"
    return Ending(succeeded=False, reason="ConductorNotReady", message=f"{message}; {_REMEDY[fact.reason]}")


def _clients_gave_up(plan: Plan, seen: Observed, settings: Settings) -> Ending | None:
    for client in range(plan.clients):
        if provisioning.is_out_of_restarts(client, seen, settings):
            trouble = readiness.client_trouble(client, seen) or f"client {client} was lost"
            message = f"{trouble}; it was lost {settings.max_client_restarts + 1} times; {_REMEDY['ClientFailed']}"
            return Ending(succeeded=False, reason="ClientsFailed", message=message)
    return None


def _not_provisioned(run: Run, plan: Plan, seen: Observed, now: datetime) -> Ending | None:
    """Give up on volumes and pods that do not come; once there is a conductor, it is the one who waits."""
    limit = plan.timeouts.provision_seconds
    if run.start_time is None or seen.conductor_job is not None or readiness.waited_seconds(run, now) <= limit:
        return None
    if seen.refusal is not None and not seen.refusal.hinders_removal:
        return refused_too_long(seen.refusal, limit)
    fact = readiness.waiting_fact(readiness.storage_fact(plan, seen), readiness.clients_fact(plan, seen), seen)
    if fact.reason == "Starting":
        fact = readiness.not_running_fact(plan, seen)
    remedy = _REMEDY.get(fact.reason, "look at the pods of the run")
    return Ending(succeeded=False, reason=fact.reason, message=f"{_not_ready(limit)}: {fact.message}; {remedy}")


def refused_too_long(refusal: Refusal, limit: int) -> Ending:
    """Return the end of a run for which something could not be made."""
    reason = "NameTaken" if refusal.reason == "WaitingForEarlierRun" else refusal.reason
    return Ending(succeeded=False, reason=reason, message=f"{_not_ready(limit)}: {refusal.message}")


def not_ready_too_long(fact: Fact, limit: int) -> Ending:
    """Return the end of a run for which a cluster does not become usable."""
    message = f"{_not_ready(limit)}: {fact.message}; {_REMEDY[fact.reason]}"
    return Ending(succeeded=False, reason=fact.reason, message=message)


def _not_ready(limit: int) -> str:
    return f"not ready within timeouts.provisionSeconds ({limit} s)"
