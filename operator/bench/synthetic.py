"""Client documents of the size that a tool's run of five minutes gives, made of formulas instead of I/O."""

import math
from functools import cache

from plimsoll.api.names import LatencyKind, Operation
from plimsoll.measure.histogram import Histogram, bin_index, bin_midpoint
from plimsoll.measure.sample import (
    Cells,
    ClientDocument,
    Clock,
    CpuUse,
    DeviceUse,
    HostUse,
    LatencySample,
    LatencySlices,
    Measurement,
    MemoryUse,
    NetworkUse,
    OperationSample,
)

SECOND = 10**9
BLOCK = 4096
BINS = 290
KINDS = 20
_FIRST_BIN = bin_index(60_000)
_PEAK = 60
_SLICES = 20
_ARGV = ("fio", *(f"--option-{number}=value" for number in range(30)))


def document(client: int, t0: int, *, ramp: int, runtime: int, clock: Clock | None = None) -> ClientDocument:
    """Return what a client sends that reads and writes for `runtime` seconds."""
    started_at = t0 + ramp * SECOND + client % 50 * SECOND // 1000
    return ClientDocument(
        client=client,
        node=f"node-{client % 20}",
        exit_code=0,
        launched_at=t0 + client % 7 * SECOND // 1000,
        finished_at=started_at + runtime * SECOND + SECOND // 4,
        argv=_ARGV,
        measurement=Measurement(
            tool="fio",
            tool_version="3.39",
            started_at=started_at,
            runtime=runtime * SECOND,
            operations=samples(client % KINDS, runtime),
        ),
        raw_sha256=f"{client:064x}",
        clock=clock or Clock(offset=0.0001, error=0.0002),
        data_set_bytes=2**30,
        host=_host(client, runtime),
    )


def _host(client: int, runtime: int) -> HostUse:
    gibibyte = 2**30
    return HostUse(
        seconds=runtime + 1.234567,
        cpu=CpuUse(
            limit=2.0, used=0.712345, throttled_periods=0, throttled_seconds=0, node_busy=0.4, node_processors=32
        ),
        memory=MemoryUse(used=gibibyte // 8, node_total=256 * gibibyte, node_available=128 * gibibyte),
        network=NetworkUse(received=12345.678901, sent=23456.789012),
        device=DeviceUse(number=f"253:{client}", read=1e9, written=1e9, busy=0.98765432, queue=31.234567),
    )


@cache
def samples(kind: int, runtime: int) -> tuple[OperationSample, ...]:
    """Return the reads and writes of one of `KINDS` kinds of clients. It takes tens of milliseconds the first time."""
    return tuple(_sample(operation, kind, runtime) for operation in (Operation.READ, Operation.WRITE))


def _sample(operation: Operation, client: int, runtime: int) -> OperationSample:
    histogram = _histogram(client, runtime)
    mean = sum(bin_midpoint(index) * count for index, count in histogram.counts.items()) / histogram.total
    return OperationSample(
        operation=operation,
        ios=histogram.total,
        bytes=histogram.total * BLOCK,
        latency=LatencySample(
            kind=LatencyKind.FULL,
            count=histogram.total,
            mean_nanoseconds=mean,
            standard_deviation_nanoseconds=mean / 2,
            min_nanoseconds=bin_midpoint(min(histogram.counts)),
            max_nanoseconds=bin_midpoint(max(histogram.counts)),
            histogram=histogram.encode(),
        ),
        cells=_cells(histogram.total, client, runtime),
        slices=_slices(client, runtime),
        submission_nanoseconds=4321.0987,
    )


def _slices(client: int, runtime: int) -> LatencySlices:
    """Return twenty slices, as many as fio's module makes of any runtime."""
    width = max(1, runtime // _SLICES)
    histograms = tuple(_histogram(client + number, width).encode() for number in range(runtime // width))
    return LatencySlices(width_nanoseconds=width * SECOND, histograms=histograms)


def _histogram(client: int, runtime: int) -> Histogram:
    """Return a bell with a long tail, a little different for each client."""
    peak = _PEAK + client % 17
    bell = (math.exp(-(((number - peak) / 30) ** 2)) for number in range(BINS))
    jitter = (1 + (number * 31 + client * 17) % 13 / 100 for number in range(BINS))
    counts = (1 + int(200 * runtime * height * noise) for height, noise in zip(bell, jitter, strict=True))
    return Histogram(counts={_FIRST_BIN + number: count for number, count in enumerate(counts)})


def _cells(total: int, client: int, runtime: int) -> Cells:
    """Spread a total over seconds, unevenly; what is left over goes to the last one."""
    parts = [total / runtime * (1 + math.sin(second + client) / 10) for second in range(runtime - 1)]
    ios = (*parts, total - math.fsum(parts))
    return Cells(width_nanoseconds=SECOND, ios=ios, bytes=tuple(part * BLOCK for part in ios))
