"""The estimated end of a run: published as soon as it is known, and not moved by delays."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll.api.line import MOST_PROBES, LineSearch, Objective
from plimsoll.api.names import Outcome, RunPhase
from plimsoll.api.run import decode_run
from plimsoll.api.status import Prefill, RunState, TrialKey, format_time
from plimsoll.lifecycle.children import Child, Measured, PodFact, TrialFact
from plimsoll.lifecycle.observed import Observed
from plimsoll.lifecycle.run import Run, run_of
from plimsoll.lifecycle.status import estimated_end, is_late
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import TRIAL_OVERHEAD_SECONDS, estimate, make_plan
from plimsoll.tools.base import ASSUMED_WRITE_BYTES_PER_SECOND
from support.pretend_world import PretendWorld, make_run
from support.specs import SETTINGS

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
PLANNED = 4 + 1 + TRIAL_OVERHEAD_SECONDS
SETTLE = 30
TRIALS = 4


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def plan_of(**prepare: Any) -> Plan:
    document = make_run("a", prepare={"settleSeconds": SETTLE, **prepare})
    document["metadata"]["uid"] = "u"
    return make_plan(decode_run(document), seed=1)


def run_with(said: datetime | None = None, *, ready_since: datetime = NOON, suspend: bool = False) -> Run:
    """Return a run whose status has an estimate, and whose clients are there since a moment."""
    body = make_run("a", suspend=suspend)
    ready = {"type": "ClientsReady", "status": "True", "reason": "Registered", "message": ""}
    status = {"conditions": [ready | {"lastTransitionTime": format_time(ready_since)}]}
    estimate = {"estimatedCompletionTime": format_time(said)} if said else {}
    metadata = {**body["metadata"], "uid": "u", "creationTimestamp": format_time(NOON)}
    return run_of({**body, "metadata": metadata, "status": status | estimate}, SETTINGS)


def conductor() -> PodFact:
    child = Child(api_version="v1", kind="Pod", namespace="bench", name="a-conductor", uid="epoch", deleting=False)
    return PodFact(
        child=child,
        client=None,
        attempt=0,
        node="n",
        phase="Running",
        created=NOON,
        changed=NOON,
        gone_by=None,
        problem="",
        exit_message="",
    )


def seen_in(
    phase: RunPhase, *, plan: Plan | None = None, trials: Mapping[str, tuple[TrialFact, ...]] = {}, **state: Any
) -> Observed:
    known = RunState(epoch="epoch", phase=phase, trials_total=TRIALS, **state)
    results = {point: Measured(trials=recorded) for point, recorded in trials.items()}
    return Observed(plan=plan or plan_of(), state=known, pods=(conductor(),), results=results, warnings={})


def order(plan: Plan) -> list[str]:
    return [plan.points[index].name for indices in plan.order for index in indices]


def under_way(number: int, begun: datetime, *, attempt: int = 0, **more: Any) -> Observed:
    """Return what is seen while one of the trials is measured, in their order."""
    plan = plan_of()
    point = order(plan)[number]
    return seen_in(
        RunPhase.MEASURING,
        plan=plan,
        trials_done=number,
        in_flight=TrialKey(point=point, pass_number=number // 2, attempt=attempt),
        in_flight_since=begun.isoformat(),
        **more,
    )


def measured(begun: float, took: float, *, outcome: Outcome = Outcome.MEASURED, epoch: str = "epoch") -> TrialFact:
    return TrialFact(epoch=epoch, outcome=outcome, started=after(begun), finished=after(begun + took))


# -- while trials are measured


def test_a_trial_under_way_says_when_the_last_one_should_be_over() -> None:
    for passed in (0, 3, 100):
        assert estimated_end(run_with(), under_way(1, NOON), after(passed)) == after(3 * PLANNED)


def test_each_attempt_says_it_anew_also_one_that_has_to_be_repeated() -> None:
    run = run_with(after(1000))
    assert estimated_end(run, under_way(3, NOON), NOON) == after(PLANNED)
    assert estimated_end(run, under_way(3, after(60), attempt=1), after(61)) == after(60 + PLANNED)


@pytest.mark.parametrize("phase", [RunPhase.MEASURING, RunPhase.GATHERING, RunPhase.FAILED])
def test_between_two_trials_it_stands_however_long_that_lasts(phase: RunPhase) -> None:
    seen = seen_in(phase, trials_done=2)
    assert estimated_end(run_with(after(20)), seen, after(3600)) == after(20)


def test_a_trial_that_is_being_recorded_changes_nothing() -> None:
    recording = under_way(1, NOON)
    assert recording.state
    recording = replace(recording, state=recording.state.model_copy(update={"trials_done": 2}))
    assert estimated_end(run_with(after(20)), recording, after(9)) == after(20)


def test_the_first_estimate_of_a_run_without_volumes_is_that_of_all_trials() -> None:
    seen = seen_in(RunPhase.MEASURING)
    assert estimated_end(run_with(), seen, NOON) == after(TRIALS * PLANNED)


def test_what_trials_really_take_is_learned_by_point_and_the_pauses_between_them_too() -> None:
    one, other = order(plan_of())[:2]
    trials = {one: (measured(0, 9),), other: (measured(11, 20),)}
    assert estimated_end(run_with(), under_way(2, after(33), trials=trials), after(34)) == after(33 + 9 + 2 + 20 + 2)


def test_points_that_were_not_measured_yet_are_taken_to_be_as_slow_as_the_others() -> None:
    trials = {order(plan_of())[0]: (measured(0, 2 * PLANNED),)}
    seen = under_way(1, after(2 * PLANNED), trials=trials)
    assert estimated_end(run_with(), seen, after(2 * PLANNED)) == after(2 * PLANNED + 3 * 2 * PLANNED)


def test_attempts_without_numbers_and_a_suspension_between_two_conductors_teach_nothing() -> None:
    one, other = order(plan_of())[:2]
    trials = {
        one: (measured(0, 600, outcome=Outcome.ABORTED, epoch="earlier"), measured(7200, 9)),
        other: (measured(7211, 9),),
    }
    seen = under_way(2, after(7222), trials=trials)
    assert estimated_end(run_with(), seen, after(7222)) == after(7222 + 2 * 11)


def searching(*trials: TrialFact, done: int = 0, probe: int = 0) -> Observed:
    """Return what is seen while the first point is searched for its line; the second one has two trials."""
    plan = plan_of()
    objectives = (Objective(percentile="99", latency="5ms"),)
    line = LineSearch(start=100, limit=1000, objectives=objectives)
    index = plan.order[0][0]
    points = tuple(
        point.model_copy(update={"line": line}) if number == index else point
        for number, point in enumerate(plan.points)
    )
    plan = plan.model_copy(update={"points": points})
    name = plan.points[index].name
    seen = seen_in(
        RunPhase.MEASURING,
        plan=plan,
        trials={name: trials},
        trials_done=done,
        in_flight=TrialKey(point=name, pass_number=probe, attempt=0) if not done else None,
        in_flight_since=after(100).isoformat(),
    )
    assert seen.state
    return replace(seen, state=seen.state.model_copy(update={"trials_total": 3}))


def test_a_search_takes_at_most_the_probes_that_it_may_still_make() -> None:
    assert estimated_end(run_with(), searching(), NOON) == after(100 + (MOST_PROBES + 2) * PLANNED)
    trials = [measured(number * PLANNED, PLANNED) for number in range(10)]
    seen = searching(*trials, probe=10)
    assert estimated_end(run_with(), seen, NOON) == after(100 + (MOST_PROBES - 10 + 2) * PLANNED)


def test_a_search_that_ended_early_takes_no_more_time() -> None:
    trials = [measured(number * PLANNED, PLANNED) for number in range(10)]
    assert estimated_end(run_with(), searching(*trials, done=1), NOON) == after(2 * PLANNED)


# -- before


def test_nothing_is_said_before_there_is_a_conductor_with_all_its_clients() -> None:
    missing = seen_in(RunPhase.GATHERING, missing=(1,))
    nobody = replace(seen_in(RunPhase.MEASURING), pods=())
    for seen in (missing, nobody, replace(missing, state=None), replace(missing, plan=None)):
        assert estimated_end(run_with(), seen, NOON) is None


def test_prefill_precondition_and_settling_come_on_top() -> None:
    seen = seen_in(RunPhase.PREPARING, plan=plan_of(precondition={"seconds": 600}, fillPercent=50))
    guessed = -(-(2**29) // ASSUMED_WRITE_BYTES_PER_SECOND)
    assert estimated_end(run_with(), seen, NOON) == after(guessed + 600 + SETTLE + TRIALS * PLANNED)


@dataclass
class Prefilling:
    """A prefill at some rate, and the estimate at each look."""

    said: datetime | None = None
    seen: list[datetime] = field(default_factory=list)

    def look(self, seconds: float, done: int, total: int = 1000) -> datetime:
        seen = seen_in(RunPhase.PREPARING, prefill=Prefill(done_bytes=done, total_bytes=total))
        said = estimated_end(run_with(self.said), seen, after(seconds))
        assert said is not None
        self.said = said
        self.seen.append(said)
        return said


def test_a_prefill_is_reckoned_at_its_own_rate_and_seldom_said_anew() -> None:
    prefill, rest = Prefilling(), SETTLE + TRIALS * PLANNED
    prefill.look(1, 0)
    for seconds in range(20, 1001, 10):
        prefill.look(seconds, seconds)
    assert abs((prefill.seen[1] - after(1000 + rest)).total_seconds()) <= 10
    assert len(set(prefill.seen)) <= 3
    assert abs((prefill.seen[-1] - after(1000 + rest)).total_seconds()) <= 10


def test_a_slower_prefill_moves_the_end_and_one_that_is_done_does_not() -> None:
    prefill = Prefilling()
    early = prefill.look(100, 500)
    late = prefill.look(800, 600)
    assert late > early
    done = prefill.look(1400, 1000)
    assert prefill.look(5000, 1000) == done


def test_new_data_sets_come_on_top_of_each_trial_and_the_pace_learns_what_they_take() -> None:
    plan = plan_of(perTrial="NewDataSet")
    preparing = estimate(plan).preparation_seconds
    first = seen_in(RunPhase.PREPARING, plan=plan)
    assert estimated_end(run_with(), first, NOON) == after(TRIALS * (PLANNED + preparing))
    one, other, third = order(plan)[:3]
    trials = {one: (measured(0, 9),), other: (measured(59, 9),)}
    seen = seen_in(
        RunPhase.MEASURING,
        plan=plan,
        trials=trials,
        trials_done=2,
        in_flight=TrialKey(point=third, pass_number=1, attempt=0),
        in_flight_since=after(118).isoformat(),
    )
    assert estimated_end(run_with(), seen, after(119)) == after(118 + 9 + 50 + 9), "none after the last trial"


def test_a_later_preparation_does_not_move_the_end() -> None:
    plan = plan_of(perTrial="NewDataSet")
    recorded = {order(plan)[0]: (measured(0, 9),)}
    seen = seen_in(RunPhase.PREPARING, plan=plan, trials=recorded, trials_done=1, prefill=Prefill(total_bytes=10**12))
    assert estimated_end(run_with(after(500)), seen, after(100)) == after(500)
    assert estimated_end(run_with(), seen, after(100)) is not None


def test_settling_does_not_put_the_end_off_but_may_bring_it_nearer() -> None:
    seen = seen_in(RunPhase.SETTLING)
    rest = SETTLE + TRIALS * PLANNED
    assert estimated_end(run_with(after(rest)), seen, after(25)) == after(rest)
    assert estimated_end(run_with(after(5000)), seen, NOON) == after(rest)


# -- suspension


def test_a_run_that_rests_has_no_end_and_says_it_anew_when_it_goes_on() -> None:
    assert estimated_end(run_with(after(9), suspend=True), under_way(1, NOON), NOON) is None
    gone = replace(seen_in(RunPhase.INTERRUPTED, trials_done=1), pods=())
    assert estimated_end(run_with(), gone, after(7200)) is None
    assert estimated_end(run_with(), under_way(1, after(7300)), after(7301)) == after(7300 + 3 * PLANNED)


def test_a_conductor_that_died_does_not_move_it() -> None:
    gone = replace(seen_in(RunPhase.MEASURING, trials_done=1), pods=())
    assert estimated_end(run_with(after(9)), gone, after(600)) == after(9)


# -- through the life of a run


def end_said(world: PretendWorld, uid: str) -> datetime | None:
    run = world.run(uid)
    assert run is not None
    text = run["status"].get("estimatedCompletionTime")
    return datetime.fromisoformat(text) if text else None


def test_a_run_is_never_silently_late(world: PretendWorld) -> None:
    uid = world.create("a")
    ends = []
    world.round()
    while (succeeded := world.conditions(uid)["Succeeded"])["status"] == "Unknown":
        end, looked = end_said(world, uid), world.cluster.now - timedelta(seconds=5)
        assert ("behind schedule" in succeeded["message"]) == is_late(end, looked)
        ends.append(end)
        world.round()
    assert len({end for end in ends if end}) >= 2
    assert end_said(world, uid) is None
    assert "behind schedule" not in succeeded["message"]


def test_a_run_that_hangs_says_since_when_it_is_late_and_writes_that_once(world: PretendWorld) -> None:
    uid = world.create("a")
    world.until(lambda: world.conductors.loads)
    world.conductors.knobs.stuck = True
    world.until(lambda: "behind schedule" in world.conditions(uid)["Succeeded"]["message"])
    world.round()
    end, run = end_said(world, uid), world.run(uid)
    assert end is not None
    assert run is not None
    assert f"expected to be measured by {format_time(end)}" in run["status"]["display"]["message"]
    for _ in range(5):
        world.round()
    assert world.run(uid) == run


@pytest.mark.parametrize("wait", ["queue", "suspension", "deletion"])
def test_a_run_that_waits_for_others_has_no_estimate(world: PretendWorld, wait: str) -> None:
    first = world.create("a")
    world.until(lambda: end_said(world, first))
    waiting = first
    if wait == "queue":
        waiting = world.create("b")
        world.until(lambda: world.conditions(waiting).get("Admitted", {}).get("reason") == "WaitingForTurn")
    elif wait == "suspension":
        world.change(first, suspend=True)
        world.until_settled(first)
    else:
        run = world.run(first)
        assert run is not None
        world.cluster.delete(run)
        world.operator.watch_all()
        world.look(first)
    assert end_said(world, waiting) is None
