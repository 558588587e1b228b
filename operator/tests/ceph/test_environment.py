import dataclasses
import json
from typing import Any

import pytest

from plimsoll.ceph.environment import (
    Outputs,
    ceph_environment,
    osd_classes,
    osd_memory_bytes,
    placement_of,
)
from plimsoll.ceph.watch import Placement
from support.goldens import CEPH_VERSIONS, CRUSH_RULES, NEW_ROOK, ceph, rook, shown

OURS, OURS_20 = (
    Outputs(
        versions=ceph("versions", version),
        osd_metadata=ceph("osd-metadata", version),
        osd_tree=ceph("osd-tree", version),
        osd_df=ceph("osd-df", version),
        osd_dump=ceph("osd-dump", version),
        df_detail=ceph("df-detail", version),
        pools=ceph("osd-pool-ls-detail", version),
        crush_rules=CRUSH_RULES,
        profiles={"golden-data": ceph("erasure-code-profile", version)},
        settings={0: shown(ceph("config-show-with-defaults-osd.0", version))},
        image=ceph("rbd-info-image-erasure", version),
    )
    for version in CEPH_VERSIONS
)
ROOK = Outputs(
    osd_metadata=rook("osd-metadata"),
    osd_tree=rook("osd-tree"),
    osd_df=rook("osd-df"),
    pools=rook("osd-pool-ls-detail"),
    profiles={"bench-ec21_ecprofile": rook("erasure-code-profile")},
    settings={0: shown(rook("config-show-osd.0"))},
)
NEW = Outputs(
    versions=rook("versions", NEW_ROOK),
    status=rook("status-noout-muted", NEW_ROOK),
    osd_metadata=rook("osd-metadata", NEW_ROOK),
    osd_tree=rook("osd-tree", NEW_ROOK),
    osd_df=rook("osd-df", NEW_ROOK),
    osd_dump=rook("osd-dump", NEW_ROOK),
    df_detail=rook("df-detail", NEW_ROOK),
    pools=rook("osd-pool-ls-detail", NEW_ROOK),
    profiles={
        "fast-ec_ecprofile": rook("erasure-code-profile-fast-ec", NEW_ROOK),
        "plain-ec_ecprofile": rook("erasure-code-profile", NEW_ROOK),
    },
    settings={0: shown(rook("config-show-osd.0", NEW_ROOK))},
    image=rook("rbd-info-image", NEW_ROOK),
)


def environment(outputs: Outputs = OURS, pools: tuple[str, ...] = ("golden",)) -> dict[str, Any]:
    return ceph_environment(outputs, pools=pools, access="librbd").document()


@pytest.mark.parametrize(
    ("outputs", "version", "used", "utilisation"),
    [
        (OURS, "18.2.7 reef", 0.0062, {"min": 0.0037, "median": 0.0072, "max": 0.0076}),
        (OURS_20, "20.2.4 tentacle", 0.025, {"min": 0.025, "median": 0.025, "max": 0.025}),
    ],
)
def test_cluster_is_described(outputs: Outputs, version: str, used: float, utilisation: dict[str, float]) -> None:
    found = environment(outputs)["ceph"]
    assert (found["versions"], found["clientPath"], found["usedRatio"]) == (version, "librbd", used)
    assert (found["osds"]["count"], found["osds"]["up"], found["osds"]["deviceClasses"]) == (3, 3, {"ssd": 3})
    assert found["osds"]["utilisation"] == utilisation
    assert found["settings"]["mclockProfiles"] == {"balanced": 1}
    assert (found["image"]["objectSize"], "exclusive-lock" in found["image"]["features"]) == (2**22, True)
    capacity = {"min": 20000, "median": 20000, "max": 20000, "equal": True, "osds": 1}
    assert found["settings"]["capacityIops"] == {"ssd": capacity}
    assert found["image"] == {
        "objectSize": 4194304,
        "features": ["layering", "exclusive-lock", "object-map", "fast-diff", "deep-flatten", "data-pool"],
    }
    assert "sortbitwise" in found["clusterFlags"]
    assert "unread" not in found


@pytest.mark.parametrize("outputs", [OURS, OURS_20])
def test_layout_of_a_replicated_pool_has_no_names(outputs: Outputs) -> None:
    assert environment(outputs)["pool"] == {"type": "replicated", "size": 3, "failureDomain": "host", "pgNum": 8}


@pytest.mark.parametrize(("outputs", "plugin"), [(OURS, "jerasure"), (OURS_20, "isa")])
def test_layout_of_an_erasure_coded_pool_has_that_of_its_metadata(outputs: Outputs, plugin: str) -> None:
    assert environment(outputs, ("golden", "golden-data"))["pool"] == {
        "type": "erasure",
        "dataChunks": 2,
        "codingChunks": 1,
        "plugin": plugin,
        "technique": "reed_sol_van",
        "stripeUnit": 4096,
        "failureDomain": "host",
        "deviceClass": "ssd",
        "pgNum": 8,
        "metadata": {"type": "replicated", "size": 3, "failureDomain": "host", "pgNum": 8},
    }


def test_layouts_of_erasure_coded_pools_differ_in_all_that_changes_the_work_of_a_write() -> None:
    plain, fast = (environment(NEW, (name,))["pool"] for name in ("plain-ec", "fast-ec"))
    assert plain == {
        "type": "erasure",
        "dataChunks": 2,
        "codingChunks": 1,
        "plugin": "isa",
        "technique": "reed_sol_van",
        "stripeUnit": 4096,
        "pgNum": plain["pgNum"],
    }
    assert fast == {**plain, "stripeUnit": 16384, "ecOptimizations": True}


def test_a_cluster_of_ceph_20_is_described() -> None:
    found = environment(NEW, ("team-pool",))["ceph"]
    assert (found["versions"], found["osds"]["count"], found["osds"]["up"]) == ("20.2.4 tentacle", 3, 3)
    assert found["settings"]["mclockProfiles"] == {"balanced": 1}
    assert "unread" not in found


def test_failing_health_checks_are_recorded_even_if_they_are_muted() -> None:
    assert environment(NEW, ("team-pool",))["ceph"]["healthChecks"] == {
        "AUTH_INSECURE_CLIENT_KEY_TYPE": "HEALTH_WARN (muted)",
        "AUTH_INSECURE_KEYS_ALLOWED": "HEALTH_WARN (muted)",
        "AUTH_INSECURE_KEYS_CREATABLE": "HEALTH_WARN (muted)",
        "OSDMAP_FLAGS": "HEALTH_WARN",
    }
    assert "healthChecks" not in environment(dataclasses.replace(OURS, status=ceph("status-pool-noscrub")))["ceph"]


def test_crush_root_is_layout_unless_it_is_the_usual_one() -> None:
    moved = CRUSH_RULES.replace('"item_name":"default~ssd"', '"item_name":"fast~ssd"')
    layout = environment(dataclasses.replace(OURS, crush_rules=moved), ("golden", "golden-data"))["pool"]
    assert (layout["crushRoot"], layout["deviceClass"]) == ("fast", "ssd")
    assert "crushRoot" not in layout["metadata"]


def test_compression_is_layout() -> None:
    assert environment(ROOK, ("bench-rep3",))["pool"]["compression"] == "aggressive"


def test_pools_are_described_with_names_and_flags() -> None:
    (pool,) = environment()["ceph"]["pools"]
    assert (pool["name"], pool["autoscaleMode"], pool["flags"]) == (
        "golden",
        "off",
        ["hashpspool", "selfmanaged_snaps"],
    )


def test_without_readable_pools_there_is_no_layout() -> None:
    assert "pool" not in environment(pools=("golden", "other"))
    assert "pool" not in environment(dataclasses.replace(OURS, pools=""))


def test_without_outputs_nothing_is_known() -> None:
    assert environment(Outputs()) == {"ceph": {"clientPath": "librbd"}}


def test_an_unreadable_output_affects_only_its_own_facts() -> None:
    found = environment(dataclasses.replace(OURS, versions="Error EACCES", osd_df='{"nodes":[{}]}'))["ceph"]
    assert "versions" not in found
    assert found["osds"]["count"] == 3
    assert len(found["unread"]) == 2
    assert "nodes[0].id" in found["unread"][0]


def test_different_versions_are_all_listed() -> None:
    versions = {
        "mon": {"ceph version 19.2.1 (0) squid (stable)": 3},
        "osd": {"ceph version 18.2.7 (0) reef (stable)": 2},
    }
    overall = {name: count for found in versions.values() for name, count in found.items()}
    text = json.dumps({**versions, "overall": overall})
    found = environment(dataclasses.replace(OURS, versions=text))["ceph"]["versions"]
    assert found == {"mon": {"19.2.1 squid": 3}, "osd": {"18.2.7 reef": 2}}


def test_gateways_of_another_version_do_not_hide_the_version_that_was_measured() -> None:
    reef, squid = "ceph version 18.2.7 (0) reef (stable)", "ceph version 19.2.1 (0) squid (stable)"
    daemons = {"mon": {reef: 3}, "osd": {reef: 2}, "rgw": {squid: 1}, "overall": {reef: 5, squid: 1}}
    assert environment(dataclasses.replace(OURS, versions=json.dumps(daemons)))["ceph"]["versions"] == "18.2.7 reef"


def many_osds(count: int) -> Outputs:
    nodes = [
        {
            "id": number,
            "device_class": f"class-{number % 50}",
            "kb": 2**30 + number,
            "utilization": number % 100,
            "pgs": number,
            "status": "up",
            "reweight": 1,
        }
        for number in range(count)
    ]
    metadata = [
        {
            "id": number,
            "hostname": f"h{number}",
            "rotational": "1",
            "cpu": "x" * 1000 + str(number),
            "devices": f"d{number}",
        }
        for number in range(count)
    ]
    return dataclasses.replace(
        OURS,
        osd_df=json.dumps({"nodes": nodes}),
        osd_metadata=json.dumps(metadata),
        osd_tree="",
        settings={number: {"osd_mclock_max_capacity_iops_hdd": str(300 + number)} for number in range(count)},
    )


def test_size_is_bounded_for_any_cluster() -> None:
    found = environment(many_osds(2000))
    assert found["ceph"]["osds"]["count"] == 2000
    assert found["ceph"]["osds"]["placementGroups"] == {"min": 0, "median": 999.5, "max": 1999}
    assert len(found["ceph"]["osds"]["devices"]) <= 9
    assert len(json.dumps(found)) < 16 * 1024


def test_connection_modes_are_described() -> None:
    modes = {"ms_cluster_mode": "secure", "ms_service_mode": "crc secure"}
    settings = dict.fromkeys(range(3), modes)
    found = environment(dataclasses.replace(OURS, settings=settings))["ceph"]["settings"]
    assert (found["clusterModes"], found["serviceModes"]) == ({"secure": 3}, {"crc secure": 3})


def test_unequal_capacities_are_reported() -> None:
    found = environment(many_osds(100))["ceph"]["settings"]["capacityIops"]
    assert found["class-0"] == {"min": 300, "median": 325, "max": 350, "equal": False, "osds": 2}


def test_device_classes_of_osds() -> None:
    assert osd_classes(OURS) == {0: "ssd", 1: "ssd", 2: "ssd"}
    assert osd_classes(Outputs(osd_df="x")) == {}


def test_the_memory_of_the_osds_is_the_sum_of_their_targets() -> None:
    described = environment()["ceph"]["settings"]["memoryTargetBytes"]
    assert osd_memory_bytes(OURS, "golden") == 3 * described["median"]
    assert osd_memory_bytes(dataclasses.replace(OURS, settings={}), "golden") is None


def test_the_memory_of_an_osd_that_was_not_asked_is_that_of_the_others() -> None:
    asked = {number: {"osd_memory_target": str(size * 2**30)} for number, size in ((0, 1), (2, 3))}
    assert osd_memory_bytes(dataclasses.replace(OURS, settings=asked), "golden") == 6 * 2**30


def test_the_osds_of_a_pool_are_those_of_its_rule_and_no_more_than_its_groups_are_on() -> None:
    assert placement_of(OURS, "golden") == Placement(osds=3, per_read=1, per_write=3)
    assert placement_of(OURS, "golden-data").per_read == placement_of(OURS, "golden-data").per_write == 3
    assert placement_of(OURS, "no such pool") == Placement()
    assert placement_of(dataclasses.replace(OURS, crush_rules=""), "golden").osds is None
    assert placement_of(dataclasses.replace(OURS, osd_tree=""), "golden").osds is None
    disks = dataclasses.replace(OURS, osd_tree=OURS.osd_tree.replace('"device_class":"ssd"', '"device_class":"hdd"', 2))
    flash = dataclasses.replace(disks, osd_df="", crush_rules=CRUSH_RULES.replace('"default"', '"default~ssd"'))
    assert placement_of(flash, "golden").osds == 1
    sites = CRUSH_RULES.replace(
        '"item_name":"default"}', '"item_name":"ceph-host-0"},{"op":"take","item_name":"default"}'
    )
    assert placement_of(dataclasses.replace(OURS, crush_rules=sites), "golden").osds == 1, "the smaller of two sites"
    one = json.loads(OURS.pools)
    for pool in one:
        pool["pg_num"], pool["size"] = 1, 2
    assert placement_of(dataclasses.replace(OURS, pools=json.dumps(one)), "golden").osds == 2
