"""The outcomes of a round that the status has: the worst ones, if there are too many."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from plimsoll.api.suite_status import (
    MAX_OUTCOMES,
    ComparisonOutcome,
    ComparisonVerdict,
    HypothesisOutcome,
    HypothesisResult,
)

T = TypeVar("T")

_COMPARISONS = (ComparisonVerdict.REGRESSION, ComparisonVerdict.INCONCLUSIVE, ComparisonVerdict.NO_REGRESSION)
_HYPOTHESES = (HypothesisOutcome.REFUTED, HypothesisOutcome.UNDECIDED, HypothesisOutcome.HELD)
"""From the worst one on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes(Generic[T]):
    """The worst outcomes, in order.

    Attributes:
        left_out: number of further ones.

    """

    shown: tuple[T, ...] = ()
    left_out: int = 0


def worst_comparisons(found: Iterable[ComparisonOutcome]) -> Outcomes[ComparisonOutcome]:
    """Return the outcomes by verdict, and of each verdict those with the largest loss first."""
    return _cut(sorted(found, key=lambda one: (_COMPARISONS.index(one.verdict), one.estimate or 0.0)))


def worst_hypotheses(found: Iterable[HypothesisResult]) -> Outcomes[HypothesisResult]:
    """Return the results by verdict, otherwise in their order."""
    return _cut(sorted(found, key=lambda one: _HYPOTHESES.index(one.verdict)))


def _cut(ordered: list[T]) -> Outcomes[T]:
    return Outcomes(shown=tuple(ordered[:MAX_OUTCOMES]), left_out=max(0, len(ordered) - MAX_OUTCOMES))
