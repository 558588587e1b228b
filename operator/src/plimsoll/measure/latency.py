"""Merges latencies, of the clients of a trial and of the trials of a point.

Bins are added, moments are merged, and percentiles are read from the merged bins only. Neither means nor percentiles
are ever averaged: of nine clients with a p99 of 1 ms and one with 100 ms the mean is 10.9 ms, while the p99 of all
their operations can lie anywhere up to 100 ms.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from plimsoll.api.names import LatencyKind
from plimsoll.api.result import Latency
from plimsoll.measure.histogram import Histogram, HistogramError, bin_index
from plimsoll.measure.sample import LatencySample

PERCENTILES = (50, 90, 95, 99, 99.9, 99.99)
MINIMUM_BEYOND = 10
"""A percentile with fewer operations beyond it depends on single operations and is omitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moments:
    """Count, mean, sum of squared distances from the mean, least and greatest; in nanoseconds."""

    count: int
    mean: float
    squares: float
    least: int
    greatest: int


def sample_of(nanoseconds: Sequence[int]) -> LatencySample:
    """Return the latency of operations that a tool timed one by one."""
    if not nanoseconds:
        return LatencySample(kind=LatencyKind.FULL)
    mean = math.fsum(nanoseconds) / len(nanoseconds)
    squares = math.fsum((time - mean) ** 2 for time in nanoseconds)
    return LatencySample(
        kind=LatencyKind.FULL,
        count=len(nanoseconds),
        mean_nanoseconds=mean,
        standard_deviation_nanoseconds=math.sqrt(squares / max(1, len(nanoseconds) - 1)),
        min_nanoseconds=min(nanoseconds),
        max_nanoseconds=max(nanoseconds),
        histogram=Histogram(counts=Counter(map(bin_index, nanoseconds))).encode(),
    )


def merge_samples(samples: Iterable[LatencySample]) -> Latency:
    """Merge the latencies of the clients of a trial."""
    return merge_latencies([_published(sample) for sample in samples])


def merge_latencies(latencies: Iterable[Latency]) -> Latency:
    """Merge latencies into that of all their operations.

    The result is as detailed as the least detailed part. A part whose histogram is damaged or does not match its
    operations counts as one with a mean only: a percentile without it would look better than it is.
    """
    parts = list(latencies)
    histograms = [_histogram(part) for part in parts]
    kind = _weakest(parts, histograms)
    moments = reduce(_chan, [_moments(part) for part in parts if part.count]) if any(p.count for p in parts) else None
    if kind is LatencyKind.NONE or moments is None:
        return Latency(kind=kind, count=sum(part.count for part in parts))
    if kind is LatencyKind.MAX_ONLY:
        return Latency(kind=kind, count=moments.count, max_nanoseconds=moments.greatest)
    known = [histogram for histogram in histograms if histogram is not None]
    merged = Histogram.merge(known) if kind is LatencyKind.FULL else None
    return Latency(
        kind=kind,
        count=moments.count,
        mean_nanoseconds=moments.mean,
        standard_deviation_nanoseconds=math.sqrt(moments.squares / max(1, moments.count - 1)),
        min_nanoseconds=moments.least,
        max_nanoseconds=moments.greatest,
        percentiles={} if merged is None else percentiles_of(merged),
        histogram=None if merged is None else merged.encode(),
    )


def histogram_problem(latency: Latency | LatencySample) -> str:
    """Return the problem of a histogram that full latency needs; empty if there is none."""
    if latency.kind is not LatencyKind.FULL:
        return ""
    try:
        total = _decoded(latency.histogram).total
    except HistogramError as error:
        return str(error)
    return "" if total == latency.count else f"the histogram contains {total} of {latency.count} timed operations"


def percentiles_of(histogram: Histogram) -> dict[str, int]:
    """Return the percentiles with enough operations beyond them: `"99.9"` -> nanoseconds."""
    return {
        str(p): value
        for p in PERCENTILES
        if histogram.samples_beyond(p) >= MINIMUM_BEYOND and (value := histogram.percentile(p)) is not None
    }


def _published(sample: LatencySample) -> Latency:
    if sample.kind is LatencyKind.NONE or not sample.count:
        return Latency(kind=sample.kind, count=sample.count)
    if sample.kind is LatencyKind.MAX_ONLY:
        return Latency(kind=sample.kind, count=sample.count, max_nanoseconds=sample.max_nanoseconds)
    return Latency(
        kind=sample.kind,
        count=sample.count,
        mean_nanoseconds=sample.mean_nanoseconds,
        standard_deviation_nanoseconds=sample.standard_deviation_nanoseconds,
        min_nanoseconds=sample.min_nanoseconds,
        max_nanoseconds=sample.max_nanoseconds,
        histogram=sample.histogram,
    )


def _decoded(text: str | None) -> Histogram:
    return Histogram.decode(text) if text is not None else Histogram(counts={})


def _histogram(part: Latency) -> Histogram | None:
    """Return the histogram of a part with full latency; None if it is damaged or does not match."""
    if part.kind is not LatencyKind.FULL:
        return None
    try:
        histogram = _decoded(part.histogram)
    except HistogramError:
        return None
    return histogram if histogram.total == part.count else None


def _weakest(parts: list[Latency], histograms: list[Histogram | None]) -> LatencyKind:
    kinds = {part.kind for part in parts}
    if not kinds or LatencyKind.NONE in kinds:
        return LatencyKind.NONE
    if LatencyKind.MAX_ONLY in kinds:
        return LatencyKind.MAX_ONLY
    return LatencyKind.MEAN_ONLY if any(histogram is None for histogram in histograms) else LatencyKind.FULL


def _moments(part: Latency) -> _Moments:
    deviation = part.standard_deviation_nanoseconds or 0.0
    return _Moments(
        count=part.count,
        mean=part.mean_nanoseconds or 0.0,
        squares=deviation * deviation * (part.count - 1),
        least=part.min_nanoseconds or 0,
        greatest=part.max_nanoseconds or 0,
    )


def _chan(one: _Moments, other: _Moments) -> _Moments:
    """Merge by the formula of Chan, Golub and LeVeque, as fio's `__sum_stat` does."""
    count = one.count + other.count
    distance = other.mean - one.mean
    return _Moments(
        count=count,
        mean=one.mean + distance * other.count / count,
        squares=one.squares + other.squares + distance * distance * one.count * other.count / count,
        least=min(one.least, other.least),
        greatest=max(one.greatest, other.greatest),
    )
