"""Trials of a search that are overloaded on purpose, or have little load: what is expected is no finding."""

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.api.line import LineSearch, Objective, ProbeOutcome, Vary
from plimsoll.api.names import Operation, Verdict
from plimsoll.measure.histogram import sample_of
from plimsoll.measure.intake import Offer
from plimsoll.measure.sample import LatencySample, OperationSample
from plimsoll.measure.trial import TrialNumbers
from support.client_documents import BLOCK, RUNTIME, document, latency, measure, measurement, operation

FAST, SLOW = 1_000_000, 9_000_000


def offer(load: float, vary: Vary = Vary.RATE) -> Offer:
    objectives = (Objective(percentile="99", latency="5ms"),)
    return Offer(search=LineSearch(vary=vary, start=1, limit=10**6, objectives=objectives), load=load)


def working(*rates: float, value: int = FAST, full: float | None = 0.0, timed: LatencySample | None = None) -> Any:
    """Return a measurement with this many operations in each second."""
    rates = rates * RUNTIME if len(rates) == 1 else rates
    ios = int(sum(rates))
    sample = operation(1, ios=ios, bytes=ios * BLOCK, latency=timed or latency(ios, value))
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
    assert outcome(numbers) is ProbeOutcome.DEPTH_FULL
    assert numbers.warnings[0].startswith("the load explains Stalled: no client completed anything for 10 s")
    assert numbers.stalls is not None
    assert numbers.stalls.seconds == 10


def test_one_client_that_stands_still_under_overload_broke_too() -> None:
    idle, busy = working(*STANDS_STILL, full=0.5), working(100)
    assert "ClientStalled" in reasons(measure(document(0, idle), document(1, busy)))
    numbers = measure(document(0, idle), document(1, busy), offer=offer(200))
    assert reasons(numbers) == []
    assert outcome(numbers) is ProbeOutcome.DEPTH_FULL


def test_storage_that_stands_still_although_it_carried_the_load_is_stalled() -> None:
    rates = (110.0,) * 18 + (0.0,) * 2
    numbers = measure(document(0, working(*rates)), offer=offer(sum(rates) / RUNTIME))
    assert reasons(numbers) == ["Stalled"]
    assert (numbers.verdict, outcome(numbers)) == (Verdict.SUSPECT, ProbeOutcome.MET)


def test_a_closed_loop_that_stands_still_is_stalled_if_its_depth_was_not_in_flight() -> None:
    """Operations in flight wait for the storage: those that are missing the client did not submit."""
    numbers = measure(document(0, working(*STANDS_STILL)), offer=offer(64, Vary.DEPTH))
    assert "Stalled" in reasons(numbers)
    assert outcome(numbers) is ProbeOutcome.UNKNOWN, "an Invalid trial says nothing"


def test_a_closed_loop_that_stands_still_and_is_late_broke() -> None:
    rates = (100.0,) * 8 + (0.0,) * 4 + (100.0,) * 8
    numbers = measure(document(0, working(*rates, value=SLOW)), offer=offer(0.72, Vary.DEPTH))
    assert (reasons(numbers), outcome(numbers)) == ([], ProbeOutcome.LATE)
    assert [warning.split(":")[0] for warning in numbers.warnings] == ["the load explains Stalled"]


def test_lost_operations_and_clients_that_end_late_are_explained_by_a_load_that_broke() -> None:
    slow = working(100, value=SLOW)
    lost = slow.model_copy(update={"operations": (slow.operations[0].model_copy(update={"lost_ios": 100}),)})
    assert "LostIo" in reasons(measure(document(0, working(100)), document(1, lost)))
    numbers = measure(document(0, slow), document(1, lost), offer=offer(200))
    assert (reasons(numbers), outcome(numbers)) == ([], ProbeOutcome.LATE)
    assert numbers.warnings[0].startswith("the load explains LostIo: client 1: 100 write operations never completed")


def test_what_a_load_cannot_cause_counts_although_it_broke() -> None:
    numbers = measure(document(0, working(100, value=SLOW), node="node-0", exit_code=1), offer=offer(100))
    assert (reasons(numbers), outcome(numbers)) == (["ToolFailed"], ProbeOutcome.UNKNOWN)


def test_arrivals_at_random_need_not_be_steady() -> None:
    rates = (20.0, 60.0, 100.0, 140.0, 180.0) * 4
    rising = tuple(sorted(rates))
    assert reasons(measure(document(0, working(*rising)))) == ["NotSteady"]
    assert reasons(measure(document(0, working(*rising)), offer=offer(100))) == []
    # In a closed loop the storage determines the rate.
    assert "NotSteady" in reasons(measure(document(0, working(*rising)), offer=offer(1, Vary.DEPTH)))


def test_a_low_load_has_few_operations_and_an_unknown_outcome() -> None:
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


def test_the_share_of_full_depth_is_that_of_the_client_with_the_highest() -> None:
    three, one = working(300, full=0.0), working(300, full=0.04)
    numbers = measure(document(0, three), document(1, one), offer=offer(600))
    assert numbers.probe is not None
    assert numbers.probe.depth_full_percent == pytest.approx(4)
    assert outcome(numbers) is ProbeOutcome.DEPTH_FULL


def test_one_of_many_clients_that_gets_half_of_its_load_breaks_the_trial() -> None:
    """Shortfall, full depth and late operations are each below 1 % of the sum."""
    slow = working(51, value=250 * FAST, full=1.0)
    others = [document(client, working(100)) for client in range(1, 100)]
    numbers = measure(document(0, slow), *others, offer=offer(10_000))
    assert outcome(numbers) is ProbeOutcome.DEPTH_FULL
    numbers = measure(document(0, working(100, full=1.0)), *others, offer=offer(10_000))
    assert outcome(numbers) is ProbeOutcome.DEPTH_FULL


def frozen(after: float) -> Any:
    """Return a measurement of 100 operations a second, of which those of a freeze of 10 s complete after it."""
    rates = (100.0,) * 5 + (0.0,) * 10 + (after,) + (100.0,) * 4
    ios = int(sum(rates))
    times = sample_of([FAST] * 900 + [10**9] * (ios - 900))
    return working(*rates, timed=times)


def test_a_trial_that_is_late_because_the_storage_froze_counts_as_broken() -> None:
    """Otherwise the load were repeated until a trial has no freeze, and that one would count."""
    assert reasons(measure(document(0, frozen(1100)))) == ["Stalled"]
    numbers = measure(document(0, frozen(1100)), offer=offer(100))
    assert (reasons(numbers), numbers.verdict) == ([], Verdict.VALID)
    assert numbers.probe is not None
    assert numbers.probe.achieved == 100
    assert outcome(numbers) is ProbeOutcome.LATE


def test_a_client_that_is_late_because_its_storage_froze_counts_as_broken() -> None:
    numbers = measure(document(0, frozen(1100)), document(1, working(100)), offer=offer(200))
    assert "ClientStalled" not in reasons(numbers)
    assert outcome(numbers) is ProbeOutcome.LATE


def test_writes_that_never_complete_while_reads_do_fill_the_depth() -> None:
    reads = operation(200, operation=Operation.READ)
    writes = OperationSample(operation=Operation.WRITE, ios=0, bytes=0, latency=latency(0))
    mixed = measurement(reads, writes, depth_full_share=0.7)
    assert "NoIo" in reasons(measure(document(0, mixed)))
    mix = replace(offer(200), shares={Operation.READ: 0.9, Operation.WRITE: 0.1})
    numbers = measure(document(0, mixed), offer=mix)
    assert "NoIo" not in reasons(numbers)
    assert outcome(numbers) is ProbeOutcome.DEPTH_FULL


def test_a_device_that_blocks_submissions_broke_although_its_depth_was_never_full() -> None:
    """Of 1000 operations offered per second, the device took 600, and each submission waited for 0.7 ms."""
    found = working(600)
    blocking = [one.model_copy(update={"submission_nanoseconds": 700_000.0}) for one in found.operations]
    quick = [one.model_copy(update={"submission_nanoseconds": 20_000.0}) for one in found.operations]
    numbers = measure(document(0, measurement(*blocking, depth_full_share=0.0)), offer=offer(1000))
    assert outcome(numbers) is ProbeOutcome.NOT_ACHIEVED
    numbers = measure(document(0, measurement(*quick, depth_full_share=0.0)), offer=offer(1000))
    assert outcome(numbers) is ProbeOutcome.MET


@pytest.mark.parametrize(
    ("submission", "expected"), [(10_000, ProbeOutcome.MET), (2_000, ProbeOutcome.DEPTH_FULL)], ids=["slow", "fast"]
)
def test_only_as_many_arrivals_are_missing_as_submissions_do_not_explain(
    submission: float, expected: ProbeOutcome
) -> None:
    """A tenth is missing while places became free slowly; 10 us for each, of which a trace allows for 2, explain it."""
    count = 18_000 * RUNTIME
    timed = sample_of([4_000_000] * (count // 7) + [FAST] * (count - count // 7))
    found = working(18_000, timed=timed, full=0.001)
    reads = [one.model_copy(update={"submission_nanoseconds": float(submission)}) for one in found.operations]
    asked = replace(offer(20_000), depth=64)
    assert outcome(measure(document(0, measurement(*reads, depth_full_share=0.001)), offer=asked)) is expected


def test_an_impossible_share_of_full_depth_costs_its_measurement() -> None:
    assert "OutputUnreadable" in reasons(measure(document(0, working(100, full=1.5)), offer=offer(100)))


def test_other_trials_have_no_probe() -> None:
    assert measure(document(0)).probe is None
