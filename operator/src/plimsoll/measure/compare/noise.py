"""The noise floor of a measurement: how small a change could be found at all.

From the trials of one run, or of several runs of the same (A/A), whose trials then count as one sample: what differs
between the runs is noise as well, and often the larger part of it.
"""

import math
from collections.abc import Sequence

from plimsoll.api.model import Model
from plimsoll.api.names import Operation
from plimsoll.api.result import BenchmarkResult
from plimsoll.measure.compare.inference import detectable_change
from plimsoll.measure.compare.metrics import Metric, Rule, values_of
from plimsoll.measure.compare.sides import Side, noise_note, side_of
from plimsoll.measure.summary import counted


class MetricNoise(Model):
    """The noise of one metric of one operation.

    Attributes:
        side: over all trials that count.
        detectable: the smallest change for the worse that would be found significant in about 80 % of comparisons, as
            a part of the baseline; absent if the trials do not tell.
        threshold: the change that matters, likewise.
        note: that it is ungateable, and what to do; empty if it is not.

    """

    operation: Operation
    metric: Metric
    gates: bool
    side: Side
    detectable: float | None = None
    threshold: float
    note: str = ""


def noise_of(results: Sequence[BenchmarkResult], rule: Rule, trials: int) -> tuple[MetricNoise, ...]:
    """Return the noise of every metric of one point, from all its results, for comparisons of that many trials a side.

    Raises:
        ValueError: for less than two trials a side.

    """
    if trials < 2:  # noqa: PLR2004 - of one trial there is no deviation
        raise ValueError(f"a comparison needs at least 2 trials on each side, not {trials}")
    good = [trial for result in results for trial in counted(result.status.trials)]
    done = {result.operation for trial in good for result in trial.operations}
    found = []
    for operation in (one for one in Operation if one in done):
        for metric in Metric:
            values = values_of(good, operation, metric)
            if any(value is not None for value in values):
                found.append(_noise(operation, metric, side_of(values), rule, trials))
    return tuple(found)


def _noise(operation: Operation, metric: Metric, side: Side, rule: Rule, trials: int) -> MetricNoise:
    return MetricNoise(
        operation=operation,
        metric=metric,
        gates=metric in rule.gates,
        side=side,
        detectable=None if side.deviation is None else _for_the_worse(metric, side.deviation, trials),
        threshold=rule.threshold(metric),
        note=noise_note(side, metric, rule),
    )


def _for_the_worse(metric: Metric, deviation: float, trials: int) -> float:
    """Return the detectable change as a part of the baseline."""
    change = detectable_change(deviation, trials)
    return -math.expm1(-change) if metric.is_rate else math.expm1(min(change, _MOST))


_MOST = 100.0
"""Of a logarithm; its power of e is a number still."""
