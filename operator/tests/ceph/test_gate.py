import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.ceph.gate import gate_problems, standing_checks, unclean_states, upkeep_states
from plimsoll.ceph.status import parse_status
from plimsoll.ceph.watch import ClusterStatus
from support.ceph_goldens import ceph, rook

HEALTHY = parse_status(ceph("status-healthy"))
NONE: frozenset[str] = frozenset()


@pytest.mark.parametrize("name", ["status-healthy", "status-pool-noscrub"])
def test_healthy_cluster_may_be_measured(name: str) -> None:
    assert gate_problems(parse_status(ceph(name)), accepted=NONE) == ()


def test_remark_of_paused_scrubs_is_no_problem() -> None:
    status = parse_status(ceph("status-pool-noscrub"))
    assert status.checks == {"POOL_SCRUB_FLAGS": "HEALTH_OK"}
    assert standing_checks(status, NONE) == {}


def test_flag_for_all_pools_is_one_unless_it_is_accepted() -> None:
    status = parse_status(ceph("status-noscrub"))
    (problem,) = gate_problems(status, accepted=NONE)
    assert "OSDMAP_FLAGS (HEALTH_WARN)" in problem
    assert "spec.gates.acceptedHealthChecks" in problem
    assert gate_problems(status, accepted=frozenset({"OSDMAP_FLAGS"})) == ()


def test_osd_that_is_down_and_what_follows_from_it() -> None:
    osds, groups, health = gate_problems(parse_status(ceph("status-osd-down")), accepted=NONE)
    assert osds == "1 of 3 OSDs are down; `ceph osd tree down` names them"
    assert "17 placement groups are not active+clean (16 active+undersized+degraded, 1 active+undersized)" in groups
    assert "OSD_DOWN" in health


def test_accepting_checks_does_not_accept_what_they_are_about() -> None:
    status = parse_status(ceph("status-osd-down"))
    accepted = frozenset(status.checks)
    assert len(gate_problems(status, accepted=accepted)) == 2


def test_scrubbing_is_told_apart_and_keeps_nobody_from_measuring() -> None:
    status = parse_status(ceph("status-scrubbing"))
    assert unclean_states(status) == {}
    assert upkeep_states(status) == {"active+clean+scrubbing+deep": 2}
    assert gate_problems(status, accepted=NONE) == ()


def test_groups_that_are_slow_or_not_there_are_not_clean() -> None:
    status = dataclasses.replace(HEALTHY, pg_states={"active+clean": 1, "active+clean+laggy": 3})
    assert unclean_states(status) == {"active+clean+laggy": 3}
    assert "unknown" in unclean_states(parse_status(rook("status-undersized-incomplete")))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"osds_in": 2}, "1 of 3 OSDs are out"),
        ({"remapped_pgs": 4}, "4 placement groups are remapped"),
        ({"recovering_bytes_per_second": 10}, "recovers 10 bytes/s"),
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


def test_what_the_benchmarks_own_pool_causes_is_no_problem() -> None:
    checks = {"MANY_OBJECTS_PER_PG": "HEALTH_WARN", "POOL_NO_REDUNDANCY": "HEALTH_WARN"}
    status = dataclasses.replace(HEALTHY, health="HEALTH_WARN", checks=checks)
    assert gate_problems(status, accepted=NONE) == ()


def test_error_is_never_accepted() -> None:
    status = dataclasses.replace(HEALTHY, health="HEALTH_ERR", checks={"OSD_FULL": "HEALTH_ERR"})
    assert gate_problems(status, accepted=frozenset({"OSD_FULL"}))


def test_many_states_and_checks_are_named_within_bounds() -> None:
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
def test_every_group_is_clean_or_cared_for_or_unclean_but_never_two_of_them(states: dict[str, int]) -> None:
    status: ClusterStatus = dataclasses.replace(HEALTHY, pg_states=states)
    unclean, upkeep = unclean_states(status), upkeep_states(status)
    clean = {state for state in states if {*state.split("+")} == {"active", "clean"}}
    assert not {*unclean} & {*upkeep}
    assert {*unclean} | {*upkeep} | clean == {state for state, count in states.items() if count} | clean
    assert bool(unclean) == bool(gate_problems(status, accepted=NONE))
