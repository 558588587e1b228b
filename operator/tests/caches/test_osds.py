"""The OSDs that are up."""

import json

import pytest

from plimsoll.api.json_reader import JsonNode
from plimsoll.helpers.caches import osds_up
from support.goldens import CEPH_VERSIONS, NEW_ROOK, ceph, rook

DUMP = json.loads(ceph("osd-dump"))


@pytest.mark.parametrize(
    "dump",
    [*(json.loads(ceph("osd-dump", version)) for version in CEPH_VERSIONS), json.loads(rook("osd-dump", NEW_ROOK))],
)
def test_the_osds_of_a_real_cluster(dump: dict[str, object]) -> None:
    assert osds_up(JsonNode(dump)) == (0, 1, 2)


def test_osds_that_are_down_are_not_asked() -> None:
    osds = [osd | {"up": int(osd["osd"] != 1)} for osd in DUMP["osds"]]
    assert osds_up(JsonNode({"osds": osds})) == (0, 2)


@pytest.mark.parametrize(
    "dump", [{}, {"osds": []}, {"osds": [{"osd": 0, "up": 0}]}, {"osds": [{"osd": 0}]}, {"osds": 1}]
)
def test_a_dump_without_an_osd_that_is_up_is_an_error(dump: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"no OSD is up|osds is missing|up is missing|osds is not a list"):
        osds_up(JsonNode(dump))
