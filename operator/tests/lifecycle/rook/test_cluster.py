"""Whether a CephCluster can be measured, by what Rook 1.18 writes into it."""

from typing import Any

import pytest

from plimsoll.api.run import Gates
from plimsoll.lifecycle.ceph.rook_facts import cluster_fact, why_unusable

REEF = "ceph version 18.2.7 (6b0e988052ec84cf2d4a54ff9bbbc5e720b621ad) reef (stable)"
QUINCY = "ceph version 17.2.7 (b12291d110049b2f35e32e0de30d70e9a4c060d2) quincy (stable)"
DEGRADED = {"message": "Degraded data redundancy: 4/55 objects degraded", "severity": "HEALTH_WARN"}
LOW_DISK = {"message": "mon a is low on available space", "severity": "HEALTH_WARN"}
SCRUB_FLAGS = {"message": "Some pool(s) have the noscrub flag(s) set", "severity": "HEALTH_OK"}


def why(
    health: str = "HEALTH_OK",
    details: dict[str, Any] | None = None,
    *,
    gates: Gates | None = None,
    versions: tuple[str, ...] = (REEF,),
    ready: str = "True",
) -> str:
    status = {
        "phase": "Progressing",
        "message": "Configuring Ceph OSDs",
        "conditions": [{"type": "Progressing", "status": "True"}, {"type": "Ready", "status": ready}],
        "ceph": {"health": health, "details": details or {}, "versions": {"overall": dict.fromkeys(versions, 3)}},
        "version": {"version": "18.2.7-0"},
    }
    fact = cluster_fact({"metadata": {"namespace": "rook-ceph", "name": "rook-ceph"}, "status": status})
    assert fact.version == "18.2.7-0"
    return why_unusable(fact, gates or Gates())


def test_a_healthy_cluster_is_usable_while_rook_works_on_it() -> None:
    assert why() == ""


@pytest.mark.parametrize("details", [{"PG_DEGRADED": DEGRADED}, {}])
def test_warnings_are_accepted_by_nobody_but_the_user(details: dict[str, Any]) -> None:
    found = why("HEALTH_WARN", details)
    assert "is in HEALTH_WARN" in found
    assert "acceptedHealthChecks" in found
    assert all(f"{name}: {check['message']}" in found for name, check in details.items())
    assert why("HEALTH_WARN", details, gates=Gates(ceph_health="Ignored")) == ""


def test_checks_that_the_user_accepts_do_not_count() -> None:
    gates = Gates(accepted_health_checks=("MON_DISK_LOW",))
    assert why("HEALTH_WARN", {"MON_DISK_LOW": LOW_DISK}, gates=gates) == ""
    found = why("HEALTH_WARN", {"MON_DISK_LOW": LOW_DISK, "PG_DEGRADED": DEGRADED}, gates=gates)
    assert "PG_DEGRADED" in found
    assert "MON_DISK_LOW" not in found


def test_a_check_that_is_well_is_no_warning() -> None:
    found = why("HEALTH_WARN", {"POOL_SCRUB_FLAGS": SCRUB_FLAGS, "PG_DEGRADED": DEGRADED})
    assert "POOL_SCRUB_FLAGS" not in found


@pytest.mark.parametrize("health", ["HEALTH_ERR", ""])
def test_no_gate_makes_a_cluster_usable_for_which_rook_does_nothing(health: str) -> None:
    assert why(health, gates=Gates(ceph_health="Ignored")) != ""


def test_different_versions_are_refused() -> None:
    found = why(versions=(REEF, QUINCY))
    assert "reef" in found
    assert "quincy" in found
    assert "wait for its upgrade to finish" in found


def test_a_cluster_that_is_being_made_is_refused_with_what_rook_does() -> None:
    assert why(ready="False") == "CephCluster rook-ceph/rook-ceph is not ready: Configuring Ceph OSDs"


def test_a_cluster_without_any_status_is_refused() -> None:
    fact = cluster_fact({"metadata": {"namespace": "a", "name": "b"}})
    assert why_unusable(fact, Gates()) == "CephCluster a/b is not ready: Rook has not reported a status yet"
