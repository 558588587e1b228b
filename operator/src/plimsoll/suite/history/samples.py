"""The runs of a quantity in the rounds that a comparison uses, their means over points, and the noise they share."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plimsoll.measure.compare.tests import LogChange, Series, deviations_of, shared_correlation, weight_of_others
from plimsoll.suite.history.noise import MINIMUM_ROUNDS, change_between


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """The runs of one quantity, as logarithms: of each earlier round, by its minute, and of the judged round."""

    earlier: Mapping[int, Series]
    judged: Series

    def change(self) -> LogChange:
        """Return the change of the quantity."""
        return change_between([[*one.values()] for one in self.earlier.values()], [*self.judged.values()])

    def means(self) -> Series:
        """Return the mean of each earlier round, by its minute."""
        return {minute: math.fsum(one.values()) / len(one) for minute, one in self.earlier.items()}


def mean_runs(points: Sequence[Runs]) -> Runs:
    """Return the means over points of the runs that have all of them; the points have the same rounds."""
    return Runs(
        earlier={minute: mean_series([one.earlier[minute] for one in points]) for minute in points[0].earlier},
        judged=mean_series([one.judged for one in points]),
    )


def mean_series(points: Sequence[Series]) -> Series:
    """Return the mean over points of each run that has all of them."""
    common = [repeat for repeat in points[0] if all(repeat in series for series in points)]
    return {repeat: math.fsum(series[repeat] for series in points) / len(points) for repeat in common}


def runs_apart(points: Sequence[Runs]) -> list[Runs]:
    """Return the runs of each point without the part of the noise that the points of a run share."""
    minutes = [*points[0].earlier]
    rounds = [*([one.earlier[minute] for one in points] for minute in minutes), [one.judged for one in points]]
    correlation = shared_correlation([[deviations_of(series) for series in one] for one in rounds])
    weight = weight_of_others(correlation, len(points))
    # Of each point: its series in all rounds, the judged one last.
    apart = zip(*(_without_others(one, weight) for one in rounds), strict=True)
    return [Runs(earlier=dict(zip(minutes, earlier, strict=True)), judged=judged) for *earlier, judged in apart]


def shared_noise(runs: Sequence[Runs]) -> float:
    """Return the part of the variance between rounds that these have in common, from 0 to 1; 1 if few rounds show it.

    It is the square of the correlation of the means of rounds, less what few of them correlate by chance.
    """
    means = [one.means() for one in runs]
    minutes = [minute for minute in means[0] if all(minute in one for one in means)]
    if len(minutes) < MINIMUM_ROUNDS:
        return 1.0
    correlation = shared_correlation([[deviations_of({minute: one[minute] for minute in minutes}) for one in means]])
    chance = 2 / ((len(minutes) - 1) * len(means) * (len(means) - 1))
    return min(1.0, max(0.0, (correlation**2 - chance) / (1 - chance)))


def _without_others(points: Sequence[Series], weight: float) -> list[Series]:
    """Return the runs of each point less the mean of the other points in them, with that weight."""
    means, number = mean_series(points), len(points)
    return [
        {
            repeat: value - weight * (number * means[repeat] - value) / (number - 1)
            for repeat, value in series.items()
            if repeat in means
        }
        for series in points
    ]
