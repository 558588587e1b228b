"""The input of a report: runs with their layers, and comparisons."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from plimsoll.api.result import BenchmarkResult
from plimsoll.measure.compare.sides import Comparison
from plimsoll.measure.compare.tests import Conclusion
from plimsoll.measure.hypotheses.decide import Decision
from plimsoll.measure.limits import LayerRow
from plimsoll.plan.fingerprint import Likeness
from plimsoll.studies.model import StudyComparison
from plimsoll.suite.history.judging import JudgedRound, RoundJudgement

_SHORT_UID = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRun:
    """The results of one run.

    Attributes:
        label: its name in the report, unique there.
        layers: the layers of a run on a Ceph cluster; empty otherwise.
        write_amplification: bytes that the pool writes per byte of a client; None if unknown.

    """

    label: str
    results: Sequence[BenchmarkResult]
    layers: Sequence[LayerRow] = ()
    write_amplification: float | None = None

    @property
    def uid(self) -> str:
        """Return the UID of the run."""
        return self.results[0].spec.run_uid

    @property
    def place(self) -> str:
        """Return namespace and name."""
        first = self.results[0]
        return f"{first.metadata.namespace}/{first.spec.run}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The comparison of two runs.

    Attributes:
        comparison: None if the runs have no point in common.

    """

    baseline: str
    candidate: str
    comparison: Comparison | None
    likeness: Likeness


def runs_of(results: Sequence[BenchmarkResult]) -> list[ReportedRun]:
    """Return the runs of these results in order, each with a unique label.

    The label is the run's name, with its namespace and UID if needed.
    """
    grouped: dict[str, list[BenchmarkResult]] = {}
    for result in results:
        grouped.setdefault(result.spec.run_uid, []).append(result)
    runs = [ReportedRun(label=found[0].spec.run, results=found) for found in grouped.values()]
    runs = _with_unique_labels(runs, [run.place for run in runs])
    return _with_unique_labels(runs, [f"{run.place} {run.uid[:_SHORT_UID]}" for run in runs])


def _with_unique_labels(runs: Sequence[ReportedRun], longer: Sequence[str]) -> list[ReportedRun]:
    times = Counter(run.label for run in runs)
    return [replace(run, label=label) if times[run.label] > 1 else run for run, label in zip(runs, longer, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRound:
    """One round.

    Attributes:
        conclusion: of the comparisons with accepted rounds; None if there is none.

    """

    judged: JudgedRound
    conclusion: Conclusion | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedVariants:
    """A comparison of two variants in the last round.

    Attributes:
        conclusion: its conclusion, which takes the doubts into account.
        doubts: reasons not to rely on the numbers.

    """

    name: str
    compared: Compared
    conclusion: Conclusion
    doubts: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedSuite:
    """A suite.

    Attributes:
        label: its name in the report.
        rounds: in the order of time; at least one.
        variants: the runs of each variant in the last round, as one run in which each run counts as a trial; without
            variants that have no complete run.
        comparisons: between variants, in the last round.
        judgements: of the last round, by the name of the comparison with accepted rounds.
        decisions: the hypotheses, decided in the last round.
        study: the last round beside the study that the suite repeats; None if it repeats none.

    """

    label: str
    rounds: Sequence[ReportedRound]
    variants: Sequence[ReportedRun]
    comparisons: Sequence[ComparedVariants]
    judgements: Mapping[str, RoundJudgement]
    decisions: Sequence[Decision]
    study: StudyComparison | None = None
