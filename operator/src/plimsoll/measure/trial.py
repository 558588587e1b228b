"""From the documents of a trial's clients to its numbers and their verdict."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from plimsoll.api.names import Operation, Verdict
from plimsoll.api.result import ClientSummary, Finding, OperationResult, Window
from plimsoll.measure.checks import verdict_of
from plimsoll.measure.intake import Intake, Measured, TrialFacts, receive
from plimsoll.measure.judge import Evidence, judge
from plimsoll.measure.latency import merge_samples
from plimsoll.measure.rates import OperationRates, Share, rates_of
from plimsoll.measure.sample import ClientDocument
from plimsoll.measure.window import NANOSECONDS, common_interval, union_interval, window_of
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
        operations: over all clients that measured, also if others did not: the verdict says so.
        slowest: the clients with the lowest rates, slowest first.
        warnings: what the clients' tools and parsers said, one line for each text.

    """

    verdict: Verdict
    findings: tuple[Finding, ...]
    window: Window | None
    operations: tuple[OperationResult, ...]
    slowest: tuple[ClientSummary, ...]
    warnings: tuple[str, ...]


def measure_trial(facts: TrialFacts, documents: Mapping[int, ClientDocument]) -> TrialNumbers:
    """Calculate a trial's numbers and judge them. Never raises: what cannot be used becomes a finding."""
    intake = receive(facts, documents)
    intervals = [item.interval for item in intake.measured]
    window = window_of(intervals) if facts.windowed else None
    shares = _shares(intake)
    rates = _rates(facts, intake, shares)
    findings = judge(Evidence(facts=facts, intake=intake, window=window, rates=rates))
    return TrialNumbers(
        verdict=verdict_of(findings),
        findings=findings,
        window=window,
        operations=tuple(_operation(operation, shares[operation], rates[operation]) for operation in rates),
        slowest=_slowest(intake),
        warnings=_warnings(intake),
    )


def _shares(intake: Intake) -> dict[Operation, list[Share]]:
    """Group the clients' samples by operation, in the order of `Operation`."""
    shares: dict[Operation, list[Share]] = {operation: [] for operation in Operation}
    for item in intake.measured:
        for sample in item.measurement.operations:
            shares[sample.operation].append(Share(sample=sample, interval=item.interval))
    return {operation: found for operation, found in shares.items() if found}


def _rates(
    facts: TrialFacts, intake: Intake, shares: Mapping[Operation, list[Share]]
) -> dict[Operation, OperationRates]:
    intervals = [item.interval for item in intake.measured]
    whole = union_interval(intervals)
    if whole is None:
        return {}
    common = common_interval(intervals) if facts.windowed else None
    return {operation: rates_of(found, common=common, whole=whole) for operation, found in shares.items()}


def _operation(operation: Operation, shares: list[Share], rates: OperationRates) -> OperationResult:
    return OperationResult(
        operation=operation,
        ios=sum(share.sample.ios for share in shares),
        bytes=sum(share.sample.bytes for share in shares),
        rates=rates.rates,
        whole_run=rates.whole_run,
        sum_of_rates=rates.sum_of_rates,
        bias=rates.bias,
        latency=merge_samples(share.sample.latency for share in shares),
    )


def _slowest(intake: Intake) -> tuple[ClientSummary, ...]:
    first = min((item.interval.start for item in intake.measured), default=0)
    ordered = sorted(intake.measured, key=_speed)
    return tuple(_summary(item, first) for item in ordered[:MAX_SLOWEST])


def _speed(item: Measured) -> tuple[float, float, int]:
    """Order by operations per second; by bytes per second where the tool does not count operations."""
    return (*_own_rates(item), item.client)


def _own_rates(item: Measured) -> tuple[float, float]:
    """Return a client's operations and bytes per second, without syncs: they carry no data."""
    samples = [sample for sample in item.measurement.operations if sample.operation is not Operation.SYNC]
    ios, volume = sum(sample.ios for sample in samples), sum(sample.bytes for sample in samples)
    return ios * NANOSECONDS / item.interval.length, volume * NANOSECONDS / item.interval.length


def _summary(item: Measured, first: int) -> ClientSummary:
    clock = item.answer.clock
    return ClientSummary(
        client=item.client,
        node=item.answer.document.node,
        start_offset_seconds=(item.interval.start - first) / NANOSECONDS,
        runtime_seconds=item.interval.length / NANOSECONDS,
        iops=round(_own_rates(item)[0]),
        clock_offset_seconds=clock.offset if clock else None,
        clock_error_seconds=clock.error if clock else None,
    )


def _warnings(intake: Intake) -> tuple[str, ...]:
    """Return each warning once, with the clients that gave it."""
    clients: defaultdict[str, set[int]] = defaultdict(set)
    for answer in intake.answers:
        for warning in answer.measurement.warnings if answer.measurement else ():
            clients[quote(warning, _WARNING_CHARACTERS)].add(answer.client)
    for client in intake.unplanned:
        clients["takes no part in this trial; its document is ignored"].add(client)
    lines = [f"{clients_text(given_by)}: {text}" for text, given_by in clients.items()]
    if len(lines) <= MAX_WARNINGS:
        return tuple(lines)
    return (*lines[: MAX_WARNINGS - 1], f"{len(lines) - MAX_WARNINGS + 1} more warnings")
