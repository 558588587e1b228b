"""Whether a storage meets the objectives more often at a higher load, beyond chance.

The evidence is a likelihood ratio. Its denominator is the highest likelihood of any probability of meeting the
objectives that does not rise with the load (isotonic regression). Its numerator averages over probabilities that are
free in each small range of loads. Under every curve that does not rise, the ratio exceeds 1/a with a probability of at
most a, even if it is computed after each trial, and whatever the rule that places the trials (universal inference:
Wasserman, Ramdas and Balakrishnan, PNAS 2020).
"""

import math
from collections.abc import Sequence

from plimsoll.measure.line.curve import Trial

_RANGES = (0.05, 0.2, 0.7)
"""Logarithms of loads in a range of this width share a probability in the numerator; it averages over the widths."""

_PRIOR = 0.25
"""Both parameters of its beta distribution: most probabilities are near 0 or 1."""


def rise_evidence(trials: Sequence[Trial]) -> float:
    """Return the ratio of likelihoods: about 1 or less if the probability does not rise with the load."""
    monotone = _monotone(trials)
    return math.fsum(math.exp(_free(trials, width) - monotone) for width in _RANGES) / len(_RANGES)


def _free(trials: Sequence[Trial], width: float) -> float:
    counts: dict[int, list[int]] = {}
    for trial in trials:
        # A fixed partition: one that depends on the loads would not keep the error rate.
        counts.setdefault(math.floor(trial.position / width), [0, 0])[trial.met] += 1
    return math.fsum(
        _log_beta(broken + _PRIOR, met + _PRIOR) - _log_beta(_PRIOR, _PRIOR) for broken, met in counts.values()
    )


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _monotone(trials: Sequence[Trial]) -> float:
    """Return the highest logarithm of the likelihood, by pooling adjacent loads that violate the order."""
    at: dict[float, list[int]] = {}
    for trial in trials:
        at.setdefault(trial.position, [0, 0])[trial.met] += 1
    pools: list[tuple[int, int]] = []
    for _, (broken, met) in sorted(at.items()):
        pool = broken, met
        while pools and _share(pools[-1]) < _share(pool):
            below = pools.pop()
            pool = below[0] + pool[0], below[1] + pool[1]
        pools.append(pool)
    return math.fsum(count * math.log(count / sum(pool)) for pool in pools for count in pool if count)


def _share(pool: tuple[int, int]) -> float:
    return pool[1] / sum(pool)
