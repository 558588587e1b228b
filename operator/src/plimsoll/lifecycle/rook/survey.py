"""Whether a run can use a Rook cluster, checked before anything is created."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plimsoll.api.pools import Pool
from plimsoll.api.reasons.reason import Reason
from plimsoll.api.run import Gates
from plimsoll.api.storage import RookStorage
from plimsoll.lifecycle.children import Object
from plimsoll.lifecycle.decision import Ending, Fact
from plimsoll.lifecycle.naming import ALLOW_BENCHMARKS
from plimsoll.lifecycle.rook.budget import fitting_file_system, fitting_placement_groups, why_over_budget
from plimsoll.lifecycle.rook.cluster import cluster_fact, why_unusable
from plimsoll.lifecycle.rook.existing_file_system import unusable_file_system
from plimsoll.lifecycle.rook.facts import why_not_existing
from plimsoll.lifecycle.rook.feasibility import Osd, all_available, osds_of, root_of_pools, why_infeasible
from plimsoll.lifecycle.rook.file_system import requested, specifications
from plimsoll.lifecycle.rook.pool_spec import pool_spec
from plimsoll.plan.document import CephTarget, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class RookPlatform:
    """The Rook cluster that a run names.

    Attributes:
        problem: why it cannot be inspected: the API server does not know Rook's kinds; empty if it can be.
        cluster: the CephCluster; None if it does not exist.
        pools: all CephBlockPools in its namespace.
        file_systems: all CephFilesystems in its namespace; empty if the run measures none.
        osds: the Deployments of its OSDs.

    """

    problem: str = ""
    cluster: Object | None = None
    pools: tuple[Object, ...] = ()
    file_systems: tuple[Object, ...] = ()
    osds: tuple[Object, ...] = ()


def cluster_name(rook: RookStorage) -> str:
    """Return kind and name of the CephCluster that a run names, for a message."""
    return f"CephCluster {rook.cluster.namespace}/{rook.cluster.name}"


def why_not_usable(
    rook: RookStorage, target: CephTarget, gates: Gates, platform: RookPlatform | None
) -> Ending | Fact | None:
    """Return why a Rook cluster is unusable; a Fact if that may change by itself."""
    if platform is None or platform.problem or platform.cluster is None:
        why = f": {platform.problem}" if platform and platform.problem else ""
        message = f"{cluster_name(rook)} not found{why}; install Rook, or name another cluster"
        return Ending.failure(Reason.ROOK_NOT_FOUND, f"spec.storage.rook.cluster: {message}")
    if unusable := _unusable_pools(target, platform) if rook.existing_pool else None:
        return unusable
    if unusable := unusable_file_system(target, platform.file_systems) if rook.existing_file_system else None:
        return unusable
    cluster = cluster_fact(platform.cluster)
    osds = osds_of(platform.osds, root_of_pools(platform.cluster))
    # A pool that does not fit even with all OSDs available is not worth waiting for; a new cluster may get more OSDs.
    infeasible = _infeasible(rook, target, all_available(osds), platform) if cluster.ready and osds else None
    if infeasible is not None:
        return infeasible
    if why := why_unusable(cluster, gates):
        return Fact.false(Reason.CEPH_CLUSTER_NOT_READY, why)
    return _infeasible(rook, target, osds, platform)


def with_placement_groups(plan: Plan, platform: RookPlatform | None) -> Plan:
    """Return the plan with a fixed number of placement groups, if the run has its own pool."""
    if plan.ceph is None or plan.ceph.made is None or platform is None or platform.cluster is None:
        return plan
    osds = osds_of(platform.osds, root_of_pools(platform.cluster))
    others = [*platform.pools, *specifications(platform.file_systems)]
    file_system = plan.ceph.file_system
    if file_system is None or file_system.made is None:
        made = fitting_placement_groups(plan.ceph.made, osds, others, platform.cluster)
        return plan.model_copy(update={"ceph": plan.ceph.model_copy(update={"made": made})})
    fitted = fitting_file_system(file_system.made, osds, others, platform.cluster)
    changed = {"made": fitted.data_pools[-1], "file_system": file_system.model_copy(update={"made": fitted})}
    return plan.model_copy(update={"ceph": plan.ceph.model_copy(update=changed)})


def _infeasible(rook: RookStorage, target: CephTarget, osds: Sequence[Osd], platform: RookPlatform) -> Ending | None:
    if target.made is None or platform.cluster is None:
        return None
    others, headers = [*platform.pools, *specifications(platform.file_systems)], rook.file_system is None
    # Without a number, a pool gets what the others leave, but one placement group at least.
    wanted = [(field, pool, {"spec": pool_spec(_with_one_group(pool))}) for field, pool in _requested(rook)]
    for field, pool, _ in wanted:
        if why := why_infeasible(pool, osds, rook.cluster.namespace):
            return Ending.failure(Reason.POOL_NOT_FEASIBLE, f"spec.storage.rook.{field}: {why}")
    # The last one has the content, and so most placement groups.
    for field, pool, counted in reversed(wanted):
        taken = [*others, *(spec for _, _, spec in wanted if spec is not counted)]
        if why := why_over_budget(pool, osds, taken, platform.cluster, headers=headers):
            return Ending.failure(Reason.POOL_NOT_FEASIBLE, f"spec.storage.rook.{field}: {why}")
    return None


def _with_one_group(pool: Pool) -> Pool:
    return pool if pool.placement_groups is not None else pool.model_copy(update={"placement_groups": 1})


def _requested(rook: RookStorage) -> Iterator[tuple[str, Pool]]:
    """Yield the field and the specification of each pool that is created for a run."""
    if rook.pool is not None:
        yield "pool", rook.pool
    if rook.file_system is not None:
        yield from ((f"fileSystem.{field}", pool) for field, pool in requested(rook.file_system))


def _unusable_pools(target: CephTarget, platform: RookPlatform) -> Ending | Fact | None:
    why = why_not_existing(target, platform.pools)
    if not why:
        return None
    pools = {pool["metadata"]["name"]: pool["metadata"].get("annotations") or {} for pool in platform.pools}
    if not pools.keys() >= set(target.pools):
        return Ending.failure(Reason.POOL_NOT_FOUND, f"spec.storage.rook.existingPool: {why}")
    if any(pools[name].get(ALLOW_BENCHMARKS) != "true" for name in target.pools):
        return Ending.failure(Reason.POOL_NOT_ALLOWED, f"spec.storage.rook.existingPool: {why}")
    return Fact.false(Reason.POOL_NOT_READY, why)
