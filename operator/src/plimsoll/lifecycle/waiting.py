"""What a run waits for, and since when.

`step` checks the causes in this order, and the status shows the first that exists, as reason and message of Succeeded
(Unknown) and Reconciling, and in `display`:

1. objects of an earlier run with this name that are being deleted (`Observed.departing`),
2. the plan: the cluster is being inspected, or is not healthy (`provisioning.freeze`),
3. another version of the operator, which can read what this one cannot (`version_blocker`),
4. its turn in the queue (`queue.turn_of`),
5. its storage, such as PVCs (`Claims.ready`), or its pods (`clients_fact`), whichever is the cause (`waiting_fact`);
   the conditions StorageReady and ClientsReady show both.

In place of 2 and 5, the status shows the request that the API server has refused, if there is one (`Observed.refusal`).
"""

from collections.abc import Sequence
from datetime import datetime

from plimsoll.api.names import ConditionType
from plimsoll.api.reasons import REFUSALS
from plimsoll.api.reasons.reason import Reason
from plimsoll.lifecycle.children import PodFact
from plimsoll.lifecycle.decision import Fact, reason_of_words
from plimsoll.lifecycle.observed import Observed
from plimsoll.lifecycle.run import Run, counted, listed
from plimsoll.lifecycle.storage.registry import provider_of
from plimsoll.plan.document import Plan


def version_blocker(run: Run, seen: Observed) -> Fact | None:
    """Return what this version cannot read of a run that another version started; None if nothing. It ends no run."""
    remedy = "use the operator version that wrote it, or a later one"
    if run.document is None:
        message = f"{run.spec_problem}. The run has started, so its pods continue, but no more are created; {remedy}"
        return Fact.true(Reason.SPEC_UNREADABLE, message)
    job = seen.conductor_job
    if seen.unreadable_results and job is not None and job.complete:
        results = f"{counted(len(seen.unreadable_results), 'result')} ({listed(seen.unreadable_results)})"
        return Fact.true(Reason.RESULTS_UNREADABLE, f"this version cannot read the status of {results}; {remedy}")
    return None


def waiting_fact(storage: Fact, clients: Fact, seen: Observed) -> Fact:
    """Return which of the two is the cause of the wait: StorageReady or ClientsReady.

    A PVC that waits for its first consumer is unbound because of the pod, not the other way round.
    """
    if storage.holds or clients.reason is Reason.IMAGE_PULL_FAILED or clients.reason in REFUSALS:
        return clients
    complaints = any(claim.child.uid in seen.warnings for claim in seen.unbound_claims)
    return clients if clients.reason is Reason.UNSCHEDULABLE and not complaints else storage


def clients_fact(run: Run, plan: Plan, seen: Observed) -> Fact:
    """Return ClientsReady: whether every client has registered, and otherwise why not."""
    clients = range(plan.members)
    problems = [text for client in clients if (text := client_problem(client, seen))]
    conductor = conductor_fact(seen)
    if conductor is not None and conductor.reason is Reason.CONDUCTOR_STARTING and is_provisioning(plan, seen):
        # It starts together with the clients, which do not need it yet.
        conductor = None
    if problems:
        texts = [listed(problems, separator="; "), *([conductor.message] if conductor else [])]
        pods = [pod for client in clients if (pod := seen.client_pod(client)) is not None]
        has_failed = any(pod.phase == "Failed" for pod in pods)
        reason = _worst_reason(pods) or (Reason.CLIENT_FAILED if has_failed else Reason.CLIENTS_MISSING)
        if reason is Reason.UNSCHEDULABLE and seen.unbound_claims and provider_of(run).binds_immediately(plan):
            reason = Reason.CLAIMS_NOT_BOUND
        if job_warnings := " ".join(_job_warning(client, seen) for client in clients).strip():
            reason = reason_of_words(job_warnings)
        return Fact.false(reason, "; ".join(texts))
    if conductor is not None:
        return conductor
    if seen.all_registered:
        servers = f" and {counted(plan.server_count, 'server')}" if plan.servers else ""
        return Fact.true(Reason.REGISTERED, f"{counted(plan.clients, 'client')}{servers} registered")
    warnings = listed([text for client in clients if (text := _pod_warning(client, seen))], separator="; ")
    return Fact.false(Reason.STARTING, f"clients are starting{'; ' if warnings else ''}{warnings}")


def conductor_fact(seen: Observed) -> Fact | None:
    """Return why no conductor is active; None if one is, or if none is needed yet."""
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
    if warning and (pod is None or has_ended):
        reason = reason_of_words(warning)
    return Fact.false(reason, f"the conductor {problem}")


def client_problem(client: int, seen: Observed) -> str:
    """Return what prevents a client from taking part; empty if no problem is known."""
    if job_warning := _job_warning(client, seen):
        return job_warning
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
    message = listed(texts, separator="; ") or "the conductor is not created yet"
    return Fact.false(Reason.CLIENTS_NOT_READY, message)


def is_provisioning(plan: Plan, seen: Observed) -> bool:
    """Whether the run still waits for volumes and pods, which may take `provisionSeconds`."""
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
    """Return how long a run has been active since it was admitted or last resumed; since its creation before that.

    A suspended run, and one that lost its place and is not admitted again yet, waits for nothing: 0.
    """
    since = run.start_time or run.created
    if run.start_time is not None and ConditionType.ADMITTED in run.conditions:
        if not run.holds(ConditionType.ADMITTED):
            return 0.0
        since = max(since, run.last_transition(ConditionType.ADMITTED))
    if run.holds(ConditionType.SUSPENDED):
        return 0.0
    if ConditionType.SUSPENDED in run.conditions:
        since = max(since, run.last_transition(ConditionType.SUSPENDED))
    return (now - since).total_seconds()


def _worst_reason(pods: Sequence[PodFact]) -> Reason | None:
    """Return why pods are not running; None if they are."""
    problems = " ".join(pod.problem for pod in pods)
    for words, reason in (
        (("ErrImage", "ImagePull", "InvalidImageName"), Reason.IMAGE_PULL_FAILED),
        (("Unschedulable", "SchedulerError"), Reason.UNSCHEDULABLE),
        (("CrashLoop", "CreateContainer", "RunContainer"), Reason.CONTAINER_FAILED),
    ):
        if any(word in problems for word in words):
            return reason
    return None


def _job_warning(client: int, seen: Observed) -> str:
    """Return why a client's newest Job cannot create a pod; empty if no reason is known."""
    jobs = seen.client_jobs(client) if seen.warnings else []
    if not jobs or any(pod.attempt == jobs[-1].attempt for pod in seen.client_pods(client)):
        return ""
    warning = seen.warnings.get(jobs[-1].child.uid)
    return f"client {client} (Job {jobs[-1].child.name}) has no pod: {warning}" if warning else ""


def _pod_warning(client: int, seen: Observed) -> str:
    """Return the newest warning about a client's pod whose containers are not created; empty if there is none.

    Kubernetes tries again, and many warnings are about something that is ready a moment later.
    """
    pod = seen.client_pod(client)
    warning = seen.warnings.get(pod.child.uid, "") if pod is not None and pod.phase == "Pending" else ""
    return f"client {client} {_place(pod)} is Pending: {warning}" if pod is not None and warning else ""


def _place(pod: PodFact) -> str:
    return f"(pod {pod.child.name}{f' on {pod.node}' if pod.node else ''})"
