"""A conductor whose kubelet is dead, but whose connection is not, changes nothing once its run is being torn down."""

import asyncio

import pytest

from plimsoll.kube.errors import ForbiddenError
from plimsoll.kube.port import Kind
from plimsoll.lifecycle.decision import Delete
from plimsoll.operator.execute import execute
from support.fake_kube import FakeKube
from support.pretend_cluster import NODES
from support.pretend_world import PretendWorld, run_of, until_trial

BINDING, JOB = "delete RoleBinding bench/a-conductor", "delete Job bench/a-conductor"


def deletions(world: PretendWorld) -> list[str]:
    return [asked for asked in world.cluster.kube.requests if asked.startswith("delete ")]


def end(world: PretendWorld, uid: str, way: str) -> None:
    if way == "deleted":
        world.cluster.delete(run_of(world, uid))
    else:
        (pod, *_) = [pod for pod in world.cluster.of_run("Pod", uid) if "-conductor" in pod["metadata"]["name"]]
        world.cluster.set_status(pod, phase="Failed")
        (job,) = [job for job in world.cluster.of_run("Job", uid) if job["metadata"]["name"] == "a-conductor"]
        failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
        world.cluster.set_status(job, conditions=[failed])


@pytest.mark.parametrize("way", ["deleted", "failed"])
def test_a_teardown_first_removes_the_conductors_rights(world: PretendWorld, way: str) -> None:
    uid = world.create("a")
    until_trial(world)
    for node in NODES:
        world.cluster.lose_node(node)
    end(world, uid, way)
    world.round()
    asked = deletions(world)
    assert asked[0].startswith(BINDING)
    assert any(one.startswith(JOB) for one in asked)


def test_load_stops_although_the_rights_cannot_be_removed(world: PretendWorld) -> None:
    uid = world.create("a")
    until_trial(world)

    def refuse(asked: str) -> None:
        if asked.startswith("delete RoleBinding"):
            raise ForbiddenError(asked, "no")

    world.cluster.kube.interfere = refuse
    world.cluster.delete(run_of(world, uid))
    world.until(lambda: not world.cluster.of_run("Pod", uid), rounds=20)


def test_a_suspended_conductor_may_record_its_end_until_its_deadline(world: PretendWorld) -> None:
    uid = world.create("a")
    until_trial(world)
    for node in NODES:
        world.cluster.lose_node(node)
    world.change(uid, suspend=True)
    world.round(1.0)
    assert [one for one in deletions(world) if one.startswith(JOB)]
    assert world.cluster.find("RoleBinding", "a-conductor") is not None
    world.round(3600.0)
    world.round()
    assert world.cluster.find("RoleBinding", "a-conductor") is None


async def test_what_follows_waits_until_the_rights_are_removed() -> None:
    order: list[str] = []

    class SlowKube(FakeKube):
        async def delete(
            self,
            kind: Kind,
            name: str,
            namespace: str | None = None,
            *,
            uid: str | None = None,
            foreground: bool = False,
        ) -> bool:
            if kind.kind == "RoleBinding":
                await asyncio.sleep(0)
            order.append(name)
            return True

    def deletion(kind: str, name: str) -> Delete:
        return Delete(api_version="v1", kind=kind, namespace="default", name=name, uid="u")

    actions = [deletion("RoleBinding", "binding"), deletion("Job", "job"), deletion("Job", "other")]
    await execute(actions, SlowKube(), make_secret=lambda _: {})
    assert order == ["binding", "job", "other"]
