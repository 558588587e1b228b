"""The output of `rados bench --show-time` -> a measurement.

Every second it prints a line with the time, the operations finished since its start, and their mean latency; at its
end, it prints totals. The measured part lies between the two lines closest to the end of the warm-up and to the end of
the runtime. So the number of operations is exact, and the mean latency is exact to the six printed digits. Minimum and
maximum latency are those of the whole run; there are no others.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from plimsoll.api.names import LatencyKind
from plimsoll.measure.sample import Cells, LatencySample, Measurement, OperationSample
from plimsoll.tools.base import Timing
from plimsoll.tools.command import Output, OutputError
from plimsoll.tools.rados_bench.parameters import RadosBenchParameters, RadosOperation
from plimsoll.tools.rados_bench.text import Progress, RadosReport, read_report
from plimsoll.tools.reading import bounded, excerpt

_SECOND = 10**9
_HALF_SECOND = _SECOND // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The measured part of a run."""

    start: Progress
    end: Progress

    @property
    def ios(self) -> int:
        return self.end.finished - self.start.finished

    @property
    def nanoseconds(self) -> int:
        return self.end.nanoseconds - self.start.nanoseconds

    @property
    def mean(self) -> float:
        """Mean latency in nanoseconds of the operations that finished in this part."""
        spent = self.end.finished * self.end.mean - self.start.finished * self.start.mean
        return max(0.0, spent / self.ios) if self.ios else 0.0


def parse_measurement(parameters: RadosBenchParameters, timing: Timing, output: Output) -> Measurement:
    """Read the output of a measurement.

    Raises:
        OutputError: it failed, a line or number is missing or malformed, or it ended before the end of its warm-up.

    """
    reads = parameters.operation is not RadosOperation.WRITE
    report = read_report(output, reads=reads)
    if report.object_size != parameters.object_size:
        raise OutputError(f"Object size is {report.object_size} instead of {parameters.object_size}")
    part = _measured_part(report, timing)
    messages = excerpt(output.stderr)
    return Measurement(
        tool="radosBench",
        tool_version="",
        started_at=report.started_at + part.start.nanoseconds,
        runtime=part.nanoseconds,
        operations=(_sample(parameters, report, part),),
        in_flight=parameters.concurrency,
        errors=bounded([*(messages if output.exit_code else ()), *_ran_out(report, part, timing)]),
        warnings=bounded([*report.warnings, *(() if output.exit_code else messages)]),
    )


def _measured_part(report: RadosReport, timing: Timing) -> _Part:
    start = _closest(report.progress, timing.ramp_seconds * _SECOND)
    end = _closest(report.progress, start.nanoseconds + timing.runtime_seconds * _SECOND)
    if end.nanoseconds <= start.nanoseconds:
        ended = report.progress[-1].nanoseconds / _SECOND
        raise OutputError(
            f"rados bench ended after {ended:.1f} s, before the end of its warm-up of {timing.ramp_seconds} s"
            f"{_remedy(report) if report.reads else ''}"
        )
    return _Part(start=start, end=end)


def _closest(progress: Sequence[Progress], nanoseconds: int) -> Progress:
    return min(progress, key=lambda one: abs(one.nanoseconds - nanoseconds))


def _ran_out(report: RadosReport, part: _Part, timing: Timing) -> list[str]:
    """Return an error if `seq`, which reads every object once, ended early."""
    if not report.reads or part.nanoseconds >= timing.runtime_seconds * _SECOND - _HALF_SECOND:
        return []
    end = report.progress[-1]
    return [f"all {end.finished} objects were read after {end.nanoseconds / _SECOND:.1f} s{_remedy(report)}"]


def _remedy(report: RadosReport) -> str:
    return f": raise writeSeconds, so that there are more than {report.progress[-1].finished} objects to read"


def _sample(parameters: RadosBenchParameters, report: RadosReport, part: _Part) -> OperationSample:
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
        cells=cells_between(report.progress, part.start, part.end, size=size),
    )


def cells_between(progress: Sequence[Progress], start: Progress, end: Progress, *, size: int) -> Cells:
    """Return the series from one line to another, with `size` bytes per operation; its sum is exact.

    Lines are a second and some milliseconds apart, so operations between two lines are spread evenly.
    """
    edges = [*range(start.nanoseconds, end.nanoseconds, _SECOND), end.nanoseconds]
    done = [_finished(progress, edge) for edge in edges]
    ios = [after - before for before, after in pairwise(done)]
    return Cells(width_nanoseconds=_SECOND, ios=tuple(ios), bytes=tuple(count * size for count in ios))


def _finished(progress: Sequence[Progress], nanoseconds: int) -> float:
    index = bisect_right(progress, nanoseconds, key=lambda one: one.nanoseconds)
    if index == len(progress):
        return progress[-1].finished
    before, after = progress[index - 1], progress[index]
    part = (nanoseconds - before.nanoseconds) / (after.nanoseconds - before.nanoseconds)
    return before.finished + part * (after.finished - before.finished)
