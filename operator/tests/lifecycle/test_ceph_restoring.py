"""OSDs that a lost conductor has taken away come back by themselves, whatever becomes of the run."""

from datetime import timedelta
from typing import Any

import pytest

from lifecycle.test_ceph_removal import delete
from plimsoll.api.names import RunPhase
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.provisioning import LOAD_GONE_SECONDS
from support.pretend_cluster import NOBODY, role_of
from support.pretend_world import DISTURBED, PretendWorld, create, outside, until_trial

_GRACE_SECONDS = 30


def create_disturbed(world: PretendWorld, **spec: Any) -> str:
    """Create a run, and return its UID while OSDs are away."""
    uid = create(world, **DISTURBED, **spec)
    world.conductors.knobs.stays = RunPhase.MEASURING
    until_trial(world)
    assert world.cluster.away == {uid}
    return uid


def lose_conductor_node(world: PretendWorld) -> str:
    (conductor,) = world.conductors.pods()
    node = str(conductor["spec"]["nodeName"])
    world.cluster.lose_node(node)
    world.conductors.knobs.stays = None
    return node


def jobs_in_ceph(world: PretendWorld, uid: str) -> set[str]:
    return {job["metadata"]["name"] for job in world.cluster.of_run("Job", uid) if role_of(job) == NOBODY}


@pytest.mark.fault(
    "Ceph",
    "The conductor's node fails and does not return",
    "while OSDs are taken away by `disturb`",
    ends="a Job gives all OSDs back, whether the run is deleted, suspended, over or waits for its conductor",
    within="5 minutes after the conductor's pod should be gone",
)
@pytest.mark.parametrize(
    ("then", "ready_seconds"), [("ends", 60), ("waits", 900), ("is deleted", 60), ("is suspended", 60)]
)
def test_osds_come_back_although_the_conductors_node_does_not(
    world: PretendWorld, then: str, ready_seconds: int
) -> None:
    timeouts = {"provisionSeconds": 120, "readySeconds": ready_seconds, "totalSeconds": 3600}
    uid = create_disturbed(world, timeouts=timeouts)
    node, lost_at = lose_conductor_node(world), world.cluster.now
    if then == "is deleted":
        delete(world, uid)
    world.change(uid, suspend=then == "is suspended")
    world.until(lambda: not world.cluster.away)
    taken = world.cluster.now - lost_at
    # No conductor may be left that could take them away again.
    assert timedelta(seconds=LOAD_GONE_SECONDS) < taken < timedelta(seconds=_GRACE_SECONDS + LOAD_GONE_SECONDS + 60)
    assert node in world.cluster.faults.dead_nodes
    assert jobs_in_ceph(world, uid) == {naming.restoration(uid)}
    world.cluster.faults.dead_nodes.clear()
    world.change(uid, suspend=False)
    world.until_settled(uid)
    assert outside(world, uid) == set()


def test_a_run_whose_conductors_node_returns_in_time_continues(world: PretendWorld) -> None:
    timeouts = {"provisionSeconds": 120, "readySeconds": 900, "totalSeconds": 3600}
    uid = create_disturbed(world, timeouts=timeouts)
    lose_conductor_node(world)
    world.until(lambda: not world.cluster.away)
    world.cluster.faults.dead_nodes.clear()
    assert world.until_ended(uid)["status"] == "True"
    assert not world.cluster.away


@pytest.mark.parametrize("cleanup", ["Always", "OnSuccess", "Never"])
def test_kept_storage_keeps_no_osd_away(world: PretendWorld, cleanup: str) -> None:
    uid = create_disturbed(world, cleanup=cleanup)
    world.cluster.faults.unschedulable = {None}
    for pod in world.conductors.pods():
        world.conductors.kill(pod)
    assert world.until_ended(uid)["reason"] == "ConductorNotReady"
    world.until_settled(uid)
    assert not world.cluster.away
    assert world.conditions(uid)["CleanedUp"]["reason"] == ("Removed" if cleanup == "Always" else "StorageKept")


def test_a_restoration_that_fails_is_told_in_its_words_and_repeated(world: PretendWorld) -> None:
    world.rook.knobs.silent = "UnresponsiveError: ceph osd tree took more than 30 s"
    uid = create_disturbed(world)
    lose_conductor_node(world)
    world.until(lambda: "took more than 30 s" in world.conditions(uid).get("CleanedUp", {}).get("message", ""))
    cleaned_up = world.conditions(uid)["CleanedUp"]
    assert cleaned_up["reason"] == "NodeGone"
    assert f"{naming.restoration(uid)} failed to restore the OSDs" in cleaned_up["message"]
    world.rook.knobs.silent = ""
    world.until(lambda: not world.cluster.away)


@pytest.mark.parametrize("disturbed", [False, True])
def test_only_a_run_that_may_have_changed_osds_restores_them(world: PretendWorld, *, disturbed: bool) -> None:
    uid = create_disturbed(world) if disturbed else create(world)
    world.conductors.knobs.stays = RunPhase.MEASURING
    world.until(world.conductors.pods)
    lose_conductor_node(world)
    for _ in range(int(LOAD_GONE_SECONDS / 5) + 20):
        world.round()
    assert jobs_in_ceph(world, uid) == ({naming.restoration(uid)} if disturbed else set())
