"""What a round of a suite has measured, on this machine or in a cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from plimsoll.api.result import BenchmarkResult
from plimsoll.api.suite import BenchmarkSuite
from plimsoll.cli.suite_round import Round
from plimsoll.conductor.sink import read_results
from plimsoll.suite.children import Turn
from plimsoll.suite.history.rounds import MeasuredRound, measured_round


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """A run that a round consists of."""

    turn: Turn
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundResults:
    """The results of a round.

    Attributes:
        minute: of its start, since the epoch.
        digest: of what the suite measured.
        planned: its runs, in their order.
        results: of the complete runs, by the name of the run.
        directory: None if the round was measured in a cluster.

    """

    suite: BenchmarkSuite
    minute: int
    digest: str
    planned: Sequence[PlannedRun]
    results: Mapping[str, list[BenchmarkResult]]
    directory: Path | None = None

    @property
    def by_variant(self) -> Mapping[str, Sequence[list[BenchmarkResult]]]:
        """The results of the complete runs of each variant, in the order of the repeats."""
        runs: dict[str, list[list[BenchmarkResult]]] = {variant.name: [] for variant in self.suite.spec.variants}
        for one in sorted(self.planned, key=lambda one: one.turn.repeat):
            if one.name in self.results:
                runs[one.turn.variant].append(self.results[one.name])
        return runs

    @property
    def measured(self) -> MeasuredRound:
        """The round as comparisons with other rounds see it."""
        return measured_round(
            minute=self.minute, digest=self.digest, repeat=self.suite.spec.repeat, runs=self.by_variant
        )


def results_of_round(round_: Round) -> RoundResults:
    """Read what a round on this machine has measured so far."""
    complete = [child for child in round_.children if round_.is_complete(child)]
    return RoundResults(
        suite=round_.suite,
        minute=round_.start.minute,
        digest=round_.start.digest,
        planned=[PlannedRun(turn=child, name=child.name) for child in round_.children],
        results={child.name: read_results(round_.directory_of(child)) for child in complete},
        directory=round_.directory,
    )
