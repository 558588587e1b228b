"""What tools without a common window, and without a series, show about their time.

They do an amount of work, some in phases one after the other. Some report when nothing completed, others the longest
operation of each phase. None reports when a phase began: that follows from the lengths of the phases before, as if the
next one began at once.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

from plimsoll.api.names import LatencyKind, Operation
from plimsoll.api.result import Finding
from plimsoll.measure.checking import phase_checks
from plimsoll.measure.checking.check import CheckedValue, evaluate
from plimsoll.measure.intake import ClientMeasurement
from plimsoll.measure.sample import Measurement, OperationSample
from plimsoll.measure.window import NANOSECONDS, Interval, common_interval
from plimsoll.measure.wording import number_text, percent_text

_MILLISECONDS = 1000
_TYPICAL = 10
"""Mean operations that a pause takes at the least: a slow operation is no pause."""


def judge_phases(measured: Collection[ClientMeasurement]) -> tuple[Finding, ...]:
    """Return the findings, in the order of the table of checks."""
    return (
        *evaluate(phase_checks.LONG_PAUSE, _pauses(measured)),
        *evaluate(phase_checks.PHASES_APART, _common_parts(measured)),
    )


def _pauses(measured: Iterable[ClientMeasurement]) -> Iterator[CheckedValue]:
    for item in measured:
        for share in item.shares:
            sample, seconds = share.sample, share.interval.length / NANOSECONDS
            least = max(phase_checks.LONG_PAUSE_SECONDS, _TYPICAL * seconds / max(1, sample.ios))
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
