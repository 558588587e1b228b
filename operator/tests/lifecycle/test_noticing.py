"""What a look is said not to notice is in no decision and in no status, at any time in a run's life."""

import pytest

from plimsoll.api.names import Operation
from plimsoll.api.status import STATE_FILE, Live, LiveRate, Prefill, RunState
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.observed import noticeable
from support.pretend_cluster import Document
from support.pretend_world import PretendWorld

RATES = (LiveRate(operation=Operation.READ, iops=1.0, bytes_per_second=4096),)
UNSHOWN = {
    "elapsed_seconds": 59.0,
    "live": Live(clients=2, rates=RATES),
    "prefill": Prefill(done_bytes=2**20, total_bytes=2**30),
    "registered": (0, 1),
}


def change_state(config_map: Document) -> None:
    state = RunState.model_validate_json(config_map["data"][STATE_FILE])
    config_map["data"][STATE_FILE] = state.model_copy(update=UNSHOWN).model_dump_json()


def change_pod(pod: Document) -> None:
    pod["status"] |= {"podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}
    pod["metadata"]["annotations"] = {"somebody": "else"}


def changed_unnoticed(world: PretendWorld, uid: str, obj: Document) -> bool:
    """Change what a look cannot notice of an object, check that it does not, and return whether anything changed."""
    before, known = world.wait(world.operator.foresee(uid)), noticeable(obj, uid)
    world.cluster.edit(obj, change_pod if obj["kind"] == "Pod" else change_state)
    now = world.cluster.find(obj["kind"], obj["metadata"]["name"])
    assert now is not None
    assert noticeable(now, uid) == known
    assert world.wait(world.operator.foresee(uid)) == before
    return now != obj


@pytest.mark.parametrize("kind", ["ConfigMap", "Pod"])
def test_what_a_look_cannot_notice_changes_nothing(world: PretendWorld, kind: str) -> None:
    uid, changed = world.create("a"), 0
    for _ in range(40):
        world.round(1.0)
        for obj in world.cluster.of_run(kind, uid):
            if kind == "Pod" or obj["metadata"]["name"] == naming.state_config_map("a"):
                changed += changed_unnoticed(world, uid, obj)
    assert changed > 1
    assert world.conditions(uid)["Succeeded"]["status"] == "True"


def test_a_state_that_no_conductor_writes_is_not_parsed_and_takes_no_memory(world: PretendWorld) -> None:
    uid = world.create("a")
    name = naming.state_config_map("a")
    world.until(lambda: world.cluster.find("ConfigMap", name))
    state = world.cluster.find("ConfigMap", name)
    assert state is not None
    known = []
    for entries in (300_000, 300_001):
        state["data"][STATE_FILE] = f'{{"missing":[{",".join(["0"] * entries)}]}}'
        known.append(noticeable(state, uid))
    assert known[0] != known[1]
    assert len(repr(known[0])) < 1000
    largest = RunState(registered=tuple(range(1064)), missing=tuple(range(1064)), message="m" * 32_768)
    state["data"][STATE_FILE] = largest.model_dump_json()
    assert "m" * 32_768 in repr(noticeable(state, uid))


@pytest.mark.parametrize("kind", ["Job", "Pod", "PersistentVolumeClaim"])
def test_another_phase_is_noticed(world: PretendWorld, kind: str) -> None:
    uid = world.create("a")
    world.until(lambda: world.client_pods(uid))
    obj, *_ = world.cluster.of_run(kind, uid)
    before = noticeable(obj, uid)
    going = {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": "2026-01-31T12:00:00Z"}}
    strange = {**obj, "metadata": {**obj["metadata"], "labels": {}}}
    assert len({repr(each) for each in (before, noticeable(going, uid), noticeable(strange, uid))}) == 3
