"""Whether the load was the one that was asked for, all the time, and long enough.

Two laws tell whether a client kept its queue as deep as it was to:

    submitting = sum over operations of (operations/s * mean submission time) / submitting threads
    in flight  = sum over operations of (operations/s * mean latency)

The first is the part of the time for which the threads were inside the submitting system call; near 1, submitting
blocks, and the queue exists only on paper. The second is Little's law (J. D. C. Little, "A Proof for the Queuing
Formula L = lambda W", 1961): it holds for any system, so a sum that differs from what the tool was to keep in flight
says that it did not. What completes counts with its whole latency, also with the part before the measured time, and
what is begun at its end does not count: either shifts the sum by at most the longest latency / runtime, so only what
exceeds this is held against a client. A thread that has one operation in flight has none while it handles the last one
and makes the next: operations/s * that time are missing from the sum, and no storage could change that.
"""

from collections.abc import Iterable, Iterator

from plimsoll.api.names import LatencyKind, Operation
from plimsoll.api.result import Finding, OperationResult, Steadiness
from plimsoll.measure.checking import checks
from plimsoll.measure.checking.check import Observation, evaluate
from plimsoll.measure.checking.evidence import Evidence
from plimsoll.measure.intake import Measured
from plimsoll.measure.sample import Measurement, OperationSample
from plimsoll.measure.stalls import Standstill
from plimsoll.measure.steady import MAX_RANGE, MAX_SLOPE, ROUGHLY, rough_steadiness_of
from plimsoll.measure.window import NANOSECONDS
from plimsoll.measure.wording import number_text

_PERCENT = 100
_THINKING = checks.THINKING_SECONDS * NANOSECONDS


def judge_load(evidence: Evidence) -> tuple[Finding, ...]:
    """Return what does not hold, in the order of the table of checks."""
    return (
        *evaluate(checks.STALLED, _stalls(evidence.standstill)),
        *evaluate(checks.CLIENT_STALLED, _client_stalls(evidence.standstill)),
        *evaluate(checks.NOT_STEADY, [*_unsteadiness(evidence.operations), *_rough_unsteadiness(evidence)]),
        *evaluate(checks.TOO_FEW_SAMPLES, _sample_counts(evidence.operations)),
        *evaluate(checks.SUBMISSION_BOUND, _submission(evidence.measured)),
        *evaluate(checks.LITTLES_LAW, _queue_depths(evidence.measured)),
    )


def _stalls(standstill: Standstill | None) -> Iterator[Observation]:
    if standstill is not None and (held := standstill.held()):
        part = _PERCENT * held / standstill.window
        detail = f"no client completed anything in {_seconds_of(held, standstill.window, part)}"
        yield Observation(value=part, detail=detail)


def _client_stalls(standstill: Standstill | None) -> Iterator[Observation]:
    for client in standstill.own if standstill else ():
        if standstill and (held := standstill.held_against(client)):
            part = _PERCENT * held / standstill.window
            detail = f"completed nothing while others did in {_seconds_of(held, standstill.window, part)}"
            yield Observation(clients=(client,), value=part, detail=detail)


def _seconds_of(seconds: float, window: float, part: float) -> str:
    return f"{number_text(seconds)} s of a window of {number_text(window)} s: {part:.3g} %"


def _unsteadiness(operations: Iterable[OperationResult]) -> Iterator[Observation]:
    for result in operations:
        state = result.steady_state
        if state is not None:
            yield _steadiness(f"{result.operation} operations/s", state.rate)
            if state.p99 is not None:
                yield _steadiness(f"{result.operation} 99th percentile", state.p99)


def _steadiness(quantity: str, found: Steadiness) -> Observation:
    detail = (
        f"{quantity} over five rounds: range {_PERCENT * found.range_ratio:.3g} % of the mean "
        f"(SNIA permits {_PERCENT * MAX_RANGE:.3g} %), drift {_PERCENT * found.slope_ratio:.3g} % "
        f"({_PERCENT * MAX_SLOPE:.3g} %)"
    )
    excess = max(found.range_ratio / MAX_RANGE, found.slope_ratio / MAX_SLOPE)
    return Observation(value=0 if found.attained else excess, detail=detail)


def _rough_unsteadiness(evidence: Evidence) -> Iterator[Observation]:
    """Look at windows that are too short for the criterion; only a rate that plainly changes counts there."""
    if evidence.window is None or evidence.span is None:
        return
    for operation in evidence.rates:
        shares = [share for item in evidence.measured for share in item.shares if share.sample.operation is operation]
        found = rough_steadiness_of(shares, evidence.span)
        if found is not None:
            detail = (
                f"{operation} operations/s over five short rounds: range {_PERCENT * found.range_ratio:.3g} % of the "
                f"mean (limit {_PERCENT * ROUGHLY * MAX_RANGE:.3g} %), drift {_PERCENT * found.slope_ratio:.3g} % "
                f"({_PERCENT * ROUGHLY * MAX_SLOPE:.3g} %)"
            )
            excess = max(found.range_ratio / MAX_RANGE, found.slope_ratio / MAX_SLOPE) / ROUGHLY
            yield Observation(value=excess if excess > 1 else 0, detail=detail)


def _sample_counts(operations: Iterable[OperationResult]) -> Iterator[Observation]:
    for result in operations:
        # Without any, another check says so.
        if result.latency.kind is LatencyKind.FULL and result.latency.count:
            detail = f"{result.latency.count} timed {result.operation} operations"
            yield Observation(value=result.latency.count, detail=detail)


def _submission(measured: Iterable[Measured]) -> Iterator[Observation]:
    for item in measured:
        runs = item.measurement
        spent = sum(sample.ios * (sample.submission_nanoseconds or 0.0) for sample in runs.operations)
        yield Observation(clients=(item.client,), value=_PERCENT * spent / (runs.runtime * runs.submitters))


def _queue_depths(measured: Iterable[Measured]) -> Iterator[Observation]:
    for item in measured:
        asked, timed = item.measurement.in_flight, _timed(item.measurement)
        if asked is None or timed is None:
            continue
        runtime = item.measurement.runtime
        found = sum(sample.ios * sample.latency.mean_nanoseconds for sample in timed) / runtime
        explained = max(sample.latency.max_nanoseconds for sample in timed) / runtime
        thinking = min(sum(sample.ios for sample in timed) * _THINKING / runtime, checks.THINKING_SHARE * asked)
        detail = f"rate and latency give {number_text(found)} operations in flight, not {asked}"
        beyond = _PERCENT * max(0.0, max(found - asked, asked - thinking - found) / asked - explained)
        yield Observation(clients=(item.client,), value=beyond, detail=f"{detail}: {beyond:.3g} % beyond what is exact")


def _timed(measurement: Measurement) -> list[OperationSample] | None:
    """Return what was done but syncs; None if nothing was, or not all of it was timed."""
    samples = [sample for sample in measurement.operations if sample.ios and sample.operation is not Operation.SYNC]
    untimed = any(sample.latency.kind is LatencyKind.NONE for sample in samples)
    return None if untimed or not samples else samples
