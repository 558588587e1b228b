"""fio as a tool."""

from collections.abc import Sequence
from typing import ClassVar

from plimsoll.api.names import LatencyKind
from plimsoll.api.state import LiveRate
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import (
    Command,
    Output,
    Roles,
    StepContext,
    StepKind,
    TargetKind,
    Tool,
    ToolParameters,
)
from plimsoll.tools.fio.command import gap_milliseconds, measure_command, slice_seconds
from plimsoll.tools.fio.live import live_rates
from plimsoll.tools.fio.logs import Widths
from plimsoll.tools.fio.output import parse_measurement
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.fio.target import data_set


class Fio:
    """One fio process per client, on its own volume or image."""

    key: ClassVar[str] = "fio"
    program: ClassVar[str] = "fio"
    parameters: ClassVar[type[ToolParameters]] = FioParameters
    target: ClassVar[TargetKind] = TargetKind.VOLUME
    roles: ClassVar[Roles] = Roles.EACH
    windowed: ClassVar[bool] = True
    latency: ClassVar[LatencyKind] = LatencyKind.FULL
    least_runtime_seconds: ClassVar[int] = 3

    def steps(self, parameters: ToolParameters) -> Sequence[StepKind]:
        """Return the one step: what a read needs was written by the prefill."""
        _own(parameters)
        return (StepKind.MEASURE,)

    def command(self, parameters: ToolParameters, context: StepContext) -> Command:
        """Return the command of the measuring step."""
        return measure_command(_own(parameters), context)

    def live(self, parameters: ToolParameters, said: str) -> tuple[LiveRate, ...]:
        """Return the rates of the newest of fio's status lines; none during the ramp, of which fio says none."""
        return live_rates(_own(parameters).pattern.operations, said)

    def parse(self, parameters: ToolParameters, context: StepContext, output: Output) -> Measurement:
        """Read the output of the measuring step."""
        own, timing = _own(parameters), context.timing
        widths = Widths(slice_seconds=slice_seconds(timing), gap_milliseconds=gap_milliseconds(own, timing))
        return parse_measurement(own, data_set(context), output, widths)


FIO: Tool = Fio()


def _own(parameters: ToolParameters) -> FioParameters:
    if not isinstance(parameters, FioParameters):
        raise TypeError(f"fio cannot use {type(parameters).__name__}")
    return parameters
