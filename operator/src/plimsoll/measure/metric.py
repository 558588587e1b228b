"""What metrics are of trials, and which values can be judged: the same for summaries, comparisons and hypotheses.

A missing value is missing, never 0. It is not missing by chance: fast trials lack rates, because a tool could not time
them, and slow ones lack percentiles, because too few operations completed. The others would be a selection, so a metric
has a value at a point only if every trial that counts has one.
"""

import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

from plimsoll.api.names import LatencyKind, Metric, Operation
from plimsoll.api.operation import OperationResult
from plimsoll.api.result import Trial
from plimsoll.measure.histogram import MINIMUM_BEYOND
from plimsoll.measure.rates import counts_operations

MINIMUM_TRIALS = 3
"""Trials, or runs, on each side; the deviation of two is nearly meaningless."""

T = TypeVar("T")


class PartialOperation(OperationResult):
    """An operation that only some trials of a run have, in the trial that stands for the run: it has no values."""


def operations_of(trials: Iterable[Trial]) -> list[Operation]:
    """Return the operations that any trial has, in the order of `Operation`."""
    done = {result.operation for trial in trials for result in trial.operations}
    return [operation for operation in Operation if operation in done]


def results_of(trials: Iterable[Trial], operation: Operation) -> list[OperationResult | None]:
    """Return the result of each trial; None of a trial without this operation."""
    return [
        next(
            (
                result
                for result in trial.operations
                if result.operation is operation and not isinstance(result, PartialOperation)
            ),
            None,
        )
        for trial in trials
    ]


def values_of(trials: Iterable[Trial], operation: Operation, metric: Metric) -> list[float | None]:
    """Return the value of each trial; None where it is missing."""
    return [None if result is None else _value(result, metric) for result in results_of(trials, operation)]


def _value(result: OperationResult, metric: Metric) -> float | None:
    if metric.percentile:
        return result.latency.percentiles.get(metric.percentile)
    if metric is Metric.MEAN:
        return result.latency.mean_nanoseconds
    if not is_reported([result], metric):
        return None
    return result.rates.bytes_per_second if metric is Metric.BYTES else result.rates.iops


def is_reported(results: Iterable[OperationResult], metric: Metric) -> bool:
    """Whether the tool reports a metric, as far as any of these results shows."""
    if metric.percentile:
        return any(result.latency.kind is LatencyKind.FULL for result in results)
    if metric is Metric.MEAN:
        return any(result.latency.kind.has_mean for result in results)
    if metric is Metric.BYTES:
        return any(result.bytes or not result.ios for result in results)
    return any(counts_operations(result.rates.iops, result.rates.bytes_per_second) for result in results)


def complete(values: Sequence[T | None]) -> list[T] | None:
    """Return the values of all trials; None if a trial lacks its value, or there are no trials."""
    present = [value for value in values if value is not None]
    return present if present and len(present) == len(values) else None


def problem_of(values: Sequence[float | None], metric: Metric, where: str) -> str:
    """Return why the values of trials, `of the candidate`, have no geometric mean; empty if they have one."""
    present = [value for value in values if value is not None]
    if missing := len(values) - len(present):
        beyond = f", or has fewer than {MINIMUM_BEYOND} results beyond the percentile" if metric.percentile else ""
        why = f"its operation is absent, was too fast to be timed{beyond}"
        return f"{metric} is missing in {missing} of {len(values)} trials {where}: {why}; measure for longer"
    if odd := sum(not math.isfinite(value) for value in present):
        return f"{metric} is not a finite number in {odd} of {len(values)} trials {where}; check these trials"
    if low := sum(value <= 0 for value in present):
        what = f"{'0 or less' if min(present) < 0 else '0'} in {low} of {len(values)} trials {where}"
        return f"{metric} is {what}, so it has no logarithm; check these trials"
    return ""
