import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.ceph.gate import gate_problems, moving_states, unclean_states, upkeep_states
from plimsoll.ceph.watch import LITTLE_RECOVERY, ClusterStatus, parse_status
from support.goldens import CEPH_VERSIONS, NEW_ROOK, ceph, rook

HEALTHY = parse_status(ceph("status-healthy"))
NONE: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    "text",
    [
        *(ceph(name, version) for name in ("status-healthy", "status-pool-noscrub") for version in CEPH_VERSIONS),
        rook("status-health-ok-muted", NEW_ROOK),
        rook("status-with-mds", NEW_ROOK),
    ],
)
def test_healthy_cluster_passes(text: str) -> None:
    assert gate_problems(parse_status(text), accepted=NONE) == ()


@pytest.mark.parametrize("version", CEPH_VERSIONS)
def test_flag_for_all_pools_is_a_problem_unless_accepted(version: str) -> None:
    status = parse_status(ceph("status-noscrub", version))
    (problem,) = gate_problems(status, accepted=NONE)
    assert "OSDMAP_FLAGS (HEALTH_WARN)" in problem
    assert "spec.gates.acceptedHealthChecks" in problem
    assert gate_problems(status, accepted=frozenset({"OSDMAP_FLAGS"})) == ()


def test_checks_about_keys_never_close_the_gate() -> None:
    """`ceph status` after an upgrade, one of whose checks is an error."""
    document = json.loads(rook("status-health-ok-muted", NEW_ROOK))
    document["health"] = json.loads(rook("health-detail-health-err", NEW_ROOK))
    status = parse_status(json.dumps(document))
    assert (status.health, status.checks["AUTH_INSECURE_SERVICE_KEY_TYPE"]) == ("HEALTH_ERR", "HEALTH_ERR")
    assert gate_problems(status, accepted=NONE) == ()
    with_another = dataclasses.replace(status, checks={**status.checks, "OSD_FULL": "HEALTH_ERR"})
    (problem,) = gate_problems(with_another, accepted=frozenset({"OSD_FULL"}))
    assert "HEALTH_ERR: OSD_FULL (HEALTH_ERR);" in problem


def test_unmuted_warnings_about_keys_leave_only_the_others() -> None:
    groups, health = gate_problems(parse_status(rook("status-health-warn-insecure-keys", NEW_ROOK)), accepted=NONE)
    assert groups.startswith("1 placement groups are not active+clean (1 active+undersized+degraded)")
    assert "HEALTH_WARN: PG_DEGRADED (HEALTH_WARN);" in health


def test_only_what_is_not_muted_closes_the_gate() -> None:
    status = parse_status(rook("status-noout-muted", NEW_ROOK))
    (problem,) = gate_problems(status, accepted=NONE)
    assert "HEALTH_WARN: OSDMAP_FLAGS (HEALTH_WARN);" in problem
    assert gate_problems(status, accepted=frozenset({"OSDMAP_FLAGS"})) == ()


@pytest.mark.parametrize("version", CEPH_VERSIONS)
def test_osd_that_is_down_and_its_consequences(version: str) -> None:
    osds, groups, health = gate_problems(parse_status(ceph("status-osd-down", version)), accepted=NONE)
    assert osds == "1 of 3 OSDs are down; `ceph osd tree down` lists them"
    assert "17 placement groups are not active+clean (16 active+undersized+degraded, 1 active+undersized)" in groups
    assert "OSD_DOWN" in health


@pytest.mark.parametrize("version", CEPH_VERSIONS)
def test_accepting_checks_does_not_accept_their_causes(version: str) -> None:
    status = parse_status(ceph("status-osd-down", version))
    accepted = frozenset(status.checks)
    assert len(gate_problems(status, accepted=accepted)) == 2


@pytest.mark.parametrize(("version", "scrubbed"), [("18.2", 2), ("20.2", 5)])
def test_scrubbing_is_reported_and_passes(version: str, scrubbed: int) -> None:
    status = parse_status(ceph("status-scrubbing", version))
    assert sum(status.pg_states.values()) == 17
    assert unclean_states(status) == {}
    assert upkeep_states(status) == {"active+clean+scrubbing+deep": scrubbed}
    assert gate_problems(status, accepted=NONE) == ()


def test_laggy_and_unknown_groups_are_not_clean() -> None:
    status = dataclasses.replace(HEALTHY, pg_states={"active+clean": 1, "active+clean+laggy": 3})
    assert unclean_states(status) == {"active+clean+laggy": 3}
    assert "unknown" in unclean_states(parse_status(rook("status-undersized-incomplete")))


@pytest.mark.parametrize("osds", [3, 1000])
@pytest.mark.parametrize(("rate", "problems"), [(3, 0), (LITTLE_RECOVERY, 0), (LITTLE_RECOVERY + 1, 1)])
def test_the_rest_of_a_mean_is_no_recovery(osds: int, rate: int, problems: int) -> None:
    """Ceph 20 showed 3 bytes/s after a pool had been created, with all placement groups active+clean."""
    status = dataclasses.replace(HEALTHY, osds=osds, osds_up=osds, osds_in=osds, recovering_bytes_per_second=rate)
    assert len(gate_problems(status, accepted=NONE)) == problems


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"osds_up": 2}, "1 of 3 OSDs are down"),
        ({"remapped_pgs": 4}, "4 placement groups are remapped"),
        ({"recovering_bytes_per_second": 1024**2}, "recovering 1,048,576 bytes/s"),
        ({"health": "HEALTH_ERR"}, "HEALTH_ERR: (unnamed)"),
        ({"health": "HEALTH_WARN", "checks": {}}, "HEALTH_WARN: (unnamed)"),
        ({"osds": 0, "osds_up": 0, "osds_in": 0}, "no OSDs"),
    ],
)
def test_every_problem_is_a_sentence_with_a_remedy(changes: dict[str, object], words: str) -> None:
    status = dataclasses.replace(HEALTHY, **changes)  # type: ignore[arg-type]  # fields by name
    (problem,) = gate_problems(status, accepted=NONE)
    assert words in problem
    assert "; " in problem


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ""),
        ({"osds_in": 2}, "1 of 3 OSDs went out since the run began"),
        ({"osds_up": 2, "osds_in": 2}, "1 of 3 OSDs went down"),
        ({"osds": 4, "osds_up": 4, "osds_in": 4}, ""),
    ],
)
def test_osds_that_go_down_or_out_close_the_gate_and_those_that_always_were_do_not(
    changes: dict[str, int], words: str
) -> None:
    status = dataclasses.replace(HEALTHY, **changes)  # type: ignore[arg-type]  # fields by name
    assert gate_problems(status, accepted=NONE) == ()
    assert words in " ".join(gate_problems(status, accepted=NONE, most=HEALTHY.osds_seen))
    assert bool(gate_problems(status, accepted=NONE, most=HEALTHY.osds_seen)) is bool(words)


def test_an_osd_that_was_out_may_go_down_and_be_purged_and_one_that_was_in_may_not() -> None:
    drained = dataclasses.replace(HEALTHY, osds=4, osds_up=4, osds_in=3)
    most = drained.osds_seen
    for osds in (4, 3):
        assert gate_problems(dataclasses.replace(drained, osds=osds, osds_up=3), accepted=NONE, most=most) == ()
    purged = dataclasses.replace(drained, osds=3, osds_up=3, osds_in=2)
    assert "1 of 3 OSDs went out" in " ".join(gate_problems(purged, accepted=NONE, most=most))
    # As many are up as are in, but not the same ones: Ceph names those that are in and down.
    down = dataclasses.replace(drained, osds_up=3, health="HEALTH_WARN", checks={"OSD_DOWN": "HEALTH_WARN"})
    assert "OSD_DOWN" in " ".join(gate_problems(down, accepted=NONE, most=most))


def test_groups_move_if_none_of_their_data_lacks_a_copy() -> None:
    moving = {"active+remapped+backfilling": 1, "active+clean+remapped": 2, "active+recovery_wait": 3}
    others = {"active+undersized+degraded+remapped+backfilling": 1, "active+remapped+laggy": 1, "remapped+peering": 1}
    status = dataclasses.replace(HEALTHY, pg_states={"active+clean": 9, **moving, **others})
    assert moving_states(status) == moving
    assert unclean_states(status) == moving | others


def test_groups_that_wait_for_their_turn_are_not_maintained() -> None:
    status = dataclasses.replace(HEALTHY, pg_states={"active+clean+snaptrim_wait": 3, "active+clean+snaptrim": 1})
    assert upkeep_states(status) == {"active+clean+snaptrim": 1}


def test_lists_of_states_and_checks_are_bounded() -> None:
    status = dataclasses.replace(
        HEALTHY,
        health="HEALTH_WARN",
        pg_states={f"{'x' * 1000}{number}": 1 for number in range(1000)},
        checks={f"{'C' * 1000}{number}": "HEALTH_WARN" for number in range(1000)},
    )
    assert all(len(problem) < 1000 for problem in gate_problems(status, accepted=NONE))


WORDS = st.sampled_from(["active", "clean", "scrubbing", "deep", "laggy", "peering", "snaptrim", "unknown", "remapped"])
STATES = st.dictionaries(st.sets(WORDS, min_size=1).map(lambda words: "+".join(sorted(words))), st.integers(0, 9))


@given(states=STATES)
def test_every_group_is_either_clean_or_maintained_or_unclean(states: dict[str, int]) -> None:
    status: ClusterStatus = dataclasses.replace(HEALTHY, pg_states=states)
    unclean, upkeep = unclean_states(status), upkeep_states(status)
    clean = {state for state in states if {*state.split("+")} == {"active", "clean"}}
    assert not {*unclean} & {*upkeep}
    assert {*unclean} | {*upkeep} | clean == {state for state, count in states.items() if count} | clean
    assert bool(unclean) == bool(gate_problems(status, accepted=NONE))
