"""A file system and its metadata servers."""

import dataclasses
import json
from typing import Any

import pytest

from plimsoll.ceph.gate import gate_problems, server_problems
from plimsoll.ceph.pools import (
    PoolDetail,
    has_servers,
    parse_file_system,
    parse_pools,
    servers_of,
    wrong_pools,
)
from plimsoll.ceph.watch import FileSystemDetail, parse_status
from support.goldens import NEW_ROOK, ceph, rook

FOUND = FileSystemDetail(number=1, name="bench-fs", servers=1, metadata_pool=20, data_pools=(21, 22))


def fs_get(**servers: Any) -> str:
    """Return the part of `ceph fs get` that is read. Source: Ceph, `Filesystem::dump` and `MDSMap::dump`."""
    known = {"max_mds": 1, "metadata_pool": 20, "data_pools": [21, 22], "fs_name": "bench-fs", "later": None}
    return json.dumps({"mdsmap": known | servers, "id": 1})


def test_a_file_system_is_read() -> None:
    assert parse_file_system(fs_get()) == FOUND


def test_a_file_system_of_ceph_20_is_read() -> None:
    text = rook("fs-get", NEW_ROOK)
    found = parse_file_system(text)
    assert (found.name, found.servers, len(found.data_pools)) == ("bench-fs", 1, 1)
    assert has_servers(text)
    (server,) = servers_of(parse_status(rook("status-with-mds", NEW_ROOK)), found)
    assert server.state == "up:active"


@pytest.mark.parametrize(("field", "value"), [("max_mds", "x"), ("data_pools", 3), ("fs_name", 1)])
def test_a_field_of_another_kind_is_named(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"mdsmap\.{field}"):
        parse_file_system(fs_get(**{field: value}))


@pytest.mark.parametrize(("up", "has"), [({}, False), ({"mds_0": 4321}, True), ({"mds_0": 4321, "mds_1": 4322}, True)])
def test_servers_are_those_with_a_rank(up: dict[str, int], *, has: bool) -> None:
    """Source: Ceph, `MDSMap::dump`: a rank that failed or is damaged is not in `up`."""
    assert has_servers(fs_get(up=up)) == has


def test_ranks_of_another_kind_are_named() -> None:
    with pytest.raises(ValueError, match=r"mdsmap\.up"):
        has_servers(fs_get(up=[0]))


def pool(number: int, name: str) -> PoolDetail:
    (first, *_) = parse_pools(ceph("osd-pool-ls-detail")).values()
    return dataclasses.replace(first, number=number, name=name)


def test_pools_are_those_of_the_file_system() -> None:
    assert list(wrong_pools(FOUND, [pool(20, "m"), pool(21, "d"), pool(22, "e")])) == []
    assert list(wrong_pools(FOUND, [pool(21, "m"), pool(20, "d")])) == [
        "pool m is not the metadata pool of file system bench-fs",
        "pool d is not a data pool of file system bench-fs",
    ]


def test_an_active_server_is_no_problem() -> None:
    status = parse_status(rook("status-with-mds"))
    assert gate_problems(status, accepted=frozenset(), file_system=FOUND) == ()
    assert list(server_problems(status, None)) == []


def test_servers_that_are_not_active_close_the_gate() -> None:
    document = json.loads(rook("status-with-mds"))
    document["fsmap"]["by_rank"][0]["status"] = "up:replay"
    (problem,) = gate_problems(parse_status(json.dumps(document)), accepted=frozenset(), file_system=FOUND)
    assert problem == (
        "1 of 1 metadata servers of file system bench-fs are not active (1 up:replay); wait until they are, or see "
        "`ceph fs status bench-fs`"
    )
    document["fsmap"]["by_rank"] = []
    (problem,) = gate_problems(parse_status(json.dumps(document)), accepted=frozenset(), file_system=FOUND)
    assert problem.startswith("1 of 1 metadata servers of file system bench-fs are not active; wait")


def test_a_server_that_only_follows_another_one_does_not_count() -> None:
    """`ceph status` lists it with the rank of the one that it follows."""
    document = json.loads(rook("status-with-mds"))
    (active, *_) = document["fsmap"]["by_rank"]
    document["fsmap"]["by_rank"].append(active | {"name": "b", "status": "up:standby-replay", "gid": 1})
    status = parse_status(json.dumps(document))
    assert servers_of(status, FOUND) == servers_of(parse_status(rook("status-with-mds")), FOUND)
    assert list(server_problems(status, FOUND)) == []


def test_servers_of_other_file_systems_do_not_matter() -> None:
    other = dataclasses.replace(FOUND, number=2)
    assert list(server_problems(parse_status(rook("status-with-mds")), other))
