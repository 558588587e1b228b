"""`rados bench` as a tool.

It writes the same text repeatedly, which a pool with compression hardly stores.
"""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from plimsoll.api.names import LatencyKind, Layer
from plimsoll.api.state import LiveRate
from plimsoll.measure.rates import Quantities
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import StepContext, StepKind, Tool
from plimsoll.tools.command import Command, Output
from plimsoll.tools.rados_bench.output import parse_measurement
from plimsoll.tools.rados_bench.parameters import RadosBenchParameters, RadosOperation
from plimsoll.tools.rados_bench.text import live_counts
from plimsoll.tools.reading import live_rate
from plimsoll.tools.target import PoolTarget, TargetKind

TAIL_SECONDS = 1
"""Additional time, so that waiting for the last operations is not measured."""

_PREPARING_CONCURRENCY = 16
"""Minimum concurrency of the `prepare` step: with less, writing objects is slower than reading them."""


class RadosBench(Tool[RadosBenchParameters]):
    """One `rados bench` per client, in its own RADOS namespace."""

    key: ClassVar[str] = "radosBench"
    program: ClassVar[str] = "rados"
    parameters = RadosBenchParameters
    layer: ClassVar[Layer] = Layer.RADOS
    quantities: ClassVar[Quantities] = Quantities(latency=LatencyKind.MEAN_ONLY)
    target: ClassVar[TargetKind] = TargetKind.POOL
    least_runtime_seconds: ClassVar[int] = 3

    def steps(self, parameters: RadosBenchParameters) -> Sequence[StepKind]:
        """Return the steps: reads need objects, and the last step removes all objects."""
        prepare = (StepKind.PREPARE,) if parameters.reads_data else ()
        return (*prepare, StepKind.MEASURE, StepKind.CLEAN_UP)

    def command(self, parameters: RadosBenchParameters, context: StepContext) -> Command:
        """Return the command of a step.

        The clean-up removes the objects of the last completed write; without one, all objects that `rados bench` wrote
        in the namespace.
        """
        target = context.target_of(PoolTarget)
        match context.step:
            case StepKind.PREPARE:
                concurrency = max(parameters.concurrency, _PREPARING_CONCURRENCY)
                step = _write(parameters.preparation_seconds(context.timing), parameters, concurrency)
            case StepKind.MEASURE:
                step = _measure(_seconds(context), parameters)
            case StepKind.CLEAN_UP:
                step = iter(("cleanup",))
            case StepKind.SERVE:
                raise ValueError("rados bench has no server")
        return Command(
            argv=(
                "rados",
                f"--id={target.user}",
                f"--pool={target.pool}",
                f"--namespace={target.namespace}",
                *step,
                f"--run-name={target.run_name}",
            )
        )

    def live(self, parameters: RadosBenchParameters, printed: str) -> tuple[LiveRate, ...]:
        """Return the rate of the newest seconds. An operation is a whole object."""
        return live_rate(parameters.operation.operation, parameters.object_size, live_counts(printed))

    def parse(self, parameters: RadosBenchParameters, context: StepContext, output: Output) -> Measurement:
        """Read the output of the measuring step."""
        return parse_measurement(parameters, context.timing, output)


RADOS_BENCH = RadosBench()


def _seconds(context: StepContext) -> int:
    return context.timing.ramp_seconds + context.timing.runtime_seconds + TAIL_SECONDS


def _write(seconds: int, parameters: RadosBenchParameters, concurrency: int) -> Iterator[str]:
    yield from ("bench", str(seconds), RadosOperation.WRITE.value)
    yield f"--block-size={parameters.object_size}"
    yield f"--concurrent-ios={concurrency}"
    yield "--no-cleanup"


def _measure(seconds: int, parameters: RadosBenchParameters) -> Iterator[str]:
    """Yield the arguments of a measurement with a time on every line; JSON output has no times and fewer digits."""
    if parameters.operation is RadosOperation.WRITE:
        yield from _write(seconds, parameters, parameters.concurrency)
    else:
        # Reads refuse a block size: that of the objects applies.
        yield from ("bench", str(seconds), parameters.operation.value)
        yield f"--concurrent-ios={parameters.concurrency}"
    yield "--show-time"
