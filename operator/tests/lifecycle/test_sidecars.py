"""Pods that another container keeps running after Plimsoll's own has ended."""

import pytest

from plimsoll.lifecycle import naming
from support.pretend_cluster import Document, label
from support.pretend_rook import ROOK
from support.pretend_world import LIBRBD, PretendWorld, until_trial
from support.pretend_world import create as create_on_ceph


@pytest.fixture
def world(world: PretendWorld) -> PretendWorld:
    world.cluster.faults.sidecars = True
    return world


def pods(world: PretendWorld, uid: str, component: str) -> list[Document]:
    return [pod for pod in world.cluster.of_run("Pod", uid) if label(pod, naming.LABEL_COMPONENT) == component]


def test_a_measured_run_ends_and_its_pods_are_deleted(world: PretendWorld) -> None:
    uid = world.create("a")
    ending = world.until_ended(uid)
    assert (ending["status"], ending["reason"]) == ("True", "Valid")
    world.until_settled(uid)
    assert world.cluster.of_run("Pod", uid) == world.cluster.of_run("Job", uid) == []


@pytest.mark.parametrize("component", [naming.CLIENT, naming.CONDUCTOR])
def test_a_pod_whose_program_was_killed_is_deleted_and_replaced(world: PretendWorld, component: str) -> None:
    uid = world.create("a")
    until_trial(world)
    killed = pods(world, uid, component)[0]
    world.cluster.end(killed, 137)
    world.until(lambda: world.cluster.find("Pod", killed["metadata"]["name"]) is None)
    ending = world.until_ended(uid)
    assert ending["status"] == "True"
    assert {load.key.attempt for load in world.conductors.loads} == {0, 1}


def test_a_conductor_that_fails_for_good_ends_the_run(world: PretendWorld) -> None:
    uid = world.create("a")
    until_trial(world)
    world.cluster.end(pods(world, uid, naming.CONDUCTOR)[0], 12, "the plan is damaged")
    ending = world.until_ended(uid)
    assert (ending["status"], ending["reason"]) == ("False", "ConductorFailed")
    assert "exit code 12" in ending["message"]


def test_a_run_with_an_unfinished_result_ends_although_its_job_is_never_complete(world: PretendWorld) -> None:
    uid = create_on_ceph(world, "a", volume=LIBRBD, rook=ROOK)
    world.until(lambda: world.conductors.loads and not world.conductors.pods())
    world.cluster.set_status(world.cluster.of_run("BenchmarkResult", uid)[0], final=False)
    world.look(uid)
    assert world.conditions(uid)["Succeeded"]["status"] == "Unknown", "the results may be out of date"
    assert world.until_ended(uid)["reason"] == "ResultsIncomplete"


@pytest.mark.parametrize("code", [0, 1])
def test_a_run_on_ceph_is_torn_down(world: PretendWorld, code: int) -> None:
    uid = create_on_ceph(world, "a", volume=LIBRBD, rook=ROOK)
    world.until_ended(uid)
    if code:
        world.until(lambda: pods(world, uid, naming.TEARDOWN))
        world.cluster.end(pods(world, uid, naming.TEARDOWN)[0], code, "rados: connection refused")
    world.until_settled(uid)
    assert world.conditions(uid)["CleanedUp"]["status"] == "True"
    assert pods(world, uid, naming.TEARDOWN) == []
