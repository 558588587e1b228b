"""What a round of a suite shows: results, comparisons and hypotheses, read once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plimsoll.api.result import BenchmarkResult
from plimsoll.api.suite import BenchmarkSuite
from plimsoll.cli.suite_round import Round
from plimsoll.conductor.sink import read_results
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


def findings_of(round_: Round) -> Findings:
    """Read what a round has measured so far."""
    spec = round_.suite.spec
    results = _results(round_)
    runs = _by_variant(round_, results)
    # A hypothesis is undecided if a run is missing.
    measured = [measured_run(child.variant, child.name, results.get(child.name, [])) for child in round_.children]
    return Findings(
        suite=round_.suite,
        runs=runs,
        comparisons=comparisons_of(spec, runs),
        decisions=decide_all(spec.hypotheses, measured),
    )


def runs_of(round_: Round) -> Mapping[str, Sequence[list[BenchmarkResult]]]:
    """Read the complete runs of each variant, in the order of the repeats."""
    return _by_variant(round_, _results(round_))


def _results(round_: Round) -> Mapping[str, list[BenchmarkResult]]:
    """Read the results of the complete runs, by the name of the run."""
    complete = [child for child in round_.children if round_.is_complete(child)]
    return {child.name: read_results(round_.directory_of(child)) for child in complete}


def _by_variant(
    round_: Round, results: Mapping[str, list[BenchmarkResult]]
) -> Mapping[str, Sequence[list[BenchmarkResult]]]:
    runs: dict[str, list[list[BenchmarkResult]]] = {variant.name: [] for variant in round_.suite.spec.variants}
    for child in sorted(round_.children, key=lambda one: one.repeat):
        if child.name in results:
            runs[child.variant].append(results[child.name])
    return runs
