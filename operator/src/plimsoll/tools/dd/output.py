"""dd's output -> a measurement."""

import signal

from plimsoll.api.names import LatencyKind, Operation
from plimsoll.measure.sample import MAX_GAPS, Gaps, LatencySample, Measurement, OperationSample
from plimsoll.tools.base import Timing
from plimsoll.tools.command import Output
from plimsoll.tools.dd.command import work_bytes
from plimsoll.tools.dd.parameters import DdParameters
from plimsoll.tools.dd.text import DdReport, read_report
from plimsoll.tools.reading import bounded
from plimsoll.tools.target import VolumeTarget

_SECOND = 10**9
_MILLISECONDS = 1000
_ROUNDING = 0.5
"""Of the seconds in a line of progress."""
_INTERRUPTED = 128 + signal.SIGINT
_UNTIMED = LatencySample(kind=LatencyKind.NONE)


def parse_measurement(parameters: DdParameters, volume: VolumeTarget, timing: Timing, output: Output) -> Measurement:
    """Read the output of a measurement.

    dd does not print its start. Its time ends with it; the start is not exact, but its clients share no window.

    Raises:
        OutputError: it copied nothing, or a line is missing or contradicts another.

    """
    report = read_report(parameters.block_size, output)
    work = work_bytes(parameters, volume)
    runtime = round(report.seconds * _SECOND)
    return Measurement(
        tool="dd",
        tool_version="",
        started_at=max(output.launched_at, output.finished_at - runtime),
        runtime=runtime,
        operations=tuple(_samples(parameters, report)),
        in_flight=1 if parameters.direct else None,
        work_bytes=work,
        # With a count, it uses less than the data set, which fits into less memory.
        data_bytes=work,
        bypasses_cache=parameters.direct,
        gaps=_gaps(parameters, report),
        errors=bounded(_errors(report, timing, output.exit_code)),
        warnings=() if output.exit_code else bounded(report.remarks),
    )


def _samples(parameters: DdParameters, report: DdReport) -> list[OperationSample]:
    samples = [
        OperationSample(
            operation=operation,
            ios=report.records,
            bytes=report.bytes,
            short_ios=report.partial,
            latency=_UNTIMED,
        )
        for operation in parameters.operation.operations
    ]
    # One at the end, which dd waits for within its time.
    synced = [OperationSample(operation=Operation.SYNC, ios=1, bytes=0, latency=_UNTIMED)]
    return samples + (synced if parameters.fdatasync else [])


def _gaps(parameters: DdParameters, report: DdReport) -> Gaps:
    """Return the stretches of a second and more in which no block ended, as the lines of progress show.

    What dd waits for after its last block may be that data becomes durable.
    """
    late = list(enumerate((seconds - _ROUNDING for seconds in report.progress), start=1))
    if parameters.direct and not parameters.fdatasync:
        late.append((len(late) + 1, report.seconds))
    gaps: list[tuple[int, int]] = []
    for due, printed in late:
        start = max(due * _MILLISECONDS, sum(gaps[-1]) if gaps else 0)
        if (length := int(printed * _MILLISECONDS) - start) >= _MILLISECONDS:
            gaps.append((start, length))
    kept = sorted(sorted(gaps, key=lambda gap: -gap[1])[:MAX_GAPS])
    return Gaps(
        width_nanoseconds=_SECOND,
        starts=tuple(start for start, _ in kept),
        lengths=tuple(length for _, length in kept),
    )


def _errors(report: DdReport, timing: Timing, exit_code: int) -> list[str]:
    if exit_code == _INTERRUPTED:
        seconds = timing.ramp_seconds + timing.runtime_seconds
        return [*report.remarks, f"dd was not done after rampSeconds and runtimeSeconds, {seconds} s; raise them"]
    if exit_code:
        return [*report.remarks, f"dd ended with exit code {exit_code}"]
    return []
