"""What a trial shows of the load that it was offered."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.line import LineSearch, Objective, ProbeOutcome, Vary
from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.api.result import Latency, OperationResult, Rates, Window
from plimsoll.measure.line.observation import Observation, observed, outcome_of, probe_of, tolerated_shortfall
from plimsoll.measure.line.offer import Offer

P99 = Objective(percentile="99", latency_microseconds=5_000)
P50 = Objective(percentile="50", latency_microseconds=1_000)
MET = Observation(
    vary=Vary.RATE,
    offered=1000,
    achieved=1000,
    operations=60_000,
    depth_full_share=0.0,
    latencies=(4_000_000, 900_000),
)
RATE = Offer(search=LineSearch(start=100, limit=10_000, objectives=(P99, P50)), load=1000)
DEPTH = Offer(search=RATE.search.model_copy(update={"vary": Vary.DEPTH}), load=64)
WINDOW = Window(
    start_nanoseconds=0,
    end_nanoseconds=60 * 10**9,
    last_end_nanoseconds=60 * 10**9,
    seconds=60,
    whole_seconds=60,
    spread_seconds=0,
    overlap=1,
)


def judged(**changes: object) -> ProbeOutcome:
    return outcome_of(replace(MET, **changes), [P99, P50])  # type: ignore[arg-type] # names vary


def operation(
    name: Operation = Operation.READ,
    *,
    iops: float = 1000,
    count: int = 60_000,
    mean: float | None = 1e6,
    kind: LatencyKind = LatencyKind.FULL,
    percentiles: dict[str, int] | None = None,
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
            max_nanoseconds=10**7,
            percentiles={"99": 4_000_000, "50": 900_000} if percentiles is None else percentiles,
        ),
    )


def test_all_objectives_must_hold() -> None:
    assert judged() is ProbeOutcome.MET
    assert judged(latencies=(5_000_000, 1_000_000)) is ProbeOutcome.MET
    assert judged(latencies=(5_000_001, 900_000)) is ProbeOutcome.LATE
    assert judged(latencies=(4_000_000, 1_000_001)) is ProbeOutcome.LATE
    assert judged(latencies=(math.inf, 900_000)) is ProbeOutcome.LATE


@pytest.mark.parametrize(
    ("operations", "achieved", "is_achieved"),
    [
        (60_000, 988, True),  # 3/sqrt(60000) = 1.22 %
        (60_000, 987.5, False),
        (1_000_000, 990, True),  # 3/sqrt(N) = 0.3 %: 1 % is larger
        (1_000_000, 989.9, False),
        (900, 900, True),  # 10 %
        (900, 899.9, False),
    ],
)
def test_an_offer_is_achieved_up_to_one_percent_or_three_deviations(
    operations: int,
    achieved: float,
    is_achieved: bool,  # noqa: FBT001 - a case
) -> None:
    expected = ProbeOutcome.MET if is_achieved else ProbeOutcome.NOT_ACHIEVED
    assert judged(operations=operations, achieved=achieved) is expected


def test_operations_that_found_the_depth_full_started_late_whatever_their_latency() -> None:
    assert judged(depth_full_share=0.0099) is ProbeOutcome.MET
    assert judged(depth_full_share=0.01) is ProbeOutcome.DEPTH_FULL
    assert judged(depth_full_share=0.01, achieved=900) is ProbeOutcome.NOT_ACHIEVED


def test_without_the_share_of_full_depth_latencies_that_hold_prove_nothing() -> None:
    assert judged(depth_full_share=None) is ProbeOutcome.UNKNOWN
    assert judged(depth_full_share=None, achieved=900) is ProbeOutcome.NOT_ACHIEVED
    assert judged(depth_full_share=None, latencies=(6_000_000, 900_000)) is ProbeOutcome.LATE


def test_an_unknown_percentile_leaves_the_outcome_unknown_unless_the_load_broke_anyway() -> None:
    assert judged(latencies=(None, 900_000)) is ProbeOutcome.UNKNOWN
    assert judged(latencies=(None, 2_000_000)) is ProbeOutcome.LATE
    assert judged(latencies=(None, 900_000), achieved=10) is ProbeOutcome.NOT_ACHIEVED


def test_only_an_open_loop_can_be_overloaded() -> None:
    assert not MET.is_overloaded
    assert replace(MET, achieved=900).is_overloaded
    assert replace(MET, depth_full_share=0.5).is_overloaded
    assert not replace(MET, latencies=(math.inf, math.inf)).is_overloaded
    assert not replace(MET, vary=Vary.DEPTH, achieved=900).is_overloaded


def test_each_objective_needs_its_latency() -> None:
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        judged(latencies=(1,))


def test_nothing_completed_is_not_achieved() -> None:
    assert judged(operations=0, achieved=0, latencies=(None, None)) is ProbeOutcome.NOT_ACHIEVED


@given(st.integers(1, 10**9))
def test_more_operations_tolerate_no_larger_shortfall(operations: int) -> None:
    assert tolerated_shortfall(operations + 1) <= tolerated_shortfall(operations)
    assert tolerated_shortfall(operations) == max(0.01, 3 / operations**0.5)


def test_a_rate_is_that_of_all_operations_without_syncs() -> None:
    found = observed(
        RATE,
        [operation(iops=700), operation(Operation.WRITE, iops=290), operation(Operation.SYNC, iops=50, percentiles={})],
        WINDOW,
        0.25,
    )
    assert found is not None
    assert (found.achieved, found.operations, found.depth_full_share) == (990, 59_400, 0.25)
    assert found.latencies == [4_000_000, 900_000]


def test_each_operation_has_to_meet_each_objective() -> None:
    late = operation(Operation.WRITE, percentiles={"99": 7_000_000, "50": 100})
    found = observed(RATE, [operation(), late], WINDOW, 0.0)
    assert found is not None
    assert found.latencies == [7_000_000, 900_000]


def test_a_percentile_beyond_the_end_of_the_histogram_is_late_and_one_of_few_operations_unknown() -> None:
    enough = observed(RATE, [operation(percentiles={"50": 900_000}, count=1000)], WINDOW, 0.0)
    few = observed(RATE, [operation(percentiles={"50": 900_000}, count=999)], WINDOW, 0.0)
    untimed = observed(RATE, [operation(percentiles={}, kind=LatencyKind.MEAN_ONLY)], WINDOW, 0.0)
    assert enough is not None
    assert enough.latencies == [math.inf, 900_000]
    assert few is not None
    assert few.latencies == [None, 900_000]
    assert untimed is not None
    assert untimed.latencies == [None, None]


def test_an_unknown_percentile_of_one_operation_does_not_hide_that_another_is_late() -> None:
    unknown = operation(Operation.WRITE, percentiles={"50": 900_000}, count=10)
    late = operation(percentiles={"99": 6_000_000, "50": 900_000})
    assert (one := observed(RATE, [operation(), unknown], WINDOW, 0.0)) is not None
    assert one.latencies == [None, 900_000]
    assert (one := observed(RATE, [late, unknown], WINDOW, 0.0)) is not None
    assert one.latencies == [6_000_000, 900_000]


def test_a_depth_is_the_mean_number_of_operations_in_flight() -> None:
    found = observed(DEPTH, [operation(iops=32_000, mean=1.5e6), operation(Operation.WRITE, iops=15_500)], WINDOW, None)
    assert found is not None
    assert found.achieved == pytest.approx(63.5)
    assert found.operations == 47_500 * 60
    assert outcome_of(found, DEPTH.search.objectives) is ProbeOutcome.MET
    # 48 instead of 64 is less than the pauses between operations explain.
    few = observed(DEPTH, [operation(iops=48_000)], WINDOW, None)
    assert few is not None
    assert outcome_of(few, DEPTH.search.objectives) is ProbeOutcome.NOT_ACHIEVED


def test_a_tool_that_needs_time_between_operations_of_a_fast_device_achieves_its_depth() -> None:
    single = replace(DEPTH, load=1)
    found = observed(single, [operation(iops=50_000, mean=12e3)], WINDOW, None)
    assert found is not None
    assert found.achieved == pytest.approx(0.6)
    assert not found.is_achieved  # 40 % is more than a quarter
    found = observed(single, [operation(iops=50_000, mean=15.5e3)], WINDOW, None)
    assert found is not None
    assert found.is_achieved


@pytest.mark.parametrize("window", [None, WINDOW.model_copy(update={"seconds": 0.0})])
def test_nothing_is_observed_without_a_time_in_which_all_clients_measured(window: Window | None) -> None:
    assert observed(RATE, [operation()], window, 0.0) is None
    assert observed(RATE, [], WINDOW, 0.0) is None
    assert observed(DEPTH, [operation(mean=None)], WINDOW, None) is None


def test_a_trial_without_trustworthy_numbers_has_an_unknown_outcome() -> None:
    broken = replace(MET, achieved=500)
    record = probe_of(RATE, broken, Verdict.VALID)
    assert (record.offered, record.achieved, record.depth_full_percent) == (1000, 500, 0)
    assert record.outcome is ProbeOutcome.NOT_ACHIEVED
    assert probe_of(RATE, broken, Verdict.SUSPECT).outcome is ProbeOutcome.NOT_ACHIEVED
    invalid = probe_of(RATE, broken, Verdict.INVALID)
    assert (invalid.achieved, invalid.outcome) == (500, ProbeOutcome.UNKNOWN)
    aborted = probe_of(RATE)
    assert (aborted.offered, aborted.achieved, aborted.outcome) == (1000, None, ProbeOutcome.UNKNOWN)
