"""The course of a run from its creation to its end: suspension, queue, cleanup, expiry, and what may come between."""

from datetime import datetime

import pytest

from plimsoll.api.names import Verdict
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.naming import LABEL_COMPONENT, LABEL_RUN_UID
from support.fake_kube import is_going
from support.pretend_cluster import NAMESPACE, Document, client_of, label
from support.pretend_world import SETTINGS, CrashError, PretendWorld, kinds_of, run_of, until_trial
from support.tooling import kstatus


def trials(world: PretendWorld, uid: str) -> list[Document]:
    results = world.cluster.of_run("BenchmarkResult", uid)
    return [trial for result in results for trial in result.get("status", {}).get("trials", [])]


def test_a_run_is_measured_and_leaves_nothing_but_results_and_papers(world: PretendWorld) -> None:
    uid = world.create("a")
    world.until_settled(uid)
    assert world.conditions(uid)["Succeeded"]["status"] == "True"
    assert run_of(world, uid)["status"]["points"] == {"total": 2, "completed": 2, "invalid": 0}
    assert kinds_of(world, uid) == {"BenchmarkResult", "ConfigMap", "Secret"}
    assert [trial["outcome"] for trial in trials(world, uid)] == ["Measured"] * 4


def test_clients_see_a_run_in_progress_until_it_is_clean(world: PretendWorld) -> None:
    uid = world.create("a")
    seen = [kstatus(run_of(world, uid))]
    for _ in range(40):
        world.round()
        seen.append(kstatus(run_of(world, uid)))
    assert seen == sorted(seen, key=["InProgress", "Current"].index)
    world.cluster.delete(run_of(world, uid))


def test_a_run_that_is_being_deleted_is_terminating(world: PretendWorld) -> None:
    uid = world.create("a")
    world.until(lambda: world.cluster.kube.objects("Job"))
    world.cluster.delete(run_of(world, uid))
    assert kstatus(run_of(world, uid)) == "Terminating"
    world.until(lambda: world.run(uid) is None)
    assert kinds_of(world, uid) == set()


# -- suspension


def test_a_run_that_was_created_suspended_makes_nothing_and_is_not_stuck(world: PretendWorld) -> None:
    uid = world.create("a", suspend=True)
    for _ in range(20):
        world.round(600.0)
    assert kinds_of(world, uid) == set()
    assert kstatus(run_of(world, uid)) == "Current"
    assert world.conditions(uid)["Suspended"]["status"] == "True"
    world.change(uid, suspend=False)
    assert kstatus(run_of(world, uid)) == "InProgress"
    assert world.until_ended(uid)["status"] == "True"
    assert world.conditions(uid)["Suspended"]["status"] == "False"


def test_deadlines_stand_still_while_a_run_is_suspended(world: PretendWorld) -> None:
    uid = world.create("a")
    until_trial(world)
    world.change(uid, suspend=True)
    world.until_settled(uid)
    assert kinds_of(world, uid) >= {"PersistentVolumeClaim", "ConfigMap"}
    assert not kinds_of(world, uid) & {"Job", "Pod"}
    for _ in range(3):
        world.round(3600.0)
    assert world.conditions(uid)["Succeeded"]["status"] == "Unknown"
    world.change(uid, suspend=False)
    assert world.until_ended(uid)["status"] == "True"


def test_a_run_that_is_suspended_before_its_turn_lets_others_go_first(world: PretendWorld) -> None:
    first = world.create("a")
    world.until(lambda: world.cluster.kube.objects("Job"))
    second = world.create("b")
    world.until(lambda: world.conditions(second).get("Admitted", {}).get("reason") == "WaitingForTurn")
    world.change(second, suspend=True)
    world.until_settled(second)
    assert "resuming returns it to the queue" in world.conditions(second)["Suspended"]["message"]
    third = world.create("c")
    assert world.until_ended(first)["status"] == "True"
    assert world.until_ended(third)["status"] == "True"
    world.change(second, suspend=False)
    assert world.until_ended(second)["status"] == "True"


def test_a_run_that_is_suspended_for_too_long_lets_others_go_first_and_keeps_its_volumes(world: PretendWorld) -> None:
    first = world.create("a")
    until_trial(world)
    world.change(first, suspend=True)
    world.until_settled(first)
    second = world.create("b")
    world.until(lambda: world.conditions(second).get("Admitted", {}).get("reason") == "WaitingForTurn")
    assert "bench/a (suspended; keeps its place" in world.conditions(second)["Admitted"]["message"]
    world.round(SETTINGS.hold_seconds + 1.0)
    world.until(lambda: world.conditions(second)["Admitted"]["status"] == "True")
    lost = world.conditions(first)["Admitted"]
    assert (lost["status"], lost["reason"]) == ("False", "SuspendedTooLong")
    assert "queue.holdSeconds" in lost["message"]
    assert "PersistentVolumeClaim" in kinds_of(world, first)
    world.change(first, suspend=False)
    world.until(lambda: world.conditions(first)["Admitted"]["reason"] == "WaitingForTurn")
    assert not kinds_of(world, first) & {"Job", "Pod"}
    world.conductors.knobs.stuck = True
    for _ in range(3):
        world.round(90.0)
    assert world.conditions(first)["Succeeded"]["status"] == "Unknown", "it waits for its turn, not for its clients"
    world.conductors.knobs.stuck = False
    world.until_ended(second)
    assert world.until_ended(first)["status"] == "True"


def test_suspending_a_run_that_has_ended_changes_nothing(world: PretendWorld) -> None:
    uid = world.create("a")
    ended = world.until_ended(uid)
    world.change(uid, suspend=True)
    world.until_settled(uid)
    assert world.conditions(uid)["Succeeded"] == ended | {"observedGeneration": 2}
    assert kinds_of(world, uid) == {"BenchmarkResult", "ConfigMap", "Secret"}


def test_a_run_that_is_resumed_while_its_pods_still_stop_goes_on(world: PretendWorld) -> None:
    uid = world.create("a")
    until_trial(world)
    world.change(uid, suspend=True)
    world.operator.watch_all()
    world.look(uid)
    assert all(is_going(job) for job in world.cluster.kube.objects("Job"))
    world.change(uid, suspend=False)
    assert world.until_ended(uid)["status"] == "True"


# -- the queue


def test_runs_of_one_target_take_turns_and_know_for_whom_they_wait(world: PretendWorld) -> None:
    first = world.create("a")
    world.round()
    world.round()
    second = world.create("b")
    world.until(lambda: world.conditions(second).get("Admitted"))
    assert f"{NAMESPACE}/a" in world.conditions(second)["Admitted"]["message"]
    assert kstatus(run_of(world, second)) == "InProgress"
    world.until_settled(first)
    world.until_settled(second)
    times = [sorted(trial["startedAt"] for trial in trials(world, uid)) for uid in (first, second)]
    assert times[0][-1] < times[1][0]


@pytest.mark.parametrize("attempt", range(8))
def test_runs_of_the_same_second_do_not_both_take_their_turn(world: PretendWorld, attempt: int) -> None:
    """kopf shows the operator its own word of the first run late, and the order of two UIDs is any."""
    first = world.create("a")
    world.operator.watch(first)
    for _ in range(3):
        world.look(first)
        world.cluster.step()
    assert world.client_pods(first)
    second = world.create("b")
    world.operator.watch(second)
    for _ in range(3):
        world.look(second)
        world.look(first)
        world.cluster.step()
    assert not world.client_pods(second)
    assert world.conditions(first)["Admitted"]["status"] == "True"


def test_a_run_that_is_suspended_in_the_moment_of_its_turn_is_still_in_the_way(world: PretendWorld) -> None:
    """kopf shows the suspension, and not yet that the run has begun."""
    first = world.create("a")
    world.operator.watch(first)
    for _ in range(3):
        world.look(first)
        world.cluster.step()
    world.operator.bodies[first]["spec"]["suspend"] = True
    second = world.create("b")
    world.operator.watch(second)
    for _ in range(3):
        world.look(second)
        world.cluster.step()
    assert world.client_pods(first)
    assert not world.client_pods(second)


def test_a_turn_is_said_before_it_is_taken(world: PretendWorld) -> None:
    uid = world.create("a")
    world.operator.watch(uid)
    world.look(uid)
    world.look_with(uid, 1, CrashError)
    for number in range(1, 60):
        world.operator.watch_all()
        world.look_with(uid, number, CrashError)
        if world.cluster.of_run("Job", uid):
            assert world.conditions(uid)["Admitted"]["status"] == "True"


# -- clients and conductors


def test_a_conductor_whose_node_is_drained_is_followed_by_another(world: PretendWorld) -> None:
    uid = world.create("a")
    until_trial(world)
    (pod,) = world.conductors.pods()
    world.cluster.delete(pod)
    assert world.until_ended(uid)["status"] == "True"
    assert len({trial["epoch"] for trial in trials(world, uid)}) == 2
    assert len(world.cluster.of_run("Job", uid)) in {0, 3}


def test_a_client_that_leaves_too_early_is_replaced(world: PretendWorld) -> None:
    uid = world.create("a")
    until_trial(world)
    world.cluster.end(world.client_pods(uid)[0], 0)
    assert world.until_ended(uid)["status"] == "True"


def test_a_suspended_run_does_not_fail_for_what_its_clients_did_before(world: PretendWorld) -> None:
    uid = world.create("a")
    until_trial(world)
    while len(world.client_pods(uid)) < SETTINGS.max_client_restarts + 2:
        running = [pod for pod in world.client_pods(uid) if client_of(pod) == 0 and pod["status"]["phase"] == "Running"]
        for pod in running:
            world.cluster.end(pod, 1)
        world.round()
    world.change(uid, suspend=True)
    world.until_settled(uid)
    assert world.conditions(uid)["Succeeded"]["status"] == "Unknown"


def test_a_client_that_dies_is_replaced_and_keeps_its_claim(world: PretendWorld) -> None:
    uid = world.create("a")
    until_trial(world)
    claims = {claim["metadata"]["uid"] for claim in world.cluster.of_run("PersistentVolumeClaim", uid)}
    world.cluster.end(world.client_pods(uid)[0], 137)
    world.until(lambda: len(world.cluster.of_run("Job", uid)) == 4)
    assert {claim["metadata"]["uid"] for claim in world.cluster.of_run("PersistentVolumeClaim", uid)} == claims
    assert world.until_ended(uid)["status"] == "True"


def test_a_node_that_is_gone_is_named_while_it_holds_the_cleanup_back(world: PretendWorld) -> None:
    uid = world.create("a")
    until_trial(world)
    pod = next(pod for pod in world.client_pods(uid) if client_of(pod) == 1)
    node = pod["spec"]["nodeName"]
    world.cluster.lose_node(node)
    world.until_ended(uid)
    world.until(lambda: node in world.conditions(uid)["CleanedUp"]["message"])
    world.cluster.faults.dead_nodes.clear()
    world.until_settled(uid)
    assert world.conditions(uid)["CleanedUp"]["status"] == "True"


def test_the_word_of_results_does_not_depend_on_the_state_that_somebody_deleted(world: PretendWorld) -> None:
    uid = world.create("a")
    until_trial(world)
    world.until(lambda: len(trials(world, uid)) == 4)
    for _ in range(4):
        world.conductors.step()
        world.cluster.step()
    state = next(obj for obj in world.cluster.of_run("ConfigMap", uid) if label(obj, LABEL_COMPONENT) == "state")
    world.cluster.delete(state)
    assert world.until_ended(uid)["reason"] == "Valid"


def test_a_result_that_cannot_be_read_keeps_no_run_from_going(world: PretendWorld) -> None:
    uid = world.create("a")
    until_trial(world)
    world.cluster.set_status(world.cluster.of_run("BenchmarkResult", uid)[0], trials="none")
    world.conductors.knobs.stuck = True
    world.round()
    world.cluster.delete(run_of(world, uid))
    world.conductors.knobs.stuck = False
    for pod in world.conductors.pods():
        world.conductors.kill(pod)
    world.until(lambda: world.run(uid) is None)


@pytest.mark.parametrize("labels", [{}, {LABEL_COMPONENT: "plan"}, {naming.LABEL_CLIENT: "x"}])
def test_somebody_elses_object_with_the_runs_label_breaks_nothing(world: PretendWorld, labels: dict[str, str]) -> None:
    uid = world.create("a")
    until_trial(world)
    metadata = {"name": "stranger", "namespace": NAMESPACE, "labels": {LABEL_RUN_UID: uid, **labels}}
    world.cluster.kube.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}})
    world.cluster.delete(run_of(world, uid))
    world.until(lambda: world.run(uid) is None)


# -- after the end


@pytest.mark.parametrize(
    ("cleanup", "verdict", "kept"),
    [
        ("Always", Verdict.VALID, False),
        ("Always", Verdict.INVALID, False),
        ("OnSuccess", Verdict.VALID, False),
        ("OnSuccess", Verdict.INVALID, True),
        ("Never", Verdict.VALID, True),
    ],
)
def test_cleanup_says_what_becomes_of_the_volumes_and_may_be_changed_later(
    world: PretendWorld, cleanup: str, verdict: Verdict, *, kept: bool
) -> None:
    world.conductors.knobs.verdict = verdict
    uid = world.create("a", cleanup=cleanup)
    world.until_settled(uid)
    assert ("PersistentVolumeClaim" in kinds_of(world, uid)) == kept
    assert not kinds_of(world, uid) & {"Job", "Pod", "Service", "Role", "NetworkPolicy"}
    assert world.conditions(uid)["CleanedUp"]["reason"] == ("StorageKept" if kept else "Removed")
    ended = world.conditions(uid)["Succeeded"]
    world.change(uid, cleanup="Always")
    world.until_settled(uid)
    assert "PersistentVolumeClaim" not in kinds_of(world, uid)
    assert world.conditions(uid)["Succeeded"]["lastTransitionTime"] == ended["lastTransitionTime"]


@pytest.mark.parametrize("ttl", [0, 60])
def test_a_run_expires_so_long_after_its_end(world: PretendWorld, ttl: int) -> None:
    uid = world.create("a", ttlSecondsAfterFinished=ttl)
    ended = datetime.fromisoformat(world.until_ended(uid)["lastTransitionTime"])
    world.until(lambda: world.run(uid) is None)
    assert (world.cluster.now - ended).total_seconds() >= ttl
    assert kinds_of(world, uid) == set()


def test_an_end_stays_what_it_was_whatever_becomes_of_the_plan(world: PretendWorld) -> None:
    uid = world.create("a", cleanup="Never")
    world.until_settled(uid)
    before = run_of(world, uid)["status"]
    plan = world.cluster.find("ConfigMap", "a-plan")
    assert plan is not None
    world.cluster.delete(plan)
    world.restart_operator()
    world.round()
    after = run_of(world, uid)["status"]
    assert world.conditions(uid)["Succeeded"]["status"] == "True"
    assert (after["headline"], after["points"]) == (before["headline"], before["points"])


def test_retained_results_outlive_their_run_and_refuse_a_namesake_and_others_do_not(world: PretendWorld) -> None:
    for results, reason in (("Delete", "Valid"), ("Retain", "Valid"), ("Delete", "ResultsExist")):
        uid = world.create("a", results=results)
        assert world.until_ended(uid)["reason"] == reason
        world.until_settled(uid)
        world.cluster.delete(run_of(world, uid))
        world.until(lambda uid=uid: world.run(uid) is None)  # type: ignore[misc]


def test_a_namesake_waits_for_what_goes_with_the_run_before_it(world: PretendWorld) -> None:
    owner = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BenchmarkRun", "name": "a", "uid": "earlier"}
    metadata = {"name": "a-plan", "namespace": NAMESPACE, "ownerReferences": [owner]}
    old = world.cluster.kube.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}})
    uid = world.create("a")
    for _ in range(3):
        world.round()
    assert world.conditions(uid)["Reconciling"]["reason"] == "WaitingForEarlierRun"
    assert "ConfigMap a-plan" in world.conditions(uid)["Reconciling"]["message"]
    world.cluster.delete(old)
    assert world.until_ended(uid)["status"] == "True"
