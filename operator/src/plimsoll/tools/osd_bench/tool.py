"""`ceph tell osd.* bench` as a tool."""

from collections.abc import Sequence
from typing import ClassVar

from plimsoll.api.names import LatencyKind
from plimsoll.api.state import LiveRate
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import (
    Command,
    OsdsTarget,
    Output,
    Roles,
    StepContext,
    StepKind,
    TargetKind,
    Tool,
    ToolParameters,
)
from plimsoll.tools.osd_bench.output import parse_measurement
from plimsoll.tools.osd_bench.parameters import OsdBenchParameters

_CONNECT_SECONDS = 30
_OBJECT_BYTES = 4 * 2**20
_OBJECTS = 100


class OsdBench:
    """One command from one client; the OSDs are measured one after the other."""

    key: ClassVar[str] = "osdBench"
    program: ClassVar[str] = "ceph"
    parameters: ClassVar[type[ToolParameters]] = OsdBenchParameters
    target: ClassVar[TargetKind] = TargetKind.OSDS
    roles: ClassVar[Roles] = Roles.ACTOR
    windowed: ClassVar[bool] = False
    latency: ClassVar[LatencyKind] = LatencyKind.NONE
    least_runtime_seconds: ClassVar[int] = 0

    def steps(self, parameters: ToolParameters) -> Sequence[StepKind]:
        """Return the one step: OSDs remove what they wrote by themselves."""
        _own(parameters)
        return (StepKind.MEASURE,)

    def command(self, parameters: ToolParameters, context: StepContext) -> Command:
        """Return the command.

        Small blocks go to random places of a hundred objects that are written before, as Ceph itself does it to find
        out an OSD's capacity; else every block becomes an object of its own.
        """
        own = _own(parameters)
        objects = (str(_OBJECT_BYTES), str(_OBJECTS)) if own.is_small else ()
        return Command(
            argv=(
                "ceph",
                f"--id={own.user}",
                f"--keyring={_osds(context).keyring}",
                f"--connect-timeout={_CONNECT_SECONDS}",
                "--format=json",
                "tell",
                "osd.*",
                "bench",
                str(own.total_bytes),
                str(own.block_size),
                *objects,
            )
        )

    def live(self, parameters: ToolParameters, said: str) -> tuple[LiveRate, ...]:  # noqa: ARG002 - it says nothing
        """Return nothing: each OSD answers when it is done."""
        _own(parameters)
        return ()

    def parse(self, parameters: ToolParameters, context: StepContext, output: Output) -> Measurement:
        """Read the output of the measuring step."""
        _osds(context)
        return parse_measurement(_own(parameters), output)


OSD_BENCH: Tool = OsdBench()


def _osds(context: StepContext) -> OsdsTarget:
    if not isinstance(context.target, OsdsTarget):
        raise TypeError(f"ceph tell osd bench cannot use a {type(context.target).__name__}")
    return context.target


def _own(parameters: ToolParameters) -> OsdBenchParameters:
    if not isinstance(parameters, OsdBenchParameters):
        raise TypeError(f"ceph tell osd bench cannot use {type(parameters).__name__}")
    return parameters
