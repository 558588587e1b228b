from collections.abc import Callable
from functools import partial

import pytest

from plimsoll.ceph.osds import (
    Osd,
    capacity_iops,
    merge_osds,
    parse_osd_df,
    parse_osd_metadata,
    parse_osd_tree,
    setting_number,
)
from support.goldens import CEPH_VERSIONS, NEW_ROOK, ceph, rook, shown

ROTATIONAL = Osd(number=0, rotational=True)


def test_osd_of_three_commands() -> None:
    osds = merge_osds(
        parse_osd_metadata(rook("osd-metadata")), parse_osd_df(rook("osd-df")), parse_osd_tree(rook("osd-tree"))
    )
    osd = osds[0]
    assert list(osds) == [0, 1, 2]
    assert (osd.host, osd.bucket, osd.device_class, osd.device, osd.rotational) == (
        "node1",
        "node1",
        "hdd",
        "loop0",
        True,
    )
    assert (osd.object_store, osd.size_bytes) == ("bluestore", 2**33)
    assert (osd.is_up, osd.is_in) == (True, True)
    assert (osds[1].host, osds[1].bucket) == ("", "node3")


@pytest.mark.parametrize(
    ("read", "device_class"),
    [
        (partial(ceph, version="18.2"), "ssd"),
        (partial(ceph, version="20.2"), "ssd"),
        (partial(rook, version=NEW_ROOK), "hdd"),
    ],
)
def test_osds_of_each_version(read: Callable[[str], str], device_class: str) -> None:
    metadata, usage, tree = map(read, ("osd-metadata", "osd-df", "osd-tree"))
    osds = merge_osds(parse_osd_metadata(metadata), parse_osd_df(usage), parse_osd_tree(tree))
    assert list(osds) == [0, 1, 2]
    assert all(osd.is_up and osd.is_in and osd.rotational for osd in osds.values())
    assert {(osd.object_store, osd.device_class) for osd in osds.values()} == {("bluestore", device_class)}


def test_settings_of_ceph_20_under_rook() -> None:
    assert capacity_iops(ROTATIONAL, shown(rook("config-show-osd.0", NEW_ROOK))) == 315


def test_known_values_are_not_replaced_by_unknown_ones() -> None:
    first, second = {0: Osd(number=0, host="a", is_up=False)}, {0: Osd(number=0, bucket="b", is_up=True)}
    assert merge_osds(first, second) == {0: Osd(number=0, host="a", bucket="b", is_up=False)}


@pytest.mark.parametrize("version", CEPH_VERSIONS)
def test_settings_with_defaults(version: str) -> None:
    settings = shown(ceph("config-show-with-defaults-osd.0", version))
    assert (settings["osd_mclock_profile"], settings["osd_op_queue"]) == ("balanced", "mclock_scheduler")
    assert capacity_iops(ROTATIONAL, settings) == 20000


@pytest.mark.parametrize("version", CEPH_VERSIONS)
def test_osd_that_is_down(version: str) -> None:
    assert [osd.is_up for osd in parse_osd_tree(ceph("osd-tree-osd-down", version)).values()].count(False) == 1


def test_osd_that_never_started_has_only_a_number() -> None:
    assert parse_osd_metadata('[{"id":7}]') == {7: Osd(number=7)}


def test_capacity_depends_on_the_kind_of_device() -> None:
    values = {"osd_mclock_max_capacity_iops_hdd": "315.0", "osd_mclock_max_capacity_iops_ssd": "21500.0"}
    found = [capacity_iops(Osd(number=0, rotational=kind), values) for kind in (True, False, None)]
    assert found == [315, 21500, None]


def test_setting_that_is_not_a_number_is_unknown() -> None:
    assert setting_number({"osd_memory_target": "much"}, "osd_memory_target") is None
    assert setting_number({}, "osd_memory_target") is None
