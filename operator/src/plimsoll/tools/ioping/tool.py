"""ioping as a tool."""

from typing import ClassVar

from plimsoll.api.names import LatencyKind, Layer
from plimsoll.api.state import LiveRate
from plimsoll.measure.rates import Quantities
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import StepContext, Tool
from plimsoll.tools.command import Command, Output
from plimsoll.tools.ioping.command import measure_command
from plimsoll.tools.ioping.output import parse_measurement
from plimsoll.tools.ioping.parameters import IopingParameters
from plimsoll.tools.ioping.text import recent_requests
from plimsoll.tools.reading import live_rate
from plimsoll.tools.target import TargetKind
from plimsoll.tools.volumes import kernel_volume

_SECOND = 10**9


class Ioping(Tool[IopingParameters]):
    """One ioping per client, on its own data set. The prefill writes the data for reads."""

    key: ClassVar[str] = "ioping"
    program: ClassVar[str] = "ioping"
    version_argument: ClassVar[str] = "-v"
    parameters = IopingParameters
    layer: ClassVar[Layer] = Layer.RBD
    quantities: ClassVar[Quantities] = Quantities(latency=LatencyKind.FULL)
    target: ClassVar[TargetKind] = TargetKind.VOLUME
    least_runtime_seconds: ClassVar[int] = 3

    def command(self, parameters: IopingParameters, context: StepContext) -> Command:
        """Return the command of the measuring step."""
        return measure_command(parameters, kernel_volume(self.key, context), context)

    def live(self, parameters: IopingParameters, printed: str) -> tuple[LiveRate, ...]:
        """Return the rate of the newest requests; ioping prints them some dozens at a time."""
        passed = recent_requests(printed)
        counts = [(0.0, 0), (sum(passed) / _SECOND, len(passed))]
        return live_rate(parameters.operation.operation, parameters.size, counts)

    def parse(self, parameters: IopingParameters, context: StepContext, output: Output) -> Measurement:
        """Read the output of the measuring step."""
        kernel_volume(self.key, context)
        return parse_measurement(parameters, context.timing, output)


IOPING = Ioping()
