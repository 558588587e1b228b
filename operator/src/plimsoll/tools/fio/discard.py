"""Giving back the space of a whole image, so that it is as new."""

from plimsoll.api.names import Operation
from plimsoll.tools.base import Command, ImageTarget, Output, OutputError
from plimsoll.tools.fio.prefill import BLOCK_BYTES
from plimsoll.tools.fio.target import environment
from plimsoll.tools.fio.writing import changing_arguments, read_changes

_OBJECT_BYTES = 4 * 2**20
"""Of an image by default: whole objects are removed, parts of one are only zeroed."""

_JOB = "discard"


def discard_command(target: ImageTarget, work_directory: str) -> Command:
    """Return the command that trims the whole image once.

    Raises:
        ValueError: the image is empty, or not a whole number of MiB (fio would leave the rest).

    """
    if target.size < BLOCK_BYTES or target.size % BLOCK_BYTES:
        raise ValueError(f"the image has {target.size} bytes, which is not a whole number of MiB")
    return Command(
        argv=(
            "fio",
            *changing_arguments(_JOB, target, work_directory),
            f"--size={target.size}",
            "--rw=trim",
            f"--bs={BLOCK_BYTES if target.size % _OBJECT_BYTES else _OBJECT_BYTES}",
            "--iodepth=8",
            "--allow_file_create=0",
        ),
        environment=environment(target),
    )


def parse_discard(output: Output, target: ImageTarget) -> int:
    """Return the bytes that were trimmed: always the size of the image.

    Raises:
        OutputError: fio failed, its document cannot be read, or it trimmed anything but the whole image.

    """
    trimmed = read_changes(_JOB, output, Operation.TRIM).count("io_bytes")
    if trimmed != target.size:
        raise OutputError(f"discard trimmed {trimmed} of {target.size} bytes")
    return trimmed
