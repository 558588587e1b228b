"""Writing every byte of a target once, so that no read meets an extent that was never written."""

from plimsoll.tools.base import Command, DataSet, Output, OutputError, VolumeKind, VolumeTarget
from plimsoll.tools.fio.target import environment
from plimsoll.tools.fio.writing import read_changes, writing_arguments

BLOCK_BYTES = 2**20
"""A target must be a whole number of these."""

_JOB = "prefill"


def prefill_command(target: DataSet, seed: int, work_directory: str) -> Command:
    """Return the command that writes the whole target once, in order, with data that does not compress.

    A file is made if it is not there; a device and an image never are.

    Raises:
        ValueError: the target is empty, or not a whole number of MiB (fio would leave the rest unwritten).

    """
    if target.size < BLOCK_BYTES or target.size % BLOCK_BYTES:
        raise ValueError(f"the target has {target.size} bytes, which is not a whole number of MiB")
    return Command(
        argv=(
            "fio",
            *writing_arguments(_JOB, target, seed, work_directory),
            f"--size={target.size}",
            "--rw=write",
            f"--bs={BLOCK_BYTES}",
            "--iodepth=8",
            "--fallocate=none",
            f"--allow_file_create={int(_is_file(target))}",
        ),
        environment=environment(target),
    )


def parse_prefill(output: Output, target: DataSet) -> int:
    """Return the bytes that a prefill wrote: always the size of the target.

    Raises:
        OutputError: fio failed, its document cannot be read, or it wrote anything but the whole target.

    """
    written = read_changes(_JOB, output).count("io_bytes")
    if written != target.size:
        raise OutputError(f"prefill wrote {written} of {target.size} bytes")
    return written


def _is_file(target: DataSet) -> bool:
    return isinstance(target, VolumeTarget) and target.kind is VolumeKind.FILE
