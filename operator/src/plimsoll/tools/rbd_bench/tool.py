"""`rbd bench` as a tool.

What it writes is one byte over and over: a pool that compresses stores next to nothing of it.
"""

from collections.abc import Sequence
from typing import ClassVar

from plimsoll.api.names import LatencyKind
from plimsoll.api.quantity import format_quantity
from plimsoll.api.state import LiveRate
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import (
    Command,
    ImageTarget,
    Output,
    Roles,
    StepContext,
    StepKind,
    TargetKind,
    Tool,
    ToolParameters,
)
from plimsoll.tools.live import rate_of
from plimsoll.tools.rbd_bench.output import parse_measurement
from plimsoll.tools.rbd_bench.parameters import RbdBenchParameters
from plimsoll.tools.rbd_bench.text import live_counts

TAIL_SECONDS = 2
"""So much longer than it is measured it is let run, because its time counts from before the image is open."""

_ENDLESS_BYTES = 2**60


class RbdBench:
    """One `rbd bench` per client, on its own image."""

    key: ClassVar[str] = "rbdBench"
    program: ClassVar[str] = "rbd"
    parameters: ClassVar[type[ToolParameters]] = RbdBenchParameters
    target: ClassVar[TargetKind] = TargetKind.IMAGE
    roles: ClassVar[Roles] = Roles.EACH
    windowed: ClassVar[bool] = True
    latency: ClassVar[LatencyKind] = LatencyKind.NONE
    least_runtime_seconds: ClassVar[int] = 3

    def steps(self, parameters: ToolParameters) -> Sequence[StepKind]:
        """Return the one step: what a read needs was written by the prefill."""
        _own(parameters)
        return (StepKind.MEASURE,)

    def command(self, parameters: ToolParameters, context: StepContext) -> Command:
        """Return the command: it has no end of its own, and SIGTERM makes it print its totals and close the image.

        SIGINT would kill it, and leave the image locked until the cluster gives it up for dead. The cache is on or off
        as the target says unless a setting of the image or its pool (`rbd config`) says otherwise.

        Raises:
            ValueError: the image is smaller than one block.

        """
        own, image = _own(parameters), _image(context)
        if own.block_size > image.size:
            size = format_quantity(image.size)
            raise ValueError(f"the image has {size}, less than one block: use a larger volume or smaller blocks")
        seconds = context.timing.ramp_seconds + context.timing.runtime_seconds + TAIL_SECONDS
        return Command(
            argv=(
                "timeout",
                # In the process group of who started it, who may end them both.
                "--foreground",
                "--preserve-status",
                "--signal=TERM",
                str(seconds),
                "rbd",
                f"--id={image.user}",
                f"--rbd-cache={str(image.cache).lower()}",
                "bench",
                f"--io-type={own.operation}",
                f"--io-pattern={own.order}",
                f"--io-size={own.block_size}",
                f"--io-threads={own.concurrency}",
                f"--io-total={_ENDLESS_BYTES}",
                f"--pool={image.pool}",
                f"--image={image.image}",
            )
        )

    def live(self, parameters: ToolParameters, said: str) -> tuple[LiveRate, ...]:
        """Return the rate of the newest seconds."""
        own = _own(parameters)
        return rate_of(own.operation.operation, own.block_size, live_counts(said))

    def parse(self, parameters: ToolParameters, context: StepContext, output: Output) -> Measurement:
        """Read the output of the measuring step."""
        return parse_measurement(_own(parameters), _image(context), context.timing, output)


RBD_BENCH: Tool = RbdBench()


def _image(context: StepContext) -> ImageTarget:
    if not isinstance(context.target, ImageTarget):
        raise TypeError(f"rbd bench cannot use a {type(context.target).__name__}")
    return context.target


def _own(parameters: ToolParameters) -> RbdBenchParameters:
    if not isinstance(parameters, RbdBenchParameters):
        raise TypeError(f"rbd bench cannot use {type(parameters).__name__}")
    return parameters
