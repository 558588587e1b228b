"""`rados bench`: whole objects of a pool, without a block device or a file system."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from plimsoll.api.json_reader import JsonNode, OutputError
from plimsoll.api.model import BlockSize, Integer, Rule
from plimsoll.api.names import LatencyKind, Layer, Operation
from plimsoll.api.quantity import format_quantity
from plimsoll.api.status import LiveRate
from plimsoll.measure.sample import Cells, LatencySample, Measurement, OperationSample
from plimsoll.tools import reading
from plimsoll.tools.base import Command, Depth, Output, StepContext, StepKind, Timing, Tool, ToolParameters
from plimsoll.tools.reading import COUNT, NUMBER, SECOND, Mark
from plimsoll.tools.target import PoolTarget, TargetKind


class RadosBenchParameters(ToolParameters):
    """rados bench of each client against its own objects in the pool, which are removed afterwards.

    It reports only the mean latency.
    """

    axes: ClassVar[frozenset[str]] = frozenset({"objectSize", "concurrency"})
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="!has(self.writeSeconds) || self.operation != 'write'",
            holds=lambda rados: rados.write_seconds is None or rados.operation != "write",
            message="does not apply to operation write; remove it, or use seq or rand",
            field_path=".writeSeconds",
        ),
    )
    depth_axis: ClassVar[str] = "concurrency"
    size_axis: ClassVar[str] = "objectSize"

    operation: Literal["write", "seq", "rand"] = "write"
    """write creates objects. seq and rand read objects that were written before the measurement, all once in the order
    in which they were written, or in random order."""
    object_size: Annotated[
        BlockSize,
        Field(
            ge=512,
            # An OSD refuses single writes beyond 90 MiB (`osd_max_write_size`).
            le=64 * 2**20,
            description="A number of bytes such as 4096, or a quantity such as 64Ki or 4Mi.",
        ),
    ] = 4 * 2**20
    """Axis: bytes of every object, from 512 to 64Mi; each is written and read in one operation."""
    concurrency: Depth = 16
    """Axis: operations that each client keeps in flight."""
    write_seconds: Annotated[Integer, Field(ge=1, le=86_400)] | None = None
    """How long objects are written before seq or rand reads them. If absent, the warm-up and the runtime for rand, and
    three times as long for seq, which ends when all objects were read. Raise it if reads are much faster than
    writes."""

    @property
    def reads_data(self) -> bool:
        return self.operation != "write"

    @property
    def at_random(self) -> bool:
        return self.operation == "rand"

    def writing_seconds(self, timing: Timing) -> int:
        return self.preparation_seconds(timing) if self.reads_data else super().writing_seconds(timing)

    def preparation_seconds(self, timing: Timing) -> int:
        times = 3 if self.operation == "seq" else 1
        return self.write_seconds or times * timing.total_seconds

    def label(self) -> str:
        return f"rados {self.operation} {format_quantity(self.object_size)} t{self.concurrency}"


_STAMP = r"(?P<stamp>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}[+-]\d{4})"
_ROW = re.compile(
    rf"{_STAMP}\s+(?P<second>{COUNT})\s+\d+\s+\d+\s+(?P<finished>{COUNT})\s+(?P<rate>{NUMBER})\s+\S+"
    rf"\s+\S+\s+(?P<mean>{NUMBER})",
    re.ASCII,
)
_TOTAL = re.compile(rf"(?:{_STAMP} )?(?P<name>[A-Z][A-Za-z ]+(?:\([A-Za-z/]+\))?):\s+(?P<value>\S+)", re.ASCII)
_OTHER = re.compile(
    rf"hints = \d|{_STAMP} (?:Maintaining \d+ concurrent writes of .*|Object prefix: \S+|\s*sec Cur ops .*"
    r"|min lat: \S+ max lat: \S+ avg lat: \S+)",
    re.ASCII,
)
_TIME, _LEAST, _MEAN, _GREATEST = "Total time run", "Min latency(s)", "Average Latency(s)", "Max latency(s)"
_BANDWIDTH = "Bandwidth (MB/sec)"
_MEBIBYTE = 2**20
# Maximum time from the last line to the end: a line is printed every second, however long the last operations take.
_LATE = 3 * SECOND // 2

TAIL_SECONDS = 1  # additional time, so that waiting for the last operations is not measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress(Mark):
    """The finished operations until a moment after the start, and their mean latency in nanoseconds."""

    mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Report:
    started_at: int  # Unix nanoseconds
    progress: tuple[Progress, ...]  # in chronological order; the last one is the end, when no operation was in flight
    min_nanoseconds: int
    max_nanoseconds: int
    warnings: list[str]


class RadosBench(Tool[RadosBenchParameters]):
    """One `rados bench` per client, in its own RADOS namespace."""

    key: ClassVar[str] = "radosBench"
    program: ClassVar[str] = "rados"
    parameters = RadosBenchParameters
    layer: ClassVar[Layer] = Layer.RADOS
    target: ClassVar[TargetKind] = TargetKind.POOL
    least_runtime_seconds: ClassVar[int] = 3

    def steps(self, parameters: RadosBenchParameters) -> Sequence[StepKind]:
        prepare = (StepKind.PREPARE,) if parameters.reads_data else ()
        return (*prepare, StepKind.MEASURE, StepKind.CLEAN_UP)

    def command(self, parameters: RadosBenchParameters, context: StepContext) -> Command:
        """Return the command of a step; the clean-up removes what `rados bench` wrote in the namespace."""
        target, timing = context.target_of(PoolTarget), context.timing
        place = (f"--id={target.user}", f"--pool={target.pool}", f"--namespace={target.namespace}")
        match context.step:
            case StepKind.PREPARE:
                # With less concurrency, writing objects is slower than reading them.
                concurrency = max(parameters.concurrency, 16)
                seconds = parameters.preparation_seconds(timing)
                step = [*_bench("write", seconds, parameters.object_size, concurrency)]
            case StepKind.MEASURE:
                seconds = timing.total_seconds + TAIL_SECONDS
                bench = _bench(parameters.operation, seconds, parameters.object_size, parameters.concurrency)
                # A time on every line; JSON output has no times and fewer digits.
                step = [*bench, "--show-time"]
            case _:
                step = ["cleanup"]
        return Command(argv=("rados", *place, *step, f"--run-name={target.namespace}"))

    def written_by_prepare(self, parameters: RadosBenchParameters, output: Output) -> int | None:
        written = re.search(rf"^Total writes made:\s+({COUNT})$", output.stdout, re.ASCII | re.MULTILINE)
        return int(written[1]) * parameters.object_size if written else None

    def live(self, parameters: RadosBenchParameters, printed: str) -> tuple[LiveRate, ...]:
        """Return the rate of the last two seconds, each with a line. An operation is a whole object."""
        *complete, _ = printed.split("\n")
        rows = [match for line in complete if (match := _ROW.fullmatch(line.rstrip()))][-3:]
        if not rows:
            return ()
        first, last = rows[0], rows[-1]
        seconds = (reading.nanoseconds_of(last["stamp"]) - reading.nanoseconds_of(first["stamp"])) / SECOND
        done = int(last["finished"]) - int(first["finished"])
        if seconds <= 0 or done < 0:
            return ()
        operation, iops = Operation.READ if parameters.reads_data else Operation.WRITE, done / seconds
        return (LiveRate(operation=operation, iops=iops, bytes_per_second=round(iops * parameters.object_size)),)

    def parse(self, parameters: RadosBenchParameters, context: StepContext, output: Output) -> Measurement:
        report, size = _read_report(output, parameters), parameters.object_size
        timing, last = context.timing, report.progress[-1]
        remedy = f": raise writeSeconds, so that there are more than {last.done} objects to read"
        reads = parameters.reads_data
        start = reading.closest(report.progress, timing.ramp_seconds * SECOND)
        end = reading.closest(report.progress, start.moment + timing.runtime_seconds * SECOND)
        runtime, ios = end.moment - start.moment, end.done - start.done
        if runtime <= 0:
            raise reading.ended_in_warm_up("rados bench", last.moment / SECOND, timing, remedy if reads else "")
        # `seq` reads every object once.
        ran_out = reads and runtime < timing.runtime_seconds * SECOND - SECOND // 2
        spent = max(0.0, end.done * end.mean - start.done * start.mean)
        sample = OperationSample(
            operation=Operation.READ if reads else Operation.WRITE,
            ios=ios,
            bytes=ios * size,
            latency=LatencySample(
                kind=LatencyKind.MEAN_ONLY,
                count=ios,
                mean_nanoseconds=spent / ios if ios else 0.0,
                min_nanoseconds=report.min_nanoseconds if ios else 0,
                max_nanoseconds=report.max_nanoseconds if ios else 0,
            ),
            cells=cells_between(report.progress, start, end, size=size),
        )
        messages = reading.excerpt(output.stderr)
        errors = [f"all {last.done} objects were read after {last.moment / SECOND:.1f} s{remedy}"] if ran_out else []
        return Measurement(
            started_at=report.started_at + start.moment,
            runtime=runtime,
            operations=(sample,),
            in_flight=parameters.concurrency,
            errors=reading.bounded([*(messages if output.exit_code else ()), *errors]),
            warnings=reading.bounded([*report.warnings, *(() if output.exit_code else messages)]),
        )


def _bench(operation: str, seconds: int, object_size: int, concurrency: int) -> Iterator[str]:
    yield from ("bench", str(seconds), operation)
    # Reads use the size of the objects, and refuse the option.
    if operation == "write":
        yield f"--block-size={object_size}"
    yield f"--concurrent-ios={concurrency}"
    if operation == "write":
        yield "--no-cleanup"


def _read_report(output: Output, parameters: RadosBenchParameters) -> _Report:
    (lines, _, fields), warnings = reading.sort_lines(output.stdout, _ROW, _OTHER, _TOTAL)
    names = [field["name"] for field in fields]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise OutputError(f"{repeated[0]} occurs twice")
    if _TIME not in names and output.exit_code:
        raise OutputError(f"rados bench failed with {reading.failure(output)}")
    if not lines:
        raise OutputError("the output has no line of a second")
    totals = JsonNode({field["name"]: field["value"] for field in fields})

    def number(name: str) -> float:
        return totals[name].unquoted().number()

    operation, size = "read" if parameters.reads_data else "write", parameters.object_size
    for name in ("Object size", f"{operation.capitalize()} size"):
        if (printed := totals[name].unquoted().count()) != size:
            raise OutputError(f"{name} is {printed} instead of {size}")
    end = Progress(
        moment=round(number(_TIME) * SECOND),
        done=totals[f"Total {operation}s made"].unquoted().count(),
        mean=number(_MEAN) * SECOND,
    )
    stamped = [(reading.nanoseconds_of(line["stamp"]), line) for line in lines]
    rows = [Progress(moment=at, done=int(row["finished"]), mean=float(row["mean"]) * SECOND) for at, row in stamped]
    _check_lines(rows, [int(line["second"]) for line in lines], end)
    moved = end.done * size / _MEBIBYTE
    # Six digits are printed.
    if abs(number(_BANDWIDTH) * end.moment / SECOND - moved) > 1e-4 * max(moved, 1):
        raise OutputError(f"{_BANDWIDTH} contradicts {_TIME} and the operations")
    # It may be some milliseconds after the line of second 0. The rate of a line is that since the start.
    started_at = rows[0].moment
    rated = ((row, rate) for row, line in zip(rows, lines, strict=True) if row.done and (rate := float(line["rate"])))
    if first := next(rated, None):
        row, rate = first
        started_at = row.moment - round(row.done * size / (rate * _MEBIBYTE) * SECOND)
        if abs(started_at - rows[0].moment) > SECOND:
            raise OutputError("the first rate contradicts the line of second 0: was the clock set?")
    progress = [replace(row, moment=row.moment - started_at) for row in rows]
    return _Report(
        started_at=started_at,
        progress=(Progress(moment=0, done=0, mean=0.0), *(row for row in progress if 0 < row.moment < end.moment), end),
        min_nanoseconds=round(number(_LEAST) * SECOND),
        max_nanoseconds=round(number(_GREATEST) * SECOND),
        warnings=warnings,
    )


def _check_lines(rows: Sequence[Progress], seconds: Sequence[int], end: Progress) -> None:
    if missing := [number for number, second in enumerate(seconds) if second != number]:
        raise OutputError(f"the line of second {missing[0]} is missing")
    for second, (before, after) in enumerate(pairwise(rows), start=1):
        if after.done < before.done or after.moment <= before.moment:
            raise OutputError(f"the line of second {second} goes back in time or operations")
    late, last = end.moment - (rows[-1].moment - rows[0].moment), seconds[-1]
    if late > _LATE:
        raise OutputError(f"the line of second {last + 1} is missing")
    if late < -_LATE:
        raise OutputError(f"the line of second {last} comes after the end: was the clock set?")
    if rows[-1].done > end.done:
        raise OutputError(f"the line of second {last} has more operations than the total")


def cells_between(progress: Sequence[Progress], start: Progress, end: Progress, *, size: int) -> Cells:
    """Return the series from one line to another, with `size` bytes per operation; its sum is exact."""
    done = [reading.done_until(progress, edge) for edge in (*range(start.moment, end.moment, SECOND), end.moment)]
    return reading.cells_of_operations((after - before for before, after in pairwise(done)), size)
