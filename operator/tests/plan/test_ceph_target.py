"""The Ceph cluster of a run, and the names of the run's objects in it."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from plimsoll.api.names import CEPH_NAME_PATTERN, DNS_LABEL_PATTERN
from plimsoll.api.run import BenchmarkRun, decode_run
from plimsoll.api.storage import KeyringReference, NamespacedName
from plimsoll.plan.document import (
    CephTarget,
    base_name,
    ceph_target,
    flags_object,
    image_name,
    image_prefix,
    rados_namespace,
)
from plimsoll.plan.expand import make_plan

MakeRun = Callable[..., BenchmarkRun]

CLUSTER = {"namespace": "rook-ceph", "name": "ceph"}
REPLICATED = {"cluster": CLUSTER, "pool": {"replicated": {"size": 3}}}
CODED = {"cluster": CLUSTER, "pool": {"erasureCoded": {"dataChunks": 4, "codingChunks": 2}}}
CEPH: dict[str, Any] = {
    "monitors": ["192.0.2.2", "192.0.2.1"],
    "user": "bench",
    "keyringSecret": {"name": "secret", "key": "file"},
    "pool": {"name": "rbd"},
}
IMAGE: dict[str, JsonValue] = {"size": "1Gi", "access": "LibRBD"}
FIO: dict[str, Any] = {"fio": {}}
RADOS: dict[str, Any] = {"radosBench": {}}

UID = st.uuids().map(str)
NAME = st.from_regex(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)


def target_of(run: BenchmarkRun) -> CephTarget:
    target = make_plan(run, seed=1).ceph
    assert target is not None
    return target


# Names


def run_of(name: str, uid: str, rook: dict[str, Any], volume: dict[str, JsonValue] = IMAGE) -> BenchmarkRun:
    return decode_run(
        {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "BenchmarkRun",
            "metadata": {"name": name, "namespace": "bench", "uid": uid},
            "spec": {"storage": {"rook": rook, "volume": volume}, "workloads": [{"name": "w", **FIO}]},
        }
    )


@given(NAME, UID)
def test_names_are_valid_for_kubernetes(name: str, uid: str) -> None:
    target = ceph_target(run_of(name, uid, CODED))
    assert target is not None
    for called in (*target.pools, target.conductor_user, target.agent_user, base_name(name, uid)):
        assert re.fullmatch(DNS_LABEL_PATTERN, called)
        assert re.fullmatch(CEPH_NAME_PATTERN, called)
        assert len(called) <= 63
    assert len({*target.pools, target.conductor_user, target.agent_user}) == 4


@given(NAME, st.lists(UID, min_size=2, max_size=2, unique=True))
def test_runs_of_the_same_name_share_nothing(name: str, uids: list[str]) -> None:
    one, other = (ceph_target(run_of(name, uid, CODED)) for uid in uids)
    assert one is not None
    assert other is not None
    assert not {*one.pools, one.conductor_user, one.agent_user} & {*other.pools, other.conductor_user, other.agent_user}
    for made in (flags_object, image_prefix, lambda uid: image_name(uid, 0), lambda uid: rados_namespace(uid, 0)):
        assert made(uids[0]) != made(uids[1])


@given(UID, st.integers(0, 999), st.integers(0, 999))
def test_each_client_has_its_own_image_and_namespace(uid: str, one: int, other: int) -> None:
    assert image_name(uid, one).startswith(image_prefix(uid))
    assert (image_name(uid, one) == image_name(uid, other)) is (one == other)
    assert (rados_namespace(uid, one) == rados_namespace(uid, other)) is (one == other)
    assert flags_object(uid) not in {image_name(uid, one), rados_namespace(uid, one)}


FILES = {"cluster": CLUSTER, "fileSystem": {"metadataPool": REPLICATED["pool"], "dataPools": [REPLICATED["pool"]] * 2}}
FILE: dict[str, JsonValue] = {"size": "1Gi"}


@given(NAME, st.lists(UID, min_size=2, max_size=2, unique=True))
def test_a_file_system_has_a_short_name_of_its_own(name: str, uids: list[str]) -> None:
    one, other = (ceph_target(run_of(name, uid, FILES, volume=FILE)) for uid in uids)
    assert one is not None
    assert other is not None
    assert one.file_system is not None
    assert len(one.file_system.name) <= 40
    assert re.fullmatch(DNS_LABEL_PATTERN, one.file_system.name)
    assert len({*one.pools}) == 3
    assert not {*one.pools} & {*other.pools}


def test_pools_of_a_file_system_are_named_as_rook_names_them() -> None:
    target = ceph_target(run_of("files", "u", FILES, volume=FILE))
    assert target is not None
    name = "plimsoll-files-0bfe935e"
    assert target.pools == (f"{name}-metadata", f"{name}-data0", f"{name}-data1")
    assert (target.note_pool, target.metadata_pools) == (f"{name}-data1", (f"{name}-metadata",))
    assert target.pools_by_note == (f"{name}-data1", f"{name}-metadata", f"{name}-data0")
    assert list(target.made_pools) == list(target.pools)


def test_an_existing_file_system_has_rook_s_pools_unless_others_are_named() -> None:
    existing: dict[str, Any] = {"cluster": CLUSTER, "existingFileSystem": {"name": "fs"}}
    target = ceph_target(run_of("files", "u", existing, volume=FILE))
    assert target is not None
    assert (target.pools, target.made, target.made_pools) == (("fs-metadata", "fs-data0"), None, {})
    existing["existingFileSystem"] |= {"metadataPool": "m", "dataPool": "d"}
    target = ceph_target(run_of("files", "u", existing, volume=FILE))
    assert target is not None
    assert target.pools == ("m", "d")


def test_names_contain_the_run() -> None:
    target = ceph_target(run_of("rbd-size3", "u", CODED))
    assert target is not None
    assert target.pool == "plimsoll-rbd-size3-0bfe935e"
    assert target.data_pool == "plimsoll-rbd-size3-0bfe935e-data"
    assert target.conductor_user == "plimsoll-rbd-size3-0bfe935e-conductor"
    assert target.agent_user == "plimsoll-rbd-size3-0bfe935e-agent"
    assert image_name("u", 3) == "plimsoll-u-3"


# The target


def test_a_run_on_rook_gets_a_pool(make_run: MakeRun) -> None:
    target = target_of(make_run(FIO, storage={"rook": REPLICATED, "volume": {"size": "1Gi"}}))
    assert target.rook == NamespacedName(namespace="rook-ceph", name="ceph")
    assert target.pools == (target.pool,)
    assert target.made is not None
    assert target.made.replicated is not None
    assert target.made.replicated.size == 3
    assert (target.monitors, target.keyring) == ((), None)


def test_an_erasure_coded_pool_comes_with_a_metadata_pool(make_run: MakeRun) -> None:
    target = target_of(make_run(FIO, storage={"rook": CODED, "volume": IMAGE}))
    assert target.pools == (target.pool, f"{target.pool}-data")


@pytest.mark.parametrize("data_pool", [None, "rbd.data"])
def test_an_existing_pool_is_used_unchanged(make_run: MakeRun, data_pool: str | None) -> None:
    existing = {"name": "rbd", "dataPool": data_pool} if data_pool else {"name": "rbd"}
    rook = {"cluster": CLUSTER, "existingPool": existing}
    for storage in ({"rook": rook, "volume": IMAGE}, {"ceph": CEPH | {"pool": existing}, "volume": IMAGE}):
        target = target_of(make_run(FIO, storage=storage))
        assert (target.pool, target.data_pool, target.made) == ("rbd", data_pool, None)


def test_a_cluster_without_rook_uses_the_specified_monitors_and_user(make_run: MakeRun) -> None:
    target = target_of(make_run(RADOS, storage={"ceph": CEPH}))
    assert target == CephTarget(
        monitors=("192.0.2.1", "192.0.2.2"),
        pool="rbd",
        conductor_user="bench",
        agent_user="bench",
        keyring=KeyringReference(name="secret", key="file"),
    )


def test_order_of_the_monitors_does_not_matter(make_run: MakeRun) -> None:
    turned = CEPH | {"monitors": CEPH["monitors"][::-1]}
    one, other = (make_plan(make_run(RADOS, storage={"ceph": ceph}), seed=1) for ceph in (CEPH, turned))
    assert one == other


def test_storage_class_is_not_known_to_be_ceph(make_run: MakeRun) -> None:
    assert make_plan(make_run(FIO), seed=1).ceph is None


# Volumes


@pytest.mark.parametrize("source", [{"rook": REPLICATED}, {"ceph": CEPH}], ids=["rook", "ceph"])
def test_a_volume_is_planned_only_if_a_workload_uses_one(make_run: MakeRun, source: dict[str, Any]) -> None:
    storage = source | {"volume": IMAGE}
    osd_bench = {"osdBench": {"keyringSecret": {"name": "admin"}}}
    for workloads, wanted in (([RADOS], False), ([RADOS, osd_bench], False), ([RADOS, FIO], True), ([FIO], True)):
        plan = make_plan(make_run(*workloads, storage=storage), seed=1)
        assert (plan.volume is not None) is wanted
        assert plan.ceph is not None
    assert make_plan(make_run(RADOS, storage=source), seed=1).volume is None
