"""How many placement groups a pool can have: Ceph's budget per OSD, which all pools share.

Ceph checks it only after the pool is created, and Rook then retries forever; so it is checked beforehand.
"""

from collections.abc import Iterable, Sequence

from plimsoll.api.file_system import FileSystem
from plimsoll.api.pools import Pool
from plimsoll.lifecycle.children import Object
from plimsoll.lifecycle.rook.feasibility import MAX_PLACEMENT_GROUPS, Osd, placement_groups, usable_osds, width
from plimsoll.lifecycle.rook.pool_spec import pool_spec
from plimsoll.lifecycle.rook.render import metadata_size

SETTING = "mon_max_pg_per_osd"
_DEFAULT_PER_OSD = 250
"""Ceph's default (global.yaml.in). Only settings made through Rook are known."""

_SECTIONS = ("mon", "global")
_SMALL_POOL_GROUPS = 16
"""What Ceph's autoscaler gives a metadata pool at least."""

_LEAST_OSDS = 3
"""Ceph counts at least this many OSDs."""


def why_over_budget(
    pool: Pool, osds: Sequence[Osd], others: Iterable[Object], cluster: Object, *, headers: bool = True
) -> str:
    """Return why Ceph would refuse a pool's placement groups, and what to do about it; empty if it would not.

    `others` are all existing CephBlockPools. Only their specifications count: autoscaled pools, and pools that Rook
    does not know, are ignored. `headers`: whether an erasure-coded pool has one more for the headers of images.
    """
    limit, used = _limit(cluster), _per_osd(sum(map(_replicas, others)), sum(osd.available for osd in osds))
    wanted = pool.placement_groups or 1
    needed = _per_osd(wanted * _copies(pool, headers=headers), usable_osds(pool, osds))
    if needed + used <= limit:
        return ""
    fits = _fitting(pool, osds, limit - used, headers=headers)
    remedy = f"set placementGroups to at most {fits}, or add OSDs" if fits else "delete pools, or add OSDs"
    return (
        f"{wanted} placement groups would add {needed:.0f} replicas to each OSD that the pool can use, in addition to "
        f"{used:.0f} of other pools; the limit is {limit} ({SETTING}); {remedy}"
    )


def fitting_placement_groups(
    pool: Pool, osds: Sequence[Osd], others: Iterable[Object], cluster: Object, *, headers: bool = True
) -> Pool:
    """Return the pool with a fixed number of placement groups: the user's, or the usual number if that fits."""
    if pool.placement_groups is not None:
        return pool
    left = _limit(cluster) - _per_osd(sum(map(_replicas, others)), sum(osd.available for osd in osds))
    count = min(placement_groups(pool, osds), max(_fitting(pool, osds, left, headers=headers), 1))
    return pool.model_copy(update={"placement_groups": count})


def fitting_file_system(made: FileSystem, osds: Sequence[Osd], others: Iterable[Object], cluster: Object) -> FileSystem:
    """Return the file system with a fixed number of placement groups for each pool.

    Only the pool with the content of files gets the usual number. The others are small.
    """
    chosen = [pool for pool in (made.metadata_pool, *made.data_pools) if pool.placement_groups is not None]
    taken = [*others, *({"spec": pool_spec(pool)} for pool in chosen)]

    def fitted(pool: Pool, most: int) -> Pool:
        if pool.placement_groups is not None:
            return pool
        found = fitting_placement_groups(pool, osds, taken, cluster, headers=False)
        if (found.placement_groups or 0) > most:
            found = found.model_copy(update={"placement_groups": most})
        taken.append({"spec": pool_spec(found)})
        return found

    metadata = fitted(made.metadata_pool, _SMALL_POOL_GROUPS)
    *small, last = made.data_pools
    data = (*(fitted(pool, _SMALL_POOL_GROUPS) for pool in small), fitted(last, MAX_PLACEMENT_GROUPS))
    return made.model_copy(update={"metadata_pool": metadata, "data_pools": data})


def _fitting(pool: Pool, osds: Sequence[Osd], per_osd: float, *, headers: bool) -> int:
    """Return the most placement groups, a power of two, within the budget per OSD; 0 if not even one fits."""
    most = int(max(per_osd, 0) * max(usable_osds(pool, osds), _LEAST_OSDS)) // _copies(pool, headers=headers)
    return 1 << (most.bit_length() - 1) if most else 0


def _per_osd(replicas: int, osds: int) -> float:
    return replicas / max(osds, _LEAST_OSDS)


def _copies(pool: Pool, *, headers: bool) -> int:
    """Return the number of OSDs per placement group, if wanted including the pool with the images' headers."""
    chunks = pool.erasure_coded
    return width(pool) + (metadata_size(chunks.coding_chunks) if headers and chunks is not None else 0)


def _replicas(found: Object) -> int:
    """Return how many replicas of placement groups a CephBlockPool has, according to its specification."""
    spec = found.get("spec") or {}
    chunks = spec.get("erasureCoded") or {}
    size = _count((spec.get("replicated") or {}).get("size"))
    copies = size or _count(chunks.get("dataChunks")) + _count(chunks.get("codingChunks"))
    return _count((spec.get("parameters") or {}).get("pg_num")) * copies


def _limit(cluster: Object) -> int:
    config = (cluster.get("spec") or {}).get("cephConfig") or {}
    limits = (_count((config.get(section) or {}).get(SETTING)) for section in _SECTIONS)
    return next(filter(None, limits), _DEFAULT_PER_OSD)


def _count(value: object) -> int:
    """Return a count, which may be a string; 0 if it is invalid."""
    text = str(value)
    return int(text) if text.isdecimal() else 0
