"""Whether a storage has a range of loads that it handles otherwise than those around it, beyond chance.

A storage may break at some load and hold at higher ones, for example where a device saves power while there is little
to do. Then no single load separates what it carries from what it does not.
"""

import math
from collections.abc import Sequence

from plimsoll.measure.line.curve import Trial, posterior

_RANGE = 0.2
"""Width of a range, as a logarithm of loads."""

_PRIOR = 0.25
"""Both parameters of the beta distribution of its probability: most probabilities are near 0 or 1."""

_FEWEST = 3
"""Trials in a range; fewer show nothing that a lapse would not explain."""


def exception_evidence(trials: Sequence[Trial]) -> float:
    """Return how much likelier the trials are if one range of loads has a probability of its own.

    It is a Bayes factor: a storage with a curve as in `curve` exceeds 1/a in less than that part of searches.
    """
    ranges: dict[int, list[Trial]] = {}
    for trial in trials:
        ranges.setdefault(math.floor(trial.position / _RANGE), []).append(trial)
    alone = [inside for inside in ranges.values() if len(inside) >= _FEWEST and _is_contrary(inside, trials)]
    if not alone:
        return 0.0
    one_curve = posterior(trials).evidence
    return math.fsum(_apart(trials, inside) for inside in alone) / len(ranges) / one_curve


def _is_contrary(inside: Sequence[Trial], trials: Sequence[Trial]) -> bool:
    """Whether half or more of the trials in a range broke, and a higher one held; or held, and a lower one broke.

    Otherwise the range is an end of the loads that were tried, and a line at its edge explains it as well.
    """
    broke = sum(not trial.met for trial in inside)
    highest, lowest = max(trial.position for trial in inside), min(trial.position for trial in inside)
    return (2 * broke >= len(inside) and any(trial.met and trial.position > highest for trial in trials)) or (
        2 * broke <= len(inside) and any(not trial.met and trial.position < lowest for trial in trials)
    )


def _apart(trials: Sequence[Trial], inside: Sequence[Trial]) -> float:
    """Return the probability of the trials if those inside a range have one of their own."""
    met = sum(trial.met for trial in inside)
    outside = [trial for trial in trials if trial not in inside]
    return posterior(outside).evidence * _beta(met + _PRIOR, len(inside) - met + _PRIOR) / _beta(_PRIOR, _PRIOR)


def _beta(a: float, b: float) -> float:
    return math.exp(math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b))
