"""The end of a measured run: once its conductor has succeeded and its results are final."""

import json
from collections.abc import Callable
from functools import partial

import pytest

from plimsoll.kube.port import TransientError
from plimsoll.lifecycle import naming
from support.fake_kube import failing
from support.pretend_cluster import Document, condition, label, phase
from support.pretend_world import PretendWorld, until_trial


def complete_conductor(world: PretendWorld, uid: str) -> None:
    """Let the conductor measure everything and succeed, before its Job is complete."""
    until_trial(world)
    pods = [pod for pod in world.cluster.of_run("Pod", uid) if label(pod, naming.LABEL_COMPONENT) == naming.CONDUCTOR]
    name = pods[0]["metadata"]["name"]
    for _ in range(30):
        world.conductors.step()
        pod = world.cluster.find("Pod", name)
        assert pod is not None
        if phase(pod) == "Succeeded":
            return
    raise AssertionError(phase(pods[0]))


def test_a_run_is_measured_before_the_conductors_job_is_complete(world: PretendWorld) -> None:
    uid = world.create("a")
    complete_conductor(world, uid)
    job = world.cluster.find("Job", "a-conductor")
    assert job is not None
    assert condition(job, "Complete") is None
    world.look(uid)
    assert world.conditions(uid)["Measured"]["status"] == "True"
    assert world.conditions(uid)["Succeeded"]["status"] == "True"


def test_a_run_with_an_unfinished_result_ends_only_when_the_job_is_complete(world: PretendWorld) -> None:
    uid = world.create("a")
    complete_conductor(world, uid)
    world.cluster.set_status(world.cluster.of_run("BenchmarkResult", uid)[0], final=False)
    world.look(uid)
    assert world.conditions(uid)["Succeeded"]["status"] == "Unknown"
    ending = world.until_ended(uid)
    assert ending["reason"] == "ResultsIncomplete"
    assert "only 1 of 2 results is final" in ending["message"]


# -- what is deleted while it measures


def state_map(world: PretendWorld, uid: str) -> Document:
    (found,) = (obj for obj in world.cluster.of_run("ConfigMap", uid) if label(obj, naming.LABEL_COMPONENT) == "state")
    return found


def trials_of(world: PretendWorld, uid: str) -> list[Document]:
    results = world.cluster.of_run("BenchmarkResult", uid)
    return [trial for result in results for trial in result.get("status", {}).get("trials", ())]


def kill_conductors(world: PretendWorld) -> None:
    for pod in world.conductors.pods():
        world.conductors.kill(pod)


def delete_results(world: PretendWorld, uid: str) -> None:
    for result in world.cluster.of_run("BenchmarkResult", uid):
        world.cluster.delete(result)


def delete_the_state(world: PretendWorld, uid: str) -> None:
    world.cluster.delete(state_map(world, uid))


def take_the_state(world: PretendWorld, uid: str) -> None:
    """Edit what makes the state the run's."""
    world.cluster.edit(state_map(world, uid), lambda new: new["metadata"]["labels"].pop(naming.LABEL_RUN_UID))


Deletion = Callable[[PretendWorld, str], None]
DELETIONS: list[tuple[Deletion, str]] = [
    (delete_results, "BenchmarkResult a-w-000, BenchmarkResult a-w-001 were deleted"),
    (delete_the_state, "ConfigMap a-state was deleted"),
    (take_the_state, "ConfigMap a-state was deleted, or no longer belonged to the run"),
]


@pytest.mark.parametrize(("delete", "message"), DELETIONS)
@pytest.mark.parametrize("when", ["measuring", "suspended", "between conductors"])
def test_deleting_what_was_recorded_ends_the_run(
    world: PretendWorld, delete: Deletion, message: str, when: str
) -> None:
    uid = world.create("a")
    world.until(lambda: len(trials_of(world, uid)) == 3)
    if when == "suspended":
        world.change(uid, suspend=True)
        world.until_settled(uid)
        world.restart_operator()
    begun = len(world.conductors.loads)
    delete(world, uid)
    if when == "between conductors":
        kill_conductors(world)
    world.change(uid, suspend=False)
    ending = world.until_ended(uid)
    assert (ending["reason"], ending["status"]) == ("ResultsIncomplete", "False")
    assert message in ending["message"]
    assert "create the run again" in ending["message"]
    assert len(world.conductors.loads) <= begun + 1
    assert len(world.cluster.of_run("BenchmarkResult", uid)) == (0 if delete is delete_results else 2)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("delete", [delete_results, delete_the_state])
def test_before_the_first_conductor_everything_is_created_again(
    world: PretendWorld, delete: Deletion, *, restarts: bool
) -> None:
    """As when a GitOps tool prunes them, or a backup is restored."""
    world.cluster.kube.interfere = failing(
        lambda asked: TransientError(asked, "not yet"), times=10**6, request="create Job bench/a-conductor"
    )
    uid = world.create("a")
    world.until(lambda: world.cluster.of_run("Job", uid))
    delete(world, uid)
    if restarts:
        world.restart_operator()
    for _ in range(2):
        world.round()
    assert len(world.cluster.of_run("BenchmarkResult", uid)) == 2
    assert state_map(world, uid)
    world.cluster.kube.interfere = lambda _: None
    assert world.until_ended(uid)["status"] == "True"
    assert len(trials_of(world, uid)) == 4


def test_a_state_that_goes_after_the_end_of_the_conductor_is_not_missed(world: PretendWorld) -> None:
    uid = world.create("a")
    complete_conductor(world, uid)
    delete_the_state(world, uid)
    assert world.until_ended(uid)["reason"] == "Valid"


def edit_data(data: dict[str, str], obj: Document) -> None:
    obj["data"].update(data)


def test_an_edited_state_hides_no_attempt(world: PretendWorld) -> None:
    """What shows that an attempt has begun is in the status of its result, which users may not write."""
    uid = world.create("a")
    for _ in range(2):
        until_trial(world)
        state = state_map(world, uid)
        edited = {"state.json": json.dumps(json.loads(state["data"]["state.json"]) | {"inFlight": None})}
        world.cluster.edit(state, partial(edit_data, edited))
        kill_conductors(world)
    world.until_ended(uid)
    attempts = trials_of(world, uid)
    assert len(attempts) == len(world.conductors.loads)
    assert [trial["abort"]["reason"] for trial in attempts if "abort" in trial] == ["ConductorRestarted"] * 2
