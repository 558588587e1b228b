"""Whether a run can be measured in this cluster, and with which plan."""

from plimsoll.api.errors import SpecError
from plimsoll.api.reasons.reason import Reason
from plimsoll.api.run import BenchmarkRun
from plimsoll.lifecycle.decision import Ending, Fact
from plimsoll.lifecycle.platform import Platform
from plimsoll.lifecycle.render.client import has_device
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.settings import Settings
from plimsoll.lifecycle.storage.registry import provider_of
from plimsoll.plan.document import ControlPlane, Plan
from plimsoll.plan.estimate import check_fits_deadline
from plimsoll.plan.expand import make_plan
from plimsoll.plan.order import run_seed
from plimsoll.protocol.burning import excess_of
from plimsoll.tools.registry import TOOLS
from plimsoll.tools.target import TargetKind

_RESTRICTED = "restricted"
"""The Pod Security Standard that forbids root."""


def refusal(run: Run, settings: Settings) -> Ending | None:
    """Return why a run is refused whatever the state of the cluster; None if it is not."""
    if run.document is None:
        return Ending.failure(Reason.INVALID_SPEC, run.spec_problem)
    spec = run.document.spec
    if spec.prepare.drop_caches and (problem := settings.caches_problem(run.namespace)):
        message = f"spec.prepare.dropCaches: {problem}, or set it to false and use larger volumes"
        return Ending.failure(Reason.CACHE_DROPPING_NOT_ALLOWED, message)
    tools = (TOOLS.get(workload.tool) for workload in spec.workloads)
    loading = next((tool for tool in tools if tool and tool.target is TargetKind.OSDS), None)
    if loading is not None and not settings.osd_bench:
        message = (
            f"{loading.key} bypasses pools and writes to all OSDs; remove these workloads, or ask the operator's "
            "administrator to set PLIMSOLL_OSD_BENCH=true"
        )
        return Ending.failure(Reason.OSD_BENCH_NOT_ALLOWED, message)
    burning = next((workload.tool for workload in spec.workloads if _creates_claims(workload.tool)), None)
    if burning is not None and (problem := settings.burning_problem(run.namespace)):
        message = f"{burning}: {problem}, or remove these workloads"
        return Ending.failure(Reason.KUBE_BURNER_NOT_ALLOWED, message)
    return provider_of(run).refusal(run, settings)


def freeze(run: Run, document: BenchmarkRun, platform: Platform, settings: Settings) -> Plan | Ending | Fact:
    """Return the plan of a run, or why it cannot be frozen at all (Ending) or yet (Fact)."""
    provider = provider_of(run)
    named = document.model_copy(update={"metadata": document.metadata.model_copy(update={"uid": run.uid})})
    if blocker := provider.blocker(named, platform):
        return blocker
    environment = provider.environment(named, platform)
    try:
        plan = make_plan(named, seed=run_seed(run.uid), runner_image=settings.runner_image, environment=environment)
        check_fits_deadline(plan)
    except SpecError as error:
        return Ending.failure(Reason.INVALID_SPEC, str(error))
    if has_device(plan, 0) and platform.pod_security == _RESTRICTED:
        message = (
            f"spec.storage.volume.mode: clients of a Block volume run as root, which Pod Security in namespace "
            f"{run.namespace} forbids (pod-security.kubernetes.io/enforce: {_RESTRICTED}); set volume.mode to "
            "Filesystem, with Ceph volume.access to LibRBD, or use a namespace that enforces baseline"
        )
        return Ending.failure(Reason.POD_SECURITY_TOO_STRICT, message)
    control_plane = _control_plane(run, plan, platform, settings)
    if isinstance(control_plane, Ending):
        return control_plane
    # The runner image frozen with the plan supports all of these; plans of earlier versions mention none.
    supported: dict[str, object] = {"client_tokens": True, "agent_assignments": True, "early_conductor": True}
    if document.spec.prepare.drop_caches:
        supported |= {"cache_helper": settings.cache_helper}
    if control_plane is not None:
        supported |= {"control_plane": control_plane}
    return provider.complete_plan(plan.model_copy(update=supported), platform)


def _creates_claims(tool: str) -> bool:
    return tool in TOOLS and TOOLS[tool].creates_claims


def _control_plane(run: Run, plan: Plan, platform: Platform, settings: Settings) -> ControlPlane | Ending | None:
    """Return how a run loads the control plane, if it does, or why it may not."""
    points = [point for point in plan.points if _creates_claims(point.tool)]
    burning = settings.burning
    if not points or burning is None:
        return None
    for point in points:
        limited = TOOLS[point.tool].parameters.model_validate(point.parameters).limited
        problem = excess_of(
            limited,
            max_objects=burning.max_objects,
            max_qps=burning.max_qps,
            max_volume_size=burning.max_volume_size,
        )
        if problem:
            message = f"workload {point.workload}: {problem}; lower it, or ask the operator's administrator for more"
            return Ending.failure(Reason.KUBE_BURNER_NOT_ALLOWED, message)
    name = provider_of(run).claims_class(run)
    if platform.storage_classes.get(name, {}).get("reclaimPolicy") == "Retain":
        message = (
            f"workload {points[0].workload}: {points[0].tool} would leave the volume of each PVC behind, because "
            f"StorageClass {name} has reclaimPolicy Retain; name one with Delete"
        )
        return Ending.failure(Reason.VOLUMES_RETAINED, message)
    return ControlPlane(helper=burning.helper, storage_class=name)
