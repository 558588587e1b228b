"""What a run needs before it can measure: what of it is to be made now."""

from collections.abc import Iterable, Iterator
from typing import Any

from plimsoll.api.names import RunPhase
from plimsoll.lifecycle import ceph_storage, naming
from plimsoll.lifecycle.actions import Action, Create, CreateSecret, Delete
from plimsoll.lifecycle.children import JobFact
from plimsoll.lifecycle.observed import Observed
from plimsoll.lifecycle.render import client as render_client
from plimsoll.lifecycle.render import conductor as render_conductor
from plimsoll.lifecycle.render import documents, network
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.settings import Settings
from plimsoll.plan.document import Plan

_CONDUCTED = {RunPhase.COMPLETE, RunPhase.FAILED}


def missing_objects(run: Run, plan: Plan, seen: Observed, settings: Settings) -> Iterator[Action]:
    """Yield what is to be created now, in order: documents and rights, storage, volumes, clients, conductor."""
    first = [*_first_objects(run, plan, seen, settings)]
    yield from first
    # The API server refuses to bind a Role that it does not know yet.
    if naming.conductor(run.name) in seen.names("Role"):
        yield from _absent(seen, [render_conductor.role_binding(run)])
    yield from ceph_storage.missing(run, plan, seen, settings)
    # A Job uses what has its names: nothing of that may be a stranger's, so all of it has to be seen as the run's own.
    if first or not ceph_storage.is_provided(plan, seen):
        return
    # The operator may not list Secrets. This one is made before the first Job, so a Job proves that it is there.
    if not seen.jobs:
        tokens = plan.clients if plan.client_tokens else None
        yield CreateSecret(obj=documents.session_secret(run), clients=tokens)
    yield from _clients(run, plan, seen, settings)
    if all_clients_run(plan, seen) and naming.conductor(run.name) in seen.names("RoleBinding"):
        yield from _conductor(run, plan, seen, settings)


def _first_objects(run: Run, plan: Plan, seen: Observed, settings: Settings) -> Iterator[Create]:
    """Yield what is missing of documents, rights, addresses and, when they can be had, volumes."""
    yield from _absent(
        seen,
        [
            *(documents.result(run, plan, point) for point in plan.points if point.name not in seen.results),
            documents.state_config_map(run),
            render_conductor.service_account(run),
            render_conductor.role(run, plan),
            render_conductor.service(run, settings),
            *network.policies(run, plan, settings),
            *(_claims(run, plan) if ceph_storage.is_provided(plan, seen) else ()),
        ],
    )


def _absent(seen: Observed, objects: Iterable[dict[str, Any]]) -> Iterator[Create]:
    for obj in objects:
        if obj["metadata"]["name"] not in seen.names(obj["kind"]):
            yield Create(obj=obj)


def _claims(run: Run, plan: Plan) -> Iterator[dict[str, Any]]:
    """Yield the claims of all clients, of the StorageClass that the run names or of its own."""
    storage = run.document.spec.storage if run.document else None
    if plan.volume is None or storage is None or not render_client.has_claim(plan):
        return
    named = storage.storage_class
    name = named.name if named else naming.storage_class(run.name, run.uid)
    for client in range(plan.clients):
        yield render_client.claim(run, plan.volume, name, client)


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
    return any(pod.child.deleting for pod in seen.client_pods(job.client) if pod.attempt == job.attempt)


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
