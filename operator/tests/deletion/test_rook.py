"""Runs on pools that Rook makes for them are deleted at any time and in any way, and leave nothing.

e2e/tests does the same at some times on a real Ceph.
"""

import pytest

from plimsoll.api.names import RunPhase
from support.pretend_rook import ROOK
from support.served_world import ServedWorld
from support.specs import document

pytestmark = [pytest.mark.crd, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("phase", "way"), [("Provisioning", "background"), ("Provisioning", "namespace"), ("Measuring", "background")]
)
def test_a_deleted_run_leaves_nothing(world: ServedWorld, namespace: str, phase: str, way: str) -> None:
    world.conductors.knobs.stays = RunPhase.MEASURING
    run = document(storage={"rook": ROOK, "volume": {"size": "64Mi", "access": "LibRBD"}}, repetitions=1)
    run["metadata"] = {"name": "doomed", "namespace": namespace}
    world.create(run)
    if phase == "Provisioning":
        world.until(world.rook.contents, "Rook makes the pool")
    else:
        world.until_phase(namespace, "doomed", RunPhase.MEASURING)
        assert any("/" in name for name in world.rook.contents()), "the conductor has made images"
    world.delete(namespace, "doomed", way=way)
    assert world.in_use(namespace) == []
    assert world.rook.contents() == set()
    assert world.cluster.early == set(), "volumes go before their StorageClass, and both before the pool"
    world.until(lambda: not world.leftovers(namespace), "the garbage collector is done")
