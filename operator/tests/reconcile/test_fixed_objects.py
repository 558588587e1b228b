"""When the rights and policies of a run are read again."""

from datetime import UTC, datetime, timedelta

import pytest

from plimsoll.kube.port import Kind, TransientError
from plimsoll.lifecycle import naming
from plimsoll.operator.gather import REREAD_SECONDS, FixedObjects
from plimsoll.plan.document import RunIdentity
from support.fake_kube import FakeKube, failing
from support.pretend_world import PretendWorld, is_settled

ROLE = Kind(api_version="rbac.authorization.k8s.io/v1", kind="Role")
OWN = {naming.LABEL_RUN_UID: "u"}
RUN = RunIdentity(namespace="default", name="r", uid="u")
FIXED = {"ServiceAccount", "Service", "NetworkPolicy", "Role", "RoleBinding"}


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def role(name: str, owner: str = "u", **metadata: object) -> dict[str, object]:
    owners = [{"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BenchmarkRun", "name": "r", "uid": owner}]
    common = {"namespace": "default", "labels": OWN, "ownerReferences": owners, "uid": name}
    return {"apiVersion": ROLE.api_version, "kind": "Role", "metadata": {"name": name, **common, **metadata}}


@pytest.fixture
def kube() -> FakeKube:
    return FakeKube()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def kept(clock: Clock) -> FixedObjects:
    return FixedObjects({ROLE: ["conductor", "stranger"]}, RUN, clock)


async def names(kept: FixedObjects, kube: FakeKube) -> list[str]:
    return [child.name for child in await kept.look(kube)]


@pytest.mark.parametrize("seconds", [REREAD_SECONDS, -3600], ids=["in a while", "after the clock was set back"])
async def test_what_only_the_operator_changes_is_read_again(
    kube: FakeKube, clock: Clock, kept: FixedObjects, seconds: float
) -> None:
    assert await names(kept, kube) == []
    kube.put(role("conductor"))
    clock.advance(REREAD_SECONDS - 1)
    assert await names(kept, kube) == []
    clock.advance(seconds - REREAD_SECONDS + 1)
    assert await names(kept, kube) == ["conductor"]
    assert len(kube.requests) == 4


async def test_what_was_forgotten_is_read_at_once(kube: FakeKube, kept: FixedObjects) -> None:
    assert await names(kept, kube) == []
    kube.put(role("conductor"))
    kept.forget()
    assert await names(kept, kube) == ["conductor"]


async def test_what_is_being_deleted_is_looked_at_until_it_is_gone(kube: FakeKube, kept: FixedObjects) -> None:
    kube.put(role("conductor", deletionTimestamp="2026-01-01T00:00:00Z"))
    assert await names(kept, kube) == ["conductor"]
    kube.interfere = failing(lambda request: TransientError(request, "no answer"), times=1, request="get Role")
    with pytest.raises(TransientError):
        await names(kept, kube)
    await kube.delete(ROLE, "conductor", "default")
    assert await names(kept, kube) == []


async def test_objects_that_only_carry_the_runs_label_are_not_its_own(kube: FakeKube, kept: FixedObjects) -> None:
    kube.put(role("conductor"))
    kube.put(role("stranger", owner="another"))
    assert await names(kept, kube) == ["conductor"]


def test_rights_and_policies_are_read_when_the_operator_has_acted_and_otherwise_rarely() -> None:
    with PretendWorld() as world:
        uid, requests, read, acted = world.create("a"), world.cluster.kube.requests, [], True
        while not is_settled(world.run(uid)):
            world.operator.watch_all()
            before = len(requests)
            decision = world.look(uid)
            assert not {request.split()[1] for request in requests[before:] if request.startswith("list ")} & FIXED
            reads = {request.split()[1] for request in requests[before:] if request.startswith("get ")} & FIXED
            assert reads in (FIXED, set())
            assert reads or not acted
            read.append(bool(reads))
            acted = bool(decision and decision.actions)
            world.cluster.step()
            world.conductors.step()
            world.cluster.pass_time(1.0)
        assert 0 < read.count(True) < len(read) / 2
