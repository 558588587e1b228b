"""What a trial shows of the load that it was offered."""

import math
from dataclasses import replace

import pytest

from plimsoll.api.line import LineSearch, Objective, ProbeOutcome, Vary
from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.api.operation import Latency, OperationResult, Rates
from plimsoll.api.result import Window
from plimsoll.measure.histogram import Histogram, bin_index
from plimsoll.measure.intake import Offer
from plimsoll.measure.line.observe import ClientLoad, Observation, PartialLoad, observed, outcome_of, probe_of

P99 = Objective(percentile="99", latency="5ms")
P50 = Objective(percentile="50", latency="1ms")
MET = Observation(
    vary=Vary.RATE,
    whole=PartialLoad(offered=1000, achieved=1000, operations=60_000),
    depth_full_share=0.0,
    latencies=(4_000_000, 900_000),
)
SEARCH = LineSearch(start=100, limit=10_000, objectives=(P99, P50))
RATE = Offer(search=SEARCH, load=1000)
DEPTH = Offer(search=SEARCH.model_copy(update={"vary": Vary.DEPTH}), load=64)
WINDOW = Window(
    start_nanoseconds=0,
    end_nanoseconds=60 * 10**9,
    last_end_nanoseconds=60 * 10**9,
    seconds=60,
    whole_seconds=60,
    spread_seconds=0,
    overlap=1,
)


def judged(achieved: float = 1000, **changes: object) -> ProbeOutcome:
    changed = {"whole": replace(MET.whole, achieved=achieved), **changes}
    return outcome_of(replace(MET, **changed), [P99, P50])  # type: ignore[arg-type] # names vary


def of_clients(*shares: float | None) -> list[ClientLoad]:
    """Return clients that share the load evenly, with these shares of full depth."""
    return [ClientLoad(rate=1000 / len(shares), in_flight=1, longest=0.001, depth_full_share=share) for share in shares]


def observation(*operations: OperationResult, full: float | None = 0.0, offer: Offer | None = None) -> Observation:
    """Return what one client shows."""
    found = observed(offer or RATE, operations, WINDOW, of_clients(full))
    assert found is not None
    return found


def operation(
    name: Operation = Operation.READ,
    *,
    iops: float = 1000,
    count: int = 60_000,
    mean: float | None = 1e6,
    kind: LatencyKind = LatencyKind.FULL,
    percentiles: dict[str, int] | None = None,
    longest: int = 10**7,
) -> OperationResult:
    rates = Rates(iops=iops, bytes_per_second=4096)
    return OperationResult(
        operation=name,
        ios=count,
        bytes=4096 * count,
        rates=rates,
        whole_run=rates,
        sum_of_rates=rates,
        latency=Latency(
            kind=kind,
            count=count,
            mean_nanoseconds=mean,
            max_nanoseconds=longest,
            percentiles={"99": 4_000_000, "50": 900_000} if percentiles is None else percentiles,
        ),
    )


def test_all_objectives_must_hold() -> None:
    assert judged() is ProbeOutcome.MET
    assert judged(latencies=(5_000_000, 1_000_000)) is ProbeOutcome.MET
    assert judged(latencies=(5_000_001, 900_000)) is ProbeOutcome.LATE
    assert judged(latencies=(4_000_000, 1_000_001)) is ProbeOutcome.LATE
    assert judged(latencies=(math.inf, 900_000)) is ProbeOutcome.LATE


def test_operations_that_found_the_depth_full_started_late_whatever_their_latency() -> None:
    assert judged(depth_full_share=0.0099) is ProbeOutcome.MET
    assert judged(depth_full_share=0.01) is ProbeOutcome.DEPTH_FULL
    assert judged(depth_full_share=0.01, achieved=900) is ProbeOutcome.DEPTH_FULL


def test_without_the_share_of_full_depth_latencies_that_hold_prove_nothing() -> None:
    assert judged(depth_full_share=None) is ProbeOutcome.UNKNOWN
    assert judged(depth_full_share=None, achieved=900) is ProbeOutcome.NOT_ACHIEVED
    assert judged(depth_full_share=None, latencies=(6_000_000, 900_000)) is ProbeOutcome.LATE


def test_an_unknown_percentile_leaves_the_outcome_unknown_unless_the_load_broke_anyway() -> None:
    assert judged(latencies=(None, 900_000)) is ProbeOutcome.UNKNOWN
    assert judged(latencies=(None, 2_000_000)) is ProbeOutcome.LATE
    assert judged(latencies=(None, 900_000), depth_full_share=0.5) is ProbeOutcome.DEPTH_FULL


def test_each_objective_needs_its_latency() -> None:
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        judged(latencies=(1,))


def test_what_clients_did_not_offer_was_not_asked_of_the_storage() -> None:
    assert judged(achieved=700) is ProbeOutcome.MET
    assert judged(achieved=499) is ProbeOutcome.NOT_OFFERED
    assert judged(achieved=501, latencies=(6_000_000, 900_000)) is ProbeOutcome.LATE
    late = judged(achieved=280, latencies=(380_000_000, 900_000))
    assert late is ProbeOutcome.NOT_OFFERED, "observed where fio got a sixth of a processor, on a device in memory"
    assert judged(achieved=280, unfinished=230, latencies=(380_000_000, 900_000)) is ProbeOutcome.LATE
    assert judged(achieved=280, omits_arrivals=True) is ProbeOutcome.NOT_OFFERED
    assert judged(achieved=280, unfinished=230, omits_arrivals=True) is ProbeOutcome.DEPTH_FULL
    assert judged(achieved=0, latencies=(None, None)) is ProbeOutcome.NOT_OFFERED
    assert judged(achieved=900, latencies=(None, None)) is ProbeOutcome.UNKNOWN
    assert judged(achieved=0, latencies=(None, None), depth_full_share=None) is ProbeOutcome.NOT_ACHIEVED


def test_a_part_that_fell_short_breaks_the_trial() -> None:
    good, bad = (
        PartialLoad(offered=500, achieved=500, operations=30_000),
        PartialLoad(offered=500, achieved=480, operations=30_000),
    )
    missing = replace(bad, achieved=200)
    assert judged(parts=(good, bad), depth_full_share=None) is ProbeOutcome.NOT_ACHIEVED
    assert [judged(parts=(good, part)) for part in (good, bad)] == [ProbeOutcome.MET] * 2
    assert judged(parts=(good, missing)) is ProbeOutcome.NOT_OFFERED


def test_chance_alone_is_no_client_that_offers_less_than_half() -> None:
    """Of 100 clients that are each offered 15 operations, some get 7 or fewer in most trials."""
    few = [PartialLoad(offered=5, achieved=got / 3, operations=15) for got in (15, 7, 5, *[15] * 97)]
    assert judged(parts=few) is ProbeOutcome.MET
    none = [PartialLoad(offered=5, achieved=got / 3, operations=15) for got in (15, 0, *[15] * 98)]
    assert judged(parts=none) is ProbeOutcome.NOT_OFFERED


def test_submissions_that_block_break_a_load_that_was_not_achieved() -> None:
    """A device with room for fewer operations than the depth never lets it fill."""
    assert judged(achieved=800, blocks=True) is ProbeOutcome.NOT_ACHIEVED
    assert judged(achieved=400, blocks=True) is ProbeOutcome.NOT_ACHIEVED
    late = judged(achieved=400, blocks=True, latencies=(6_000_000, 900_000))
    assert late is ProbeOutcome.NOT_ACHIEVED, "it broke at what was offered, not at what it completed"
    assert judged(achieved=1000, blocks=True) is ProbeOutcome.MET
    assert judged(vary=Vary.DEPTH, depth_full_share=None, blocks=True) is ProbeOutcome.MET


@pytest.mark.parametrize(
    ("rate", "blocked", "is_blocked"),
    [
        pytest.param(800, 0.19, True, id="blocking explains what is missing"),
        pytest.param(400, 0.58, True, id="most of the time"),
        pytest.param(375, 0.497, True, id="observed on a device with room for 4 of 64 operations"),
        pytest.param(950, 0.05, False, id="too little to tell it from what submissions cost"),
        pytest.param(385, 0.26, False, id="observed where fio got a third of a processor"),
        pytest.param(9000, 0.001, False, id="what submissions cost is the client's"),
    ],
)
def test_a_client_is_blocked_if_that_explains_what_is_missing(
    rate: float,
    blocked: float,
    is_blocked: bool,  # noqa: FBT001 - a case
) -> None:
    client = ClientLoad(rate=rate, in_flight=1, longest=0.001, blocked=blocked)
    assert client.is_blocked(10_000 if rate > 1000 else 1000) is is_blocked


def test_a_few_operations_show_that_a_percentile_is_too_high_but_not_what_it_is() -> None:
    slow, fast = bin_index(6_000_000), bin_index(1_000_000)
    for late, expected in ((300, math.inf), (20, math.inf), (19, None), (0, None)):
        counts = {fast: 318 - late, slow: late}
        histogram = Histogram(counts={index: count for index, count in counts.items() if count}).encode()
        one = operation(percentiles={"50": 900_000}, count=318)
        known = one.model_copy(update={"latency": one.latency.model_copy(update={"histogram": histogram})})
        assert observation(known).latencies == [expected, 900_000]


def test_a_depth_that_is_full_breaks_the_load_before_latencies_do() -> None:
    """What a saturated storage completes is no load that arrived: it may be far below what the storage carries."""
    assert judged(achieved=300, depth_full_share=0.9, latencies=(60_000_000, 900_000)) is ProbeOutcome.DEPTH_FULL


def test_a_rate_is_that_of_all_operations_without_syncs() -> None:
    sync = operation(Operation.SYNC, iops=50, percentiles={})
    found = observation(operation(iops=700), operation(Operation.WRITE, iops=290), sync, full=0.25)
    assert (found.whole.achieved, found.whole.operations, found.depth_full_share) == (990, 60_000, 0.25)
    assert found.latencies == [4_000_000, 900_000]


def test_each_operation_has_to_meet_each_objective() -> None:
    found = observation(operation(), operation(Operation.WRITE, percentiles={"99": 7_000_000, "50": 100}))
    assert found.latencies == [7_000_000, 900_000]


def test_a_percentile_beyond_the_end_of_the_histogram_is_late_and_one_of_few_operations_unknown() -> None:
    assert observation(operation(percentiles={"50": 900_000}, count=1000)).latencies == [math.inf, 900_000]
    assert observation(operation(percentiles={"50": 900_000}, count=999)).latencies == [None, 900_000]
    assert observation(operation(percentiles={}, kind=LatencyKind.MEAN_ONLY)).latencies == [None, None]


def test_an_unknown_percentile_of_one_operation_does_not_hide_that_another_is_late() -> None:
    unknown = operation(Operation.WRITE, percentiles={"50": 900_000}, count=10)
    late = operation(percentiles={"99": 6_000_000, "50": 900_000})
    assert observation(operation(), unknown).latencies == [None, 900_000]
    assert observation(late, unknown).latencies == [6_000_000, 900_000]


@pytest.mark.parametrize("count", [0, 1, 5, 8])
def test_a_storage_that_completes_next_to_nothing_did_not_achieve_the_load(count: int) -> None:
    """The number of operations that completed must not decide how many may be missing."""
    found = observation(operation(iops=count / 60, count=count, percentiles={}), full=None)
    assert outcome_of(found, RATE.objectives) is ProbeOutcome.NOT_ACHIEVED


def is_mix_achieved(reads: float, writes: float | None) -> bool:
    """Return whether these are what is left of 950 reads and 50 writes per second that were offered."""
    mix = replace(RATE, shares={Operation.READ: 0.95, Operation.WRITE: 0.05})
    done = [operation(iops=reads)]
    if writes is not None:
        done.append(operation(Operation.WRITE, iops=writes, count=round(60 * writes)))
    return observation(*done, offer=mix).is_achieved


def test_each_operation_of_a_mix_has_to_achieve_its_share() -> None:
    assert is_mix_achieved(950, 50)
    assert is_mix_achieved(952, 47.5), "3000 writes scatter by 2 %"
    assert not is_mix_achieved(955, 45)
    assert not is_mix_achieved(990, 0)
    assert not is_mix_achieved(990, None)


def test_how_many_of_each_operation_are_in_flight_is_up_to_the_storage() -> None:
    mix = replace(DEPTH, shares={Operation.READ: 0.5, Operation.WRITE: 0.5})
    slow, fast = operation(iops=20_000, mean=3e6), operation(Operation.WRITE, iops=20_000, mean=2e5)
    assert observation(slow, fast, offer=mix).is_achieved


def test_each_client_has_to_achieve_its_part() -> None:
    fast, slow = ClientLoad(rate=505, in_flight=1, longest=0.001), ClientLoad(rate=470, in_flight=1, longest=0.001)
    assert observation(operation()).parts == ()
    found = observed(RATE, [operation()], WINDOW, [fast, slow])
    assert found is not None
    assert [part.achieved for part in found.parts] == [505, 470]
    assert not found.is_achieved
    found = observed(RATE, [operation()], WINDOW, [fast, replace(slow, rate=492)])
    assert found is not None
    assert found.is_achieved


def test_each_client_has_to_keep_its_depth() -> None:
    full, idle = (ClientLoad(rate=32_000, in_flight=depth, longest=0.01) for depth in (32, 24))
    for clients, is_achieved in (((full, full), True), ((full, idle), False)):
        found = observed(DEPTH, [operation(iops=64_000)], WINDOW, clients)
        assert found is not None
        assert found.is_achieved is is_achieved


@pytest.mark.parametrize(
    ("shares", "expected"),
    [((0.0, 0.02), 0.02), ((0.005, 0.0), 0.005), ((0.5, None), 0.5), ((0.005, None), None), ((None, None), None)],
)
def test_the_depth_is_full_if_that_of_one_client_is(
    shares: tuple[float | None, float | None], expected: float | None
) -> None:
    found = observed(RATE, [operation()], WINDOW, of_clients(*shares))
    assert found is not None
    assert found.depth_full_share == expected
    is_full = outcome_of(found, RATE.objectives) is ProbeOutcome.DEPTH_FULL
    assert is_full is (expected is not None and expected >= 0.01)


def test_a_depth_is_the_mean_number_of_operations_in_flight() -> None:
    found = observation(operation(iops=32_000, mean=1.5e6), operation(Operation.WRITE, iops=15_500), offer=DEPTH)
    assert found.whole.achieved == pytest.approx(63.5)
    assert found.whole.operations == 47_500 * 60
    assert found.depth_full_share is None
    assert outcome_of(found, DEPTH.objectives) is ProbeOutcome.MET
    # 48 instead of 64 is less than the pauses between operations explain.
    few = observation(operation(iops=47_900), offer=DEPTH)
    assert outcome_of(few, DEPTH.objectives) is ProbeOutcome.NOT_ACHIEVED


def test_a_tool_that_needs_time_between_operations_of_a_fast_device_achieves_its_depth() -> None:
    single = replace(DEPTH, load=1)
    found = observation(operation(iops=50_000, mean=12e3), offer=single)
    assert found.whole.achieved == pytest.approx(0.6)
    assert not found.is_achieved  # 40 % is more than a quarter
    assert observation(operation(iops=50_000, mean=15.5e3), offer=single).is_achieved


@pytest.mark.parametrize(("in_flight", "is_achieved"), [(6, False), (47, False), (49, True)])
def test_one_slow_operation_explains_no_more_than_a_quarter_of_an_empty_queue(
    in_flight: float,
    is_achieved: bool,  # noqa: FBT001 - a case
) -> None:
    slow = operation(iops=1000 * in_flight, longest=54 * 10**9)
    assert observation(slow, offer=DEPTH).is_achieved is is_achieved


@pytest.mark.parametrize("window", [None, WINDOW.model_copy(update={"seconds": 0.0})])
def test_nothing_is_observed_without_a_time_in_which_all_clients_measured(window: Window | None) -> None:
    assert observed(RATE, [operation()], window) is None
    assert observed(RATE, [], WINDOW) is None
    assert observed(DEPTH, [operation(mean=None)], WINDOW) is None


def test_a_trial_without_trustworthy_numbers_has_an_unknown_outcome() -> None:
    broken = replace(MET, whole=replace(MET.whole, achieved=500), depth_full_share=0.5)
    record = probe_of(RATE, broken, Verdict.VALID)
    assert (record.offered, record.achieved, record.depth_full_percent) == (1000, 500, 50)
    assert record.outcome is ProbeOutcome.DEPTH_FULL
    assert probe_of(RATE, broken, Verdict.SUSPECT).outcome is ProbeOutcome.DEPTH_FULL
    invalid = probe_of(RATE, broken, Verdict.INVALID)
    assert (invalid.achieved, invalid.outcome) == (500, ProbeOutcome.UNKNOWN)
    aborted = probe_of(RATE)
    assert (aborted.offered, aborted.achieved, aborted.outcome) == (1000, None, ProbeOutcome.UNKNOWN)
