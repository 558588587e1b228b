"""The conclusion from two samples of one quantity: a regression, no regression, or not enough evidence.

A change must be certain and must matter. `Regression`: significantly worse, and by more than the threshold.
`NoRegression`: even the bad end of the confidence interval is within the threshold, which is evidence about the storage
and not only a lack of evidence. Everything else is `Inconclusive`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from plimsoll.measure.compare.inference import LogChange
from plimsoll.measure.compare.metrics import Metric, RegressionRule, worsening
from plimsoll.measure.compare.ranks import EXACT_UP_TO, mann_whitney
from plimsoll.measure.statistics import CONFIDENCE

_SIGNIFICANCE = 1 - CONFIDENCE
_RANKS_FROM = 6
"""The least values on each side for ranks to contradict Welch's test; with fewer, ranks are too coarse."""


class Conclusion(StrEnum):
    """The conclusion of a comparison."""

    REGRESSION = "Regression"
    NO_REGRESSION = "NoRegression"
    INCONCLUSIVE = "Inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Two samples of a metric, compared.

    Attributes:
        p_value: of no change; adjusted for the other gating metrics if this one gates.
        family: the number of tests that it is adjusted for, 1 for none.

    """

    metric: Metric
    baseline: Sequence[float]
    candidate: Sequence[float]
    log: LogChange
    p_value: float
    family: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The conclusion from a change.

    Attributes:
        confirmed: the whole confidence interval of a regression is beyond the threshold.
        improved: significantly better, and by more than the threshold.
        trials_needed: on each side, for an inconclusive change of this size and scatter.
        note: the reason for an inconclusive judgement.

    """

    conclusion: Conclusion
    confirmed: bool = False
    improved: bool = False
    trials_needed: int | None = None
    note: str = ""


def conclude(change: Change, rule: RegressionRule) -> Judgement:
    """Judge a change."""
    threshold = rule.log_threshold(change.metric)
    worse = worsening(change.metric, change.log.estimate)
    significant = change.p_value < _SIGNIFICANCE
    # Whether the threshold lies outside the confidence interval of the change.
    clear_of_threshold = change.log.p_value(worsening(change.metric, threshold)) < _SIGNIFICANCE
    if significant and worse > threshold:
        return _regression(change, confirmed=clear_of_threshold)
    if worse < threshold and clear_of_threshold:
        return Judgement(conclusion=Conclusion.NO_REGRESSION, improved=significant and -worse > threshold)
    return _unclear(change, worse, threshold)


def _regression(change: Change, *, confirmed: bool) -> Judgement:
    """Return a regression, unless ranks, which ignore the size of outliers, contradict it."""
    sizes = (len(change.baseline), len(change.candidate))
    if min(sizes) >= _RANKS_FROM and max(sizes) <= EXACT_UP_TO:
        by_ranks = mann_whitney(change.baseline, change.candidate)
        if by_ranks >= _SIGNIFICANCE:
            note = f"significant by Welch's test, but not by ranks (Mann-Whitney p {by_ranks:.2g}); look for outliers"
            return Judgement(conclusion=Conclusion.INCONCLUSIVE, note=note)
    return Judgement(conclusion=Conclusion.REGRESSION, confirmed=confirmed)


def _unclear(change: Change, worse: float, threshold: float) -> Judgement:
    """Return how many trials would decide it: to find a change beyond the threshold, or to rule one out."""
    if worse > threshold:
        needed = change.log.trials_needed(worse, _SIGNIFICANCE / change.family)
    else:
        needed = change.log.trials_needed(threshold - worse)
    return Judgement(
        conclusion=Conclusion.INCONCLUSIVE,
        trials_needed=needed,
        note="" if needed else _hopeless(change, worse, threshold),
    )


def _hopeless(change: Change, worse: float, threshold: float) -> str:
    if change.log.between is not None:
        return (
            f"too near the noise between the {change.log.between.runs} --noise runs, which more trials do not reduce; "
            "pass more --noise runs, or find what differs between them"
        )
    if worse > threshold:
        return "too noisy for any reasonable number of trials; measure for longer, or find the source of the noise"
    return "too near the threshold for any reasonable number of trials; measure for longer, or change the threshold"
