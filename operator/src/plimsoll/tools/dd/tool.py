"""dd as a tool."""

from typing import ClassVar

from plimsoll.api.names import LatencyKind, Layer
from plimsoll.api.state import LiveRate
from plimsoll.measure.rates import Quantities
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import StepContext, Tool
from plimsoll.tools.command import Command, Output
from plimsoll.tools.dd.command import measure_command
from plimsoll.tools.dd.output import parse_measurement
from plimsoll.tools.dd.parameters import DdParameters
from plimsoll.tools.dd.text import progress_of
from plimsoll.tools.reading import live_rate
from plimsoll.tools.target import TargetKind
from plimsoll.tools.volumes import kernel_volume


class Dd(Tool[DdParameters]):
    """One dd per client, on its own data set. The prefill writes the data for reads."""

    key: ClassVar[str] = "dd"
    program: ClassVar[str] = "dd"
    parameters = DdParameters
    layer: ClassVar[Layer] = Layer.RBD
    quantities: ClassVar[Quantities] = Quantities(latency=LatencyKind.NONE)
    target: ClassVar[TargetKind] = TargetKind.VOLUME
    windowed: ClassVar[bool] = False
    least_runtime_seconds: ClassVar[int] = 1

    def command(self, parameters: DdParameters, context: StepContext) -> Command:
        """Return the command of the measuring step."""
        return measure_command(parameters, kernel_volume(self.key, context), context.timing)

    def ends_when_done(self, parameters: DdParameters) -> bool:  # noqa: ARG002 - always
        """Return True: it ends when its blocks are done."""
        return True

    def live(self, parameters: DdParameters, printed: str) -> tuple[LiveRate, ...]:
        """Return the rate of the newest seconds, the same for both operations of a copy."""
        counts = [(seconds, done // parameters.block_size) for seconds, done in progress_of(printed)]
        return tuple(
            rate
            for operation in parameters.operation.operations
            for rate in live_rate(operation, parameters.block_size, counts)
        )

    def parse(self, parameters: DdParameters, context: StepContext, output: Output) -> Measurement:
        """Read the output of the measuring step."""
        return parse_measurement(parameters, kernel_volume(self.key, context), context.timing, output)


DD = Dd()
