"""GNU dd on each client's volume: a sequential rate without latency, for comparison with published numbers."""

import re
import signal
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from plimsoll.api.json_reader import MAX_COUNT, OutputError, printable
from plimsoll.api.model import Flag, Integer, Rule
from plimsoll.api.names import Layer, Operation
from plimsoll.api.quantity import format_quantity
from plimsoll.measure.sample import Measurement, OperationSample
from plimsoll.tools.base import BlockBytes, Command, Output, StepContext, Timing, Tool, ToolParameters, ended_by_signal
from plimsoll.tools.reading import COUNT, NUMBER, SECOND, UNTIMED, bounded, failure, longest_gaps, whole_lines
from plimsoll.tools.target import TargetKind, VolumeTarget


class DdParameters(ToolParameters):
    """dd on each client's volume, once from its beginning, one block at a time.

    For a first impression, or for comparison with published numbers: it reports only a mean rate, so measure with fio.
    The measurement ends when the blocks are done. rampSeconds and runtimeSeconds together limit its time; with less
    than all blocks done, the result is Invalid. Not with access LibRBD.
    """

    axes: ClassVar[frozenset[str]] = frozenset({"operation", "blockSize"})
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="!self.fdatasync || !('Read' in self.operation)",
            holds=lambda dd: not dd.fdatasync or dd.operation != "Read",
            message="applies only to Write and Copy, because Read writes nothing; remove it, or Read from operation",
            field_path=".fdatasync",
        ),
    )
    reads_when: ClassVar[str] = "self.operation != ['Write']"
    size_axis: ClassVar[str] = "blockSize"

    operation: Annotated[Literal["Read", "Write", "Copy"], Field(description="Read, Write or Copy.")] = "Read"
    """Axis: Read; Write, which writes zeros; or Copy, which reads the first half of the data set and writes it to the
    second half. Storage that compresses or deduplicates hardly stores zeros; Copy writes what the prefill wrote, which
    does not compress, unless a Write came before it."""
    block_size: BlockBytes = 2**20
    """Axis: bytes of every read and write, from 512 to 64Mi, a multiple of 512."""
    count: Annotated[Integer, Field(ge=1, le=2**31 - 1)] | None = None
    """Number of blocks. If absent, all that fit into the data set, or for Copy into half of it."""
    direct: Flag = True
    """Bypass the page cache. false measures the client's memory as much as its storage."""
    fdatasync: Flag = False
    """Make the written data durable once at the end, as a part of the measured time. Refused for Read."""

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations in results."""
        return (Operation.READ, Operation.WRITE) if self.operation == "Copy" else (Operation(self.operation.lower()),)

    @property
    def reads_data(self) -> bool:
        return self.operation != "Write"

    def writing_seconds(self, timing: Timing) -> int:
        return 0 if self.operation == "Read" else timing.total_seconds

    def label(self) -> str:
        count = "" if self.count is None else f" x{self.count}"
        buffered = "" if self.direct else " buffered"
        synced = " fdatasync" if self.fdatasync else ""
        return f"dd {self.operation.lower()} {format_quantity(self.block_size)}{count}{buffered}{synced}"


_LINE = re.compile(
    rf"(?P<whole>{COUNT})\+(?P<partial>{COUNT}) records (?P<end>in|out)"
    rf"|(?P<bytes>{COUNT}) bytes?(?: \([^()]{{1,80}}\))? copied, (?P<seconds>{NUMBER}) s, "
    rf"(?P<rate>{NUMBER}) (?P<prefix>[kMGTPE]?)B/s",
    re.ASCII,
)
# Of records in and out, and bytes copied: a summary, perhaps after lines of progress; several if SIGUSR1 came.
_ORDER = re.compile(r"(?:c*ioc)+")
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Report:
    records: int  # whole and partial ones that were written
    partial: int
    bytes: int
    seconds: float
    progress: list[float]  # the seconds in the lines of progress; line k was due after k seconds
    remarks: list[str]  # all other lines


class Dd(Tool[DdParameters]):
    """One dd per client, on its own data set. The prefill writes the data for reads."""

    key: ClassVar[str] = "dd"
    program: ClassVar[str] = "dd"
    parameters = DdParameters
    layer: ClassVar[Layer] = Layer.RBD
    target: ClassVar[TargetKind] = TargetKind.VOLUME
    windowed: ClassVar[bool] = False
    least_runtime_seconds: ClassVar[int] = 1

    def command(self, parameters: DdParameters, context: StepContext) -> Command:
        """Return the command, which a signal ends after ramp and runtime; ValueError if the data set is too small."""
        volume, timing = context.target_of(VolumeTarget), context.timing
        direct, synced = (",direct" if parameters.direct else ""), (",fdatasync" if parameters.fdatasync else "")
        source, sink = ["if=/dev/zero"], ["of=/dev/null"]
        if parameters.reads_data:
            source = [f"if={volume.path}", f"skip={volume.offset}", f"iflag=skip_bytes{direct}"]
        if parameters.operation != "Read":
            # A copy writes the second half of the data set.
            offset = volume.offset + (volume.size // 2 if parameters.operation == "Copy" else 0)
            sink = [f"of={volume.path}", f"seek={offset}", f"oflag=seek_bytes{direct}", f"conv=notrunc,nocreat{synced}"]
        dd = ("dd", f"bs={parameters.block_size}", f"count={_blocks(parameters, volume)}", *source, *sink)
        return Command(
            # SIGINT makes dd print its summary.
            argv=ended_by_signal(timing.total_seconds, "INT", *dd, "status=progress"),
            environment={"LC_ALL": "C"},
        )

    def ends_when_done(self, parameters: DdParameters) -> bool:
        return True

    def parse(self, parameters: DdParameters, context: StepContext, output: Output) -> Measurement:
        """Read the summary. Its time ends with dd; the start is not exact, but its clients share no window."""
        volume, timing = context.target_of(VolumeTarget), context.timing
        report = _read_report(parameters.block_size, output)
        work = len(parameters.operations) * _blocks(parameters, volume) * parameters.block_size
        runtime = round(report.seconds * SECOND)
        ios, done, short = report.records, report.bytes, report.partial
        samples = [
            OperationSample(operation=operation, ios=ios, bytes=done, short_ios=short, latency=UNTIMED)
            for operation in parameters.operations
        ]
        if parameters.fdatasync:
            # One at the end, which dd waits for within its time.
            samples.append(OperationSample(operation=Operation.SYNC, ios=1, bytes=0, latency=UNTIMED))
        ending = f"dd ended with exit code {output.exit_code}"
        if output.exit_code == 128 + signal.SIGINT:
            ending = f"dd was not done after rampSeconds and runtimeSeconds, {timing.total_seconds} s; raise them"
        return Measurement(
            started_at=max(output.launched_at, output.finished_at - runtime),
            runtime=runtime,
            operations=tuple(samples),
            in_flight=1 if parameters.direct else None,
            work_bytes=work,  # read and written
            data_bytes=work,  # less than the data set with a count, which fits into less memory
            bypasses_cache=parameters.direct,
            gaps=longest_gaps(_gaps(parameters, report), SECOND),
            errors=bounded([*report.remarks, ending] if output.exit_code else ()),
            warnings=bounded(() if output.exit_code else report.remarks),
        )


def _blocks(parameters: DdParameters, volume: VolumeTarget) -> int:
    usable = volume.size // 2 if parameters.operation == "Copy" else volume.size
    fitting = usable // parameters.block_size
    count = fitting if parameters.count is None else parameters.count
    if not count or count > fitting:
        raise ValueError(
            f"{fitting} blocks of {format_quantity(parameters.block_size)} fit into the {format_quantity(usable)} of "
            "the data set that can be used: use a larger volume, smaller blocks, or a smaller count"
        )
    return count


def _read_report(block_size: int, output: Output) -> _Report:
    lines = whole_lines(output.stderr)
    matches = [match for line in lines if (match := _LINE.fullmatch(line))]
    remarks = [printable(line) for line in lines if not _LINE.fullmatch(line)]
    problem = failure(replace(output, stderr="\n".join(remarks)))
    kinds = "".join((match["end"] or "copied")[0] for match in matches)
    if not lines and output.exit_code > 128:  # noqa: PLR2004 - a signal's
        raise OutputError(
            f"a signal ended dd before it printed a summary (exit code {output.exit_code}): if its time was over, one "
            "block took too long; raise runtimeSeconds, use smaller blocks, or check the storage"
        )
    if not _ORDER.fullmatch(kinds):
        raise OutputError(f"dd printed no complete summary, {problem}")
    written, copied = matches[-2:]
    whole, partial, size = int(written["whole"]), int(written["partial"]), int(copied["bytes"])
    if not size:
        raise OutputError(f"dd copied nothing, {problem}")
    if not whole * block_size + partial <= size <= whole * block_size + partial * (block_size - 1):
        raise OutputError(f"{size} bytes are not {whole} blocks of {block_size} bytes and {partial} smaller ones")
    seconds = float(copied["seconds"])
    rate = float(copied["rate"]) * 1000.0 ** _PREFIXES.index(copied["prefix"])
    # dd prints rates below 10 with two digits, in kB/s or larger units.
    if not 0 < seconds < MAX_COUNT / SECOND or abs(rate - size / seconds) > max(100, 0.1 * size / seconds):
        raise OutputError(f"the rate contradicts bytes and seconds: {printable(copied[0])}")
    return _Report(
        records=whole + partial,
        partial=partial,
        bytes=size,
        seconds=seconds,
        # Lines of progress follow no numbers of records.
        progress=[
            float(match["seconds"])
            for before, match in zip(f" {kinds}", matches, strict=False)
            if match["seconds"] and before != "o"
        ],
        remarks=remarks,
    )


def _gaps(parameters: DdParameters, report: _Report) -> list[tuple[int, int]]:
    """Return start and length, in milliseconds, of times of a second and more in which no block ended."""
    # The seconds in a line of progress are rounded. After its last block, dd may wait for data to become durable.
    late = list(enumerate((seconds - 0.5 for seconds in report.progress), start=1))
    if parameters.direct and not parameters.fdatasync:
        late.append((len(late) + 1, report.seconds))
    gaps: list[tuple[int, int]] = []
    for due, printed in late:
        start = max(due * 1000, sum(gaps[-1]) if gaps else 0)
        if (length := int(printed * 1000) - start) >= 1000:  # noqa: PLR2004 - a second
            gaps.append((start, length))
    return gaps
