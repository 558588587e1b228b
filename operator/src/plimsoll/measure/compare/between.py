"""The noise between repeated runs, beyond the scatter of their trials.

Nodes, volumes and the age of a cluster change from run to run, and all trials of a run share them. More trials do not
reduce this part of the noise, and its estimate is only as precise as the number of runs permits: two repeated runs give
a single difference, which is one degree of freedom.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.api.result import BenchmarkResult
from plimsoll.measure.compare.inference import MINIMUM_TRIALS, Between, moments, moments_of_logarithms
from plimsoll.measure.compare.matching import Pair, match_points
from plimsoll.measure.compare.passes import Series, mean_over

MINIMUM_RUNS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """The noise of a quantity, by source; `within` is the standard deviation of a run's trials."""

    within: float
    between: Between

    @property
    def whole(self) -> float:
        """The standard deviation of trials of different runs."""
        return math.hypot(self.within, math.sqrt(self.between.variance))


def components_of(runs: Sequence[Sequence[float | None]]) -> Components | None:
    """Return the components of the logarithms' variance, from the trials of each run; None if they are unknown.

    The part between runs is the variance of the runs' means, minus what the scatter of their trials explains, and never
    below 0. A run with fewer than `MINIMUM_TRIALS` trials, or without a positive value in one, is excluded.
    """
    known = [[value for value in run if value is not None and value > 0] for run in runs]
    whole = [values for values, run in zip(known, runs, strict=True) if len(values) == len(run) >= MINIMUM_TRIALS]
    if len(whole) < MINIMUM_RUNS:
        return None
    found = [moments_of_logarithms(values) for values in whole]
    freedom = sum(len(run) - 1 for run in whole)
    within = math.fsum(variance * (len(run) - 1) for (_, variance), run in zip(found, whole, strict=True)) / freedom
    between = _between(
        [mean for mean, _ in found], [variance / len(run) for (_, variance), run in zip(found, whole, strict=True)]
    )
    return Components(within=math.sqrt(within), between=between)


def between_means(runs: Sequence[Sequence[Series]]) -> Between | None:
    """Return the noise between runs in the mean over points, from each run's points; None if it is unknown.

    A run in which a point has fewer than `MINIMUM_TRIALS` trials is excluded.
    """
    whole = [points for points in runs if points and all(len(series) >= MINIMUM_TRIALS for series in points)]
    if len(whole) < MINIMUM_RUNS:
        return None
    means = [mean_over(points) for points in whole]
    return _between([one.mean for one in means], [one.variance / len(one.values) for one in means])


def _between(means: Sequence[float], squared_errors: Sequence[float]) -> Between:
    """Return the variance of runs' means beyond their errors."""
    _, spread = moments(means)
    explained = math.fsum(squared_errors) / len(squared_errors)
    return Between(variance=max(0.0, spread - explained), runs=len(means))


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """Repeated runs without a change, from which a comparison derives the noise between runs."""

    runs: Sequence[Sequence[BenchmarkResult]] = ()

    def results_of(self, pair: Pair) -> list[BenchmarkResult]:
        """Return the results of the baseline's point, one from each run that has it."""
        found = (match_points([pair.baseline], run).pairs for run in self.runs)
        return [pairs[0].candidate for pairs in found if pairs]

    def runs_of(self, pairs: Sequence[Pair]) -> list[list[BenchmarkResult]]:
        """Return the results of the baseline's points, from each run that has all of them."""
        points = [pair.baseline for pair in pairs]
        found = (match_points(points, run).pairs for run in self.runs)
        return [[pair.candidate for pair in matched] for matched in found if len(matched) == len(points)]
