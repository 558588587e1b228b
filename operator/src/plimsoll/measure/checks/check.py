"""The definition of a check, the evidence that judges a trial, and how values beyond limits become a finding."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from typing import Self

from plimsoll.api.line import ProbeOutcome
from plimsoll.api.names import Cause, LatencyKind, Operation, Verdict
from plimsoll.api.operation import OperationResult, Steadiness
from plimsoll.api.result import Finding, Window
from plimsoll.ceph.disturbance import undisturbed
from plimsoll.ceph.watch import ClusterSample, ClusterStatus
from plimsoll.measure.cluster import PoolIo, polls_around, pool_io_within, statuses_of
from plimsoll.measure.histogram import Histogram, HistogramError
from plimsoll.measure.intake import ClientMeasurement, Intake, TrialFacts
from plimsoll.measure.line.observe import BROKEN, Observation, outcome_of
from plimsoll.measure.rates import by_operation, grouped
from plimsoll.measure.sample import HostUse
from plimsoll.measure.stalls import Standstill
from plimsoll.measure.text import number_text, numbered, quote_finding
from plimsoll.measure.timeline import Interval, Share, covering

MAX_NAMED_CLIENTS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What a value shows, its limits, and what to do beyond them."""

    reason: str  # CamelCase; the `reason` of its findings
    what: str  # describes the value, in words that fit before a number
    unit: str = ""  # of the value and the limits; empty for counts and ratios
    suspect: float | None = None  # a value beyond it makes the numbers Suspect; None if no value does
    invalid: float | None = None  # a value beyond it makes them Invalid; None if no value does
    is_low_bad: bool = False  # whether a value below a limit is beyond it; a value equal to its limit passes
    remedy: str  # what the user can do, as a clause
    # What makes an attempt Invalid. None if each value has a cause of its own, or if only other attempts show it.
    cause: Cause | None = Cause.STORAGE

    def verdict(self, value: float) -> Verdict:
        for verdict, limit in ((Verdict.INVALID, self.invalid), (Verdict.SUSPECT, self.suspect)):
            if limit is not None and self.badness(value) > self.badness(limit):
                return verdict
        return Verdict.VALID

    def fails(self, value: float) -> bool:
        return self.verdict(value) is not Verdict.VALID

    def limit(self, verdict: Verdict) -> float:
        """Return the limit that a value with this verdict exceeds; ValueError if no value has this verdict."""
        if (limit := {Verdict.SUSPECT: self.suspect, Verdict.INVALID: self.invalid}.get(verdict)) is None:
            raise ValueError(f"{self.reason} is never {verdict}")
        return limit

    def limit_text(self, limit: float | None) -> str:
        return "-" if limit is None else f"{'below' if self.is_low_bad else 'above'} {self.with_unit(limit)}"

    def with_unit(self, value: float) -> str:
        """Return a value for people, with as many digits as it takes to differ from a limit."""
        texts = [number_text(value, digits) for digits in range(3, 7)]
        limits = [number_text(it) for it in (self.suspect, self.invalid) if it is not None and it != value]
        return f"{next((text for text in texts if text not in limits), texts[-1])} {self.unit}".strip()

    def badness(self, value: float) -> float:
        """Return a number that is greater for a worse value."""
        return -value if self.is_low_bad else value


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedValue:
    """A value that a check compares with its limits."""

    value: float
    clients: tuple[int, ...] = ()  # those with this value; empty for a value of the trial or the point
    detail: str = ""  # replaces the bare value in the message, such as the tool's own message
    limit: str | None = None  # replaces the check's limit in the message; empty if the detail needs none
    detail_names_clients: bool = False  # whether the message needs no other mention of the clients
    cause: Cause | None = None  # what this value shows if it is Invalid; None if its check or other attempts tell


CheckedValues = Iterator[CheckedValue]


def client_value(client: int, value: float, detail: str = "", cause: Cause | None = None) -> CheckedValue:
    return CheckedValue(clients=(client,), value=value, detail=detail, cause=cause)


def verdict_of(findings: Iterable[Finding]) -> Verdict:
    """Return the worst verdict, Valid without findings."""
    return max((it.verdict for it in findings), key=lambda verdict: verdict.severity, default=Verdict.VALID)


def invalid_reasons(findings: Iterable[Finding]) -> list[str]:
    """Return the reasons of the Invalid findings, each once."""
    return list(dict.fromkeys(finding.reason for finding in findings if finding.verdict is Verdict.INVALID))


def rolled_up(findings: Iterable[tuple[int, Iterable[Finding]]], noun: str) -> Iterator[Finding]:
    """Yield the worst finding of each reason, preferably one that blames the storage, of all passes or rounds.

    The message names its pass or round, and the others with the same reason: `pass 2 (also passes 0 and 1): ...`.
    """
    numbered_findings = ((number, finding) for number, part in findings for finding in part)
    for cases in grouped(numbered_findings, lambda case: case[1].reason).values():
        where, worst = max(cases, key=lambda case: (case[1].verdict.severity, case[1].cause is Cause.STORAGE))
        others = {number for number, _ in cases} - {where}
        also = f" (also {numbered(noun, others)})" if others else ""
        message = quote_finding(f"{numbered(noun, {where})}{also}: {worst.message}")
        yield worst.model_copy(update={"message": message})


def evaluate(check: Check, values: Iterable[CheckedValue]) -> tuple[Finding, ...]:
    """Return one finding of a trial for all values that fail the check, worded by the worst; none if all pass.

    `trial.measure_round` derives the trial's verdict, `summary.summarise` that of the point, from trials that count.
    """
    if not (bad := [item for item in values if check.fails(item.value)]):
        return ()
    worst = max(bad, key=lambda item: check.badness(item.value))
    verdict = check.verdict(worst.value)
    clients = sorted({client for item in bad for client in item.clients})
    others = [client for client in clients if client not in worst.clients]
    subject = f"{numbered('client', worst.clients)}: " if worst.clients and not worst.detail_names_clients else ""
    value = worst.detail or f"{check.what}: {check.with_unit(worst.value)}"
    limit = worst.limit
    # A detail about something that must not occur needs no "limit 0".
    if limit is None and (check.limit(verdict) or not worst.detail):
        limit = check.with_unit(check.limit(verdict))
    also = f"; also {numbered('client', others)}" if others else ""
    message = f"{subject}{value}{f' (limit {limit})' if limit else ''}{also}; {check.remedy}"
    causes = {item.cause for item in bad if item.cause and check.verdict(item.value) is Verdict.INVALID}
    # One client that the storage may have spoiled is enough.
    cause = Cause.STORAGE if Cause.STORAGE in causes else next(iter(causes), None)
    named = tuple(clients[:MAX_NAMED_CLIENTS])
    return (Finding(reason=check.reason, verdict=verdict, message=message, clients=named, cause=cause),)


HostedClient = tuple[ClientMeasurement, HostUse]
Slices = list[tuple[Interval, Histogram]]  # latencies in each slice of time, in order


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A trial as planned, as received and as calculated, by the functions that are named here."""

    facts: TrialFacts
    intake: Intake  # `intake.receive`
    window: Window | None  # `timeline.window_of`
    span: Interval | None  # the common window, or the whole run for a tool without one; None if no client measured
    calm: Interval | None  # the common window, of a disturbed trial the part before; None for a tool without one
    operations: tuple[OperationResult, ...]  # `rates.rates_of`; with `steadiness.latency_steadiness`
    standstill: Standstill | None  # `stalls.standstill_of` within `calm`; None if it is unknown
    steadiness: Steadiness | None  # `steadiness.rate_steadiness` within `calm`; None if it is not judged
    observation: Observation | None  # `observe.observed`; None if the trial shows nothing of an offered load

    @property
    def measured(self) -> tuple[ClientMeasurement, ...]:
        return self.intake.measured

    @cached_property
    def observed(self) -> list[HostedClient]:
        return [(item, host) for item in self.measured if (host := item.answer.host) is not None]

    @cached_property
    def polls(self) -> tuple[ClusterSample, ...]:
        """The polls around the trial, without what the run's own disturbance causes."""
        polls = polls_around(self.facts.cluster, self.span) if self.facts.cluster else ()
        return undisturbed(polls, outage) if (outage := self.facts.outage) else polls

    def pool_io(self, operation: Operation) -> PoolIo | None:
        """Return what the pools' counters show of the window, if they can be compared with the clients' numbers."""
        watch, span, outage = self.facts.cluster, self.span, self.facts.outage
        if watch is None or self.window is None or span is None:
            return None
        # A placement group that changes its OSDs loses the reads that it counted since it last stored its statistics.
        if outage is not None and operation is Operation.READ:
            span = Interval(start=span.start, end=max(span.start, min(span.end, outage.start)))
        return pool_io_within(watch, span)

    @cached_property
    def statuses(self) -> list[ClusterStatus]:
        return statuses_of(self.polls)

    @cached_property
    def is_broken(self) -> bool:
        """Whether a probe broke by its load: operations were late, or an open loop's load was not achieved."""
        if self.facts.search is None or self.observation is None:
            return False
        outcome = outcome_of(self.observation, self.facts.search.objectives)
        # In a closed loop operations in flight wait for the storage: a depth not reached is the client's fault.
        return outcome in BROKEN if self.facts.searches_rate else outcome is ProbeOutcome.LATE

    @cached_property
    def slices(self) -> Mapping[Operation, Slices | None]:
        """The latencies over time of each operation, as `slices_of` returns them."""
        return {operation: slices_of(shares) for operation, shares in self.shares.items()}

    @cached_property
    def shares(self) -> Mapping[Operation, list[Share]]:
        return by_operation(share for item in self.measured for share in item.shares)


def slices_of(shares: Sequence[Share]) -> Slices | None:
    """Return the latencies of an operation over time; none for a tool without percentiles, None if they are missing."""
    if not any(share.sample.latency.kind is LatencyKind.FULL for share in shares):
        return []
    try:
        columns = ([*filter(None, column)] for column in zip_longest(*(share.slices() for share in shares)))
        return [
            (covering(time for time, _ in same), Histogram.merge_texts(text for _, text in same)) for same in columns
        ]
    except HistogramError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialCheck(Check):
    """A check on every trial: decorates the function that yields its values. `judge.TRIAL_CHECKS` has all of them."""

    values_of: Callable[[Evidence], CheckedValues] = lambda _: iter(())
    concerns_health: bool = False  # the state of the Ceph cluster: never Invalid if the run requires no healthy one
    # A load that storage cannot carry causes it: in a probe that broke it is only a warning, or there would be no line.
    load_explains: bool = False
    outage_explains: bool = False  # OSDs that are away cause it: then it is a warning, too

    def __call__(self, values_of: Callable[[Evidence], CheckedValues]) -> Self:
        return replace(self, values_of=values_of)

    def judge(self, evidence: Evidence) -> tuple[Finding, ...]:
        check, cluster = self, evidence.facts.cluster
        if self.concerns_health and cluster is not None and not cluster.required:
            check = replace(self, suspect=self.invalid if self.suspect is None else self.suspect, invalid=None)
        return evaluate(check, self.values_of(evidence))
