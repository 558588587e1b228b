"""A trial before, during and after its disturbance."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, pairwise

from plimsoll.api.names import Operation
from plimsoll.api.operation import OperationResult
from plimsoll.api.result import PHASES, DisturbanceResult, Phase, PhaseOperation
from plimsoll.ceph.disturbance import clean_after
from plimsoll.measure.histogram import Histogram, HistogramError, percentiles_of
from plimsoll.measure.intake import ClientMeasurement, TrialFacts
from plimsoll.measure.stalls import standstill_of
from plimsoll.measure.timeline import NANOSECONDS, Interval, Share, add, rounded_iops

Shares = Mapping[Operation, Sequence[Share]]


def calm_part(facts: TrialFacts, window: Interval | None) -> Interval | None:
    """Return the part of a window before the disturbance; all of it without one."""
    if window is None or (outage := facts.outage) is None:
        return window
    return Interval(start=window.start, end=min(max(outage.start, window.start), window.end))


def disturbance_of(
    facts: TrialFacts, window: Interval | None, shares: Shares, measured: Sequence[ClientMeasurement]
) -> DisturbanceResult | None:
    """Return the phases of a trial, and when its cluster was clean again; None if no OSD was away in the window."""
    outage, watch = facts.outage, facts.cluster
    if outage is None or watch is None or window is None or not window.start < outage.start < outage.end < window.end:
        return None
    last = max((sample.at for sample in watch.samples if sample.status), default=outage.end)
    edges = (window.start, outage.start, outage.end, window.end)
    phases = []
    for name, (start, end) in zip(PHASES, pairwise(edges), strict=True):
        part = Interval(start=start, end=end)
        standstill = standstill_of(measured, part)
        phases.append(
            Phase(
                name=name,
                seconds=round(part.length / NANOSECONDS, 3),
                stall_seconds=standstill.published().seconds if standstill else None,
                operations=tuple(_operations(shares, part)),
            )
        )
    clean = clean_after(watch.samples, outage)
    return DisturbanceResult(
        action=outage.action,
        osds=outage.osds,
        start_seconds=round((outage.start - window.start) / NANOSECONDS, 3),
        end_seconds=round((outage.end - window.start) / NANOSECONDS, 3),
        clean_seconds=None if clean is None else round(clean, 3),
        watched_seconds=round(max(0, last - outage.end) / NANOSECONDS, 3),
        phases=tuple(phases),
    )


def with_latencies(result: OperationResult, shares: Sequence[Share], window: Interval) -> OperationResult:
    """Return the result with the 99th percentile in each interval of its series, if the tool records latencies."""
    series = result.series
    if series is None or not series.iops:
        return result
    width = series.interval_seconds * NANOSECONDS
    starts = [window.start + number * width for number in range(len(series.iops))]
    try:
        texts: list[list[str]] = [[] for _ in starts]
        for piece, text in chain.from_iterable(share.slices() for share in shares):
            number = min((piece.start + piece.length // 2 - window.start) // width, len(starts) - 1)
            if number >= 0:
                texts[number].append(text)
        values = [Histogram.merge_texts(part).percentile(99) for part in texts]
    except HistogramError:
        return result
    tails = tuple(value or 0 for value in values) if any(values) else ()
    return result.model_copy(update={"series": series.model_copy(update={"p99_nanoseconds": tails})})


def _operations(shares: Shares, part: Interval) -> Iterator[PhaseOperation]:
    for operation, of_operation in shares.items():
        rate = add([share.within(part) for share in of_operation]).per_second(part.length)
        yield PhaseOperation(
            operation=operation,
            iops=rounded_iops(rate.ios),
            bytes_per_second=round(rate.bytes),
            percentiles=_percentiles(of_operation, part),
        )


def _percentiles(shares: Collection[Share], part: Interval) -> dict[str, int]:
    try:
        # A slice belongs to the phase in which its midpoint lies.
        texts = [
            text
            for share in shares
            for piece, text in share.slices()
            if part.start <= piece.start + piece.length // 2 < part.end
        ]
        return percentiles_of(Histogram.merge_texts(texts)) if texts else {}
    except HistogramError:
        return {}
