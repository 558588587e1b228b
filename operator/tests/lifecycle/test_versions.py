"""Runs that another version of the operator began: what this one cannot read does not end them."""

from support.pretend_cluster import Document
from support.pretend_world import PretendWorld


def reconciling(world: PretendWorld, uid: str) -> Document:
    return world.conditions(uid)["Reconciling"]


def test_a_run_whose_specification_cannot_be_read_any_more_goes_on(world: PretendWorld) -> None:
    uid = world.create("a")
    world.until(lambda: world.conductors.loads)
    world.change(uid, unheardOf=1)
    world.round()
    assert reconciling(world, uid)["reason"] == "SpecUnreadable"
    assert "unheardOf" in reconciling(world, uid)["message"]
    assert world.until_ended(uid)["status"] == "True"


def test_nothing_is_made_for_it_and_no_deadline_passes(world: PretendWorld) -> None:
    uid = world.create("a")
    world.until(lambda: world.cluster.find("ConfigMap", "a-plan"))
    world.change(uid, unheardOf=1)
    for _ in range(3):
        world.round(3600.0)
    assert reconciling(world, uid)["reason"] == "SpecUnreadable"
    assert not world.cluster.kube.objects("Job")


def test_it_does_not_hold_up_others_unless_it_was_admitted(world: PretendWorld) -> None:
    first = world.create("a")
    world.until(lambda: world.cluster.find("ConfigMap", "a-plan"))
    world.change(first, unheardOf=1)
    world.round()
    assert world.until_ended(world.create("b"))["status"] == "True"


def test_it_can_be_suspended_and_its_volumes_are_kept_as_it_says(world: PretendWorld) -> None:
    uid = world.create("a", cleanup="Never")
    world.until(lambda: world.conductors.loads)
    world.change(uid, unheardOf=1, suspend=True)
    world.until_settled(uid)
    assert world.conditions(uid)["Suspended"]["status"] == "True"
    assert not world.cluster.kube.objects("Job")
    plan = world.cluster.find("ConfigMap", "a-plan")
    assert plan is not None
    world.cluster.delete(plan)
    world.until_ended(uid)
    world.until_settled(uid)
    assert world.cluster.kube.objects("PersistentVolumeClaim")


def test_results_that_cannot_be_read_are_waited_for(world: PretendWorld) -> None:
    uid = world.create("a")
    world.until(lambda: final_results(world, uid))
    result = final_results(world, uid)[0]
    known = result["status"]["verdict"]
    world.cluster.set_status(result, verdict="Unheard")
    for _ in range(40):
        world.round()
    assert reconciling(world, uid)["reason"] == "ResultsUnreadable"
    assert result["metadata"]["name"] in reconciling(world, uid)["message"]
    assert world.conditions(uid)["Succeeded"]["status"] == "Unknown"
    world.cluster.set_status(result, verdict=known)
    assert world.until_ended(uid)["status"] == "True"


def final_results(world: PretendWorld, uid: str) -> list[Document]:
    return [one for one in world.cluster.of_run("BenchmarkResult", uid) if one.get("status", {}).get("final")]
