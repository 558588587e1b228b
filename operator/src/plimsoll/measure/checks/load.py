"""Whether the load was the requested one, all the time, for long enough, and one measurement."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.api.operation import OperationResult, Steadiness
from plimsoll.api.result import Finding
from plimsoll.measure.checks import registry
from plimsoll.measure.checks.check import CheckedValue, clients_text, evaluate, number_text, percent_text
from plimsoll.measure.checks.evidence import Evidence
from plimsoll.measure.intake import ClientMeasurement, clients_by_version
from plimsoll.measure.rates import MAX_RANGE, MAX_SLOPE, ROUGH_FACTOR, Quantities, rough_steadiness_of
from plimsoll.measure.sample import Measurement, OperationSample
from plimsoll.measure.stalls import Standstill
from plimsoll.measure.timeline import NANOSECONDS, Interval, common_interval

_MILLISECONDS = 1000
_TYPICAL = 10
"""Mean operations that a pause takes at the least: a slow operation is no pause."""


def judge_phases(measured: Collection[ClientMeasurement]) -> tuple[Finding, ...]:
    """Return the findings, in the order of the table of checks."""
    return (
        *evaluate(registry.LONG_PAUSE, _pauses(measured)),
        *evaluate(registry.PHASES_APART, _common_parts(measured)),
    )


def _pauses(measured: Iterable[ClientMeasurement]) -> Iterator[CheckedValue]:
    for item in measured:
        for share in item.shares:
            sample, seconds = share.sample, share.interval.length / NANOSECONDS
            least = max(registry.LONG_PAUSE_SECONDS, _TYPICAL * seconds / max(1, sample.ios))
            paused = sum(length for length in _pause_seconds(item.measurement, sample) if length >= least)
            if paused and sample.operation is not Operation.SYNC:
                part = 100 * paused / seconds
                detail = (
                    f"completed no {sample.operation} for {number_text(paused)} s of {number_text(seconds)} s: "
                    f"{percent_text(part)}"
                )
                yield CheckedValue(clients=(item.client,), value=part, detail=detail)


def _pause_seconds(measurement: Measurement, sample: OperationSample) -> list[float]:
    if sample.latency.kind is LatencyKind.MAX_ONLY:
        return [sample.latency.max_nanoseconds / NANOSECONDS]
    return [length / _MILLISECONDS for length in measurement.gaps.lengths] if measurement.gaps else []


def _common_parts(measured: Collection[ClientMeasurement]) -> Iterator[CheckedValue]:
    """Yield the part of each phase that all clients with it have in common."""
    phases = defaultdict[Operation, dict[int, Interval]](dict)
    for item in measured:
        for operation, interval in _phases(item):
            phases[operation][item.client] = interval
    for operation, of_client in phases.items():
        common = common_interval(of_client.values())
        if common is not None and len(of_client) > 1:
            mean = sum(interval.length for interval in of_client.values()) / len(of_client)
            part = 100 * common.length / mean
            shared, whole = (number_text(length / NANOSECONDS) for length in (common.length, mean))
            detail = (
                f"all clients were in the phase {operation} for {shared} s of a mean of {whole} s: {percent_text(part)}"
            )
            yield CheckedValue(value=part, detail=detail)


def _phases(item: ClientMeasurement) -> Iterator[tuple[Operation, Interval]]:
    start = item.interval.start
    for share in item.shares:
        if share.is_phase:
            end = start + share.interval.length
            yield share.sample.operation, Interval(start=start, end=end)
            start = end


_THINKING = registry.THINKING_SECONDS * NANOSECONDS


def judge_load(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings, in the order of the table of checks."""
    # A storage that stands still in an open loop, and is late or falls short because of that, does what a search looks
    # for: the load counts as broken. As Invalid trials do not count, the search could otherwise never learn that such a
    # load is too high; it would repeat it until a trial has no freeze, and count that one.
    standstill = None if evidence.is_broken else evidence.standstill
    return (
        *evaluate(registry.STALLED, _stalls(standstill)),
        *evaluate(registry.CLIENT_STALLED, _client_stalls(standstill)),
        *(() if evidence.facts.windowed else judge_phases(evidence.measured)),
        *(_judge_steadiness(evidence) if _should_be_steady(evidence) else ()),
        # Whether there are enough operations for the percentiles of its objectives, a search decides itself.
        *evaluate(registry.TOO_FEW_SAMPLES, () if evidence.is_search else _sample_counts(evidence.operations)),
        *evaluate(registry.SUBMISSION_BOUND, _submission(evidence.measured)),
        *evaluate(registry.TOOL_CPU_BOUND, _thread_use(evidence.measured)),
        *evaluate(registry.PACKETS_LOST, _losses(evidence.measured)),
        *evaluate(registry.LITTLES_LAW, _queue_depths(evidence.measured)),
    )


def _stalls(standstill: Standstill | None) -> Iterator[CheckedValue]:
    if standstill is not None and (seconds := standstill.charged_to_all()):
        yield _stall((), "no client completed anything", seconds, standstill.window)


def _client_stalls(standstill: Standstill | None) -> Iterator[CheckedValue]:
    for client in standstill.own if standstill else ():
        if standstill and (seconds := standstill.charged_to(client)):
            yield _stall((client,), "completed nothing while others did", seconds, standstill.window)


def _stall(clients: tuple[int, ...], what: str, seconds: float, window: float) -> CheckedValue:
    part = 100 * seconds / window
    detail = f"{what} for {number_text(seconds)} s of a window of {number_text(window)} s: {percent_text(part)}"
    return CheckedValue(clients=clients, value=part, detail=detail)


def _should_be_steady(evidence: Evidence) -> bool:
    """Whether the rate depends on the storage only.

    It may change from one part of a data set to another; its mean over all parts is well defined. In an open loop the
    rate is that of random arrivals, few of which scatter by more than the criterion permits; and near the line the
    latency of a short round depends on the bursts in it. There a search compares many trials.
    """
    return not evidence.facts.ends_when_done and not evidence.is_open_loop


def _judge_steadiness(evidence: Evidence) -> tuple[Finding, ...]:
    return evaluate(registry.NOT_STEADY, [*_unsteadiness(evidence), *_rough_unsteadiness(evidence)])


def _unsteadiness(evidence: Evidence) -> Iterator[CheckedValue]:
    for result in evidence.operations:
        if state := result.steady_state:
            rate = f"{result.operation} {evidence.facts.quantities.unit}/s over five rounds"
            yield _steadiness(rate, "SNIA permits", state.rate)
            if state.p99 is not None:
                yield _steadiness(f"{result.operation} 99th percentile over five rounds", "SNIA permits", state.p99)


def _rough_unsteadiness(evidence: Evidence) -> Iterator[CheckedValue]:
    """Check windows that are too short for the criterion; only a rate that plainly changes fails there."""
    if evidence.window is None or evidence.span is None:
        return
    quantities = evidence.facts.quantities
    for operation in evidence.rates:
        found = rough_steadiness_of(evidence.shares_of(operation), evidence.span, quantities)
        if found is not None:
            yield _steadiness(
                f"{operation} {quantities.unit}/s over five short rounds", "limit", found, times=ROUGH_FACTOR
            )


def _steadiness(quantity: str, limit: str, found: Steadiness, times: int = 1) -> CheckedValue:
    detail = (
        f"{quantity}: range {percent_text(100 * found.range_ratio)} of the mean "
        f"({limit} {percent_text(100 * times * MAX_RANGE)}), drift {percent_text(100 * found.slope_ratio)} "
        f"({percent_text(100 * times * MAX_SLOPE)})"
    )
    excess = max(found.range_ratio / MAX_RANGE, found.slope_ratio / MAX_SLOPE) / times
    is_steady = found.attained if times == 1 else excess <= 1
    return CheckedValue(value=0 if is_steady else excess, detail=detail)


def _sample_counts(operations: Iterable[OperationResult]) -> Iterator[CheckedValue]:
    for result in operations:
        # If there are none, another check reports it.
        if result.latency.kind is LatencyKind.FULL and result.latency.count:
            detail = f"{result.latency.count} timed {result.operation} operations"
            yield CheckedValue(value=result.latency.count, detail=detail)


def _submission(measured: Iterable[ClientMeasurement]) -> Iterator[CheckedValue]:
    for item in measured:
        runs = item.measurement
        spent = sum(sample.ios * (sample.submission_nanoseconds or 0.0) for sample in runs.operations)
        yield CheckedValue(clients=(item.client,), value=100 * spent / (runs.runtime * runs.submitters))


def _thread_use(measured: Iterable[ClientMeasurement]) -> Iterator[CheckedValue]:
    for item in measured:
        if (percent := item.measurement.thread_percent) is not None:
            yield CheckedValue(clients=(item.client,), value=percent)


def _losses(measured: Iterable[ClientMeasurement]) -> Iterator[CheckedValue]:
    for item in measured:
        for rate in item.measurement.peers:
            if rate.lost_percent is not None:
                detail = (
                    f"{percent_text(rate.lost_percent)} of the datagrams between it and client {rate.peer} were lost"
                )
                yield CheckedValue(clients=(item.client,), value=rate.lost_percent, detail=detail)


def _queue_depths(measured: Iterable[ClientMeasurement]) -> Iterator[CheckedValue]:
    for item in measured:
        requested, timed = item.measurement.in_flight, _timed(item.measurement)
        if requested is None or timed is None:
            continue
        runtime = item.measurement.runtime
        found = sum(sample.ios * sample.latency.mean_nanoseconds for sample in timed) / runtime
        at_edges = max(sample.latency.max_nanoseconds for sample in timed) / runtime
        thinking = min(sum(sample.ios for sample in timed) * _THINKING / runtime, registry.THINKING_SHARE * requested)
        beyond = 100 * max(0.0, _unexplained(found / requested - 1, thinking / requested, at_edges))
        detail = (
            f"rate and latency give {number_text(found)} operations in flight instead of {requested}: "
            f"{percent_text(beyond)} beyond the tolerance"
        )
        yield CheckedValue(clients=(item.client,), value=beyond, detail=detail)


def _unexplained(excess: float, thinking: float, at_edges: float) -> float:
    """Return the part of the requested number that is too many or too few, without what may explain it."""
    explained = at_edges if excess > 0 else thinking + at_edges
    return abs(excess) - min(explained, registry.EDGE_SHARE)


def _timed(measurement: Measurement) -> list[OperationSample] | None:
    """Return all samples except syncs; None if there are none, or not all of them have a mean latency."""
    samples = [sample for sample in measurement.operations if sample.ios and sample.operation is not Operation.SYNC]
    untimed = any(not sample.latency.kind.has_mean for sample in samples)
    return None if untimed or not samples else samples


_WITHOUT_RAMP = 10
"""Without a ramp the first second is measured, which fills queues and caches: it may be a thirtieth of the whole."""
_NAMED_VERSIONS = 4
_CHANCE = 3
"""Standard deviations, sqrt(n) of n operations, that are left to chance: slow storage is not uneven."""
_PAIR = 2
_LIMIT = registry.CLIENTS_UNEVEN


def judge_terms(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings, in the order of the table of checks."""
    return (
        *evaluate(registry.RUNTIME_TOO_SHORT, _runtime(evidence)),
        *evaluate(registry.MIXED_VERSIONS, _versions(evidence.measured)),
        *evaluate(registry.CLIENTS_UNEVEN, _uneven(evidence)),
    )


def _runtime(evidence: Evidence) -> Iterator[CheckedValue]:
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
    yield CheckedValue(value=part, detail=f"{runtime}, {percent_text(part)} of the minimum of {least} s")


def _versions(measured: Iterable[ClientMeasurement]) -> Iterator[CheckedValue]:
    """Name the clients of all versions but the most frequent."""
    found = clients_by_version(measured)
    if len(found) > 1:
        ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
        named = "; ".join(f"{version}: {clients_text(clients)}" for version, clients in ordered[:_NAMED_VERSIONS])
        others = tuple(client for _, clients in ordered[1:] for client in clients)
        yield CheckedValue(clients=others, value=len(found), detail=f"{len(found)} versions of the tool ({named})")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What one client did in the compared time.

    Attributes:
        amount: operations, or bytes if the tool does not count operations.
        unit: of the amount.
        sharing: clients on its node, itself included.
        when: the compared time, in words.

    """

    client: int
    amount: float
    unit: str
    sharing: int
    when: str


def _uneven(evidence: Evidence) -> list[CheckedValue]:
    """Compare each client with the others, without those whose tool failed: another check names them.

    Cells of a matrix are compared by another check, which knows how many of them share a link.
    """
    span = _compared_time(evidence)
    if span is None or not span.length or evidence.facts.quantities.cells:
        return []
    parts = _parts(evidence, [item for item in evidence.measured if not item.answer.failed], span)
    slow = [(part, found) for part in parts if (found := _slow(part, parts)) and _is_bad(found)]
    fast = [found for part in parts if (found := _fast(part, parts, span)) and _is_bad(found)]
    named = [found for _, found in slow]
    everything = named + fast
    if 2 * len(fast) < len(parts):
        usual = median(part.amount for part in parts)
        # If most clients are idle, they are the problem and not the one that works; the verdict is as severe.
        named = [found for part, found in slow if _is_slow_beside(usual, part)] + (fast if usual else [])
    return named if _worst(named) is _worst(everything) else everything


def _compared_time(evidence: Evidence) -> Interval | None:
    """Return the time in which the clients are compared; None if they cannot be.

    Clients that do an amount of work are compared until the first one is done. They all do the same in the end.
    """
    intervals = [item.interval for item in evidence.measured if not item.answer.failed]
    if evidence.facts.windowed or not intervals:
        return evidence.span if evidence.facts.windowed else None
    first = Interval(start=min(one.start for one in intervals), end=min(one.end for one in intervals))
    return first if evidence.facts.ends_when_done and first.end > first.start else None


def _is_bad(value: CheckedValue) -> bool:
    return _LIMIT.verdict(value.value) is not Verdict.VALID


def _worst(values: Iterable[CheckedValue]) -> Verdict:
    return _LIMIT.verdict(min((found.value for found in values), default=100))


def _is_slow_beside(usual: float, part: _Part) -> bool:
    """Whether a client is slow compared with the median of all, and not only with a mean that fast clients raise."""
    return not usual or _LIMIT.verdict(100 * part.amount / usual) is not Verdict.VALID


def _parts(evidence: Evidence, measured: Sequence[ClientMeasurement], span: Interval) -> list[_Part]:
    nodes = Counter(item.node for item in measured)
    quantities = evidence.facts.quantities
    return [
        _Part(
            client=item.client,
            amount=_done(item, span, quantities),
            unit=quantities.unit,
            sharing=nodes[item.node],
            when="in the window" if evidence.facts.windowed else "until the first client was done",
        )
        for item in measured
    ]


def _done(item: ClientMeasurement, span: Interval, quantities: Quantities) -> float:
    """Return what a client did in the window, without syncs: they carry no data."""
    done = [share.within(span) for share in item.shares if share.sample.operation is not Operation.SYNC]
    return sum(quantities.amount(amount.ios, amount.bytes) for amount in done)


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
    value = 100 * (part.amount + _CHANCE * math.sqrt(others)) / others
    return CheckedValue(clients=(part.client,), value=value, detail=detail)


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
    return CheckedValue(clients=(part.client,), value=value, detail=detail)
