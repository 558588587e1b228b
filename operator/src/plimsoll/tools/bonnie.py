"""bonnie++: the phases of a file system's work, one after the other, and the rate of each."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field, ValidationInfo, field_validator

from plimsoll.api.json_reader import OutputError, printable
from plimsoll.api.model import BlockSize, Flag, Integer, Rule
from plimsoll.api.names import LatencyKind, Layer, Operation
from plimsoll.api.quantity import format_quantity, parse_quantity
from plimsoll.measure.sample import LatencySample, Measurement, OperationSample
from plimsoll.tools.base import Command, MebiBytes, Output, StepContext, StepKind, Tool, ToolParameters
from plimsoll.tools.reading import SECOND, bounded, excerpt, failure, sort_lines
from plimsoll.tools.target import TargetKind, VolumeTarget

MEBIBYTE = 2**20

ChunkSize = Literal["1Ki", "2Ki", "4Ki", "8Ki", "16Ki", "32Ki", "64Ki", "128Ki", "256Ki", "512Ki", "1Mi"]
FileSize = Annotated[BlockSize, Field(ge=1, le=64 * MEBIBYTE)]


class BonnieParameters(ToolParameters):
    """bonnie++ in a directory of each client's file system: one phase after the other.

    They are writing, rewriting and reading a large file, random seeks in it, and creating, reading and deleting many
    small files. runtimeSeconds is how long you expect all of that to take; a trial that takes far longer is ended.
    Needs a volume of mode Filesystem. The clients begin at the same time, but not each phase.
    """

    axes: ClassVar[frozenset[str]] = frozenset({"chunkSize"})
    size_axis: ClassVar[str] = "chunkSize"
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="!self.directIo || !self.characters",
            holds=lambda bonnie: not bonnie.direct_io or not bonnie.characters,
            message="must be false with directIo, because direct I/O cannot transfer single bytes; set characters to "
            "false",
            field_path=".characters",
        ),
        Rule(
            rule="self.files > 0 || !has(self.maxFileSize)",
            holds=lambda bonnie: bonnie.files or bonnie.max_file_size is None,
            message="has no effect with files 0; remove it, or raise files",
            field_path=".maxFileSize",
        ),
        Rule(
            rule="has(self.maxFileSize) || !has(self.minFileSize)",
            holds=lambda bonnie: bonnie.max_file_size is not None or bonnie.min_file_size is None,
            message="must be absent without maxFileSize; remove it, or set maxFileSize too",
            field_path=".minFileSize",
        ),
    )

    size: MebiBytes | None = None
    """Bytes of the large file, whole Mi, from 1Mi to 16Ti, not more than the data set. If absent, the whole data set.
    With less than twice the memory that may hold it, the result is Suspect."""
    chunk_size: Annotated[ChunkSize, Field(description="A power of two.")] = "8Ki"
    """Axis: bytes of every operation on the large file."""
    seeks: Annotated[Integer, Field(ge=1, le=10_000_000)] = 8192
    """Number of random seeks; each reads one chunk, and every tenth also writes it."""
    seek_processes: Annotated[Integer, Field(ge=1, le=64)] = 5
    """Processes that seek at the same time."""
    characters: Flag = True
    """Whether to write and read the first 3Mi also one byte at a time, which measures the client's CPU."""
    direct_io: Flag = False
    """Whether to write the large file with direct I/O; bonnie++ rewrites and reads it through the page cache all the
    same. Requires characters false."""
    sync: Flag = False
    """Whether to call fsync after every created file, and after every write of the seeks."""
    files: Annotated[Integer, Field(ge=0, le=1024)] = 16
    """Number of small files, in multiples of 1024; 0 leaves out all their phases."""
    max_file_size: FileSize | None = None
    """Maximum size of a small file, up to 64Mi. If absent, they are empty."""
    min_file_size: FileSize | None = None
    """Minimum size of a small file. If absent, 0."""
    directories: Annotated[Integer, Field(ge=1, le=1024)] = 1
    """Number of directories that contain the small files."""

    @field_validator("min_file_size")
    @classmethod
    def _check_is_least(cls, value: int | None, info: ValidationInfo) -> int | None:
        most = info.data.get("max_file_size")
        if value is not None and most is not None and value > most:
            raise ValueError(f"exceeds maxFileSize {format_quantity(most)}; lower it")
        return value

    def character_bytes(self, size: int) -> int:
        """Return how many bytes of a large file are also transferred one at a time, by default of bonnie++ 2.00a."""
        return min(size, 3 * MEBIBYTE) if self.characters else 0

    @property
    def file_count(self) -> int:
        """The number of small files, which bonnie++ counts in multiples of 1024."""
        return self.files * 1024

    def label(self) -> str:
        size = f" {format_quantity(self.size)}" if self.size else ""
        files = f"{self.file_count} files" if self.files else "no files"
        return f"bonnie++{size} by {self.chunk_size}, {files}"


FORMAT = "1.98"

# bonnie++'s name of the phase, and the columns of its rate, which its CPU time follows, and of its longest operation,
# counted from 1.
PHASES: dict[Operation, tuple[str, int, int]] = {
    Operation.WRITE_CHARACTERS: ("putc", 10, 39),
    Operation.WRITE: ("put_block", 12, 40),
    Operation.REWRITE: ("rewrite", 14, 41),
    Operation.READ_CHARACTERS: ("getc", 16, 42),
    Operation.READ: ("get_block", 18, 43),
    Operation.SEEK: ("seeks", 20, 44),
    Operation.CREATE_SEQUENTIAL: ("seq_create", 27, 45),
    Operation.STAT_SEQUENTIAL: ("seq_stat", 29, 46),
    Operation.DELETE_SEQUENTIAL: ("seq_del", 31, 47),
    Operation.CREATE_RANDOM: ("ran_create", 33, 48),
    Operation.STAT_RANDOM: ("ran_stat", 35, 49),
    Operation.DELETE_RANDOM: ("ran_del", 37, 50),
}
_COLUMNS = 50
_TOO_FAST, _TOO_FAST_CPU = "+++++", "+++"
_LINE = re.compile(r"\d+\.\d+,.*", re.ASCII)
_VERSION = re.compile(r"[0-9][0-9A-Za-z.]{0,15}", re.ASCII)
_RATE = re.compile(r"\d{1,15}(?:\.\d)?", re.ASCII)
_PERCENT = re.compile(r"\d{1,6}", re.ASCII)
_LATENCY = re.compile(r"(?P<number>\d{1,9})(?P<unit>us|ms|s)", re.ASCII)
_NANOSECONDS = {"us": 10**3, "ms": 10**6, "s": 10**9}
_SIZE = re.compile(r"(?P<number>\d{1,9})(?P<unit>[MG])", re.ASCII)
_MEBIBYTES = {"M": 1, "G": 1024}
# The program's tables on standard error; the name in front of a row is cut where the numbers need its place.
_TABLE = re.compile(
    r"Version .*|Latency .*|.*/sec %CP.*|.*-Per Chr-.*|.*-Create--.*|[client-]{0,7}[-0-9:/+kmgMG. ]*", re.ASCII
)
_MAX_CHUNKS = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """The result of one phase."""

    rate: float | None  # per second, in KiB, seeks or files; None if the phase was too fast to be timed
    percent: int | None  # CPU time in percent of one CPU; None without a rate
    longest: int  # nanoseconds of the longest operation


@dataclass(frozen=True, slots=True, kw_only=True)
class BonnieReport:
    """The result of a run."""

    columns: Sequence[str]
    mebibytes: int  # size of the large file; 0 without one
    phases: dict[Operation, Phase]  # only those that were done
    warnings: Sequence[str]  # lines that are not the result


class _Work(NamedTuple):
    units: float  # KiB, seeks or files, which its rate counts
    ios: int  # operations
    bytes: int  # 0 for files, which have random sizes


class Bonnie(Tool[BonnieParameters]):
    """One bonnie++ per client, in a directory of its own. It prints nothing before its end."""

    key: ClassVar[str] = "bonnie"
    program: ClassVar[str] = "bonnie++"
    parameters = BonnieParameters
    layer: ClassVar[Layer] = Layer.FILE_SYSTEM
    target: ClassVar[TargetKind] = TargetKind.VOLUME
    own_files: ClassVar[bool] = True
    windowed: ClassVar[bool] = False

    def version(self, output: Output) -> str | None:
        """Return the version from the usage that bonnie++ prints instead of a version."""
        match = re.search(r"^Version: (\S+)$", output.stderr, re.MULTILINE)
        return f"bonnie++ {match[1]}" if match else None

    def command(self, parameters: BonnieParameters, context: StepContext) -> Command:
        size = parameters.size or context.target_of(VolumeTarget).size
        if size // parse_quantity(parameters.chunk_size) > _MAX_CHUNKS:
            raise ValueError(
                f"a file of {format_quantity(size)} has more than {_MAX_CHUNKS} chunks of {parameters.chunk_size}, "
                "which bonnie++ cannot count; raise chunkSize, or lower size"
            )
        directory, available = context.own_directory, context.target_of(VolumeTarget).size
        if size > available:
            raise ValueError(
                f"size {format_quantity(size)} exceeds the data set of {format_quantity(available)}; lower size, or "
                "raise spec.storage.volume.size"
            )
        match context.step:
            case StepKind.PREPARE:
                return Command(argv=("sh", "-c", 'rm -rf -- "$1" && mkdir -- "$1"', "sh", directory))
            case StepKind.CLEAN_UP:
                return Command(argv=("rm", "-rf", "--", directory))
            case _:
                return Command(argv=("bonnie++", *_options(parameters, context, size)))

    def parse(self, parameters: BonnieParameters, context: StepContext, output: Output) -> Measurement:
        """Read the output of the measuring step, and refuse one that contradicts what was requested."""
        report = read_report(output)
        size = parameters.size or context.target_of(VolumeTarget).size
        work = _planned_work(parameters, size)
        _check_settings(report, parameters, context, size)
        if different := [operation for operation in PHASES if (operation in work) != (operation in report.phases)]:
            problem = "is missing" if different[0] in work else "was not requested"
            raise OutputError(f"{PHASES[different[0]][0]} {problem}")
        rates = {operation: phase.rate for operation, phase in report.phases.items() if phase.rate}
        untimed = {operation: phase for operation, phase in report.phases.items() if phase.rate is None}
        # Rates are rounded down to a whole number, so the phases seem to take a little longer than the whole run.
        seconds = sum(work[operation].units / (rate + 1) for operation, rate in rates.items())
        ran = (output.finished_at - output.launched_at) / SECOND
        if seconds > 1.02 * ran + 1:
            raise OutputError(f"by their rates, the phases took {seconds:.1f} s, but bonnie++ ran for {ran:.1f} s")
        too_fast = (
            f"{operation} was too fast to be timed; its longest operation took {phase.longest // 1000} us"
            for operation, phase in untimed.items()
        )
        return Measurement(
            tool_version=report.columns[1],
            started_at=output.launched_at,
            runtime=output.finished_at - output.launched_at,
            operations=tuple(
                OperationSample(
                    operation=operation,
                    ios=work[operation].ios,
                    bytes=work[operation].bytes,
                    runtime=max(1, round(work[operation].units / rate * SECOND)),
                    processor_percent=report.phases[operation].percent,
                    latency=LatencySample(
                        kind=LatencyKind.MAX_ONLY,
                        count=work[operation].ios,
                        max_nanoseconds=report.phases[operation].longest,
                    ),
                )
                for operation, rate in rates.items()
            ),
            data_bytes=size,
            bypasses_cache=False,  # with -D, only the first writing of the file is direct
            flushes=True,
            untimed=tuple(untimed),
            warnings=bounded([*report.warnings, *too_fast, *excerpt(output.stderr, without=_TABLE)]),
        )


def read_report(output: Output) -> BonnieReport:
    """Read the output of a run; OutputError if it failed, or a column is missing or malformed."""
    if output.exit_code:
        raise OutputError(f"bonnie++ failed with {failure(output)}")
    (results,), unknown = sort_lines(output.stdout, _LINE)
    if len(results) != 1:
        raise OutputError(f"the output has {len(results)} lines of results instead of one")
    columns = results[0][0].split(",")
    if columns[0] != FORMAT:
        raise OutputError(f"the format is {printable(columns[0])}, but only {FORMAT} of bonnie++ 2.00 is supported")
    if len(columns) != _COLUMNS:
        raise OutputError(f"the line has {len(columns)} columns instead of {_COLUMNS}")
    if not _VERSION.fullmatch(columns[1]):
        raise OutputError(f"bonnie_version is not a version: {printable(columns[1])}")
    size = _SIZE.fullmatch(columns[5])
    if columns[5] and size is None:
        raise OutputError(f"file_size is not a size in M or G: {printable(columns[5])}")
    return BonnieReport(
        columns=columns,
        mebibytes=int(size["number"]) * _MEBIBYTES[size["unit"]] if size else 0,
        phases={
            operation: _phase(name, rate, percent=columns[column], longest=columns[latency - 1])
            for operation, (name, column, latency) in PHASES.items()
            if (rate := columns[column - 1])
        },
        warnings=unknown,
    )


def _phase(name: str, rate: str, *, percent: str, longest: str) -> Phase:
    latency = _LATENCY.fullmatch(longest)
    if latency is None:
        raise OutputError(f"{name}_latency is not a time in us, ms or s: {printable(longest)}")
    nanoseconds = int(latency["number"]) * _NANOSECONDS[latency["unit"]]
    if rate == _TOO_FAST:
        if percent != _TOO_FAST_CPU:
            raise OutputError(f"{name} was too fast to be timed, but not its CPU time: {printable(percent)}")
        return Phase(rate=None, percent=None, longest=nanoseconds)
    if not _RATE.fullmatch(rate):
        raise OutputError(f"{name} is not a rate: {printable(rate)}")
    if not float(rate):
        raise OutputError(f"{name} is 0: bonnie++ rounds rates below 1 per second down")
    if not _PERCENT.fullmatch(percent):
        raise OutputError(f"{name}_cpu is not a whole number: {printable(percent)}")
    return Phase(rate=float(rate), percent=int(percent), longest=nanoseconds)


def _planned_work(parameters: BonnieParameters, size: int) -> dict[Operation, _Work]:
    chunk, characters, seeks = parse_quantity(parameters.chunk_size), parameters.character_bytes(size), parameters.seeks
    single = _Work(characters / 1024, characters, characters)
    return {
        **(dict.fromkeys((Operation.WRITE_CHARACTERS, Operation.READ_CHARACTERS), single) if characters else {}),
        **dict.fromkeys((Operation.WRITE, Operation.REWRITE, Operation.READ), _Work(size / 1024, size // chunk, size)),
        Operation.SEEK: _Work(seeks, seeks, seeks * chunk),
        **dict.fromkeys(
            tuple(PHASES)[6:] if parameters.files else (), _Work(parameters.file_count, parameters.file_count, 0)
        ),
    }


def _check_settings(report: BonnieReport, parameters: BonnieParameters, context: StepContext, size: int) -> None:
    """Refuse a result whose columns do not repeat what was requested; those of defaults are empty."""
    if report.mebibytes * MEBIBYTE != size:
        raise OutputError(f"file_size is {report.mebibytes} MiB instead of {size // MEBIBYTE}")
    requested = {
        (3, "name"): f"client-{context.client}",
        (4, "concurrency"): 1,
        (5, "seed"): str(context.seed % 2**31),
        (8, "seeks"): parameters.seeks,
        (9, "seek_processes"): parameters.seek_processes,
        (22, "num_files"): parameters.files,
        (23, "max_size"): parameters.max_file_size,
        (24, "min_size"): parameters.min_file_size,
        (26, "num_dirs"): parameters.directories if parameters.files and parameters.directories > 1 else None,
    }
    for (number, name), value in requested.items():
        actual, expected = report.columns[number - 1], str(value or "")
        if actual != expected:
            raise OutputError(f"{name} is {printable(actual) or 'empty'} instead of {expected or 'empty'}")


def _options(parameters: BonnieParameters, context: StepContext, size: int) -> Iterator[str]:
    chunk = parse_quantity(parameters.chunk_size)
    # bonnie++ reads a larger seed as another.
    yield from ("-q", "-d", context.own_directory, "-m", f"client-{context.client}", "-z", str(context.seed % 2**31))
    # Without a memory size of 0, bonnie++ compares with the node's memory; Plimsoll knows the client's.
    yield from ("-r", "0", "-s", f"{size // MEBIBYTE}:{chunk}:{parameters.seeks}:{parameters.seek_processes}")
    least, most = parameters.min_file_size or 0, parameters.max_file_size or 0
    yield from ("-n", f"{parameters.files}:{most}:{least}:{parameters.directories}" if parameters.files else "0")
    # Without a number, -f leaves out the phases of single bytes.
    characters = parameters.character_bytes(size) // MEBIBYTE
    yield f"-f{characters}" if characters else "-f"
    if parameters.sync:
        yield "-b"
    if parameters.direct_io:
        yield "-D"
    if context.as_root:
        yield from ("-u", "0:0")
