"""`rbd bench` on an image through librbd: a rate without latency, for comparison with published numbers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal

from plimsoll.api.json_reader import MAX_COUNT, OutputError, printable
from plimsoll.api.names import Layer, Operation
from plimsoll.api.quantity import format_quantity
from plimsoll.measure.sample import Measurement, OperationSample
from plimsoll.tools import reading
from plimsoll.tools.base import BlockBytes, Command, Depth, Output, StepContext, Tool, ToolParameters, ended_by_signal
from plimsoll.tools.reading import COUNT, NUMBER, SECOND, UNTIMED
from plimsoll.tools.target import ImageTarget, TargetKind


class RbdBenchParameters(ToolParameters):
    """rbd bench on each client's RBD image, with access LibRBD only.

    For a first impression, or for comparison with published numbers: it reports no latency, so measure with fio.
    """

    axes: ClassVar[frozenset[str]] = frozenset({"blockSize", "concurrency"})
    reads_when: ClassVar[str] = "self.operation == 'read'"
    depth_axis: ClassVar[str] = "concurrency"
    size_axis: ClassVar[str] = "blockSize"

    # Mixtures need fio: `rbd bench` does not print separate rates over time.
    operation: Literal["read", "write"] = "write"
    """Direction of the I/O."""
    order: Literal["rand", "seq"] = "rand"
    """rand for random order; seq if each of the operations in flight goes through its own part of the image in
    order."""
    block_size: BlockBytes = 4096
    """Axis: bytes of every operation, from 512 to 64Mi, a multiple of 512."""
    concurrency: Depth = 16
    """Axis: operations that each client keeps in flight."""

    @property
    def reads_data(self) -> bool:
        return self.operation == "read"

    @property
    def at_random(self) -> bool:
        return self.order == "rand"

    def label(self) -> str:
        return f"rbd {self.order} {self.operation} {format_quantity(self.block_size)} t{self.concurrency}"


_HEADER = re.compile(
    r"bench  type (?P<type>\S+) io_size (?P<size>\d+) io_threads (?P<threads>\d+) bytes \d+ pattern (?P<pattern>.+)",
    re.ASCII,
)
_COLUMNS = re.compile(r"\s+SEC\s+OPS\s+OPS/SEC\s+BYTES/SEC")
_ROW = re.compile(rf"\s*(?P<second>{COUNT})\s+(?P<done>{COUNT})\s+\S+\s+\S+ \S*B/s", re.ASCII)
_TOTAL = re.compile(
    rf"elapsed: (?P<seconds>{COUNT})\s+ops: (?P<done>{COUNT})\s+ops/sec: (?P<rate>{NUMBER}|-?nan)"
    r"\s+bytes/sec: \S+ \S*B/s",
    re.ASCII,
)
_SIGNAL = re.compile(
    r"(?P<stamp>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4}) .* received  signal: Terminated .*", re.ASCII
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Report:
    done: Mapping[int, int]  # seconds since the start -> operations; without seconds in which nothing was submitted
    total: int  # operations, including those in flight at the end
    seconds: float  # from the start until they had completed
    warnings: list[str]  # unknown lines and missing seconds

    def until(self, second: int) -> int:
        """Return the operations until a second; without a line for it, those of the next line had completed before."""
        return next((done for at, done in self.done.items() if at >= second), self.total) if second else 0


class RbdBench(Tool[RbdBenchParameters]):
    """One `rbd bench` per client, on its own image. The prefill writes the data for reads."""

    key: ClassVar[str] = "rbdBench"
    program: ClassVar[str] = "rbd"
    parameters = RbdBenchParameters
    layer: ClassVar[Layer] = Layer.RBD
    target: ClassVar[TargetKind] = TargetKind.IMAGE
    least_runtime_seconds: ClassVar[int] = 3

    def command(self, parameters: RbdBenchParameters, context: StepContext) -> Command:
        """Return the command, which SIGTERM ends; ValueError if the image is smaller than one block."""
        image, timing = context.target_of(ImageTarget), context.timing
        if parameters.block_size > image.size:
            size = format_quantity(image.size)
            raise ValueError(f"the image has {size}, less than one block: use a larger volume or smaller blocks")
        return Command(
            argv=ended_by_signal(
                # Two seconds more, because the time of the command starts before the image is open.
                timing.total_seconds + 2,
                "TERM",  # prints the totals and closes the image; SIGINT would leave it locked until the lock times out
                *("rbd", f"--id={image.user}", f"--rbd-cache={str(image.cache).lower()}", "bench"),
                *(f"--io-type={parameters.operation}", f"--io-pattern={parameters.order}"),
                *(f"--io-size={parameters.block_size}", f"--io-threads={parameters.concurrency}"),
                *(f"--io-total={2**60}", f"--pool={image.pool}", f"--image={image.image}"),
            )
        )

    def parse(self, parameters: RbdBenchParameters, context: StepContext, output: Output) -> Measurement:
        image, timing = context.target_of(ImageTarget), context.timing
        report = _read_report(parameters, output)
        # Any number of warnings may precede it.
        signals = (match for line in output.stderr.splitlines() if (match := _SIGNAL.fullmatch(line.strip())))
        ended_at = next((reading.nanoseconds_of(match["stamp"]) for match in signals), None)
        started_at = (ended_at or output.finished_at) - round(report.seconds * SECOND)
        messages = reading.excerpt(output.stderr, without=_SIGNAL)
        measured = round((report.seconds - timing.ramp_seconds) * SECOND)
        if measured <= 0:
            raise reading.ended_in_warm_up("rbd bench", report.seconds, timing)
        runtime = min(measured, timing.runtime_seconds * SECOND)
        seconds = range(timing.ramp_seconds, timing.ramp_seconds + runtime // SECOND + 1)
        done = [*map(report.until, seconds), *([report.total] if runtime % SECOND else [])]
        ios = [after - before for before, after in pairwise(done)]
        sample = OperationSample(
            operation=Operation(parameters.operation),
            ios=sum(ios),
            bytes=sum(ios) * parameters.block_size,
            latency=UNTIMED,
            cells=reading.cells_of_operations(ios, parameters.block_size),
        )
        return Measurement(
            started_at=max(started_at, output.launched_at) + timing.ramp_seconds * SECOND,
            start_is_estimated=ended_at is None,
            runtime=runtime,
            operations=(sample,),
            in_flight=parameters.concurrency,
            bypasses_cache=not image.cache,
            errors=reading.bounded(messages if output.exit_code else ()),
            warnings=reading.bounded(report.warnings if output.exit_code else [*report.warnings, *messages]),
        )


def _read_report(parameters: RbdBenchParameters, output: Output) -> _Report:
    (headers, _, rows, totals), unknown = reading.sort_lines(output.stdout, _HEADER, _COLUMNS, _ROW, _TOTAL)
    if not headers or not totals:
        raise OutputError(f"rbd bench printed no header or no totals, {reading.failure(output, *unknown)}")
    requested = {
        "type": parameters.operation,
        "size": str(parameters.block_size),
        "threads": str(parameters.concurrency),
        "pattern": "random" if parameters.order == "rand" else "sequential",
    }
    for name, value in requested.items():
        if (printed := headers[-1][name]) != value:
            raise OutputError(f"{name} is {printable(printed)} instead of {value}")
    count, rate = int(totals[-1]["done"]), totals[-1]["rate"]
    if not count or "nan" in rate or not float(rate):
        raise OutputError("no operation completed in time: is the image locked by another client?")
    # More exact than the printed whole number.
    seconds = count / float(rate)
    if seconds > MAX_COUNT or abs(seconds - int(totals[-1]["seconds"])) > 1 + seconds / 1000:
        raise OutputError("the totals contradict each other: ops, ops/sec and elapsed")
    done = {int(row["second"]): int(row["done"]) for row in rows}
    for before, after in pairwise(rows):
        if int(after["second"]) <= int(before["second"]) or int(after["done"]) < int(before["done"]):
            raise OutputError(f"the line of second {after['second']} goes back in time or operations")
    if done and (max(done) > seconds or max(done.values()) > count):
        raise OutputError(f"the line of second {max(done)} exceeds the totals")
    missing = [
        f"no line from second {before + 1} to {after - 1}: no operation was submitted"
        # The first and the last second may be incomplete.
        for before, after in pairwise([0, *done, int(seconds + 1)])
        if after > before + 1
    ]
    return _Report(done=done, total=count, seconds=seconds, warnings=[*unknown, *missing])
