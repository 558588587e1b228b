"""Searches for the line: which loads are offered, and that no fault changes them."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.api.line import MOST_PROBES, Ending, Line, ProbeOutcome
from plimsoll.api.names import AbortReason, Outcome, RunPhase, Verdict
from plimsoll.api.result import Trial
from plimsoll.conductor.ledger import MAX_UNCHARGED_ATTEMPTS, Ledger
from plimsoll.conductor.phases import Ended, Recording, Running
from plimsoll.conductor.sink import result_of
from plimsoll.measure.line.summary import ending_sentence
from support.simulation import ROUGH_SEARCH, SearchSimulation, search_plan

MOST_TRIALS = 256
"""The most that a result may have."""


@cache
def undisturbed() -> tuple[float, ...]:
    """Return the loads of a search without faults."""
    simulation = SearchSimulation(search_plan())
    simulation.settle()
    return tuple(simulation.loads())


def ledger_of(simulation: SearchSimulation) -> Ledger:
    return Ledger(simulation.plan, simulation.stored)


def test_a_search_finds_the_line_in_the_first_pass_and_has_a_verdict() -> None:
    simulation = SearchSimulation(search_plan(points=2, repetitions=2))
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE
    ledger = ledger_of(simulation)
    status = ledger.status("w-000", None)
    assert status.final
    assert (status.summary, status.verdict, status.findings) == (None, Verdict.VALID, ())
    assert status.line is not None
    assert status.line.ending is Ending.PRECISE
    assert status.line.low is not None
    assert status.line.high is not None
    assert status.line.low < 3_000 < status.line.high
    probes = len(simulation.stored["w-000"])
    assert [trial.pass_number for trial in simulation.stored["w-000"]] == [*range(probes)]
    assert (status.line.probes, status.line.counted) == (probes, probes)
    assert simulation.loads()[:4] == [400, 800, 1600, 3200]
    # The other point has its two passes, and the search counts as one.
    assert [trial.pass_number for trial in simulation.stored["w-001"]] == [0, 1]
    assert (ledger.done, ledger.total) == (3, 3)
    spec = result_of(simulation.plan, simulation.plan.point("w-000"), status).spec
    assert (spec.repetitions, spec.line) == (MOST_PROBES, ROUGH_SEARCH)
    assert result_of(simulation.plan, simulation.plan.point("w-001"), status).spec.repetitions == 2


def test_each_trial_records_what_it_was_offered_and_achieved() -> None:
    simulation = SearchSimulation(search_plan())
    simulation.settle()
    for trial in simulation.measured():
        probe = trial.probe
        assert probe is not None
        assert probe.achieved == pytest.approx(probe.offered)
        assert probe.depth_full_percent == 0
        assert probe.outcome is (ProbeOutcome.LATE if probe.offered > 3_000 else ProbeOutcome.MET)
        assert trial.verdict is Verdict.VALID


def test_every_load_is_shared_evenly_by_the_clients() -> None:
    simulation = SearchSimulation(search_plan(clients=3))
    simulation.settle()
    assert {load % 3 for load in simulation.loads()} == {0}


def test_the_state_shows_how_far_the_search_is() -> None:
    simulation = SearchSimulation(search_plan())
    simulation.until(Running)
    state = simulation.state
    assert state.message == "w-000: probe 1 of at most 40"
    assert state.current is not None
    assert "200 IOPS" in state.current.label
    assert state.probes_done == 0
    shown = set()
    while not isinstance(simulation.session.phase, Ended):
        simulation.until((Running, Ended))  # type: ignore[arg-type] # isinstance takes a tuple
        shown.add(simulation.state.message)
        if (key := simulation.state.in_flight) is not None:
            assert simulation.state.probes_done == key.pass_number
        simulation.run_for(0.5)
    assert any(message.startswith("w-000: probe 9 of at most 40, line 2,") for message in shown), shown


def test_the_status_of_a_search_that_goes_on_has_a_line_without_an_ending_and_no_verdict() -> None:
    simulation = SearchSimulation(search_plan())
    simulation.until(Running)
    simulation.until(Recording)
    status = simulation.session.ledger.status("w-000", None)
    assert (status.final, status.verdict, status.findings) == (False, None, ())
    assert status.line is not None
    assert (status.line.ending, status.line.probes) == (None, 1)


def test_a_search_that_the_deadline_cut_off_is_not_said_to_go_on() -> None:
    plan = search_plan()
    plan = plan.model_copy(update={"timeouts": plan.timeouts.model_copy(update={"total_seconds": 60})})
    simulation = SearchSimulation(plan)
    simulation.settle()
    line = ledger_of(simulation).status("w-000", None).line
    assert simulation.phase is RunPhase.FAILED
    assert line is not None
    assert ending_sentence(line, ROUGH_SEARCH).startswith(
        f"The search is not finished: {line.probes} of at most 40 probes made"
    )


def run_with_deaths(simulation: SearchSimulation, deaths: dict[int, bool]) -> None:
    """Run to the end; the conductor dies around the effects with these numbers, True before they are durable."""
    number = 0
    for _ in range(20_000):
        if isinstance(simulation.session.phase, Ended):
            return
        while simulation.work(
            crash_before=deaths.get(number) is True,
            crash_after=deaths.get(number) is False,
        ):
            number += 1
        for agent in simulation.agents:
            simulation.poll(agent)
        simulation.pass_time(0.2)
    raise AssertionError(simulation.session.phase)


@settings(max_examples=15, deadline=None)
@given(st.dictionaries(st.integers(0, 4 * 12), st.booleans(), max_size=2))
def test_a_conductor_that_dies_at_any_moment_changes_no_load_and_measures_none_twice(deaths: dict[int, bool]) -> None:
    simulation = SearchSimulation(search_plan())
    run_with_deaths(simulation, deaths)
    assert simulation.phase is RunPhase.COMPLETE
    assert tuple(simulation.loads()) == undisturbed()
    assert_attempts_repeat_their_load(simulation)


def test_a_conductor_that_dies_in_each_of_twenty_trials_changes_no_load() -> None:
    simulation = SearchSimulation(search_plan(searches=2, points=2))
    # An attempt has four effects: it begins, is released, judged and recorded. Each second one is lost after its
    # release, and recorded by the next conductor.
    run_with_deaths(simulation, {7 * number + 1: False for number in range(20)})
    assert simulation.epochs == 21
    lost = [trial for trial in simulation.trials if trial.abort is not None]
    assert {trial.abort.reason for trial in lost if trial.abort} == {AbortReason.CONDUCTOR_RESTARTED}
    assert len(lost) == 20
    assert all(trial.abort.after_start for trial in lost if trial.abort)
    assert tuple(simulation.loads("w-000")) == undisturbed()
    assert tuple(simulation.loads("w-001")) == undisturbed()
    assert_attempts_repeat_their_load(simulation)


def suspend(simulation: SearchSimulation) -> None:
    """Suspend the run in its next trial, and resume it with new clients."""
    simulation.until(Running)
    simulation.session.stop()
    simulation.settle()
    simulation.publish()
    simulation.crash()
    for agent in simulation.agents:
        simulation.kill(agent)


def test_a_search_that_is_suspended_in_each_probe_changes_no_load() -> None:
    simulation = SearchSimulation(search_plan())
    for number in range(10):
        suspend(simulation)
        while len(simulation.loads()) <= number:
            simulation.run_for(1)
    simulation.settle()
    assert [trial.attempt for trial in simulation.measured()[:11]] == [1] * 10 + [0]
    assert tuple(simulation.loads()) == undisturbed()
    assert_attempts_repeat_their_load(simulation)


def test_a_search_that_is_suspended_more_often_than_a_result_has_room_for_loses_a_probe() -> None:
    simulation = SearchSimulation(search_plan())
    for _ in range(MAX_UNCHARGED_ATTEMPTS + 5):
        suspend(simulation)
    simulation.settle()
    reasons = [trial.abort.reason for trial in simulation.stored["w-000"] if trial.abort]
    assert set(reasons) == {AbortReason.INTERRUPTED}
    # Only the first twenty were free; of the others, three use up a probe, whose load is tried again.
    assert len(reasons) == MAX_UNCHARGED_ATTEMPTS + 5
    assert simulation.loads()[0] == 400
    assert_attempts_repeat_their_load(simulation)


def test_a_probe_that_lost_a_client_is_repeated_at_its_load() -> None:
    simulation = SearchSimulation(search_plan())
    while len(simulation.stored.get("w-000", ())) < 5:
        simulation.run_for(1)
    simulation.until(Running)
    simulation.kill(simulation.agents[0])
    simulation.settle()
    (lost,) = [trial for trial in simulation.stored["w-000"] if trial.abort is not None]
    assert lost.probe is not None
    assert (lost.attempt, lost.probe.outcome, lost.probe.achieved) == (0, ProbeOutcome.UNKNOWN, None)
    assert tuple(simulation.loads()) == undisturbed()
    assert_attempts_repeat_their_load(simulation)


def test_a_search_whose_tool_always_fails_gives_up_after_four_probes_and_is_invalid() -> None:
    simulation = SearchSimulation(search_plan())
    simulation.failing = {0}
    simulation.settle(limit=200_000)
    status = ledger_of(simulation).status("w-000", None)
    assert status.final
    assert len(status.trials) == 3 * 4
    assert status.line is not None
    assert status.line == Line(ending=Ending.PROBES_DO_NOT_COUNT, probes=4, counted=0)
    assert status.verdict is Verdict.INVALID
    assert [finding.reason for finding in status.findings] == ["ToolFailed", "NoTrialCounts"]
    assert "no probe counts, of 4: ToolFailed in 4 probes" in status.findings[1].message


def assert_attempts_repeat_their_load(simulation: SearchSimulation) -> None:
    """Check that the attempts at a probe have one load and are numbered, and that each has numbers at most once."""
    for trials in simulation.stored.values():
        probes: dict[int, list[Trial]] = {}
        for trial in trials:
            probes.setdefault(trial.pass_number, []).append(trial)
        assert [*probes] == [*range(len(probes))]
        for attempts in probes.values():
            assert [trial.attempt for trial in attempts] == [*range(len(attempts))]
            assert len({trial.probe.offered for trial in attempts if trial.probe}) == 1
            assert all(trial.probe for trial in attempts)
            assert sum(trial.outcome is Outcome.MEASURED for trial in attempts) <= 1
        assert len(trials) <= MOST_TRIALS
