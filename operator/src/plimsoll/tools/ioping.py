"""ioping on each client's volume: the latency of one request at a time."""

import re
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from plimsoll.api.json_reader import OutputError, printable
from plimsoll.api.model import Flag, Integer
from plimsoll.api.names import Layer, Operation
from plimsoll.api.quantity import format_quantity
from plimsoll.measure.histogram import Histogram, bin_index, sample_of
from plimsoll.measure.sample import LatencySlices, Measurement, OperationSample
from plimsoll.tools import reading
from plimsoll.tools.base import BlockBytes, Command, Output, StepContext, Timing, Tool, ToolParameters
from plimsoll.tools.reading import MILLISECOND, SECOND
from plimsoll.tools.target import TargetKind, VolumeTarget


class IopingParameters(ToolParameters):
    """ioping on each client's volume: requests at random places, one at a time.

    It measures what fio measures at a depth of 1, to compare both. Each client makes at most 900 000 requests in a
    trial; a trial that needs more is Invalid. Not with access LibRBD.
    """

    axes: ClassVar[frozenset[str]] = frozenset({"operation", "size"})
    reads_when: ClassVar[str] = "'Read' in self.operation"
    size_axis: ClassVar[str] = "size"

    operation: Annotated[Literal["Read", "Write"], Field(description="Read or Write.")] = "Read"
    """Axis: Read or Write. A written block is not synced, as with fio."""
    size: BlockBytes = 4096
    """Axis: bytes of every request, from 512 to 64Mi, a multiple of 512."""
    interval_milliseconds: Annotated[Integer, Field(ge=0, le=1000)] = 0
    """Time between the starts of two requests; 0 starts the next one at once. With an interval the storage may be idle
    in between, so the rate says nothing about it."""
    direct: Flag = True
    """Bypass the page cache. false measures the client's memory as much as its storage."""

    @property
    def reads_data(self) -> bool:
        return self.operation == "Read"

    @property
    def at_random(self) -> bool:
        return True

    def label(self) -> str:
        interval = f" every {self.interval_milliseconds} ms" if self.interval_milliseconds else ""
        buffered = "" if self.direct else " buffered"
        return f"ioping {self.operation.lower()} {format_quantity(self.size)}{interval}{buffered}"


MAX_REQUESTS = 900_000  # requests of a trial; each prints a line of at most 74 bytes, and the agent keeps 64 MiB
_TIME = r"(\d{1,15})"
_FIRST = re.compile(rf"1 {_TIME} \d+ \d+ \1 \1 \1 0 2 {_TIME}", re.ASCII)
_REQUEST = re.compile(rf"1 {_TIME} \d+ \d+ \1 \1 \1 0 1 {_TIME}", re.ASCII)
_TOTAL = re.compile(
    rf"(?P<count>\d{{1,15}}) (?P<sum>\d{{1,18}}) \d+ \d+(?: {_TIME}){{4}} \d{{1,15}} (?P<time>\d{{1,15}})", re.ASCII
)

_LEAST_GAP_MILLISECONDS = 40  # freezes count from 100 ms; their beginning and end are in shorter gaps


@dataclass(frozen=True, slots=True, kw_only=True)
class _Report:
    """The requests after the warm-up, in their order."""

    times: Sequence[int]  # nanoseconds of each
    ends: Sequence[int]  # nanoseconds from the start of the warm-up to the end of each
    total: int  # nanoseconds from the same start to the end of ioping
    # Nanoseconds from the same start to the edges of the measured part; a request that ends with the ramp is before it
    start: int
    end: int


class Ioping(Tool[IopingParameters]):
    """One ioping per client, on its own data set. The prefill writes the data for reads."""

    key: ClassVar[str] = "ioping"
    program: ClassVar[str] = "ioping"
    version_argument: ClassVar[str] = "-v"
    parameters = IopingParameters
    layer: ClassVar[Layer] = Layer.RBD
    target: ClassVar[TargetKind] = TargetKind.VOLUME
    least_runtime_seconds: ClassVar[int] = 3

    def command(self, parameters: IopingParameters, context: StepContext) -> Command:
        """Return the command; ValueError if the data set is smaller than one request, or there would be too many."""
        volume, size, interval = context.target_of(VolumeTarget), parameters.size, parameters.interval_milliseconds
        if size > volume.size:
            least = f"the data set has {format_quantity(volume.size)}, less than one request"
            raise ValueError(f"{least}: use a larger volume or a smaller size")
        # One second more, because the measured time may begin after the ramp; and ioping ends between two requests.
        seconds = context.timing.total_seconds + 1
        if interval and seconds * 1000 > MAX_REQUESTS * interval:
            raise ValueError(
                f"more than {MAX_REQUESTS} requests in {seconds} s: raise intervalMilliseconds, or shorten "
                "rampSeconds and runtimeSeconds"
            )
        return Command(
            argv=(
                # A line of numbers for each request but the first, and one for all.
                *("ioping", "-q", "-B", "-p1", "-a1"),
                *(f"-w{seconds + -(-interval // 1000)}s", f"-c{MAX_REQUESTS + 1}", f"-i{interval}ms"),
                *(f"-s{size}", f"-S{volume.size // size * size}", f"-o{volume.offset}"),
                "-C",  # without it, ioping drops each block from the page cache, and syncs after each write
                *(["-D"] if parameters.direct else []),
                *(["-WWW"] if parameters.operation == "Write" else []),  # three times, for what exists
                f"-e{1 + context.seed % (2**31 - 1)}",  # 0 would be a random seed
                volume.path,
            ),
            environment={"LC_ALL": "C"},
        )

    def parse(self, parameters: IopingParameters, context: StepContext, output: Output) -> Measurement:
        timing = context.timing
        report = _read_report(output, timing)
        too_many = (
            f"ioping made the {MAX_REQUESTS} requests that it may make in {report.total / SECOND:.1f} s; shorten "
            f"rampSeconds and runtimeSeconds, {timing.total_seconds} s, or set intervalMilliseconds"
        )
        began, is_uncertain = reading.estimated_start(output, report.total)
        return Measurement(
            started_at=began + report.start,
            start_is_estimated=is_uncertain,
            runtime=report.end - report.start,
            operations=(_sample(parameters, report, timing.slice_seconds * SECOND),),
            in_flight=None if parameters.interval_milliseconds else 1,
            bypasses_cache=parameters.direct,
            gaps=reading.longest_gaps(_gaps(report, parameters.interval_milliseconds * MILLISECOND), MILLISECOND),
            errors=(too_many,) if len(report.times) >= MAX_REQUESTS else (),
            warnings=reading.bounded(reading.excerpt(output.stderr)),
        )


def _read_report(output: Output, timing: Timing) -> _Report:
    *lines, last = output.stdout.split("\n")
    total = _TOTAL.fullmatch(lines[-1]) if lines else None
    if last or total is None or output.exit_code:
        raise OutputError(f"ioping printed no complete statistics, {reading.failure(output)}")
    times, since = array("q"), array("q")
    for number, line in enumerate(lines[:-1], start=1):
        match = (_REQUEST if times else _FIRST).fullmatch(line)
        if match is None:
            raise OutputError(f"line {number} does not describe one request: {printable(line)}")
        times.append(int(match[1]))
        since.append(int(match[2]))
    if not times:
        raise OutputError("no request was timed: ioping ended after its warm-up, or all its lines are missing")
    for name, value in (("count", len(times)), ("sum", sum(times))):
        if int(total[name]) != value:
            raise OutputError(f"the lines of the requests give {value} as {name}, but the last line {total[name]}")
    until_last, lasted = sum(since), int(total["time"])
    if not sum(times) <= until_last <= lasted:
        raise OutputError(f"the requests ended after {until_last} ns, but the last line has {lasted} ns")
    start = max(timing.ramp_seconds * SECOND, since[0] - times[0])
    end = min(start + timing.runtime_seconds * SECOND, lasted)
    if end <= start:
        raise reading.ended_in_warm_up("ioping", lasted / SECOND, timing)
    return _Report(times=times, ends=array("q", accumulate(since)), total=lasted, start=start, end=end)


def _sample(parameters: IopingParameters, report: _Report, slice_width: int) -> OperationSample:
    # A cell has the requests of one second, or of as many seconds as ten requests take with an interval.
    width = max(1, -(-10 * parameters.interval_milliseconds // 1000)) * SECOND
    first, last = bisect_right(report.ends, report.start), bisect_right(report.ends, report.end)
    times, length = report.times[first:last], report.end - report.start
    counts = Counter((end - report.start - 1) // width for end in report.ends[first:last])
    ios = [counts[index] for index in range(-(-length // width))]
    starts = range(report.start, report.start + length // slice_width * slice_width + 1, slice_width)
    edges = [bisect_right(report.ends, start) for start in starts]
    slices = [Counter(map(bin_index, report.times[begin:stop])) for begin, stop in pairwise(edges)]
    return OperationSample(
        operation=Operation.READ if parameters.reads_data else Operation.WRITE,
        ios=len(times),
        bytes=len(times) * parameters.size,
        latency=sample_of(times),
        cells=reading.cells_of_operations(ios, parameters.size, width),
        slices=LatencySlices(
            width_nanoseconds=slice_width, histograms=tuple(Histogram(counts=bins).encode() for bins in slices)
        ),
    )


def _gaps(report: _Report, interval: int) -> Iterator[tuple[int, int]]:
    """Yield start and length (ms) of waits after requests were due: after the previous one, and at its interval."""
    due = report.ends[0] - report.times[0]
    for time, end in zip((*report.times, 0), (*report.ends, report.total), strict=True):
        start = -(-(max(due, report.start) - report.start) // MILLISECOND)
        length = (min(end, report.end) - report.start) // MILLISECOND - start
        if length >= _LEAST_GAP_MILLISECONDS:
            yield start, length
        due = max(end, end - time + interval)
