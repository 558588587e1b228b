"""Whether a cluster is fit to be measured.

Stricter than Rook, which takes a cluster for healthy while placement groups are laggy. Scrubs and snapshot trimming do
not close the gate: a large cluster is never without, and a run would wait for ever. They make a trial Suspect instead.
"""

from collections.abc import Iterator, Mapping

from plimsoll.ceph.watch import ClusterStatus

HEALTH_OK = "HEALTH_OK"
HEALTH_ERR = "HEALTH_ERR"

OWN_CHECKS = frozenset({"MANY_OBJECTS_PER_PG", "POOL_NO_REDUNDANCY", "POOL_TOO_FEW_PGS", "POOL_TOO_MANY_PGS"})
"""What a benchmark's pool causes by being what it was asked to be; none of them says that the cluster is in trouble."""

_NAMED = 6
_MAX_WORDS = 80
_CLEAN = frozenset({"active", "clean"})
_UPKEEP = frozenset({"scrubbing", "deep", "repair", "snaptrim", "snaptrim_wait"})
"""What Ceph does to placement groups in their time while all of their data is where it has to be."""


def gate_problems(status: ClusterStatus, *, accepted: frozenset[str]) -> tuple[str, ...]:
    """Return why a cluster must not be measured now, a sentence each; empty if it may.

    `accepted` are the health checks that may stand. A check of severity HEALTH_ERR never may.
    """
    return (*_osds(status), *_groups(status), *_recovery(status), *_health(status, accepted))


def unclean_states(status: ClusterStatus) -> dict[str, int]:
    """Return the placement groups whose data is not all available and where it has to be: state -> number."""
    return {state: count for state, count in status.pg_states.items() if count and not _is_clean(state)}


def upkeep_states(status: ClusterStatus) -> dict[str, int]:
    """Return the placement groups that are clean and being scrubbed, or rid of old snapshots: state -> number."""
    return {
        state: count
        for state, count in status.pg_states.items()
        if count and _is_clean(state) and {*state.split("+")} != _CLEAN
    }


def standing_checks(status: ClusterStatus, accepted: frozenset[str]) -> dict[str, str]:
    """Return the health checks that must not stand: name -> severity.

    A check of severity HEALTH_OK is a remark: POOL_SCRUB_FLAGS is one, which a run's own paused scrubs cause. One of
    severity HEALTH_ERR is never accepted. An unhealthy cluster that names no check is given as `(unnamed)`.
    """
    harmless = accepted | OWN_CHECKS
    bad = {
        name: severity
        for name, severity in status.checks.items()
        if severity != HEALTH_OK and (severity == HEALTH_ERR or name not in harmless)
    }
    named = any(severity != HEALTH_OK for severity in status.checks.values())
    return bad if named or status.health == HEALTH_OK else {"(unnamed)": status.health}


def states_text(states: Mapping[str, int]) -> str:
    """Return states or other counted things in words, the most frequent first: `8 active+undersized, 1 unknown`."""
    ordered = sorted(states.items(), key=lambda item: (-item[1], item[0]))
    named = [f"{count} {state[:_MAX_WORDS]}" for state, count in ordered[:_NAMED]]
    rest = sum(count for _, count in ordered[_NAMED:])
    return ", ".join([*named, f"{rest} in other states"] if rest else named)


def checks_text(checks: Mapping[str, str]) -> str:
    """Return health checks in words: `OSD_DOWN (HEALTH_WARN)`."""
    named = [f"{name[:_MAX_WORDS]} ({severity[:_MAX_WORDS]})" for name, severity in sorted(checks.items())]
    return ", ".join([*named[:_NAMED], f"{len(named) - _NAMED} more"] if len(named) > _NAMED else named)


def _osds(status: ClusterStatus) -> Iterator[str]:
    if not status.osds:
        yield "the cluster has no OSDs; add some"
    if status.osds_up < status.osds:
        yield f"{status.osds - status.osds_up} of {status.osds} OSDs are down; `ceph osd tree down` names them"
    if status.osds_in < status.osds:
        yield (
            f"{status.osds - status.osds_in} of {status.osds} OSDs are out; take them in again with `ceph osd in`, or "
            "remove them"
        )


def _groups(status: ClusterStatus) -> Iterator[str]:
    if unclean := unclean_states(status):
        yield (
            f"{sum(unclean.values())} placement groups are not active+clean ({states_text(unclean)}); wait until they "
            "are, or see `ceph health detail` for what keeps them"
        )
    if status.remapped_pgs:
        yield (
            f"{status.remapped_pgs} placement groups are remapped; wait until their data has moved, and switch off the "
            "balancer while measuring"
        )


def _recovery(status: ClusterStatus) -> Iterator[str]:
    if rate := status.recovering_bytes_per_second:
        yield f"the cluster recovers {rate} bytes/s; wait until it is done"


def _health(status: ClusterStatus, accepted: frozenset[str]) -> Iterator[str]:
    if bad := standing_checks(status, accepted):
        yield (
            f"the cluster is {status.health[:_MAX_WORDS]}: {checks_text(bad)}; see `ceph health detail`, and remove "
            "the causes or name checks that may stand in spec.gates.acceptedHealthChecks"
        )


def _is_clean(state: str) -> bool:
    words = {*state.split("+")}
    return words >= _CLEAN and words - _CLEAN <= _UPKEEP
