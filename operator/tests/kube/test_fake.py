"""The fake as a garbage collector, which a bare API server has not."""

from typing import Any

from plimsoll.kube.port import Kind
from support.fake_kube import FakeKube

CONFIG_MAP = Kind(api_version="v1", kind="ConfigMap")
NAMESPACE = Kind(api_version="v1", kind="Namespace")
HELD = {"metadata": {"finalizers": ["plimsoll.dev/test"]}}
RELEASED = {"metadata": {"finalizers": None}}


def owned(name: str, *owners: str, blocking: bool = False) -> dict[str, Any]:
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": uid, "blockOwnerDeletion": blocking}
        for uid in owners
    ]
    metadata = {"name": name, "namespace": "default", "ownerReferences": references}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


async def make(kube: FakeKube, obj: dict[str, Any]) -> str:
    assert await kube.create(obj)
    found = await kube.get(CONFIG_MAP, obj["metadata"]["name"], "default")
    assert found is not None
    return str(found["metadata"]["uid"])


def names(kube: FakeKube) -> list[str]:
    return [obj["metadata"]["name"] for obj in kube.objects("ConfigMap")]


async def test_dependants_go_with_their_last_owner() -> None:
    kube = FakeKube()
    first, second = await make(kube, owned("first")), await make(kube, owned("second"))
    child = await make(kube, owned("child", first, second))
    await make(kube, owned("grandchild", child))
    await kube.delete(CONFIG_MAP, "first", "default")
    assert names(kube) == ["second", "child", "grandchild"]
    await kube.delete(CONFIG_MAP, "second", "default")
    assert names(kube) == []


async def test_in_the_foreground_an_owner_waits_for_those_that_block_it() -> None:
    kube = FakeKube()
    owner = await make(kube, owned("owner"))
    await make(kube, owned("child", owner, blocking=True))
    await kube.patch(CONFIG_MAP, "child", "default", HELD)
    await kube.delete(CONFIG_MAP, "owner", "default", foreground=True)
    assert names(kube) == ["owner", "child"]
    assert all("deletionTimestamp" in obj["metadata"] for obj in kube.objects("ConfigMap"))
    await kube.patch(CONFIG_MAP, "child", "default", RELEASED)
    assert names(kube) == []


async def test_a_namespace_goes_when_it_is_empty() -> None:
    kube = FakeKube()
    await make(kube, owned("held"))
    await make(kube, owned("free"))
    await kube.patch(CONFIG_MAP, "held", "default", HELD)
    await kube.delete(NAMESPACE, "default")
    assert names(kube) == ["held"]
    assert kube.objects("Namespace")
    await kube.patch(CONFIG_MAP, "held", "default", RELEASED)
    assert kube.objects() == []


async def test_requests_are_kept() -> None:
    kube = FakeKube()
    await make(kube, owned("a"))
    await kube.list(CONFIG_MAP)
    assert kube.requests == ["create ConfigMap default/a", "get ConfigMap default/a", "list ConfigMap"]
