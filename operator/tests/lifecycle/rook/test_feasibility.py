"""Whether a pool can be placed, judged by the labels of the OSDs' Deployments as Rook 1.18 writes them."""

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from plimsoll.api.storage import Pool
from plimsoll.lifecycle.ceph.rook_survey import (
    fitting_placement_groups,
    osds_of,
    placement_groups,
    provisioner_of,
    root_of_pools,
    why_infeasible,
    width,
)


def deployment(
    number: int, host: str, *, device_class: str = "ssd", available: int = 1, **where: str
) -> dict[str, Any]:
    labels = {
        "app": "rook-ceph-osd",
        "ceph-osd-id": str(number),
        "device-class": device_class,
        "rook.io/operator-namespace": "rook-operator",
        "topology-location-host": host,
        "topology-location-root": "default",
        **{f"topology-location-{domain}": name for domain, name in where.items()},
    }
    # Kubernetes leaves out what is zero.
    status = {"replicas": 1, "availableReplicas": available} if available else {"replicas": 1, "unavailableReplicas": 1}
    return {"metadata": {"name": f"rook-ceph-osd-{number}", "labels": labels}, "status": status}


THREE = [deployment(number, f"node{number}") for number in range(3)]


def pool(**fields: Any) -> Pool:
    return Pool.model_validate(fields)


def replicated(size: int, **fields: Any) -> Pool:
    return pool(replicated={"size": size}, **fields)


def coded(data: int, coding: int, **fields: Any) -> Pool:
    return pool(erasureCoded={"dataChunks": data, "codingChunks": coding}, **fields)


def why(wanted: Pool, deployments: list[dict[str, Any]]) -> str:
    return why_infeasible(wanted, osds_of(deployments), "rook-ceph")


@pytest.mark.parametrize(
    "wanted",
    [replicated(3), replicated(1), coded(2, 1), replicated(3, deviceClass="ssd"), replicated(3, failureDomain="osd")],
    ids=str,
)
def test_a_pool_that_fits_is_not_refused(wanted: Pool) -> None:
    assert why(wanted, THREE) == ""


def test_too_few_hosts_for_copies_are_told_with_those_that_are_there() -> None:
    assert why(replicated(5), THREE) == (
        "the pool needs 5 failure domains of type host with an available OSD, one for each copy, but there are 3 "
        "(node0, node1, node2); set size to at most 3, choose another failureDomain, or add OSDs"
    )


def test_too_few_hosts_for_chunks_are_told() -> None:
    found = why(coded(4, 2), THREE)
    assert "needs 6 failure domains of type host" in found
    assert "one for each of 4 data and 2 coding chunks, but there are 3 (node0, node1, node2)" in found
    assert "use fewer chunks" in found


def test_two_osds_on_a_host_are_one_host_and_two_osds() -> None:
    both = [deployment(0, "node0"), deployment(1, "node0")]
    assert "there is 1 (node0)" in why(replicated(2), both)
    assert why(replicated(2, failureDomain="osd"), both) == ""


def test_an_osd_that_is_down_does_not_count_and_is_named() -> None:
    found = why(replicated(3), [*THREE[:2], deployment(2, "node2", available=0)])
    assert "there are 2 (node0, node1); no OSD is available in node2;" in found


def test_osds_of_another_class_do_not_count() -> None:
    mixed = [*THREE[:2], deployment(2, "node2", device_class="hdd")]
    assert why(replicated(3), mixed) == ""
    found = why(replicated(3, deviceClass="ssd"), mixed)
    assert "with an available OSD of device class ssd, one for each copy, but there are 2 (node0, node1);" in found


def test_a_class_that_is_not_there_is_told_with_those_that_are() -> None:
    found = why(replicated(1, deviceClass="nvme"), THREE)
    assert found == "no OSD has device class nvme; use an existing one: ssd"


ZONES = [deployment(number, f"node{number}", zone=f"z{number % 2}") for number in range(4)]


@pytest.mark.parametrize(
    ("osds", "layout", "words"),
    [
        (ZONES, {}, ""),
        (ZONES, {"subFailureDomain": "osd"}, ""),
        (ZONES, {"size": 6}, "needs 3 failure domains of type zone with an available OSD, each with 2 of type host,"),
        (ZONES[:3], {}, "one for each copy, but there is 1 (z0); use fewer copies, or remove replicasPerFailureDomain"),
        ([*ZONES[:3], deployment(3, "node3", available=0, zone="z1")], {}, "there is 1 (z0); use fewer copies"),
        (ZONES, {"subFailureDomain": "rack"}, "each with 2 of type rack, one for each copy, but there are 0;"),
    ],
)
def test_each_failure_domain_has_as_many_hosts_as_copies(
    osds: list[dict[str, Any]], layout: dict[str, Any], words: str
) -> None:
    copies = {"size": 4, "replicasPerFailureDomain": 2} | layout
    wanted = pool(replicated=copies, failureDomain="zone")
    found = why(wanted, osds)
    assert words in found
    assert (bool(found), width(wanted)) == (bool(words), copies["size"])


TWO_ROOTS = [*THREE, *(deployment(3 + number, f"fast{number}", root="fast") for number in range(2))]


def test_only_osds_of_the_crush_root_count() -> None:
    assert why(replicated(2, crushRoot="fast"), TWO_ROOTS) == ""
    found = why(replicated(3, crushRoot="fast"), TWO_ROOTS)
    assert "with an available OSD in CRUSH root fast, one for each copy, but there are 2 (fast0, fast1)" in found
    assert placement_groups(replicated(2, crushRoot="fast"), osds_of(TWO_ROOTS)) == 64
    assert placement_groups(replicated(2), osds_of(TWO_ROOTS)) == 128


def test_a_pool_that_names_no_root_uses_the_osds_of_the_usual_one() -> None:
    assert why(replicated(3), TWO_ROOTS) == ""
    found = why(replicated(4), TWO_ROOTS)
    assert "in CRUSH root default, one for each copy, but there are 3 (node0, node1, node2); set size" in found
    assert placement_groups(replicated(3), osds_of(TWO_ROOTS)) == placement_groups(replicated(3), osds_of(THREE))
    nvme = [*THREE, deployment(3, "fast0", root="fast", device_class="nvme")]
    assert "no OSD of CRUSH root default has device class nvme" in why(replicated(1, deviceClass="nvme"), nvme)


def test_the_usual_root_is_that_of_the_ceph_cluster() -> None:
    cluster = {"spec": {"storage": {"config": {"crushRoot": "fast"}}}}
    osds = osds_of(TWO_ROOTS, root_of_pools(cluster))
    assert why_infeasible(replicated(2), osds, "rook-ceph") == ""
    assert "in CRUSH root fast" in why_infeasible(replicated(3), osds, "rook-ceph")
    assert why_infeasible(replicated(3, crushRoot="default"), osds, "rook-ceph") == ""
    assert root_of_pools({}) == root_of_pools({"spec": {"storage": {}}}) == "default"


def test_no_pool_is_placed_by_default_if_all_osds_are_in_other_roots() -> None:
    found = why(replicated(2), TWO_ROOTS[3:])
    assert found.startswith("no OSD is in the CRUSH root of pools that name none")
    assert found.endswith("set crushRoot to an existing one: fast")


def test_osds_without_a_label_of_their_root_count() -> None:
    unlabelled = [deployment(number, f"node{number}", root="") for number in range(3)]
    assert why(replicated(3), unlabelled) == ""


def test_a_crush_root_without_osds_is_named_with_those_that_have_some() -> None:
    assert why(replicated(1, crushRoot="slow"), TWO_ROOTS) == (
        "no OSD is in CRUSH root slow; use an existing one: default, fast"
    )


def test_device_class_and_failure_domain_must_exist_within_the_crush_root() -> None:
    osds = [*THREE, deployment(3, "node3", root="fast", device_class="nvme", rack="r1")]
    assert why(replicated(1, crushRoot="default", deviceClass="nvme"), osds) == (
        "no OSD of CRUSH root default has device class nvme; use an existing one: ssd"
    )
    assert why(replicated(1, crushRoot="fast", deviceClass="nvme", failureDomain="rack"), osds) == ""
    found = why(replicated(1, crushRoot="default", failureDomain="rack"), osds)
    assert found == "no OSD of CRUSH root default is in a rack; use an existing failure domain: host, osd"


def test_a_failure_domain_that_is_not_there_is_told_with_those_that_are() -> None:
    found = why(replicated(1, failureDomain="rack"), THREE)
    assert found == "no OSD is in a rack; use an existing failure domain: host, osd"


def test_racks_and_zones_are_known_by_their_labels() -> None:
    racks = [deployment(number, f"node{number}", rack=f"rack{number % 2}") for number in range(4)]
    assert why(replicated(2, failureDomain="rack"), racks) == ""
    assert "there are 2 (rack0, rack1)" in why(replicated(3, failureDomain="rack"), racks)


def test_no_deployment_at_all_says_how_to_look() -> None:
    assert "kubectl -n rook-ceph get deployments -l app=rook-ceph-osd" in why(replicated(1), [])


@pytest.mark.parametrize(
    ("wanted", "osds", "expected"),
    [
        (replicated(3), 3, 64),
        (replicated(1), 3, 256),
        (coded(2, 1), 3, 64),
        (coded(4, 2), 6, 64),
        (replicated(3), 100, 2048),
        (replicated(10), 0, 1),
        (replicated(1), 1000, 32768),
    ],
)
def test_every_osd_gets_about_a_hundred_replicas(wanted: Pool, osds: int, expected: int) -> None:
    assert placement_groups(wanted, osds_of(deployment(number, "node") for number in range(osds))) == expected


@given(st.integers(1, 10), st.integers(1, 400))
def test_placement_groups_are_a_power_of_two_and_at_most_a_hundred_replicas_for_an_osd(size: int, osds: int) -> None:
    wanted = replicated(size)
    count = placement_groups(wanted, osds_of(deployment(number, "node") for number in range(osds)))
    assert count.bit_count() == 1
    assert count * width(wanted) <= osds * 100
    assert Pool.model_validate(wanted.model_dump() | {"placementGroups": count}).placement_groups == count


def test_what_a_user_says_of_placement_groups_stays() -> None:
    osds = osds_of(THREE)
    assert fitting_placement_groups(replicated(3, placementGroups=8), osds, (), {}).placement_groups == 8
    assert fitting_placement_groups(replicated(3), osds, (), {}).placement_groups == 64


def named(name: str, **content: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **content}


def of_cluster(provisioner: str, namespace: str = "rook-ceph") -> dict[str, Any]:
    return named(f"of-{provisioner}", provisioner=provisioner, parameters={"clusterID": namespace})


USUAL = "rook-operator.rbd.csi.ceph.com"


@pytest.mark.parametrize(
    ("osds", "registered", "classes", "found"),
    [
        (THREE, f"{USUAL} a.rbd.csi.ceph.com", [of_cluster("a.rbd.csi.ceph.com")], USUAL),
        # A prefix of the administrator's, or a Driver of the ceph-csi-operator.
        (THREE, "our.rbd.csi.ceph.com our.cephfs.csi.ceph.com other.example.com", [], "our.rbd.csi.ceph.com"),
        # An external cluster has no OSDs here.
        ([], "rook-ceph.rbd.csi.ceph.com a.rbd.csi.ceph.com", [], "rook-ceph.rbd.csi.ceph.com"),
        (
            THREE,
            "a.rbd.csi.ceph.com b.rbd.csi.ceph.com",
            [of_cluster("a.rbd.csi.ceph.com", "other"), of_cluster("b.rbd.csi.ceph.com"), named("plain")],
            "b.rbd.csi.ceph.com",
        ),
        # A driver that is named, but not registered.
        (THREE, "a.rbd.csi.ceph.com", [of_cluster("gone.rbd.csi.ceph.com")], "a.rbd.csi.ceph.com"),
    ],
)
def test_the_csi_driver_is_the_registered_one_that_serves_the_cluster(
    osds: list[dict[str, Any]], registered: str, classes: list[dict[str, Any]], found: str
) -> None:
    drivers = map(named, registered.split())
    provisioner = provisioner_of("rook-ceph", driver="rbd", osds=osds, drivers=drivers, classes=classes)
    assert (provisioner.name, provisioner.problem) == (found, "")


@pytest.mark.parametrize(
    ("registered", "problem"),
    [
        ("rook-operator.cephfs.csi.ceph.com", "no other *.rbd.csi.ceph.com is registered; enable Rook's CSI drivers"),
        (
            "b.rbd.csi.ceph.com a.rbd.csi.ceph.com",
            "no StorageClass with clusterID rook-ceph says which of a.rbd.csi.ceph.com, b.rbd.csi.ceph.com serves",
        ),
    ],
)
def test_a_csi_driver_that_is_not_found_is_named_with_those_that_are_registered(registered: str, problem: str) -> None:
    drivers = map(named, registered.split())
    found = provisioner_of("rook-ceph", driver="rbd", osds=THREE, drivers=drivers, classes=[])
    assert found.name == ""
    assert found.problem.startswith(f"CSIDriver {USUAL} does not exist, and {problem}")
