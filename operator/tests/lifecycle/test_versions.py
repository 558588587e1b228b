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


def test_each_client_gets_an_assignment_and_mounts_a_token_of_its_own(world: PretendWorld) -> None:
    world.create("a")
    world.until(lambda: world.conductors.loads)
    (secret,) = [one for one in world.cluster.kube.objects("Secret") if "-session-" in one["metadata"]["name"]]
    jobs = [job for job in world.cluster.kube.objects("Job") if "-client-" in job["metadata"]["name"]]
    assert len(jobs) > 1
    paths = ["--assignment=/etc/plimsoll/assignment/assignment.json", "--secret=/etc/plimsoll/session"]
    pods = [job["spec"]["template"]["spec"] for job in jobs]
    assert [pod["containers"][0]["args"] for pod in pods] == [["agent", *paths]] * len(jobs)
    volumes = [volume["secret"] for pod in pods for volume in pod["volumes"] if volume["name"] == "session"]
    tokens = [item["key"] for volume in volumes for item in volume["items"] if item["path"] == "token"]
    # They are all that the session Secret has of them.
    assert sorted(tokens) == sorted(f"token-{client}" for client in range(len(jobs))) == sorted(secret["data"])


def final_results(world: PretendWorld, uid: str) -> list[Document]:
    return [one for one in world.cluster.of_run("BenchmarkResult", uid) if one.get("status", {}).get("final")]
