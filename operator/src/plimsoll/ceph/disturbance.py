"""Which OSDs a disturbance takes away, why it may not, and what of a cluster's state it causes."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from plimsoll.api.names import FailureReason
from plimsoll.api.status import OsdsSeen
from plimsoll.ceph.document import parse_answer
from plimsoll.ceph.environment import Outputs
from plimsoll.ceph.gate import HEALTH_OK, is_only_laggy, moving_states, states_text, unclean_states
from plimsoll.ceph.osds import Osd, merge_osds, parse_members, parse_osd_df, parse_osd_tree
from plimsoll.ceph.pools import CrushRule, PoolDetail, parse_crush_rules, parse_holders, parse_pools
from plimsoll.ceph.watch import LAG, ClusterSample, ClusterStatus, Outage

ANY_POOL = "*"
_MANAGER_POOL = ".mgr"  # every cluster has it; its manager waits while it is degraded
_NOUP = "noup"
SETTLED = 5 * 10**9  # nanoseconds after which the cluster's status shows that OSDs were taken away
RETURN = 60 * 10**9  # nanoseconds after which OSDs that were given back should be up and in
_LEAST_DOWN_OUT = 60 * 10**9  # nanoseconds that an OSD is at least down before it goes out; by default 10 minutes
_CAUSED_CHECKS = re.compile(
    r"OSD_([A-Z_]+_)?DOWN|OSD_FLAGS|OSD_SLOW_PING_TIME_(BACK|FRONT)|OBJECT_MISPLACED|PG_(AVAILABILITY|DEGRADED)|"
    r"PG_NOT_(DEEP_)?SCRUBBED|(BLUESTORE_)?SLOW_OPS?(_ALERT)?|TOO_MANY_PGS"
)
_CAUSED_STATES = frozenset({
    "unknown",  # until a new primary OSD has reported to the manager
    *("active", "activating", "clean", "degraded", "laggy", "peered", "peering", "remapped", "stale", "undersized"),
    *("backfilling", "backfill_wait", "forced_backfill", "forced_recovery", "recovering", "recovery_wait", "wait"),
})  # fmt: skip


class NotDisturbableError(Exception):
    """These OSDs may not be taken away; the message has the reason and the remedy."""

    refusal = FailureReason.DISTURBANCE_REFUSED


def chosen_osds(
    outputs: Outputs, *, pools: Sequence[str], neighbours: Collection[str], count: int, fill_percent: int
) -> tuple[int, ...]:
    """Return the OSDs to take away, always the same ones of a cluster; NotDisturbableError if none may be.

    They hold data of the last of the run's `pools`, and are in one failure domain if one has enough. `neighbours` are
    the pools of others that may suffer, or `*`. ValueError if what Ceph printed cannot be read.
    """
    cluster = _Cluster(outputs)
    data = cluster.pools[pools[-1]]
    by_domain: dict[str, list[int]] = {}
    # Without an OSD that holds nothing of it, clients would notice nothing.
    for number in sorted(cluster.members(data) & parse_holders(outputs.groups, data)):
        if number in cluster.available:
            by_domain.setdefault(cluster.domain(data, number), []).append(number)
    usable = [number for _, numbers in sorted(by_domain.items()) for number in numbers]
    if len(usable) < count:
        raise NotDisturbableError(
            f"disturb.osds.count is {count}, but the number of OSDs that are up and in and hold placement groups of "
            f"pool {data.name} is {len(usable)}; lower it, or use a pool with more placement groups"
        )
    together = (numbers for _, numbers in sorted(by_domain.items()) if len(numbers) >= count)
    chosen = next(together, usable)[:count]
    if problems := [*cluster.problems(chosen, pools, neighbours, data, fill_percent)]:
        names = ", ".join(f"osd.{number}" for number in chosen)
        raise NotDisturbableError(f"{names} cannot be taken away: {'; '.join(problems)}")
    return tuple(chosen)


def check_now(status: ClusterStatus | None, most: OsdsSeen) -> None:
    """Raise NotDisturbableError if OSDs may not be taken away now; `status` is None if Ceph did not report it."""
    if status is None:
        raise NotDisturbableError("Ceph did not report its status just before")
    if status.osds_up < most.up or status.osds_in < most.members:
        raise NotDisturbableError("other OSDs were down or out just before")
    moving = moving_states(status)
    unclean = {state: count for state, count in unclean_states(status).items() if state not in moving}
    if bad := {state: count for state, count in unclean.items() if not is_only_laggy(state)}:
        raise NotDisturbableError(f"placement groups were not active+clean just before ({states_text(bad)})")


def is_too_much(status: ClusterStatus, most: OsdsSeen, outage: Outage) -> bool:
    """Whether more OSDs are missing than an outage takes away, which pools may not survive."""
    down, out, count = most.up - status.osds_up, most.members - status.osds_in, len(outage.osds)
    return out > count or down > (count if outage.action == "Down" else 0)


def undisturbed(samples: Sequence[ClusterSample], outage: Outage) -> tuple[ClusterSample, ...]:
    """Return observations of a cluster without what the outage causes from its start on."""
    before = _status_before(samples, outage)
    if before is None or not outage.start:
        return tuple(samples)
    up = _Missing(outage, before.osds_up, before.osds_up_since) if outage.action == "Down" else None
    # An OSD that is down for long goes out, too (`mon_osd_down_out_interval`).
    begin = outage.start + (_LEAST_DOWN_OUT if up else 0)
    members = _Missing(outage, before.osds_in, before.osds_in_since, begin=begin, is_optional=up is not None)
    found = []
    for sample in samples:
        if (status := sample.status) and sample.at > outage.start:
            numbers: dict[str, Any] = {}
            if up is not None:
                size, since = up.without_outage(sample.at, status.osds_up, status.osds_up_since)
                numbers |= {"osds_up": size, "osds_up_since": since}
            is_down = up is not None and not up.has_returned
            size, since = members.without_outage(sample.at, status.osds_in, status.osds_in_since, is_down=is_down)
            numbers |= {"osds_in": size, "osds_in_since": since}
            found.append(replace(sample, status=replace(_without_effects(status, before), **numbers)))
        else:
            found.append(sample)
    return tuple(found)


def _status_before(samples: Sequence[ClusterSample], outage: Outage) -> ClusterStatus | None:
    return next((it.status for it in reversed(samples) if it.status and it.at <= outage.start), None)


def _without_effects(status: ClusterStatus, before: ClusterStatus) -> ClusterStatus:
    checks = {name: severity for name, severity in status.checks.items() if not _CAUSED_CHECKS.fullmatch(name)}
    states: dict[str, int] = {}
    for state, number in status.pg_states.items():
        kept = "active+clean" if {*state.split("+")} <= _CAUSED_STATES else state
        states[kept] = states.get(kept, 0) + number
    # A check of severity HEALTH_OK is a remark. Ceph's summary may be a warning already, or still, while it lists none.
    is_named = any(severity != HEALTH_OK for severity in checks.values())
    is_explained = not is_named and (status.checks.keys() != checks.keys() or status.health == "HEALTH_WARN")
    return replace(
        status,
        health=before.health if is_explained else status.health,
        checks=checks,
        pg_states=states,
        remapped_pgs=0,
        recovering_bytes_per_second=0,
    )


class _Missing:
    """The OSDs that an outage explains to be missing in a set, such as those that are up; optionally none.

    Not explained are more OSDs, those still missing a minute after they were given back or leaving again, and a change
    of the set while all of them are away.
    """

    def __init__(
        self, outage: Outage, size_before: int, since_before: str, *, begin: int = 0, is_optional: bool = False
    ) -> None:
        self._outage = outage
        self._before = size_before, since_before
        self._begin = begin
        self._has_left, self.has_returned = not is_optional, False
        self._explained_since = since_before  # the last change of the set that the outage explains
        self._is_changing = not is_optional  # whether it explains any change at the moment

    def without_outage(self, moment: int, size: int, since: str, *, is_down: bool = False) -> tuple[int, str]:
        """Return size and last change of the set without the outage's part; OSDs that are down may leave it."""
        (size_before, since_before), count = self._before, len(self._outage.osds)
        missing, is_given_back = size_before - size, moment >= self._outage.end
        may_leave = moment >= self._begin and (self._is_changing if self._has_left else is_down)
        if may_leave and not is_given_back and missing == count:
            self._has_left, self._is_changing, self._explained_since = True, False, since
        elif is_given_back:
            self._has_left = self._has_left or (may_leave and 0 < missing <= count)
            self._is_changing = self._has_left and not self.has_returned
            if missing <= 0 and self._is_changing:
                self.has_returned, self._is_changing, self._explained_since = True, False, since
        may_be_missing = self._has_left and not self.has_returned and moment < self._outage.end + RETURN
        is_explained = self._is_changing or since == self._explained_since
        explained_size = size_before if may_be_missing and missing <= count else size
        return explained_size, since_before if is_explained else since


def has_no_effect(samples: Sequence[ClusterSample], outage: Outage) -> bool:
    """Whether OSDs came back before the conductor gave them back, or never left."""
    before, settled = _status_before(samples, outage), max(outage.start, outage.away) + SETTLED
    during = [it.status for it in samples if it.status and settled < it.at < outage.end]
    if outage.returned or before is None:
        return bool(outage.returned)
    if outage.action == "Out":
        return any(status.osds_in > before.osds_in - len(outage.osds) for status in during)
    return any(status.osds_up > before.osds_up - len(outage.osds) for status in during)


def clean_after(samples: Sequence[ClusterSample], outage: Outage) -> float | None:
    """Return the seconds from an outage's end until all groups stay clean; None if the samples do not show that."""
    after = [it for it in samples if it.status and it.at >= outage.end]
    if not after or after[-1].at < outage.end + LAG:
        return None
    unclean = [number for number, it in enumerate(after) if it.status and unclean_states(it.status)]
    first = unclean[-1] + 1 if unclean else 0
    return (after[first].at - outage.end) / 10**9 if first < len(after) else None


class _Cluster:
    def __init__(self, outputs: Outputs) -> None:
        self._tree = outputs.osd_tree
        self.osds: Mapping[int, Osd] = merge_osds(parse_osd_tree(outputs.osd_tree), parse_osd_df(outputs.osd_df))
        self.pools = parse_pools(outputs.pools)
        self._rules = parse_crush_rules(outputs.crush_rules)
        kept_down = {
            osd["osd"].count()
            for osd in parse_answer(outputs.osd_dump)["osds"].elements()
            if _NOUP in {state.text() for state in osd["state"].elements()}
        }
        self.available = {number for number, osd in self.osds.items() if osd.is_up and osd.is_in} - kept_down
        self._domains: dict[str, Mapping[int, str]] = {}  # type of a bucket -> OSD -> the bucket that it is in

    def members(self, pool: PoolDetail) -> set[int]:
        """Return the OSDs that may hold a pool's data."""
        return {
            number
            for root, device_class in self._rule(pool).takes
            for number in parse_members(self._tree, root)
            if number in self.osds and device_class in {"", self.osds[number].device_class}
        }

    def domain(self, pool: PoolDetail, osd: int) -> str:
        """Return the failure domain of a pool that an OSD is in; that is the OSD if its rule has none or several."""
        kind = self._rule(pool).failure_domain or "osd"
        if kind not in self._domains:
            nodes = parse_answer(self._tree)["nodes"].elements()
            names = [node["name"].text() for node in nodes if node["type"].text() == kind]
            self._domains[kind] = {number: name for name in names for number in parse_members(self._tree, name)}
        return self._domains[kind].get(osd, f"osd.{osd}")

    def problems(
        self, chosen: Sequence[int], own: Sequence[str], neighbours: Collection[str], data: PoolDetail, fill: int
    ) -> Iterator[str]:
        """Yield why these OSDs may not be taken away, each problem with its remedy."""
        affected = [pool for pool in self.pools.values() if not self.members(pool).isdisjoint(chosen)]
        others = sorted({pool.name for pool in affected} - {*own, _MANAGER_POOL})
        if strangers := [name for name in others if not {name, ANY_POOL} & {*neighbours}]:
            yield (
                f"pools of others are on them, too ({', '.join(strangers[:4])}{', ...' if strangers[4:] else ''}); use "
                "OSDs of their own, or ask the administrator to add the pools to the chart's disturb"
            )
        for pool in affected:
            lost = {self.domain(pool, number) for number in chosen if number in self.members(pool)}
            spare = pool.size - pool.min_size
            if pool.is_stretched and spare and len(lost) > 1:
                yield (
                    f"pool {pool.name} is stretched over several parts of the cluster, and might lose all copies in "
                    "one of them; set disturb.osds.count to 1"
                )
            if len(lost) > spare:
                yield (
                    f"pool {pool.name} would become inactive, since it stays active without {spare} of its failure "
                    f"domains (size {pool.size}, min_size {pool.min_size}), and they are in {len(lost)}; lower "
                    "disturb.osds.count, or use a pool with more copies"
                )
        if (after := self._fill_without(chosen, data)) > fill / 100:
            yield (
                f"the remaining OSDs could not hold the data, of which they would be {after:.1%} full "
                f"(spec.limits.fillPercent is {fill}); delete data, add OSDs, or raise the limit"
            )

    def _fill_without(self, chosen: Sequence[int], pool: PoolDetail) -> float:
        """Return how full the OSDs get that take over the data, all others or those of its domains; 0 if none can."""
        members = self.members(pool) & self.available
        domains = {number: self.domain(pool, number) for number in members}
        lost = {domains[number] for number in chosen}
        is_bound = len({*domains.values()}) <= pool.size
        heirs = [number for number in members - {*chosen} if not is_bound or domains[number] in lost]
        sizes = {number: osd.size_bytes or 0 for number, osd in self.osds.items()}
        used = sum(sizes[number] * (self.osds[number].utilisation or 0.0) for number in (*heirs, *chosen))
        return used / size if (size := sum(sizes[number] for number in heirs)) else 0.0

    def _rule(self, pool: PoolDetail) -> CrushRule:
        return self._rules[pool.crush_rule]
