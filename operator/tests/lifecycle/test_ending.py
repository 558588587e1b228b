"""The end of a measured run: once its conductor has succeeded and its results are final."""

from plimsoll.lifecycle import naming
from support.pretend_cluster import condition, label, phase
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


def test_a_run_with_an_incomplete_result_ends_only_when_the_job_is_complete(world: PretendWorld) -> None:
    uid = world.create("a")
    complete_conductor(world, uid)
    world.cluster.delete(world.cluster.of_run("BenchmarkResult", uid)[0])
    world.look(uid)
    assert world.conditions(uid)["Succeeded"]["status"] == "Unknown"
    assert world.until_ended(uid)["reason"] == "ResultsIncomplete"
