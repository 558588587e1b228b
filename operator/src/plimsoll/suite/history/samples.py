"""The runs of a quantity in the rounds that a comparison uses, their means over points, and the noise they share."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plimsoll.measure.compare.inference import LogChange
from plimsoll.measure.compare.passes import Series, deviations_of, shared_correlation, weight_of_others
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
    rounds = [[one.earlier[minute] for one in points] for minute in points[0].earlier]
    judged = [one.judged for one in points]
    correlation = shared_correlation([[deviations_of(series) for series in one] for one in (*rounds, judged)])
    weight = weight_of_others(correlation, len(points))
    return [
        Runs(
            earlier={
                minute: _without_others(index, one, weight)
                for minute, one in zip(points[0].earlier, rounds, strict=True)
            },
            judged=_without_others(index, judged, weight),
        )
        for index in range(len(points))
    ]


def shared_noise(runs: Sequence[Runs]) -> float:
    """Return the correlation of the means of rounds, from 0 to 1; 1 if too few rounds show it."""
    means = [one.means() for one in runs]
    minutes = [minute for minute in means[0] if all(minute in one for one in means)]
    if len(minutes) < MINIMUM_ROUNDS:
        return 1.0
    return min(1.0, shared_correlation([[deviations_of({minute: one[minute] for minute in minutes}) for one in means]]))


def _without_others(index: int, points: Sequence[Series], weight: float) -> Series:
    """Return the runs of a point less the mean of the other points in them, with that weight."""
    shared = mean_series([*points[:index], *points[index + 1 :]])
    return {repeat: value - weight * shared[repeat] for repeat, value in points[index].items() if repeat in shared}
