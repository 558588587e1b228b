"""`rados bench` as a tool.

What it writes is one text and the letter z over and over: a pool that compresses stores next to nothing of it.
"""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from plimsoll.api.names import LatencyKind
from plimsoll.api.state import LiveRate
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import (
    Command,
    Output,
    PoolTarget,
    Roles,
    StepContext,
    StepKind,
    TargetKind,
    Tool,
    ToolParameters,
)
from plimsoll.tools.live import rate_of
from plimsoll.tools.rados_bench.output import parse_measurement
from plimsoll.tools.rados_bench.parameters import RadosBenchParameters, RadosOperation
from plimsoll.tools.rados_bench.text import live_counts

TAIL_SECONDS = 1
"""So much longer it runs than it is measured, so that waiting for the last operations is not."""

_PREPARING_CONCURRENCY = 16
"""At least: with few operations in flight, writing is slower than the reading that it is to last for."""


class RadosBench:
    """One `rados bench` per client, in a RADOS namespace of its own."""

    key: ClassVar[str] = "radosBench"
    program: ClassVar[str] = "rados"
    parameters: ClassVar[type[ToolParameters]] = RadosBenchParameters
    target: ClassVar[TargetKind] = TargetKind.POOL
    roles: ClassVar[Roles] = Roles.EACH
    windowed: ClassVar[bool] = True
    latency: ClassVar[LatencyKind] = LatencyKind.MEAN_ONLY
    least_runtime_seconds: ClassVar[int] = 3

    def steps(self, parameters: ToolParameters) -> Sequence[StepKind]:
        """Return the steps: what is read must have been written, and every object goes when it is done."""
        if _own(parameters).operation is RadosOperation.WRITE:
            return (StepKind.MEASURE, StepKind.CLEAN_UP)
        return (StepKind.PREPARE, StepKind.MEASURE, StepKind.CLEAN_UP)

    def command(self, parameters: ToolParameters, context: StepContext) -> Command:
        """Return the command of a step.

        Cleaning up removes the objects of the last writing that ended; if none did, all objects of the namespace that
        `rados bench` wrote.
        """
        own, target = _own(parameters), _pool(context)
        match context.step:
            case StepKind.PREPARE:
                step = _write(
                    own.preparation_seconds(context.timing), own, max(own.concurrency, _PREPARING_CONCURRENCY)
                )
            case StepKind.MEASURE:
                step = _measure(_seconds(context), own)
            case StepKind.CLEAN_UP:
                step = iter(("cleanup",))
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

    def live(self, parameters: ToolParameters, said: str) -> tuple[LiveRate, ...]:
        """Return the rate of the newest seconds. An operation is a whole object."""
        own = _own(parameters)
        return rate_of(own.operation.operation, own.object_size, live_counts(said))

    def parse(self, parameters: ToolParameters, context: StepContext, output: Output) -> Measurement:
        """Read the output of the measuring step."""
        return parse_measurement(_own(parameters), context.timing, output)


RADOS_BENCH: Tool = RadosBench()


def _seconds(context: StepContext) -> int:
    return context.timing.ramp_seconds + context.timing.runtime_seconds + TAIL_SECONDS


def _write(seconds: int, parameters: RadosBenchParameters, concurrency: int) -> Iterator[str]:
    yield from ("bench", str(seconds), RadosOperation.WRITE.value)
    yield f"--block-size={parameters.object_size}"
    yield f"--concurrent-ios={concurrency}"
    yield "--no-cleanup"


def _measure(seconds: int, parameters: RadosBenchParameters) -> Iterator[str]:
    """Yield what measures, with the time in front of every line: the JSON form neither has it nor as many digits."""
    if parameters.operation is RadosOperation.WRITE:
        yield from _write(seconds, parameters, parameters.concurrency)
    else:
        # It refuses a block size here: that of the objects holds.
        yield from ("bench", str(seconds), parameters.operation.value)
        yield f"--concurrent-ios={parameters.concurrency}"
    yield "--show-time"


def _pool(context: StepContext) -> PoolTarget:
    if not isinstance(context.target, PoolTarget):
        raise TypeError(f"rados bench cannot use a {type(context.target).__name__}")
    return context.target


def _own(parameters: ToolParameters) -> RadosBenchParameters:
    if not isinstance(parameters, RadosBenchParameters):
        raise TypeError(f"rados bench cannot use {type(parameters).__name__}")
    return parameters
