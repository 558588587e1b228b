import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.names import LatencyKind
from plimsoll.api.operation import Latency
from plimsoll.measure.histogram import (
    PERCENTILES,
    Histogram,
    HistogramError,
    bin_index,
    bin_midpoint,
    histogram_of,
    merge_latencies,
)
from plimsoll.measure.sample import LatencySample

MILLISECOND = 10**6
clients_values = st.lists(st.lists(st.integers(1, 10**10), min_size=1, max_size=60), min_size=1, max_size=12)


def sample(values: list[int]) -> LatencySample:
    counts: dict[int, int] = {}
    for value in values:
        counts[bin_index(value)] = counts.get(bin_index(value), 0) + 1
    return LatencySample(
        kind=LatencyKind.FULL,
        count=len(values),
        mean_nanoseconds=statistics.fmean(values),
        standard_deviation_nanoseconds=statistics.stdev(values) if len(values) > 1 else None,
        min_nanoseconds=min(values),
        max_nanoseconds=max(values),
        histogram=Histogram(counts=counts).encode(),
    )


@given(clients_values)
def test_moments_equal_those_of_all_values_together(clients: list[list[int]]) -> None:
    pooled = [value for values in clients for value in values]
    latency = merge_latencies(map(sample, clients))
    assert latency.count == len(pooled)
    assert latency.mean_nanoseconds == pytest.approx(statistics.fmean(pooled), rel=1e-9)
    deviation = pytest.approx(statistics.stdev(pooled), rel=1e-6, abs=1) if len(pooled) > 1 else None
    assert latency.standard_deviation_nanoseconds == deviation
    assert (latency.min_nanoseconds, latency.max_nanoseconds) == (min(pooled), max(pooled))


@given(clients_values)
def test_merging_trials_equals_merging_their_clients(clients: list[list[int]]) -> None:
    whole = merge_latencies(map(sample, clients))
    trials = [merge_latencies([sample(values)]) for values in clients]
    merged = merge_latencies(trials)
    assert (merged.count, merged.histogram, merged.percentiles) == (whole.count, whole.histogram, whole.percentiles)
    assert merged.mean_nanoseconds == pytest.approx(whole.mean_nanoseconds)
    assert merged.standard_deviation_nanoseconds == pytest.approx(whole.standard_deviation_nanoseconds)


def test_one_client_keeps_its_own_numbers() -> None:
    only = sample([1000, 2000, 4000])
    latency = merge_latencies([only])
    assert latency.mean_nanoseconds == only.mean_nanoseconds
    assert latency.standard_deviation_nanoseconds == pytest.approx(only.standard_deviation_nanoseconds)
    assert latency.histogram is not None
    assert Histogram.decode(latency.histogram).total == 3


def test_all_of_twelve_clients_count() -> None:
    latency = merge_latencies(sample([client * MILLISECOND] * 100) for client in range(1, 13))
    assert latency.count == 1200
    assert latency.max_nanoseconds == 12 * MILLISECOND
    assert latency.mean_nanoseconds == pytest.approx(6.5 * MILLISECOND)


def test_mean_is_weighted_by_operations() -> None:
    latency = merge_latencies([sample([MILLISECOND] * 900), sample([11 * MILLISECOND] * 100)])
    assert latency.mean_nanoseconds == pytest.approx(2 * MILLISECOND)


def test_merged_percentile_is_not_the_mean_of_percentiles() -> None:
    fast, slow = sample([MILLISECOND] * 1000), sample([100 * MILLISECOND] * 1000)
    merged = merge_latencies([fast] * 9 + [slow])
    own = [merge_latencies([part]).percentiles["99"] for part in [fast] * 9 + [slow]]
    assert merged.percentiles["99"] == bin_midpoint(bin_index(100 * MILLISECOND))
    assert statistics.fmean(own) < 0.12 * merged.percentiles["99"]


@pytest.mark.parametrize(
    ("count", "keys"),
    [
        (19, []),
        (20, ["50"]),
        (199, ["50", "90"]),
        (999, ["50", "90", "95"]),
        (1000, ["50", "90", "95", "99"]),
        (9_999, ["50", "90", "95", "99"]),
        (10_000, ["50", "90", "95", "99", "99.9"]),
        (100_000, ["50", "90", "95", "99", "99.9", "99.99"]),
    ],
)
def test_percentiles_need_ten_operations_beyond_them(count: int, keys: list[str]) -> None:
    assert list(merge_latencies([sample([5000] * count)]).percentiles) == keys
    assert set(keys) <= set(map(str, PERCENTILES))


def test_nothing_gives_nothing_rather_than_extremes() -> None:
    for latency in (merge_latencies([]), merge_latencies([LatencySample(kind=LatencyKind.FULL)])):
        assert latency.count == 0
        assert latency.mean_nanoseconds is latency.min_nanoseconds is latency.max_nanoseconds is None
        assert latency.percentiles == {}


def test_idle_client_does_not_disturb_the_others() -> None:
    busy = sample([1000] * 50)
    assert merge_latencies([LatencySample(kind=LatencyKind.FULL), busy]) == merge_latencies([busy])


def test_as_much_is_known_as_of_the_part_known_least() -> None:
    full = sample([1000] * 50)
    mean = LatencySample(
        kind=LatencyKind.MEAN_ONLY, count=50, mean_nanoseconds=3000, min_nanoseconds=1, max_nanoseconds=9000
    )
    none = LatencySample(kind=LatencyKind.NONE, count=7)
    latency = merge_latencies([full, mean])
    assert (latency.kind, latency.histogram, latency.percentiles) == (LatencyKind.MEAN_ONLY, None, {})
    assert (latency.mean_nanoseconds, latency.max_nanoseconds) == (2000, 9000)
    assert latency.standard_deviation_nanoseconds is None
    assert merge_latencies([full, mean, none]) == Latency(kind=LatencyKind.NONE, count=107)


@pytest.mark.parametrize("histogram", [None, "fio-plat-9-9:x", "", Histogram(counts={3: 4}).encode()])
def test_histogram_that_does_not_hold_the_operations_gives_no_percentile(histogram: str | None) -> None:
    good = sample([1000] * 5000)
    bad = good.model_copy(update={"histogram": histogram})
    with pytest.raises(HistogramError):
        histogram_of(bad)
    latency = merge_latencies([good, bad])
    assert (latency.kind, latency.percentiles) == (LatencyKind.MEAN_ONLY, {})
    assert latency.mean_nanoseconds == pytest.approx(1000)
    assert math.isfinite(latency.standard_deviation_nanoseconds or 0)


def test_latency_without_operations_needs_no_histogram() -> None:
    assert histogram_of(LatencySample(kind=LatencyKind.FULL)).total == 0
    assert histogram_of(sample([5])).total == 1


def test_percentile_beyond_the_histogram_is_absent() -> None:
    latency = merge_latencies([sample([MILLISECOND] * 1000 + [60_000 * MILLISECOND] * 200)])
    assert list(latency.percentiles) == ["50"]
    assert latency.max_nanoseconds == 60_000 * MILLISECOND


def test_a_tool_that_knows_only_the_longest_operation_claims_no_mean() -> None:
    longest = [LatencySample(kind=LatencyKind.MAX_ONLY, count=count, max_nanoseconds=count) for count in (7, 9)]
    expected = Latency(kind=LatencyKind.MAX_ONLY, count=16, max_nanoseconds=9)
    assert merge_latencies(longest) == expected
    assert merge_latencies([merge_latencies([one]) for one in longest]) == expected
    with_means = merge_latencies([*longest, sample([1000] * 3)])
    assert with_means == Latency(kind=LatencyKind.MAX_ONLY, count=19, max_nanoseconds=1000)
    assert not LatencyKind.MAX_ONLY.has_mean
