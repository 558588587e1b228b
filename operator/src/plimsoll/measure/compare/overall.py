"""The conclusion of a whole comparison, from its mean changes and its points."""

from collections.abc import Iterable, Iterator, Sequence

from plimsoll.measure.compare.conclusion import Conclusion
from plimsoll.measure.compare.results import MeanComparison, MetricComparison


def overall(deciding: Iterable[Conclusion], others: Iterable[Conclusion], *, doubted: bool) -> Conclusion:
    """Return the conclusion of a comparison: one regression decides, whatever else is unknown.

    Args:
        deciding: of what has to show that there is no regression.
        others: of points whose mean change shows it for them.
        doubted: whether there is any other reason against `NoRegression`.

    """
    needed = {*deciding}
    if Conclusion.REGRESSION in needed.union(others):
        return Conclusion.REGRESSION
    return Conclusion.INCONCLUSIVE if doubted or Conclusion.INCONCLUSIVE in needed else Conclusion.NO_REGRESSION


def has_to_decide(metric: MetricComparison) -> bool:
    """Whether a gating metric of a point has to show that there is no regression."""
    return not metric.in_mean or metric.suspected or metric.ratio is None


def tally(means: Sequence[MeanComparison], gating: Sequence[MetricComparison]) -> Iterator[str]:
    """Yield how many changes have which conclusion."""
    yield from _count([mean.conclusion for mean in means], "mean changes of workloads")
    alone = [metric for metric in gating if not metric.in_mean]
    if not means:
        yield from _count([metric.conclusion for metric in alone], "gating metrics")
        return
    yield from _count([metric.conclusion for metric in alone], "gating metrics that no mean includes")
    included = [metric for metric in gating if metric.in_mean]
    regressed = sum(metric.conclusion is Conclusion.REGRESSION for metric in included)
    if regressed:
        yield f"{Conclusion.REGRESSION} in {regressed} of {len(included)} gating metrics of single points"
    suspected = sum(metric.suspected for metric in included)
    if suspected:
        yield f"a regression is suspected in {suspected} of {len(included)} gating metrics of single points"


def _count(conclusions: Sequence[Conclusion], what: str) -> Iterator[str]:
    for conclusion in Conclusion:
        number = conclusions.count(conclusion)
        if number:
            yield f"{conclusion} in {number} of {len(conclusions)} {what}"
