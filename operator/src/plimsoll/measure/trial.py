"""From the documents of a trial's clients to its numbers and their verdict."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from plimsoll.api.names import Operation, Verdict
from plimsoll.api.provenance import ToolUse
from plimsoll.api.result import ClientSummary, Finding, Hosts, OperationResult, Stalls, Window
from plimsoll.api.surroundings import ClusterSummary, Osds
from plimsoll.measure.checking.check import verdict_of
from plimsoll.measure.checking.evidence import Evidence
from plimsoll.measure.checking.hosts import host_summary
from plimsoll.measure.checking.judge import judge
from plimsoll.measure.cluster import cluster_summary
from plimsoll.measure.fleet import hosts_of
from plimsoll.measure.intake import Intake, Measured, TrialFacts, receive
from plimsoll.measure.latency import merge_samples
from plimsoll.measure.osds import osds_summary
from plimsoll.measure.provenance import tool_use
from plimsoll.measure.rates import OperationRates, rates_of
from plimsoll.measure.sample import ClientDocument
from plimsoll.measure.series import Share, rounded_iops, series_of
from plimsoll.measure.stalls import Standstill, standstill_of
from plimsoll.measure.steady import steady_state_of
from plimsoll.measure.window import NANOSECONDS, Interval, common_interval, union_interval, window_of
from plimsoll.measure.wording import clients_text, quote

__all__ = ["TrialFacts", "TrialNumbers", "measure_trial"]

MAX_SLOWEST = 8
MAX_WARNINGS = 20
_WARNING_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialNumbers:
    """What a trial gave.

    Attributes:
        window: None if no client measured, or if the tool's clients do not run for a time.
        stalls: None without a window, or if a client has no series.
        operations: over all clients that measured, also if others did not: the verdict says so.
        hosts: of all clients that measured; None if no host could be observed.
        slowest: the clients with the lowest rates, slowest first.
        osds: None unless the tool measures OSDs.
        cluster: None if nobody was to look at one.
        tool: how the clients' tools were run, and what they left; None if no client answered.
        warnings: what the clients' tools and parsers said, one line for each text.

    """

    verdict: Verdict
    findings: tuple[Finding, ...]
    window: Window | None
    stalls: Stalls | None
    operations: tuple[OperationResult, ...]
    hosts: Hosts | None
    slowest: tuple[ClientSummary, ...]
    osds: Osds | None
    cluster: ClusterSummary | None
    tool: ToolUse | None
    warnings: tuple[str, ...]


def measure_trial(facts: TrialFacts, documents: Mapping[int, ClientDocument]) -> TrialNumbers:
    """Calculate a trial's numbers and judge them. Never raises: what cannot be used becomes a finding."""
    intake = receive(facts, documents)
    intervals = [item.interval for item in intake.measured]
    common = common_interval(intervals) if facts.windowed else None
    whole = union_interval(intervals)
    shares = _shares(intake)
    rates = {} if whole is None else {name: rates_of(part, common=common, whole=whole) for name, part in shares.items()}
    evidence = Evidence(
        facts=facts,
        intake=intake,
        window=window_of(intervals) if facts.windowed else None,
        span=common or whole,
        rates=rates,
        operations=tuple(_operation(operation, shares[operation], rates[operation], common) for operation in rates),
        standstill=None if common is None else standstill_of(intake.measured, common),
    )
    return _numbers(evidence, judge(evidence))


def _numbers(evidence: Evidence, findings: tuple[Finding, ...]) -> TrialNumbers:
    standstill = evidence.standstill
    return TrialNumbers(
        verdict=verdict_of(findings),
        findings=findings,
        window=evidence.window,
        stalls=standstill.published() if standstill else None,
        operations=evidence.operations,
        hosts=hosts_of([host_summary(host) for item in evidence.measured if (host := item.answer.host)]),
        slowest=_slowest(evidence.intake, standstill),
        osds=osds_summary(item.measurement for item in evidence.measured),
        cluster=cluster_summary(evidence.facts.cluster, evidence.span),
        tool=tool_use(evidence.intake.answers, evidence.measured),
        warnings=_warnings(evidence.intake),
    )


def _shares(intake: Intake) -> dict[Operation, list[Share]]:
    """Group the clients' shares by operation, in the order of `Operation`."""
    shares: dict[Operation, list[Share]] = {operation: [] for operation in Operation}
    for item in intake.measured:
        for share in item.shares:
            shares[share.sample.operation].append(share)
    return {operation: found for operation, found in shares.items() if found}


def _operation(
    operation: Operation, shares: list[Share], rates: OperationRates, common: Interval | None
) -> OperationResult:
    return OperationResult(
        operation=operation,
        ios=sum(share.sample.ios for share in shares),
        bytes=sum(share.sample.bytes for share in shares),
        rates=rates.rates,
        whole_run=rates.whole_run,
        sum_of_rates=rates.sum_of_rates,
        bias=rates.bias,
        latency=merge_samples(share.sample.latency for share in shares),
        series=None if common is None else series_of(shares, common),
        steady_state=None if common is None else steady_state_of(shares, common),
    )


def _slowest(intake: Intake, standstill: Standstill | None) -> tuple[ClientSummary, ...]:
    first = min((item.interval.start for item in intake.measured), default=0)
    ordered = sorted(intake.measured, key=_speed)
    return tuple(_summary(item, first, standstill) for item in ordered[:MAX_SLOWEST])


def _speed(item: Measured) -> tuple[float, float, int]:
    """Order by operations per second; by bytes per second where the tool does not count operations."""
    return (*_own_rates(item), item.client)


def _own_rates(item: Measured) -> tuple[float, float]:
    """Return a client's operations and bytes per second, without syncs: they carry no data."""
    samples = [sample for sample in item.measurement.operations if sample.operation is not Operation.SYNC]
    ios, volume = sum(sample.ios for sample in samples), sum(sample.bytes for sample in samples)
    return ios * NANOSECONDS / item.interval.length, volume * NANOSECONDS / item.interval.length


def _summary(item: Measured, first: int, standstill: Standstill | None) -> ClientSummary:
    clock, host = item.answer.clock, item.answer.host
    return ClientSummary(
        client=item.client,
        node=item.answer.document.node,
        start_offset_seconds=(item.interval.start - first) / NANOSECONDS,
        runtime_seconds=item.interval.length / NANOSECONDS,
        iops=rounded_iops(_own_rates(item)[0]),
        clock_offset_seconds=clock.offset if clock else None,
        clock_error_seconds=clock.error if clock else None,
        stall_seconds=standstill.clients[item.client] if standstill else None,
        host=host_summary(host) if host else None,
    )


def _warnings(intake: Intake) -> tuple[str, ...]:
    """Return each warning once, with the clients that gave it."""
    clients: defaultdict[str, set[int]] = defaultdict(set)
    for answer in intake.answers:
        for warning in answer.measurement.warnings if answer.measurement else ():
            clients[quote(warning, _WARNING_CHARACTERS)].add(answer.client)
        if answer.implausible_host:
            warning = f"what was observed of its host was left out: {answer.implausible_host}"
            clients[quote(warning, _WARNING_CHARACTERS)].add(answer.client)
    for client in intake.unplanned:
        clients["takes no part in this trial; its document is ignored"].add(client)
    lines = [f"{clients_text(given_by)}: {text}" for text, given_by in clients.items()]
    if len(lines) <= MAX_WARNINGS:
        return tuple(lines)
    return (*lines[: MAX_WARNINGS - 1], f"{len(lines) - MAX_WARNINGS + 1} more warnings")
