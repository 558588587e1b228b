"""Where a run of a pretend world is."""

from plimsoll.lifecycle.naming import LABEL_RUN_UID
from support.pretend_cluster import Document, label
from support.pretend_world import PretendWorld


def kinds_of(world: PretendWorld, uid: str) -> set[str]:
    return {obj["kind"] for obj in world.cluster.kube.objects() if label(obj, LABEL_RUN_UID) == uid}


def until_trial(world: PretendWorld) -> None:
    """Let rounds pass until a trial is in flight."""
    known = len(world.conductors.loads)
    world.until(lambda: len(world.conductors.loads) > known)


def run_of(world: PretendWorld, uid: str) -> Document:
    run = world.run(uid)
    assert run is not None
    return run
