"""What a run needs to measure: permission, a frozen plan, and the objects that are created for it."""

from collections.abc import Iterable, Iterator
from typing import Any

from plimsoll.api.errors import SpecError
from plimsoll.api.names import RunPhase
from plimsoll.api.reasons.reason import Reason
from plimsoll.api.run import BenchmarkRun
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import JobFact
from plimsoll.lifecycle.decision import Action, Create, CreateSecret, Fact, RunEnding
from plimsoll.lifecycle.observed import Observed
from plimsoll.lifecycle.render import client as render_client
from plimsoll.lifecycle.render import common, network
from plimsoll.lifecycle.render import conductor as render_conductor
from plimsoll.lifecycle.run import Platform, Run, Settings
from plimsoll.lifecycle.storage.registry import provider_of
from plimsoll.lifecycle.storage.seam import Storage
from plimsoll.plan.document import ControlPlane, Plan
from plimsoll.plan.expand import check_fits_deadline, make_plan
from plimsoll.plan.sweep import run_seed
from plimsoll.protocol.helpers import excess_of
from plimsoll.tools.registry import TOOLS
from plimsoll.tools.target import TargetKind

_RESTRICTED = "restricted"
"""The Pod Security Standard that forbids root."""


def missing_objects(run: Run, plan: Plan, seen: Observed, settings: Settings, storage: Storage) -> Iterator[Action]:
    """Yield the creations due now, in order: documents and permissions, storage with volumes, clients, conductor."""
    wanted = [
        *(common.result(run, plan, point) for point in plan.points if point.name not in seen.results),
        common.state_config_map(run),
        render_conductor.service_account(run),
        render_conductor.role(run, plan),
        render_conductor.service(run, settings),
        *network.policies(run, plan, settings),
    ]
    first = _absent(seen, wanted)
    yield from first
    # The API server refuses to bind a Role that does not exist yet.
    if naming.conductor_account(run.name) in seen.names("Role"):
        yield from _absent(seen, [render_conductor.role_binding(run)])
    yield from storage.missing()
    # A Job refers to objects by name, so all of them have to be observed as the run's own first.
    if first or not storage.is_provided():
        return
    # The operator may not list Secrets. This one is created before the first Job, so a Job proves that it exists.
    if not seen.jobs:
        yield CreateSecret(obj=common.session_secret(run), clients=plan.members)
    for client in range(plan.members):
        jobs = seen.client_jobs(client)
        if not jobs:
            yield Create(obj=render_client.job(run, plan, settings, client=client, attempt=0))
        elif is_lost(jobs[-1], seen) and len(jobs) <= settings.max_client_restarts:
            attempt = jobs[-1].attempt + 1
            yield Create(obj=render_client.job(run, plan, settings, client=client, attempt=attempt))
    # The conductor starts while the clients' containers are being prepared, but takes no client's place on a node. A
    # new Job is created once one that a suspension deletes is gone.
    pods = [seen.client_pod(client) for client in range(plan.members)]
    are_scheduled = all(pod is not None and pod.node for pod in pods)
    is_permitted = naming.conductor_account(run.name) in seen.names("RoleBinding")
    if are_scheduled and is_permitted and seen.conductor_job is None:
        yield Create(obj=render_conductor.job(run, plan, settings))


def is_lost(job: JobFact, seen: Observed) -> bool:
    """Whether a client's process is gone or terminating before its work is done.

    It failed, was evicted or deleted, is on a dead node, or was dismissed by a conductor that was asked to stop, for
    example because its node is drained.
    """
    if job.failure or job.child.deleting:
        return True
    if job.complete:
        return seen.state is None or seen.state.phase not in {RunPhase.COMPLETE, RunPhase.FAILED}
    return any(pod.child.deleting for pod in seen.client_pods(job.client) if pod.attempt == job.attempt)


def rejection(run: Run, settings: Settings) -> RunEnding | None:
    """Return why a run is rejected whatever the state of the cluster; None if it is not."""
    if run.document is None:
        return RunEnding.failure(Reason.INVALID_SPEC, run.spec_problem)
    spec = run.document.spec
    if spec.prepare.drop_caches and (problem := settings.caches_problem(run.namespace)):
        message = f"spec.prepare.dropCaches: {problem}, or set it to false and use larger volumes"
        return RunEnding.failure(Reason.CACHE_DROPPING_NOT_ALLOWED, message)
    tools = (TOOLS.get(workload.tool) for workload in spec.workloads)
    loading = next((tool for tool in tools if tool and tool.target is TargetKind.OSDS), None)
    if loading is not None and not settings.osd_bench:
        message = (
            f"{loading.key} bypasses pools and writes to all OSDs; remove these workloads, or ask the operator's "
            "administrator to set PLIMSOLL_OSD_BENCH=true"
        )
        return RunEnding.failure(Reason.OSD_BENCH_NOT_ALLOWED, message)
    burning = next((workload.tool for workload in spec.workloads if _creates_claims(workload.tool)), None)
    if burning is not None and (problem := settings.burning_problem(run.namespace)):
        message = f"{burning}: {problem}, or remove these workloads"
        return RunEnding.failure(Reason.KUBE_BURNER_NOT_ALLOWED, message)
    return provider_of(run).rejection(run, settings)


def freeze(run: Run, document: BenchmarkRun, platform: Platform, settings: Settings) -> Plan | RunEnding | Fact:
    """Return the plan of a run, or why it cannot be frozen at all (RunEnding) or yet (Fact)."""
    provider = provider_of(run)
    named = document.model_copy(update={"metadata": document.metadata.model_copy(update={"uid": run.uid})})
    if blocker := provider.blocker(named, platform):
        return blocker
    environment = provider.environment(named, platform)
    try:
        plan = make_plan(named, seed=run_seed(run.uid), runner_image=settings.runner_image, environment=environment)
        check_fits_deadline(plan)
    except SpecError as error:
        return RunEnding.failure(Reason.INVALID_SPEC, str(error))
    if render_client.has_device(plan, 0) and platform.pod_security == _RESTRICTED:
        message = (
            f"spec.storage.volume.mode: clients of a Block volume run as root, which Pod Security in namespace "
            f"{run.namespace} forbids (pod-security.kubernetes.io/enforce: {_RESTRICTED}); leave volume.mode out for "
            "Filesystem, with Ceph set volume.access to LibRBD, or use a namespace that enforces baseline"
        )
        return RunEnding.failure(Reason.POD_SECURITY_TOO_STRICT, message)
    control_plane = _control_plane(run, plan, platform, settings)
    if isinstance(control_plane, RunEnding | Fact):
        return control_plane
    cache_helper = settings.caches.service if settings.caches and document.spec.prepare.drop_caches else None
    plan = plan.model_copy(update={"cache_helper": cache_helper, "control_plane": control_plane})
    return provider.complete_plan(plan, platform)


def _absent(seen: Observed, objects: Iterable[dict[str, Any]]) -> list[Create]:
    return [Create(obj=obj) for obj in objects if obj["metadata"]["name"] not in seen.names(obj["kind"])]


def _creates_claims(tool: str) -> bool:
    return tool in TOOLS and TOOLS[tool].creates_claims


def _control_plane(
    run: Run, plan: Plan, platform: Platform, settings: Settings
) -> ControlPlane | RunEnding | Fact | None:
    points = [point for point in plan.points if _creates_claims(point.tool)]
    burning = settings.burning
    if not points or burning is None:
        return None
    for point in points:
        limited = TOOLS[point.tool].parameters.model_validate(point.parameters).limited
        limits = {"max_objects": burning.max_objects, "max_qps": burning.max_qps}
        if problem := excess_of(limited, **limits, max_volume_size=burning.max_volume_size):
            message = f"workload {point.workload}: {problem}; lower it, or ask the operator's administrator for more"
            return RunEnding.failure(Reason.KUBE_BURNER_NOT_ALLOWED, message)
    name = provider_of(run).claims_class(run)
    if platform.storage_classes.get(name, {}).get("reclaimPolicy") == "Retain":
        message = (
            f"workload {points[0].workload}: {points[0].tool} would leave the volume of each PVC behind, because "
            f"StorageClass {name} has reclaimPolicy Retain; name one with Delete"
        )
        return RunEnding.failure(Reason.VOLUMES_RETAINED, message)
    if not platform.burner_certificate:
        place = f"namespace {burning.service.namespace}"
        message = f"the helper that runs kube-burner has not started yet; check its pod in {place}"
        return Fact.false(Reason.KUBE_BURNER_NOT_READY, message)
    certificate = platform.burner_certificate
    return ControlPlane(helper=burning.service, certificate=certificate, storage_class=name)
