"""Turns the documents of a trial's clients into its numbers and their verdict."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from plimsoll.api.line import Probe
from plimsoll.api.names import Operation, Verdict
from plimsoll.api.provenance import ToolUse
from plimsoll.api.result import ClientSummary, Finding, Hosts, OperationResult, Stalls, Window
from plimsoll.api.surroundings import ClusterSummary, Osds
from plimsoll.measure.checking.check import verdict_of
from plimsoll.measure.checking.evidence import Evidence
from plimsoll.measure.checking.judge import judge
from plimsoll.measure.cluster import cluster_summary
from plimsoll.measure.hosts import host_summary, hosts_of
from plimsoll.measure.intake import ClientMeasurement, Intake, TrialFacts, receive
from plimsoll.measure.latency import merge_samples
from plimsoll.measure.line.clients import client_load
from plimsoll.measure.line.observation import Observation, observed, probe_of
from plimsoll.measure.matrix import MatrixCell, cells_of
from plimsoll.measure.osds import osds_summary
from plimsoll.measure.provenance import tool_use
from plimsoll.measure.quantities import Quantities, by_operation
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
    """The numbers of a trial.

    Attributes:
        window: None if no client measured, or if the tool has no window.
        stalls: None without a window, or if a client has no series.
        operations: over all clients that measured; the verdict shows whether others did not.
        hosts: of all clients that measured; None if no host could be observed.
        slowest: the clients with the lowest rates, slowest first.
        osds: None unless the tool measures OSDs.
        cluster: None if the run watches no cluster.
        tool: None if no client answered.
        warnings: of the clients' tools and parsers, one line for each text.
        matrix: the rates between pairs of clients, if the tool measures them.
        probe: the load that was offered and whether it met the objectives, in a search for the line.

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
    matrix: tuple[MatrixCell, ...] = ()
    probe: Probe | None = None


def measure_trial(facts: TrialFacts, documents: Mapping[int, ClientDocument]) -> TrialNumbers:
    """Calculate a trial's numbers and judge them. Never raises: an unusable document becomes a finding."""
    intake = receive(facts, documents)
    intervals = [item.interval for item in intake.measured]
    common = common_interval(intervals) if facts.windowed else None
    whole = union_interval(intervals)
    shares = by_operation(_timed_shares(intake), _operation_of)
    rates = {} if whole is None else {name: rates_of(part, common=common, whole=whole) for name, part in shares.items()}
    window = window_of(intervals) if facts.windowed else None
    operations = tuple(_operation(name, shares[name], rates[name], common, facts.quantities) for name in rates)
    evidence = Evidence(
        facts=facts,
        intake=intake,
        window=window,
        span=common or whole,
        rates=rates,
        operations=operations,
        standstill=None if common is None else standstill_of(intake.measured, common),
        observation=_observed(facts, operations, window, intake, common),
    )
    return _numbers(evidence, judge(evidence))


def _numbers(evidence: Evidence, findings: tuple[Finding, ...]) -> TrialNumbers:
    standstill, offer, verdict = evidence.standstill, evidence.facts.offer, verdict_of(findings)
    return TrialNumbers(
        verdict=verdict,
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
        matrix=tuple(cells_of(evidence.measured, evidence.facts.nodes)),
        probe=probe_of(offer, evidence.observation, verdict) if offer else None,
    )


def _observed(
    facts: TrialFacts,
    operations: tuple[OperationResult, ...],
    window: Window | None,
    intake: Intake,
    common: Interval | None,
) -> Observation | None:
    if facts.offer is None or common is None:
        return None
    return observed(facts.offer, operations, window, [client_load(item, common) for item in intake.measured])


def _timed_shares(intake: Intake) -> Iterator[Share]:
    """Yield the clients' shares, without operations that one of them did too fast to be timed: their sum is unknown."""
    untimed = {operation for item in intake.measured for operation in item.measurement.untimed}
    return (share for item in intake.measured for share in item.shares if share.sample.operation not in untimed)


def _operation_of(share: Share) -> Operation:
    return share.sample.operation


def _operation(
    operation: Operation,
    shares: list[Share],
    rates: OperationRates,
    common: Interval | None,
    quantities: Quantities,
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
        processor_percent=max(
            (percent for share in shares if (percent := share.sample.processor_percent) is not None), default=None
        ),
        series=None if common is None else series_of(shares, common),
        steady_state=None if common is None else steady_state_of(shares, common, quantities),
    )


def _slowest(intake: Intake, standstill: Standstill | None) -> tuple[ClientSummary, ...]:
    first = min((item.interval.start for item in intake.measured), default=0)
    ordered = sorted(intake.measured, key=lambda item: (*_own_rates(item), item.client))
    return tuple(_summary(item, first, standstill) for item in ordered[:MAX_SLOWEST])


def _own_rates(item: ClientMeasurement) -> tuple[float, float]:
    """Return a client's operations and bytes per second, without syncs: they carry no data."""
    samples = [sample for sample in item.measurement.operations if sample.operation is not Operation.SYNC]
    ios, volume = sum(sample.ios for sample in samples), sum(sample.bytes for sample in samples)
    return ios * NANOSECONDS / item.interval.length, volume * NANOSECONDS / item.interval.length


def _summary(item: ClientMeasurement, first: int, standstill: Standstill | None) -> ClientSummary:
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
    """Return each warning once, with its clients."""
    clients = defaultdict[str, set[int]](set)
    for answer in intake.answers:
        for warning in answer.measurement.warnings if answer.measurement else ():
            clients[quote(warning, _WARNING_CHARACTERS)].add(answer.client)
        if answer.implausible_host:
            warning = f"the observation of its host was discarded: {answer.implausible_host}"
            clients[quote(warning, _WARNING_CHARACTERS)].add(answer.client)
    for client in intake.unplanned:
        clients["takes no part in this trial; its document was ignored"].add(client)
    lines = [f"{clients_text(numbers)}: {text}" for text, numbers in clients.items()]
    if len(lines) <= MAX_WARNINGS:
        return tuple(lines)
    return (*lines[: MAX_WARNINGS - 1], f"{len(lines) - MAX_WARNINGS + 1} more warnings")
