"""Arguments of dd (GNU coreutils 9; source: its manual)."""

from collections.abc import Iterator

from plimsoll.api.quantity import format_quantity
from plimsoll.tools.base import Timing
from plimsoll.tools.command import DIE_WITH_PARENT, Command
from plimsoll.tools.dd.parameters import DdOperation, DdParameters
from plimsoll.tools.target import VolumeTarget


def measure_command(parameters: DdParameters, volume: VolumeTarget, timing: Timing) -> Command:
    """Return the command of a measurement, which a signal ends after ramp and runtime.

    Raises:
        ValueError: the blocks do not fit into the data set.

    """
    return Command(
        argv=(
            "timeout",
            # In the agent's process group, so that the agent can end both.
            "--foreground",
            "--preserve-status",
            # It makes dd print what it has done.
            "--signal=INT",
            str(timing.ramp_seconds + timing.runtime_seconds),
            # The agent's death ends timeout, and must end dd as well.
            *DIE_WITH_PARENT,
            "dd",
            f"bs={parameters.block_size}",
            f"count={_blocks(parameters, volume)}",
            *_input(parameters, volume),
            *_output(parameters, volume),
            "status=progress",
        ),
        environment={"LC_ALL": "C"},
    )


def work_bytes(parameters: DdParameters, volume: VolumeTarget) -> int:
    """Return the bytes after which dd ends, those read and those written."""
    return len(parameters.operation.operations) * _blocks(parameters, volume) * parameters.block_size


def _blocks(parameters: DdParameters, volume: VolumeTarget) -> int:
    fitting = _part(parameters, volume) // parameters.block_size
    count = fitting if parameters.count is None else parameters.count
    if not count or count > fitting:
        raise ValueError(
            f"{fitting} blocks of {format_quantity(parameters.block_size)} fit into the "
            f"{format_quantity(_part(parameters, volume))} of the data set that can be used: use a "
            "larger volume, smaller blocks, or a smaller count"
        )
    return count


def _part(parameters: DdParameters, volume: VolumeTarget) -> int:
    """Return the bytes that dd may read or write."""
    return volume.size // 2 if parameters.operation is DdOperation.COPY else volume.size


def _input(parameters: DdParameters, volume: VolumeTarget) -> Iterator[str]:
    if not parameters.reads_data:
        yield "if=/dev/zero"
        return
    yield f"if={volume.path}"
    yield f"skip={volume.offset}"
    yield "iflag=skip_bytes,direct" if parameters.direct else "iflag=skip_bytes"


def _output(parameters: DdParameters, volume: VolumeTarget) -> Iterator[str]:
    if parameters.operation is DdOperation.READ:
        yield "of=/dev/null"
        return
    offset = volume.size // 2 if parameters.operation is DdOperation.COPY else 0
    yield f"of={volume.path}"
    yield f"seek={volume.offset + offset}"
    yield "oflag=seek_bytes,direct" if parameters.direct else "oflag=seek_bytes"
    yield "conv=notrunc,nocreat,fdatasync" if parameters.fdatasync else "conv=notrunc,nocreat"
