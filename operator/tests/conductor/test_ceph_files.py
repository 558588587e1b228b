"""A conductor's work on a CephFS file system with Ceph's own commands."""

from pathlib import Path
from typing import Any

import pytest

from plimsoll.api.status import OsdsSeen
from plimsoll.api.storage import Volume
from plimsoll.conductor.phases import ClusterView
from plimsoll.measure.intake import TrialFacts
from plimsoll.plan.document import CephTarget, FileSystemTarget, Plan
from support.pretended_ceph import (
    BOTH,
    NOTE,
    SIZE,
    PretendedCeph,
    attend_until,
    cluster_of,
    is_prepared,
    mentions,
    plan_of,
    pretend_ceph,
)

FILES = CephTarget(
    pool="golden",
    data_pool="golden-data",
    file_system=FileSystemTarget(name="files"),
    conductor_user="conductor",
    agent_user="agent",
)


@pytest.fixture
def ceph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PretendedCeph:
    return pretend_ceph(tmp_path, monkeypatch)


def put_file_system(ceph: PretendedCeph, *, active: bool = True, **changes: Any) -> None:
    """Create a file system of the pools, with a metadata server."""
    with ceph.changing() as state:
        numbers = {pool["pool_name"]: pool["pool_id"] for pool in state["pools"]}
        own = {"metadata_pool": numbers["golden"], "data_pools": [numbers["golden-data"]]}
        state["file_system"] = {"fs_name": "files", "max_mds": 1, **own, **changes}
        server = {"filesystem_id": 1, "rank": 0, "name": "a", "status": "up:active", "gid": 5}
        state["fsmap"] = {"by_rank": [server] if active else []}


def plan_of_files() -> Plan:
    return plan_of(FILES).model_copy(update={"volume": Volume(size=SIZE, sharing="Shared")})


async def test_a_file_system_is_prepared_without_images_and_noted_in_its_data_pool(ceph: PretendedCeph) -> None:
    put_file_system(ceph)
    cluster = cluster_of(plan_of_files())
    seen = await attend_until(cluster, is_prepared)
    assert seen[-1] == ClusterView(prepared=True, osds=OsdsSeen(up=3, members=3), risks=frozenset())
    assert ceph.flags("golden") == ceph.flags("golden-data") == BOTH
    assert NOTE in ceph.state["objects"]["golden-data/"]
    assert ceph.commands("rbd") == []
    described = cluster.environment.document()["ceph"]
    assert isinstance(described, dict)
    assert described["fileSystem"] == {"name": "files", "metadataServers": 1, "dataPools": 1}
    assert described["clientPath"] == "CephFS"
    await cluster.release()
    assert ceph.flags("golden") == ceph.flags("golden-data") == set()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"active": False}, "1 of 1 metadata servers of file system files are not active"),
        ({"metadata_pool": 99}, "pool golden is not the metadata pool of file system files"),
        ({"data_pools": [99]}, "pool golden-data is not a data pool of file system files"),
        ({"fs_name": "others"}, "filesystem 'files' not found"),
    ],
)
async def test_a_file_system_that_is_not_as_planned_is_waited_for(
    ceph: PretendedCeph, changes: dict[str, Any], words: str
) -> None:
    put_file_system(ceph, **changes)
    seen = await attend_until(cluster_of(plan_of_files()), mentions(words))
    assert not any(map(is_prepared, seen))


async def test_a_trial_knows_the_file_system_and_its_pools(ceph: PretendedCeph) -> None:
    put_file_system(ceph)
    cluster = cluster_of(plan_of_files())
    await attend_until(cluster, is_prepared)
    await cluster.begin()
    facts = await cluster.end(
        TrialFacts(clients=(0,), runtime_seconds=1, ramp_seconds=0, t0_nanoseconds=0), lambda _: None
    )
    assert facts.cluster is not None
    assert facts.cluster.file_system is not None
    assert facts.cluster.file_system.name == "files"
    assert facts.cluster.metadata_pools == ("golden",)
