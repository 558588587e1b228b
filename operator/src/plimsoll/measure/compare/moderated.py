"""Variances that points borrow from each other: the moderated t-test.

Five trials show a variance badly, and the fewer trials, the larger a change has to be before it is significant. The
points of a run are many, and their variances are related: a scaled inverse chi-squared distribution describes them, and
a point's variance is the weighted mean of its own and of that distribution's. How much the distribution is worth
follows from how much the variances differ beyond what few trials explain: much if they are alike, nothing if they have
nothing in common.

Source: Smyth, Linear Models and Empirical Bayes Methods for Assessing Differential Expression in Microarray
Experiments, 2004, section 6.2. Different from there, variances are taken to differ by half a standard error more than
they seem to, since few points may look alike by chance.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from plimsoll.measure.compare.inference import LogChange, Prior, welch_freedom

_DOUBT = 0.5
"""In standard errors of the variance between logarithms of variances."""

_CHANCES = (-1.15, -0.32, 0.32, 1.15)
"""Normal deviates in the middle of quarters of their distribution."""

_ASYMPTOTIC_FROM = 10.0
_STEPS = 50
_PRECISION = 1e-10


def moderate(changes: Sequence[LogChange]) -> list[LogChange]:
    """Return the changes of one quantity at several points, each with what the others lend it."""
    if len(changes) < 2:  # noqa: PLR2004 - one point has nothing to borrow
        return [*changes]
    shared = _with_common_freedom(changes)
    prior = prior_of([change.variance for change in shared], [change.own_freedom for change in shared])
    return [replace(change, prior=prior) for change in shared]


def prior_of(variances: Sequence[float], freedoms: Sequence[float]) -> Prior | None:
    """Return what variances with these degrees of freedom have in common; None if fewer than two are above 0.

    A variance of 0 comes from a scale that is too coarse for the scatter, such as the bins of a histogram.
    """
    known = [(variance, freedom) for variance, freedom in zip(variances, freedoms, strict=True) if variance > 0]
    if len(known) < 2:  # noqa: PLR2004 - one has nothing in common
        return None
    logarithms = [math.log(variance) - digamma(freedom / 2) + math.log(freedom / 2) for variance, freedom in known]
    mean, points = math.fsum(logarithms) / len(logarithms), len(logarithms)
    explained = math.fsum(trigamma(freedom / 2) for _, freedom in known) / points
    seen = math.fsum((one - mean) ** 2 for one in logarithms) / (points - 1)
    differing = max(0.0, seen - explained) + _DOUBT * explained * math.sqrt(2 / (points - 1))
    freedom = 2 * inverse_trigamma(differing)
    variance = math.exp(mean + digamma(freedom / 2) - math.log(freedom / 2))
    return Prior(variance=variance, freedom=freedom, most=math.fsum(freedoms))


def usual_worths(points: int, freedom: float) -> tuple[float, ...]:
    """Return degrees of freedom that points lend each other whose variances are the same in truth.

    Such variances differ by chance by more or less than was to be expected; the cases returned are equally likely.
    """
    error = trigamma(freedom / 2) * math.sqrt(2 / (points - 1))
    return tuple(2 * inverse_trigamma((max(0.0, chance) + _DOUBT) * error) for chance in _CHANCES)


def digamma(x: float) -> float:
    """Return the derivative of the logarithm of the gamma function, for x > 0 (DLMF 5.11.2 and 5.5.2)."""
    below = 0.0
    while x < _ASYMPTOTIC_FROM:
        below += 1 / x
        x += 1
    square = 1 / (x * x)
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square / 240)))
    return math.log(x) - 1 / (2 * x) - series - below


def trigamma(x: float) -> float:
    """Return the derivative of `digamma`, for x > 0 (DLMF 5.15.8 and 5.15.5)."""
    below = 0.0
    while x < _ASYMPTOTIC_FROM:
        below += 1 / (x * x)
        x += 1
    square = 1 / (x * x)
    series = square * (1 / 6 - square * (1 / 30 - square * (1 / 42 - square / 30)))
    return (1 + 1 / (2 * x) + series) / x + below


def inverse_trigamma(value: float) -> float:
    """Return the x > 0 with this `trigamma`, for value > 0.

    `trigamma` lies between 1/x and 1/x + 1/x^2, so that x is between 1/value and 1/value + 1.
    """
    low, high = 1 / value, 1 / value + 1
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if trigamma(middle) > value:
            low = middle
        else:
            high = middle
        if high - low < _PRECISION * high:
            break
    return (low + high) / 2


def _with_common_freedom(changes: Sequence[LogChange]) -> list[LogChange]:
    """Return the changes with degrees of freedom by the ratio of both sides' variances over all points.

    Those of a single point depend on its variances by chance, and look fewer the more these differ.
    """
    ours = math.fsum(change.variances[0] for change in changes)
    theirs = math.fsum(change.variances[1] for change in changes)
    return [
        replace(
            change,
            freedom=welch_freedom((ours / change.trials[0], theirs / change.trials[1]), change.trials),
        )
        for change in changes
    ]
