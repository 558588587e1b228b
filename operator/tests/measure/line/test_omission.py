"""Arrivals that never came because the depth was full, and that no percentile shows."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plimsoll.api.line import LineSearch, Objective, Probe, ProbeOutcome, Vary
from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.api.operation import Latency, OperationResult, Rates
from plimsoll.api.result import Window
from plimsoll.measure.histogram import Histogram, bin_index
from plimsoll.measure.intake import Offer
from plimsoll.measure.line.observe import (
    ClientLoad,
    Observation,
    PartialLoad,
    observed,
    omitted_arrivals,
    outcome_of,
    probe_of,
)
from support.simulated_storage import poisson


@dataclass(frozen=True)
class Freezing:
    """A storage that answers after the same time, but completes nothing in some stretches of (start, end), seconds."""

    latency: float
    freezes: Sequence[tuple[float, float]]

    def answers(self, start: float) -> float:
        """Return when an operation completes that started at this time."""
        end = start + self.latency
        for begins, ends in self.freezes:
            if start < ends and end > begins:
                end += ends - max(begins, start)
        return end

    def late_share(self, arrivals: Sequence[float], limit: float) -> float:
        """Return the share of arrivals that a client with room for all of them finds late."""
        return sum(self.answers(arrival) - arrival > limit for arrival in arrivals) / len(arrivals)


@dataclass(frozen=True)
class Slowing:
    """A storage that answers more slowly in some stretches of (start, end), seconds."""

    latency: float
    slow: float
    stretches: Sequence[tuple[float, float]]

    def answers(self, start: float) -> float:
        """Return when an operation completes that started at this time."""
        return start + (self.slow if any(begins <= start < ends for begins, ends in self.stretches) else self.latency)


def queued_late_share(arrivals: Sequence[float], storage: Freezing | Slowing, depth: int, limit: float) -> float:
    """Return the share of arrivals that are late for a client that queues what finds the depth full."""
    in_flight: list[float] = []
    late = 0
    for arrival in arrivals:
        start = arrival if len(in_flight) < depth else max(arrival, heappop(in_flight))
        heappush(in_flight, storage.answers(start))
        late += storage.answers(start) - arrival > limit
    return late / len(arrivals)


@dataclass(frozen=True)
class Replay:
    """What a replay measured: the latencies in seconds, and the share of operations that filled the depth."""

    latencies: Sequence[float]
    full_share: float

    def operation(self, seconds: float) -> OperationResult:
        """Return it as the result of an operation."""
        nanoseconds = [round(1e9 * latency) for latency in self.latencies]
        counts: dict[int, int] = {}
        for value in nanoseconds:
            counts[bin_index(value)] = counts.get(bin_index(value), 0) + 1
        histogram, count = Histogram(counts=counts), len(nanoseconds)
        rates = Rates(iops=count / seconds, bytes_per_second=0)
        latency = Latency(
            kind=LatencyKind.FULL,
            count=count,
            mean_nanoseconds=sum(nanoseconds) / count,
            max_nanoseconds=max(nanoseconds),
            percentiles={"99": histogram.percentile(99) or 0},
            histogram=histogram.encode(),
        )
        return OperationResult(
            operation=Operation.READ,
            ios=count,
            bytes=0,
            rates=rates,
            whole_run=rates,
            sum_of_rates=rates,
            latency=latency,
        )


def replayed(arrivals: Sequence[float], storage: Freezing | Slowing, depth: int, seconds: float) -> Replay:
    """Replay arrivals until the time is over; each gap begins with the end of the submission before it."""
    in_flight: list[float] = []
    latencies, filled, now, before = [], 0, 0.0, 0.0
    for arrival in arrivals:
        now, before = now + arrival - before, arrival
        while in_flight and in_flight[0] <= now:
            heappop(in_flight)
        if len(in_flight) == depth:
            now = heappop(in_flight)
        if now >= seconds:
            break
        end = storage.answers(now)
        heappush(in_flight, end)
        latencies.append(end - now)
        filled += len(in_flight) == depth
    return Replay(latencies, filled / len(latencies))


SECONDS = 4.0
DEPTH = 64
LIMIT = 0.005
WINDOW = Window(
    start_nanoseconds=0,
    end_nanoseconds=int(SECONDS * 10**9),
    last_end_nanoseconds=int(SECONDS * 10**9),
    seconds=SECONDS,
    whole_seconds=SECONDS,
    spread_seconds=0,
    overlap=1,
)


def offer(load: float, percentile: str = "99", depth: int | None = DEPTH, limit: float = LIMIT) -> Offer:
    objective = Objective.model_validate({"percentile": percentile, "latency": f"{1e6 * limit:.0f}us"})
    return Offer(search=LineSearch(start=1, limit=10**6, objectives=(objective,)), load=load, depth=depth)


def arrivals(load: float, seed: int = 1) -> list[float]:
    return poisson(load, SECONDS, random.Random(seed))  # noqa: S311 - numbers, not secrets


def seen(found: Replay, asked: Offer, clients: int = 1, delayed: float = 0.0) -> Observation:
    operation = found.operation(SECONDS)
    client = ClientLoad(
        rate=asked.load / clients, in_flight=1, longest=0, depth_full_share=found.full_share, delayed=delayed
    )
    loads = [client] * clients
    observation = observed(asked, [operation], WINDOW, loads)
    assert observation is not None
    return observation


def outcome(found: Replay, asked: Offer, delayed: float = 0.0) -> ProbeOutcome:
    return outcome_of(seen(found, asked, delayed=delayed), asked.objectives)


def every(period: float, length: float) -> list[tuple[float, float]]:
    """Return freezes of a length that begin once in a period."""
    return [(period / 2 + number * period, period / 2 + number * period + length) for number in range(99)]


@pytest.mark.parametrize(("period", "length"), [(2.0, 0.1), (1.0, 0.06), (0.8, 0.04)])
def test_freezes_that_few_operations_see_break_a_load(period: float, length: float) -> None:
    """Each is seen by no more operations than the depth permits: less than 1 %, although 4 % of the time is frozen."""
    storage, due = Freezing(0.0005, every(period, length)), arrivals(10_000)
    found = replayed(due, storage, DEPTH, SECONDS)
    assert storage.late_share(due, LIMIT) > 0.025
    assert found.full_share < 0.002
    assert sum(latency > LIMIT for latency in found.latencies) < 0.0095 * len(found.latencies)
    assert outcome(found, offer(10_000)) is ProbeOutcome.DEPTH_FULL
    assert outcome(found, offer(10_000, depth=None)) is ProbeOutcome.MET, "otherwise it would have been met"


def test_a_single_pause_that_fills_the_depth_does_not_break_a_load() -> None:
    storage, due = Freezing(0.0005, [(1.0, 1.02)]), arrivals(10_000)
    found = replayed(due, storage, DEPTH, SECONDS)
    assert found.full_share > 0
    assert storage.late_share(due, LIMIT) < 0.01
    assert outcome(found, offer(10_000)) is ProbeOutcome.MET


def test_how_much_may_be_missing_depends_on_the_percentile() -> None:
    storage = Freezing(0.0005, [(1.0, 1.02)])
    found = replayed(arrivals(10_000), storage, DEPTH, SECONDS)
    strict = offer(10_000, "99.9")
    known = found.operation(SECONDS)
    percentiles = {"99.9": 1_000_000}
    shown = known.model_copy(update={"latency": known.latency.model_copy(update={"percentiles": percentiles})})
    client = ClientLoad(rate=10_000, in_flight=1, longest=0, depth_full_share=found.full_share)
    observation = observed(strict, [shown], WINDOW, [client])
    assert observation is not None
    assert outcome_of(observation, strict.objectives) is ProbeOutcome.DEPTH_FULL


def test_a_slow_client_of_a_storage_that_never_filled_the_depth_is_no_freeze() -> None:
    """A client that gets no processor for a while sees what is in flight late, and offers less."""
    storage, due = Freezing(0.0005, []), arrivals(8_000)
    found = replayed(due, storage, DEPTH, SECONDS)
    late = Replay([*found.latencies[:-100], *[0.5] * 100], 0.0)
    assert outcome(late, offer(10_000)) is ProbeOutcome.MET


def test_no_more_is_missing_than_was_not_achieved() -> None:
    """A tail of slow operations on a storage that keeps up hides nothing."""
    found = replayed(arrivals(10_000), Freezing(0.0005, []), DEPTH, SECONDS)
    tail = Replay([*found.latencies[:-300], *[0.4] * 300], 0.001)
    assert outcome(tail, offer(len(tail.latencies) / SECONDS)) is ProbeOutcome.MET
    assert outcome(tail, offer(1.1 * len(tail.latencies) / SECONDS)) is ProbeOutcome.DEPTH_FULL


def test_each_client_has_a_depth_of_its_own() -> None:
    """The same freezes in one of ten clients hide a tenth of what they would hide in all."""
    frozen = replayed(arrivals(1_000, 1), Freezing(0.0005, [(1.0, 2.5)]), DEPTH, SECONDS)
    fine = [replayed(arrivals(1_000, seed), Freezing(0.0005, []), DEPTH, SECONDS) for seed in range(2, 11)]
    together = Replay([one for each in (frozen, *fine) for one in each.latencies], frozen.full_share)
    assert sum(latency > LIMIT for latency in together.latencies) < 0.01 * len(together.latencies)
    observation = seen(together, offer(10_000), clients=10)
    assert observation.omits_arrivals, "1.5 of 40 s of clients"
    short = replayed(arrivals(1_000, 1), Freezing(0.0005, [(1.0, 1.2)]), DEPTH, SECONDS)
    together = Replay([one for each in (short, *fine) for one in each.latencies], short.full_share)
    assert not seen(together, offer(10_000), clients=10).omits_arrivals


def test_a_storage_that_stands_still_for_most_of_a_trial_is_no_client_that_offers_too_little() -> None:
    found = replayed(arrivals(10_000), Freezing(0.0005, [(1.0, 9.0)]), DEPTH, SECONDS)
    assert len(found.latencies) < SECONDS * 10_000 / 3
    assert outcome(found, offer(10_000)) is ProbeOutcome.DEPTH_FULL


def test_what_is_in_flight_at_the_end_was_offered() -> None:
    """A storage that completes a third of what arrives, in a trial too short to fill its depth."""
    found = Replay([0.2 * number for number in range(60)], 0.0)
    observation = seen(found, offer(45))
    assert observation.whole.achieved < 45 / 2
    assert outcome(found, offer(45)) is not ProbeOutcome.NOT_OFFERED


@settings(max_examples=25, deadline=None)
@given(
    load=st.sampled_from([2_000, 6_000, 10_000]),
    period=st.floats(0.2, 3),
    share=st.floats(0.03, 0.3),
    depth=st.sampled_from([16, 32, 64]),
    seed=st.integers(0, 99),
)
@example(load=2_000, period=3.0, share=0.03125, depth=64, seed=6)
def test_what_many_late_arrivals_would_see_is_never_met(
    load: int, period: float, share: float, depth: int, seed: int
) -> None:
    """Except for as many as chance made arrive beyond those that were offered: so many missing ones are not noticed."""
    storage, due = Freezing(0.0005, every(period, share * period)), arrivals(load, seed)
    found = replayed(due, storage, depth, SECONDS)
    beyond_offered = max(0.0, len(due) - SECONDS * load) / len(due)
    if storage.late_share(due, LIMIT) > 0.012 + beyond_offered:
        assert outcome(found, offer(load, depth=depth)) is not ProbeOutcome.MET


@pytest.mark.parametrize(("load", "slow", "limit", "length"), [(10_000, 0.095, 0.1, 0.4), (2_000, 0.19, 0.2, 0.4)])
def test_what_a_slow_storage_keeps_from_arriving_breaks_a_load(
    load: int, slow: float, limit: float, length: float
) -> None:
    """No operation is later than permitted, since those that would have queued never came."""
    storage, due = Slowing(0.0005, slow, [(1.0, 1.0 + length)]), arrivals(load)
    found = replayed(due, storage, DEPTH, SECONDS)
    assert max(found.latencies) < limit
    assert found.full_share < 0.01
    assert queued_late_share(due, storage, DEPTH, limit) > 0.04
    assert outcome(found, offer(load, limit=limit)) is ProbeOutcome.DEPTH_FULL


def test_a_full_depth_does_not_explain_what_submissions_do() -> None:
    """A twentieth of the operations takes longer than places would have to become free in; but they did."""
    found = replayed(arrivals(10_000), Freezing(0.0005, []), DEPTH, SECONDS)
    tail = Replay([*found.latencies[:-2_000], *[0.02] * 2_000], 0.001)
    offered = offer(1.08 * len(tail.latencies) / SECONDS, limit=0.025)
    assert outcome(tail, offered, delayed=0.08) is ProbeOutcome.MET
    assert outcome(tail, offered, delayed=0.02) is ProbeOutcome.DEPTH_FULL


def test_a_freeze_counts_as_long_as_it_was_although_the_last_bin_is_open() -> None:
    found = replayed(arrivals(10_000), Freezing(0.0005, []), DEPTH, SECONDS)
    frozen = Replay([*found.latencies[:-DEPTH], *[40.0] * DEPTH], 0.001)
    asked = offer(1.05 * len(frozen.latencies) / SECONDS)
    rate = replace(asked, load=10.0)
    whole = PartialLoad(offered=1_100, achieved=1_000, operations=10_000)
    client = ClientLoad(rate=1_000, in_flight=1, longest=0)
    waited = omitted_arrivals(rate, [frozen.operation(SECONDS)], whole, [client], asked.objectives[0])
    assert waited == pytest.approx(10 * 39.995, rel=0.01)


@pytest.mark.parametrize(("late_writes", "expected"), [(48, ProbeOutcome.DEPTH_FULL), (20, ProbeOutcome.MET)])
def test_each_operation_of_a_mix_has_its_part_of_what_is_missing(late_writes: int, expected: ProbeOutcome) -> None:
    """An objective holds for the writes too, of which there are few."""
    sizes = {Operation.READ: (94_467, 58), Operation.WRITE: (4_973, late_writes)}
    loads = [
        Replay([*[0.0005] * (count - late), *[0.5] * late], 0.001)
        .operation(SECONDS)
        .model_copy(update={"operation": operation})
        for operation, (count, late) in sizes.items()
    ]
    asked = replace(offer(25_000), shares={Operation.READ: 0.95, Operation.WRITE: 0.05})
    client = ClientLoad(rate=25_000, in_flight=1, longest=0, depth_full_share=0.001)
    observation = observed(asked, loads, WINDOW, [client])
    assert observation is not None
    assert outcome_of(observation, asked.objectives) is expected


def test_what_a_full_depth_hides_breaks_the_load_that_was_offered() -> None:
    found = replayed(arrivals(10_000), Freezing(0.0005, every(2.0, 0.1)), DEPTH, SECONDS)
    record = probe_of(offer(10_000), seen(found, offer(10_000)), Verdict.VALID)
    assert isinstance(record, Probe)
    assert (record.offered, record.outcome) == (10_000, ProbeOutcome.DEPTH_FULL)
    assert record.achieved is not None
    assert record.achieved < 10_000


def test_a_depth_that_is_varied_is_always_full_and_omits_nothing() -> None:
    found = replayed(arrivals(10_000), Freezing(0.0005, every(2.0, 0.1)), DEPTH, SECONDS)
    asked = offer(5)
    assert asked.search is not None
    closed = replace(asked, search=asked.search.model_copy(update={"vary": Vary.DEPTH}))
    assert not seen(found, closed).omits_arrivals
