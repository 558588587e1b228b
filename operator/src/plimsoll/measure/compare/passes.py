"""What the trials of a pass share: the mean change over points, and the change of a point apart from the others.

A run measures every point once in each pass, so a slow quarter of an hour slows the trials of several points. Such
noise does not average out over points. The mean over the points of a pass contains it, and the scatter of these means
from pass to pass shows its size: the pass is the unit of the mean change, as the trial is that of a point's change.

Where points do share noise, the other points of the same pass show how much of a trial's deviation it was.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plimsoll.api.names import Operation
from plimsoll.api.result import Trial
from plimsoll.measure.compare.inference import Between, LogChange, logarithm, moments
from plimsoll.measure.compare.metrics import Metric, values_of

Series = Mapping[int, float]
"""A point's trials: pass -> logarithm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """The trials of a point on both sides; both have at least two."""

    baseline: Series
    candidate: Series
    between: Between | None = None

    @property
    def sides(self) -> tuple[Series, Series]:
        """Baseline and candidate."""
        return self.baseline, self.candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class SideMean:
    """The mean over points and passes of one side.

    Attributes:
        values: the mean over points in each pass, as if all points had a trial in it.
        variance: of such a value; the mean's squared error is this divided by their number.

    """

    mean: float
    variance: float
    values: tuple[float, ...]


def series_of(trials: Sequence[Trial], operation: Operation, metric: Metric) -> Series:
    """Return the logarithms of a metric in trials, of which every pass has at most one; without those of no value.

    Raises:
        ValueError: a value is not positive.

    """
    values = zip(trials, values_of(trials, operation, metric), strict=True)
    return {trial.pass_number: logarithm(value) for trial, value in values if value is not None}


def change_of(trials: Trials) -> LogChange:
    """Return the change of one point, from its own trials."""
    (ours, theirs) = (moments([*side.values()]) for side in trials.sides)
    return _change(theirs[0] - ours[0], (ours[1], theirs[1]), trials)


def mean_over(points: Sequence[Series]) -> SideMean:
    """Return the mean over points of one side, all with the same weight.

    Its error is that of a sum over passes, which are independent, whatever trials of one pass have in common. A pass in
    which points are missing contributes the trials that it has.

    Raises:
        ValueError: a point has fewer than two trials.

    """
    if any(len(series) < 2 for series in points):  # noqa: PLR2004 - one trial has no deviation
        raise ValueError("a mean over points needs at least two trials of each")
    mean = math.fsum(_mean(series) for series in points) / len(points)
    passes = sorted({one for series in points for one in series})
    weighted = [_weighted(series, len(passes), len(points)) for series in points]
    parts = [math.fsum(own[one] for own in weighted if one in own) for one in passes]
    _, variance = moments([mean + part for part in parts])
    return SideMean(mean=mean, variance=variance, values=tuple(mean + part for part in parts))


def mean_change(points: Sequence[Trials], between: Between | None = None) -> LogChange:
    """Return the mean change over points; it counts passes, not trials."""
    ours, theirs = (mean_over([point.sides[side] for point in points]) for side in (0, 1))
    return LogChange(
        estimate=theirs.mean - ours.mean,
        variances=(ours.variance, theirs.variance),
        trials=(len(ours.values), len(theirs.values)),
        between=between,
    )


def changes_apart(points: Sequence[Trials]) -> list[LogChange]:
    """Return the change of each point without the part that the trials of a pass share, as far as they do.

    That part is estimated from the deviations of trials from their point's mean. These do not depend on the points'
    changes, so without any change it is as likely to make one look larger as to make it look smaller.
    """
    if len(points) < 2:  # noqa: PLR2004 - one point has no others
        return [change_of(point) for point in points]
    deviations = [[deviations_of(point.sides[side]) for point in points] for side in (0, 1)]
    weight = weight_of_others(shared_correlation(deviations), len(points))
    apart = [_without_others(side, weight) for side in deviations]
    estimates = [_mean(point.candidate) - _mean(point.baseline) for point in points]
    whole = math.fsum(estimates)
    return [
        _change(
            estimate - weight * (whole - estimate) / (len(points) - 1),
            (_mean_square(apart[0][index]), _mean_square(apart[1][index])),
            point,
        )
        for index, (estimate, point) in enumerate(zip(estimates, points, strict=True))
    ]


def _change(estimate: float, variances: tuple[float, float], trials: Trials) -> LogChange:
    return LogChange(
        estimate=estimate,
        variances=variances,
        trials=(len(trials.baseline), len(trials.candidate)),
        between=trials.between,
    )


def shared_correlation(sides: Sequence[Sequence[Series]]) -> float:
    """Return the correlation of trials of one pass, at least 0, from their deviations on both sides."""
    products = squares = 0.0
    pairs = trials = 0
    for points in sides:
        for one in {one for deviations in points for one in deviations}:
            found = [deviations[one] for deviations in points if one in deviations]
            square = math.fsum(value * value for value in found)
            products += math.fsum(found) ** 2 - square
            squares += square
            pairs += len(found) * (len(found) - 1)
            trials += len(found)
    return max(0.0, products / pairs) / (squares / trials) if pairs and squares else 0.0


def weight_of_others(correlation: float, points: int) -> float:
    """Return the weight of the mean of the other points that explains most of a trial's deviation."""
    return correlation * (points - 1) / (1 + correlation * (points - 2))


def _without_others(points: Sequence[Series], weight: float) -> list[Series]:
    """Return the deviations of each point less those of the others in the same pass, with that weight."""
    sums: dict[int, float] = {}
    counts: dict[int, int] = {}
    for deviations in points:
        for one, value in deviations.items():
            sums[one] = sums.get(one, 0.0) + value
            counts[one] = counts.get(one, 0) + 1
    return [
        {one: value - weight * (sums[one] - value) / max(1, counts[one] - 1) for one, value in deviations.items()}
        for deviations in points
    ]


def _weighted(series: Series, passes: int, points: int) -> Series:
    """Return the deviations of a point's trials as parts of the passes' means.

    Those of fewer trials lie nearer to their own mean, as n - 1 to n.
    """
    nearer = (len(series) - 1) / len(series) * passes / (passes - 1)
    factor = passes / len(series) / points / math.sqrt(nearer)
    return {one: factor * value for one, value in deviations_of(series).items()}


def deviations_of(series: Series) -> Series:
    """Return the deviations of a point's trials from their mean."""
    mean = _mean(series)
    return {one: value - mean for one, value in series.items()}


def _mean(series: Series) -> float:
    return math.fsum(series.values()) / len(series)


def _mean_square(deviations: Series) -> float:
    return math.fsum(value * value for value in deviations.values()) / (len(deviations) - 1)
