"""What a round of a suite shows: results, comparisons and hypotheses, read once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plimsoll.api.result import BenchmarkResult
from plimsoll.api.suite import BenchmarkSuite
from plimsoll.cli.suite_measured import RoundResults
from plimsoll.measure.hypotheses.decision import Decision, decide_all
from plimsoll.measure.hypotheses.samples import measured_run
from plimsoll.suite.compared import VariantComparison, comparisons_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a round shows.

    Attributes:
        runs: variant -> the results of its complete runs, in the order of the repeats.

    """

    suite: BenchmarkSuite
    runs: Mapping[str, Sequence[list[BenchmarkResult]]]
    comparisons: Sequence[VariantComparison]
    decisions: Sequence[Decision]


def findings_of(round_: RoundResults) -> Findings:
    """Return what a round has measured so far."""
    spec, runs = round_.suite.spec, round_.by_variant
    # A hypothesis is undecided if a run is missing.
    measured = [measured_run(one.turn.variant, one.name, round_.results.get(one.name, [])) for one in round_.planned]
    return Findings(
        suite=round_.suite,
        runs=runs,
        comparisons=comparisons_of(spec, runs),
        decisions=decide_all(spec.hypotheses, measured),
    )
