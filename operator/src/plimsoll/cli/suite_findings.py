"""What a round of a suite shows: results, comparisons and hypotheses, read once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plimsoll.api.result import BenchmarkResult
from plimsoll.api.suite import BenchmarkSuite
from plimsoll.cli.layers import device_problem, layers_of
from plimsoll.cli.suite_measured import RoundResults
from plimsoll.measure.hypotheses.decide import Decision, decide_all
from plimsoll.measure.hypotheses.select import MeasuredRun, measured_run
from plimsoll.measure.limits import LayerRow
from plimsoll.studies.comparison import StudyComparison, compare_with_study
from plimsoll.studies.library import STUDY_NAMES, load_study
from plimsoll.suite.compared import VariantComparison, comparisons_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a round shows.

    Attributes:
        runs: variant -> the results of its complete runs, in the order of the repeats.
        study: the numbers beside those of the study that the suite repeats; None if it names none that is known.

    """

    suite: BenchmarkSuite
    runs: Mapping[str, Sequence[list[BenchmarkResult]]]
    comparisons: Sequence[VariantComparison]
    decisions: Sequence[Decision]
    study: StudyComparison | None = None


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
        study=_beside_study(round_.suite, measured, runs),
    )


def _beside_study(
    suite: BenchmarkSuite, measured: Sequence[MeasuredRun], runs: Mapping[str, Sequence[list[BenchmarkResult]]]
) -> StudyComparison | None:
    name = suite.metadata.study
    if name is None or name not in STUDY_NAMES:
        return None
    return compare_with_study(
        load_study(name),
        [variant.name for variant in suite.spec.variants],
        measured,
        {variant: found[0] for variant, found in runs.items() if found},
        _rows,
    )


def _rows(results: Sequence[BenchmarkResult], devices: Sequence[BenchmarkResult]) -> Sequence[LayerRow]:
    """Return the layers of a run; what was not measured on devices of its own sets no limit."""
    return layers_of(results, [one for one in devices if device_problem(one) is None])
