"""The input of a report: runs with their layers, and comparisons."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from plimsoll.api.result import BenchmarkResult
from plimsoll.api.suite_status import EndedRound
from plimsoll.measure.hypotheses.decide import Decision
from plimsoll.measure.limits import LayerRow
from plimsoll.studies.model import StudyComparison
from plimsoll.suite.evaluation import VariantComparison
from plimsoll.suite.judging import RoundJudgement
from plimsoll.suite.measured import MeasuredRound

_SHORT_UID = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRun:
    """The results of one run."""

    label: str  # its name in the report, unique there
    results: Sequence[BenchmarkResult]
    layers: Sequence[LayerRow] = ()  # the layers of a run on a Ceph cluster; empty otherwise
    write_amplification: float | None = None  # bytes that the pool writes per byte of a client; None if unknown

    @property
    def uid(self) -> str:
        """Return the UID of the run."""
        return self.results[0].spec.run_uid

    @property
    def place(self) -> str:
        """Return namespace and name."""
        first = self.results[0]
        return f"{first.metadata.namespace}/{first.spec.run}"


def results_of(runs: Iterable[ReportedRun]) -> Iterator[tuple[ReportedRun, BenchmarkResult]]:
    """Yield the results of all runs, each after its run."""
    return ((run, result) for run in runs for result in run.results)


def runs_of(results: Sequence[BenchmarkResult]) -> list[ReportedRun]:
    """Return the runs of these results in order, each with a unique label.

    The label is the run's name, with its namespace and UID if needed.
    """
    grouped: dict[str, list[BenchmarkResult]] = {}
    for result in results:
        grouped.setdefault(result.spec.run_uid, []).append(result)
    runs = [ReportedRun(label=run_results[0].spec.run, results=run_results) for run_results in grouped.values()]
    runs = _with_unique_labels(runs, [run.place for run in runs])
    return _with_unique_labels(runs, [f"{run.place} {run.uid[:_SHORT_UID]}" for run in runs])


def _with_unique_labels(runs: Sequence[ReportedRun], longer: Sequence[str]) -> list[ReportedRun]:
    times = Counter(run.label for run in runs)
    return [replace(run, label=label) if times[run.label] > 1 else run for run, label in zip(runs, longer, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedSuite:
    """A suite."""

    label: str  # its name in the report
    rounds: Sequence[tuple[EndedRound, MeasuredRound]]  # in the order of time; at least one
    # The runs of each variant in the last round, as one run in which each run counts as a trial; without variants that
    # have no complete run.
    variants: Sequence[ReportedRun]
    comparisons: Sequence[VariantComparison]  # between variants, in the last round
    judgements: Mapping[str, RoundJudgement]  # of the last round, by the name of the comparison with accepted rounds
    decisions: Sequence[Decision]  # the hypotheses, decided in the last round
    # The last round compared with the study that the suite repeats; None if it repeats none.
    study: StudyComparison | None = None
