"""The noise floor of a measurement: the smallest change that could be detected.

It comes from the trials of one run, or of several repeated runs (A/A). Differences between the runs are noise as well,
and often the larger part. They are separate from the scatter within a run because more trials do not reduce them.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import NormalDist

from pydantic import field_serializer

from plimsoll.api.model import Model
from plimsoll.api.names import Operation
from plimsoll.api.result import BenchmarkResult
from plimsoll.measure.compare.between import components_of
from plimsoll.measure.compare.family import ALONE
from plimsoll.measure.compare.inference import Between, detectable_change
from plimsoll.measure.compare.metrics import OF_TRIALS, Metric, RegressionRule, gates_of, operation_text, values_of
from plimsoll.measure.compare.searches import LINES, lines_between, operation_of, side_of_line
from plimsoll.measure.compare.sides import Side, noise_note, side_of
from plimsoll.measure.summary import counted


class MetricNoise(Model):
    """The noise of one metric of one operation.

    Attributes:
        operation: in documents `all` if the metric is the line, which is one of all operations together.
        side: over all trials that count; for several runs, its deviation is that of trials of different runs.
        within: standard deviation of the logarithms within a run; absent if unknown.
        between: the same between the means of runs, without what the scatter within them explains; absent for one run.
        runs: the number of runs behind `between`; 0 for one run.
        detectable: the smallest change for the worse that would be significant in about 80 % of comparisons of this
            point alone, as a part of the baseline; absent if unknown.
        threshold: the change that matters, likewise.
        note: that the metric is ungateable, and what to do; empty if it is not.

    """

    operation: Operation
    metric: Metric
    gates: bool
    side: Side
    within: float | None = None
    between: float | None = None
    runs: int = 0
    detectable: float | None = None
    threshold: float
    note: str = ""

    @field_serializer("operation", when_used="json")
    def _operation_text(self, operation: Operation) -> str:
        return operation_text(operation, self.metric)


def noise_of(results: Sequence[BenchmarkResult], rule: RegressionRule, trials: int) -> tuple[MetricNoise, ...]:
    """Return the noise of every metric of a point, from all its results, for comparisons with that many trials a side.

    That of a search is the error of its line, whatever the number of trials is.

    Raises:
        ValueError: for fewer than two trials a side.

    """
    if trials < 2:  # noqa: PLR2004 - one trial has no deviation
        raise ValueError(f"a comparison needs at least 2 trials on each side, not {trials}")
    if any(result.spec.line is not None for result in results):
        return tuple(_noise_of_line(results, rule))
    runs = [counted(result.status.trials) for result in results]
    good = [trial for run in runs for trial in run]
    done = {result.operation for trial in good for result in trial.operations}
    found = []
    for operation in (one for one in Operation if one in done):
        gates = gates_of(rule, good, operation)
        for metric in OF_TRIALS:
            values = [values_of(run, operation, metric) for run in runs]
            if any(value is not None for run in values for value in run):
                found.append(_noise(operation, metric, values, replace(rule, gates=gates), trials))
    return tuple(found)


def _noise(
    operation: Operation, metric: Metric, values: Sequence[Sequence[float | None]], rule: RegressionRule, trials: int
) -> MetricNoise:
    side, components = side_of([value for run in values for value in run]), components_of(values)
    between = components.between if components else None
    # Without components, the scatter of several runs is not that within one run.
    alone = side.deviation if len(values) == 1 else None
    within = components.within if components else alone
    if components:
        side = side.model_copy(update={"deviation": components.whole})
    return MetricNoise(
        operation=operation,
        metric=metric,
        gates=metric in rule.gates,
        side=side,
        within=within,
        between=math.sqrt(between.variance) if between else None,
        runs=between.runs if between else 0,
        detectable=None if within is None else _for_the_worse(metric, within, trials, between),
        threshold=rule.threshold(metric),
        note=noise_note(side, metric, rule),
    )


def _noise_of_line(results: Sequence[BenchmarkResult], rule: RegressionRule) -> Iterator[MetricNoise]:
    """Yield the noise of a line, from the mean error of these searches; nothing if none has an interval."""
    sides = [side for side in map(side_of_line, results) if side.mean is not None and side.deviation is not None]
    if not sides:
        return
    within = math.sqrt(math.fsum((side.deviation or 0) ** 2 for side in sides) / len(sides))
    between = lines_between(results)
    mean = math.fsum(side.mean or 0 for side in sides) / len(sides)
    whole = math.hypot(within, math.sqrt(between.variance)) if between else within
    change = (NormalDist().inv_cdf(1 - LINES) + NormalDist().inv_cdf(_POWER)) * math.sqrt(2) * whole
    yield MetricNoise(
        operation=operation_of(results),
        metric=Metric.LINE,
        gates=True,
        side=Side(trials=sum(side.trials for side in sides), mean=mean, deviation=whole),
        within=within,
        between=math.sqrt(between.variance) if between else None,
        runs=between.runs if between else 0,
        detectable=-math.expm1(-change),
        threshold=rule.threshold(Metric.LINE),
    )


def _for_the_worse(metric: Metric, deviation: float, trials: int, between: Between | None) -> float:
    """Return the detectable change as a part of the baseline."""
    change = detectable_change(deviation, trials, between, 1 - 2 * ALONE.of(metric))
    return -math.expm1(-change) if metric.is_rate else math.expm1(min(change, _MOST))


_POWER = 0.8
_MOST = 100.0
"""The largest logarithm; its exponential is still finite."""
