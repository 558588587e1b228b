"""The probability that a trial meets the objectives, over its load: a dose-response curve, and its estimate.

With x the logarithm of the load, a trial meets all objectives with the probability

    P(x) = u + (1 - l - u) Phi((c - x) / s)

where c is the location, s the spread (the scatter of the storage, as a part of the load), l the lapse: the share of
trials that break at loads far below the line, as on a storage with a slow mode; and u the share that meets the
objectives far above it. The line is where P is 1/2.

Only whether a trial broke is used, not its latencies: how they relate to the distance to the line depends on the shape
of the latency curve, which differs between a queue, a cliff and a device whose latency grows with its load.

The estimate is the posterior over a grid of (c, s, l). Sources: Watson and Pelli, QUEST (1983); Kontsevich and Tyler
(1999) for the spread as a second unknown; Wichmann and Hill (2001) for lapses.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from operator import mul, sub
from statistics import NormalDist

from plimsoll.measure.checks.check import Check
from plimsoll.measure.rates import grouped

SPREADS = (0.01, 0.018, 0.033, 0.06, 0.11, 0.2, 0.36)
_USUAL_SPREAD = 0.06
_SPREADS_DIFFER = 1.8
"""Of the prior, which is log-normal: the median of the spread, and the standard deviation of its logarithm."""
LAPSES = {0.01: 0.8, 0.1: 0.12, 0.3: 0.08}  # lapse -> prior probability
LUCK = 0.01  # the share of trials that meets the objectives far above the line
_CELLS = 48
_MARGIN = math.log(4)  # the line is sought up to this far outside the loads that were tried
_TAIL = 5e-4
_ZOOMS = 6
_WORTHWHILE = 0.7
_FAR = 6  # spreads from a location, beyond which the normal distribution is 0 or 1 to nine digits
_RANGE = 0.2  # width of a range, as a logarithm of loads
_PRIOR = 0.25  # both parameters of the beta distribution of a range's probability: most are near 0 or 1
_FEWEST = 3  # trials in a range; fewer show nothing that a lapse would not explain
_DRIFTS = (-0.8, -0.4, -0.2, -0.1, 0.1, 0.2, 0.4, 0.8)
"""Change of the line's position from the first to the last trial: the alternatives, all equally likely."""
_CLAIMED = 0.93  # the share of trials that are as claimed, on which is bet: six in a row prove it, or ten of eleven
NEEDED = 40.0  # the reciprocal of 2.5 %


@dataclass(frozen=True, slots=True)
class Trial:
    """The logarithm of a load, and whether a trial at that load met all objectives."""

    position: float
    met: bool


@dataclass(frozen=True, slots=True)
class Curves:
    """Curves that differ only in their location."""

    spread: float  # s
    lapse: float  # l
    shift: float  # from the location of a curve to its line
    weights: Sequence[float]  # of each location, its share of the posterior


@dataclass(frozen=True, slots=True)
class Posterior:
    """What trials show about the line."""

    locations: Sequence[float]  # centres of the cells of the grid, equally spaced
    families: Sequence[Curves]  # the curves over them; all weights together are 1
    # Probability of the trials, averaged over the prior, up to a factor that depends only on which loads were tried.
    evidence: float

    def interval(self, confidence: float) -> tuple[float, float, float]:
        """Return the median of the line's position, and the ends of its central interval."""
        half = (self.locations[1] - self.locations[0]) / 2
        cells = sorted(
            (location + family.shift, weight)
            for family in self.families
            for location, weight in zip(self.locations, family.weights, strict=True)
        )
        sums = list(accumulate(weight for _, weight in cells))
        low, median, high = (
            cells[min(bisect_left(sums, share), len(cells) - 1)][0]
            for share in ((1 - confidence) / 2, 0.5, (1 + confidence) / 2)
        )
        return median, low - half, high + half

    @property
    def usual_spread(self) -> float:
        """The geometric mean of the spread."""
        return math.exp(math.fsum(sum(family.weights) * math.log(family.spread) for family in self.families))

    def expected_variance(self, position: float) -> float:
        """Return the variance of the line's position that is expected after a trial at this position."""
        outcomes = [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
        middle = self.locations[len(self.locations) // 2]
        normals: dict[float, list[float]] = {}
        for family in self.families:
            if family.spread not in normals:
                normals[family.spread] = _normal(self.locations, position, family.spread)
            slope, shares = 1 - family.lapse - LUCK, normals[family.spread]
            met = [weight * (LUCK + slope * share) for weight, share in zip(family.weights, shares, strict=True)]
            broken = list(map(sub, family.weights, met))
            lines = [location + family.shift - middle for location in self.locations]
            for moments, weights in zip(outcomes, (met, broken), strict=True):
                firsts = list(map(mul, weights, lines))
                moments[0] += sum(weights)
                moments[1] += sum(firsts)
                moments[2] += sum(map(mul, firsts, lines))
        return sum(second - first * first / zeroth for zeroth, first, second in outcomes if zeroth > 0)


def posterior(trials: Sequence[Trial]) -> Posterior:
    """Return what at least one trial shows about the line; nothing outside a factor of 4 of their loads."""
    return _posterior(tuple(trials))


@lru_cache(maxsize=32)  # the same is needed after each attempt that does not count, and three times at the end
def _posterior(trials: tuple[Trial, ...]) -> Posterior:
    low = min(trial.position for trial in trials) - _MARGIN
    high = max(trial.position for trial in trials) + _MARGIN
    result = _on_grid(trials, low, high)
    for _ in range(_ZOOMS):
        # The stretch of locations that holds nearly everything, with one cell on each side.
        sums = list(accumulate(map(math.fsum, zip(*(family.weights for family in result.families), strict=True))))
        first = next(index for index, reached in enumerate(sums) if reached > _TAIL)
        last = next((index for index, reached in enumerate(sums) if reached >= 1 - _TAIL), len(sums) - 1)
        cell = result.locations[1] - result.locations[0]
        start, end = result.locations[first] - 1.5 * cell, result.locations[last] + 1.5 * cell
        if end - start > _WORTHWHILE * (high - low):
            break
        low, high = start, end
        result = _on_grid(trials, low, high)
    return result


def _on_grid(trials: Sequence[Trial], low: float, high: float) -> Posterior:
    cell = (high - low) / _CELLS
    locations = [low + (index + 0.5) * cell for index in range(_CELLS)]
    priors = [math.exp(-0.5 * (math.log(spread / _USUAL_SPREAD) / _SPREADS_DIFFER) ** 2) for spread in SPREADS]
    # Spreads that are too narrow for the cells count as one that is not.
    prior_of: dict[float, float] = {}
    for spread, prior in zip(SPREADS, priors, strict=True):
        wide = max(spread, cell)
        prior_of[wide] = prior_of.get(wide, 0.0) + prior / sum(priors)
    families = [
        Curves(spread=spread, lapse=lapse, shift=shift_to_line(spread, lapse), weights=weights)
        for spread, prior in prior_of.items()
        for lapse, weights in _weights(trials, locations, spread, prior * cell)
    ]
    evidence = math.fsum(math.fsum(family.weights) for family in families)
    families = [replace(family, weights=[weight / evidence for weight in family.weights]) for family in families]
    return Posterior(locations=locations, families=families, evidence=evidence)


def shift_to_line(spread: float, lapse: float) -> float:
    """Return how far from its location a curve has P = 1/2."""
    return -spread * NormalDist().inv_cdf((0.5 - LUCK) / (1 - lapse - LUCK))


def _weights(
    trials: Sequence[Trial], locations: Sequence[float], spread: float, prior: float
) -> Iterator[tuple[float, list[float]]]:
    """Yield of each lapse the prior times the likelihood at each location."""
    near = Counter(
        trial for trial in trials if locations[0] - _FAR * spread < trial.position < locations[-1] + _FAR * spread
    )
    normals = {position: _normal(locations, position, spread) for position in {trial.position for trial in near}}
    lower = [trial.met for trial in trials if trial.position <= locations[0] - _FAR * spread]
    higher = [trial.met for trial in trials if trial.position >= locations[-1] + _FAR * spread]
    for lapse, share in LAPSES.items():
        slope = 1 - lapse - LUCK
        far = _same_everywhere(lower, 1 - lapse) * _same_everywhere(higher, LUCK)
        weights = [prior * share * far] * len(locations)
        for trial, count in near.items():
            base, rise = (LUCK, slope) if trial.met else (1 - LUCK, -slope)
            parts = zip(weights, normals[trial.position], strict=True)
            if count == 1:
                weights = [weight * (base + rise * part) for weight, part in parts]
            else:
                weights = [weight * (base + rise * part) ** count for weight, part in parts]
        yield lapse, weights


def _same_everywhere(met: Sequence[bool], chance: float) -> float:
    """Return the likelihood of trials so far from all locations that each meets the objectives with this chance."""
    return math.prod(chance if is_met else 1 - chance for is_met in met)


def _normal(locations: Sequence[float], position: float, spread: float) -> list[float]:
    factor, erfc = math.sqrt(0.5) / spread, math.erfc
    return [0.5 * erfc((position - location) * factor) for location in locations]


NOT_MONOTONE = Check(
    reason="NotMonotone",
    what=(
        "in a search for the line: how much likelier the outcomes are if one range of loads has a probability of its "
        "own (a Bayes factor)"
    ),
    suspect=20,
    remedy=(
        "look for the reason why these loads break while higher ones hold, such as a device that saves power; the "
        "storage has no single line"
    ),
)


def exception_bayes_factor(trials: Sequence[Trial]) -> float:
    """Return how much likelier the trials are if one range of loads has a probability of its own (a Bayes factor)."""
    ranges = grouped(trials, lambda trial: math.floor(trial.position / _RANGE))
    alone = [inside for inside in ranges.values() if len(inside) >= _FEWEST and _is_contrary(inside, trials)]
    if not alone:
        return 0.0
    evidence = []
    for inside in alone:
        met = sum(trial.met for trial in inside)
        outside = posterior([trial for trial in trials if trial not in inside]).evidence
        evidence.append(outside * _beta(met + _PRIOR, len(inside) - met + _PRIOR) / _beta(_PRIOR, _PRIOR))
    return math.fsum(evidence) / len(ranges) / posterior(trials).evidence


def _is_contrary(inside: Sequence[Trial], trials: Sequence[Trial]) -> bool:
    """Whether half or more of the trials in a range broke, and a higher one held; or held, and a lower one broke.

    Otherwise the range is an end of the loads that were tried, and a line at its edge explains it as well.
    """
    broke = sum(not trial.met for trial in inside)
    highest, lowest = max(trial.position for trial in inside), min(trial.position for trial in inside)
    return (2 * broke >= len(inside) and any(trial.met and trial.position > highest for trial in trials)) or (
        2 * broke <= len(inside) and any(not trial.met and trial.position < lowest for trial in trials)
    )


def _beta(a: float, b: float) -> float:
    return math.exp(math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b))


LINE_DRIFTING = Check(
    reason="Drifting",
    what="in a search for the line: how much likelier the outcomes are if the line moves steadily (a Bayes factor)",
    suspect=20,
    remedy=(
        "precondition the storage, let it settle, and look for other load, then run again; the interval lies around a "
        "line that moved"
    ),
)


def drift_bayes_factor(trials: Sequence[Trial]) -> float:
    """Return how much likelier the trials are, in the order of time, if the line moves steadily (a Bayes factor)."""
    last = len(trials) - 1
    if last < 1:
        return 1.0
    still = posterior(trials).evidence
    # The loads that would have been as far from the line in the middle of the search.
    moved = (
        [replace(trial, position=trial.position - drift * (index / last - 0.5)) for index, trial in enumerate(trials)]
        for drift in _DRIFTS
    )
    return sum(posterior(seen).evidence for seen in moved) / len(_DRIFTS) / still


def claim_e_value(as_claimed: Iterable[bool]) -> float:
    """Return by how much the trials at one load multiply a stake on the claim that most of them are as claimed.

    If at most half of all trials are, it ever reaches `NEEDED` in at most 2.5 % of searches of any length.
    """
    return math.prod(2 * _CLAIMED if is_as_claimed else 2 * (1 - _CLAIMED) for is_as_claimed in as_claimed)
