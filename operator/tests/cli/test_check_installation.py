"""`plimsoll check-installation` passes with a working operator, and reports the failure of any other."""

import asyncio
from copy import copy

import pytest

from plimsoll.api.names import API_VERSION, RUN_KIND
from plimsoll.kube.port import Kind, UnknownKindError
from plimsoll.programs.hooks import NotInstalledError, check_installation
from support.fake_kube import FakeKube
from support.pretend_cluster import NAMESPACE
from support.pretend_world import PretendWorld

RUN = Kind(api_version=API_VERSION, kind=RUN_KIND)


async def operate(world: PretendWorld) -> None:
    """Act as the operator until cancelled."""
    while True:
        world.operator.watch_all()
        for uid in list(world.operator.bodies):
            await world.operator.look(uid)
        await asyncio.sleep(0.001)


def user_of(world: PretendWorld) -> FakeKube:
    """Return the API for clients other than the operator, whose requests the world checks."""
    kube = copy(world.cluster.kube)
    for verb in ("create", "delete"):
        kube.__dict__.pop(verb)
    return kube


async def check_with_operator(world: PretendWorld) -> None:
    async with asyncio.TaskGroup() as group:
        operator = group.create_task(operate(world))
        await check_installation(user_of(world), NAMESPACE, seconds=30, poll_seconds=0.001)
        operator.cancel()


def test_with_an_operator_it_passes_and_leaves_nothing() -> None:
    with PretendWorld() as world:
        before = world.cluster.kube.objects()
        world.wait(check_with_operator(world))
        assert [obj["metadata"]["name"] for obj in world.cluster.kube.objects()] == [
            obj["metadata"]["name"] for obj in before
        ]
        created = [request for request in world.cluster.kube.requests if request.startswith("create")]
        assert [request.split()[1] for request in created] == [RUN_KIND]


async def test_without_an_operator_it_fails_and_leaves_nothing() -> None:
    kube = FakeKube()
    with pytest.raises(NotInstalledError, match=r"has not observed run default/check-\w+ after 0 s; check the logs"):
        await check_installation(kube, "default", seconds=0.01, poll_seconds=0.001)
    assert kube.objects(RUN_KIND) == []


async def test_operator_that_does_not_release_the_run_is_reported() -> None:
    kube = FakeKube()

    def hold(request: str) -> None:
        if request.startswith(f"get {RUN_KIND}") and (runs := kube.objects(RUN_KIND)):
            run = runs[0]
            run["metadata"]["finalizers"] = ["plimsoll.dev/teardown"]
            run["status"] = {"conditions": [{"type": "Suspended", "status": "True"}]}
            kube.put(run)

    kube.interfere = hold
    with pytest.raises(NotInstalledError, match=r"has not released run default/check-\w+"):
        await check_installation(kube, "default", seconds=0.01, poll_seconds=0.001)


async def test_without_the_definition_it_fails_at_once() -> None:
    kube = FakeKube()
    del kube.kinds[RUN]
    with pytest.raises(UnknownKindError):
        await check_installation(kube, "default", seconds=10, poll_seconds=0.001)
