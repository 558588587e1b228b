"""What a suite's status says about comparisons and hypotheses: verdict, sentence, and the change that decides."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plimsoll.api.suite_status import (
    MAX_OUTCOME_CHARACTERS,
    ComparisonOutcome,
    ComparisonVerdict,
    HypothesisOutcome,
    HypothesisResult,
)
from plimsoll.measure.checks.check import quote
from plimsoll.measure.compare.comparison import change_text, mean_text, place_of, quantity_text
from plimsoll.measure.compare.sides import Change, Comparison, ratios_of
from plimsoll.measure.compare.tests import Conclusion
from plimsoll.measure.compare.values import Metric
from plimsoll.measure.hypotheses.decide import Decision
from plimsoll.suite.compared import VariantComparison
from plimsoll.suite.history.family import Against, Found
from plimsoll.suite.history.judging import RoundJudgement, VariantJudgement

_SEVERITY = (Conclusion.REGRESSION, Conclusion.INCONCLUSIVE, Conclusion.NO_REGRESSION)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Deciding:
    """One change of a comparison.

    Attributes:
        place: what changed, such as `reads, mean of 4 points read iops`.
        ratio: new value divided by the old one; None if it cannot be computed.
        low: lower end of its 95 % confidence interval.
        high: upper end of it.

    """

    place: str
    metric: Metric
    ratio: float | None
    low: float | None
    high: float | None
    conclusion: Conclusion

    @property
    def worsening(self) -> float:
        """How much worse it is, for an order; negative if it is better."""
        if not self.ratio:
            return -math.inf
        return -math.log(self.ratio) if self.metric.is_rate else math.log(self.ratio)

    @property
    def effect(self) -> tuple[float | None, float | None, float | None]:
        """The change as a part of the old value, and its interval; less than 0 is worse."""
        if self.metric.is_rate:
            return _part(self.ratio), _part(self.low), _part(self.high)
        return _negative(_part(self.ratio)), _negative(_part(self.high)), _negative(_part(self.low))

    @property
    def words(self) -> str:
        """The change in words."""
        return f"{self.place} {change_text(self.ratio)} ({change_text(self.low)} to {change_text(self.high)})"


def outcome_of_variants(one: VariantComparison) -> ComparisonOutcome:
    """Return the outcome of a comparison between two variants of a round."""
    changes = [*_changes(one.comparison)] if one.comparison is not None else []
    doubts = [
        *(f"{found.key} differs although no variant sets it" for found in one.unexplained),
        *one.doubts,
        *([f"{one.missing} runs of the two variants have no numbers"] if one.missing else []),
        *(one.comparison.reasons if one.comparison is not None else ()),
    ]
    return _outcome(one.name, one.candidate, one.conclusion, changes, doubts)


def outcomes_of_rounds(name: str, judgement: RoundJudgement) -> Iterator[ComparisonOutcome]:
    """Yield the outcome of a comparison with the accepted rounds for each variant."""
    changed = [
        f"changed since the last accepted round: {one.key}: {one.baseline} -> {one.candidate}"
        for one in judgement.changes
    ]
    for variant in judgement.variants:
        yield _outcome_of_variant(name, variant, changed)


def outcome_of_hypothesis(one: Decision) -> HypothesisResult:
    """Return the outcome of a hypothesis."""
    return HypothesisResult(
        name=one.name,
        variant=one.variant,
        verdict=HypothesisOutcome(one.verdict),
        message=quote("; ".join((one.sentence, *one.notes)), MAX_OUTCOME_CHARACTERS),
        estimate=_finite(one.estimate),
        low=_finite(one.low),
        high=_finite(one.high),
    )


def _outcome_of_variant(name: str, one: VariantJudgement, changed: Sequence[str]) -> ComparisonOutcome:
    against = Against.PINNED if one.is_drift else Against.ACCEPTED
    changes = [_of_rounds(found) for found in one.found if found.against is against]
    drifted = ["it is slow drift: worse than the pinned rounds"] if one.is_drift else []
    outcome = _outcome(name, one.variant, one.conclusion, changes, [*drifted, *one.reasons, *changed])
    return outcome.model_copy(update={"drift": one.is_drift})


def _outcome(
    name: str, variant: str, conclusion: Conclusion, changes: Sequence[_Deciding], reasons: Sequence[str]
) -> ComparisonOutcome:
    """Return an outcome with the change that decides it: of those with the worst conclusion, the worst."""
    deciding = min(changes, key=lambda one: (_SEVERITY.index(one.conclusion), -one.worsening), default=None)
    words = [deciding.words] if deciding is not None else []
    # Doubts explain a conclusion, and numbers a regression.
    texts = [*words, *reasons] if conclusion is Conclusion.REGRESSION else [*reasons, *words]
    estimate, low, high = deciding.effect if deciding is not None else (None, None, None)
    return ComparisonOutcome(
        name=name,
        variant=variant,
        verdict=ComparisonVerdict(conclusion),
        message=quote("; ".join(texts), MAX_OUTCOME_CHARACTERS),
        estimate=estimate,
        low=low,
        high=high,
    )


def _changes(comparison: Comparison) -> Iterator[_Deciding]:
    """Yield the changes that decide a comparison: means, and gating metrics of points."""
    for mean in comparison.means:
        yield _of_variants(f"{mean.workload}, {mean_text(mean)} {mean.operation} {mean.metric}", mean)
    for point in comparison.points:
        for metric in point.metrics:
            if metric.gates:
                yield _of_variants(place_of(point, metric), metric)


def _of_variants(place: str, one: Change) -> _Deciding:
    return _Deciding(
        place=place, metric=one.metric, ratio=one.ratio, low=one.low, high=one.high, conclusion=one.conclusion
    )


def _of_rounds(one: Found) -> _Deciding:
    _, workload, operation, metric = one.group
    place = one.point or (f"{workload}, mean of {one.points} points" if one.points > 1 else workload)
    ratios = ratios_of(metric, one.change)
    return _Deciding(
        place=f"{place} {quantity_text(operation, metric)}",
        metric=metric,
        ratio=ratios.ratio,
        low=ratios.low,
        high=ratios.high,
        conclusion=one.judgement.conclusion,
    )


def _part(ratio: float | None) -> float | None:
    return None if ratio is None else _finite(ratio - 1)


def _negative(value: float | None) -> float | None:
    return None if value is None else -value


def _finite(value: float | None) -> float | None:
    """Return a number that JSON can represent; None if it cannot."""
    return value if value is not None and math.isfinite(value) else None
