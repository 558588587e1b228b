"""Whether the pools of a run are what its plan says: Rook calls a pool ready although it failed at a part of it."""

from collections.abc import Iterator, Mapping

from plimsoll.api.storage import Pool
from plimsoll.ceph.pools import PoolDetail
from plimsoll.plan.document import CephTarget


def pool_problems(target: CephTarget, found: Mapping[str, PoolDetail]) -> tuple[str, ...]:
    """Return what is wrong with the pools, in words; empty if nothing is."""
    missing = [name for name in target.pools if name not in found]
    if missing:
        return tuple(f"there is no pool {name}" for name in missing)
    pools = [found[name] for name in target.pools]
    problems = [problem for pool in pools for problem in _unsettled(pool)]
    if target.made is not None:
        # The data is in the last one: the pool before an erasure-coded one has the images' names only.
        problems += _differences(target.made, pools[-1])
    return tuple(problems)


def _unsettled(pool: PoolDetail) -> Iterator[str]:
    if not pool.is_settled:
        yield (
            f"pool {pool.name} is on its way from {pool.pg_num} to {pool.pg_num_target} placement groups; wait, or "
            "switch off its autoscaler"
        )


def _differences(wanted: Pool, pool: PoolDetail) -> Iterator[str]:
    coded = wanted.erasure_coded
    kind = "erasure" if coded else "replicated"
    size = coded.data_chunks + coded.coding_chunks if coded else wanted.replicated.size if wanted.replicated else 0
    if (pool.type, pool.size) != (kind, size):
        yield f"pool {pool.name} is {pool.type} with size {pool.size}, not {kind} with size {size}"
    groups = wanted.placement_groups
    if groups is not None and pool.pg_num_target != groups:
        yield f"pool {pool.name} has {pool.pg_num_target} placement groups, not {groups}"
    if groups is not None and pool.autoscale_mode != "off":
        yield f"pool {pool.name} has its autoscaler {pool.autoscale_mode}, which would split placement groups meanwhile"
    mode = wanted.compression_mode
    if mode is not None and pool.options.get("compression_mode", "none") != mode:
        found = pool.options.get("compression_mode", "none")
        yield f"pool {pool.name} has compression {found}, not {mode}"
