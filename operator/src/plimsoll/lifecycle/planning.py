"""Whether a run may be measured here at all, and with which plan."""

from collections.abc import Sequence

from plimsoll.api.errors import SpecError
from plimsoll.api.run import BenchmarkRun
from plimsoll.api.storage import RookStorage
from plimsoll.lifecycle.decision import Ending, Fact
from plimsoll.lifecycle.naming import ALLOW_BENCHMARKS
from plimsoll.lifecycle.platform import Platform, RookPlatform, environment_of, names_in
from plimsoll.lifecycle.render.client import has_device
from plimsoll.lifecycle.rook.budget import fitting_placement_groups, why_over_budget
from plimsoll.lifecycle.rook.cluster import cluster_fact, why_unusable
from plimsoll.lifecycle.rook.facts import why_not_existing
from plimsoll.lifecycle.rook.feasibility import Osd, all_available, osds_of, why_infeasible
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.settings import Settings
from plimsoll.plan.ceph import ceph_target
from plimsoll.plan.document import CephTarget, Plan
from plimsoll.plan.estimate import refuse_if_hopeless
from plimsoll.plan.expand import make_plan
from plimsoll.plan.order import run_seed

_OSD_BENCH = "osdBench"
_RESTRICTED = "restricted"
"""The Pod Security Standard that lets nobody be root."""


def refusal(run: Run, settings: Settings) -> Ending | None:
    """Return why nothing can be done for a run at all, whatever the cluster is like."""
    if run.document is None:
        return Ending(succeeded=False, reason="InvalidSpec", message=run.spec_problem)
    spec = run.document.spec
    if spec.prepare.drop_caches:
        message = "spec.prepare.dropCaches: this version cannot drop caches; set it to false and choose larger volumes"
        return Ending(succeeded=False, reason="CacheDroppingNotSupported", message=message)
    if any(workload.tool == _OSD_BENCH for workload in spec.workloads) and not settings.osd_bench:
        message = (
            "osdBench writes to all OSDs, around every pool; the operator's administrator may allow it with "
            "PLIMSOLL_OSD_BENCH=true, otherwise leave these workloads out"
        )
        return Ending(succeeded=False, reason="OsdBenchNotAllowed", message=message)
    rook = spec.storage.rook if spec.storage else None
    if rook is not None and not settings.allows(rook.cluster, run.namespace):
        message = (
            f"spec.storage.rook.cluster: runs of namespace {run.namespace} may not use {_name(rook)}; the operator's "
            "administrator may allow it in PLIMSOLL_ROOK_CLUSTERS"
        )
        return Ending(succeeded=False, reason="RookClusterNotAllowed", message=message)
    return None


def freeze(run: Run, document: BenchmarkRun, platform: Platform, settings: Settings) -> Plan | Ending | Fact:
    """Return the plan of a run; or why there cannot be one, or not yet."""
    storage = document.spec.storage
    storage_class = storage.storage_class.name if storage and storage.storage_class else None
    if storage_class not in {None, *platform.storage_classes}:
        message = (
            f"spec.storage.storageClass.name: {storage_class} is no StorageClass of this cluster, which has "
            f"{names_in(platform)}; make it, or name one of these"
        )
        return Ending(succeeded=False, reason="StorageClassNotFound", message=message)
    named = document.model_copy(update={"metadata": document.metadata.model_copy(update={"uid": run.uid})})
    if storage is not None and storage.rook is not None:
        target = ceph_target(named)
        hindrance = _hindrance(storage.rook, target, document, platform.rook) if target else None
        if hindrance is not None:
            return hindrance
    environment = environment_of(platform, storage_class)
    try:
        plan = make_plan(named, seed=run_seed(run.uid), runner_image=settings.runner_image, environment=environment)
        refuse_if_hopeless(plan)
    except SpecError as error:
        return Ending(succeeded=False, reason="InvalidSpec", message=str(error))
    if has_device(plan) and platform.pod_security == _RESTRICTED:
        message = (
            f"spec.storage.volume.mode: clients of a Block volume run as root, which Pod Security in namespace "
            f"{run.namespace} forbids (pod-security.kubernetes.io/enforce: {_RESTRICTED}); set volume.mode to "
            "Filesystem, with Ceph volume.access to LibRBD, or use a namespace that enforces baseline"
        )
        return Ending(succeeded=False, reason="PodSecurityTooStrict", message=message)
    # The runner that is frozen with it knows these tokens; the plan of an earlier version says nothing of them.
    return _with_placement_groups(plan.model_copy(update={"client_tokens": True}), platform.rook)


def _hindrance(
    rook: RookStorage, target: CephTarget, document: BenchmarkRun, platform: RookPlatform | None
) -> Ending | Fact | None:
    """Return why a Rook cluster cannot be used; a Fact if that may pass by itself."""
    if platform is None or platform.problem or platform.cluster is None:
        why = platform.problem if platform and platform.problem else "there is no such CephCluster"
        message = f"spec.storage.rook.cluster: {_name(rook)} is not found: {why}; install Rook, or name another cluster"
        return Ending(succeeded=False, reason="RookNotFound", message=message)
    if refused := _not_existing(target, platform) if rook.existing_pool else None:
        return refused
    cluster, osds = cluster_fact(platform.cluster), osds_of(platform.osds)
    # What Ceph could not place even if all was well is not worth waiting for; before it is ready it may get more OSDs.
    hopeless = _infeasible(rook, target, all_available(osds), platform) if cluster.ready and osds else None
    if hopeless is not None:
        return hopeless
    if unusable := why_unusable(cluster, document.spec.gates):
        return Fact(holds=False, reason="CephClusterNotReady", message=unusable)
    return _infeasible(rook, target, osds, platform)


def _infeasible(rook: RookStorage, target: CephTarget, osds: Sequence[Osd], platform: RookPlatform) -> Ending | None:
    """Return why Ceph could not place the pool that is to be made."""
    if target.made is None or platform.cluster is None:
        return None
    why = why_infeasible(target.made, osds, rook.cluster.namespace) or why_over_budget(
        target.made, osds, platform.pools, platform.cluster
    )
    return Ending(succeeded=False, reason="PoolNotFeasible", message=f"spec.storage.rook.pool: {why}") if why else None


def _not_existing(target: CephTarget, platform: RookPlatform) -> Ending | Fact | None:
    """Return why the pools that are named cannot be used."""
    why = why_not_existing(target, platform.pools)
    if not why:
        return None
    pools = {pool["metadata"]["name"]: pool["metadata"].get("annotations") or {} for pool in platform.pools}
    if not pools.keys() >= set(target.pools):
        return Ending(succeeded=False, reason="PoolNotFound", message=f"spec.storage.rook.existingPool: {why}")
    if any(pools[name].get(ALLOW_BENCHMARKS) != "true" for name in target.pools):
        return Ending(succeeded=False, reason="PoolNotAllowed", message=f"spec.storage.rook.existingPool: {why}")
    return Fact(holds=False, reason="PoolNotReady", message=why)


def _with_placement_groups(plan: Plan, platform: RookPlatform | None) -> Plan:
    """Return the plan with the placement groups fixed, if a pool is made for it."""
    if plan.ceph is None or plan.ceph.made is None or platform is None or platform.cluster is None:
        return plan
    made = fitting_placement_groups(plan.ceph.made, osds_of(platform.osds), platform.pools, platform.cluster)
    return plan.model_copy(update={"ceph": plan.ceph.model_copy(update={"made": made})})


def _name(rook: RookStorage) -> str:
    return f"CephCluster {rook.cluster.namespace}/{rook.cluster.name}"
