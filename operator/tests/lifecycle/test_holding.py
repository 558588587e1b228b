"""How long a run keeps its place in the queue while it is suspended: over all suspensions, until it measures again."""

from datetime import datetime, timedelta

import hypothesis.strategies as st
import pytest
from hypothesis import Phase, example, given, settings

from plimsoll.api.names import Outcome, Verdict
from plimsoll.lifecycle.queue import entry_of
from support.pretend_cluster import Document
from support.pretend_world import SETTINGS, PretendWorld, kinds_of, run_of, until_trial

LIMIT = float(SETTINGS.hold_seconds)
TRIALS = 4
PATIENT = {"provisionSeconds": 86400, "readySeconds": 86400, "totalSeconds": 604800}


@pytest.fixture
def uid(world: PretendWorld) -> str:
    """Return a run in the middle of its first trial, whose conductors do nothing from now on."""
    return measuring_run(world)


def measuring_run(world: PretendWorld) -> str:
    uid = world.create("a", timeouts=PATIENT)
    until_trial(world)
    world.conductors.knobs.stuck = True
    return uid


def set_suspended(world: PretendWorld, uid: str, *, suspend: bool) -> None:
    """Suspend or resume, and let everything that follows from it happen in no time."""
    world.change(uid, suspend=suspend)
    for _ in range(4):
        world.round(0.0)


def register(world: PretendWorld, uid: str) -> None:
    """Let a conductor take over and find all clients that can be there, and do no more."""
    world.conductors.knobs.stuck = False
    for _ in range(4):
        if world.conditions(uid)["ClientsReady"]["status"] != "True":
            world.conductors.step()
            world.operator.watch_all()
            world.look(uid)
    world.conductors.knobs.stuck = True


def toggle(world: PretendWorld, uid: str, *, rest_seconds: float, active_seconds: float = 1.0) -> None:
    set_suspended(world, uid, suspend=True)
    world.round(rest_seconds)
    set_suspended(world, uid, suspend=False)
    register(world, uid)
    world.round(active_seconds)


def place(world: PretendWorld, uid: str) -> tuple[str, str]:
    admitted = world.conditions(uid)["Admitted"]
    return admitted["status"], admitted["reason"]


def measured(world: PretendWorld, uid: str) -> int:
    results = world.cluster.of_run("BenchmarkResult", uid)
    trials = [trial for result in results for trial in result.get("status", {}).get("trials", [])]
    return sum(trial["outcome"] == Outcome.MEASURED for trial in trials)


def measure(world: PretendWorld, uid: str) -> None:
    """Let one trial be measured."""
    before = measured(world, uid)
    world.conductors.knobs.stuck = False
    world.until(lambda: measured(world, uid) > before)
    world.conductors.knobs.stuck = True
    world.round(0.0)


def hold(world: PretendWorld, uid: str) -> Document | None:
    found: Document | None = run_of(world, uid)["status"].get("hold")
    return found


def test_suspensions_add_up_while_nothing_is_measured_between(world: PretendWorld, uid: str) -> None:
    toggle(world, uid, rest_seconds=0.6 * LIMIT)
    assert place(world, uid) == ("True", "Admitted")
    set_suspended(world, uid, suspend=True)
    world.round(0.6 * LIMIT)
    world.round(0.0)
    assert place(world, uid) == ("False", "SuspendedTooLong")
    assert hold(world, uid) is None


def test_suspensions_count_in_whole_seconds_from_none(world: PretendWorld, uid: str) -> None:
    counted = []
    for rest in (0.0, 0.2, 30.0):
        set_suspended(world, uid, suspend=True)
        counted.append((hold(world, uid) or {})["seconds"])
        world.round(rest)
        set_suspended(world, uid, suspend=False)
        register(world, uid)
    assert counted[:2] == [0, 0]
    assert 1 <= counted[2] <= 2


def test_the_message_has_the_end_of_what_is_left(world: PretendWorld, uid: str) -> None:
    toggle(world, uid, rest_seconds=1000.0, active_seconds=0.0)
    until = world.cluster.now + timedelta(seconds=LIMIT - 1000)
    set_suspended(world, uid, suspend=True)
    message = world.conditions(uid)["Suspended"]["message"]
    kept_until = datetime.fromisoformat(message.rsplit(" ", 1)[1])
    assert abs((kept_until - until).total_seconds()) < 2


def test_a_measured_trial_resets_the_sum(world: PretendWorld, uid: str) -> None:
    toggle(world, uid, rest_seconds=0.9 * LIMIT)
    assert hold(world, uid) is not None
    measure(world, uid)
    assert hold(world, uid) is None
    set_suspended(world, uid, suspend=True)
    world.round(0.9 * LIMIT)
    world.round(0.0)
    assert place(world, uid) == ("True", "Admitted")


def test_a_trial_that_is_recorded_after_the_suspension_counts_from_the_suspension(
    world: PretendWorld, uid: str
) -> None:
    set_suspended(world, uid, suspend=True)
    world.cluster.pass_time(2 * LIMIT)
    result = world.cluster.of_run("BenchmarkResult", uid)[0]
    times = dict.fromkeys(("startedAt", "finishedAt"), "2026-01-01T12:00:00Z")
    trial = {
        "passNumber": 1,
        "attempt": 0,
        "outcome": Outcome.MEASURED,
        "verdict": Verdict.VALID,
        "epoch": "e",
        "clients": [],
        **times,
    }
    world.cluster.edit(result, lambda new: new.setdefault("status", {}).update(trials=[trial]))
    world.round(0.0)
    world.round(0.0)
    assert measured(world, uid) == 1
    assert place(world, uid) == ("False", "SuspendedTooLong")


def test_an_aborted_trial_does_not(world: PretendWorld, uid: str) -> None:
    toggle(world, uid, rest_seconds=0.9 * LIMIT)
    begun = len(world.conductors.loads)
    world.conductors.knobs.stuck = False
    world.conductors.step()
    world.conductors.knobs.stuck = True
    assert len(world.conductors.loads) > begun
    toggle(world, uid, rest_seconds=0.05 * LIMIT, active_seconds=LIMIT)
    found = hold(world, uid)
    assert found is not None
    assert 0.95 * LIMIT <= found["seconds"] <= 0.95 * LIMIT + 5
    assert "since" not in found


def test_the_sum_survives_the_operator(world: PretendWorld, uid: str) -> None:
    for _ in range(2):
        world.change(uid, suspend=True)
        world.round(0.0)
        world.restart_operator()
        world.round(0.6 * LIMIT)
        world.restart_operator()
        world.round(0.0)
        lost = place(world, uid) == ("False", "SuspendedTooLong")
        set_suspended(world, uid, suspend=False)
        world.restart_operator()
    assert lost


def test_what_happens_between_two_looks_stops_no_clock(world: PretendWorld, uid: str) -> None:
    set_suspended(world, uid, suspend=True)
    for _ in range(10):
        world.cluster.pass_time(0.11 * LIMIT)
        world.change(uid, suspend=False)
        world.change(uid, suspend=True)
        world.round(0.0)
    assert place(world, uid) == ("False", "SuspendedTooLong")


def test_time_without_clients_after_a_suspension_counts(world: PretendWorld, uid: str) -> None:
    """Or resuming just long enough to start pods would give a run `provisionSeconds` each time."""
    world.cluster.faults.unschedulable = {0}
    for _ in range(4):
        toggle(world, uid, rest_seconds=1.0, active_seconds=0.3 * LIMIT)
    set_suspended(world, uid, suspend=True)
    assert place(world, uid) == ("False", "SuspendedTooLong")


def test_a_run_that_is_resumed_just_before_its_limit_keeps_its_place(world: PretendWorld, uid: str) -> None:
    world.cluster.faults.unschedulable = {0}
    toggle(world, uid, rest_seconds=LIMIT - 1, active_seconds=600.0)
    world.cluster.faults.unschedulable = set()
    measure(world, uid)
    assert place(world, uid) == ("True", "Admitted")
    assert hold(world, uid) is None


def test_who_resumes_while_the_load_still_stops_does_not_save_a_place_that_is_used_up(
    world: PretendWorld, uid: str
) -> None:
    toggle(world, uid, rest_seconds=LIMIT - 1)
    world.round(10.0)
    waiting = world.create("b", timeouts=PATIENT)
    world.change(uid, suspend=True)
    world.operator.watch_all()
    world.look(uid)
    world.cluster.pass_time(2.0)
    world.look(uid)
    assert kinds_of(world, uid) & {"Job", "Pod"}
    assert world.conditions(uid)["Reconciling"]["reason"] == "SuspendedTooLong"
    world.change(uid, suspend=False)
    world.until(lambda: place(world, uid)[0] == "False")
    world.until(lambda: place(world, waiting)[0] == "True")
    world.conductors.knobs.stuck = False
    world.until_ended(waiting)
    assert world.until_ended(uid)["status"] == "True"


def test_a_dead_node_does_not_keep_a_run_that_lost_its_place_from_being_resumed(world: PretendWorld, uid: str) -> None:
    world.cluster.lose_node(world.client_pods(uid)[0]["spec"]["nodeName"])
    world.change(uid, suspend=True)
    for _ in range(3):
        world.round(LIMIT)
    assert place(world, uid) == ("False", "SuspendedTooLong")
    set_suspended(world, uid, suspend=False)
    assert place(world, uid) == ("True", "Admitted")


def test_a_run_that_lost_its_place_queues_behind_those_that_waited(world: PretendWorld, uid: str) -> None:
    """Even if it is resumed in the moment of its loss, before another run has had its turn."""
    waiting = world.create("b", timeouts=PATIENT)
    set_suspended(world, uid, suspend=True)
    world.round(LIMIT)
    world.operator.watch(uid)
    world.look(uid)
    assert place(world, uid) == ("False", "SuspendedTooLong")
    world.change(uid, suspend=False)
    for _ in range(3):
        world.operator.watch(uid)
        world.look(uid)
    assert place(world, uid) == ("False", "WaitingForTurn")
    world.round()
    assert place(world, waiting) == ("True", "Admitted")


def test_a_run_that_lost_its_place_queues_from_its_resumption(world: PretendWorld, uid: str) -> None:
    set_suspended(world, uid, suspend=True)
    world.round(LIMIT)
    world.round(LIMIT)
    assert place(world, uid) == ("False", "SuspendedTooLong")
    first = world.create("b", timeouts=PATIENT)
    for _ in range(3):
        world.round(1.0)
    assert place(world, first) == ("True", "Admitted")
    second = world.create("c", timeouts=PATIENT)
    world.round(60.0)
    world.change(uid, suspend=False)
    assert entry_of(run_of(world, uid), SETTINGS).queued > entry_of(run_of(world, second), SETTINGS).queued
    for _ in range(3):
        world.round(60.0)
    assert place(world, uid) == ("False", "WaitingForTurn")
    assert entry_of(run_of(world, uid), SETTINGS).queued > entry_of(run_of(world, second), SETTINGS).queued


def test_a_run_that_has_just_lost_its_place_does_not_find_it_in_an_older_view(world: PretendWorld, uid: str) -> None:
    other = world.create("b", timeouts=PATIENT)
    world.round(0.0)
    set_suspended(world, uid, suspend=True)
    world.cluster.pass_time(2 * LIMIT)
    for _ in range(2):
        world.look(uid)
    assert place(world, uid) == ("False", "SuspendedTooLong")
    world.change(uid, suspend=False)
    view = world.operator.bodies[uid]
    view["spec"]["suspend"] = False
    world.look(uid)
    assert place(world, uid)[0] == "False", "the turn is the other's"
    world.round(0.0)
    world.round(0.0)
    assert place(world, other) == ("True", "Admitted")


def test_a_pod_on_a_dead_node_stops_no_clock_of_a_run_that_measures_elsewhere(world: PretendWorld, uid: str) -> None:
    pods = world.cluster.of_run("Pod", uid)
    (conductor,) = [pod for pod in pods if "conductor" in pod["metadata"]["name"]]
    nodes = {pod["spec"]["nodeName"] for pod in world.client_pods(uid)}
    world.cluster.lose_node(min(nodes - {conductor["spec"]["nodeName"]}))
    for _ in range(4):
        world.round(1.0)
    set_suspended(world, uid, suspend=True)
    world.round(30.0)
    set_suspended(world, uid, suspend=False)
    for _ in range(6):
        register(world, uid)
        world.round(1.0)
    assert world.conditions(uid)["ClientsReady"]["status"] == "True"
    held = hold(world, uid)
    assert held is not None
    assert "since" not in held


def test_a_run_that_was_never_admitted_keeps_the_time_of_its_creation() -> None:
    condition = {"type": "Admitted", "status": "False", "lastTransitionTime": "2026-01-01T01:00:00Z"}
    metadata = {"uid": "u", "namespace": "n", "name": "r", "creationTimestamp": "2026-01-01T00:00:00Z"}
    body: Document = {"metadata": metadata, "status": {"conditions": [condition]}}
    assert entry_of(body, SETTINGS).queued == "2026-01-01T00:00:00Z"
    body["status"]["startTime"] = "2026-01-01T00:30:00Z"
    assert entry_of(body, SETTINGS).queued == "2026-01-01T01:00:00Z"


@pytest.mark.parametrize("left", [{"seconds": "many"}, {"since": "2026-01-01T00:00:00Z", "unknown": 1}])
def test_a_hold_that_cannot_be_read_begins_again(world: PretendWorld, uid: str, left: Document) -> None:
    set_suspended(world, uid, suspend=True)
    world.cluster.edit(run_of(world, uid), lambda new: new["status"].update(hold=left))
    world.restart_operator()
    world.round(0.0)
    assert place(world, uid) == ("True", "Admitted")
    world.cluster.pass_time(LIMIT + 1)
    world.round(0.0)
    assert place(world, uid) == ("False", "SuspendedTooLong")


def test_an_ended_run_holds_nothing(world: PretendWorld, uid: str) -> None:
    toggle(world, uid, rest_seconds=60.0)
    world.conductors.knobs.stuck = False
    world.until_ended(uid)
    assert hold(world, uid) is None


@settings(max_examples=12, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["suspend", "resume", "register", "measure", "restart"]),
            st.sampled_from([0.0, 0.4, 1.0, 30.0, 900.0, 1800.0]),
        ),
        max_size=25,
    )
)
@example([("suspend", 1800.0), ("resume", 0.4), ("suspend", 1800.0), ("resume", 0.0), ("suspend", 1800.0)])
@example([("suspend", 1800.0), ("resume", 0.0), ("register", 1.0)] * 3)
def test_whoever_toggles_how_ever_keeps_a_place_no_longer_between_two_trials(steps: list[tuple[str, float]]) -> None:
    with PretendWorld() as world:
        uid = measuring_run(world)
        held, trials, suspended = 0.0, measured(world, uid), False
        for step, seconds in steps:
            if step in {"suspend", "resume"}:
                suspended = step == "suspend"
                set_suspended(world, uid, suspend=suspended)
            elif step == "restart":
                world.restart_operator()
            elif step == "register":
                register(world, uid)
            elif not suspended and measured(world, uid) < TRIALS:
                measure(world, uid)
            world.round(0.0)
            if measured(world, uid) > trials or place(world, uid)[0] == "False":
                held, trials = 0.0, measured(world, uid)
            elif suspended:
                assert held <= LIMIT
            held += seconds if suspended else 0.0
            world.cluster.pass_time(seconds)
