import json
import re

import pytest

from plimsoll.ceph.watch import parse_status
from support.goldens import CEPH_VERSIONS, NEW_ROOK, OLD_ROOK, ceph, rook


@pytest.mark.parametrize(
    ("version", "used", "up_since", "in_since"),
    [("18.2", 159133696, "1795272195", "1795271075"), ("20.2", 645246976, "1795767450", "1795767447")],
)
def test_healthy_cluster(version: str, used: int, up_since: str, in_since: str) -> None:
    status = parse_status(ceph("status-healthy", version))
    assert (status.health, status.checks, status.pg_states) == ("HEALTH_OK", {}, {"active+clean": 17})
    assert (status.osds, status.osds_up, status.osds_in, status.remapped_pgs) == (3, 3, 3, 0)
    assert (status.osds_up_since, status.osds_in_since) == (up_since, in_since)
    assert (status.used_bytes, status.total_bytes) == (used, 25769803776)
    assert status.recovering_bytes_per_second == 0


@pytest.mark.parametrize(
    ("version", "file_system", "name", "process"),
    [(OLD_ROOK, 1, "bench-fs-b", 24506), (NEW_ROOK, 3, "bench-fs-a", 11152)],
)
def test_metadata_servers_with_a_rank(version: str, file_system: int, name: str, process: int) -> None:
    (server,) = parse_status(rook("status-with-mds", version)).metadata_servers
    assert (server.file_system, server.rank, server.name) == (file_system, 0, name)
    assert (server.state, server.process) == ("up:active", process)


def test_a_status_without_metadata_servers_has_none() -> None:
    assert parse_status(ceph("status-healthy")).metadata_servers == ()
    older = json.loads(ceph("status-healthy"))
    del older["fsmap"]
    assert parse_status(json.dumps(older)).metadata_servers == ()


@pytest.mark.parametrize(
    ("text", "remarks", "states"),
    [
        *(
            (ceph("status-osd-down", version), {}, {"active+undersized+degraded": 16, "active+undersized": 1})
            for version in CEPH_VERSIONS
        ),
        (rook("status-osd-down", NEW_ROOK), {"POOL_SCRUB_FLAGS": "HEALTH_OK"}, {"active+undersized+degraded": 17}),
    ],
)
def test_cluster_with_an_osd_down(text: str, remarks: dict[str, str], states: dict[str, int]) -> None:
    status = parse_status(text)
    assert status.osds_up == 2
    assert status.checks == dict.fromkeys(("OSD_DOWN", "OSD_HOST_DOWN", "PG_DEGRADED"), "HEALTH_WARN") | remarks
    assert status.pg_states == states


@pytest.mark.parametrize("version", [OLD_ROOK, NEW_ROOK])
def test_groups_that_were_never_created(version: str) -> None:
    states = parse_status(rook("status-undersized-incomplete", version)).pg_states
    assert states["creating+incomplete"] == 1
    assert states.get("unknown", 0) == (version == OLD_ROOK)


def test_recovery_is_read_if_present() -> None:
    document = json.loads(ceph("status-healthy"))
    document["pgmap"]["recovering_bytes_per_sec"] = 12345
    assert parse_status(json.dumps(document)).recovering_bytes_per_second == 12345


def test_a_muted_check_is_only_listed_as_such() -> None:
    document = json.loads(ceph("status-osd-down"))
    document["health"]["checks"]["OSD_DOWN"]["muted"] = True
    status = parse_status(json.dumps(document))
    assert "OSD_DOWN" not in status.checks
    assert status.muted == {"OSD_DOWN"}


def test_fields_of_a_later_ceph_are_ignored() -> None:
    document = json.loads(ceph("status-healthy"))
    document |= {"later": {"a": 1}}
    document["osdmap"]["later"] = None
    assert parse_status(json.dumps(document)) == parse_status(ceph("status-healthy"))


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("health", "health"),
        ("health.status", "health.status"),
        ("osdmap.num_up_osds", "osdmap.num_up_osds"),
        ("osdmap.osd_up_since", "osdmap.osd_up_since"),
        ("pgmap.pgs_by_state.0.count", "pgmap.pgs_by_state[0].count"),
    ],
)
def test_missing_field_is_named(path: str, named: str) -> None:
    document = json.loads(ceph("status-healthy"))
    *parents, last = path.split(".")
    place = document
    for key in parents:
        place = place[int(key)] if isinstance(place, list) else place[key]
    del place[last]
    with pytest.raises(ValueError, match=re.escape(f"Ceph's answer: {named} is missing")):
        parse_status(json.dumps(document))


@pytest.mark.parametrize("text", ["", "Error EACCES", "[1]", '{"health": 1}', "[" * 100_000, "null"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="Ceph's answer"):
        parse_status(text)


@pytest.mark.parametrize("value", ['"3x"', "-1", "1.5", "true", "1e400", "NaN", "null", "{}"])
def test_value_that_is_not_a_count_is_refused(value: str) -> None:
    text = ceph("status-healthy").replace('"num_in_osds":3', f'"num_in_osds":{value}')
    with pytest.raises(ValueError, match=r"osdmap\.num_in_osds"):
        parse_status(text)
