"""bonnie++ as a tool.

Its option `-c` does not start copies: with any value, one process works on one file. More clients do.
"""

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

from plimsoll.api.names import LatencyKind, Layer
from plimsoll.api.quantity import format_quantity
from plimsoll.measure.rates import Quantities
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import StepContext, StepKind, Tool
from plimsoll.tools.bonnie.output import large_file_bytes, machine_name, parse_measurement, seed_of
from plimsoll.tools.bonnie.parameters import MEBIBYTE, ON_FILES, BonnieParameters
from plimsoll.tools.command import Command, Output
from plimsoll.tools.target import TargetKind, VolumeKind, VolumeTarget

_MAX_CHUNKS = 2**31 - 1
_VERSION = re.compile(r"^Version: (\S+)$", re.MULTILINE)


class Bonnie(Tool[BonnieParameters]):
    """One bonnie++ per client, in a directory of its own. It prints nothing before its end."""

    key: ClassVar[str] = "bonnie"
    program: ClassVar[str] = "bonnie++"
    parameters = BonnieParameters
    layer: ClassVar[Layer] = Layer.FILE_SYSTEM
    quantities: ClassVar[Quantities] = Quantities(latency=LatencyKind.MAX_ONLY)
    target: ClassVar[TargetKind] = TargetKind.VOLUME
    own_files: ClassVar[bool] = True
    windowed: ClassVar[bool] = False

    def version(self, output: Output) -> str | None:
        """Return the version from the usage that bonnie++ prints, with an error, instead of a version."""
        match = _VERSION.search(output.stderr)
        return f"bonnie++ {match[1]}" if match else None

    def steps(self, parameters: BonnieParameters) -> Sequence[StepKind]:  # noqa: ARG002 - always the same
        """Return the steps: bonnie++ needs a directory, and leaves its files there if it is killed."""
        return (StepKind.PREPARE, StepKind.MEASURE, StepKind.CLEAN_UP)

    def command(self, parameters: BonnieParameters, context: StepContext) -> Command:
        """Return the command of a step. The first one also removes what a killed trial has left."""
        size = _checked_size(parameters, context)
        directory = context.own_directory
        argv: tuple[str, ...]
        match context.step:
            case StepKind.PREPARE:
                argv = ("sh", "-c", 'rm -rf -- "$1" && mkdir -- "$1"', "sh", directory)
            case StepKind.MEASURE:
                argv = ("bonnie++", *_options(parameters, context, size))
            case StepKind.CLEAN_UP:
                argv = ("rm", "-rf", "--", directory)
            case StepKind.SERVE:
                raise ValueError("bonnie++ has no server")
        return Command(argv=argv)

    def parse(self, parameters: BonnieParameters, context: StepContext, output: Output) -> Measurement:
        """Read the output of the measuring step."""
        return parse_measurement(parameters, context, output)


BONNIE = Bonnie()


def _checked_size(parameters: BonnieParameters, context: StepContext) -> int:
    """Return the size of the large file; ValueError if the target does not fit."""
    target = context.target
    if not isinstance(target, VolumeTarget) or target.kind is not VolumeKind.FILE:
        raise ValueError(f"spec.storage.volume.mode {ON_FILES}")
    size = large_file_bytes(parameters, target)
    if size > target.size:
        raise ValueError(
            f"size {format_quantity(size)} exceeds the data set of {format_quantity(target.size)}; lower size, or "
            "raise spec.storage.volume.size"
        )
    if size // parameters.chunk_size.bytes > _MAX_CHUNKS:
        raise ValueError(
            f"a file of {format_quantity(size)} has more than {_MAX_CHUNKS} chunks of {parameters.chunk_size}, which "
            "bonnie++ cannot count; raise chunkSize, or lower size"
        )
    return size


def _options(parameters: BonnieParameters, context: StepContext, size: int) -> Iterator[str]:
    chunk = parameters.chunk_size.bytes
    yield from ("-q", "-d", context.own_directory, "-m", machine_name(context), "-z", str(seed_of(context)))
    # Without a memory size of 0, bonnie++ compares with that of the node; Plimsoll knows the client's.
    yield from ("-r", "0", "-s", f"{size // MEBIBYTE}:{chunk}:{parameters.seeks}:{parameters.seek_processes}")
    yield from ("-n", _files(parameters))
    # Without a number, -f leaves out the phases of single bytes.
    characters = parameters.character_bytes(size) // MEBIBYTE
    yield f"-f{characters}" if characters else "-f"
    if parameters.sync:
        yield "-b"
    if parameters.direct_io:
        yield "-D"
    if context.as_root:
        yield from ("-u", "0:0")


def _files(parameters: BonnieParameters) -> str:
    least, most = parameters.min_file_size or 0, parameters.max_file_size or 0
    return f"{parameters.files}:{most}:{least}:{parameters.directories}" if parameters.files else "0"
