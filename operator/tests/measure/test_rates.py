import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.api.names import LatencyKind, Operation
from plimsoll.api.operation import OperationResult
from plimsoll.measure.rates import rate_text, rates_of
from plimsoll.measure.sample import Cells, LatencySample, OperationSample
from plimsoll.measure.timeline import NANOSECONDS, Interval, Share, common_interval, covering

SECOND = NANOSECONDS
BLOCK = 4096


def share(start: int, runtime: int, ios: int, cells: list[float] | None, width: int = SECOND) -> Share:
    series = None
    if cells is not None:
        series = Cells(width_nanoseconds=width, ios=tuple(cells), bytes=tuple(cell * BLOCK for cell in cells))
    sample = OperationSample(
        operation=Operation.WRITE,
        ios=ios,
        bytes=ios * BLOCK,
        latency=LatencySample(kind=LatencyKind.NONE),
        cells=series,
    )
    return Share(sample=sample, interval=Interval(start=start, end=start + runtime))


def uniform(start: int, runtime: int, ios: int, width: int = SECOND) -> Share:
    edges = [*range(0, runtime, width), runtime]
    cells = [ios * (after - before) / runtime for before, after in pairwise(edges)]
    return share(start, runtime, ios, cells, width)


def measure(shares: list[Share]) -> OperationResult:
    intervals = [item.interval for item in shares]
    whole = covering(intervals)
    assert whole is not None
    return rates_of(shares, common=common_interval(intervals), whole=whole)


uniform_clients = st.lists(
    st.builds(
        uniform,
        start=st.integers(0, 20 * SECOND),
        runtime=st.integers(30 * SECOND, 90 * SECOND),
        ios=st.integers(0, 10**8),
        width=st.sampled_from([SECOND // 2, SECOND, 2 * SECOND]),
    ),
    min_size=1,
    max_size=8,
)


@given(uniform_clients)
def test_steady_clients_give_the_exact_headline_whatever_their_skew(clients: list[Share]) -> None:
    truth = sum(client.sample.ios * SECOND / client.interval.length for client in clients)
    result = measure(clients)
    assert result.rates.iops == pytest.approx(truth, rel=1e-9, abs=6e-4)
    assert result.rates.bytes_per_second == pytest.approx(truth * BLOCK, rel=1e-9, abs=0.51)
    assert result.sum_of_rates.iops == pytest.approx(truth, rel=1e-9, abs=6e-4)
    assert result.whole_run.iops <= result.sum_of_rates.iops + 1e-3
    if result.bias is not None:
        assert result.bias == pytest.approx(0, abs=1e-6)


def saturated(starts: list[int], runtime: int, capacity: float) -> list[Share]:
    """Make clients that share a capacity, in operations per nanosecond, with the others that run."""
    edges = sorted({*starts, *(start + runtime for start in starts)})
    # How many run between two edges.
    shared = [
        (before, after, running)
        for before, after in pairwise(edges)
        if (running := sum(other <= before and after <= other + runtime for other in starts))
    ]

    def done(start: int, until: int) -> float:
        """Integrate a client's part of the capacity from its start."""
        amount = 0.0
        for before, after, running in shared:
            if before < until and start < after:
                amount += (min(after, until) - max(before, start)) * capacity / running
        return amount

    clients = []
    for start in starts:
        marks = [*range(start, start + runtime, SECOND), start + runtime]
        total = round(done(start, start + runtime))
        cells = [done(start, after) - done(start, before) for before, after in pairwise(marks)]
        # The totals of a client are whole operations.
        cells[-1] += total - math.fsum(cells)
        clients.append(share(start, runtime, total, cells))
    return clients


@given(st.lists(st.integers(0, 30 * SECOND), min_size=2, max_size=8))
@settings(deadline=None)  # slow under load, not stuck
def test_saturated_cluster_is_measured_right_where_the_sum_of_rates_overstates_it(starts: list[int]) -> None:
    runtime, capacity = 300 * SECOND, 1e-4
    result = measure(saturated(starts, runtime, capacity))
    truth = capacity * SECOND
    spread = max(starts) - min(starts)
    assert result.rates.iops == pytest.approx(truth, rel=0.005)
    assert result.whole_run.iops == pytest.approx(truth, rel=0.0001)
    assert result.sum_of_rates.iops == pytest.approx(truth * (1 + spread / runtime), rel=0.0001)
    assert result.bias == pytest.approx(spread / runtime, abs=0.006)


def test_ten_seconds_of_skew_in_sixty_inflate_the_sum_of_rates_by_a_sixth() -> None:
    result = measure(saturated([0, 10 * SECOND], 60 * SECOND, 1e-4))
    assert result.rates.iops == 100_000
    assert result.sum_of_rates.iops == pytest.approx(116_667, abs=1)
    assert result.bias == pytest.approx(1 / 6, abs=1e-4)


def test_stall_inside_the_window_counts_as_time() -> None:
    stalled = share(0, 4 * SECOND, 200, [100, 0, 0, 100])
    assert measure([stalled]).rates.iops == 50


def test_cut_cells_count_pro_rata_and_the_last_over_its_own_length() -> None:
    client = share(0, 3 * SECOND + SECOND // 2, 350, [100, 100, 100, 50])
    window = Interval(start=SECOND // 4, end=3 * SECOND + SECOND // 4)
    assert client.within(window).ios == 75 + 200 + 25
    assert client.within(window).bytes == 300 * BLOCK


def test_client_without_a_series_counts_with_its_mean_rate() -> None:
    client = share(0, 10 * SECOND, 1000, None)
    assert client.curve is None
    assert client.within(Interval(start=SECOND, end=4 * SECOND)).ios == 300


@pytest.mark.parametrize(
    ("cells", "ios"),
    [
        ([100.0, 100.0], 200),
        ([100.0, 100.0, 100.0, 50.0, 0.0], 350),
        ([100.0, 100.0, 100.0, 49.0], 350),
        ([100.0, 150.0, 150.0, -50.0], 350),
        ([100.0, 100.0, 100.0, math.nan], 350),
        ([100.0, 100.0, 100.0, math.inf], 350),
        ([], 0),
    ],
)
def test_series_that_cannot_be_reconciled_is_not_used(cells: list[float], ios: int) -> None:
    client = share(0, 3 * SECOND + SECOND // 2, ios, cells)
    assert client.curve is None
    window = Interval(start=0, end=SECOND)
    assert client.within(window).ios == pytest.approx(ios / 3.5)


@pytest.mark.parametrize("width", [0, -1, 1, 10**18])
def test_width_without_meaning_is_survived(width: int) -> None:
    client = share(0, SECOND, 10, [4.0, 6.0], width=width)
    assert client.curve is None
    assert client.within(Interval(start=0, end=SECOND)).ios == 10


def test_without_a_window_the_whole_run_is_the_headline() -> None:
    clients = [share(0, 10 * SECOND, 1000, None), share(5 * SECOND, 15 * SECOND, 1000, None)]
    result = rates_of(clients, common=None, whole=Interval(start=0, end=20 * SECOND))
    assert result.rates == result.whole_run
    assert result.rates.iops == 100
    assert result.sum_of_rates.iops == 166.667
    assert result.bias == pytest.approx(2 / 3)


def test_nothing_in_the_window_has_no_bias() -> None:
    clients = [share(0, SECOND, 10, [10.0]), share(5 * SECOND, SECOND, 10, [10.0])]
    result = measure(clients)
    assert (result.rates.iops, result.bias) == (0, None)
    assert result.sum_of_rates.iops == 20


def test_all_of_twelve_clients_count() -> None:
    assert measure([uniform(0, 60 * SECOND, 600 * client) for client in range(1, 13)]).rates.iops == 780


@pytest.mark.parametrize(("ios", "rate"), [(151, 2.517), (149, 2.483), (1, 0.016667)])
def test_slow_operations_keep_their_decimals(ios: int, rate: float) -> None:
    result = measure([share(0, 60 * SECOND, ios, None)])
    assert (result.rates.iops, result.whole_run.iops, result.sum_of_rates.iops) == (rate, rate, rate)


@pytest.mark.parametrize(
    ("rate", "half_width", "text"),
    [
        (0, None, "0"),
        (2.517, None, "2.52"),
        (0.0167, 0.004, "0.0167 ± 0.0040"),
        (25.17, 1.26, "25.2 ± 1.3"),
        (251.7, 12.6, "252 ± 13"),
        (1_234_567.8, 123_456.4, "1,234,568 ± 123,456"),
    ],
)
def test_rates_for_people_have_three_digits(rate: float, half_width: float | None, text: str) -> None:
    assert rate_text(rate, half_width) == text


def phase(start: int, runtime: int, ios: int) -> Share:
    """One client's share of an operation with its own time, within a longer measurement."""
    whole = share(start, runtime, ios, None)
    return Share(sample=whole.sample.model_copy(update={"runtime": runtime}), interval=whole.interval)


def test_a_phase_is_divided_by_its_own_time_and_not_by_that_of_the_trial() -> None:
    clients = [phase(0, 10 * SECOND, 1000), phase(0, 20 * SECOND, 1000)]
    found = rates_of(clients, common=None, whole=Interval(start=0, end=100 * SECOND))
    assert found.rates.iops == 2000 / 20
    assert found.whole_run.iops == 2000 / 20
    assert found.sum_of_rates.iops == 1000 / 10 + 1000 / 20
    assert found.ios == 2000


def test_an_operation_without_its_own_time_took_the_whole_trial() -> None:
    clients = [share(0, 10 * SECOND, 1000, None), share(0, 20 * SECOND, 1000, None)]
    found = rates_of(clients, common=None, whole=Interval(start=0, end=100 * SECOND))
    assert found.rates.iops == 2000 / 100
