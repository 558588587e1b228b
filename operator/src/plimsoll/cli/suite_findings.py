"""What a round of a suite shows: results, comparisons and hypotheses, read once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plimsoll.api.result import BenchmarkResult
from plimsoll.api.suite import BenchmarkSuite
from plimsoll.cli.suite_compared import VariantComparison, comparisons_of
from plimsoll.cli.suite_round import Round
from plimsoll.conductor.sink import read_results
from plimsoll.measure.hypotheses.decision import Decision, decide_all
from plimsoll.measure.hypotheses.samples import measured_run


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


def findings_of(round_: Round) -> Findings:
    """Read what a round has measured so far."""
    spec = round_.suite.spec
    complete = [child for child in round_.children if round_.is_complete(child)]
    results = {child.name: read_results(round_.directory_of(child)) for child in complete}
    runs: dict[str, list[list[BenchmarkResult]]] = {variant.name: [] for variant in spec.variants}
    for child in sorted(complete, key=lambda one: one.repeat):
        runs[child.variant].append(results[child.name])
    # A hypothesis is undecided if a run is missing.
    measured = [measured_run(child.variant, child.name, results.get(child.name, [])) for child in round_.children]
    return Findings(
        suite=round_.suite,
        runs=runs,
        comparisons=comparisons_of(spec, runs),
        decisions=decide_all(spec.hypotheses, measured),
    )
