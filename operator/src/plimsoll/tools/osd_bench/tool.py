"""`ceph tell osd.* bench` as a tool."""

from typing import ClassVar

from plimsoll.api.names import LatencyKind, Layer
from plimsoll.measure.rates import Quantities
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import StepContext, Tool
from plimsoll.tools.cast import ACTOR, Executor
from plimsoll.tools.command import Command, Output
from plimsoll.tools.osd_bench.output import parse_measurement
from plimsoll.tools.osd_bench.parameters import OsdBenchParameters
from plimsoll.tools.target import OsdsTarget, TargetKind

_CONNECT_SECONDS = 30
_OBJECT_BYTES = 4 * 2**20
_OBJECTS = 100


class OsdBench(Tool[OsdBenchParameters]):
    """One command of one client; the OSDs run one after the other, and remove what they wrote."""

    key: ClassVar[str] = "osdBench"
    program: ClassVar[str] = "ceph"
    parameters = OsdBenchParameters
    layer: ClassVar[Layer] = Layer.OSD
    quantities: ClassVar[Quantities] = Quantities(latency=LatencyKind.NONE)
    target: ClassVar[TargetKind] = TargetKind.OSDS
    executor: ClassVar[Executor] = ACTOR
    windowed: ClassVar[bool] = False

    def command(self, parameters: OsdBenchParameters, context: StepContext) -> Command:
        """Return the command.

        Small blocks are written at random places of a hundred prepared objects, as Ceph itself does to determine an
        OSD's capacity. Each larger block becomes its own object.
        """
        objects = (str(_OBJECT_BYTES), str(_OBJECTS)) if parameters.is_small else ()
        return Command(
            argv=(
                "ceph",
                f"--id={parameters.user}",
                f"--keyring={context.target_of(OsdsTarget).keyring}",
                f"--connect-timeout={_CONNECT_SECONDS}",
                "--format=json",
                "tell",
                "osd.*",
                "bench",
                str(parameters.total_bytes),
                str(parameters.block_size),
                *objects,
            )
        )

    def parse(self, parameters: OsdBenchParameters, context: StepContext, output: Output) -> Measurement:
        """Read the output of the measuring step."""
        context.target_of(OsdsTarget)
        return parse_measurement(parameters, output)


OSD_BENCH = OsdBench()
