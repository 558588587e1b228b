"""What a report is made of: runs, and what was computed of them by those who know how."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from plimsoll.api.result import BenchmarkResult
from plimsoll.measure.compare.comparison import Comparison
from plimsoll.measure.limits import LayerRow
from plimsoll.plan.fingerprint import Difference

_SHORT_UID = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The results of one run.

    Attributes:
        label: what it is called in the report; unique there.
        layers: of a run on a Ceph cluster: what each layer gives and permits; empty if there is only one.
        write_amplification: bytes that the pool writes for each of a client's; None if unknown.

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
    """Two runs of a report, compared.

    Attributes:
        comparison: None if they have no point in common.
        differences: in what the runs differ, each with the points that have it.
        unknown: points of which a side was recorded without a fingerprint.

    """

    baseline: str
    candidate: str
    comparison: Comparison | None
    differences: Sequence[tuple[Difference, Sequence[str]]] = ()
    unknown: Sequence[str] = ()

    @property
    def is_of_the_same(self) -> bool:
        """Whether all points are known to have been asked for the same of the same."""
        return not self.unknown and all(difference.part != "identity" for difference, _ in self.differences)


def runs_of(results: Sequence[BenchmarkResult]) -> list[Run]:
    """Return the runs that results are of, in their order, each with a label that no other has.

    The label is the run's name, with its namespace or its UID as well where that is not enough.
    """
    grouped: dict[str, list[BenchmarkResult]] = {}
    for result in results:
        grouped.setdefault(result.spec.run_uid, []).append(result)
    runs = [Run(label=found[0].spec.run, results=found) for found in grouped.values()]
    runs = _told_apart(runs, [run.place for run in runs])
    return _told_apart(runs, [f"{run.place} {run.uid[:_SHORT_UID]}" for run in runs])


def _told_apart(runs: Sequence[Run], longer: Sequence[str]) -> list[Run]:
    times = Counter(run.label for run in runs)
    return [replace(run, label=label) if times[run.label] > 1 else run for run, label in zip(runs, longer, strict=True)]
