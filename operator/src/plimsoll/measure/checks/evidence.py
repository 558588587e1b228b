"""What a trial is judged by, and its checks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from plimsoll.api.line import ProbeOutcome
from plimsoll.api.names import LatencyKind, Operation
from plimsoll.api.operation import OperationResult, Steadiness
from plimsoll.api.result import Finding, Window
from plimsoll.ceph.watch import ClusterSample, ClusterStatus
from plimsoll.measure.checks.check import Check, CheckedValue, CheckedValues, evaluate
from plimsoll.measure.cluster import polls_around, statuses_of
from plimsoll.measure.histogram import Histogram, HistogramError
from plimsoll.measure.intake import ClientMeasurement, Intake, TrialFacts
from plimsoll.measure.line.observe import BROKEN, Observation, outcome_of
from plimsoll.measure.rates import OperationRates, by_operation, grouped
from plimsoll.measure.sample import HostUse
from plimsoll.measure.stalls import Standstill
from plimsoll.measure.timeline import Interval, Share

ObservedClient = tuple[ClientMeasurement, HostUse]

Slices = list[tuple[Interval, Histogram]]  # latencies in each slice of time, in order


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A trial as planned, as received and as calculated."""

    facts: TrialFacts
    intake: Intake
    window: Window | None
    # The time that rates cover: the common window, or the whole run for a tool without a window; None if no client
    # measured.
    span: Interval | None
    rates: Mapping[Operation, OperationRates]
    operations: tuple[OperationResult, ...]
    standstill: Standstill | None  # None if it is unknown
    steadiness: Steadiness | None  # of the rate of all operations; None if it is not judged
    # What the trial shows of an offered load; None without one, and if it shows nothing.
    observation: Observation | None = None

    @property
    def measured(self) -> tuple[ClientMeasurement, ...]:
        """The usable measurements."""
        return self.intake.measured

    @cached_property
    def observed(self) -> list[ObservedClient]:
        """The usable measurements whose host was observed, with the observation."""
        return [(item, host) for item in self.measured if (host := item.answer.host) is not None]

    @cached_property
    def polls(self) -> tuple[ClusterSample, ...]:
        """The polls of the cluster during the trial, the last one before and the first one after it."""
        return polls_around(self.facts.cluster, self.span) if self.facts.cluster else ()

    @cached_property
    def statuses(self) -> list[ClusterStatus]:
        """The status of each of these polls that Ceph answered."""
        return statuses_of(self.polls)

    @property
    def is_open_loop(self) -> bool:
        """Whether a search offered operations at a rate, however fast the storage answered."""
        return self.facts.is_open_loop

    @cached_property
    def is_broken(self) -> bool:
        """Whether a probe broke by its load: operations were late, or an open loop's load was not achieved.

        In a closed loop operations in flight wait for the storage, so a depth that was not reached is the client's
        fault.
        """
        if self.facts.search is None or self.observation is None:
            return False
        outcome = outcome_of(self.observation, self.facts.search.objectives)
        return outcome in BROKEN if self.is_open_loop else outcome is ProbeOutcome.LATE

    @cached_property
    def slices(self) -> Mapping[Operation, Slices | None]:
        """The latencies over time of each operation, as `slices_of` returns them."""
        shares = by_operation(
            (share for item in self.measured for share in item.shares), lambda it: it.sample.operation
        )
        return {operation: slices_of(parts) for operation, parts in shares.items()}

    def shares_of(self, operation: Operation) -> list[Share]:
        """Return the shares of all clients in one operation."""
        return [share for item in self.measured for share in item.shares if share.sample.operation is operation]


def slices_of(shares: Sequence[Share]) -> Slices | None:
    """Return the latencies of an operation over time; none of a tool without percentiles, None if they are missing."""
    if not any(share.sample.latency.kind is LatencyKind.FULL for share in shares):
        return []
    try:
        numbered = grouped(
            ((number, *piece) for share in shares for number, piece in enumerate(share.slices())),
            lambda piece: piece[0],
        )
        return [
            (
                Interval(start=min(time.start for _, time, _ in same), end=max(time.end for _, time, _ in same)),
                Histogram.merge_texts(text for _, _, text in same),
            )
            for _, same in sorted(numbered.items())
        ]
    except HistogramError:
        return None


def by_node(clients: Iterable[ObservedClient]) -> dict[str, list[ObservedClient]]:
    """Group clients by their node."""
    return grouped(clients, lambda client: client[0].node)


def value_of_clients(clients: Iterable[ObservedClient], value: float, detail: str) -> CheckedValue:
    """Return a value that several clients share."""
    return CheckedValue(clients=tuple(item.client for item, _ in clients), value=value, detail=detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialCheck(Check):
    """A check on every trial: decorates the function that yields its values. `judge.TRIAL_CHECKS` lists all of them."""

    values_of: Callable[[Evidence], CheckedValues] = lambda _: iter(())
    # The state of the Ceph cluster: never Invalid if the run requires no healthy one, because its user wants the
    # numbers.
    concerns_health: bool = False
    # A load that storage cannot carry causes it. In a probe that broke it is no finding but a warning: if such probes
    # were Invalid, or the line were Suspect because of them, only storage that breaks without a trace would have one.
    load_explains: bool = False

    def __call__(self, values_of: Callable[[Evidence], CheckedValues]) -> Self:
        """Return the check of these values."""
        return replace(self, values_of=values_of)

    def judge(self, evidence: Evidence) -> tuple[Finding, ...]:
        """Return the finding on a trial; none if it passes."""
        check, cluster = self, evidence.facts.cluster
        if self.concerns_health and cluster is not None and not cluster.required:
            check = replace(self, suspect=self.invalid if self.suspect is None else self.suspect, invalid=None)
        return evaluate(check, self.values_of(evidence))
