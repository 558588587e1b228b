"""The comparisons between the variants of a round."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.api.result import BenchmarkResult
from plimsoll.api.suite import SuiteSpec
from plimsoll.api.suite_comparison import Allowance, SuiteComparison
from plimsoll.measure.checks.check import first_few
from plimsoll.measure.compare.comparison import compare, repeated_too_often
from plimsoll.measure.compare.noise import RepeatsDifferError, as_one_run
from plimsoll.measure.compare.sides import Comparison
from plimsoll.measure.compare.tests import MINIMUM_TRIALS, Conclusion
from plimsoll.measure.compare.values import Pair, RegressionRule, match_points
from plimsoll.plan.fingerprint import Difference
from plimsoll.plan.likeness import Likeness, likeness_of
from plimsoll.suite.differences import FieldChange, changes_between
from plimsoll.suite.identity import unexplained

_PERCENT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantComparison:
    """A comparison of a suite.

    Attributes:
        comparison: None if a variant has no complete run, or runs of a variant measured different things.
        unexplained: differences in identity that the variants do not set.
        doubts: other reasons not to rely on any of these runs.
        missing: planned runs of both variants that are not complete.
        of_runs: whether each run counts as a trial; otherwise the first run of each variant is compared.

    """

    name: str
    baseline: str
    candidate: str
    comparison: Comparison | None
    likeness: Likeness
    unexplained: Sequence[Difference]
    doubts: Sequence[str]
    missing: int
    of_runs: bool

    @property
    def conclusion(self) -> Conclusion:
        """The conclusion; Inconclusive if the variants were, or may have been, measured under different conditions.

        Runs that are missing could show a regression, but cannot disprove one.
        """
        if self.comparison is None or self.unexplained or self.doubts:
            return Conclusion.INCONCLUSIVE
        found = self.comparison.conclusion
        return Conclusion.INCONCLUSIVE if self.missing and found is Conclusion.NO_REGRESSION else found


def comparisons_of(spec: SuiteSpec, runs: Mapping[str, Sequence[list[BenchmarkResult]]]) -> list[VariantComparison]:
    """Return the comparisons between variants of a suite; `runs` are the complete ones of each variant."""
    return [
        _compared(spec, one, sides, (runs[sides[0]], runs[sides[1]]))
        for one in spec.comparisons
        if (sides := one.variants) is not None
    ]


def _compared(
    spec: SuiteSpec,
    asked: SuiteComparison,
    names: tuple[str, str],
    runs: tuple[Sequence[list[BenchmarkResult]], Sequence[list[BenchmarkResult]]],
) -> VariantComparison:
    (baseline, candidate), (ours, theirs) = names, runs
    of_runs = min(len(ours), len(theirs)) >= MINIMUM_TRIALS
    differing: list[str] = []
    try:
        sides = (as_one_run(ours), as_one_run(theirs)) if of_runs else (_first(ours), _first(theirs))
    except RepeatsDifferError as error:
        sides, differing = ([], []), [str(error)]
    # What the variants change may be a parameter, which does not make it another point here.
    matching = match_points(*sides, also_by_name=True)
    likeness = likeness_of(matching.pairs)
    return VariantComparison(
        name=asked.name,
        baseline=baseline,
        candidate=candidate,
        comparison=compare(matching, rule_of(asked.allow)) if ours and theirs and not differing else None,
        likeness=likeness,
        unexplained=_unexplained(changes_between(spec, baseline, candidate), matching.pairs),
        doubts=[*differing, *_unknown(likeness), *(doubt for run in (*ours, *theirs) for doubt in _repeated(run))],
        missing=2 * spec.repeat - len(ours) - len(theirs),
        of_runs=of_runs,
    )


def _unknown(likeness: Likeness) -> Iterator[str]:
    if likeness.unknown:
        yield f"without fingerprints, nothing shows that only the variants differ: {first_few(likeness.unknown, 1)}"


def _repeated(run: Sequence[BenchmarkResult]) -> Iterator[str]:
    """Yield that a run repeated too many trials; the trials that stand for whole runs do not show it."""
    yield from repeated_too_often(run[0].spec.run if run else "", run)


def _first(runs: Sequence[list[BenchmarkResult]]) -> list[BenchmarkResult]:
    return runs[0] if runs else []


def _unexplained(changes: Sequence[FieldChange], pairs: Sequence[Pair]) -> list[Difference]:
    """Return the differences in identity that do not follow from these changes, each once."""
    found: list[Difference] = []
    for pair in pairs:
        known = likeness_of([pair]).differences
        for one in unexplained(changes, pair.baseline.spec.workload, [difference for difference, _ in known]):
            if one not in found:
                found.append(one)
    return found


def rule_of(allow: Allowance) -> RegressionRule:
    """Return the rule of what a comparison tolerates."""
    return RegressionRule(rate=allow.rate_percent / _PERCENT, latency=allow.latency_percent / _PERCENT)
