"""What keeps a run from harming its cluster: whether its data fits, its pool's quota, and what ends it at once."""

from collections.abc import Collection
from dataclasses import dataclass

from plimsoll.api.quantity import format_quantity

POOL_FULL = "POOL_FULL"
FULL_QUOTA = "full_quota"  # flag of a pool at its quota. Source: `pg_pool_t::get_flag_name`, Ceph 18.2 and 20.2
# Health checks after which Ceph soon stops writes, or its monitors may lose their quorum.
_RISKS = frozenset({"OSD_NEARFULL", "OSD_BACKFILLFULL", "OSD_FULL", POOL_FULL, "MON_DOWN"})
_MEBIBYTE = 2**20
_SPARE = 10  # a quota leaves this part, one tenth, beyond the volumes


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """How full the OSDs of a pool are, and how much data it can take."""

    fullest: float  # used part of the fullest one, 0 to 1
    full: float  # the used part at which no more can be written
    available_bytes: int  # how much of the pool's data, without copies, can be written until then (MAX AVAIL)

    def after(self, data_bytes: int) -> float:
        """Return the most that any of the OSDs is used once that data is written."""
        # A part of MAX AVAIL takes at most that part of each OSD's remaining space, so the fullest remains the fullest.
        return self.fullest + (self.full - self.fullest) * data_bytes / max(self.available_bytes, 1)


def fill_problem(fill: Fill, data_bytes: int, *, percent: int) -> str:
    """Return why so much data does not fit, with the remedy; empty if it does."""
    after = fill.after(data_bytes)
    if after <= percent / 100:
        return ""
    remedy = "decrease spec.storage.volume.size or spec.clients.count, " if data_bytes else ""
    return (
        f"spec.limits.fillPercent is {percent}, but the run's volumes ({_size(data_bytes)} without copies, of "
        f"{_size(fill.available_bytes)} that the pool can take) would fill the fullest OSD from {fill.fullest:.1%} to "
        f"{after:.1%}; {remedy}delete data, add OSDs, or raise the limit"
    )


def quota_bytes(fill: Fill, volumes_bytes: int, *, percent: int) -> int:
    """Return the quota of a run's pool: the room that the limit leaves, but more than its volumes can hold."""
    rest = fill.full - fill.fullest
    part = (percent / 100 - fill.fullest) / rest if rest > 0 else 0.0
    room = int(fill.available_bytes * min(part, 1.0))
    return -(-max(0, room, volumes_bytes + volumes_bytes // _SPARE) // _MEBIBYTE) * _MEBIBYTE


def risks(checks: Collection[str], stop_on: Collection[str]) -> frozenset[str]:
    """Return which of the cluster's health checks end a run if they appear while it loads the cluster."""
    return _RISKS.union(stop_on).intersection(checks)


def risk_message(appeared: Collection[str]) -> str:
    """Return that these checks ended the run, and what to do."""
    remedy = "bring monitors back, delete data, add OSDs, or lower what the run writes"
    if not _RISKS.issuperset(appeared):
        remedy = "lower the load, or remove the check from spec.gates.stopOn"
    names = ", ".join(sorted(appeared))
    return f"{names} appeared while the run loaded the cluster (see `ceph health detail`); {remedy}"


def quota_message(pools: Collection[str]) -> str:
    """Return that pools of the run reached their quotas, and what to do."""
    return (
        f"pool {' and '.join(sorted(pools))} has reached its quota, where all writes hang; have the run write less "
        "(runtimeSeconds, clients, object sizes), raise spec.limits.fillPercent, or raise an existing pool's quota"
    )


def _size(size: int) -> str:
    """Return a size for people: 1.5Gi."""
    for suffix, factor in (("Ti", 2**40), ("Gi", 2**30)):
        if size >= factor and size % factor:
            return f"{size / factor:.1f}{suffix}"
    return format_quantity(size - size % _MEBIBYTE if size > _MEBIBYTE else size)
