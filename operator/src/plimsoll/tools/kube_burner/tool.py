"""kube-burner as a tool."""

from typing import ClassVar

from plimsoll.api.names import LatencyKind, Layer
from plimsoll.measure.rates import Quantities
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import StepContext, Tool
from plimsoll.tools.cast import ACTOR, Executor
from plimsoll.tools.command import Command, Output
from plimsoll.tools.kube_burner.output import parse_measurement
from plimsoll.tools.kube_burner.parameters import KubeBurnerParameters
from plimsoll.tools.target import ApiTarget, TargetKind


class KubeBurner(Tool[KubeBurnerParameters]):
    """One client has the helper run kube-burner, which alone has the rights that it needs.

    The command writes kube-burner's files and output as if it had run there; see `plimsoll.cli.burn`.
    """

    key: ClassVar[str] = "kubeBurner"
    program: ClassVar[str] = "plimsoll"
    parameters = KubeBurnerParameters
    layer: ClassVar[Layer] = Layer.CONTROL_PLANE
    quantities: ClassVar[Quantities] = Quantities(latency=LatencyKind.FULL, bytes=False)
    target: ClassVar[TargetKind] = TargetKind.API
    executor: ClassVar[Executor] = ACTOR
    windowed: ClassVar[bool] = False
    creates_claims: ClassVar[bool] = True

    def command(self, parameters: KubeBurnerParameters, context: StepContext) -> Command:
        """Return the command, which gets the helper's address and the StorageClass from the pod's environment."""
        context.target_of(ApiTarget)
        return Command(argv=(self.program, "burn", parameters.model_dump_json(exclude_none=True)))

    def parse(self, parameters: KubeBurnerParameters, context: StepContext, output: Output) -> Measurement:
        """Read the output of the measuring step."""
        context.target_of(ApiTarget)
        return parse_measurement(parameters, output)


KUBE_BURNER = KubeBurner()
