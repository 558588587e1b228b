"""The causes for which a run waits, and since when; and whether it has ended, and how.

The status shows the first cause that exists, as reason and message of Succeeded (Unknown) and Reconciling:

1. its finalizer (`missing_finalizer`),
2. objects of an earlier run with this name that are being deleted (`Observed.departing`),
3. the plan: the cluster is being inspected, or is not healthy (`provisioning.freeze`),
4. another version of the operator, which can read more than this one (`version_blocker`),
5. its turn in the queue (`queue.turn_of`),
6. its storage or its pods, whichever is the cause (`waiting_fact`); StorageReady and ClientsReady show both.

A refusal of the API server replaces the causes 3 and 6 (`refusals`). An end follows from the run's status, from the
conductor's report, or from the state of volumes and pods (`ending_of`).
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from plimsoll.api.names import RESULT_KIND, ConditionStatus, ConditionType, Verdict
from plimsoll.api.reasons import REFUSALS, remedy_of
from plimsoll.api.reasons.reason import Reason, read_reason
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import Measured, PodFact
from plimsoll.lifecycle.decision import Fact, RunEnding
from plimsoll.lifecycle.observed import Observed, age_seconds, is_own_plan
from plimsoll.lifecycle.provisioning import is_lost
from plimsoll.lifecycle.refusals import Refusal, refused_pod
from plimsoll.lifecycle.run import Run, Settings
from plimsoll.lifecycle.storage.registry import storage_of
from plimsoll.measure.checks.judge import main_reasons, ranked
from plimsoll.measure.text import are, count_text, first_few
from plimsoll.plan.document import Plan

_HELD_SECONDS = 60  # after which results are up to date with a conductor whose Job a sidecar keeps
_PROBLEMS = {
    **dict.fromkeys(("ErrImage", "ImagePull", "InvalidImageName"), Reason.IMAGE_PULL_FAILED),
    **dict.fromkeys(("Unschedulable", "SchedulerError"), Reason.UNSCHEDULABLE),
    **dict.fromkeys(("CrashLoop", "CreateContainer", "RunContainer"), Reason.CONTAINER_FAILED),
}
"""Word in the problem of a pod -> reason, the worst first."""

_RECORDS_REMEDY = "create the run again, and leave its results and its state alone until it ends"


def missing_finalizer(run: Run, seen: Observed) -> Fact | None:
    """Return why nothing is created for a run without its finalizer, which could be gone before its objects."""
    if run.is_protected:
        return None
    cause = f": {seen.refusal.asked}: {seen.refusal.words}" if seen.refusal else ""
    message = f"the finalizer {naming.FINALIZER} is not set, and nothing is created before it is{cause}"
    return Fact.true(Reason.FINALIZER_MISSING, message)


def version_blocker(run: Run, seen: Observed) -> Fact | None:
    """Return what this version cannot read of a run that another version started; None if nothing. It ends no run."""
    remedy = "use the operator version that wrote it, or a later one"
    if run.document is None:
        message = f"{run.spec_problem}. The run has started, so its pods continue, but no more are created; {remedy}"
        return Fact.true(Reason.SPEC_UNREADABLE, message)
    if seen.unreadable_results and seen.conductor_succeeded:
        results = f"{count_text(len(seen.unreadable_results), 'result')} ({first_few(seen.unreadable_results, 3)})"
        return Fact.true(Reason.RESULTS_UNREADABLE, f"this version cannot read the status of {results}; {remedy}")
    return None


def waiting_fact(storage: Fact, clients: Fact, seen: Observed) -> Fact:
    """Return the cause of a wait. A PVC that waits for its first consumer is unbound because of the pod."""
    if storage.holds or clients.reason is Reason.IMAGE_PULL_FAILED or clients.reason in REFUSALS:
        return clients
    complaints = any(claim.child.uid in seen.warnings for claim in seen.unbound_claims)
    return clients if clients.reason is Reason.UNSCHEDULABLE and not complaints else storage


def clients_fact(plan: Plan, seen: Observed) -> Fact:
    clients = range(plan.members)
    problems = [text for client in clients if (text := client_problem(client, seen))]
    conductor = conductor_fact(seen)
    if conductor is not None and conductor.reason is Reason.CONDUCTOR_STARTING and is_provisioning(plan, seen):
        # It starts together with the clients, which do not need it yet.
        conductor = None
    if problems:
        texts = [first_few(problems, 3, "; "), *([conductor.message] if conductor else [])]
        pods = [pod for client in clients if (pod := seen.client_pod(client)) is not None]
        has_failed = any(pod.phase == "Failed" for pod in pods)
        reason = _worst_reason(pods) or (Reason.CLIENT_FAILED if has_failed else Reason.CLIENTS_MISSING)
        return Fact.false(_refused_pods(clients, seen) or reason, "; ".join(texts))
    if conductor is not None:
        return conductor
    if seen.all_registered:
        servers = f" and {count_text(plan.server_count, 'server')}" if plan.servers else ""
        return Fact.true(Reason.REGISTERED, f"{count_text(plan.clients, 'client')}{servers} registered")
    warnings = first_few([text for client in clients if (text := _pod_warning(client, seen))], 3, "; ")
    return Fact.false(Reason.STARTING, f"clients are starting{'; ' if warnings else ''}{warnings}")


def conductor_fact(seen: Observed) -> Fact | None:
    job, pod = seen.conductor_job, seen.conductor_pods[-1] if seen.conductor_pods else None
    if job is None or seen.conductor_in_charge:
        return None
    warning = seen.warnings.get(job.child.uid, "")
    has_ended = pod is not None and pod.phase in {"Failed", "Succeeded"}
    if pod is None:
        problem = f"(Job {job.child.name}) has no pod: {warning or 'none is created yet'}"
    elif pod.problem:
        problem = f"{_place(pod)} is not running: {pod.problem}"
    elif pod.child.deleting:
        problem = f"{_place(pod)} is being deleted; its node may be gone"
    elif has_ended:
        problem = f"{_place(pod)} ended: {pod.exit_message}; {warning or 'its Job is about to create another pod'}"
    else:
        problem = f"{_place(pod)} is {pod.phase} and not active yet"
    reason = _worst_reason(seen.conductor_pods[-1:]) or Reason.CONDUCTOR_STARTING
    if pod is None or has_ended:
        reason = refused_pod(warning) or reason
    return Fact.false(reason, f"the conductor {problem}")


def client_problem(client: int, seen: Observed) -> str:
    """Return what prevents a client from taking part; empty if no problem is known."""
    if warning := _job_warning(client, seen):
        return f"client {client} (Job {seen.client_jobs(client)[-1].child.name}) has no pod: {warning}"
    pod = seen.client_pod(client)
    # The report of a conductor that is gone counts only if it failed.
    is_reported = seen.state is not None and bool(seen.conductor_in_charge or seen.state.failure)
    has_started = seen.has_gathered or (pod is not None and (pod.phase != "Pending" or pod.attempt > 0))
    missing = seen.state is not None and is_reported and has_started and client in seen.state.missing
    if pod is None:
        return f"client {client} has no pod yet" if missing else ""
    where = f"client {client} {_place(pod)}"
    if pod.problem:
        return f"{where}: {pod.problem}"
    if pod.child.deleting:
        return f"{where} is being deleted; its node may be gone"
    if pod.phase == "Failed":
        return f"{where} failed: {pod.exit_message}"
    return f"{where} is {pod.phase} and has not registered" if missing else ""


def _problems(clients: Sequence[int], seen: Observed) -> list[str]:
    return [text for client in clients[:3] if (text := client_problem(client, seen))]


def not_running_fact(plan: Plan, seen: Observed) -> Fact:
    """Return which clients have no pod or no running container although no problem is known."""
    texts = []
    for client in range(plan.members):
        pod = seen.client_pod(client)
        if pod is None:
            jobs = seen.client_jobs(client)
            texts.append(f"client {client} (Job {jobs[-1].child.name if jobs else 'not created yet'}) has no pod")
        elif pod.phase != "Running":
            state = f"client {client} (pod {pod.child.name} on {pod.node or 'no node'}) is {pod.phase}"
            texts.append(_pod_warning(client, seen) or state)
    message = first_few(texts, 3, "; ") or "the conductor is not created yet"
    return Fact.false(Reason.CLIENTS_NOT_READY, message)


def is_provisioning(plan: Plan, seen: Observed) -> bool:
    return seen.conductor_job is None or (is_gathering(seen) and pods_run_since(plan, seen) is None)


def is_gathering(seen: Observed) -> bool:
    """Whether the conductor's Job exists, but not all clients have registered with a conductor of it."""
    return seen.conductor_job is not None and not seen.has_gathered


def pods_run_since(plan: Plan, seen: Observed) -> datetime | None:
    """Return since when the newest pods of all clients have been running; None if they are not."""
    pods = [seen.client_pod(client) for client in range(plan.members)]
    times = [pod.changed or pod.created for pod in pods if pod is not None and pod.phase == "Running"]
    return max(times) if len(times) == plan.members else None


def waited_seconds(run: Run, now: datetime) -> float:
    """Return how long a run has waited since its creation, admission or resumption; 0 without a place, or suspended."""
    changes = {ConditionType.SUSPENDED, *([] if run.start_time is None else [ConditionType.ADMITTED])}
    known = changes & run.conditions.keys()
    has_place = ConditionType.ADMITTED not in known or run.holds(ConditionType.ADMITTED)
    if run.holds(ConditionType.SUSPENDED) or not has_place:
        return 0.0
    return (now - max([run.start_time or run.created, *map(run.last_transition, known)])).total_seconds()


def recorded_ending(run: Run) -> RunEnding | None:
    condition = run.conditions.get(ConditionType.SUCCEEDED)
    if condition is None or condition.status is ConditionStatus.UNKNOWN:
        return None
    holds = condition.status is ConditionStatus.TRUE
    return RunEnding(holds=holds, reason=read_reason(condition.reason), message=condition.message)


def conflict_ending(run: Run, seen: Observed) -> RunEnding | None:
    """Return the end of a run that another object, or the lack of its plan, makes impossible; None if none does."""
    damage = f"{seen.plan_problem}; delete the run and create it again" if seen.plan_problem else ""
    if seen.plan is not None and not is_own_plan(run, seen):
        damage = "its digest is not status.planSha256; delete the plan and the run, and create the run again"
    if damage:
        return RunEnding.false(Reason.PLAN_DAMAGED, f"the frozen plan is unusable: {damage}")
    if seen.refusal is not None and seen.refusal.reason is Reason.NAME_TAKEN:
        return RunEnding.false(Reason.NAME_TAKEN, seen.refusal.message)
    if seen.foreign_results:
        what = f"results of an earlier run with this name exist ({first_few(seen.foreign_results, 3)})"
        return RunEnding.false(Reason.RESULTS_EXIST, f"{what}; delete them and the run, or rename the run")
    if seen.plan is None and seen.name_taken:
        what = f"{seen.name_taken} does not belong to this run but occupies the plan's name"
        return RunEnding.false(Reason.NAME_TAKEN, f"{what}; delete it and the run, or rename the run")
    if seen.plan is None and run.start_time is not None:
        message = "the ConfigMap with the frozen plan was deleted; delete the run and create it again"
        return RunEnding.false(Reason.PLAN_MISSING, message)
    return None


def ending_of(run: Run, plan: Plan, seen: Observed, settings: Settings, now: datetime) -> RunEnding | None:
    """Return how a run ended; None while it is active. A suspended run misses no deadline."""
    ending = _conductor_failure(seen) or _missing_records(run, plan, seen) or _measured(plan, seen, now)
    if ending is not None or run.is_suspended or version_blocker(run, seen):
        return ending
    return (
        _conductor_timeout(run, plan, seen, now)
        or _clients_lost(plan, seen, settings)
        or _registration_timeout(plan, seen, now)
        or _provisioning_timeout(run, plan, seen, settings, now)
    )


def name_still_taken(seen: Observed, limit: int) -> RunEnding:
    first = seen.departing[0]
    what = f"{first} of an earlier run with this name still exists after timeouts.provisionSeconds ({limit} s)"
    message = f"{what}; check its finalizers and create the run again once it is gone, or rename the run"
    return RunEnding.false(Reason.RESULTS_EXIST if first.startswith(RESULT_KIND) else Reason.NAME_TAKEN, message)


def not_ready_in_time(cause: Fact | Refusal, limit: int) -> RunEnding:
    """Return the end of a run that waited too long for a cluster, volumes, pods, or the creation of an object."""
    reason = Reason.NAME_TAKEN if cause.reason is Reason.WAITING_FOR_EARLIER_RUN else cause.reason
    words = cause.message if isinstance(cause, Refusal) else f"{cause.message}; {remedy_of(reason)}"
    return RunEnding.false(reason, f"not ready within timeouts.provisionSeconds ({limit} s): {words}")


def _conductor_failure(seen: Observed) -> RunEnding | None:
    if seen.state is None or seen.state.failure is None:
        return None
    failure, missing = seen.state.failure, seen.state.missing
    problems = _problems(missing, seen)
    refused = _refused_pods(missing, seen)
    if missing and seen.refusal is not None:
        problems.append(seen.refusal.message)
        refused = refused or (None if seen.refusal.blocks_removal else seen.refusal.reason)
    reason = Reason(failure.reason)
    # The conductor knows that they are missing, but not why.
    if reason is Reason.CLIENTS_NOT_READY and refused in {Reason.QUOTA_EXCEEDED, Reason.API_REFUSED}:
        reason = refused
    return RunEnding.false(reason, ". ".join([failure.message, *problems]))


def _missing_records(run: Run, plan: Plan, seen: Observed) -> RunEnding | None:
    """Return the end of a run that lost a result or its state: a new one would silently lose what was recorded."""
    if not run.status.get("conductorStartTime") and seen.conductor_job is None:
        return None
    results, state = [point.name for point in plan.points], naming.state_config_map(run.name)
    missing = [f"{RESULT_KIND} {naming.result(run.name, name)}" for name in results if name not in seen.results]
    # At its end, a conductor has recorded everything in the results.
    if state not in seen.names("ConfigMap") and not seen.conductor_succeeded:
        missing.append(f"ConfigMap {state}")
    if not missing:
        return None
    lost = f"{first_few(missing, 3)} {'was' if len(missing) == 1 else 'were'} deleted, or no longer belonged to the run"
    message = f"{lost}, after its first conductor had started; {_RECORDS_REMEDY}"
    return RunEnding.false(Reason.RESULTS_INCOMPLETE, message)


def _measured(plan: Plan, seen: Observed, now: datetime) -> RunEnding | None:
    """Return the end of a measured run: every result is final, and the conductor has left Ceph as it found it."""
    job = seen.conductor_job
    final, points = sum(result.final for result in seen.results.values()), len(plan.points)
    is_released = seen.conductor_succeeded or (final == points and plan.ceph is None)
    if job is None or not is_released:
        return None
    if final < points:
        # Only Jobs are read before results: if just the pod has succeeded, the results may be out of date.
        done = (pod for pod in seen.conductor_pods if pod.phase == "Succeeded")
        has_ended = job.complete or any(age_seconds(pod.changed, now) > _HELD_SECONDS for pod in done)
        if not has_ended or seen.unreadable_results:
            return None
        finished = f"the conductor finished, but only {final} of {count_text(points, 'result')} {are(final)} final"
        message = f"{finished}; a result may have been changed; {_RECORDS_REMEDY}"
        return RunEnding.false(Reason.RESULTS_INCOMPLETE, message)
    results = [seen.results[point.name] for point in plan.points]
    invalid = [result for result in results if result.verdict is Verdict.INVALID]
    suspect = [result for result in results if result.verdict is Verdict.SUSPECT]
    if invalid:
        message = f"{len(invalid)} of {count_text(len(results), 'point')} {are(len(invalid))} Invalid"
        return RunEnding.false(Reason.INVALID_RESULTS, f"{message}: {_why(invalid)}")
    measured = "the only point is measured" if points == 1 else f"all {points} points are measured"
    if not suspect:
        return RunEnding.true(Reason.VALID, f"{measured} and Valid")
    suspects = " and" if points == 1 else f", {len(suspect)} {are(len(suspect))}"
    return RunEnding.true(Reason.SUSPECT, f"{measured}{suspects} Suspect: {_why(suspect)}")


def _why(results: Sequence[Measured]) -> str:
    """Return the reasons of results, and what to do about the most frequent one."""
    reasons = [result.reason for result in results]
    first = next(iter(ranked(reasons)), "")
    remedy = next(result.remedy for result in results if result.reason == first)
    return main_reasons(reasons) + (f". What to do about {first}: {remedy}" if remedy else "")


def _conductor_timeout(run: Run, plan: Plan, seen: Observed, now: datetime) -> RunEnding | None:
    job = seen.conductor_job
    if job is not None and job.failure:
        exits = "; ".join(text for pod in seen.conductor_pods if (text := pod.exit_message or pod.problem))
        return RunEnding.false(Reason.CONDUCTOR_FAILED, f"{job.failure} {exits}".strip())
    fact, limit = conductor_fact(seen), plan.timeouts.ready_seconds
    absent = min(age_seconds(_conductor_absent_since(run, seen), now), waited_seconds(run, now))
    if is_gathering(seen):
        # It was created together with the clients' pods, and has nothing to do before they run.
        absent = min(absent, age_seconds(pods_run_since(plan, seen), now))
    if fact is None or absent <= limit:
        return None
    message = f"no conductor was active within timeouts.readySeconds ({limit} s): {fact.message}"
    reason = fact.reason if fact.reason in REFUSALS else Reason.CONDUCTOR_NOT_READY
    return RunEnding.false(reason, f"{message}; {remedy_of(fact.reason)}")


def _conductor_absent_since(run: Run, seen: Observed) -> datetime | None:
    """Return since when no conductor has been active; None if one is, or may be, or none is expected."""
    job = seen.conductor_job
    unreadable = seen.state is None and any(pod.is_running for pod in seen.conductor_pods)
    if job is None or seen.conductor_succeeded or unreadable or seen.conductor_in_charge:
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
    limit = settings.max_client_restarts + 1
    for client in range(plan.members):
        jobs = seen.client_jobs(client)
        if len(jobs) >= limit and is_lost(jobs[-1], seen):
            problem = client_problem(client, seen) or f"client {client} was lost"
            message = f"{problem}; it was lost {limit} times, the limit; {remedy_of(Reason.CLIENT_FAILED)}"
            return RunEnding.false(Reason.CLIENTS_FAILED, message)
    return None


def _registration_timeout(plan: Plan, seen: Observed, now: datetime) -> RunEnding | None:
    """Return the end of a run whose clients run but do not register; the conductor cannot tell when they started."""
    since, limit = pods_run_since(plan, seen), plan.timeouts.ready_seconds
    if since is None or seen.state is None or not (is_gathering(seen) and seen.conductor_in_charge):
        return None
    missing, conductor = seen.state.missing, [pod.changed for pod in seen.conductor_pods if pod.changed]
    if not missing or age_seconds(max([since, *conductor]), now) <= limit:
        return None
    names = first_few([f"client {client}" for client in missing], 3)
    message = f"{names} did not register within timeouts.readySeconds ({limit} s)"
    return RunEnding.false(Reason.CLIENTS_NOT_READY, ". ".join([message, *_problems(missing, seen)]))


def _provisioning_timeout(run: Run, plan: Plan, seen: Observed, settings: Settings, now: datetime) -> RunEnding | None:
    """Return the end of a run whose volumes or pods were not ready in time; `readySeconds` limits what follows."""
    limit = plan.timeouts.provision_seconds
    if run.start_time is None or not is_provisioning(plan, seen):
        return None
    if waited_seconds(run, now) <= limit or _is_coming_back(run, plan, seen, now):
        return None
    if seen.refusal is not None and not seen.refusal.blocks_removal:
        return not_ready_in_time(seen.refusal, limit)
    storage = storage_of(run, seen, settings, now).fact()
    fact = waiting_fact(storage, clients_fact(plan, seen), seen)
    if fact.reason is Reason.STARTING:
        fact = not_running_fact(plan, seen)
    return not_ready_in_time(fact, limit)


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


def _worst_reason(pods: Sequence[PodFact]) -> Reason | None:
    problems = " ".join(pod.problem for pod in pods)
    return next((reason for word, reason in _PROBLEMS.items() if word in problems), None)


def _job_warning(client: int, seen: Observed) -> str:
    """Return why a client's newest Job cannot create a pod; empty if no reason is known."""
    jobs = seen.client_jobs(client) if seen.warnings else []
    if not jobs or any(pod.attempt == jobs[-1].attempt for pod in seen.client_pods(client)):
        return ""
    return seen.warnings.get(jobs[-1].child.uid, "")


def _refused_pods(clients: Iterable[int], seen: Observed) -> Reason | None:
    """Return why the API server refuses one of these clients' pods; None if it refuses none."""
    return next(filter(None, (refused_pod(_job_warning(client, seen)) for client in clients)), None)


def _pod_warning(client: int, seen: Observed) -> str:
    """Return the newest warning about a client's pod whose containers are not created; empty if there is none."""
    pod = seen.client_pod(client)
    warning = seen.warnings.get(pod.child.uid, "") if pod is not None and pod.phase == "Pending" else ""
    return f"client {client} {_place(pod)} is Pending: {warning}" if pod is not None and warning else ""


def _place(pod: PodFact) -> str:
    return f"(pod {pod.child.name}{f' on {pod.node}' if pod.node else ''})"
