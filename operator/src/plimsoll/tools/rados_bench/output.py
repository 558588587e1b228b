"""What `rados bench --show-time` prints -> a measurement.

Every second it prints a line with the time, the operations finished since its start, and their mean latency; at its end
the totals. The measured part lies between the two lines that come closest to the end of the warm-up and to the runtime
after it, and its length is theirs. So its count of operations is exact, and so is its mean latency but for the six
digits that are printed. The least and the greatest latency are those of the whole run: nothing tells more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.api.names import LatencyKind
from plimsoll.measure.sample import LatencySample, Measurement, OperationSample
from plimsoll.tools.base import Output, OutputError, Timing
from plimsoll.tools.rados_bench.cells import cells_between
from plimsoll.tools.rados_bench.parameters import RadosBenchParameters, RadosOperation
from plimsoll.tools.rados_bench.text import Point, Report, read_report
from plimsoll.tools.reading import bounded, lines

_SECOND = 10**9
_HALF_SECOND = _SECOND // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The measured part of a run."""

    start: Point
    end: Point

    @property
    def ios(self) -> int:
        return self.end.finished - self.start.finished

    @property
    def nanoseconds(self) -> int:
        return self.end.nanoseconds - self.start.nanoseconds

    @property
    def mean(self) -> float:
        """Mean latency of what finished in it, nanoseconds."""
        spent = self.end.finished * self.end.mean - self.start.finished * self.start.mean
        return max(0.0, spent / self.ios) if self.ios else 0.0


def parse_measurement(parameters: RadosBenchParameters, timing: Timing, output: Output) -> Measurement:
    """Read the output of a measurement.

    Raises:
        OutputError: it failed, a line or a number is missing or broken, or it ended before its warm-up did.

    """
    reads = parameters.operation is not RadosOperation.WRITE
    report = read_report(output, reads=reads)
    if report.object_size != parameters.object_size:
        raise OutputError(f"Object size is {report.object_size}, but {parameters.object_size} was asked for")
    part = _measured_part(report, timing)
    said = lines(output.stderr)
    return Measurement(
        tool="radosBench",
        tool_version="",
        started_at=report.started_at + part.start.nanoseconds,
        runtime=part.nanoseconds,
        operations=(_sample(parameters, report, part),),
        in_flight=parameters.concurrency,
        errors=bounded([*(said if output.exit_code else ()), *_ran_out(report, part, timing)]),
        warnings=bounded([*report.warnings, *(() if output.exit_code else said)]),
    )


def _measured_part(report: Report, timing: Timing) -> _Part:
    points = report.points
    start = _closest(points, timing.ramp_seconds * _SECOND)
    end = _closest(points, start.nanoseconds + timing.runtime_seconds * _SECOND)
    if end.nanoseconds <= start.nanoseconds:
        ended = report.points[-1].nanoseconds / _SECOND
        raise OutputError(
            f"it ended after {ended:.1f} s, before its warm-up of {timing.ramp_seconds} s was over"
            f"{_remedy(report) if report.reads else ''}"
        )
    return _Part(start=start, end=end)


def _closest(points: Sequence[Point], nanoseconds: int) -> Point:
    return min(points, key=lambda point: abs(point.nanoseconds - nanoseconds))


def _ran_out(report: Report, part: _Part, timing: Timing) -> list[str]:
    """Return that there was nothing left to read, if so: `seq` reads every object once."""
    if not report.reads or part.nanoseconds >= timing.runtime_seconds * _SECOND - _HALF_SECOND:
        return []
    ended = report.points[-1]
    return [f"all {ended.finished} objects were read after {ended.nanoseconds / _SECOND:.1f} s{_remedy(report)}"]


def _remedy(report: Report) -> str:
    return f": raise writeSeconds, so that there are more than {report.points[-1].finished} objects to read"


def _sample(parameters: RadosBenchParameters, report: Report, part: _Part) -> OperationSample:
    size = parameters.object_size
    return OperationSample(
        operation=parameters.operation.operation,
        ios=part.ios,
        bytes=part.ios * size,
        latency=LatencySample(
            kind=LatencyKind.MEAN_ONLY,
            count=part.ios,
            mean_nanoseconds=part.mean,
            min_nanoseconds=report.min_nanoseconds if part.ios else 0,
            max_nanoseconds=report.max_nanoseconds if part.ios else 0,
        ),
        cells=cells_between(report.points, part.start, part.end, size=size),
    )
