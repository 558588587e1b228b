"""The input of a report: runs with their layers, and comparisons."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from plimsoll.api.result import BenchmarkResult
from plimsoll.measure.compare.sides import Comparison
from plimsoll.measure.limits import LayerRow
from plimsoll.plan.likeness import Likeness

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
