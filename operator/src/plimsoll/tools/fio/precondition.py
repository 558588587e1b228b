"""Overwriting a data set in random order, so that the storage is measured as used and not as new."""

from plimsoll.api.quantity import format_quantity
from plimsoll.api.run import Precondition
from plimsoll.tools.base import Command, DataSet, Output, OutputError
from plimsoll.tools.fio.target import environment
from plimsoll.tools.fio.writing import read_changes, writing_arguments

IO_DEPTH = 16
"""Enough to keep the devices behind a volume busy, few enough that the last ones end soon after the time is up."""

_JOB = "precondition"


def precondition_command(target: DataSet, precondition: Precondition, seed: int, work_directory: str) -> Command:
    """Return the command that overwrites random blocks of the whole target for a time; the data does not compress.

    It never makes a file: what is overwritten was prefilled. Blocks are drawn anew each time rather than once in a
    round, because remembering what was drawn takes memory in proportion to the target.

    Raises:
        ValueError: the target is smaller than one block.

    """
    size = target.size // precondition.block_size * precondition.block_size
    if not size:
        raise ValueError(
            f"the target has {format_quantity(target.size)}, less than the {format_quantity(precondition.block_size)} "
            "of precondition.blockSize: use a larger volume or smaller blocks"
        )
    return Command(
        argv=(
            "fio",
            *writing_arguments(_JOB, target, seed, work_directory),
            f"--size={size}",
            "--rw=randwrite",
            f"--bs={precondition.block_size}",
            f"--iodepth={IO_DEPTH}",
            "--norandommap=1",
            "--time_based=1",
            f"--runtime={precondition.seconds}s",
            "--allow_file_create=0",
        ),
        environment=environment(target),
    )


def parse_precondition(output: Output, target: DataSet) -> int:
    """Return the bytes that preconditioning wrote, overwritten ones included.

    Raises:
        OutputError: fio failed, its document cannot be read, it wrote nothing, or a part of what it was to write.

    """
    written = read_changes(_JOB, output).count("io_bytes")
    if not written:
        raise OutputError(f"precondition wrote nothing to {target.name}: use more seconds, or look at the volume")
    return written
