"""Whether the load was the requested one, all the time, and for long enough.

    submitting = sum over operations of (operations/s * mean submission time) / submitting threads
    in flight  = sum over operations of (operations/s * mean latency)

The first is the part of the time that the threads spent in the submitting system call; near 1, submitting blocks, and
the queue exists only on paper. The second is Little's law (J. D. C. Little, "A Proof for the Queuing Formula
L = lambda W", 1961), which holds for any system. Operations that cross an edge of the measured time shift the sum by at
most the longest latency / runtime, which is tolerated, and so is the time that a thread needs between two operations.
"""

from collections.abc import Iterable, Iterator

from plimsoll.api.names import LatencyKind, Operation
from plimsoll.api.result import Finding, OperationResult, Steadiness
from plimsoll.measure.checking import checks
from plimsoll.measure.checking.check import CheckedValue, evaluate
from plimsoll.measure.checking.evidence import Evidence
from plimsoll.measure.checking.phases import judge_phases
from plimsoll.measure.intake import ClientMeasurement
from plimsoll.measure.sample import Measurement, OperationSample
from plimsoll.measure.stalls import Standstill
from plimsoll.measure.steady import MAX_RANGE, MAX_SLOPE, ROUGH_FACTOR, rough_steadiness_of
from plimsoll.measure.window import NANOSECONDS
from plimsoll.measure.wording import number_text, percent_text

_THINKING = checks.THINKING_SECONDS * NANOSECONDS


def judge_load(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings, in the order of the table of checks."""
    # A storage that stands still in an open loop, and is late or falls short because of that, does what a search looks
    # for: the load counts as broken. As Invalid trials do not count, the search could otherwise never learn that such a
    # load is too high; it would repeat it until a trial has no freeze, and count that one.
    standstill = None if evidence.is_broken else evidence.standstill
    return (
        *evaluate(checks.STALLED, _stalls(standstill)),
        *evaluate(checks.CLIENT_STALLED, _client_stalls(standstill)),
        *(() if evidence.facts.windowed else judge_phases(evidence.measured)),
        *(_judge_steadiness(evidence) if _should_be_steady(evidence) else ()),
        # Whether there are enough operations for the percentiles of its objectives, a search decides itself.
        *evaluate(checks.TOO_FEW_SAMPLES, () if evidence.is_search else _sample_counts(evidence.operations)),
        *evaluate(checks.SUBMISSION_BOUND, _submission(evidence.measured)),
        *evaluate(checks.TOOL_CPU_BOUND, _thread_use(evidence.measured)),
        *evaluate(checks.PACKETS_LOST, _losses(evidence.measured)),
        *evaluate(checks.LITTLES_LAW, _queue_depths(evidence.measured)),
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
    return evaluate(checks.NOT_STEADY, [*_unsteadiness(evidence), *_rough_unsteadiness(evidence)])


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
        thinking = min(sum(sample.ios for sample in timed) * _THINKING / runtime, checks.THINKING_SHARE * requested)
        beyond = 100 * max(0.0, _unexplained(found / requested - 1, thinking / requested, at_edges))
        detail = (
            f"rate and latency give {number_text(found)} operations in flight instead of {requested}: "
            f"{percent_text(beyond)} beyond the tolerance"
        )
        yield CheckedValue(clients=(item.client,), value=beyond, detail=detail)


def _unexplained(excess: float, thinking: float, at_edges: float) -> float:
    """Return the part of the requested number that is too many or too few, without what may explain it."""
    explained = at_edges if excess > 0 else thinking + at_edges
    return abs(excess) - min(explained, checks.EDGE_SHARE)


def _timed(measurement: Measurement) -> list[OperationSample] | None:
    """Return all samples except syncs; None if there are none, or not all of them have a mean latency."""
    samples = [sample for sample in measurement.operations if sample.ios and sample.operation is not Operation.SYNC]
    untimed = any(not sample.latency.kind.has_mean for sample in samples)
    return None if untimed or not samples else samples
