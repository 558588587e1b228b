"""ATTACK: failing tests of what one trial of a search shows; each says what should happen."""

import time
from typing import Any

import pytest

from plimsoll.api.line import Line, LineSearch, Objective, ProbeOutcome, Vary
from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.api.result import Latency, OperationResult, Rates, Window
from plimsoll.conductor.ledger import Ledger
from plimsoll.measure.intake import TrialFacts
from plimsoll.measure.latency import sample_of
from plimsoll.measure.line.observation import observed, outcome_of
from plimsoll.measure.line.offer import Offer
from plimsoll.measure.line.wording import ending_sentence
from plimsoll.measure.sample import Cells, OperationSample
from plimsoll.measure.trial import measure_trial
from support.search_simulation import SEARCH, SearchSimulation, offered_document, search_plan
from support.simulated_plan import EPOCH, SECOND

# ATTACK: a run that ended (deadline, suspended, failed) says of its search for ever: "The search goes on".
def test_the_sentence_of_a_search_that_was_cut_off_does_not_say_that_it_goes_on() -> None:
    plan = search_plan()
    plan = plan.model_copy(update={"timeouts": plan.timeouts.model_copy(update={"total_seconds": 60})})
    simulation = SearchSimulation(plan)
    simulation.settle()
    status = Ledger(plan, simulation.stored).status("w-000", None)
    print(simulation.phase, status.final, status.verdict, status.findings, status.line)
    assert isinstance(status.line, Line)
    assert "goes on" not in ending_sentence(status.line, SEARCH)


# ATTACK: a conductor that resumes a run of 512 finished searches computes all of them at once in its event loop.
def test_resuming_many_finished_searches_does_not_block_for_seconds() -> None:
    simulation = SearchSimulation(search_plan())
    simulation.settle()
    many = search_plan(points=64, searches=64, repetitions=1)
    ledger = Ledger(many, {point.name: simulation.stored["w-000"] for point in many.points})
    began = time.process_time()
    assert ledger.next_trial() is None
    seconds = time.process_time() - began
    print(f"64 searches: {seconds:.1f} s, 512: {8 * seconds:.1f} s")
    assert 8 * seconds < 10
