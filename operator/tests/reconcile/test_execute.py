"""Performing actions: what is kept, what is repeated, and what ends it."""

import asyncio
from base64 import b64decode
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import pytest

from plimsoll.kube import port
from plimsoll.kube.client import AioKube
from plimsoll.kube.port import ConflictError, InvalidError, Kind, Kube, TransientError
from plimsoll.lifecycle.children import Child
from plimsoll.lifecycle.decision import Action, Create, CreateSecret, Delete
from plimsoll.lifecycle.naming import LABEL_RUN_UID
from plimsoll.operator.execute import CONCURRENCY, TakenError, execute, refusal_of
from support.fake_kube import FakeKube, failing

CONFIG_MAP = Kind(api_version="v1", kind="ConfigMap")
SECRET = Kind(api_version="v1", kind="Secret")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port, "_FIRST_PAUSE_SECONDS", 0.001)


def make_secret(clients: int) -> Mapping[str, bytes]:
    return {"token": f"secret of {clients}".encode()}


def config_map(name: str, namespace: str = "default") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


def delete(name: str, uid: str, namespace: str = "default") -> Delete:
    return Delete(child=Child(api_version="v1", kind="ConfigMap", namespace=namespace, name=name, uid=uid))


async def uid_of(kube: Kube, name: str, namespace: str) -> str:
    found = await kube.get(CONFIG_MAP, name, namespace)
    assert found is not None
    return str(found["metadata"]["uid"])


async def test_actions_may_be_repeated(kube: Kube, namespace: str) -> None:
    await kube.create(config_map("old", namespace))
    old = delete("old", await uid_of(kube, "old", namespace), namespace)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": namespace}}
    actions: list[Action] = [Create(obj=config_map("new", namespace)), CreateSecret(obj=secret, clients=3), old]
    await execute(actions, kube, make_secret=make_secret)
    first = await uid_of(kube, "new", namespace)
    await execute(actions, kube, make_secret=lambda _: {"token": b"another"})
    assert await uid_of(kube, "new", namespace) == first
    assert await kube.get(CONFIG_MAP, "old", namespace) is None
    found = await kube.get(SECRET, "s", namespace)
    assert found is not None
    assert b64decode(found["data"]["token"]) == b"secret of 3"


async def test_another_object_of_that_name_is_left_alone(kube: Kube, namespace: str) -> None:
    await kube.create(config_map("a", namespace))
    await execute([delete("a", "of an earlier one", namespace)], kube, make_secret=make_secret)
    assert await kube.get(CONFIG_MAP, "a", namespace)


def of_run(uid: str) -> dict[str, Any]:
    owner = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BenchmarkRun", "name": "r", "uid": uid}
    obj = config_map("a")
    obj["metadata"] |= {"labels": {LABEL_RUN_UID: uid}, "ownerReferences": [owner]}
    return obj


@pytest.mark.parametrize(("there", "departing"), [(config_map("a"), False), (of_run("earlier"), True)])
async def test_an_object_of_somebody_else_is_not_taken_for_the_runs(there: dict[str, Any], *, departing: bool) -> None:
    kube = FakeKube()
    await kube.create(there)
    with pytest.raises(TakenError, match="create ConfigMap default/a: ConfigMap a exists and does not belong") as told:
        await execute([Create(obj=of_run("u"))], kube, make_secret=make_secret)
    assert told.value.departing == departing
    assert refusal_of(told.value).reason == ("WaitingForEarlierRun" if departing else "NameTaken")


async def test_the_runs_own_object_is_kept() -> None:
    kube = FakeKube()
    await kube.create(of_run("u"))
    await execute([Create(obj=of_run("u"))], kube, make_secret=make_secret)
    assert len(kube.objects("ConfigMap")) == 1


async def test_a_name_that_becomes_free_meanwhile_is_taken_at_the_next_attempt() -> None:
    class Passing(FakeKube):
        async def create(self, obj: Any, *, dry_run: bool = False) -> bool:
            return self.requests.count("get ConfigMap default/a") > 0 and await super().create(obj, dry_run=dry_run)

    kube = Passing()
    await execute([Create(obj=of_run("u"))], kube, make_secret=make_secret)
    assert len(kube.objects("ConfigMap")) == 1


async def test_what_passes_is_tried_again() -> None:
    kube = FakeKube(interfere=failing(lambda asked: TransientError(asked, "away"), times=3))
    await execute([Create(obj=config_map("a"))], kube, make_secret=make_secret)
    kube.interfere = failing(lambda asked: ConflictError(asked, "the quota was being counted"), times=3)
    await execute([Create(obj=config_map("b"))], kube, make_secret=make_secret)
    assert [obj["metadata"]["name"] for obj in kube.objects("ConfigMap")] == ["a", "b"]


async def test_what_does_not_pass_is_said() -> None:
    kube = FakeKube(interfere=failing(lambda asked: TransientError(asked, "away"), times=10**6))
    with pytest.raises(TransientError, match="create ConfigMap default/a: away"):
        await execute([Create(obj=config_map("a"))], kube, make_secret=make_secret, retry_seconds=0.05)


async def test_a_refusal_ends_it_and_names_the_object() -> None:
    kube = FakeKube(interfere=failing(lambda asked: InvalidError(asked, "no"), times=1, request="/c005"))
    actions = [Create(obj=config_map(f"c{number:03}")) for number in range(100)]
    with pytest.raises(InvalidError, match="create ConfigMap default/c005: no"):
        await execute(actions, kube, make_secret=make_secret)
    assert len(kube.objects("ConfigMap")) < 5 + 2 * CONCURRENCY


async def test_creations_and_deletions_are_kept_apart() -> None:
    kube = FakeKube()
    await kube.create(config_map("a"))
    uid = await uid_of(kube, "a", "default")
    kube.requests.clear()
    await execute([delete("a", uid), Create(obj=config_map("a"))], kube, make_secret=make_secret)
    assert kube.requests == ["delete ConfigMap default/a", "create ConfigMap default/a"]
    assert await uid_of(kube, "a", "default") != uid


async def test_a_few_at_a_time_in_the_given_order() -> None:
    running = most = 0
    begun: list[str] = []

    class Slow(FakeKube):
        async def create(self, obj: Any, *, dry_run: bool = False) -> bool:
            nonlocal running, most
            running, most = running + 1, max(most, running + 1)
            begun.append(obj["metadata"]["name"])
            await asyncio.sleep(0.001)
            running -= 1
            return await super().create(obj, dry_run=dry_run)

    actions = [Create(obj=config_map(f"c{number:03}")) for number in range(50)]
    await execute(actions, Slow(), make_secret=make_secret)
    assert most == CONCURRENCY
    assert begun == sorted(begun)


@pytest.mark.parametrize(
    ("refused", "kinds"),
    [("", ["Role", "RoleBinding", "Job"]), ("Role", ["Role"]), ("RoleBinding", ["Role", "RoleBinding"])],
)
async def test_what_refers_to_other_objects_is_created_after_them(refused: str, kinds: list[str]) -> None:
    """The API server binds no Role that does not exist, and a pod must not start beside an object of another owner."""
    asked: list[str] = []

    class Slow(FakeKube):
        async def create(self, obj: Any, *, dry_run: bool = False) -> bool:
            asked.append(obj["kind"])
            if obj["kind"] == refused:
                raise InvalidError("create it", "no")
            if obj["kind"] == "Role":
                await asyncio.sleep(0.01)
            return await super().create(obj, dry_run=dry_run)

    rights = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    metadata = {"name": "a-role", "namespace": "default"}
    waves = [
        Create(obj={**rights, "kind": "Role", "metadata": metadata}),
        Create(obj={**rights, "kind": "RoleBinding", "metadata": metadata}, wave=1),
        Create(obj={"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}, wave=2),
    ]
    with pytest.raises(InvalidError) if refused else nullcontext():
        await execute(waves, Slow(), make_secret=make_secret)
    assert asked == kinds


async def test_nothing_to_do() -> None:
    await execute([], FakeKube(), make_secret=make_secret)


@pytest.mark.crd
async def test_a_large_run_is_made_in_seconds(real: AioKube, namespace: str) -> None:
    actions = [Create(obj=config_map(f"c{number:04}", namespace)) for number in range(1000)]
    async with asyncio.timeout(60):
        await execute(actions, real, make_secret=make_secret)
    assert len(await real.list(CONFIG_MAP, namespace=namespace)) == 1000
