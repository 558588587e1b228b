"""What metrics are of trials, and which values are missing."""

import math

import pytest

from plimsoll.api.names import LatencyKind, Metric, Operation
from plimsoll.api.operation import OperationResult, Rates
from plimsoll.measure.compare.values import RegressionRule, gates_of
from plimsoll.measure.summary import complete, is_reported, operations_of, problem_of, results_of, values_of
from support.results import BLOCK, MILLISECOND, measured, operation_at, trial

READ, WRITE = Operation.READ, Operation.WRITE
ONLY_BYTES = operation_at(1, kind=READ).model_copy(update={"ios": 0, "rates": Rates(iops=0, bytes_per_second=BLOCK)})
ONLY_OPERATIONS = operation_at(100, block=0, kind=READ)


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        (Metric.IOPS, 1000),
        (Metric.BYTES, 1000 * BLOCK),
        (Metric.MEAN, 1.5 * MILLISECOND),
        (Metric.P50, MILLISECOND),
        (Metric.P99, 5 * MILLISECOND),
        (Metric.P9999, None),
    ],
)
def test_the_value_of_a_metric(metric: Metric, value: float | None) -> None:
    assert values_of([trial(0, measured(1000, p99=5 * MILLISECOND))], READ, metric) == [value]


@pytest.mark.parametrize(
    ("result", "metric", "value"),
    [
        (ONLY_BYTES, Metric.IOPS, None),
        (ONLY_BYTES, Metric.BYTES, BLOCK),
        (ONLY_OPERATIONS, Metric.IOPS, 100),
        (ONLY_OPERATIONS, Metric.BYTES, None),
        (operation_at(0, kind=READ), Metric.IOPS, 0),
    ],
)
def test_what_a_tool_does_not_count_is_missing_and_what_it_did_not_do_is_0(
    result: OperationResult, metric: Metric, value: float | None
) -> None:
    assert values_of([trial(0, result)], READ, metric) == [value]


def test_an_operation_that_a_trial_lacks_is_missing() -> None:
    trials = [trial(0, measured(1000)), trial(1, measured(500, operation=WRITE))]
    assert operations_of(trials) == [READ, WRITE]
    assert [result and result.operation for result in results_of(trials, WRITE)] == [None, WRITE]
    assert values_of(trials, WRITE, Metric.IOPS) == [None, 500]


@pytest.mark.parametrize(
    ("kind", "reported"),
    [
        (LatencyKind.FULL, {Metric.MEAN, Metric.P99}),
        (LatencyKind.MEAN_ONLY, {Metric.MEAN}),
        (LatencyKind.MAX_ONLY, set()),
        (LatencyKind.NONE, set()),
    ],
)
def test_which_latencies_a_tool_reports(kind: LatencyKind, reported: set[Metric]) -> None:
    result = operation_at(100, kind=READ, latency=kind)
    assert {metric for metric in (Metric.MEAN, Metric.P99) if is_reported([result], metric)} == reported


@pytest.mark.parametrize(
    ("result", "gates", "expected"),
    [
        (ONLY_BYTES, {Metric.IOPS, Metric.P99}, {Metric.BYTES, Metric.P99}),
        (ONLY_BYTES, {Metric.P99}, {Metric.P99}),
        (ONLY_OPERATIONS, {Metric.IOPS, Metric.P99}, {Metric.IOPS, Metric.P99}),
    ],
)
def test_bytes_decide_in_place_of_operations_that_a_tool_does_not_count(
    result: OperationResult, gates: set[Metric], expected: set[Metric]
) -> None:
    assert gates_of(RegressionRule(gates=frozenset(gates)), [trial(0, result)], READ) == expected


def test_values_are_complete_only_if_every_trial_has_one() -> None:
    assert complete([1, 2.5]) == [1, 2.5]
    assert complete([0, 0]) == [0, 0]
    assert complete([1, None]) is None
    assert complete([]) is None


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([1.0, 2.0], ""),
        ([1.0, None], "iops is missing in 1 of 2 trials of it: its operation is absent, was too fast to be timed,"),
        ([1.0, math.nan], "iops is not a finite number in 1 of 2 trials of it;"),
        ([1.0, math.inf], "iops is not a finite number in 1 of 2 trials of it;"),
        ([0.0, 0.0], "iops is 0 in 2 of 2 trials of it, so it has no logarithm;"),
        ([-1.0, 0.0], "iops is 0 or less in 2 of 2 trials of it, so it has no logarithm;"),
    ],
)
def test_why_values_have_no_geometric_mean(values: list[float | None], problem: str) -> None:
    found = problem_of(values, Metric.IOPS, "of it")
    assert found.startswith(problem)
    assert bool(found) == bool(problem)


def test_each_metric_has_a_name_a_unit_and_a_direction() -> None:
    assert [metric for metric in Metric if metric.is_rate] == [Metric.BYTES, Metric.IOPS, Metric.DURING, Metric.LINE]
    assert {metric.unit for metric in Metric if not metric.is_rate} == {"nanoseconds"}
    assert [metric.words for metric in Metric if not metric.percentile] == [
        "throughput",
        "IOPS",
        "mean latency",
        "IOPS during the disturbance",
        "time to recover",
        "line",
    ]
    assert Metric.P999.words == "p99.9 latency"
