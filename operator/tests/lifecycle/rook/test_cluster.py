"""Whether a CephCluster can be measured, by what Rook writes into it: the operator's gate, and the conductor's."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from plimsoll.api.run import Gates
from plimsoll.ceph.gate import gate_problems
from plimsoll.ceph.watch import parse_status
from plimsoll.lifecycle.ceph.rook_facts import cluster_fact, why_unusable
from support.goldens import ceph, rook_object

OK, WARN, ERR = "HEALTH_OK", "HEALTH_WARN", "HEALTH_ERR"
REEF = "ceph version 18.2.7 (6b0e988052ec84cf2d4a54ff9bbbc5e720b621ad) reef (stable)"
QUINCY = "ceph version 17.2.7 (b12291d110049b2f35e32e0de30d70e9a4c060d2) quincy (stable)"
DEGRADED = "Degraded data redundancy: 4/55 objects degraded"
DOCS = Path(__file__).parents[4] / "docs"
HARMLESS = {"MANY_OBJECTS_PER_PG", "POOL_NO_REDUNDANCY", "POOL_TOO_FEW_PGS", "POOL_TOO_MANY_PGS"}


def why(
    health: str = OK,
    checks: Mapping[str, str] | None = None,
    *,
    gates: Gates | None = None,
    versions: tuple[str, ...] = (REEF,),
    ready: str = "True",
    mutes: Mapping[str, str] | None = None,
) -> str:
    """Return the operator's reason; `checks` are severities by name, `mutes` Rook's policies by name."""
    details = {name: {"message": DEGRADED, "severity": severity} for name, severity in (checks or {}).items()}
    status = {
        "phase": "Progressing",
        "message": "Configuring Ceph OSDs",
        "conditions": [{"type": "Progressing", "status": "True"}, {"type": "Ready", "status": ready}],
        "ceph": {"health": health, "details": details, "versions": {"osd": dict.fromkeys(versions, 3)}},
        "version": {"version": "18.2.7-0"},
    }
    spec = {"healthCheck": {"muteHealthWarning": {name: {"policy": policy} for name, policy in (mutes or {}).items()}}}
    metadata = {"namespace": "rook-ceph", "name": "rook-ceph"}
    fact = cluster_fact({"metadata": metadata, "spec": spec, "status": status})
    assert fact.version == "18.2.7-0"
    return why_unusable(fact, gates or Gates())


def conductors_problems(health: str, checks: Mapping[str, str], muted: frozenset[str], gates: Gates) -> tuple[str, ...]:
    document: dict[str, Any] = json.loads(ceph("status-healthy"))
    document["health"] = {
        "status": health,
        "checks": {
            name: {"severity": severity, "summary": {"message": DEGRADED}, "muted": name in muted}
            for name, severity in checks.items()
        },
    }
    accepted = frozenset(gates.accepted_health_checks)
    return gate_problems(parse_status(json.dumps(document)), accepted=accepted)


@pytest.mark.parametrize(
    ("health", "checks", "muted", "accepted", "is_open"),
    [
        *((WARN, {name: WARN}, "", (), True) for name in sorted(HARMLESS)),
        (WARN, {"POOL_NO_REDUNDANCY": WARN, "POOL_SCRUB_FLAGS": OK}, "", (), True),
        (WARN, {"POOL_NO_REDUNDANCY": WARN, "PG_DEGRADED": WARN}, "", (), False),
        (ERR, {"POOL_NO_REDUNDANCY": ERR}, "", (), False),
        (OK, {"POOL_SCRUB_FLAGS": OK}, "", (), True),
        (WARN, {"POOL_SCRUB_FLAGS": OK}, "", (), False),
        (WARN, {"MON_DISK_LOW": WARN}, "", ("MON_DISK_LOW",), True),
        (WARN, {"MON_DISK_LOW": WARN}, "", (), False),
        (WARN, {"MON_DISK_LOW": WARN, "PG_DEGRADED": WARN}, "", ("MON_DISK_LOW",), False),
        (ERR, {"OSD_FULL": ERR}, "", ("OSD_FULL",), False),
        (ERR, {"OSD_FULL": ERR, "MON_DISK_LOW": WARN}, "", ("OSD_FULL", "MON_DISK_LOW"), False),
        (OK, {}, "", (), True),
        (WARN, {}, "", (), False),
        (ERR, {}, "", (), False),
        # Rook does not report which checks are muted, but Ceph's health is the worst of those that are not.
        (OK, {"MON_DISK_LOW": WARN, "OSD_FULL": ERR}, "MON_DISK_LOW OSD_FULL", (), True),
        (WARN, {"MON_DISK_LOW": WARN, "OSD_FULL": ERR}, "OSD_FULL", ("MON_DISK_LOW",), True),
        (WARN, {"MON_DISK_LOW": WARN, "OSD_FULL": ERR}, "OSD_FULL", (), False),
        # A check that closes no gate explains the health, so the others may be muted.
        (WARN, {"MON_DISK_LOW": WARN, "OSDMAP_FLAGS": WARN}, "MON_DISK_LOW", ("OSDMAP_FLAGS",), True),
        (WARN, {"MON_DISK_LOW": WARN, "POOL_NO_REDUNDANCY": WARN}, "MON_DISK_LOW", (), True),
        (WARN, {"MON_DISK_LOW": WARN, "AUTH_INSECURE_CLIENT_KEY_TYPE": WARN}, "MON_DISK_LOW", (), True),
        (ERR, {"MON_DISK_LOW": WARN, "AUTH_INSECURE_SERVICE_KEY_TYPE": ERR}, "MON_DISK_LOW", (), True),
        # Checks about keys never close the gate, and do not hide what is certain.
        (WARN, {"AUTH_INSECURE_CLIENT_KEY_TYPE": WARN}, "", (), True),
        (ERR, {"AUTH_INSECURE_SERVICE_KEY_TYPE": ERR, "AUTH_INSECURE_KEYS_ALLOWED": WARN}, "", (), True),
        (ERR, {"AUTH_INSECURE_SERVICE_KEY_TYPE": ERR, "OSD_FULL": ERR}, "", ("OSD_FULL",), False),
        (ERR, {"AUTH_INSECURE_SERVICE_KEY_TYPE": ERR, "OSD_HOST_DOWN": WARN}, "", (), False),
        (WARN, {"AUTH_INSECURE_CLIENT_KEY_TYPE": WARN, "PG_DEGRADED": WARN}, "", (), False),
    ],
)
def test_operator_and_conductor_judge_health_alike(
    health: str, checks: dict[str, str], muted: str, accepted: tuple[str, ...], *, is_open: bool
) -> None:
    gates = Gates(accepted_health_checks=accepted)
    operator, conductor = (
        why(health, checks, gates=gates),
        conductors_problems(health, checks, frozenset(muted.split()), gates),
    )
    assert (operator == "", conductor == ()) == (is_open, is_open), (operator, conductor)


@pytest.mark.parametrize(
    ("health", "harmless", "accepted"),
    [
        (WARN, {"OSDMAP_FLAGS": WARN}, ("OSDMAP_FLAGS",)),
        (WARN, {"AUTH_INSECURE_CLIENT_KEY_TYPE": WARN}, ()),
        (ERR, {"AUTH_INSECURE_SERVICE_KEY_TYPE": ERR}, ()),
        (WARN, {"POOL_NO_REDUNDANCY": WARN}, ()),
    ],
)
def test_what_may_be_muted_is_left_to_the_conductor(
    health: str, harmless: dict[str, str], accepted: tuple[str, ...]
) -> None:
    """Rook does not say whether it is, and `ceph status` does."""
    checks, gates = harmless | {"MON_DOWN": WARN}, Gates(accepted_health_checks=accepted)
    assert why(health, checks, gates=gates) == ""
    (problem,) = conductors_problems(health, checks, frozenset(), gates)
    assert "MON_DOWN (HEALTH_WARN);" in problem


@pytest.mark.parametrize(
    ("checks", "mutes", "closing"),
    [
        ({"MON_DISK_LOW": WARN, "OSDMAP_FLAGS": WARN}, {"MON_DISK_LOW": "mute"}, "OSDMAP_FLAGS"),
        ({"MON_DISK_LOW": WARN, "OSDMAP_FLAGS": WARN}, {"MON_DISK_LOW": "unmute"}, "MON_DISK_LOW OSDMAP_FLAGS"),
        # The groups are inactive, whether the check is muted or not.
        (
            {"PG_AVAILABILITY": WARN, "OSDMAP_FLAGS": WARN},
            {"PG_AVAILABILITY": "mute"},
            "OSDMAP_FLAGS PG_AVAILABILITY",
        ),
        # A mute that is not in force yet: otherwise Ceph would be healthy.
        ({"MON_DISK_LOW": WARN}, {"MON_DISK_LOW": "mute"}, "MON_DISK_LOW"),
        ({"MON_DISK_LOW": WARN, "OSD_FULL": ERR}, {"MON_DISK_LOW": "mute"}, "MON_DISK_LOW"),
    ],
)
def test_what_rook_mutes_is_not_named(checks: dict[str, str], mutes: dict[str, str], closing: str) -> None:
    found = why(WARN, checks, mutes=mutes)
    assert {name for name in checks if name in found} == {*closing.split()}


@pytest.mark.parametrize(
    ("recorded", "accepted", "named"),
    [
        ("ready-health-ok", (), ""),
        ("health-warn-noout-with-muted", (), "OSDMAP_FLAGS"),
        ("health-warn-noout-with-muted", ("OSDMAP_FLAGS",), ""),
        ("health-warn-insecure-keys", (), "PG_DEGRADED"),
        ("health-err", (), ""),
    ],
)
def test_clusters_of_ceph_20_are_judged_as_recorded(recorded: str, accepted: tuple[str, ...], named: str) -> None:
    fact = cluster_fact(rook_object(f"cephcluster-{recorded}"))
    assert fact.version == "20.2.4-0"
    found = why_unusable(fact, Gates(accepted_health_checks=accepted))
    assert re.findall(r"[A-Z]+_[A-Z_]*[A-Z] (?=\(HEALTH)", found) == ([f"{named} "] if named else [])


def test_the_checks_that_the_docs_call_harmless_are_the_tested_ones() -> None:
    section = (
        (DOCS / "explanation" / "trust.md")
        .read_text()
        .partition("**Before** a trial")[2]
        .partition("**During** a trial")[0]
    )
    named = {*re.findall(r"`([A-Z][A-Z0-9]*_[A-Z0-9_]+)`", section)}
    assert named == {*HARMLESS, "POOL_SCRUB_FLAGS", "AUTH_INSECURE_SERVICE_KEY_TYPE"}


def test_health_is_named_with_its_checks_and_what_they_report() -> None:
    found = why(
        WARN, {"MON_DISK_LOW": WARN, "PG_DEGRADED": WARN}, gates=Gates(accepted_health_checks=("MON_DISK_LOW",))
    )
    assert found == (
        f"CephCluster rook-ceph/rook-ceph is HEALTH_WARN: PG_DEGRADED (HEALTH_WARN: {DEGRADED}); see `ceph health "
        "detail`, and fix the causes or add tolerable checks to spec.gates.acceptedHealthChecks, or set "
        "spec.gates.cephHealth to Ignored"
    )


def test_a_warning_does_not_matter_if_health_is_ignored() -> None:
    assert why(WARN, {"PG_DEGRADED": WARN}, gates=Gates(ceph_health="Ignored")) == ""


@pytest.mark.parametrize("health", [ERR, ""])
def test_no_gate_makes_a_cluster_usable_for_which_rook_does_nothing(health: str) -> None:
    found = why(health, {"OSD_FULL": ERR}, gates=Gates(ceph_health="Ignored"))
    assert "OSD_FULL" in found or not health
    assert "Rook" in found


def test_different_versions_are_refused() -> None:
    found = why(versions=(REEF, QUINCY))
    assert "reef" in found
    assert "quincy" in found
    assert "wait for its upgrade to finish" in found


@pytest.mark.parametrize(
    ("kind", "file_system", "is_refused"), [("rgw", True, False), ("mds", False, False), ("mds", True, True)]
)
def test_daemons_of_another_version_matter_only_if_numbers_depend_on_them(
    kind: str, *, file_system: bool, is_refused: bool
) -> None:
    ceph = {"health": "HEALTH_OK", "versions": {"mon": {REEF: 3}, "osd": {REEF: 3}, kind: {QUINCY: 1}}}
    status = {"conditions": [{"type": "Ready", "status": "True"}], "ceph": ceph}
    found = cluster_fact({"metadata": {"namespace": "a", "name": "b"}, "status": status}, file_system=file_system)
    assert ("different versions" in why_unusable(found, Gates())) is is_refused


def test_a_cluster_that_is_being_created_is_refused_with_what_rook_reports() -> None:
    assert why(ready="False") == "CephCluster rook-ceph/rook-ceph is not ready: Configuring Ceph OSDs"


@pytest.mark.parametrize(
    ("connected", "problem"),
    [("True", ""), ("False", "is not ready: Attempting to connect; check Secret rook-ceph-mon")],
)
def test_an_external_cluster_is_ready_once_rook_is_connected(connected: str, problem: str) -> None:
    status = {
        "phase": "Connected",
        "message": "Attempting to connect",
        "conditions": [{"type": "Connecting", "status": "True"}, {"type": "Connected", "status": connected}],
        "ceph": {"health": OK, "versions": {"osd": {REEF: 3}}},
    }
    metadata, spec = {"namespace": "a", "name": "b"}, {"external": {"enable": True}}
    fact = cluster_fact({"metadata": metadata, "spec": spec, "status": status})
    found = why_unusable(fact, Gates())
    assert (fact.external, bool(found)) == (True, bool(problem))
    assert problem in found


def test_a_cluster_without_any_status_is_refused() -> None:
    fact = cluster_fact({"metadata": {"namespace": "a", "name": "b"}})
    assert why_unusable(fact, Gates()) == "CephCluster a/b is not ready: Rook has not reported a status yet"
