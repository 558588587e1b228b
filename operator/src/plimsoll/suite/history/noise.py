"""The change of a quantity from earlier rounds to a new one, from the runs of all of them.

A round's runs share more than runs of different rounds: the week, the age of the cluster, its other users. The unit is
therefore the round, but few rounds estimate their noise badly: with five, the variance of their means has only four
degrees of freedom. The runs within rounds have more, and show the same noise if rounds add none of their own. Both are
combined: the runs count fully as long as the rounds do not differ more than their runs explain, and less and less, down
to nothing, the more clearly they do. A new round is taken to be as noisy as the earlier ones.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.measure.compare.tests import LogChange, moments
from plimsoll.measure.statistics import f_tail

MINIMUM_ROUNDS = 3
"""Accepted rounds from which on the noise between rounds is known well enough to judge another one."""

_NOT_DIFFERENT = 0.25
"""From this probability on, differences between rounds are taken to be chance."""


def change_between(rounds: Sequence[Sequence[float]], judged: Sequence[float]) -> LogChange:
    """Return the change from the mean of earlier rounds to a new one, from the logarithms of all runs.

    Its `variances` are those of a run that give the error of these means; `trials` counts runs.

    Raises:
        ValueError: there are fewer than two earlier rounds, or a round has no run.

    """
    return step_between(rounds, [judged])


def step_between(before: Sequence[Sequence[float]], after: Sequence[Sequence[float]]) -> LogChange:
    """Return the change from the mean of some rounds to that of others, likewise.

    Raises:
        ValueError: no side has two rounds, or a round has no run.

    """
    if max(len(before), len(after)) < 2 or not all(map(len, (before, after, *before, *after))):  # noqa: PLR2004
        raise ValueError("the noise between rounds shows in at least two rounds on one side, each with a run")
    ours, theirs = map(_side, (before, after))
    freedom = len(before) + len(after) - 2
    expected = math.fsum(side.inverse * (1 - 1 / len(side.means)) for side in (ours, theirs))
    between = (ours.squares + theirs.squares) / expected, freedom
    variance, freedom_of_both = _pooled(noise_within([*before, *after]), between)
    return LogChange(
        estimate=theirs.mean - ours.mean,
        variances=(variance * ours.unevenness, variance * theirs.unevenness),
        trials=(ours.runs, theirs.runs),
        freedom=freedom_of_both,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """Rounds on one side of a change; all have the same weight, however many runs they have.

    Attributes:
        runs: their number in all rounds.
        means: of the rounds.
        inverse: sum of the inverse numbers of runs, to which the variance of the rounds' means is proportional.

    """

    runs: int
    means: Sequence[float]
    inverse: float

    @property
    def mean(self) -> float:
        """The mean of the rounds."""
        return math.fsum(self.means) / len(self.means)

    @property
    def squares(self) -> float:
        """The sum of the squared deviations of the rounds' means."""
        return math.fsum((mean - self.mean) ** 2 for mean in self.means)

    @property
    def unevenness(self) -> float:
        """How much larger the squared error of the mean is than if all rounds had the same number of runs."""
        return self.runs * self.inverse / len(self.means) ** 2


def _side(rounds: Sequence[Sequence[float]]) -> _Side:
    return _Side(
        runs=sum(map(len, rounds)),
        means=[math.fsum(runs) / len(runs) for runs in rounds],
        inverse=math.fsum(1 / len(runs) for runs in rounds),
    )


def noise_within(rounds: Sequence[Sequence[float]]) -> tuple[float, int]:
    """Return the variance of runs of the same round, and its degrees of freedom; both 0 if no round has two runs."""
    several = [runs for runs in rounds if len(runs) > 1]
    freedom = sum(len(runs) - 1 for runs in several)
    squares = math.fsum(moments(runs)[1] * (len(runs) - 1) for runs in several)
    return (squares / freedom if freedom else 0.0), freedom


def _pooled(within: tuple[float, int], between: tuple[float, int]) -> tuple[float, float]:
    """Return the variance of a run in a round of its own, and its degrees of freedom."""
    (inner, inner_freedom), (outer, outer_freedom) = within, between
    worth = inner_freedom * _agreement(within, between)
    freedom = worth + outer_freedom
    return (worth * inner + outer_freedom * outer) / freedom, freedom


def _agreement(within: tuple[float, int], between: tuple[float, int]) -> float:
    """Return how much the noise within rounds says about that between them: from 0 to 1."""
    (inner, inner_freedom), (outer, outer_freedom) = within, between
    if not inner_freedom or not inner:
        return 0.0 if outer or not inner_freedom else 1.0
    return min(1.0, f_tail(outer / inner, outer_freedom, inner_freedom) / _NOT_DIFFERENT)
