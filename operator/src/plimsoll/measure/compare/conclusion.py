"""What follows from two samples of one quantity: a regression, none, or that nobody can tell yet.

A change must be certain and must matter. `Regression`: it is significantly worse, and by more than the threshold.
`NoRegression`: even the bad end of its confidence interval is within the threshold, which is a statement about the
storage and not just a lack of evidence. Everything else is `Inconclusive`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from plimsoll.measure.compare.inference import LogChange
from plimsoll.measure.compare.metrics import Metric, Rule, worsening
from plimsoll.measure.compare.ranks import EXACT_UP_TO, mann_whitney
from plimsoll.measure.statistics import CONFIDENCE

_SIGNIFICANCE = 1 - CONFIDENCE
_RANKS_FROM = 6
"""Values on each side from which ranks can contradict; of fewer they are too coarse."""


class Conclusion(StrEnum):
    """What a comparison says."""

    REGRESSION = "Regression"
    NO_REGRESSION = "NoRegression"
    INCONCLUSIVE = "Inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Two samples of a metric, compared.

    Attributes:
        p_value: of no change; adjusted for the other metrics that gate, if this one does.
        family: how many tests it was adjusted for, 1 for none.

    """

    metric: Metric
    baseline: Sequence[float]
    candidate: Sequence[float]
    log: LogChange
    p_value: float
    family: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What follows from a change.

    Attributes:
        confirmed: the whole confidence interval of a regression is beyond the threshold.
        improved: significantly better, and by more than the threshold.
        trials_needed: on each side, for an inconclusive change of this size and scatter.
        note: what else there is to say.

    """

    conclusion: Conclusion
    confirmed: bool = False
    improved: bool = False
    trials_needed: int | None = None
    note: str = ""


def conclude(change: Change, rule: Rule) -> Judgement:
    """Judge a change."""
    threshold = rule.log_threshold(change.metric)
    worse = worsening(change.metric, change.log.estimate)
    significant = change.p_value < _SIGNIFICANCE
    # That the threshold lies outside the interval of the change.
    clear_of_threshold = change.log.p_value(worsening(change.metric, threshold)) < _SIGNIFICANCE
    if significant and worse > threshold:
        return _regression(change, confirmed=clear_of_threshold)
    if worse < threshold and clear_of_threshold:
        return Judgement(conclusion=Conclusion.NO_REGRESSION, improved=significant and -worse > threshold)
    return _unclear(change, worse, threshold)


def _regression(change: Change, *, confirmed: bool) -> Judgement:
    """Return a regression, unless ranks, which do not care how far an outlier lies, see none."""
    sizes = (len(change.baseline), len(change.candidate))
    if min(sizes) >= _RANKS_FROM and max(sizes) <= EXACT_UP_TO:
        by_ranks = mann_whitney(change.baseline, change.candidate)
        if by_ranks >= _SIGNIFICANCE:
            note = f"significant only by Welch's test, not by ranks (Mann-Whitney p {by_ranks:.2g}): look for outliers"
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
            f"too near the noise between the {change.log.between.runs} --noise runs, which more trials do not lessen: "
            "name more runs of the same, or find what differs between them"
        )
    if worse > threshold:
        return "too noisy for any reasonable number of trials: measure for longer, or find what disturbs it"
    return (
        "as much worse as the threshold allows: more trials would not tell; measure for longer, or move the threshold"
    )
