"""`rbd bench` as a tool.

It writes the same byte repeatedly, which a pool with compression hardly stores.
"""

from typing import ClassVar

from plimsoll.api.names import LatencyKind, Layer
from plimsoll.api.quantity import format_quantity
from plimsoll.api.state import LiveRate
from plimsoll.measure.rates import Quantities
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import StepContext, Tool
from plimsoll.tools.command import Command, Output
from plimsoll.tools.rbd_bench.output import parse_measurement
from plimsoll.tools.rbd_bench.parameters import RbdBenchParameters
from plimsoll.tools.rbd_bench.text import live_counts
from plimsoll.tools.reading import live_rate
from plimsoll.tools.target import ImageTarget, TargetKind

TAIL_SECONDS = 2
"""Additional time, because the time of the command starts before the image is open."""

_ENDLESS_BYTES = 2**60


class RbdBench(Tool[RbdBenchParameters]):
    """One `rbd bench` per client, on its own image. The prefill writes the data for reads."""

    key: ClassVar[str] = "rbdBench"
    program: ClassVar[str] = "rbd"
    parameters = RbdBenchParameters
    layer: ClassVar[Layer] = Layer.RBD
    quantities: ClassVar[Quantities] = Quantities(latency=LatencyKind.NONE)
    target: ClassVar[TargetKind] = TargetKind.IMAGE
    least_runtime_seconds: ClassVar[int] = 3

    def command(self, parameters: RbdBenchParameters, context: StepContext) -> Command:
        """Return the command, which runs until SIGTERM makes it print its totals and close the image.

        SIGINT would kill it and leave the image locked until the lock times out. `rbd config` of the image or its pool
        overrides the target's cache setting.

        Raises:
            ValueError: the image is smaller than one block.

        """
        image, timing = context.target_of(ImageTarget), context.timing
        if parameters.block_size > image.size:
            size = format_quantity(image.size)
            raise ValueError(f"the image has {size}, less than one block: use a larger volume or smaller blocks")
        return Command(
            argv=(
                "timeout",
                # In the agent's process group, so that the agent can end both.
                "--foreground",
                "--preserve-status",
                "--signal=TERM",
                str(timing.ramp_seconds + timing.runtime_seconds + TAIL_SECONDS),
                "rbd",
                f"--id={image.user}",
                f"--rbd-cache={str(image.cache).lower()}",
                "bench",
                f"--io-type={parameters.operation}",
                f"--io-pattern={parameters.order}",
                f"--io-size={parameters.block_size}",
                f"--io-threads={parameters.concurrency}",
                f"--io-total={_ENDLESS_BYTES}",
                f"--pool={image.pool}",
                f"--image={image.image}",
            )
        )

    def live(self, parameters: RbdBenchParameters, printed: str) -> tuple[LiveRate, ...]:
        """Return the rate of the newest seconds."""
        return live_rate(parameters.operation.operation, parameters.block_size, live_counts(printed))

    def parse(self, parameters: RbdBenchParameters, context: StepContext, output: Output) -> Measurement:
        """Read the output of the measuring step."""
        return parse_measurement(parameters, context.target_of(ImageTarget), context.timing, output)


RBD_BENCH = RbdBench()
