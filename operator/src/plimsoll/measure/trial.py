"""Turns the documents of a trial's clients into its numbers and their verdict."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from plimsoll.api.line import OfferedLoad, Probe
from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.api.operation import OperationResult, Steadiness
from plimsoll.api.result import (
    PHASES,
    ClientPlace,
    ClientSummary,
    DisturbanceResult,
    Finding,
    Phase,
    PhaseName,
    PhaseOperation,
    Stalls,
    ToolUse,
    Window,
)
from plimsoll.api.surroundings import ClusterSummary, Hosts, HostSummary, Osds, Spread
from plimsoll.ceph.disturbance import clean_after
from plimsoll.measure.checks.check import Evidence, rolled_up, verdict_of
from plimsoll.measure.checks.judge import in_order, judge
from plimsoll.measure.checks.outliers import judge_links
from plimsoll.measure.checks.repetitions import places_of
from plimsoll.measure.cluster import cluster_summary, osds_summary
from plimsoll.measure.histogram import MINIMUM_BEYOND, Histogram, HistogramError, merge_latencies, percentiles_of
from plimsoll.measure.intake import (
    MAX_VERSIONS,
    ClientMeasurement,
    Intake,
    TrialFacts,
    bytes_read_from,
    parts_within,
    receive,
    tool_use,
)
from plimsoll.measure.line.observe import client_load, observed, offered_load, probe_of
from plimsoll.measure.matrix import MatrixCell, cells_of
from plimsoll.measure.rates import by_operation, grouped, mean_rates, rates_of
from plimsoll.measure.sample import ClientDocument, HostUse
from plimsoll.measure.stalls import Standstill, standstill_of
from plimsoll.measure.steadiness import doubts_about, latency_steadiness, rate_steadiness
from plimsoll.measure.text import numbered, quote
from plimsoll.measure.timeline import (
    NANOSECONDS,
    Interval,
    Share,
    add,
    common_interval,
    covering,
    histograms_between,
    rounded_iops,
    window_of,
)

_DECIMALS = 4
MAX_SLOWEST = 8
MAX_WARNINGS = 20
_WARNING_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialNumbers:
    """The numbers of a trial, by the names of the fields of `Trial`, and the rates between pairs of clients."""

    verdict: Verdict
    findings: tuple[Finding, ...]
    window: Window | None = None
    stalls: Stalls | None = None
    steadiness: Steadiness | None = None
    operations: tuple[OperationResult, ...]  # over all clients that measured; the verdict shows whether others did not
    hosts: Hosts | None = None
    slowest: tuple[ClientSummary, ...]
    osds: Osds | None = None
    cluster: ClusterSummary | None = None
    tool: ToolUse | None
    warnings: tuple[str, ...]
    disturbance: DisturbanceResult | None = None
    matrix: tuple[MatrixCell, ...] = ()
    probe: Probe | None = None
    places: tuple[ClientPlace, ...]
    load: OfferedLoad | None = None


def measure_round(facts: TrialFacts, documents: Mapping[int, ClientDocument]) -> TrialNumbers:
    """Calculate and judge the numbers of a trial's round. Never raises: an unusable document becomes a finding."""
    intake = receive(facts, documents)
    measured, intervals = intake.measured, [item.interval for item in intake.measured]
    common = common_interval(intervals) if facts.windowed else None
    whole = covering(intervals) if intervals else None
    # The sum of an operation is unknown if one client did it too fast to be timed.
    untimed = {operation for item in measured for operation in item.measurement.untimed}
    timed = [(item, share) for item in measured for share in item.shares if share.sample.operation not in untimed]
    shares = by_operation(share for _, share in timed)
    window = window_of(intervals) if facts.windowed else None
    # Of a disturbed trial, only the part before shows whether the rate would have been steady.
    calm, clean = common, None
    if facts.outage and facts.cluster:
        clean = clean_after(facts.cluster.samples, facts.outage)
        if common is not None:
            calm = Interval(start=common.start, end=min(max(facts.outage.start, common.start), common.end))
    # In a search by rate, latency near the line depends on the bursts among arrivals: it compares many trials.
    judged = calm if facts.windowed and not facts.ends_when_done and not facts.searches_rate else None
    operations = tuple(
        _judged(rates_of(part, common=common, whole=whole), part, facts, common, judged)
        for part in shares.values()
        if whole is not None
    )
    cells = tuple(cells_of(measured, facts.nodes))
    storm = _storm_of(facts, common, clean)
    observation = None
    if facts.offer is not None and common is not None:
        parts, loads, seen = measured, operations, window
        if storm is not None:
            parts, seen = parts_within(measured, storm), window_of([storm])
            stormy = by_operation(share for item in parts for share in item.shares)
            loads = tuple(rates_of(part, common=storm, whole=storm) for part in stormy.values())
        if parts or storm is None:
            observation = observed(facts.offer, loads, seen, [client_load(item, storm or common) for item in parts])
    standstill = None if common is None else standstill_of(measured, common)
    calm_standstill = standstill if calm is None or calm == common else standstill_of(measured, calm)
    everything = [share for _, share in timed]
    steadiness = None if judged is None else rate_steadiness(everything, judged, facts.quantities)
    evidence = Evidence(
        facts=facts,
        intake=intake,
        window=window,
        span=common or whole,
        calm=calm,
        operations=operations,
        standstill=calm_standstill,
        steadiness=steadiness,
        observation=observation,
    )
    findings, explained = judge(evidence)
    verdict, published, probe = verdict_of(findings), operations, None
    is_doubtful = judged and verdict is not Verdict.INVALID
    doubts = doubts_about(steadiness, everything, judged, facts.quantities) if judged and is_doubtful else []
    # The traffic between clients on one node is not in the numbers.
    if whole is not None and any(cell.is_local for cell in cells):
        crossing = by_operation(_between_nodes(timed, cells))
        published = tuple(rates_of(part, common=common, whole=whole) for part in crossing.values())
    if facts.offer and facts.search:
        probe = probe_of(facts.offer, observation, verdict, has_recovered=storm is None or clean is not None)
    return TrialNumbers(
        verdict=verdict,
        findings=findings,
        window=window,
        stalls=standstill.published() if standstill else None,
        steadiness=steadiness,
        operations=published,
        hosts=hosts_of([host_summary(host) for item in measured if (host := item.answer.host)]),
        slowest=_slowest(measured, standstill),
        osds=osds_summary(item.measurement for item in measured),
        cluster=cluster_summary(facts.cluster, evidence.span, bytes_read_from(measured)),
        disturbance=_disturbance_of(facts, common, storm, clean, measured),
        tool=tool_use(intake.answers, measured),
        warnings=_warnings(intake, explained, doubts, cause="disturbance" if facts.outage else "load"),
        matrix=cells,
        probe=probe,
        places=places_of(measured, facts.nodes),
        load=offered_load(facts.offer, observation) if facts.offer and not facts.search else None,
    )


def host_summary(host: HostUse) -> HostSummary:
    summary = HostSummary(
        cpu=_rounded(host.cpu.used),
        cpu_limit=_rounded(host.cpu.limit),
        throttled_seconds=_rounded(host.cpu.throttled_seconds),
        node_cpu_busy=round(host.cpu.node_busy, _DECIMALS),
        memory_bytes=host.memory.used,
        received_bytes_per_second=round(host.network.received),
        sent_bytes_per_second=round(host.network.sent),
    )
    if (device := host.device) is None:
        return summary
    update = {
        "device_read_bytes_per_second": round(device.read),
        "device_written_bytes_per_second": round(device.written),
        "device_busy": min(1.0, round(device.busy, _DECIMALS)),
        "device_queue": round(device.queue, _DECIMALS),
        "device_read_request_bytes": _request_bytes(device.read, device.reads),
        "device_write_request_bytes": _request_bytes(device.written, device.writes),
    }
    return summary.model_copy(update=update)


def hosts_of(hosts: Sequence[HostSummary]) -> Hosts | None:
    """Summarise the observed hosts; None if there are none. A quantity that no host reports is absent."""
    if not hosts:
        return None
    spreads = {}
    for name in set(Hosts.model_fields) - {"clients"}:
        values = [value for host in hosts if (value := getattr(host, name)) is not None]
        spreads[name] = Spread(min=min(values), median=median(values), max=max(values)) if values else None
    return Hosts(clients=len(hosts), **spreads)


def _request_bytes(volume: float, requests: float | None) -> int | None:
    """Return the mean size of a request from bytes and requests per second; None without requests, or beyond 2^63."""
    return round(volume / requests) if requests and volume / requests < 2**63 else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DECIMALS)


def _judged(
    result: OperationResult, shares: Sequence[Share], facts: TrialFacts, common: Interval | None, calm: Interval | None
) -> OperationResult:
    update: dict[str, object] = {}
    if calm is not None:
        update["p99_steadiness"] = latency_steadiness(shares, calm, 99)
        # The load that a trial offers, and not its storage, decides its rate.
        if facts.offer and not facts.search:
            update["p50_steadiness"] = latency_steadiness(shares, calm, 50)
    series = result.series
    if facts.outage and common is not None and series is not None and series.iops:
        starts = [common.start + number * series.interval_seconds * NANOSECONDS for number in range(len(series.iops))]
        with suppress(HistogramError):
            latencies = histograms_between(shares, [*starts, common.end])
            tails = tuple(histogram.percentile(99) or 0 for histogram in latencies)
            update["series"] = series.model_copy(update={"p99_nanoseconds": tails if any(tails) else ()})
    return result.model_copy(update=update)


def _between_nodes(shares: Iterable[tuple[ClientMeasurement, Share]], cells: Sequence[MatrixCell]) -> Iterator[Share]:
    """Yield the clients' shares without the traffic to clients on their own node; latencies cannot be divided."""
    by_bytes = any(cell.bytes_per_second for cell in cells)
    cells_of_clients = grouped(cells, lambda cell: cell.client)
    for item, share in shares:
        cells = cells_of_clients.get(item.client, [])
        local, crossing = (
            sum(cell.bytes_per_second if by_bytes else cell.iops for cell in cells if cell.is_local is is_local)
            for is_local in (True, False)
        )
        part = crossing / (local + crossing) if local + crossing else 0.0
        if part == 1:
            yield share
        elif part:
            ios, volume = round(part * share.sample.ios), round(part * share.sample.bytes)
            update = {"ios": ios, "bytes": volume, "cells": None}
            yield Share(sample=share.sample.model_copy(update=update), interval=share.interval)


def _storm_of(facts: TrialFacts, window: Interval | None, clean: float | None) -> Interval | None:
    """Return the time that a probe of a storm line is judged by; None of other trials, and if no OSD was away in it.

    It lasts from the start of the disturbance until all placement groups are clean, or until the end of the window.
    """
    if facts.search is None or (outage := facts.outage) is None or window is None or outage.start >= window.end:
        return None
    end = window.end if clean is None else min(window.end, outage.end + round(clean * NANOSECONDS))
    return Interval(start=max(outage.start, window.start), end=end)


def _disturbance_of(
    facts: TrialFacts,
    window: Interval | None,
    storm: Interval | None,
    clean: float | None,
    measured: Sequence[ClientMeasurement],
) -> DisturbanceResult | None:
    outage, watch = facts.outage, facts.cluster
    if outage is None or watch is None or window is None or not outage.is_within(window.start, window.end):
        return None
    last = max((sample.at for sample in watch.samples if sample.status), default=outage.end)
    edges = [window.start, outage.start, outage.end, window.end]
    parts = {name: Interval(start=start, end=end) for name, (start, end) in zip(PHASES, pairwise(edges), strict=True)}
    if storm is not None:
        parts["Storm"] = storm
    return DisturbanceResult(
        action=outage.action,
        osds=outage.osds,
        start_seconds=round((outage.start - window.start) / NANOSECONDS, 3),
        end_seconds=round((outage.end - window.start) / NANOSECONDS, 3),
        clean_seconds=None if clean is None else round(clean, 3),
        watched_seconds=round(max(0, last - outage.end) / NANOSECONDS, 3),
        phases=tuple(_phase(name, part, measured) for name, part in parts.items()),
    )


def _phase(name: PhaseName, part: Interval, measured: Sequence[ClientMeasurement]) -> Phase:
    operations = []
    for operation, shares in by_operation(share for item in measured for share in item.shares).items():
        rate = add([share.within(part) for share in shares]).per_second(part.length)
        iops, volume, percentiles = rounded_iops(rate.ios), round(rate.bytes), dict[str, int]()
        with suppress(HistogramError):
            latencies = Histogram.merge_texts(text for share in shares for text in share.slices_in(part))
            percentiles = percentiles_of(latencies)
        operations.append(
            PhaseOperation(operation=operation, iops=iops, bytes_per_second=volume, percentiles=percentiles)
        )
    standstill = standstill_of(measured, part)
    return Phase(
        name=name,
        seconds=round(part.length / NANOSECONDS, 3),
        stall_seconds=round(standstill.published().seconds, 3) if standstill else None,
        operations=tuple(operations),
    )


def _slowest(measured: Sequence[ClientMeasurement], standstill: Standstill | None) -> tuple[ClientSummary, ...]:
    first = min((item.interval.start for item in measured), default=0)
    ordered = sorted(measured, key=lambda item: (*_client_rates(item), item.client))[:MAX_SLOWEST]
    return tuple(
        ClientSummary(
            client=item.client,
            node=item.node,
            start_offset_seconds=(item.interval.start - first) / NANOSECONDS,
            runtime_seconds=item.interval.length / NANOSECONDS,
            iops=rounded_iops(_client_rates(item)[0]),
            clock_offset_seconds=clock.offset if (clock := item.answer.clock) else None,
            clock_error_seconds=clock.error if clock else None,
            stall_seconds=standstill.clients[item.client] if standstill else None,
            host=host_summary(host) if (host := item.answer.host) else None,
        )
        for item in ordered
    )


def _client_rates(item: ClientMeasurement) -> tuple[float, float]:
    """Return a client's operations and bytes per second, without syncs: they carry no data."""
    samples = [sample for sample in item.measurement.operations if sample.operation is not Operation.SYNC]
    ios, volume = sum(sample.ios for sample in samples), sum(sample.bytes for sample in samples)
    return ios * NANOSECONDS / item.interval.length, volume * NANOSECONDS / item.interval.length


def _warnings(
    intake: Intake, explained: Iterable[Finding], doubts: Iterable[str], *, cause: str = "load"
) -> tuple[str, ...]:
    """Return the warnings, each once with its clients: what `cause` explains, and the window's doubts."""
    clients = defaultdict[str, set[int]](set)
    for answer in intake.answers:
        discarded = f"the observation of its host was discarded: {answer.implausible_host}"
        warnings = answer.document.measurement.warnings if answer.document.measurement else ()
        for warning in (*warnings, *([discarded] if answer.implausible_host else ())):
            clients[quote(warning, _WARNING_CHARACTERS)].add(answer.client)
    lines = [
        *(quote(f"the {cause} explains {it.reason}: {it.message}", _WARNING_CHARACTERS) for it in explained),
        *(f"{numbered('client', numbers)}: {text}" for text, numbers in clients.items()),
        *doubts,
    ]
    if len(lines) <= MAX_WARNINGS:
        return tuple(lines)
    return (*lines[: MAX_WARNINGS - 1], f"{len(lines) - MAX_WARNINGS + 1} more warnings")


def trial_of_rounds(rounds: Sequence[TrialNumbers]) -> TrialNumbers:
    """Return the numbers of a trial: of its only round, or the rounds' means, without a window and series in common."""
    matrix, links = judge_links([numbers.matrix for numbers in rounds])
    operations = rounds[0].operations if len(rounds) == 1 else tuple(_mean_operations(rounds))
    lines = []
    if local := sum(cell.is_local for cell in matrix):
        lines.append(f"{local} of {len(matrix)} pairs are on one node, and not in the rates: they cross no link")
    # A search itself decides which of its probes had too few operations.
    for result in operations if rounds[0].probe is None else ():
        latency, beyond = result.latency, MINIMUM_BEYOND
        if latency.kind is LatencyKind.FULL and 0 < latency.count < 100 * beyond:
            lines.append(
                f"{latency.count:,} timed {result.operation} operations are too few for a 99th percentile, which "
                f"needs {100 * beyond:,} ({beyond} beyond it); measure longer"
            )
    warnings = tuple(dict.fromkeys([*lines, *(line for part in rounds for line in part.warnings)]))[:MAX_WARNINGS]
    if len(rounds) == 1:
        findings = in_order([*rounds[0].findings, *links])
        return replace(rounds[0], verdict=verdict_of(findings), findings=findings, matrix=matrix, warnings=warnings)
    findings = in_order([*rolled_up(enumerate((part.findings for part in rounds), start=1), "round"), *links])
    slowest = sorted((client for numbers in rounds for client in numbers.slowest), key=lambda client: client.iops)
    # The versions of all rounds and the command of the first; no digest covers several rounds.
    tools = [numbers.tool for numbers in rounds if numbers.tool]
    versions = tuple(sorted({version for tool in tools for version in tool.versions})[:MAX_VERSIONS])
    return TrialNumbers(
        verdict=verdict_of(findings),
        findings=findings,
        operations=operations,
        slowest=tuple(slowest[:MAX_SLOWEST]),
        cluster=next((numbers.cluster for numbers in rounds if numbers.cluster), None),
        tool=tools[0].model_copy(update={"versions": versions, "raw_sha256": None}) if tools else None,
        warnings=warnings,
        matrix=matrix,
        places=tuple({place.client: place for numbers in rounds for place in numbers.places}.values()),
    )


def _mean_operations(rounds: Sequence[TrialNumbers]) -> Iterator[OperationResult]:
    results = grouped((each for numbers in rounds for each in numbers.operations), lambda each: each.operation)
    for operation, parts in sorted(results.items(), key=lambda item: [*Operation].index(item[0])):
        yield OperationResult(
            operation=operation,
            ios=sum(part.ios for part in parts),
            bytes=sum(part.bytes for part in parts),
            rates=mean_rates([part.rates for part in parts]),
            whole_run=mean_rates([part.whole_run for part in parts]),
            sum_of_rates=mean_rates([part.sum_of_rates for part in parts]),
            latency=merge_latencies(part.latency for part in parts),
        )
