"""A toy provider of storage: it follows the recipe in CONTRIBUTING.md and touches nothing else.

A file server has to create a share for each run, and then an export of it. Claims come from the export.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from plimsoll.api.reasons.reason import Reason
from plimsoll.kube.port import Kind
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import Object, child_of, is_external_object_of
from plimsoll.lifecycle.decision import Create, Fact, Teardown, deletions
from plimsoll.lifecycle.render.common import foreign_metadata
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.storage import registry
from plimsoll.lifecycle.storage.claims import Claims
from plimsoll.lifecycle.storage.seam import Look, Provider, Query, Resource, StorageSpec, View
from plimsoll.plan.document import base_name
from support.fake_kube import Traits, is_going
from support.pretend_world import CrashError, PretendWorld, outside

SERVER = "toy-server"
API_VERSION = "toy.example.com/v1"
KINDS = ("Share", "Export")
TOY = {"storageClass": {"name": "toy"}, "volume": {"size": "1Gi", "mode": "Filesystem"}}

There = Mapping[str, Object]
"""What a run has on the server, by kind."""


class ToyProvider(Provider):
    """Shares of one file server."""

    is_polled: ClassVar[bool] = True

    def provides(self, storage: StorageSpec) -> bool:
        return bool(storage.get("storageClass") == TOY["storageClass"])

    def targets(self, storage: StorageSpec) -> frozenset[str]:
        return frozenset({SERVER})

    def resources(self, view: View) -> Sequence[Resource]:
        served = [Served(view=view, kind=kind) for kind in KINDS]
        return [*served, Claims(view=view, storage_class=base_name(view.run.name, view.run.uid))]

    def kept(self, view: View) -> Sequence[str]:
        return [f"{kind} {obj['metadata']['name']}" for kind, obj in found(view).items()]

    def look(self, view: View) -> Look[There] | None:
        return look(view.run) if view.run.start_time is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Served(Resource):
    """An object that the server makes ready."""

    view: View
    kind: str

    def desired(self) -> Iterator[Create]:
        if self.kind not in found(self.view) and not self.view.in_use:
            name = base_name(self.view.run.name, self.view.run.uid)
            metadata = foreign_metadata(self.view.run, name, namespace=SERVER, component=naming.STORAGE)
            yield Create(obj={"apiVersion": API_VERSION, "kind": self.kind, "metadata": metadata})

    def ready(self) -> Fact:
        obj = found(self.view).get(self.kind, {})
        holds = self.view.in_use or obj.get("status", {}).get("phase") == "Ready"
        if not holds:
            return Fact(holds=False, reason=Reason.POOL_NOT_READY, message=f"{self.kind} is not served yet")
        return Fact(holds=True, reason=Reason.READY, message=f"{self.kind} is served")

    def remove(self) -> Teardown | None:
        obj = found(self.view).get(self.kind)
        if obj is None:
            return None
        fact = Fact(holds=False, reason=Reason.IN_PROGRESS, message=f"{self.kind} is being deleted")
        return Teardown(actions=deletions([child_of(obj)]), fact=fact)


def found(view: View) -> There:
    there = view.seen.external
    return there if isinstance(there, dict) else {}


def look(run: Run) -> Look[There]:
    own = {naming.LABEL_RUN_UID: run.uid}
    answers = yield [Query(api_version=API_VERSION, kind=kind, namespace=SERVER, labels=own) for kind in KINDS]
    return {obj["kind"]: obj for objects in answers for obj in objects if is_external_object_of(obj, run.name, run.uid)}


# -- the server, and runs on it


@dataclass
class Server:
    """A file server that needs a moment for everything, and comes to an object once `serves` names its kind."""

    world: PretendWorld
    serves: frozenset[str] = frozenset(KINDS)

    def step(self) -> None:
        for obj in [obj for kind in KINDS for obj in self.world.cluster.kube.objects(kind)]:
            if is_going(obj):
                self.world.cluster.let_go(obj, SERVER)
            elif obj["kind"] in self.serves:
                self.world.cluster.edit(obj, lambda new: new["metadata"].update(finalizers=[SERVER]))
                self.world.cluster.set_status(obj, phase="Ready")


@pytest.fixture
def server(world: PretendWorld, monkeypatch: pytest.MonkeyPatch) -> Server:
    server, others = Server(world), world.rook.step

    def step() -> None:
        others()
        server.step()

    world.cluster.kube.kinds |= {Kind(api_version=API_VERSION, kind=kind): Traits() for kind in KINDS}
    world.cluster.kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SERVER}})
    monkeypatch.setattr(world.rook, "step", step)
    monkeypatch.setattr(registry, "PROVIDERS", (ToyProvider(), *registry.PROVIDERS))
    return server


def asked(world: PretendWorld, verb: str) -> list[str]:
    """Return the kinds of which something was created or deleted, in the order of the first of each."""
    kinds = [request.split()[1] for request in world.cluster.kube.requests if request.startswith(f"{verb} ")]
    return [kind for kind in dict.fromkeys(kinds) if kind in {*KINDS, "PersistentVolumeClaim", "Job"}]


def test_a_run_is_measured_and_its_storage_comes_and_goes_in_order(server: Server) -> None:
    world = server.world
    uid = world.create("a", storage=TOY)
    world.until(lambda: world.conductors.loads)
    world.look(uid)
    assert outside(world, uid) == set(KINDS)
    assert world.conditions(uid)["StorageReady"]["reason"] == "Bound"
    world.until_settled(uid)
    assert world.conditions(uid)["Succeeded"]["status"] == "True"
    assert world.conditions(uid)["CleanedUp"]["reason"] == "Removed"
    assert asked(world, "create") == ["Share", "Export", "PersistentVolumeClaim", "Job"]
    assert asked(world, "delete") == ["Job", "PersistentVolumeClaim", "Export", "Share"]
    assert outside(world, uid) == set()


@pytest.mark.parametrize(("serves", "made"), [((), {"Share"}), (("Share",), {"Share", "Export"})])
def test_what_needs_a_resource_that_is_not_ready_is_not_created(server: Server, serves: Any, made: set[str]) -> None:
    world, server.serves = server.world, frozenset(serves)
    uid = world.create("a", storage=TOY)
    world.until(lambda: outside(world, uid) == made)
    for _ in range(3):
        world.round()
    assert outside(world, uid) == made
    assert asked(world, "create") == [kind for kind in KINDS if kind in made]
    ended = world.until_ended(uid)
    assert ended["reason"] == "PoolNotReady"
    assert f"{KINDS[len(serves)]} is not served yet" in ended["message"]
    world.until_settled(uid)
    assert outside(world, uid) == set()


def test_storage_that_is_kept_is_named_and_goes_with_the_run(server: Server) -> None:
    world = server.world
    uid = world.create("a", storage=TOY, cleanup="Never")
    world.until_settled(uid)
    cleaned_up = world.conditions(uid)["CleanedUp"]
    assert cleaned_up["reason"] == "StorageKept"
    assert "2 PVCs: plimsoll-a-client-0, plimsoll-a-client-1; Share plimsoll-a-" in cleaned_up["message"]
    run = world.run(uid)
    assert run is not None
    world.cluster.delete(run)
    world.until(lambda: world.run(uid) is None)
    assert outside(world, uid) == set()


def test_runs_on_one_server_take_turns(server: Server) -> None:
    world = server.world
    first = world.create("a", storage=TOY)
    # The API server's times are whole seconds: of one second, the UIDs decide who comes first.
    world.cluster.pass_time(1.0)
    second = world.create("b", storage=TOY)
    world.until(lambda: world.conductors.loads)
    assert "behind bench/a" in world.conditions(second)["Admitted"]["message"]
    assert outside(world, second) == set()
    assert [world.until_ended(uid)["status"] for uid in (first, second)] == ["True", "True"]


def test_an_operator_that_dies_at_every_request_comes_to_the_same_end(server: Server) -> None:
    world = server.world
    uid = world.create("a", storage=TOY, timeouts={"provisionSeconds": 3600})
    for number in range(300):
        world.operator.watch_all()
        world.look_with(uid, 1 + number % 29, CrashError)
        world.cluster.step()
        world.rook.step()
        world.conductors.step()
        world.cluster.pass_time(1.0)
    world.until_settled(uid)
    assert world.conditions(uid)["Succeeded"]["status"] == "True"
    assert outside(world, uid) == set()
