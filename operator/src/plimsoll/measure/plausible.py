"""Which numbers of a client's document cannot be. One such number costs the part of the document that it stands in."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from plimsoll.measure.sample import ClientDocument, DeviceUse, Gaps, HostUse, Measurement, OperationSample, OsdRate

_LIMIT = 2**63
_PAGE = 4096
# A device's busy time is counted in clock ticks, and may exceed the time between two readings by one or two.
_ROUNDED_SHARE = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class _Number:
    """A number, and the range it must lie in; `greatest` is included, None is an absent number."""

    name: str
    value: float | None
    least: float = 0
    greatest: float = _LIMIT - 1024

    @property
    def is_plausible(self) -> bool:
        """Whether it can be; a comparison with a NaN is false, so a NaN cannot."""
        return self.value is None or self.least <= self.value <= self.greatest


def implausible_number(document: ClientDocument, measurement: Measurement) -> str:
    """Name the first number of a measurement that cannot be; empty if there is none."""
    found = _first([*_whole(document, measurement), *_parts(measurement.operations), *_osds(measurement.osds)])
    operations = Counter(sample.operation for sample in measurement.operations)
    found = found or _wrong_gaps(measurement.gaps)
    return found or next((f"{operation} stands there {n} times" for operation, n in operations.items() if n > 1), "")


def implausible_host(host: HostUse) -> str:
    """Name the first number of an observation of the host that cannot be; empty if there is none."""
    return _first([*_processors_and_memory(host), *_traffic(host)])


def _first(numbers: Iterable[_Number]) -> str:
    return next((f"{item.name} is {str(item.value)[:40]}" for item in numbers if not item.is_plausible), "")


def _whole(document: ClientDocument, measurement: Measurement) -> Iterator[_Number]:
    yield _Number(name="launchedAt", value=document.launched_at)
    yield _Number(name="dataSetBytes", value=document.data_set_bytes)
    yield _Number(name="startedAt", value=measurement.started_at)
    yield _Number(name="runtime", value=measurement.runtime)
    yield _Number(name="submitters", value=measurement.submitters, least=1)
    yield _Number(name="inFlight", value=measurement.in_flight, least=1)
    yield _Number(name="gaps.widthNanoseconds", value=measurement.gaps.width_nanoseconds if measurement.gaps else None)


def _parts(samples: Sequence[OperationSample]) -> Iterator[_Number]:
    for sample in samples:
        latency = sample.latency
        for name, value in (
            ("ios", sample.ios),
            ("bytes", sample.bytes),
            ("shortIos", sample.short_ios),
            ("droppedIos", sample.dropped_ios),
            ("lostIos", sample.lost_ios),
            ("submissionNanoseconds", sample.submission_nanoseconds),
            ("slices.widthNanoseconds", sample.slices.width_nanoseconds if sample.slices else None),
            ("latency.count", latency.count),
            ("latency.meanNanoseconds", latency.mean_nanoseconds),
            ("latency.standardDeviationNanoseconds", latency.standard_deviation_nanoseconds),
            ("latency.minNanoseconds", latency.min_nanoseconds),
            ("latency.maxNanoseconds", latency.max_nanoseconds),
        ):
            yield _Number(name=f"{sample.operation}.{name}", value=value)


def _wrong_gaps(gaps: Gaps | None) -> str:
    if gaps is None:
        return ""
    if len(gaps.starts) != len(gaps.lengths):
        return f"gaps has {len(gaps.starts)} starts and {len(gaps.lengths)} lengths"
    end = 0
    for start, length in zip(gaps.starts, gaps.lengths, strict=True):
        if not end <= start <= start + length < _LIMIT:
            return f"a gap of {str(length)[:40]} ms begins {str(start)[:40]} ms after the start"
        end = start + length
    return ""


def _osds(rates: Sequence[OsdRate]) -> Iterator[_Number]:
    for rate in rates:
        yield _Number(name="osds.osd", value=rate.osd)
        yield _Number(name="osds.ios", value=rate.ios)
        yield _Number(name="osds.bytes", value=rate.bytes)
        yield _Number(name="osds.seconds", value=rate.seconds, least=1e-6)


def _processors_and_memory(host: HostUse) -> Iterator[_Number]:
    yield _Number(name="seconds", value=host.seconds, least=1e-3)
    yield _Number(name="cpu.limit", value=host.cpu.limit, least=1e-3)
    yield _Number(name="cpu.used", value=host.cpu.used)
    yield _Number(name="cpu.throttledPeriods", value=host.cpu.throttled_periods)
    yield _Number(name="cpu.throttledSeconds", value=host.cpu.throttled_seconds)
    yield _Number(name="cpu.nodeBusy", value=host.cpu.node_busy, greatest=1)
    yield _Number(name="cpu.nodeProcessors", value=host.cpu.node_processors, least=1)
    yield _Number(name="memory.limit", value=host.memory.limit)
    yield _Number(name="memory.used", value=host.memory.used)
    yield _Number(name="memory.nodeTotal", value=host.memory.node_total, least=1)
    yield _Number(name="memory.nodeAvailable", value=host.memory.node_available)


def _traffic(host: HostUse) -> Iterator[_Number]:
    yield _Number(name="network.received", value=host.network.received)
    yield _Number(name="network.sent", value=host.network.sent)
    yield _Number(name="network.link", value=host.network.link, least=1)
    yield from _device("device", host.device)
    yield from _device("disk", host.disk)
    yield _Number(name="uncutBytes", value=host.uncut_bytes, least=_PAGE)
    if host.tool is not None:
        yield _Number(name="tool.read", value=host.tool.read)
        yield _Number(name="tool.written", value=host.tool.written)


def _device(name: str, device: DeviceUse | None) -> Iterator[_Number]:
    if device is not None:
        yield _Number(name=f"{name}.read", value=device.read)
        yield _Number(name=f"{name}.written", value=device.written)
        yield _Number(name=f"{name}.operations", value=device.operations)
        yield _Number(name=f"{name}.reads", value=device.reads)
        yield _Number(name=f"{name}.writes", value=device.writes)
        yield _Number(name=f"{name}.busy", value=device.busy, greatest=_ROUNDED_SHARE)
        yield _Number(name=f"{name}.queue", value=device.queue)
