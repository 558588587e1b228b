"""Whether a cluster is fit for a measurement, for the conductor, and as far as Rook reports it for the operator.

The gate is stricter than Rook, which considers laggy placement groups healthy. Scrubs and snapshot trimming do not
close it: a large cluster always has some, and a run would wait forever. Trials are judged by their effect instead. OSDs
that are out from the beginning are a fact of the cluster, and one that goes out is a change.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType

from plimsoll.api.status import NO_OSDS, OsdsSeen
from plimsoll.ceph.pools import ACTIVE, inactive_servers, servers_of
from plimsoll.ceph.watch import ClusterStatus, FileSystemDetail

HEALTH_OK = "HEALTH_OK"
HEALTH_WARN = "HEALTH_WARN"
HEALTH_ERR = "HEALTH_ERR"

# Checks that the requested pool itself may cause; they do not mean that the cluster is degraded.
OWN_CHECKS = frozenset({"MANY_OBJECTS_PER_PG", "POOL_NO_REDUNDANCY", "POOL_TOO_FEW_PGS", "POOL_TOO_MANY_PGS"})
_KEY_CHECKS = "AUTH_INSECURE_"  # about types of keys: upgraded clusters keep them for long, and no number depends on it
# Checks whose causes close the gate even if they are muted: OSDs that are down, groups that are not active+clean.
_STATE_CHECKS = re.compile(
    r"OSD_([A-Z_]+_)?DOWN|OBJECT_(MISPLACED|UNFOUND)|PG_(AVAILABILITY|BACKFILL_FULL|DAMAGED|DEGRADED|RECOVERY_FULL)"
)
_SEVERITIES = (HEALTH_OK, HEALTH_WARN, HEALTH_ERR)
_NAMED = 6
_MAX_WORDS = 80
_MAX_MESSAGE = 300
# States of placement groups: under maintenance with all data in place, and while data moves but does not lack a copy.
_CLEAN = frozenset({"active", "clean"})
_UPKEEP = frozenset({"scrubbing", "deep", "repair", "snaptrim", "snaptrim_wait"})
_WAITING = frozenset({"snaptrim_wait"})
_BACKFILL = frozenset({"backfilling", "backfill_wait", "forced_backfill"})
_MOVES = _BACKFILL | {"remapped", "recovering", "recovery_wait", "forced_recovery"}
_LAGGY = "laggy"


def gate_problems(
    status: ClusterStatus,
    *,
    accepted: frozenset[str],
    file_system: FileSystemDetail | None = None,
    most: OsdsSeen = NO_OSDS,
) -> tuple[str, ...]:
    """Return why a cluster cannot be measured now, one sentence per problem; empty if it can.

    `accepted` are the tolerated health checks; `most` are the most OSDs that the run has seen up, and in.
    """
    problems = []
    if not status.osds:
        problems.append("the cluster has no OSDs; add some")
    if down := max(0, status.osds_in - status.osds_up):
        problems.append(f"{down} of {status.osds_in} OSDs are down; `ceph osd tree down` lists them")
    elif (down := most.up - status.osds_up) > 0:
        problems.append(f"{down} of {most.up} OSDs went down; `ceph osd tree down` lists them")
    if (out := most.members - status.osds_in) > 0:
        problems.append(
            f"{out} of {most.members} OSDs went out since the run began; mark them in with "
            "`ceph osd in`, or start a new run"
        )
    problems += server_problems(status, file_system)
    if unclean := unclean_states(status):
        problems.append(
            f"{sum(unclean.values())} placement groups are not active+clean ({states_text(unclean)}); wait until they "
            "are, or see `ceph health detail` for the cause"
        )
    if status.remapped_pgs:
        problems.append(
            f"{status.remapped_pgs} placement groups are remapped; wait until their data has moved, and turn the "
            "balancer off during the measurement"
        )
    if status.is_recovering:
        rate = status.recovering_bytes_per_second
        problems.append(f"the cluster is recovering {rate:,} bytes/s; wait until recovery ends")
    if problem := health_problem("the cluster", status.health, standing_checks(status.health, status.checks, accepted)):
        problems.append(problem)
    return tuple(problems)


def server_problems(status: ClusterStatus, file_system: FileSystemDetail | None) -> Iterator[str]:
    """Yield why a file system cannot be measured now; nothing if it can, or if there is none."""
    if file_system is None or not (inactive := inactive_servers(status, file_system)):
        return
    states = Counter(server.state for server in servers_of(status, file_system) if server.state != ACTIVE)
    others = f" ({states_text(states)})" if states else ""
    yield (
        f"{inactive} of {file_system.servers} metadata servers of file system {file_system.name} are not active"
        f"{others}; wait until they are, or see `ceph fs status {file_system.name}`"
    )


def health_problem(
    cluster: str, health: str, checks: Mapping[str, str], messages: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return why these checks, with their `messages` by name, close the gate, as a sentence; empty without checks."""
    if not checks:
        return ""
    return (
        f"{cluster} is {health[:_MAX_WORDS]}: {checks_text(checks, messages)}; see `ceph health detail`, and fix the "
        "causes or add tolerable checks to spec.gates.acceptedHealthChecks"
    )


def unclean_states(status: ClusterStatus) -> dict[str, int]:
    """Return the placement groups whose data is not all available and in place: state -> number."""
    return {state: count for state, count in status.pg_states.items() if count and not _is_clean(state)}


def moving_states(status: ClusterStatus) -> dict[str, int]:
    """Return the groups among these whose data moves, without lacking a copy: state -> number."""
    unclean = [({*state.split("+")}, state, count) for state, count in unclean_states(status).items()]
    present = _CLEAN | _UPKEEP | _MOVES
    return {
        state: count for words, state, count in unclean if "active" in words and words & _MOVES and words <= present
    }


def upkeep_states(status: ClusterStatus) -> dict[str, int]:
    """Return the clean placement groups that are scrubbed, or whose snapshots are trimmed: state -> number."""
    return {
        state: count
        for state, count in status.pg_states.items()
        if count and _is_clean(state) and {*state.split("+")} - _CLEAN - _WAITING
    }


def is_only_laggy(state: str) -> bool:
    """Whether nothing is wrong with groups in that state but that an OSD is slow to acknowledge their leases."""
    words = state.split("+")
    return _LAGGY in words and _is_clean("+".join(word for word in words if word != _LAGGY))


def is_about_keys(check: str) -> bool:
    """Whether a health check is about the type of keys: it never closes the gate, even as an error."""
    return check.startswith(_KEY_CHECKS)


def is_about_state(check: str) -> bool:
    """Whether a health check is about OSDs or placement groups that close the gate even if the check is muted."""
    return _STATE_CHECKS.fullmatch(check) is not None


def reported_checks(health: str, checks: Mapping[str, str], muted: Collection[str]) -> dict[str, str]:
    """Return the checks, name -> severity, that may be unmuted, of a report that does not say which are muted.

    `muted` ones count if the health, which is the worst of the others, shows that they are not, or by `is_about_state`.
    """
    worst = _SEVERITIES.index(health) if health in _SEVERITIES else len(_SEVERITIES)
    possible = {name: severity for name, severity in checks.items() if severity not in _SEVERITIES[worst + 1 :]}
    unmuted = {name: severity for name, severity in possible.items() if name not in muted or is_about_state(name)}
    return unmuted if health == HEALTH_OK or health in unmuted.values() else possible


def certain_checks(health: str, checks: Mapping[str, str], accepted: frozenset[str]) -> dict[str, str]:
    """Return the `reported_checks` that certainly close the gate: name -> severity; the conductor judges the rest."""
    # If a check that closes no gate explains the health, all others may be muted. Some close it even then.
    standing = standing_checks(health, checks, accepted)
    if not any(severity == health and name not in standing for name, severity in checks.items()):
        return standing
    return {name: severity for name, severity in standing.items() if is_about_state(name)}


def standing_checks(health: str, checks: Mapping[str, str], accepted: frozenset[str]) -> dict[str, str]:
    """Return the health checks that close the gate: name -> severity; `(unnamed)` if none explains the health.

    One of severity HEALTH_ERR is accepted only if it is about keys.
    """
    harmless = accepted | OWN_CHECKS
    # A check of severity HEALTH_OK is a remark, such as POOL_SCRUB_FLAGS while the run pauses scrubs.
    bad = {
        name: severity
        for name, severity in checks.items()
        if severity != HEALTH_OK and not is_about_keys(name) and (severity == HEALTH_ERR or name not in harmless)
    }
    is_named = any(severity != HEALTH_OK for severity in checks.values())
    return bad if is_named or health == HEALTH_OK else {"(unnamed)": health}


def states_text(states: Mapping[str, int]) -> str:
    """Return counted states as text, the most frequent first: `8 active+undersized, 1 unknown`."""
    ordered = sorted(states.items(), key=lambda item: (-item[1], item[0]))
    named = [f"{count} {state[:_MAX_WORDS]}" for state, count in ordered[:_NAMED]]
    rest = sum(count for _, count in ordered[_NAMED:])
    return ", ".join([*named, f"{rest} in other states"] if rest else named)


def checks_text(checks: Mapping[str, str], messages: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return health checks as text: `OSD_DOWN (HEALTH_WARN)`, with their messages as far as these are known."""
    named = [
        f"{name[:_MAX_WORDS]} ({severity[:_MAX_WORDS]}{f': {message[:_MAX_MESSAGE]}' if message else ''})"
        for name, severity in sorted(checks.items())
        for message in (messages.get(name),)
    ]
    return ", ".join([*named[:_NAMED], f"{len(named) - _NAMED} more"] if len(named) > _NAMED else named)


def _is_clean(state: str) -> bool:
    words = {*state.split("+")}
    return words >= _CLEAN and words - _CLEAN <= _UPKEEP
