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
from support.searching import SEARCH, SearchSimulation, offered_document, search_plan
from support.simulated_plan import EPOCH, SECOND

P99 = Objective(percentile="99", latency_microseconds=5_000)
RATE = Offer(search=LineSearch(start=100, limit=100_000, objectives=(P99,)), load=10_000)
DEPTH = Offer(search=RATE.search.model_copy(update={"vary": Vary.DEPTH}), load=64)


def window(seconds: int) -> Window:
    end = seconds * 10**9
    return Window(
        start_nanoseconds=0,
        end_nanoseconds=end,
        last_end_nanoseconds=end,
        seconds=seconds,
        whole_seconds=seconds,
        spread_seconds=0,
        overlap=1,
    )


def operation(name: Operation, *, iops: float, count: int, **latency: Any) -> OperationResult:
    rates = Rates(iops=iops, bytes_per_second=round(4096 * iops))
    return OperationResult(
        operation=name,
        ios=count,
        bytes=4096 * count,
        rates=rates,
        whole_run=rates,
        sum_of_rates=rates,
        latency=Latency(kind=LatencyKind.FULL, count=count, **latency),
    )


def judged(offer: Offer, seconds: int, *operations: OperationResult, full: float | None = 0.0) -> ProbeOutcome:
    found = observed(offer, operations, window(seconds), full)
    assert found is not None
    print(found, found.is_achieved)
    return outcome_of(found, offer.search.objectives)


# ATTACK: 3/sqrt(N) of the N that *completed* exceeds 1 for N < 9: 8 operations of 600,000 are "achieved", so Unknown.
@pytest.mark.parametrize("count", [1, 5, 8])
def test_a_storage_that_completes_next_to_nothing_did_not_achieve_the_load(count: int) -> None:
    slow = operation(Operation.READ, iops=count / 60, count=count, mean_nanoseconds=1e6, max_nanoseconds=10**9)
    assert judged(RATE, 60, slow) is ProbeOutcome.NOT_ACHIEVED


# ATTACK: the load of a mix is judged as a sum: at 95 % reads, writes may be 19 % short of theirs, and the trial is Met.
def test_a_mix_whose_writes_are_far_short_is_not_met() -> None:
    fast = {"mean_nanoseconds": 1e6, "max_nanoseconds": 10**7, "percentiles": {"99": 10**6}}
    reads = operation(Operation.READ, iops=9_500, count=570_000, **fast)
    writes = operation(Operation.WRITE, iops=405, count=24_300, **fast)
    assert judged(RATE, 60, reads, writes) is ProbeOutcome.NOT_ACHIEVED


# ATTACK: writes that never complete (1 % of the mix; fio's parser then sends them with a count of 0) are Unknown, so the
# load never counts as broken and is tried again until the probes are used up.
def test_a_mix_whose_writes_never_complete_counts_as_broken() -> None:
    fast = {"mean_nanoseconds": 1e6, "max_nanoseconds": 10**7, "percentiles": {"99": 10**6}}
    reads = operation(Operation.READ, iops=9_905, count=594_300, **fast)
    writes = operation(Operation.WRITE, iops=0, count=0)
    assert judged(RATE, 60, reads, writes) is ProbeOutcome.NOT_ACHIEVED


# ATTACK: one operation of 9 s in 10 s: every depth is "achieved", here 6 of 64 in flight.
def test_one_slow_operation_does_not_excuse_an_empty_queue() -> None:
    reads = operation(
        Operation.READ, iops=6_000, count=60_000, mean_nanoseconds=1e6, max_nanoseconds=9 * 10**9, percentiles={"99": 10**6}
    )
    assert judged(DEPTH, 10, reads) is ProbeOutcome.NOT_ACHIEVED


# ATTACK: a storage that freezes for 1.5 of 4 s at a load that it catches up with is Late, but Stalled, so Invalid: the
# load is repeated until a trial has no freeze, and that one counts. The line is that of the trials without freezes.
def test_a_trial_that_is_late_because_the_storage_froze_counts_as_broken() -> None:
    rate, t0 = 30, EPOCH
    documents = {}
    for client in (0, 1):
        document = offered_document(client, t0, rate, latency=1_000_000)
        assert document.measurement is not None
        cells = (float(rate), 0.0, 0.0, 3.0 * rate)
        latencies = [1_000_000] * (2 * rate) + [10**9] * (2 * rate)
        read = OperationSample(
            operation=Operation.READ,
            ios=4 * rate,
            bytes=4 * rate * 4096,
            latency=sample_of(latencies),
            cells=Cells(width_nanoseconds=SECOND, ios=cells, bytes=tuple(4096 * one for one in cells)),
        )
        measurement = document.measurement.model_copy(update={"operations": (read,)})
        documents[client] = document.model_copy(update={"measurement": measurement})
    p50 = SEARCH.model_copy(update={"objectives": (Objective(percentile="90", latency_microseconds=5_000),)})
    facts = TrialFacts(
        clients=(0, 1), runtime_seconds=4, ramp_seconds=1, t0_nanoseconds=t0, offer=Offer(search=p50, load=2 * rate)
    )
    numbers = measure_trial(facts, documents)
    print(numbers.probe, numbers.verdict, [(one.reason, one.verdict, one.message) for one in numbers.findings])
    assert numbers.probe is not None
    assert numbers.verdict is not Verdict.INVALID
    assert numbers.probe.outcome is ProbeOutcome.LATE


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


# ATTACK: one of 100 clients gets 51 % of its load, with all 64 operations in flight and 250 ms latency: Met and Valid,
# because shortfall, full depth and late operations are each under 1 % of the sum.
def test_a_client_whose_own_load_is_not_achieved_breaks_the_trial() -> None:
    documents = {client: offered_document(client, EPOCH, 500, latency=1_000_000) for client in range(99)}
    documents[99] = offered_document(99, EPOCH, 255, latency=250_000_000, full=1.0)
    facts = TrialFacts(
        clients=tuple(range(100)),
        runtime_seconds=4,
        ramp_seconds=1,
        t0_nanoseconds=EPOCH,
        offer=Offer(search=SEARCH, load=50_000),
    )
    numbers = measure_trial(facts, documents)
    print(numbers.probe, numbers.verdict, [(one.reason, one.message) for one in numbers.findings])
    assert numbers.probe is not None
    assert numbers.probe.outcome is not ProbeOutcome.MET or numbers.verdict is not Verdict.VALID
