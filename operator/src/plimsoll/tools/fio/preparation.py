"""Changing a whole data set while nothing is measured: prefill, random overwrite (precondition), discard."""

from plimsoll.api.json_reader import OutputError
from plimsoll.api.names import Operation
from plimsoll.api.quantity import format_quantity
from plimsoll.api.storage import RANDOM_DATA, DataContent, Precondition
from plimsoll.tools.base import Command, Output
from plimsoll.tools.fio import command
from plimsoll.tools.fio.document import complaints, jobs_named, read_output
from plimsoll.tools.reading import failure
from plimsoll.tools.target import DataSet, ImageTarget, VolumeKind, VolumeTarget

_BLOCK_BYTES = 2**20  # data sets are a whole number of these; fio would skip the rest
_OBJECT_BYTES = 4 * 2**20  # default object size of an image: a discard removes whole objects


def prefill_command(target: DataSet, seed: int, work_directory: str, content: DataContent = RANDOM_DATA) -> Command:
    """Return the command that writes the whole target once, in order; it creates a missing file."""
    is_file = isinstance(target, VolumeTarget) and target.kind is VolumeKind.FILE
    return _command(
        "prefill",
        target,
        work_directory,
        *_writing(seed, content),
        *("--rw=write", f"--size={target.size}", f"--bs={_BLOCK_BYTES}", "--iodepth=8", "--fallocate=none"),
        f"--allow_file_create={int(is_file)}",
    )


def precondition_command(
    target: DataSet, precondition: Precondition, seed: int, work_directory: str, content: DataContent = RANDOM_DATA
) -> Command:
    """Return the command that overwrites random blocks for a time; ValueError if the target is less than one block."""
    size = target.size // precondition.block_size * precondition.block_size
    if not size:
        raise ValueError(
            f"the target has {format_quantity(target.size)}, less than the {format_quantity(precondition.block_size)} "
            "of precondition.blockSize: use a larger volume or smaller blocks"
        )
    return _command(
        "precondition",
        target,
        work_directory,
        *_writing(seed, content),
        # A depth that keeps the devices busy, but with which the last operations end soon after the time.
        *("--rw=randwrite", f"--size={size}", f"--bs={precondition.block_size}", "--iodepth=16", "--norandommap=1"),
        *("--time_based=1", f"--runtime={precondition.seconds}s", "--allow_file_create=0"),
    )


def discard_command(target: ImageTarget, work_directory: str) -> Command:
    """Return the command that trims the whole image once."""
    size = _BLOCK_BYTES if target.size % _OBJECT_BYTES else _OBJECT_BYTES
    options = ("--rw=trim", f"--size={target.size}", f"--bs={size}", "--iodepth=8", "--allow_file_create=0")
    return _command("discard", target, work_directory, *options)


def _command(job: str, target: DataSet, work_directory: str, *arguments: str) -> Command:
    """Return the command of one job that bypasses the page cache and ends at the first error."""
    return Command(
        argv=(
            *("fio", *command.output_arguments(work_directory), "--eta=never", f"--name={job}"),
            *command.target_arguments(target),
            *(f"--offset={command.offset_of(target)}", "--thread=1", "--continue_on_error=none"),
            # As when measuring: without it, fio calibrates the processor's clock first.
            "--clocksource=clock_gettime",
            *arguments,
        ),
        environment=command.cache_environment(target),
    )


def _writing(seed: int, content: DataContent) -> tuple[str, ...]:
    return ("--refill_buffers=1", *command.content_arguments(content), "--end_fsync=1", *command.seed_arguments(seed))


def changed_bytes(step: str, output: Output, target: DataSet) -> int:
    """Return the bytes that a step wrote or trimmed; OutputError if it failed, or changed less than it has to."""
    root, noise = read_output(output)
    (result,) = jobs_named(root, step, count=1)
    problems = complaints([result], output, noise)
    if problems or output.exit_code:
        raise OutputError(f"{step} failed with {failure(output, *problems)}")
    direction, did = (result[Operation.TRIM], "trimmed") if step == "discard" else (result[Operation.WRITE], "wrote")
    changed = direction["io_bytes"].count()
    if incomplete := direction["short_ios"].count() + direction["drop_ios"].count():
        raise OutputError(f"{step} {did} {changed} bytes with {incomplete} operations that were short or dropped")
    if step == "precondition" and not changed:
        raise OutputError(f"precondition wrote nothing to {target.name}: use more seconds, or check the volume")
    if step != "precondition" and changed != target.size:
        raise OutputError(f"{step} {did} {changed} of {target.size} bytes")
    return changed
