"""The output of bonnie++ -> a measurement.

bonnie++ prints the rate of each phase, but neither its amount nor its time. The amount was requested; the time follows
from both. It prints no start of a phase either.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from plimsoll.api.names import LatencyKind, Operation
from plimsoll.measure.sample import LatencySample, Measurement, OperationSample
from plimsoll.tools.base import StepContext
from plimsoll.tools.bonnie.parameters import MEBIBYTE, BonnieParameters
from plimsoll.tools.bonnie.text import PHASES, BonnieReport, Phase, read_report
from plimsoll.tools.command import Output, OutputError
from plimsoll.tools.reading import bounded, excerpt, printable
from plimsoll.tools.target import VolumeTarget

MAX_SEED = 2**31
_SECOND = 10**9
_KIBIBYTE = 1024
_SLACK = 1.02
_SLACK_SECONDS = 1.0
_PHASES_OF_FILES = tuple(PHASES)[6:]
# The program's tables on standard error; the name in front of a row is cut where the numbers need its place.
_TABLE = re.compile(
    r"Version .*|Latency .*|.*/sec %CP.*|.*-Per Chr-.*|.*-Create--.*|[client-]{0,7}[-0-9:/+kmgMG. ]*", re.ASCII
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a phase does.

    Attributes:
        units: what its rate counts: KiB, seeks or files.
        ios: operations.
        bytes: 0 for files, which have random sizes.

    """

    units: float
    ios: int
    bytes: int


def planned_work(parameters: BonnieParameters, size: int) -> dict[Operation, Work]:
    """Return the phases of a run with a large file of that size."""
    chunk = parameters.chunk_size.bytes
    large = Work(units=size / _KIBIBYTE, ios=size // chunk, bytes=size)
    characters = parameters.character_bytes(size)
    single = Work(units=characters / _KIBIBYTE, ios=characters, bytes=characters)
    files = Work(units=parameters.file_count, ios=parameters.file_count, bytes=0)
    return {
        **(dict.fromkeys((Operation.WRITE_CHARACTERS, Operation.READ_CHARACTERS), single) if characters else {}),
        **dict.fromkeys((Operation.WRITE, Operation.REWRITE, Operation.READ), large),
        Operation.SEEK: Work(units=parameters.seeks, ios=parameters.seeks, bytes=parameters.seeks * chunk),
        **(dict.fromkeys(_PHASES_OF_FILES, files) if parameters.files else {}),
    }


def large_file_bytes(parameters: BonnieParameters, target: VolumeTarget) -> int:
    """Return the size of the large file: by default that of the data set, in whose space it is."""
    return target.size if parameters.size is None else parameters.size


def seed_of(context: StepContext) -> int:
    """Return a seed that bonnie++ accepts; it reads a larger one as another."""
    return context.seed % MAX_SEED


def machine_name(context: StepContext) -> str:
    """Return the name that bonnie++ repeats in its output."""
    return f"client-{context.client}"


def parse_measurement(parameters: BonnieParameters, context: StepContext, output: Output) -> Measurement:
    """Read the output of a measurement.

    Raises:
        OutputError: it failed, a column is missing or malformed, or it contradicts what was requested.

    """
    report = read_report(output)
    size = large_file_bytes(parameters, context.target_of(VolumeTarget))
    work = planned_work(parameters, size)
    _check_settings(report, _requested(parameters, context), size)
    _check_phases(report.phases, work)
    _check_time(report.phases, work, output)
    timed = {operation: phase for operation, phase in report.phases.items() if phase.rate}
    untimed = {operation: phase for operation, phase in report.phases.items() if phase.rate is None}
    return Measurement(
        tool="bonnie",
        tool_version=report.version,
        started_at=output.launched_at,
        runtime=output.finished_at - output.launched_at,
        operations=tuple(_sample(operation, phase, work[operation]) for operation, phase in timed.items()),
        data_bytes=size,
        # With -D, only the first writing of the file is direct.
        bypasses_cache=False,
        flushes=True,
        untimed=tuple(untimed),
        warnings=bounded([*report.warnings, *_untimed(untimed), *_remarks(output)]),
    )


def _requested(parameters: BonnieParameters, context: StepContext) -> dict[str, str]:
    """Return the columns that repeat what was requested."""
    has_files = bool(parameters.files)
    return {
        "name": machine_name(context),
        "concurrency": "1",
        "seed": str(seed_of(context)),
        "chunk_size": "",
        "seeks": str(parameters.seeks),
        "seek_processes": str(parameters.seek_processes),
        "num_files": str(parameters.files) if has_files else "",
        "max_size": str(parameters.max_file_size or ""),
        "min_size": str(parameters.min_file_size or ""),
        "file_chunk_size": "",
        "num_dirs": str(parameters.directories) if has_files and parameters.directories > 1 else "",
    }


def _check_settings(report: BonnieReport, requested: Mapping[str, str], size: int) -> None:
    if report.mebibytes * MEBIBYTE != size:
        raise OutputError(f"file_size is {report.mebibytes} MiB instead of {size // MEBIBYTE}")
    for name, expected in requested.items():
        if report.settings[name] != expected:
            found = printable(report.settings[name]) or "empty"
            raise OutputError(f"{name} is {found} instead of {expected or 'empty'}")


def _check_phases(phases: Mapping[Operation, Phase], work: Mapping[Operation, Work]) -> None:
    for operation, (name, _, _) in PHASES.items():
        if operation in work and operation not in phases:
            raise OutputError(f"{name} is missing")
        if operation in phases and operation not in work:
            raise OutputError(f"{name} was not requested")


def _check_time(phases: Mapping[Operation, Phase], work: Mapping[Operation, Work], output: Output) -> None:
    """Refuse phases that took longer than the whole run; rates are rounded down to a whole number."""
    known = [(work[operation].units, phase.rate) for operation, phase in phases.items() if phase.rate]
    seconds = sum(units / (rate + 1) for units, rate in known)
    ran = (output.finished_at - output.launched_at) / _SECOND
    if seconds > _SLACK * ran + _SLACK_SECONDS:
        raise OutputError(f"by their rates, the phases took {seconds:.1f} s, but bonnie++ ran for {ran:.1f} s")


def _sample(operation: Operation, phase: Phase, work: Work) -> OperationSample:
    return OperationSample(
        operation=operation,
        ios=work.ios,
        bytes=work.bytes,
        runtime=max(1, round(work.units / (phase.rate or 1) * _SECOND)),
        processor_percent=phase.percent,
        latency=LatencySample(kind=LatencyKind.MAX_ONLY, count=work.ios, max_nanoseconds=phase.longest),
    )


def _untimed(phases: Mapping[Operation, Phase]) -> Iterator[str]:
    for operation, phase in phases.items():
        yield f"{operation} was too fast to be timed; its longest operation took {phase.longest // 1000} us"


def _remarks(output: Output) -> Iterator[str]:
    """Yield what bonnie++ printed besides its tables, such as blocks that it could not read."""
    return (line for line in excerpt(output.stderr) if not _TABLE.fullmatch(line))
