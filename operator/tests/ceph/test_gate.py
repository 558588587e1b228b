import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.ceph.gate import gate_problems, unclean_states, upkeep_states
from plimsoll.ceph.watch import ClusterStatus, parse_status
from support.goldens import NEW_ROOK, ceph, rook

HEALTHY = parse_status(ceph("status-healthy"))
NONE: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    "text",
    [
        ceph("status-healthy"),
        ceph("status-pool-noscrub"),
        rook("status-health-ok-muted", NEW_ROOK),
        rook("status-with-mds", NEW_ROOK),
    ],
)
def test_healthy_cluster_passes(text: str) -> None:
    assert gate_problems(parse_status(text), accepted=NONE) == ()


def test_flag_for_all_pools_is_a_problem_unless_accepted() -> None:
    status = parse_status(ceph("status-noscrub"))
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


def test_osd_that_is_down_and_its_consequences() -> None:
    osds, groups, health = gate_problems(parse_status(ceph("status-osd-down")), accepted=NONE)
    assert osds == "1 of 3 OSDs are down; `ceph osd tree down` lists them"
    assert "17 placement groups are not active+clean (16 active+undersized+degraded, 1 active+undersized)" in groups
    assert "OSD_DOWN" in health


def test_accepting_checks_does_not_accept_their_causes() -> None:
    status = parse_status(ceph("status-osd-down"))
    accepted = frozenset(status.checks)
    assert len(gate_problems(status, accepted=accepted)) == 2


def test_scrubbing_is_reported_and_passes() -> None:
    status = parse_status(ceph("status-scrubbing"))
    assert unclean_states(status) == {}
    assert upkeep_states(status) == {"active+clean+scrubbing+deep": 2}
    assert gate_problems(status, accepted=NONE) == ()


def test_laggy_and_unknown_groups_are_not_clean() -> None:
    status = dataclasses.replace(HEALTHY, pg_states={"active+clean": 1, "active+clean+laggy": 3})
    assert unclean_states(status) == {"active+clean+laggy": 3}
    assert "unknown" in unclean_states(parse_status(rook("status-undersized-incomplete")))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"osds_in": 2}, "1 of 3 OSDs are out"),
        ({"remapped_pgs": 4}, "4 placement groups are remapped"),
        ({"recovering_bytes_per_second": 10}, "recovering 10 bytes/s"),
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
