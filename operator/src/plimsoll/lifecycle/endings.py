"""Whether a run has ended, and how, from its status, the conductor's report, and the state of volumes and pods."""

from datetime import datetime

from plimsoll.api.names import RESULT_KIND, ConditionStatus, ConditionType, Verdict
from plimsoll.api.reasons import remedy_of
from plimsoll.api.reasons.reason import Reason, read_reason
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.decision import Fact, Refusal, RunEnding
from plimsoll.lifecycle.observed import Observed, age_seconds, is_own_plan
from plimsoll.lifecycle.provisioning import is_lost
from plimsoll.lifecycle.run import Run, are, counted, listed
from plimsoll.lifecycle.settings import Settings
from plimsoll.lifecycle.storage.registry import storage_of
from plimsoll.lifecycle.waiting import (
    client_problem,
    clients_fact,
    conductor_fact,
    is_gathering,
    is_provisioning,
    not_running_fact,
    pods_run_since,
    version_blocker,
    waited_seconds,
    waiting_fact,
)
from plimsoll.measure.checks.judge import main_reasons
from plimsoll.plan.document import Plan

_MAX_NAMES = 3

_FINDINGS = "kubectl get bres shows the findings"
_RECORDS_REMEDY = "create the run again, and leave its results and its state alone until it ends"


def recorded_ending(run: Run) -> RunEnding | None:
    """Return how a run ended according to its status, which no later observation changes."""
    condition = run.conditions.get(ConditionType.SUCCEEDED)
    if condition is None or condition.status is ConditionStatus.UNKNOWN:
        return None
    succeeded = condition.status is ConditionStatus.TRUE
    return RunEnding(succeeded=succeeded, reason=read_reason(condition.reason), message=condition.message)


def obstacle(run: Run, seen: Observed) -> RunEnding | None:
    """Return which existing or missing object makes a run impossible; None if none does."""
    damage = ""
    if seen.plan_problem:
        damage = f"{seen.plan_problem}; delete the run and create it again"
    elif seen.plan is not None and not is_own_plan(run, seen):
        damage = "its digest is not status.planSha256; delete the plan and the run, and create the run again"
    if damage:
        return RunEnding.failure(Reason.PLAN_DAMAGED, f"the frozen plan is unusable: {damage}")
    if seen.refusal is not None and seen.refusal.reason is Reason.NAME_TAKEN:
        return RunEnding.failure(Reason.NAME_TAKEN, seen.refusal.message)
    if seen.foreign_results:
        message = (
            f"results of an earlier run with this name exist ({listed(seen.foreign_results)}); delete them and the "
            "run, or rename the run"
        )
        return RunEnding.failure(Reason.RESULTS_EXIST, message)
    if seen.plan is None and seen.name_taken:
        message = (
            f"{seen.name_taken} does not belong to this run but occupies the plan's name; delete it and the run, or "
            "rename the run"
        )
        return RunEnding.failure(Reason.NAME_TAKEN, message)
    if seen.plan is None and run.start_time is not None:
        message = "the ConfigMap with the frozen plan was deleted; delete the run and create it again"
        return RunEnding.failure(Reason.PLAN_MISSING, message)
    return None


def ending_of(run: Run, plan: Plan, seen: Observed, settings: Settings, now: datetime) -> RunEnding | None:
    """Return how a run ended; None while it is active. A suspended run misses no deadline."""
    ending = _conductor_failure(seen) or _missing_records(run, plan, seen) or _measured(plan, seen)
    if ending is not None or run.is_suspended or version_blocker(run, seen):
        return ending
    return (
        _conductor_timeout(run, plan, seen, now)
        or _clients_lost(plan, seen, settings)
        or _registration_timeout(plan, seen, now)
        or _provisioning_timeout(run, plan, seen, settings, now)
    )


def name_still_taken(seen: Observed, limit: int) -> RunEnding:
    """Return the end of a run whose name the objects of an earlier one keep occupying."""
    first = seen.departing[0]
    message = (
        f"{first} of an earlier run with this name still exists after timeouts.provisionSeconds ({limit} s); check "
        "its finalizers and create the run again once it is gone, or rename the run"
    )
    return RunEnding.failure(Reason.RESULTS_EXIST if first.startswith(RESULT_KIND) else Reason.NAME_TAKEN, message)


def refused_too_long(refusal: Refusal, limit: int) -> RunEnding:
    """Return the end of a run for which an object could not be created."""
    reason = Reason.NAME_TAKEN if refusal.reason is Reason.WAITING_FOR_EARLIER_RUN else refusal.reason
    return RunEnding.failure(reason, f"{_not_ready(limit)}: {refusal.message}")


def not_ready_too_long(fact: Fact, limit: int) -> RunEnding:
    """Return the end of a run that waited too long for a cluster, volumes or pods."""
    return RunEnding.failure(fact.reason, f"{_not_ready(limit)}: {fact.message}; {remedy_of(fact.reason)}")


def _conductor_failure(seen: Observed) -> RunEnding | None:
    if seen.state is None or seen.state.failure is None:
        return None
    failure, missing = seen.state.failure, seen.state.missing
    problems = [text for client in missing[:_MAX_NAMES] if (text := client_problem(client, seen))]
    if missing and seen.refusal is not None:
        problems.append(seen.refusal.message)
    return RunEnding.failure(Reason(failure.reason), ". ".join([failure.message, *problems]))


def _missing_records(run: Run, plan: Plan, seen: Observed) -> RunEnding | None:
    """Return the end of a run with a deleted result or state, from its first conductor on; None if all exist.

    With a new one it would measure again, and what was recorded would be gone without a trace. Before the first
    conductor, nothing is recorded, and `provisioning` creates what is missing.
    """
    if run.conductor_start_time is None and seen.conductor_job is None:
        return None
    results, state = [point.name for point in plan.points], naming.state_config_map(run.name)
    missing = [f"{RESULT_KIND} {naming.result(run.name, name)}" for name in results if name not in seen.results]
    # At its end, a conductor has recorded everything in the results.
    if state not in seen.names("ConfigMap") and not seen.conductor_succeeded:
        missing.append(f"ConfigMap {state}")
    if not missing:
        return None
    message = (
        f"{listed(missing)} {'was' if len(missing) == 1 else 'were'} deleted, or taken from the run, after its first "
        f"conductor had started; {_RECORDS_REMEDY}"
    )
    return RunEnding.failure(Reason.RESULTS_INCOMPLETE, message)


def _measured(plan: Plan, seen: Observed) -> RunEnding | None:
    """Return the end of a measured run: the conductor has succeeded and every result is final.

    The conductor's state is only for display.
    """
    job = seen.conductor_job
    if job is None or not seen.conductor_succeeded:
        return None
    final, points = sum(result.final for result in seen.results.values()), len(plan.points)
    if final < points:
        # Only Jobs are read before results: if just the pod has succeeded, the results may be out of date.
        if not job.complete or seen.unreadable_results:
            return None
        finished = f"the conductor finished, but only {final} of {counted(points, 'result')} {are(final)} final"
        message = f"{finished}; a result may have been changed; {_RECORDS_REMEDY}"
        return RunEnding.failure(Reason.RESULTS_INCOMPLETE, message)
    results = [seen.results[point.name] for point in plan.points]
    invalid = [result.reason for result in results if result.verdict is Verdict.INVALID]
    suspect = [result.reason for result in results if result.verdict is Verdict.SUSPECT]
    if invalid:
        message = f"{len(invalid)} of {counted(len(results), 'point')} {are(len(invalid))} Invalid"
        return RunEnding.failure(Reason.INVALID_RESULTS, f"{message}: {main_reasons(invalid)}; {_FINDINGS}")
    measured = "the only point is measured" if len(results) == 1 else f"all {len(results)} points are measured"
    if not suspect:
        return RunEnding(succeeded=True, reason=Reason.VALID, message=f"{measured} and Valid")
    suspects = " and" if len(results) == 1 else f", {len(suspect)} {are(len(suspect))}"
    message = f"{measured}{suspects} Suspect: {main_reasons(suspect)}; {_FINDINGS}"
    return RunEnding(succeeded=True, reason=Reason.SUSPECT, message=message)


def _conductor_timeout(run: Run, plan: Plan, seen: Observed, now: datetime) -> RunEnding | None:
    """Return the end of a run whose conductor's Job failed, or that had no active conductor for too long."""
    job = seen.conductor_job
    if job is not None and job.failure:
        exits = "; ".join(text for pod in seen.conductor_pods if (text := pod.exit_message or pod.problem))
        return RunEnding.failure(Reason.CONDUCTOR_FAILED, f"{job.failure} {exits}".strip())
    fact, limit = conductor_fact(seen), plan.timeouts.ready_seconds
    absent = min(age_seconds(_conductor_absent_since(run, seen), now), waited_seconds(run, now))
    if is_gathering(seen):
        # It was created together with the clients' pods, and has nothing to do before they run.
        absent = min(absent, age_seconds(pods_run_since(plan, seen), now))
    if fact is None or absent <= limit:
        return None
    message = f"no conductor was active within timeouts.readySeconds ({limit} s): {fact.message}"
    return RunEnding.failure(Reason.CONDUCTOR_NOT_READY, f"{message}; {remedy_of(fact.reason)}")


def _conductor_absent_since(run: Run, seen: Observed) -> datetime | None:
    """Return since when no conductor has been active; None if one is, or if none is expected.

    A running conductor whose state cannot be read does not count as absent: it may be of another version.
    """
    job = seen.conductor_job
    unreadable = seen.state is None and any(pod.is_running for pod in seen.conductor_pods)
    if job is None or job.complete or unreadable or seen.conductor_in_charge:
        return None
    since = [job.deleted or job.created]
    since += [pod.gone_by or pod.changed or pod.created for pod in seen.conductor_pods]
    if not seen.conductor_pods and ConditionType.CLIENTS_READY in run.conditions:
        # A pod that was deleted leaves nothing: only the status shows that there was a conductor until now.
        if run.holds(ConditionType.CLIENTS_READY):
            return None
        since.append(run.last_transition(ConditionType.CLIENTS_READY))
    return max(since)


def _clients_lost(plan: Plan, seen: Observed, settings: Settings) -> RunEnding | None:
    for client in range(plan.members):
        jobs = seen.client_jobs(client)
        if len(jobs) > settings.max_client_restarts and is_lost(jobs[-1], seen):
            problem = client_problem(client, seen) or f"client {client} was lost"
            times = settings.max_client_restarts + 1
            message = f"{problem}; it was lost {times} times, the limit; {remedy_of(Reason.CLIENT_FAILED)}"
            return RunEnding.failure(Reason.CLIENTS_FAILED, message)
    return None


def _registration_timeout(plan: Plan, seen: Observed, now: datetime) -> RunEnding | None:
    """Return the end of a run whose clients run but do not register: the conductor does not know when they started."""
    since, limit = pods_run_since(plan, seen), plan.timeouts.ready_seconds
    if since is None or seen.state is None or not (is_gathering(seen) and seen.conductor_in_charge):
        return None
    missing, conductor = seen.state.missing, [pod.changed for pod in seen.conductor_pods if pod.changed]
    if not missing or age_seconds(max([since, *conductor]), now) <= limit:
        return None
    names = listed([f"client {client}" for client in missing])
    message = f"{names} did not register within timeouts.readySeconds ({limit} s)"
    problems = [text for client in missing[:_MAX_NAMES] if (text := client_problem(client, seen))]
    return RunEnding.failure(Reason.CLIENTS_NOT_READY, ". ".join([message, *problems]))


def _provisioning_timeout(run: Run, plan: Plan, seen: Observed, settings: Settings, now: datetime) -> RunEnding | None:
    """Return the end of a run whose volumes or pods were not ready in time; `readySeconds` limits what follows."""
    limit = plan.timeouts.provision_seconds
    if run.start_time is None or not is_provisioning(plan, seen):
        return None
    if waited_seconds(run, now) <= limit or _is_coming_back(run, plan, seen, now):
        return None
    if seen.refusal is not None and not seen.refusal.blocks_removal:
        return refused_too_long(seen.refusal, limit)
    storage = storage_of(run, seen, settings, now).fact()
    fact = waiting_fact(storage, clients_fact(run, plan, seen), seen)
    if fact.reason is Reason.STARTING:
        fact = not_running_fact(plan, seen)
    return not_ready_too_long(fact, limit)


def _is_coming_back(run: Run, plan: Plan, seen: Observed, now: datetime) -> bool:
    """Whether a run that was complete a moment ago replaces a lost client, or a conductor's Job that was deleted."""
    if seen.conductor_job is None:
        return run.holds(ConditionType.CLIENTS_READY)
    replaced = []
    for job in (jobs[-1] for client in range(plan.members) if (jobs := seen.client_jobs(client))):
        pods = [pod for pod in seen.client_pods(job.client) if pod.attempt == job.attempt]
        if is_lost(job, seen) or any(pod.phase == "Failed" for pod in pods):
            times = [job.deleted, *(pod.gone_by or pod.changed for pod in pods)]
            replaced.append(max((time for time in times if time), default=job.created))
        elif job.attempt:
            replaced.append(job.created)
    return bool(replaced) and age_seconds(max(replaced), now) <= plan.timeouts.ready_seconds


def _not_ready(limit: int) -> str:
    return f"not ready within timeouts.provisionSeconds ({limit} s)"
