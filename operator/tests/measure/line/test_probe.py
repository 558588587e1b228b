import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.line import Vary
from plimsoll.api.names import Verdict
from plimsoll.measure.line.probe import Objective, Observation, Probe, judge_probe, tolerated_shortfall

P99 = Objective(percentile=99, latency_nanoseconds=5_000_000)
P50 = Objective(percentile=50, latency_nanoseconds=1_000_000)
MET = Observation(
    vary=Vary.RATE,
    offered=1000,
    achieved=1000,
    operations=60_000,
    dropped_share=0.0,
    latencies=(4_000_000, 900_000),
    verdict=Verdict.VALID,
)


def judged(**changes: object) -> Probe:
    return judge_probe(replace(MET, **changes), [P99, P50])  # type: ignore[arg-type] # names vary


def test_all_objectives_must_hold() -> None:
    assert judged().is_broken is False
    assert judged(latencies=(5_000_000, 1_000_000)).is_broken is False
    assert judged(latencies=(5_000_001, 900_000)).met == (False, True)
    assert judged(latencies=(5_000_001, 900_000)).is_broken is True
    assert judged(latencies=(math.inf, 900_000)).is_broken is True


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
    assert judged(operations=operations, achieved=achieved).is_achieved is is_achieved
    assert judged(operations=operations, achieved=achieved).is_broken is not is_achieved


def test_an_offer_is_not_achieved_if_submissions_found_the_depth_full_whatever_the_latency() -> None:
    assert judged(dropped_share=0.0099).is_broken is False
    assert judged(dropped_share=0.01).is_broken is True


def test_a_depth_is_achieved_if_as_many_operations_were_in_flight() -> None:
    depth = replace(MET, vary=Vary.DEPTH, offered=64, achieved=63.5, dropped_share=None)
    assert judge_probe(depth, [P99, P50]).is_broken is False
    assert judge_probe(replace(depth, achieved=60), [P99, P50]).is_broken is True


def test_an_open_loop_without_the_share_of_full_depth_is_refused() -> None:
    with pytest.raises(ValueError, match="depth full must be known"):
        judged(dropped_share=None)


def test_each_objective_needs_its_latency() -> None:
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        judged(latencies=(1,))


def test_a_probe_whose_percentile_is_unknown_does_not_count_unless_it_broke() -> None:
    assert not judged(latencies=(None, 900_000)).counts
    assert judged(latencies=(None, 2_000_000)).counts
    assert judged(latencies=(None, 900_000), achieved=10).counts


def test_an_invalid_probe_does_not_count() -> None:
    assert not judged(verdict=Verdict.INVALID).counts
    assert judged(verdict=Verdict.SUSPECT).counts


def test_nothing_completed_is_not_achieved() -> None:
    assert judged(operations=0, achieved=0, latencies=(None, None)).is_broken is True


@given(st.integers(1, 10**9))
def test_more_operations_tolerate_no_larger_shortfall(operations: int) -> None:
    assert tolerated_shortfall(operations + 1) <= tolerated_shortfall(operations)
    assert tolerated_shortfall(operations) == max(0.01, 3 / operations**0.5)


@pytest.mark.parametrize(("percentile", "latency"), [(0, 1), (100.1, 1), (99, 0)])
def test_an_impossible_objective_is_refused(percentile: float, latency: int) -> None:
    with pytest.raises(ValueError, match=r"percentile|latency"):
        Objective(percentile=percentile, latency_nanoseconds=latency)
