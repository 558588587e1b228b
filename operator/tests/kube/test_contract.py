"""What the port promises, asked of a real API server and of the fake, so that the fake cannot lie."""

import asyncio
import re
from contextlib import aclosing
from typing import Any

import pytest

from plimsoll.kube.port import (
    Changed,
    ConflictError,
    InvalidError,
    Kind,
    Kube,
    Listed,
    NotFoundError,
    TerminatingError,
    UnknownKindError,
)
from support.fake_kube import version_of

CONFIG_MAP = Kind(api_version="v1", kind="ConfigMap")
NAMESPACE = Kind(api_version="v1", kind="Namespace")
RESULT = Kind(api_version="plimsoll.dev/v1alpha1", kind="BenchmarkResult")
RESULT_NAME = "r-w-000"
STORAGE_CLASS = Kind(api_version="storage.k8s.io/v1", kind="StorageClass")


def config_map(name: str, namespace: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def result(namespace: str) -> dict[str, Any]:
    spec = {
        "run": "r",
        "runUid": "u",
        "point": "w-000",
        "workload": "w",
        "tool": "fio",
        "label": "randread 4Ki",
        "parameters": {},
        "clients": 1,
        "runtimeSeconds": 4,
        "rampSeconds": 1,
        "repetitions": 2,
    }
    metadata = {"name": RESULT_NAME, "namespace": namespace}
    return {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BenchmarkResult", "metadata": metadata, "spec": spec}


async def fetch(kube: Kube, kind: Kind, name: str, namespace: str | None = None) -> Any:
    found = await kube.get(kind, name, namespace)
    assert found is not None
    return found


async def test_an_object_is_there_once_created(kube: Kube, namespace: str) -> None:
    assert await kube.get(CONFIG_MAP, "a", namespace) is None
    assert await kube.create(config_map("a", namespace, x="1"))
    found = await fetch(kube, CONFIG_MAP, "a", namespace)
    assert found["data"] == {"x": "1"}
    assert found["apiVersion"] == "v1"
    assert found["kind"] == "ConfigMap"
    assert found["metadata"].keys() >= {"uid", "resourceVersion", "creationTimestamp"}


async def test_creating_twice_keeps_the_first(kube: Kube, namespace: str) -> None:
    assert await kube.create(config_map("a", namespace, x="1"))
    assert not await kube.create(config_map("a", namespace, x="2"))
    assert (await fetch(kube, CONFIG_MAP, "a", namespace))["data"] == {"x": "1"}


async def test_it_says_its_version(kube: Kube) -> None:
    assert re.match(r"v1\.\d+\.\d+", await kube.version())


async def test_a_namespace_that_is_not_there_takes_nothing(kube: Kube) -> None:
    with pytest.raises(NotFoundError, match=r"create ConfigMap nowhere/a: .*nowhere"):
        await kube.create(config_map("a", "nowhere"))


async def test_a_namespace_that_is_going_takes_nothing_new(kube: Kube, namespace: str) -> None:
    kept = config_map("kept", namespace)
    kept["metadata"]["finalizers"] = ["plimsoll.dev/test"]
    await kube.create(kept)
    assert await kube.delete(NAMESPACE, namespace)
    with pytest.raises(TerminatingError, match=r"create ConfigMap .*/a: .* being terminated"):
        await kube.create(config_map("a", namespace))


async def test_an_object_needs_name_and_namespace(kube: Kube) -> None:
    with pytest.raises(InvalidError):
        await kube.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    for name, namespace in (("a", None), ("", "default"), ("..", "default"), ("a", "..")):
        with pytest.raises(InvalidError):
            await kube.get(CONFIG_MAP, name, namespace)


async def test_kinds_without_a_namespace(kube: Kube, namespace: str) -> None:
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": namespace, "labels": {"plimsoll.dev/run-uid": namespace}},
        "provisioner": "plimsoll.dev/test",
    }
    assert await kube.create(storage_class)
    found = await kube.list(STORAGE_CLASS, labels={"plimsoll.dev/run-uid": namespace})
    assert [obj["metadata"]["name"] for obj in found] == [namespace]
    assert await kube.delete(STORAGE_CLASS, namespace)
    assert await kube.get(STORAGE_CLASS, namespace) is None


async def test_a_list_has_what_has_the_labels(kube: Kube, namespace: str) -> None:
    for name, labels in {"a": {"run": "1", "part": "x"}, "b": {"run": "1"}, "c": {"run": "2"}}.items():
        obj = config_map(name, namespace)
        obj["metadata"]["labels"] = labels
        await kube.create(obj)

    async def names(**labels: str) -> set[str]:
        found = await kube.list(CONFIG_MAP, namespace=namespace, labels=labels)
        assert all((obj["apiVersion"], obj["kind"]) == ("v1", "ConfigMap") for obj in found)
        return {obj["metadata"]["name"] for obj in found}

    assert await names() == {"a", "b", "c"}
    assert await names(run="1") == {"a", "b"}
    assert await names(run="1", part="x") == {"a"}
    assert await names(run="3") == set()
    by_field = await kube.list(CONFIG_MAP, namespace=namespace, fields={"metadata.name": "b"})
    assert [obj["metadata"]["name"] for obj in by_field] == ["b"]


async def test_versions_and_pages_of_a_list_are_those_of_its_objects(kube: Kube, namespace: str) -> None:
    for number in range(5):
        obj = config_map(f"c{number}", namespace, x="1")
        obj["metadata"]["labels"] = {"odd": str(number % 2)}
        await kube.create(obj)
    await kube.patch(CONFIG_MAP, "c3", namespace, {"data": {"x": "2"}})
    odd = {"odd": "1"}
    found = await kube.list(CONFIG_MAP, namespace=namespace, labels=odd)
    assert [obj["metadata"]["name"] for obj in found] == ["c1", "c3"]
    assert await kube.versions(CONFIG_MAP, namespace=namespace, labels=odd) == [*map(version_of, found)]
    pages = [page async for page in kube.pages(CONFIG_MAP, size=1, namespace=namespace, labels=odd)]
    assert [len(page) for page in pages if page] == [1, 1], "the last page may be empty"
    assert [obj for page in pages for obj in page] == found
    none = {"odd": "2"}
    assert await kube.versions(CONFIG_MAP, namespace=namespace, labels=none) == []
    assert [
        obj async for page in kube.pages(CONFIG_MAP, size=1, namespace=namespace, labels=none) for obj in page
    ] == []


async def test_changes_are_told_after_what_is_there(kube: Kube, namespace: str) -> None:
    other = f"{namespace}-other"
    await kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    for place in (namespace, other):
        await kube.create(config_map("a", place))
    before = version_of(await fetch(kube, CONFIG_MAP, "a", namespace))
    async with asyncio.timeout(20), aclosing(kube.changes(CONFIG_MAP, namespace=namespace)) as changes:
        assert await anext(changes) == Listed([before])
        after = version_of(await kube.patch(CONFIG_MAP, "a", namespace, {"data": {"x": "1"}}))
        assert await anext(changes) == Changed(after)
        await kube.patch(CONFIG_MAP, "a", other, {"data": {"x": "1"}})
        await kube.create(config_map("b", namespace))
        new = version_of(await fetch(kube, CONFIG_MAP, "b", namespace))
        assert await anext(changes) == Changed(new)
        await kube.delete(CONFIG_MAP, "a", namespace)
        gone = await anext(changes)
        assert isinstance(gone, Changed)
        assert gone.is_gone
        assert gone.version.uid == after.uid


async def test_changes_of_all_namespaces(kube: Kube, namespace: str) -> None:
    async with asyncio.timeout(20), aclosing(kube.changes(RESULT)) as changes:
        assert isinstance(await anext(changes), Listed)
        await kube.create(result(namespace))
        assert await anext(changes) == Changed(version_of(await fetch(kube, RESULT, RESULT_NAME, namespace)))


async def test_a_list_over_all_namespaces(kube: Kube, namespace: str) -> None:
    other = f"{namespace}-other"
    await kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    for place in (namespace, other):
        obj = config_map("a", place)
        obj["metadata"]["labels"] = {"test": namespace}
        await kube.create(obj)
    found = await kube.list(CONFIG_MAP, labels={"test": namespace})
    assert {obj["metadata"]["namespace"] for obj in found} == {namespace, other}


async def test_a_patch_merges(kube: Kube, namespace: str) -> None:
    await kube.create(config_map("a", namespace, x="1", y="1"))
    patched = await kube.patch(CONFIG_MAP, "a", namespace, {"data": {"x": None, "z": "3"}})
    assert patched["data"] == {"y": "1", "z": "3"}
    assert (await fetch(kube, CONFIG_MAP, "a", namespace))["data"] == {"y": "1", "z": "3"}


async def test_a_patch_of_nothing(kube: Kube, namespace: str) -> None:
    with pytest.raises(NotFoundError, match=f"patch ConfigMap {namespace}/none: "):
        await kube.patch(CONFIG_MAP, "none", namespace, {"data": {}})
    with pytest.raises(NotFoundError, match=f"patch status of BenchmarkResult {namespace}/none: "):
        await kube.patch_status(RESULT, "none", namespace, {"final": True})


async def test_a_patch_without_change_leaves_the_version(kube: Kube, namespace: str) -> None:
    await kube.create(config_map("a", namespace, x="1"))
    before = await fetch(kube, CONFIG_MAP, "a", namespace)
    after = await kube.patch(CONFIG_MAP, "a", namespace, {"data": {"x": "1"}})
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


async def test_status_and_the_rest_are_written_apart(kube: Kube, namespace: str) -> None:
    created = result(namespace) | {"status": {"final": True}}
    await kube.create(created)
    assert "final" not in (await fetch(kube, RESULT, RESULT_NAME, namespace)).get("status", {})
    await kube.patch(RESULT, RESULT_NAME, namespace, {"status": {"final": True}, "metadata": {"labels": {"x": "1"}}})
    found = await fetch(kube, RESULT, RESULT_NAME, namespace)
    assert "final" not in found.get("status", {})
    assert found["metadata"]["labels"] == {"x": "1"}
    before = found["metadata"]["generation"]
    await kube.patch_status(RESULT, RESULT_NAME, namespace, {"final": True})
    found = await fetch(kube, RESULT, RESULT_NAME, namespace)
    assert found["status"]["final"] is True
    assert found["metadata"]["generation"] == before


async def test_fields_of_a_status_are_replaced_whole(kube: Kube, namespace: str) -> None:
    await kube.create(result(namespace))
    old = {"environment": {"old": "1", "both": "1"}, "display": {"iops": "1", "p99": "1 ms"}, "verdict": "Valid"}
    await kube.patch_status(RESULT, RESULT_NAME, namespace, old)
    new = {"environment": {"both": "2"}, "display": {"iops": "2"}, "verdict": None, "final": False}
    await kube.patch_status(RESULT, RESULT_NAME, namespace, new)
    status = (await fetch(kube, RESULT, RESULT_NAME, namespace))["status"]
    assert status == {"environment": {"both": "2"}, "display": {"iops": "2"}, "final": False}
    await kube.patch_status(RESULT, RESULT_NAME, namespace, {"final": True, "verdict": None})
    status = (await fetch(kube, RESULT, RESULT_NAME, namespace))["status"]
    assert status == {"environment": {"both": "2"}, "display": {"iops": "2"}, "final": True}


@pytest.mark.parametrize("has_status", [False, True])
async def test_a_status_of_a_known_version_is_written_only_once(
    kube: Kube, namespace: str, *, has_status: bool
) -> None:
    await kube.create(result(namespace))
    if has_status:
        await kube.patch_status(RESULT, RESULT_NAME, namespace, {"verdict": "Valid"})
    version = (await fetch(kube, RESULT, RESULT_NAME, namespace))["metadata"]["resourceVersion"]
    written = await kube.patch_status(RESULT, RESULT_NAME, namespace, {"final": True}, version=version)
    assert written["metadata"]["resourceVersion"] != version
    for final in (False, True):  # also if nothing would change
        with pytest.raises(ConflictError, match=f"patch status of BenchmarkResult {namespace}/{RESULT_NAME}: "):
            await kube.patch_status(RESULT, RESULT_NAME, namespace, {"final": final}, version=version)
    assert (await fetch(kube, RESULT, RESULT_NAME, namespace))["status"]["final"] is True


async def test_a_dry_run_creates_nothing(kube: Kube, namespace: str) -> None:
    assert await kube.create(config_map("a", namespace), dry_run=True)
    assert await kube.get(CONFIG_MAP, "a", namespace) is None
    assert await kube.create(config_map("a", namespace))
    assert not await kube.create(config_map("a", namespace), dry_run=True)
    with pytest.raises(NotFoundError, match="dry run of ConfigMap missing/a: "):
        await kube.create(config_map("a", "missing"), dry_run=True)


async def test_what_has_no_status(kube: Kube, namespace: str) -> None:
    await kube.create(config_map("a", namespace))
    with pytest.raises(UnknownKindError, match="patch status of ConfigMap"):
        await kube.patch_status(CONFIG_MAP, "a", namespace, {"phase": "x"})
    assert await kube.get(CONFIG_MAP, "a", namespace)


async def test_deleting(kube: Kube, namespace: str) -> None:
    await kube.create(config_map("a", namespace))
    assert await kube.delete(CONFIG_MAP, "a", namespace)
    assert await kube.get(CONFIG_MAP, "a", namespace) is None
    assert not await kube.delete(CONFIG_MAP, "a", namespace)


async def test_deleting_only_the_one_that_is_meant(kube: Kube, namespace: str) -> None:
    await kube.create(config_map("a", namespace))
    uid = (await fetch(kube, CONFIG_MAP, "a", namespace))["metadata"]["uid"]
    assert not await kube.delete(CONFIG_MAP, "a", namespace, uid="another")
    assert await kube.get(CONFIG_MAP, "a", namespace)
    assert await kube.delete(CONFIG_MAP, "a", namespace, uid=uid)
    assert not await kube.delete(CONFIG_MAP, "a", namespace, uid=uid)


async def test_what_has_a_finalizer_goes_with_it(kube: Kube, namespace: str) -> None:
    obj = config_map("a", namespace)
    obj["metadata"]["finalizers"] = ["plimsoll.dev/test"]
    await kube.create(obj)
    assert await kube.delete(CONFIG_MAP, "a", namespace)
    going = await fetch(kube, CONFIG_MAP, "a", namespace)
    assert going["metadata"]["deletionTimestamp"]
    assert await kube.delete(CONFIG_MAP, "a", namespace)
    assert not await kube.create(config_map("a", namespace))
    await kube.patch(CONFIG_MAP, "a", namespace, {"metadata": {"finalizers": None}})
    assert await kube.get(CONFIG_MAP, "a", namespace) is None


async def test_in_the_foreground_dependants_go_first(kube: Kube, namespace: str) -> None:
    await kube.create(config_map("owner", namespace))
    uid = (await fetch(kube, CONFIG_MAP, "owner", namespace))["metadata"]["uid"]
    dependant = config_map("dependant", namespace)
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "blockOwnerDeletion": True}
    dependant["metadata"] |= {"ownerReferences": [owner], "finalizers": ["plimsoll.dev/test"]}
    await kube.create(dependant)
    assert await kube.delete(CONFIG_MAP, "owner", namespace, foreground=True)
    owner_now = await fetch(kube, CONFIG_MAP, "owner", namespace)
    assert owner_now["metadata"]["deletionTimestamp"]
    assert owner_now["metadata"]["finalizers"] == ["foregroundDeletion"]


async def test_a_kind_that_is_not_served(kube: Kube, namespace: str) -> None:
    pool = Kind(api_version="ceph.example.com/v1", kind="CephBlockPool")
    with pytest.raises(UnknownKindError, match=r"CephBlockPool"):
        await kube.get(pool, "a", namespace)
    with pytest.raises(UnknownKindError):
        await kube.list(pool)
    typo = Kind(api_version="v1", kind="ConfigMop")
    with pytest.raises(UnknownKindError, match="ConfigMop"):
        await kube.create({"apiVersion": typo.api_version, "kind": typo.kind, "metadata": {"name": "a"}})


async def test_many_at_once(kube: Kube, namespace: str) -> None:
    created = await asyncio.gather(*(kube.create(config_map("one", namespace, x=str(n))) for n in range(8)))
    assert sorted(created) == [False] * 7 + [True]
