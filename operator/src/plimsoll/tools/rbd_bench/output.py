"""The output of `rbd bench` -> a measurement.

Once a second it prints the operations since its start: those submitted, minus the number in flight. The measured part
begins and ends at whole seconds, so its count is off by at most that number.

It does not print its start. SIGTERM ends it, and it prints when that arrived; the totals contain how long it had run by
then, apart from the operations in flight.
"""

import re
from itertools import pairwise

from plimsoll.api.names import LatencyKind
from plimsoll.measure.sample import Cells, LatencySample, Measurement, OperationSample
from plimsoll.tools.base import Timing
from plimsoll.tools.command import Output, OutputError
from plimsoll.tools.rbd_bench.parameters import RbdBenchParameters
from plimsoll.tools.rbd_bench.text import RbdReport, read_report
from plimsoll.tools.reading import bounded, excerpt, nanoseconds_of
from plimsoll.tools.target import ImageTarget

_SECOND = 10**9
_SIGNAL = re.compile(
    r"(?P<stamp>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4}) .* received  signal: Terminated .*", re.ASCII
)


def parse_measurement(
    parameters: RbdBenchParameters, image: ImageTarget, timing: Timing, output: Output
) -> Measurement:
    """Read the output of a measurement.

    Raises:
        OutputError: it failed, a line is missing or malformed, or it ended before the end of its warm-up.

    """
    report = read_report(parameters, output)
    messages = excerpt(output.stderr)
    ended_at = next((nanoseconds_of(match["stamp"]) for line in messages if (match := _SIGNAL.fullmatch(line))), None)
    started_at = (ended_at or output.finished_at) - round(report.seconds * _SECOND)
    rest = [line for line in messages if not _SIGNAL.fullmatch(line)]
    nanoseconds = _measured(report, timing)
    return Measurement(
        tool="rbdBench",
        tool_version="",
        started_at=max(started_at, output.launched_at) + timing.ramp_seconds * _SECOND,
        start_is_estimated=ended_at is None,
        runtime=nanoseconds,
        operations=(_sample(parameters, report, timing.ramp_seconds, nanoseconds),),
        in_flight=parameters.concurrency,
        bypasses_cache=not image.cache,
        errors=bounded(rest if output.exit_code else ()),
        warnings=bounded(report.warnings if output.exit_code else [*report.warnings, *rest]),
    )


def _measured(report: RbdReport, timing: Timing) -> int:
    """Return the nanoseconds of the measured part: the runtime, or less if it ended early."""
    nanoseconds = round((report.seconds - timing.ramp_seconds) * _SECOND)
    if nanoseconds <= 0:
        raise OutputError(
            f"rbd bench ended after {report.seconds:.1f} s, before the end of its warm-up of {timing.ramp_seconds} s"
        )
    return min(nanoseconds, timing.runtime_seconds * _SECOND)


def _sample(parameters: RbdBenchParameters, report: RbdReport, start: int, nanoseconds: int) -> OperationSample:
    size = parameters.block_size
    whole = start + nanoseconds // _SECOND
    done = [report.until(second) for second in range(start, whole + 1)]
    if nanoseconds % _SECOND:
        done.append(report.total)
    ios = [after - before for before, after in pairwise(done)]
    return OperationSample(
        operation=parameters.operation.operation,
        ios=sum(ios),
        bytes=sum(ios) * size,
        latency=LatencySample(kind=LatencyKind.NONE),
        cells=Cells(width_nanoseconds=_SECOND, ios=tuple(ios), bytes=tuple(count * size for count in ios)),
    )
