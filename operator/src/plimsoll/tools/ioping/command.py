"""Arguments of ioping (source: ioping(1); comments name behaviour observed with 1.3)."""

from collections.abc import Iterator

from plimsoll.api.quantity import format_quantity
from plimsoll.tools.base import StepContext, Timing
from plimsoll.tools.command import Command
from plimsoll.tools.ioping.parameters import IopingOperation, IopingParameters
from plimsoll.tools.target import VolumeTarget

MAX_REQUESTS = 900_000
"""Requests of a trial; each prints a line of at most 74 bytes, and the agent keeps 64 MiB."""
TAIL_SECONDS = 1
"""Additional time, because the measured time may begin after the ramp; and ioping ends between two requests."""

_MAX_SEED = 2**31 - 1


def measure_command(parameters: IopingParameters, volume: VolumeTarget, context: StepContext) -> Command:
    """Return the command of a measurement.

    Raises:
        ValueError: the data set is smaller than one request, or there would be too many of them.

    """
    timing, interval = context.timing, parameters.interval_milliseconds
    if parameters.size > volume.size:
        size = format_quantity(volume.size)
        raise ValueError(f"the data set has {size}, less than one request: use a larger volume or a smaller size")
    if interval and total_seconds(timing) * 1000 > MAX_REQUESTS * interval:
        raise ValueError(
            f"more than {MAX_REQUESTS} requests in {total_seconds(timing)} s: raise intervalMilliseconds, or shorten "
            "rampSeconds and runtimeSeconds"
        )
    return Command(
        argv=(
            "ioping",
            *_report(),
            f"-w{total_seconds(timing) + -(-interval // 1000)}s",
            f"-c{MAX_REQUESTS + 1}",
            f"-i{interval}ms",
            *_requests(parameters, volume),
            # 0 would be a random seed.
            f"-e{1 + context.seed % _MAX_SEED}",
            volume.path,
        ),
        environment={"LC_ALL": "C"},
    )


def total_seconds(timing: Timing) -> int:
    """Return how long ioping runs."""
    return timing.ramp_seconds + timing.runtime_seconds + TAIL_SECONDS


def _report() -> Iterator[str]:
    """Yield what makes it print a line of numbers for each request but the first, and one for all."""
    yield "-q"
    yield "-B"
    yield "-p1"
    yield "-a1"


def _requests(parameters: IopingParameters, volume: VolumeTarget) -> Iterator[str]:
    yield f"-s{parameters.size}"
    yield f"-S{volume.size // parameters.size * parameters.size}"
    yield f"-o{volume.offset}"
    # Without it, ioping drops each block from the page cache, and syncs after each write.
    yield "-C"
    if parameters.direct:
        yield "-D"
    if parameters.operation is IopingOperation.WRITE:
        # Three times, for files and devices that exist.
        yield "-WWW"
