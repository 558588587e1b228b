"""The stand-in for Rook (e2e/rook) writes what real Rooks were recorded to write."""

import importlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from support.goldens import CEPH_VERSIONS, NEW_ROOK, OLD_ROOK, ceph, rook, rook_object

CONTROLLER = Path(__file__).parents[3] / "e2e" / "rook" / "controller"
MODULES = [path.stem for path in CONTROLLER.glob("*.py")]
USAGE = {"stats": {"total_bytes": 3, "total_used_raw_bytes": 1, "total_avail_bytes": 2}}
RECORDED_WITH = {OLD_ROOK: "18.2", NEW_ROOK: "20.2"}


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mapping[str, ModuleType]]:
    """The program's modules, by name; they are loaded beside each other, as in its pod."""
    before = {name: sys.modules.pop(name) for name in (*MODULES, "rados") if name in sys.modules}
    monkeypatch.syspath_prepend(str(CONTROLLER))
    sys.modules["rados"] = ModuleType("rados")
    yield {name: importlib.import_module(name) for name in MODULES if name != "main"}
    for name in (*MODULES, "rados"):
        sys.modules.pop(name, None)
    sys.modules.update(before)


class RecordingApi:
    """Keeps the events that are written."""

    namespace = "rook-ceph"

    def __init__(self) -> None:
        self.events: dict[str, dict[str, Any]] = {}

    def create(self, kind: str, manifest: dict[str, Any]) -> dict[str, Any]:
        name = f"{manifest['metadata']['generateName']}{len(self.events)}"
        self.events[name] = {"apiVersion": "v1", "kind": kind} | manifest
        return manifest | {"metadata": {"name": name}}

    def patch(self, kind: str, name: str, patch: dict[str, Any]) -> None:
        assert kind == "Event"
        self.events[name] |= patch


def release_of(stand_in: Mapping[str, ModuleType], version: str) -> Any:
    return stand_in["release"].release_for(json.loads(ceph("versions", RECORDED_WITH[version]))["mon"])


def severities(report: Mapping[str, Any]) -> dict[str, str]:
    return {name: check["severity"] for name, check in report.get("details", {}).items()}


def written(value: Any) -> dict[str, Any]:
    """Return which fields of an event are written, with those that the API server adds and nulls left out."""
    fields = {name: value[name] for name in sorted(value) if value[name] not in (None, "", {})}
    return {name: type(field) for name, field in fields.items() if name != "metadata"}


@pytest.mark.parametrize(
    ("status", "cluster"),
    [
        ("status-health-ok-muted", "cephcluster-ready-health-ok"),
        ("status-noout-muted", "cephcluster-health-warn-noout-with-muted"),
        ("status-health-warn-insecure-keys", "cephcluster-health-warn-insecure-keys"),
    ],
)
def test_details_list_all_checks_muted_ones_as_well(
    stand_in: Mapping[str, ModuleType], status: str, cluster: str
) -> None:
    recorded = rook_object(cluster)["status"]["ceph"]
    answered, versions = json.loads(rook(status, NEW_ROOK)), json.loads(rook("versions", NEW_ROOK))
    report = stand_in["cluster"].sampled({}, answered, USAGE, versions)
    assert (report["health"], severities(report)) == (recorded["health"], severities(recorded))
    assert report["versions"]["overall"] == recorded["versions"]["overall"]
    assert report.keys() <= recorded.keys() | {"fsid", "capacity"}


@pytest.mark.parametrize("version", CEPH_VERSIONS)
def test_a_cluster_without_checks_has_no_details(stand_in: Mapping[str, ModuleType], version: str) -> None:
    answered, versions = (json.loads(ceph(name, version)) for name in ("status-healthy", "versions"))
    report = stand_in["cluster"].sampled({"health": "HEALTH_WARN"}, answered, USAGE, versions)
    assert (report["health"], report["previousHealth"]) == ("HEALTH_OK", "HEALTH_WARN")
    assert "details" not in report


def merged(old: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with a merge patch applied (RFC 7386)."""
    changed = {
        name: merged(old.get(name) or {}, value) if isinstance(value, dict) else value for name, value in patch.items()
    }
    return {name: value for name, value in {**old, **changed}.items() if value is not None}


OSD_DOWN = {"OSD_DOWN": {"message": "2 osds down", "severity": "HEALTH_WARN"}}
FLAGS = {"POOL_SCRUB_FLAGS": {"message": "Some pool(s) have the noscrub flag(s) set", "severity": "HEALTH_OK"}}


@pytest.mark.parametrize("checks", [{}, FLAGS, OSD_DOWN | FLAGS])
def test_checks_that_are_over_are_reported_no_more(stand_in: Mapping[str, ModuleType], checks: dict[str, Any]) -> None:
    old = {"health": "HEALTH_WARN", "details": OSD_DOWN | FLAGS, "versions": {"osd": {"ceph version 18.2.7": 3}}}
    new = {"health": "HEALTH_OK", "versions": {"osd": {"ceph version 20.2.4": 3}}} | (
        {"details": checks} if checks else {}
    )
    assert merged(old, stand_in["cluster"].replacing(old, new)) == new


@pytest.mark.parametrize(("version", "is_served"), [(OLD_ROOK, False), (NEW_ROOK, True)])
def test_only_the_newer_release_serves_a_cluster_whose_only_errors_are_about_keys(
    stand_in: Mapping[str, ModuleType], version: str, *, is_served: bool
) -> None:
    release, found = release_of(stand_in, version), rook_object("cephcluster-health-err")
    is_usable = stand_in["cluster"].is_usable
    assert is_usable(found, release) == is_served
    assert is_usable(rook_object("cephcluster-ready-health-ok"), release)
    found["status"]["ceph"]["details"]["OSD_FULL"] = {"severity": "HEALTH_ERR", "message": "1 full osd(s)"}
    assert not is_usable(found, release)
    assert not is_usable({"status": {}}, release)


@pytest.mark.parametrize("version", [OLD_ROOK, NEW_ROOK])
def test_events_have_the_recorded_form(stand_in: Mapping[str, ModuleType], version: str) -> None:
    api = RecordingApi()
    recorded = rook_object("pool-with-both-layouts.events", version)["items"]
    component = recorded[0]["reportingComponent"]
    events = stand_in["worker"].Recorder(api, component, release_of(stand_in, version))
    for event in recorded:
        about = event["involvedObject"]
        pool = {"apiVersion": about["apiVersion"], "kind": about["kind"], "metadata": about}
        times = event.get("count") or (event.get("series") or {"count": 1})["count"]
        for _ in range(times):
            if event["type"] == "Normal":
                events.inform(pool, event["reason"], event["message"])
            else:
                events.warn(pool, event["message"])
    played = [*api.events.values()]
    # Rook begins another series for another version of the object; the stand-in does not.
    newest = [*{event["message"]: event for event in recorded}.values()]
    assert [written(event) for event in played] == [written(event) for event in newest]
    for found, wanted in zip(played, newest, strict=True):
        for field in ("type", "reason", "message"):
            assert found[field] == wanted[field]
        assert found["involvedObject"].keys() == wanted["involvedObject"].keys()


def test_a_pool_is_written_back_as_rook_did(stand_in: Mapping[str, ModuleType]) -> None:
    recorded = rook_object("cephblockpool-fast-ec")
    asked = json.loads(recorded["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"])
    completed = stand_in["pools"].completed(asked["spec"])
    assert completed == recorded["spec"]
    assert stand_in["pools"].stripe_unit(completed["erasureCoded"]) == ["stripe_unit=16384"]
    assert json.loads(rook("erasure-code-profile-fast-ec", NEW_ROOK))["stripe_unit"] == "16384"
    assert stand_in["pools"].stripe_unit({"dataChunks": 2, "codingChunks": 1}) == []
