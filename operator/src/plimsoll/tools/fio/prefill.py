"""Writing every byte of a target once, so that no read meets an extent that was never written."""

from plimsoll.tools.base import Command, Output, OutputError, VolumeKind, VolumeTarget
from plimsoll.tools.fio.command import output_arguments, seed_arguments, target_arguments
from plimsoll.tools.fio.document import Node
from plimsoll.tools.fio.output import complaints, jobs_named, read_output

BLOCK_BYTES = 2**20
"""A target must be a whole number of these."""

_JOB = "prefill"


def prefill_command(target: VolumeTarget, seed: int, work_directory: str) -> Command:
    """Return the command that writes the whole target once, in order, with data that does not compress.

    A file is made if it is not there; a device never is.

    Raises:
        ValueError: the target is empty, or not a whole number of MiB (fio would leave the rest unwritten).

    """
    if target.size < BLOCK_BYTES or target.size % BLOCK_BYTES:
        raise ValueError(f"the target has {target.size} bytes, which is not a whole number of MiB")
    return Command(
        argv=(
            "fio",
            *output_arguments(work_directory),
            f"--name={_JOB}",
            *target_arguments(target),
            f"--offset={target.offset}",
            f"--size={target.size}",
            "--rw=write",
            f"--bs={BLOCK_BYTES}",
            "--ioengine=libaio",
            "--iodepth=8",
            "--direct=1",
            "--thread=1",
            "--refill_buffers=1",
            "--end_fsync=1",
            "--fallocate=none",
            f"--allow_file_create={int(target.kind is VolumeKind.FILE)}",
            "--continue_on_error=none",
            *seed_arguments(seed),
        )
    )


def parse_prefill(output: Output, target: VolumeTarget) -> int:
    """Return the bytes that a prefill wrote: always the size of the target.

    Raises:
        OutputError: fio failed, its document cannot be read, or it wrote anything but the whole target.

    """
    found = read_output(output)
    (job,) = jobs_named(found.root, _JOB, count=1)
    problems = complaints([job], output, found.noise)
    if problems or output.exit_code:
        raise OutputError(f"prefill failed with exit code {output.exit_code}: {'; '.join(problems) or 'no message'}")
    return _written(job.child("write"), target)


def _written(write: Node, target: VolumeTarget) -> int:
    written, incomplete = write.count("io_bytes"), write.count("short_ios") + write.count("drop_ios")
    if written != target.size or incomplete:
        raise OutputError(
            f"prefill wrote {written} of {target.size} bytes, with {incomplete} operations that were short or dropped"
        )
    return written
