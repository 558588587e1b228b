"""Runs with PersistentVolumeClaims on pools that Rook makes are deleted while they are made, filled and removed."""

import pytest

from plimsoll.api.names import RunPhase
from support.pretend_rook import ROOK
from support.served_world import ServedWorld
from support.specs import document

pytestmark = [pytest.mark.crd, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("phase", "way"), [("Claiming", "namespace"), ("Preparing", "background"), ("CleaningUp", "background")]
)
def test_a_deleted_run_leaves_no_volume(world: ServedWorld, namespace: str, phase: str, way: str) -> None:
    world.conductors.knobs.stays = RunPhase.PREPARING if phase == "Preparing" else None
    run = document(storage={"rook": ROOK, "volume": {"size": "64Mi", "access": "PVC"}}, repetitions=1)
    run["metadata"] = {"name": "doomed", "namespace": namespace}
    world.create(run)
    match phase:
        case "Claiming":
            world.until(lambda: world.volumes(namespace), "a volume is provisioned")
        case "Preparing":
            world.until_phase(namespace, "doomed", RunPhase.PREPARING)
        case _:
            world.until_condition(namespace, "doomed", "Succeeded", status="True")
    if phase != "CleaningUp":
        assert any("/" in name for name in world.rook.contents()), "there are images"
    world.delete(namespace, "doomed", way=way)
    assert world.volumes(namespace) == []
    assert world.in_use(namespace) == []
    assert world.rook.contents() == set()
    assert world.cluster.early == set(), "volumes go before their StorageClass, and both before the pool"
    world.until(lambda: not world.leftovers(namespace), "the garbage collector is done")
