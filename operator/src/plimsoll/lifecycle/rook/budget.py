"""How many placement groups Ceph lets a pool have: a budget per OSD, which all pools share.

Ceph checks it when the pool is there already, and Rook then tries again for ever; so it is checked before.
"""

from collections.abc import Iterable, Sequence

from plimsoll.api.storage import Pool
from plimsoll.lifecycle.children import Object
from plimsoll.lifecycle.rook.feasibility import Osd, placement_groups, usable_osds, width
from plimsoll.lifecycle.rook.render import metadata_size

SETTING = "mon_max_pg_per_osd"
_DEFAULT_PER_OSD = 250
"""Source: Ceph, global.yaml.in. Of an administrator's settings those that Rook was given are known."""

_SECTIONS = ("mon", "global")
_LEAST_OSDS = 3
"""Ceph reckons with as many even if there are fewer."""


def why_over_budget(pool: Pool, osds: Sequence[Osd], others: Iterable[Object], cluster: Object) -> str:
    """Return why Ceph would not give a pool its placement groups, and what to do about it; empty if it would.

    `others` are all CephBlockPools there. Only what is written of them is known: of a pool that is scaled by itself,
    and of those that Rook does not know, nothing is counted.
    """
    limit, taken = _limit(cluster), _per_osd(sum(map(_replicas, others)), sum(osd.available for osd in osds))
    wanted = pool.placement_groups or 1
    needed = _per_osd(wanted * _copies(pool), usable_osds(pool, osds))
    if needed + taken <= limit:
        return ""
    fits = _fitting(pool, osds, limit - taken)
    remedy = f"ask for at most {fits} placementGroups, or add OSDs" if fits else "remove pools, or add OSDs"
    return (
        f"{wanted} placement groups would be {needed:.0f} for each OSD that the pool can use, besides {taken:.0f} of "
        f"other pools; Ceph allows {limit} ({SETTING}); {remedy}"
    )


def fitting_placement_groups(pool: Pool, osds: Sequence[Osd], others: Iterable[Object], cluster: Object) -> Pool:
    """Return the pool with its placement groups fixed: as the user says, or as many as are usual and fit."""
    if pool.placement_groups is not None:
        return pool
    left = _limit(cluster) - _per_osd(sum(map(_replicas, others)), sum(osd.available for osd in osds))
    count = min(placement_groups(pool, osds), max(_fitting(pool, osds, left), 1))
    return pool.model_copy(update={"placement_groups": count})


def _fitting(pool: Pool, osds: Sequence[Osd], per_osd: float) -> int:
    """Return the most placement groups, a power of two, that need no more for each OSD; 0 if not even one does."""
    most = int(max(per_osd, 0) * max(usable_osds(pool, osds), _LEAST_OSDS)) // _copies(pool)
    return 1 << (most.bit_length() - 1) if most else 0


def _per_osd(replicas: int, osds: int) -> float:
    return replicas / max(osds, _LEAST_OSDS)


def _copies(pool: Pool) -> int:
    """Return how many OSDs each placement group is on; with those of the pool that has the images' headers."""
    chunks = pool.erasure_coded
    return width(pool) + (metadata_size(chunks.coding_chunks) if chunks is not None else 0)


def _replicas(found: Object) -> int:
    """Return how many replicas of placement groups a CephBlockPool has, as far as it says."""
    spec = found.get("spec") or {}
    chunks = spec.get("erasureCoded") or {}
    size = _count((spec.get("replicated") or {}).get("size"))
    copies = size or _count(chunks.get("dataChunks")) + _count(chunks.get("codingChunks"))
    return _count((spec.get("parameters") or {}).get("pg_num")) * copies


def _limit(cluster: Object) -> int:
    """Return the budget for each OSD, as Rook was told to set it."""
    config = (cluster.get("spec") or {}).get("cephConfig") or {}
    told = (_count((config.get(section) or {}).get(SETTING)) for section in _SECTIONS)
    return next(filter(None, told), _DEFAULT_PER_OSD)


def _count(value: object) -> int:
    """Return a count, which may be written as a text; 0 if it is none."""
    text = str(value)
    return int(text) if text.isdecimal() else 0
