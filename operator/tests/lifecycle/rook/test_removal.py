"""When a pool may be deleted: by what Rook 1.18 writes into the CephCluster."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.lifecycle.ceph.rook import deletion_blocker
from plimsoll.lifecycle.ceph.rook_facts import cluster_fact, rook_fact
from plimsoll.lifecycle.decision import Fact

ENDED = datetime(2026, 11, 21, 8, 55, 0, tzinfo=UTC)
INACTIVE = {"message": "Reduced data availability: 1 pg inactive, 1 pg incomplete", "severity": "HEALTH_WARN"}
DEGRADED = {"message": "Degraded data redundancy: 2 pgs degraded, 8 pgs undersized", "severity": "HEALTH_WARN"}
POOL = rook_fact(
    {
        "apiVersion": "ceph.rook.io/v1",
        "kind": "CephBlockPool",
        "metadata": {
            "name": "plimsoll-a",
            "namespace": "rook-ceph",
            "uid": "u",
            "generation": 2,
            "creationTimestamp": "2026-11-21T08:50:00Z",
        },
        "status": {"phase": "Failure"},
    },
    {},
)


def held(
    details: dict[str, Any] | None = None,
    *,
    checked: str | None = "2026-11-21T08:55:02Z",
    answered: bool = False,
    ended: datetime | None = ENDED,
    health: str = "",
) -> Fact | None:
    ceph = {
        "health": health or ("HEALTH_WARN" if details else "HEALTH_OK"),
        "details": details or {},
        "lastChecked": checked,
    }
    cluster = cluster_fact({"metadata": {"namespace": "rook-ceph", "name": "c"}, "status": {"ceph": ceph}})
    return deletion_blocker(POOL, cluster, groups_answered=answered, ended=ended)


@pytest.mark.parametrize("answered", [True, False])
def test_a_pool_stays_while_placement_groups_are_inactive(*, answered: bool) -> None:
    found = held({"PG_AVAILABILITY": INACTIVE}, answered=answered)
    assert found is not None
    assert found.reason == "PlacementGroupsInactive"
    for words in (
        "CephBlockPool rook-ceph/plimsoll-a is not deleted while",
        "CephCluster rook-ceph/c",
        "1 pg inactive, 1 pg incomplete",
        "continues when they are active",
        "bring the OSDs back",
    ):
        assert words in found.message


def test_other_checks_keep_a_pool_for_as_long_as_ceph_may_not_have_complained_of_inactive_groups() -> None:
    soon = held({"PG_DEGRADED": DEGRADED})
    assert soon is not None
    assert soon.reason == "InProgress"
    assert held({"PG_DEGRADED": DEGRADED}, checked="2026-11-21T08:56:01Z") is None
    assert held({"PG_DEGRADED": DEGRADED}, answered=True) is None


def test_a_pool_of_a_healthy_cluster_goes() -> None:
    assert held() is None


KEYS = {"message": "7 auth client entities with insecure key types", "severity": "HEALTH_WARN"}
LOW = {"message": "mon a is low on available space", "severity": "HEALTH_WARN"}
DOWN = {"message": "1 osds down", "severity": "HEALTH_WARN"}


@pytest.mark.parametrize(
    ("details", "health", "waits"),
    [
        ({"AUTH_INSECURE_CLIENT_KEY_TYPE": KEYS, "MON_DISK_LOW": LOW}, "HEALTH_OK", False),
        ({"AUTH_INSECURE_CLIENT_KEY_TYPE": KEYS}, "HEALTH_WARN", False),
        ({"AUTH_INSECURE_CLIENT_KEY_TYPE": KEYS, "MON_DISK_LOW": LOW}, "HEALTH_WARN", True),
        # Even if it is muted: its placement groups may be about to be reported.
        ({"OSD_DOWN": DOWN}, "HEALTH_OK", True),
        ({}, "HEALTH_WARN", True),
    ],
)
def test_muted_checks_and_those_about_keys_do_not_keep_a_pool(
    details: dict[str, Any], health: str, *, waits: bool
) -> None:
    assert (held(details, health=health) is not None) == waits


def test_what_rook_heard_before_the_end_does_not_count() -> None:
    """OSDs that went down just before are not in it yet."""
    found = held(checked="2026-11-21T08:54:59Z")
    assert found is not None
    assert found.reason == "InProgress"
    assert "last check: 2026-11-21T08:54:59Z" in found.message
    assert "check that Rook's operator is running" in found.message


def test_a_pool_whose_objects_were_just_listed_does_not_wait_for_rook() -> None:
    assert held(checked="2026-11-21T08:54:59Z", answered=True) is None


def test_an_end_that_is_not_written_down_yet_comes_after_everything_that_rook_heard() -> None:
    assert held(ended=None) is not None


@pytest.mark.parametrize("checked", [None, "soon", "2026-11-21T08:54:59"])
def test_a_rook_that_does_not_say_when_it_asked_is_not_waited_for(checked: str | None) -> None:
    assert held(checked=checked) is None


def test_without_a_cephcluster_rook_only_lets_go() -> None:
    assert deletion_blocker(POOL, None, groups_answered=False, ended=ENDED) is None
