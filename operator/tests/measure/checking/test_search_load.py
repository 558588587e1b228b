"""Trials of a search that are overloaded on purpose, or have little load: what is expected is no finding."""

from typing import Any

import pytest

from plimsoll.api.line import LineSearch, Objective, ProbeOutcome, Vary
from plimsoll.api.names import Verdict
from plimsoll.measure.line.offer import Offer
from plimsoll.measure.trial import TrialNumbers
from support.documents import BLOCK, RUNTIME, document, latency, measure, measurement, operation

FAST, SLOW = 1_000_000, 9_000_000


def offer(load: float, vary: Vary = Vary.RATE) -> Offer:
    objectives = (Objective(percentile="99", latency_microseconds=5_000),)
    return Offer(search=LineSearch(vary=vary, start=1, limit=10**6, objectives=objectives), load=load)


def working(*rates: float, value: int = FAST, full: float | None = 0.0) -> Any:
    """Return a measurement with this many operations in each second."""
    rates = rates * RUNTIME if len(rates) == 1 else rates
    ios = int(sum(rates))
    sample = operation(1, ios=ios, bytes=ios * BLOCK, latency=latency(ios, value))
    assert sample.cells is not None
    cells = sample.cells.model_copy(update={"ios": rates, "bytes": tuple(rate * BLOCK for rate in rates)})
    return measurement(sample.model_copy(update={"cells": cells}), depth_full_share=full)


def reasons(numbers: TrialNumbers) -> list[str]:
    return [finding.reason for finding in numbers.findings]


def outcome(numbers: TrialNumbers) -> ProbeOutcome:
    assert numbers.probe is not None
    return numbers.probe.outcome


STANDS_STILL = (100.0,) * 10 + (0.0,) * 10


def test_an_overloaded_storage_that_stands_still_broke_and_is_not_stalled() -> None:
    """Otherwise the trial were Invalid and did not count, and the search never learnt that the load is too high."""
    assert reasons(measure(document(0, working(*STANDS_STILL)))) == ["Stalled", "NotSteady"]
    numbers = measure(document(0, working(*STANDS_STILL, full=0.5)), offer=offer(100))
    assert (reasons(numbers), numbers.verdict) == ([], Verdict.VALID)
    assert outcome(numbers) is ProbeOutcome.NOT_ACHIEVED
    assert numbers.stalls is not None
    assert numbers.stalls.seconds == 10


def test_one_client_that_stands_still_under_overload_broke_too() -> None:
    idle, busy = working(*STANDS_STILL), working(100)
    assert "ClientStalled" in reasons(measure(document(0, idle), document(1, busy)))
    numbers = measure(document(0, idle), document(1, busy), offer=offer(200))
    assert reasons(numbers) == []
    assert outcome(numbers) is ProbeOutcome.NOT_ACHIEVED


def test_storage_that_stands_still_although_it_carried_the_load_is_stalled() -> None:
    rates = (110.0,) * 18 + (0.0,) * 2
    numbers = measure(document(0, working(*rates)), offer=offer(sum(rates) / RUNTIME))
    assert reasons(numbers) == ["Stalled"]
    assert (numbers.verdict, outcome(numbers)) == (Verdict.SUSPECT, ProbeOutcome.MET)


def test_a_closed_loop_that_stands_still_is_stalled_whatever_its_depth() -> None:
    numbers = measure(document(0, working(*STANDS_STILL)), offer=offer(64, Vary.DEPTH))
    assert "Stalled" in reasons(numbers)
    assert outcome(numbers) is ProbeOutcome.UNKNOWN, "an Invalid trial says nothing"


def test_arrivals_at_random_need_not_be_steady() -> None:
    rates = (20.0, 60.0, 100.0, 140.0, 180.0) * 4
    rising = tuple(sorted(rates))
    assert reasons(measure(document(0, working(*rising)))) == ["NotSteady"]
    assert reasons(measure(document(0, working(*rising)), offer=offer(100))) == []
    # In a closed loop the storage determines the rate.
    assert "NotSteady" in reasons(measure(document(0, working(*rising)), offer=offer(1, Vary.DEPTH)))


def test_a_low_load_has_few_operations_and_an_unknown_outcome_instead_of_a_finding() -> None:
    assert reasons(measure(document(0, working(49)))) == ["TooFewSamples"]
    few = measure(document(0, working(49)), offer=offer(49))
    assert (reasons(few), outcome(few)) == ([], ProbeOutcome.UNKNOWN)
    enough = measure(document(0, working(50)), offer=offer(50))
    assert (reasons(enough), outcome(enough)) == ([], ProbeOutcome.MET)


def test_an_invalid_trial_keeps_what_it_achieved() -> None:
    numbers = measure(document(0, working(100, value=SLOW), exit_code=1), offer=offer(100))
    assert numbers.verdict is Verdict.INVALID
    assert numbers.probe is not None
    assert (numbers.probe.achieved, numbers.probe.outcome) == (100, ProbeOutcome.UNKNOWN)


def test_without_documents_only_the_offer_is_known() -> None:
    probe = measure(planned=1, offer=offer(100)).probe
    assert probe is not None
    assert (probe.offered, probe.achieved, probe.outcome) == (100, None, ProbeOutcome.UNKNOWN)


@pytest.mark.parametrize(
    ("shares", "expected"), [((0.0, 0.04), 1.0), ((0.04, 0.0), 3.0), ((0.5, None), None), ((None, None), None)]
)
def test_the_share_of_full_depth_is_that_of_all_operations(
    shares: tuple[float | None, float | None], expected: float | None
) -> None:
    three, one = working(300, full=shares[0]), working(100, full=shares[1])
    numbers = measure(document(0, three), document(1, one), offer=offer(400))
    assert numbers.probe is not None
    assert numbers.probe.depth_full_percent == (None if expected is None else pytest.approx(expected))


def test_an_impossible_share_of_full_depth_costs_its_measurement() -> None:
    assert "OutputUnreadable" in reasons(measure(document(0, working(100, full=1.5)), offer=offer(100)))


def test_other_trials_have_no_probe() -> None:
    assert measure(document(0)).probe is None
