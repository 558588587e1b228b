"""The start of a run: a conductor beside its clients, and the deadlines that the operator enforces meanwhile."""

from typing import Any

import pytest

from support import pretend_conductor
from support.pretend_cluster import Faults
from support.pretend_world import PretendWorld, run_of, until_trial

TIMEOUTS = {"provisionSeconds": 200, "readySeconds": 60, "totalSeconds": 600}


def conductor_runs(world: PretendWorld) -> bool:
    return bool(world.conductors.pods())


def wait(world: PretendWorld, uid: str, rounds: int) -> None:
    """Let rounds of 10 s pass, in which the run does not end."""
    for _ in range(rounds):
        world.round(10.0)
    assert world.conditions(uid)["Succeeded"]["status"] == "Unknown"


def recover(world: PretendWorld, uid: str) -> None:
    """Have all that is broken work again; then the run succeeds."""
    faults = world.cluster.faults
    faults.silent, faults.unmounted, faults.unschedulable = set(), set(), set()
    assert world.until_ended(uid)["status"] == "True"


def test_the_conductor_starts_before_the_containers_of_the_clients(world: PretendWorld) -> None:
    world.cluster.faults.silent = {0, 1}
    uid = world.create("a", timeouts=TIMEOUTS)
    world.until(lambda: conductor_runs(world), rounds=8)
    assert world.conditions(uid)["ClientsReady"]["message"] == "clients are starting"
    assert run_of(world, uid)["status"]["display"]["status"] == "Provisioning"
    recover(world, uid)


def test_a_volume_that_cannot_be_mounted_is_explained_while_the_client_waits(world: PretendWorld) -> None:
    world.cluster.faults.unmounted = {1}
    uid = world.create("a", timeouts=TIMEOUTS)

    def clients() -> dict[str, str]:
        return world.conditions(uid).get("ClientsReady", {"message": ""})

    world.until(lambda: "FailedMapVolume" in clients()["message"], rounds=8)
    assert clients()["reason"] == "Starting"
    assert clients()["message"].startswith("clients are starting; client 1 (pod a-client-1-0-")
    recover(world, uid)
    assert "FailedMapVolume" not in clients()["message"]


@pytest.mark.parametrize(
    ("faults", "is_replaced"), [({"no_driver": True}, False), ({"over_quota": {0}}, False), ({"over_quota": {0}}, True)]
)
def test_a_conductor_remains_while_clients_wait_for_something_else_than_room_on_a_node(
    world: PretendWorld, faults: dict[str, Any], *, is_replaced: bool
) -> None:
    (fast,) = world.cluster.kube.objects("StorageClass")
    world.cluster.edit(fast, lambda new: new.update(volumeBindingMode="Immediate"))
    world.cluster.faults = Faults(silent={1}, **({} if is_replaced else faults))
    uid = world.create("a", timeouts=TIMEOUTS)
    world.until(lambda: conductor_runs(world), rounds=8)
    before = [pod["metadata"]["uid"] for pod in world.conductors.pods()]
    wait(world, uid, 2)
    if is_replaced:
        world.cluster.faults = Faults(silent={1}, **faults)
        world.cluster.end(world.client_pods(uid)[0], 1)
    wait(world, uid, 4)
    assert [pod["metadata"]["uid"] for pod in world.conductors.pods()] == before
    world.cluster.faults = Faults()
    recover(world, uid)


def test_the_conductor_takes_no_clients_place_on_a_node(world: PretendWorld) -> None:
    world.cluster.faults.unschedulable = {1}
    uid = world.create("a", timeouts=TIMEOUTS)
    for _ in range(8):
        world.round()
    assert world.client_pods(uid)
    assert not conductor_runs(world)
    recover(world, uid)


def test_a_client_that_is_replaced_after_provision_seconds_has_ready_seconds(world: PretendWorld) -> None:
    world.cluster.faults.unschedulable = {None}
    uid = world.create("a", timeouts={"provisionSeconds": 30, "readySeconds": 120, "totalSeconds": 600})
    world.until(lambda: len(world.client_pods(uid)) == 2 and run_of(world, uid)["status"].get("display"))
    wait(world, uid, rounds=4)
    world.cluster.faults.silent = {0}
    world.cluster.end(world.client_pods(uid)[0], 137)
    wait(world, uid, rounds=4)
    recover(world, uid)


def test_clients_may_take_provision_seconds_even_if_the_conductor_is_ready(world: PretendWorld) -> None:
    world.cluster.faults.silent = {1}
    uid = world.create("a", timeouts=TIMEOUTS)
    world.until(lambda: conductor_runs(world))
    wait(world, uid, rounds=12)
    recover(world, uid)


def test_pods_that_do_not_start_end_the_run_after_provision_seconds(world: PretendWorld) -> None:
    world.cluster.faults.silent = {1}
    uid = world.create("a", timeouts=TIMEOUTS)
    ended = world.until_ended(uid)
    assert (ended["status"], ended["reason"]) == ("False", "ClientsNotReady")
    assert "not ready within timeouts.provisionSeconds (200 s): client 1 (pod a-client-1-0" in ended["message"]


def test_an_unschedulable_conductor_has_ready_seconds_once_the_clients_run(world: PretendWorld) -> None:
    world.cluster.faults.unschedulable = {None}
    world.cluster.faults.silent = {1}
    uid = world.create("a", timeouts=TIMEOUTS)
    wait(world, uid, rounds=12)
    world.cluster.faults.silent = set()
    ended = world.until_ended(uid)
    assert (ended["status"], ended["reason"]) == ("False", "ConductorNotReady")


def test_running_clients_that_do_not_register_end_the_run_after_ready_seconds(
    world: PretendWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted = pretend_conductor._Desk._accepted
    monkeypatch.setattr(
        pretend_conductor._Desk, "_accepted", lambda desk: {n: pod for n, pod in accepted(desk).items() if n != 1}
    )
    uid = world.create("a", timeouts=TIMEOUTS)
    world.until(lambda: conductor_runs(world))
    begun = world.cluster.now
    ended = world.until_ended(uid)
    assert (ended["status"], ended["reason"]) == ("False", "ClientsNotReady")
    assert "client 1 did not register within timeouts.readySeconds (60 s)" in ended["message"]
    assert "is Running and has not registered" in ended["message"]
    assert 60 < (world.cluster.now - begun).total_seconds() < 120


def test_a_client_that_is_lost_after_provision_seconds_does_not_end_the_run(world: PretendWorld) -> None:
    uid = world.create("a", timeouts={"provisionSeconds": 30, "readySeconds": 120, "totalSeconds": 600})
    until_trial(world)
    world.cluster.faults.silent = {0}
    world.cluster.end(world.client_pods(uid)[0], 137)
    wait(world, uid, rounds=8)
    recover(world, uid)


def test_a_resumed_run_gets_provision_seconds_again(world: PretendWorld) -> None:
    uid = world.create("a", timeouts=TIMEOUTS)
    until_trial(world)
    world.change(uid, suspend=True)
    world.until_settled(uid)
    world.cluster.pass_time(300.0)
    world.cluster.faults.silent = {0}
    world.change(uid, suspend=False)
    wait(world, uid, rounds=12)
    recover(world, uid)
