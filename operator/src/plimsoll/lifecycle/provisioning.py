"""Creation of the objects that a run needs to measure."""

from collections.abc import Iterable, Iterator
from typing import Any

from plimsoll.api.names import RunPhase
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.actions import Action, Create, CreateSecret
from plimsoll.lifecycle.children import JobFact
from plimsoll.lifecycle.observed import Observed
from plimsoll.lifecycle.render import client as render_client
from plimsoll.lifecycle.render import conductor as render_conductor
from plimsoll.lifecycle.render import documents, network
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.settings import Settings
from plimsoll.lifecycle.starting import all_pods_are_scheduled, all_pods_run
from plimsoll.lifecycle.storage.seam import Storage
from plimsoll.plan.document import Plan

_CONDUCTED = {RunPhase.COMPLETE, RunPhase.FAILED}


def missing_objects(run: Run, plan: Plan, seen: Observed, settings: Settings, storage: Storage) -> Iterator[Action]:
    """Yield the creations due now, in order: documents and permissions, storage with volumes, clients, conductor."""
    first = [*_first_objects(run, plan, seen, settings)]
    yield from first
    # The API server refuses to bind a Role that does not exist yet.
    if naming.conductor(run.name) in seen.names("Role"):
        yield from _absent(seen, [render_conductor.role_binding(run)])
    yield from storage.missing()
    # A Job refers to objects by name, so all of them have to be observed as the run's own first.
    if first or not storage.is_provided():
        return
    # The operator may not list Secrets. This one is created before the first Job, so a Job proves that it exists.
    if not seen.jobs:
        tokens = plan.members if plan.client_tokens else None
        yield CreateSecret(obj=documents.session_secret(run), clients=tokens)
    yield from _clients(run, plan, seen, settings)
    # The conductor starts while the clients' containers are being prepared, but takes no client's place on a node.
    may_start = all_pods_are_scheduled(plan, seen) if plan.early_conductor else all_pods_run(plan, seen)
    if may_start and naming.conductor(run.name) in seen.names("RoleBinding"):
        yield from _conductor(run, plan, seen, settings)


def _first_objects(run: Run, plan: Plan, seen: Observed, settings: Settings) -> Iterator[Create]:
    yield from _absent(
        seen,
        [
            *(documents.result(run, plan, point) for point in plan.points if point.name not in seen.results),
            documents.state_config_map(run),
            render_conductor.service_account(run),
            render_conductor.role(run, plan),
            render_conductor.service(run, settings),
            *network.policies(run, plan, settings),
        ],
    )


def _absent(seen: Observed, objects: Iterable[dict[str, Any]]) -> Iterator[Create]:
    for obj in objects:
        if obj["metadata"]["name"] not in seen.names(obj["kind"]):
            yield Create(obj=obj)


def _clients(run: Run, plan: Plan, seen: Observed, settings: Settings) -> Iterator[Action]:
    """Yield a Job for every client without a working process."""
    for client in range(plan.members):
        jobs = seen.client_jobs(client)
        if not jobs:
            yield Create(obj=render_client.job(run, plan, settings, client=client, attempt=0))
        elif is_lost(jobs[-1], seen) and len(jobs) <= settings.max_client_restarts:
            attempt = jobs[-1].attempt + 1
            yield Create(obj=render_client.job(run, plan, settings, client=client, attempt=attempt))


def _conductor(run: Run, plan: Plan, seen: Observed, settings: Settings) -> Iterator[Action]:
    """Yield the conductor's Job, once one that a suspension deletes is gone."""
    if seen.conductor_job is None:
        yield Create(obj=render_conductor.job(run, plan, settings))


def is_lost(job: JobFact, seen: Observed) -> bool:
    """Whether a client's process is gone or terminating before its work is done.

    It failed, was evicted or deleted, is on a dead node, or was dismissed by a conductor that was asked to stop, for
    example because its node is drained.
    """
    if job.failure or job.child.deleting:
        return True
    if job.complete:
        return seen.state is None or seen.state.phase not in _CONDUCTED
    return any(pod.child.deleting for pod in seen.client_pods(job.client) if pod.attempt == job.attempt)


def is_out_of_restarts(client: int, seen: Observed, settings: Settings) -> bool:
    """Whether a client has lost as many processes as it may."""
    jobs = seen.client_jobs(client)
    return len(jobs) > settings.max_client_restarts and bool(jobs) and is_lost(jobs[-1], seen)
