"""fio as a tool."""

from collections.abc import Sequence
from typing import ClassVar

from plimsoll.api.names import LatencyKind, Layer
from plimsoll.api.status import LiveRate
from plimsoll.measure.rates import Quantities
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import Command, Output, StepContext, StepKind, Tool
from plimsoll.tools.fio.command import data_set, measure_command, trace_command
from plimsoll.tools.fio.output import live_rates, parse_measurement
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.target import TargetKind


class Fio(Tool[FioParameters]):
    """One fio process per client, on its own volume or image. The prefill writes the data for reads."""

    key: ClassVar[str] = "fio"
    program: ClassVar[str] = "fio"
    parameters = FioParameters
    layer: ClassVar[Layer] = Layer.RBD
    quantities: ClassVar[Quantities] = Quantities(latency=LatencyKind.FULL)
    target: ClassVar[TargetKind] = TargetKind.VOLUME
    least_runtime_seconds: ClassVar[int] = 3

    def steps(self, parameters: FioParameters) -> Sequence[StepKind]:
        """Return the steps: random arrivals are written before they are replayed."""
        return (StepKind.PREPARE, StepKind.MEASURE) if parameters.is_open_loop else (StepKind.MEASURE,)

    def command(self, parameters: FioParameters, context: StepContext) -> Command:
        """Return the command of a step."""
        if context.step is StepKind.PREPARE:
            return trace_command(parameters, context)
        return measure_command(parameters, context)

    def ends_when_done(self, parameters: FioParameters) -> bool:
        """Return whether each client does its data set once."""
        return parameters.until is not None

    def live(self, parameters: FioParameters, printed: str) -> tuple[LiveRate, ...]:
        """Return the rates of the newest status line; none during the ramp."""
        return live_rates(parameters.pattern.operations, printed)

    def parse(self, parameters: FioParameters, context: StepContext, output: Output) -> Measurement:
        """Read the output of the measuring step."""
        return parse_measurement(parameters, data_set(context), context.timing, output)


FIO = Fio()
