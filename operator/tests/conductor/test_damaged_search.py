"""Searches whose recorded trials are damaged, or were edited: no conductor dies of them, and none obeys them."""

import pytest

from plimsoll.api.line import MOST_PROBES, Ending, Line, Probe, ProbeOutcome
from plimsoll.api.names import Outcome, RunPhase, Verdict
from plimsoll.api.result import Trial
from plimsoll.api.status import TrialKey
from plimsoll.conductor.ledger import Ledger
from support.simulation import ROUGH_SEARCH, SearchSimulation, search_plan


def stored_search() -> SearchSimulation:
    """Return a run whose search has six probes."""
    simulation = SearchSimulation(search_plan())
    while len(simulation.stored.get("w-000", ())) < 6:
        if not simulation.work():
            for agent in simulation.agents:
                simulation.poll(agent)
            simulation.pass_time(0.2)
    return simulation


def resumed(simulation: SearchSimulation, *trials: Trial) -> list[Trial]:
    """Run to the end with these recorded trials instead; return those that were measured since."""
    simulation.stored["w-000"] = trials
    simulation.stored_state = None
    simulation.crash()
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE
    added = simulation.stored["w-000"][len(trials) :]
    assert [trial.pass_number for trial in added] == [*range(6, 6 + len(added))]
    return list(added)


def line_of(simulation: SearchSimulation) -> Line:
    line = Ledger(simulation.plan, simulation.stored).status("w-000", None).line
    assert line is not None
    return line


def invalid(number: int, load: float, attempt: int = 0) -> Trial:
    return Trial(
        pass_number=number,
        attempt=attempt,
        epoch="e",
        clients=(0,),
        probe=Probe(offered=load, outcome=ProbeOutcome.UNKNOWN),
        outcome=Outcome.MEASURED,
        started_at="2026-01-01T00:00:00.000Z",
        finished_at="2026-01-01T00:00:00.000Z",
        verdict=Verdict.INVALID,
    )


def test_after_a_hole_in_the_probes_the_search_goes_on_with_new_numbers() -> None:
    simulation = stored_search()
    kept = simulation.stored["w-000"]
    assert resumed(simulation, *kept[:2], *kept[3:])
    assert line_of(simulation).ending is Ending.PRECISE


def test_a_hole_in_the_attempts_is_left_open() -> None:
    simulation = stored_search()
    kept = simulation.stored["w-000"]
    search = Ledger(simulation.plan, {"w-000": kept}).search("w-000")
    assert search is not None
    assert search.progress.next_load is not None
    ledger = Ledger(simulation.plan, {"w-000": (*kept, invalid(6, search.progress.next_load, attempt=1))})
    assert ledger.next_trial() == TrialKey(point="w-000", pass_number=6, attempt=2)


@pytest.mark.parametrize("load", [None, 0.0])
def test_a_trial_without_a_load_is_ignored_and_its_number_used_up(load: float | None) -> None:
    simulation = stored_search()
    kept = simulation.stored["w-000"]
    assert kept[2].probe is not None
    probe = None if load is None else kept[2].probe.model_copy(update={"offered": load})
    added = resumed(simulation, *kept[:2], kept[2].model_copy(update={"probe": probe}), *kept[3:])
    line = line_of(simulation)
    assert line.probes == line.counted == 5 + len(added)


@pytest.mark.parametrize("load", [0.0, 3.0, 1e12])
def test_the_load_of_a_pending_attempt_is_not_offered_unless_it_is_the_next_one(load: float) -> None:
    simulation = stored_search()
    kept = simulation.stored["w-000"]
    simulation.stored["w-000"] = (*kept, invalid(6, load))
    simulation.stored_state = None
    simulation.crash()
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE
    added = simulation.stored["w-000"][7:]
    assert [trial.pass_number for trial in added] == [*range(7, 7 + len(added))]
    offered = [trial.probe.offered for trial in added if trial.probe]
    assert offered
    assert all(ROUGH_SEARCH.start / 1024 <= one <= ROUGH_SEARCH.highest_load for one in offered)
    assert line_of(simulation).counted == 6 + len(added)


def test_a_pending_attempt_at_the_next_load_is_continued() -> None:
    simulation = stored_search()
    kept = simulation.stored["w-000"]
    search = Ledger(simulation.plan, {"w-000": kept}).search("w-000")
    assert search is not None
    assert search.progress.next_load is not None
    ledger = Ledger(simulation.plan, {"w-000": (*kept, invalid(6, search.progress.next_load))})
    key = ledger.next_trial()
    assert key == TrialKey(point="w-000", pass_number=6, attempt=1)
    offer = ledger.offer(key)
    assert offer is not None
    assert offer.load == search.progress.next_load


def test_numbers_that_are_used_up_shorten_the_search() -> None:
    lost = tuple(invalid(MOST_PROBES - 2, 400, attempt) for attempt in range(3))
    ledger = Ledger(search_plan(), {"w-000": lost})
    key = ledger.next_trial()
    assert key == TrialKey(point="w-000", pass_number=MOST_PROBES - 1, attempt=0)
    ledger.add("w-000", invalid(MOST_PROBES - 1, 400).model_copy(update={"verdict": Verdict.VALID}))
    assert ledger.next_trial() is None


def test_a_search_that_ended_is_not_computed_again() -> None:
    """That of 512 finished searches takes a minute, in which a conductor answers nobody."""
    plan = search_plan(points=2, searches=2, repetitions=1)
    ledger = Ledger(plan, {}, ended={"w-000"})
    key = ledger.next_trial()
    assert key is not None
    assert key.point == "w-001"
    assert (ledger.done, ledger.total) == (1, 2)
