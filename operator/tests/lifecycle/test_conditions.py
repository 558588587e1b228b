"""What conditions and columns say of a run that rests or has ended: nothing that does not hold any more."""

from plimsoll.api.names import FailureReason, Verdict
from support.pretend_world import PretendWorld, run_of
from support.tooling import kstatus


def until_measuring(world: PretendWorld) -> str:
    uid = world.create("a")
    world.until(lambda: world.conductors.loads)
    world.until(lambda: world.conditions(uid)["ClientsReady"]["status"] == "True")
    return uid


def said(world: PretendWorld, uid: str, condition: str) -> tuple[str, str]:
    entry = world.conditions(uid)[condition]
    return entry["status"], entry["reason"]


def test_a_run_whose_pods_stop_for_a_suspension_is_under_way_and_rests_when_they_are_gone(world: PretendWorld) -> None:
    uid = until_measuring(world)
    world.change(uid, suspend=True)
    world.operator.watch_all()
    world.look(uid)
    assert said(world, uid, "Reconciling") == ("True", "Stopping")
    assert said(world, uid, "ClientsReady") == ("False", "Suspended")
    assert kstatus(run_of(world, uid)) == "InProgress"
    world.until_settled(uid)
    assert kstatus(run_of(world, uid)) == "Current"
    assert said(world, uid, "ClientsReady") == ("False", "Suspended")
    assert said(world, uid, "StorageReady") == ("True", "Bound")


def test_clients_and_volumes_of_a_run_that_has_ended_are_not_ready(world: PretendWorld) -> None:
    uid = until_measuring(world)
    world.until_settled(uid)
    assert said(world, uid, "ClientsReady") == ("False", "Ended")
    assert said(world, uid, "StorageReady") == ("False", "Ended")


def test_volumes_that_are_kept_stay_ready(world: PretendWorld) -> None:
    uid = world.create("a", cleanup="Never")
    world.until_settled(uid)
    assert said(world, uid, "ClientsReady") == ("False", "Ended")
    assert said(world, uid, "StorageReady") == ("True", "Bound")


def test_what_kept_clients_from_coming_stays_readable(world: PretendWorld) -> None:
    world.cluster.faults.unschedulable = {1}
    uid = world.create("a")
    world.until_ended(uid)
    world.until_settled(uid)
    assert said(world, uid, "ClientsReady") == ("False", "Unschedulable")


def test_a_run_that_ends_while_it_is_suspended_is_not_suspended_any_more(world: PretendWorld) -> None:
    uid = until_measuring(world)
    world.change(uid, suspend=True)
    world.until_settled(uid)
    plan = world.cluster.find("ConfigMap", "a-plan")
    assert plan is not None
    world.cluster.delete(plan)
    assert world.until_ended(uid)["reason"] == "PlanMissing"
    assert said(world, uid, "Suspended") == ("False", "Ended")


def test_an_end_is_told_by_one_event(world: PretendWorld) -> None:
    uid = until_measuring(world)
    world.until_settled(uid)
    told = []
    while not world.operator.events.empty():
        told.append(world.operator.events.get_nowait().reason)
    assert "Ended" not in told


def test_the_verdict_column_has_the_worst_of_what_was_measured_however_the_run_ended(world: PretendWorld) -> None:
    world.conductors.knobs.verdict = Verdict.INVALID
    uid = world.create("a")
    world.until(lambda: (run_of(world, uid)["status"].get("points") or {}).get("invalid"))
    world.conductors.knobs.fails[uid] = FailureReason.DEADLINE_EXCEEDED
    assert world.until_ended(uid)["reason"] == "DeadlineExceeded"
    assert run_of(world, uid)["status"]["display"]["verdict"] == "Invalid"


def test_a_change_of_a_run_that_is_over_is_seen_or_clients_would_wait_for_ever(world: PretendWorld) -> None:
    uid = world.create("a")
    ended = world.until_settled(uid)
    assert ended
    world.change(uid, results="Retain", suspend=True)
    assert kstatus(run_of(world, uid)) == "InProgress"
    world.until_settled(uid)
    assert kstatus(run_of(world, uid)) == "Current"
    assert run_of(world, uid)["status"]["completionTime"] == ended["status"]["completionTime"]
    world.round()
    assert not run_of(world, uid)["metadata"]["finalizers"]
