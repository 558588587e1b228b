"""The conclusion from a change: a regression, no regression, or not enough evidence.

A change must be certain and must matter. `Regression`: significantly worse, and by more than the threshold.
`NoRegression`: with a confidence of 95 % the change is not as bad as the threshold, which is evidence about the storage
and not only a lack of evidence. Everything else is `Inconclusive`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from plimsoll.measure.compare.family import Assessment
from plimsoll.measure.compare.inference import LogChange
from plimsoll.measure.compare.metrics import Metric, RegressionRule, worsening
from plimsoll.measure.compare.ranks import EXACT_UP_TO, mann_whitney
from plimsoll.measure.statistics import CONFIDENCE

_RANKS_FROM = 6
"""The least values on each side for ranks to contradict Welch's test; with fewer, ranks are too coarse."""

_RANKS_AGREE = 0.05

_ONE_SIDED = 2 * (1 - CONFIDENCE)
"""The two-sided significance of one bound with a confidence of 95 %."""


class Conclusion(StrEnum):
    """The conclusion of a comparison."""

    REGRESSION = "Regression"
    NO_REGRESSION = "NoRegression"
    INCONCLUSIVE = "Inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The conclusion from a change.

    Attributes:
        confirmed: the whole confidence interval of a regression is beyond the threshold.
        improved: significantly better, and by more than the threshold.
        suspected: an inconclusive change that prevents `NoRegression` of points whose mean is within the threshold.
        trials_needed: on each side, for an inconclusive change of this size and scatter.
        note: the reason for an inconclusive judgement.

    """

    conclusion: Conclusion
    confirmed: bool = False
    improved: bool = False
    suspected: bool = False
    trials_needed: int | None = None
    note: str = ""


def conclude(
    metric: Metric, assessment: Assessment, values: tuple[Sequence[float], Sequence[float]], rule: RegressionRule
) -> Judgement:
    """Judge the change between two samples; `values` are the samples, or their logarithms."""
    threshold = rule.log_threshold(metric)
    worse = worsening(metric, assessment.change.estimate)
    # How likely a change by the threshold looks like this one, or like one that is farther away.
    at_threshold = assessment.change.p_value(worsening(metric, threshold))
    if assessment.worse and worse > threshold:
        return _regression(values, confirmed=at_threshold < 1 - CONFIDENCE)
    if worse < threshold and at_threshold < _ONE_SIDED:
        improved = assessment.better and -worse > threshold
        return Judgement(conclusion=Conclusion.NO_REGRESSION, improved=improved)
    return _unclear(assessment, worse, threshold)


def bound_of(metric: Metric, change: LogChange) -> float:
    """Return the logarithm of the ratio than which the change is no worse, with a confidence of 95 %."""
    low, high = change.interval(1 - _ONE_SIDED)
    return low if metric.is_rate else high


def _regression(values: tuple[Sequence[float], Sequence[float]], *, confirmed: bool) -> Judgement:
    """Return a regression, unless ranks, which ignore the size of outliers, contradict it."""
    sizes = [len(side) for side in values]
    if min(sizes) >= _RANKS_FROM and max(sizes) <= EXACT_UP_TO:
        by_ranks = mann_whitney(*values)
        if by_ranks >= _RANKS_AGREE:
            note = f"significant by its t-test, but not by ranks (Mann-Whitney p {by_ranks:.2g}); look for outliers"
            return Judgement(conclusion=Conclusion.INCONCLUSIVE, suspected=True, note=note)
    return Judgement(conclusion=Conclusion.REGRESSION, confirmed=confirmed)


def _unclear(assessment: Assessment, worse: float, threshold: float) -> Judgement:
    """Return how many trials would decide it: to find a change beyond the threshold, or to rule one out."""
    change = assessment.change
    if worse > threshold:
        significance = 1 - CONFIDENCE if assessment.level is None else 2 * assessment.level / assessment.tests
        needed = change.trials_needed(worse, significance)
    else:
        needed = change.trials_needed(threshold - worse, _ONE_SIDED)
    if needed:
        # Several tests have to agree, so that even as many as there are may not have been enough.
        needed = max(needed, min(change.trials) + 1)
    return Judgement(
        conclusion=Conclusion.INCONCLUSIVE,
        suspected=assessment.doubtful and worse > threshold,
        trials_needed=needed,
        note="" if needed else _hopeless(assessment, worse, threshold),
    )


def _hopeless(assessment: Assessment, worse: float, threshold: float) -> str:
    between = assessment.change.between
    if between is not None:
        return (
            f"too near the noise between the {between.runs} --noise runs, which more trials do not reduce; "
            "pass more --noise runs, or find what differs between them"
        )
    if worse > threshold:
        return "too noisy for any reasonable number of trials; measure for longer, or find the source of the noise"
    return "too near the threshold for any reasonable number of trials; measure for longer, or change the threshold"
