"""What a run needs before it can measure, and how far that is."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from plimsoll.api.names import RunPhase
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.actions import Action, Create, CreateSecret, Delete
from plimsoll.lifecycle.decision import Fact
from plimsoll.lifecycle.observed import JobFact, Observed, PodFact
from plimsoll.lifecycle.render import client as render_client
from plimsoll.lifecycle.render import conductor as render_conductor
from plimsoll.lifecycle.render import documents, network
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.settings import Settings
from plimsoll.plan.document import Plan

_NAMED = 3
_CONDUCTED = {RunPhase.COMPLETE, RunPhase.FAILED}


def missing_objects(run: Run, plan: Plan, seen: Observed, settings: Settings) -> Iterator[Action]:
    """Yield what is to be created now, in order: documents and rights, volumes, clients, conductor."""
    yield from _absent(
        seen,
        [
            *(documents.result(run, plan, point) for point in plan.points if point.name not in seen.results),
            documents.state_config_map(run),
            render_conductor.service_account(run),
            render_conductor.role(run, plan),
            render_conductor.service(run, settings),
            *network.policies(run, settings),
            *_claims(run, plan),
        ],
    )
    # The operator may not list Secrets. This one is made before the first Job, so a Job proves that it is there.
    if not seen.jobs:
        yield CreateSecret(obj=documents.session_secret(run))
    # The API server refuses to bind a Role that it does not know yet.
    if naming.conductor(run.name) in seen.names("Role"):
        yield from _absent(seen, [render_conductor.role_binding(run)])
    yield from _clients(run, plan, seen, settings)
    if all_clients_run(plan, seen) and naming.conductor(run.name) in seen.names("RoleBinding"):
        yield from _conductor(run, plan, seen, settings)


def _absent(seen: Observed, objects: Iterable[dict[str, Any]]) -> Iterator[Create]:
    for obj in objects:
        if obj["metadata"]["name"] not in seen.names(obj["kind"]):
            yield Create(obj=obj)


def _claims(run: Run, plan: Plan) -> Iterator[dict[str, Any]]:
    storage = run.document.spec.storage if run.document else None
    if plan.volume is None or storage is None or storage.storage_class is None:
        return
    for client in range(plan.clients):
        yield render_client.claim(run, storage, storage.storage_class.name, client)


def _clients(run: Run, plan: Plan, seen: Observed, settings: Settings) -> Iterator[Action]:
    """Yield a Job for every client that has no process that works."""
    for client in range(plan.clients):
        jobs = seen.client_jobs(client)
        if not jobs:
            yield Create(obj=render_client.job(run, plan, settings, client=client, attempt=0))
        elif is_lost(jobs[-1], seen) and len(jobs) <= settings.max_client_restarts:
            attempt = jobs[-1].attempt + 1
            yield Create(obj=render_client.job(run, plan, settings, client=client, attempt=attempt))


def _conductor(run: Run, plan: Plan, seen: Observed, settings: Settings) -> Iterator[Action]:
    """Yield the conductor's Job; one that is being deleted since a suspension has to be gone first."""
    if seen.conductor_job is None:
        yield Create(obj=render_conductor.job(run, plan, settings))


def delete(job: JobFact) -> Delete:
    """Return the deletion of a Job with its pods."""
    child = job.child
    return Delete(
        api_version=child.api_version,
        kind=child.kind,
        namespace=child.namespace,
        name=child.name,
        uid=child.uid,
        foreground=True,
    )


def is_lost(job: JobFact, seen: Observed) -> bool:
    """Tell whether a client's process is gone or going while there is something left for it to do.

    It failed, was evicted, was deleted by somebody, is on a dead node, or was sent away by a conductor that was asked
    to stop, as when its node is drained.
    """
    if job.failure or job.child.deleting:
        return True
    if job.complete:
        return seen.state is None or seen.state.phase not in _CONDUCTED
    pods = [pod for pod in seen.pods if pod.client == job.client and pod.attempt == job.attempt]
    return any(pod.child.deleting for pod in pods)


def is_out_of_restarts(client: int, seen: Observed, settings: Settings) -> bool:
    """Tell whether a client has lost as many processes as it may."""
    jobs = seen.client_jobs(client)
    return len(jobs) > settings.max_client_restarts and bool(jobs) and is_lost(jobs[-1], seen)


def all_clients_run(plan: Plan, seen: Observed) -> bool:
    """Tell whether every client has a running process, or the conductor is there already and will see to it."""
    if seen.conductor_job is not None:
        return True
    pods = [seen.client_pod(client) for client in range(plan.clients)]
    return all(pod is not None and pod.phase == "Running" for pod in pods)


def storage_fact(plan: Plan, seen: Observed) -> Fact:
    """Return whether every client has its volume, and if not why."""
    if plan.volume is None:
        return Fact(holds=True, reason="NotNeeded", message="no workload uses a volume")
    unbound = [claim for claim in seen.claims if claim.phase != "Bound"]
    absent = plan.clients - len(seen.claims)
    if not unbound and absent <= 0:
        return Fact(holds=True, reason="Bound", message=f"{plan.clients} claims are bound")
    problems = [
        f"claim {claim.child.name} is {claim.phase}"
        + (f" ({seen.claim_events[claim.client]})" if claim.client in seen.claim_events else "")
        for claim in unbound
    ]
    return Fact(holds=False, reason="ClaimsNotBound", message=_listed(problems) or f"{absent} claims are not made yet")


def clients_fact(plan: Plan, seen: Observed) -> Fact:
    """Return whether every client is there, joining what the conductor misses with what its pod says."""
    troubles = [text for client in range(plan.clients) if (text := client_trouble(client, seen))]
    if troubles:
        return Fact(holds=False, reason=_reason_of(seen, plan), message=_listed(troubles))
    if seen.all_registered:
        return Fact(holds=True, reason="Registered", message=f"{plan.clients} clients have registered")
    return Fact(holds=False, reason="Starting", message="clients are starting")


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


def _newest_job(client: int, seen: Observed) -> str:
    jobs = seen.client_jobs(client)
    return jobs[-1].child.name if jobs else ""


def client_trouble(client: int, seen: Observed) -> str:
    """Return what keeps a client from taking part; empty if nothing is known to."""
    pod = seen.client_pod(client)
    missing = seen.state is not None and bool(seen.state.epoch) and client in seen.state.missing
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


def _reason_of(seen: Observed, plan: Plan) -> str:
    """Return the most telling of the clients' reasons."""
    pods = [pod for client in range(plan.clients) if (pod := seen.client_pod(client)) is not None]
    return worst_reason(pods) or "ClientsMissing"


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
    return "ClientFailed" if any(pod.phase == "Failed" for pod in pods) else ""


def _listed(texts: Sequence[str]) -> str:
    more = f"; and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return "; ".join(texts[:_NAMED]) + more


def waited_seconds(run: Run, now: datetime) -> float:
    """Return how long a run has been active since it was admitted, or last resumed; 0 if it is resumed only now."""
    since = run.start_time
    suspended = run.conditions.get("Suspended")
    if suspended is not None and suspended["status"] == "True":
        return 0.0
    if suspended is not None and since is not None:
        since = max(since, datetime.fromisoformat(suspended["lastTransitionTime"]))
    return (now - since).total_seconds() if since else 0.0
