"""Whether the load was the requested one, all the time, for long enough, and one measurement."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.api.operation import Steadiness
from plimsoll.api.result import Finding
from plimsoll.measure.checks import registry as checks
from plimsoll.measure.checks.check import (
    CheckedValue,
    CheckedValues,
    client_value,
    clients_text,
    number_text,
    percent_text,
)
from plimsoll.measure.checks.evidence import Evidence
from plimsoll.measure.intake import ClientMeasurement, clients_by_version
from plimsoll.measure.rates import MAX_RANGE, MAX_SLOPE, ROUGH_FACTOR, rough_steadiness_of
from plimsoll.measure.timeline import NANOSECONDS, Interval, common_interval

_MILLISECONDS = 1000
_TYPICAL = 10
"""Mean operations that a pause takes at the least: a slow operation is no pause."""
_THINKING = checks.THINKING_SECONDS * NANOSECONDS
_WITHOUT_RAMP = 10
"""Without a ramp the first second is measured, which fills queues and caches: it may be a thirtieth of the whole."""
_NAMED_VERSIONS = 4
_CHANCE = 3
"""Standard deviations, sqrt(n) of n operations, that are left to chance: slow storage is not uneven."""
_PAIR = 2
_LIMIT = checks.CLIENTS_UNEVEN


def judge_load(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings, in the order of the table of checks."""
    values = [
        *_stalls(evidence),
        *(() if evidence.facts.windowed else [*_pauses(evidence.measured), *_common_parts(evidence.measured)]),
        *((checks.NOT_STEADY, value) for value in _unsteadiness(evidence)),
        *_sample_counts(evidence),
        *_tool_limits(evidence.measured),
        *_queue_depths(evidence.measured),
    ]
    return checks.findings_of(values)


def _stalls(evidence: Evidence) -> CheckedValues:
    # A storage that stands still in an open loop, and is late or falls short because of that, does what a search looks
    # for: the load counts as broken. As Invalid trials do not count, the search could otherwise never learn that such a
    # load is too high; it would repeat it until a trial has no freeze, and count that one.
    standstill = None if evidence.is_broken else evidence.standstill
    if standstill is None:
        return
    stalls = [
        (checks.STALLED, tuple[int, ...](), "no client completed anything", standstill.charged_to_all()),
        *(
            (checks.CLIENT_STALLED, (client,), "completed nothing while others did", standstill.charged_to(client))
            for client in standstill.own
        ),
    ]
    for check, clients, what, seconds in stalls:
        if seconds:
            part = 100 * seconds / standstill.window
            window = number_text(standstill.window)
            detail = f"{what} for {number_text(seconds)} s of a window of {window} s: {percent_text(part)}"
            yield check, CheckedValue(clients=clients, value=part, detail=detail)


def _pauses(measured: Iterable[ClientMeasurement]) -> CheckedValues:
    for item in measured:
        gaps = item.measurement.gaps
        lengths = [length / _MILLISECONDS for length in gaps.lengths] if gaps else []
        for share in item.shares:
            sample, seconds = share.sample, share.interval.length / NANOSECONDS
            is_longest_known = sample.latency.kind is LatencyKind.MAX_ONLY
            pauses = [sample.latency.max_nanoseconds / NANOSECONDS] if is_longest_known else lengths
            least = max(checks.LONG_PAUSE_SECONDS, _TYPICAL * seconds / max(1, sample.ios))
            paused = sum(length for length in pauses if length >= least)
            if paused and sample.operation is not Operation.SYNC:
                part = 100 * paused / seconds
                detail = (
                    f"completed no {sample.operation} for {number_text(paused)} s of {number_text(seconds)} s: "
                    f"{percent_text(part)}"
                )
                yield checks.LONG_PAUSE, client_value(item.client, part, detail)


def _common_parts(measured: Iterable[ClientMeasurement]) -> CheckedValues:
    """Yield the part of each phase that all clients with it have in common."""
    phases = defaultdict[Operation, dict[int, Interval]](dict)
    for item in measured:
        start = item.interval.start
        for share in item.shares:
            if share.is_phase:
                end = start + share.interval.length
                phases[share.sample.operation][item.client] = Interval(start=start, end=end)
                start = end
    for operation, of_client in phases.items():
        common = common_interval(of_client.values())
        if common is not None and len(of_client) > 1:
            mean = sum(interval.length for interval in of_client.values()) / len(of_client)
            part = 100 * common.length / mean
            shared, whole = (number_text(length / NANOSECONDS) for length in (common.length, mean))
            detail = (
                f"all clients were in the phase {operation} for {shared} s of a mean of {whole} s: {percent_text(part)}"
            )
            yield checks.PHASES_APART, CheckedValue(value=part, detail=detail)


def _unsteadiness(evidence: Evidence) -> Iterator[CheckedValue]:
    """Judge the rate where it depends on the storage only.

    It may change from one part of a data set to another; its mean over all parts is well defined. In an open loop the
    rate is that of random arrivals, few of which scatter by more than the criterion permits; and near the line the
    latency of a short round depends on the bursts in it. There a search compares many trials.

    In windows that are too short for the criterion, only a rate that plainly changes fails.
    """
    if evidence.facts.ends_when_done or evidence.is_open_loop:
        return
    quantities = evidence.facts.quantities
    for result in evidence.operations:
        if state := result.steady_state:
            rate = f"{result.operation} {quantities.unit}/s over five rounds"
            yield _steadiness(rate, "SNIA permits", state.rate)
            if state.p99 is not None:
                yield _steadiness(f"{result.operation} 99th percentile over five rounds", "SNIA permits", state.p99)
    if evidence.window is None or evidence.span is None:
        return
    for operation in evidence.rates:
        rough = rough_steadiness_of(evidence.shares_of(operation), evidence.span, quantities)
        if rough is not None:
            rate = f"{operation} {quantities.unit}/s over five short rounds"
            yield _steadiness(rate, "limit", rough, times=ROUGH_FACTOR)


def _steadiness(quantity: str, limit: str, found: Steadiness, times: int = 1) -> CheckedValue:
    detail = (
        f"{quantity}: range {percent_text(100 * found.range_ratio)} of the mean "
        f"({limit} {percent_text(100 * times * MAX_RANGE)}), drift {percent_text(100 * found.slope_ratio)} "
        f"({percent_text(100 * times * MAX_SLOPE)})"
    )
    excess = max(found.range_ratio / MAX_RANGE, found.slope_ratio / MAX_SLOPE) / times
    is_steady = found.attained if times == 1 else excess <= 1
    return CheckedValue(value=0 if is_steady else excess, detail=detail)


def _sample_counts(evidence: Evidence) -> CheckedValues:
    # Whether there are enough operations for the percentiles of its objectives, a search decides itself.
    for result in () if evidence.is_search else evidence.operations:
        # If there are none, another check reports it.
        if result.latency.kind is LatencyKind.FULL and result.latency.count:
            detail = f"{result.latency.count} timed {result.operation} operations"
            yield checks.TOO_FEW_SAMPLES, CheckedValue(value=result.latency.count, detail=detail)


def _tool_limits(measured: Iterable[ClientMeasurement]) -> CheckedValues:
    for item in measured:
        client, measurement = item.client, item.measurement
        spent = sum(sample.ios * (sample.submission_nanoseconds or 0.0) for sample in measurement.operations)
        value = 100 * spent / (measurement.runtime * measurement.submitters)
        yield checks.SUBMISSION_BOUND, client_value(client, value)
        if measurement.thread_percent is not None:
            yield checks.TOOL_CPU_BOUND, client_value(client, measurement.thread_percent)
        for rate in measurement.peers:
            if (lost := rate.lost_percent) is not None:
                detail = f"{percent_text(lost)} of the datagrams between it and client {rate.peer} were lost"
                yield checks.PACKETS_LOST, client_value(client, lost, detail)


def _queue_depths(measured: Iterable[ClientMeasurement]) -> CheckedValues:
    for item in measured:
        requested, runtime = item.measurement.in_flight, item.measurement.runtime
        samples = [one for one in item.measurement.operations if one.ios and one.operation is not Operation.SYNC]
        if requested is None or not samples or any(not sample.latency.kind.has_mean for sample in samples):
            continue
        in_flight = sum(sample.ios * sample.latency.mean_nanoseconds for sample in samples) / runtime
        thinking = min(sum(sample.ios for sample in samples) * _THINKING / runtime, checks.THINKING_SHARE * requested)
        at_edges = max(sample.latency.max_nanoseconds for sample in samples) / runtime
        excess = in_flight / requested - 1
        explained = at_edges if excess > 0 else thinking / requested + at_edges
        beyond = 100 * max(0.0, abs(excess) - min(explained, checks.EDGE_SHARE))
        detail = (
            f"rate and latency give {number_text(in_flight)} operations in flight instead of {requested}: "
            f"{percent_text(beyond)} beyond the tolerance"
        )
        yield checks.LITTLES_LAW, client_value(item.client, beyond, detail)


def judge_terms(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings, in the order of the table of checks."""
    uneven = ((checks.CLIENTS_UNEVEN, value) for value in _uneven(evidence))
    return checks.findings_of([*_runtime(evidence), *_versions(evidence.measured), *uneven])


def _runtime(evidence: Evidence) -> CheckedValues:
    """Check the requested runtime, or the time of work that ends; whether it was all done is another check."""
    facts = evidence.facts
    has_ramp = facts.windowed and facts.ramp_seconds
    least = facts.least_runtime_seconds * (1 if has_ramp else _WITHOUT_RAMP)
    if not least or not (facts.windowed or facts.ends_when_done):
        return
    worked = [item.interval.length for item in evidence.measured] if facts.ends_when_done else []
    seconds = min(worked) / NANOSECONDS if worked else facts.runtime_seconds
    part = 100 * seconds / least
    runtime = (
        f"the first client ended after {number_text(seconds)} s"
        if worked
        else f"the requested runtime is {facts.runtime_seconds} s after a ramp of {facts.ramp_seconds} s"
    )
    detail = f"{runtime}, {percent_text(part)} of the minimum of {least} s"
    yield checks.RUNTIME_TOO_SHORT, CheckedValue(value=part, detail=detail)


def _versions(measured: Iterable[ClientMeasurement]) -> CheckedValues:
    """Name the clients of all versions but the most frequent."""
    versions = clients_by_version(measured)
    if len(versions) > 1:
        ordered = sorted(versions.items(), key=lambda item: (-len(item[1]), item[0]))
        named = "; ".join(f"{version}: {clients_text(clients)}" for version, clients in ordered[:_NAMED_VERSIONS])
        others = tuple(client for _, clients in ordered[1:] for client in clients)
        detail = f"{len(versions)} versions of the tool ({named})"
        yield checks.MIXED_VERSIONS, CheckedValue(clients=others, value=len(versions), detail=detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What one client did in the compared time."""

    client: int
    amount: float  # operations, or bytes if the tool does not count operations
    unit: str  # of the amount
    sharing: int  # clients on its node, itself included
    when: str  # the compared time, in words


def _uneven(evidence: Evidence) -> list[CheckedValue]:
    """Compare each client with the others, without those whose tool failed: another check names them.

    Cells of a matrix are compared by another check, which knows how many of them share a link.
    """
    measured = [item for item in evidence.measured if not item.answer.failed]
    span = _compared_time(evidence, measured)
    if span is None or not span.length or evidence.facts.quantities.cells:
        return []
    parts = _parts(evidence, measured, span)
    slow = [(part, value) for part in parts if (value := _slow(part, parts)) and _is_bad(value.value)]
    fast = [value for part in parts if (value := _fast(part, parts, span)) and _is_bad(value.value)]
    named = [value for _, value in slow]
    everything = named + fast
    if 2 * len(fast) < len(parts):
        usual = median(part.amount for part in parts)
        # Name clients that are slow compared with the median too, and not only with a mean that fast clients raise. If
        # most clients are idle, they are the problem and not the one that works; the verdict is as severe.
        named = [value for part, value in slow if not usual or _is_bad(100 * part.amount / usual)]
        named += fast if usual else []
    return named if _worst(named) is _worst(everything) else everything


def _compared_time(evidence: Evidence, measured: Sequence[ClientMeasurement]) -> Interval | None:
    """Return the time in which the clients are compared; None if they cannot be.

    Clients that do an amount of work are compared until the first one is done. They all do the same in the end.
    """
    if evidence.facts.windowed:
        return evidence.span
    start = min((item.interval.start for item in measured), default=0)
    end = min((item.interval.end for item in measured), default=0)
    return Interval(start=start, end=end) if evidence.facts.ends_when_done and end > start else None


def _is_bad(value: float) -> bool:
    return _LIMIT.verdict(value) is not Verdict.VALID


def _worst(values: Iterable[CheckedValue]) -> Verdict:
    return _LIMIT.verdict(min((value.value for value in values), default=100))


def _parts(evidence: Evidence, measured: Sequence[ClientMeasurement], span: Interval) -> list[_Part]:
    """Return what each client did in the compared time, without syncs: they carry no data."""
    nodes = Counter(item.node for item in measured)
    quantities = evidence.facts.quantities
    parts = []
    for item in measured:
        done = [share.within(span) for share in item.shares if share.sample.operation is not Operation.SYNC]
        part = _Part(
            client=item.client,
            amount=sum(quantities.amount(amount.ios, amount.bytes) for amount in done),
            unit=quantities.unit,
            sharing=nodes[item.node],
            when="in the window" if evidence.facts.windowed else "until the first client was done",
        )
        parts.append(part)
    return parts


def _slow(part: _Part, parts: Sequence[_Part]) -> CheckedValue | None:
    others = (sum(one.amount for one in parts) - part.amount) / max(1, len(parts) - 1)
    if not others:
        return None
    detail = (
        f"completed {part.amount:.0f} {part.unit} {part.when}, {percent_text(100 * part.amount / others)} of the "
        f"others' mean of {others:.0f}"
    )
    if len(parts) == _PAIR:
        detail = f"{detail}; either of the two may be the outlier"
    return client_value(part.client, 100 * (part.amount + _CHANCE * math.sqrt(others)) / others, detail)


def _fast(part: _Part, parts: Sequence[_Part], span: Interval) -> CheckedValue | None:
    others = [one for one in parts if one is not part]
    if not others or not part.amount:
        return None
    usual = median(one.amount for one in others)
    by_node = median(one.amount * one.sharing for one in others) / part.sharing
    seconds = span.length / NANOSECONDS
    times = f"{number_text(part.amount / usual)} times" if usual else "compared with"
    detail = (
        f"{number_text(part.amount / seconds)} {part.unit}/s {part.when}, {times} the others' median of "
        f"{number_text(usual / seconds)}, which is {percent_text(100 * usual / part.amount)} of it"
    )
    value = 100 * (max(usual, by_node) + _CHANCE * math.sqrt(part.amount)) / part.amount
    return client_value(part.client, value, detail)
