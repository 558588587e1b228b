"""What comparisons compare: metrics, and the points of two runs that match."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from plimsoll.api.names import Metric, Operation
from plimsoll.api.result import BenchmarkResult, Trial
from plimsoll.measure.attempts import reasons_text
from plimsoll.measure.summary import is_reported, results_of

COMPARED = (Metric.IOPS, Metric.BYTES, Metric.MEAN, Metric.P50, Metric.P99, Metric.P999, Metric.DURING, Metric.RECOVERY)
"""The metrics of trials that comparisons show, in their order; any of them may gate."""
DEFAULT_GATES = frozenset({Metric.IOPS, Metric.P99})
"""Bytes, and in a closed loop the mean latency, follow from operations: they would only make all tests stricter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionRule:
    """Which changes matter."""

    rate: float = 0.05  # the tolerated decrease of a rate, as a part of the baseline's: 0.05
    latency: float = 0.1  # the tolerated increase of a latency
    # The metrics that decide; the others are only reported. The line of a search always decides.
    gates: frozenset[Metric] = field(default=DEFAULT_GATES)

    def threshold(self, metric: Metric) -> float:
        """Return the tolerated change for the worse, as a part of the baseline."""
        return self.rate if metric.is_rate else self.latency

    def log_threshold(self, metric: Metric) -> float:
        """Return the tolerated change as a difference of logarithms."""
        return -math.log1p(-self.rate) if metric.is_rate else math.log1p(self.latency)


def worsening(metric: Metric, log_change: float) -> float:
    """Convert a change of the logarithm to a change for the worse, and vice versa."""
    return -log_change if metric.is_rate else log_change


def gates_of(rule: RegressionRule, trials: Sequence[Trial], operation: Operation) -> frozenset[Metric]:
    """Return the metrics that decide about these trials.

    Operations per second are replaced by the median of the latency where the workload sets their rate, as in all of
    these trials, and by bytes if the tool does not count operations.
    """
    results = [result for result in results_of(trials, operation) if result is not None]
    if Metric.IOPS not in rule.gates or not results:
        return rule.gates
    if all(trial.load for trial in trials) and is_reported(results, Metric.P50):
        return rule.gates - {Metric.IOPS} | {Metric.P50}
    return rule.gates if is_reported(results, Metric.IOPS) else rule.gates - {Metric.IOPS} | {Metric.BYTES}


def operation_text(operation: Operation, metric: Metric) -> str:
    """Return an operation for a column or a field; the line is one of all operations together."""
    return "all" if metric is Metric.LINE else operation.value


def first_attempts_text(what: str, first: str, counted: str, spoiled: Sequence[Trial] = ()) -> str:
    """Return that first attempts, of which the storage spoiled these, show something worse than those that count."""
    why = f" ({reasons_text(spoiled)})" if spoiled else ""
    return (
        f"the storage spoiled first attempts{why}, and with them the {what} is {first}; the attempts that count alone "
        f"show {counted}"
    )


class RepeatsError(ValueError):
    """Runs do not count as repetitions: they measured different things, or are the same run; the message says which."""


def check_distinct(runs: Iterable[Sequence[BenchmarkResult]]) -> None:
    """Raise RepeatsError if a result is given twice, or a run's results are in several of these runs."""
    numbers: dict[str, int] = {}
    points: set[tuple[str, str]] = set()
    for number, run in enumerate(runs):
        for result in run:
            point = (result.spec.run_uid, result.spec.point)
            if numbers.setdefault(result.spec.run_uid, number) != number or point in points:
                name = f"{result.metadata.namespace}/{result.spec.run}"
                raise RepeatsError(f"run {name} is given more than once; name each run once")
            points.add(point)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two results of the same point."""

    baseline: BenchmarkResult
    candidate: BenchmarkResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """The points of two runs in the order of the baseline, those matched by name last, and the unmatched ones."""

    pairs: tuple[Pair, ...]
    baseline_only: tuple[BenchmarkResult, ...]
    candidate_only: tuple[BenchmarkResult, ...]


Identity = tuple[str, int]
"""What a point is: workload, tool, parameters, number of clients, and whether its line is a storm line; and its place
among those that are equal."""


def match_points(
    baseline: Sequence[BenchmarkResult], candidate: Sequence[BenchmarkResult], *, also_by_name: bool = False
) -> Matching:
    """Match points by workload, tool, parameters and number of clients, calm lines and storm lines apart.

    With `also_by_name` the remaining points are matched by name, to compare what differs on purpose. RepeatsError if a
    side has a result twice.
    """
    for side in (baseline, candidate):
        check_distinct([side])
    pairs, ours, theirs = _matched(by_identity(baseline), by_identity(candidate))
    if also_by_name:
        named, ours, theirs = _matched(*({result.spec.point: result for result in side} for side in (ours, theirs)))
        pairs += named
    return Matching(pairs=tuple(pairs), baseline_only=tuple(ours), candidate_only=tuple(theirs))


def _matched(
    baseline: Mapping[Any, BenchmarkResult], candidate: Mapping[Any, BenchmarkResult]
) -> tuple[list[Pair], list[BenchmarkResult], list[BenchmarkResult]]:
    return (
        [Pair(baseline=result, candidate=candidate[key]) for key, result in baseline.items() if key in candidate],
        [result for key, result in baseline.items() if key not in candidate],
        [result for key, result in candidate.items() if key not in baseline],
    )


def by_identity(results: Iterable[BenchmarkResult]) -> dict[Identity, BenchmarkResult]:
    """Return the results of a run by what their points are."""
    identified: dict[Identity, BenchmarkResult] = {}
    numbers = Counter[str]()
    for result in results:
        spec = result.spec
        # An absent parameter and a null are the same: the API server drops nulls.
        parameters: dict[str, JsonValue] = {key: value for key, value in spec.parameters.items() if value is not None}
        is_storm = spec.calm is not None
        text = json.dumps([spec.workload, spec.tool, parameters, spec.clients, is_storm], sort_keys=True)
        identified[text, numbers[text]] = result
        numbers[text] += 1
    return identified
