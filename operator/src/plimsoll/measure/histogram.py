"""fio's latency histogram: exact merging, percentiles as fio prints them, and a compact text form.

The layout is from fio's `stat.h` (`FIO_IO_U_PLAT_BITS` 6, `FIO_IO_U_PLAT_GROUP_NR` 29): 1856 bins of nanoseconds, one
nanosecond wide below 128, then 64 bins to each power of two. A bin's midpoint is off by at most 1/128 of any value in
it. The last bin counts everything from 17.05 s on, so it has no midpoint to publish.

The text form is `fio-plat-6-29:` followed by base64 of the zlib stream of JSON `[[delta, count], ...]`: the non-empty
bins by ascending index, each as its distance from the previous one (the first from 0) and its number of operations.
"""

import base64
import json
import math
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise
from statistics import fmean, stdev
from typing import Annotated, Self

import msgspec

from plimsoll.api.names import LatencyKind
from plimsoll.api.operation import Latency
from plimsoll.measure.sample import LatencySample

LAYOUT = "fio-plat-6-29"
BIN_COUNT = 29 << 6
OPEN_BIN = BIN_COUNT - 1  # it counts everything from its lower bound on
PERCENTILES = (50, 90, 95, 99, 99.9, 99.99)
MINIMUM_BEYOND = 10  # a percentile with fewer operations beyond it depends on single operations and is omitted
_GROUP_BITS = 6
_MAX_COUNT = 2**63 - 1
# Every bin with the largest count takes 46 KB; larger content is damaged or an attack.
_MAX_TEXT_CHARACTERS = 64 * 1024
_MAX_JSON_BYTES = 64 * 1024
_Delta = Annotated[int, msgspec.Meta(ge=0, le=_MAX_COUNT)]
_Count = Annotated[int, msgspec.Meta(ge=1, le=_MAX_COUNT)]
_PAIRS = msgspec.json.Decoder(list[tuple[_Delta, _Count]])


class HistogramError(ValueError):
    """A histogram cannot be read; the message names the position."""


class UnknownBinError(HistogramError):
    """A value is not a bin of this layout, so the histogram has another one."""


def bin_index(value_ns: int) -> int:
    """Return the bin of a latency in nanoseconds (fio's `plat_val_to_idx`); ValueError if it is negative."""
    if value_ns < 0:
        raise ValueError(f"a latency cannot be negative: {value_ns} ns")
    shift = max(0, value_ns.bit_length() - _GROUP_BITS - 1)
    # The leading bit remains in the shifted value: it carries the index into the next group.
    return min((shift << _GROUP_BITS) + (value_ns >> shift), OPEN_BIN)


@cache  # there are BIN_COUNT of them, and a histogram asks for the same ones again and again
def bin_bounds(index: int) -> tuple[int, int]:
    """Return the lower bound, included, and the upper, excluded, of a bin in nanoseconds; or UnknownBinError."""
    if not 0 <= index < BIN_COUNT:
        raise UnknownBinError(f"{LAYOUT} has no bin {index}: bins are 0 to {BIN_COUNT - 1}")
    shift = max(0, (index >> _GROUP_BITS) - 1)
    lower = (index - (shift << _GROUP_BITS)) << shift
    return lower, lower + (1 << shift)


@cache
def bin_midpoint(index: int) -> int:
    """Return the value that represents a bin, in nanoseconds (fio's `plat_idx_to_val`); UnknownBinError without one."""
    lower, upper = bin_bounds(index)
    return lower + (upper - lower) // 2


def index_of_midpoint(key: int) -> int:
    """Return the bin that fio prints as `key` nanoseconds; UnknownBinError if it is not a midpoint of this layout."""
    if key < 0 or bin_midpoint(index := bin_index(key)) != key:
        raise UnknownBinError(f"{key} ns is not the midpoint of a bin of {LAYOUT}")
    return index


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Operations per latency bin."""

    counts: Mapping[int, int]  # index -> operations, by ascending index; empty bins are left out

    def __post_init__(self) -> None:
        """Sort and check the counts: UnknownBinError for an unknown bin, HistogramError for a negative count."""
        ordered = {index: count for index, count in sorted(self.counts.items()) if count}
        if ordered:
            bin_bounds(min(ordered))
            bin_bounds(max(ordered))
            if (least := min(ordered.values())) < 0:
                raise HistogramError(f"a bin counts {least} operations")
        object.__setattr__(self, "counts", ordered)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @classmethod
    def merge(cls, histograms: Iterable[Self]) -> Self:
        """Add histograms bin by bin: exactly the histogram of all their operations."""
        return cls._total(histogram.counts.items() for histogram in histograms)

    @classmethod
    def merge_texts(cls, texts: Iterable[str]) -> Self:
        """Add histograms in their text form, without creating an object for each; HistogramError as of `decode`."""
        return cls._total(map(_entries, texts))

    @classmethod
    def _total(cls, parts: Iterable[Iterable[tuple[int, int]]]) -> Self:
        totals = [0] * BIN_COUNT
        for entries in parts:
            for index, count in entries:
                totals[index] += count
        return cls(counts={index: count for index, count in enumerate(totals) if count})

    def percentile(self, p: float) -> int | None:
        """Return the p-th percentile (0 < p <= 100) in nanoseconds; None without operations, or in the open last bin.

        fio's rule: the midpoint of the first bin at which the cumulative count reaches p/100 of the total, where p is
        the exact value of the double. ValueError if p is out of range.
        """
        if not 0 < p <= 100:  # noqa: PLR2004  # the range of a percentage
            raise ValueError(f"a percentile lies above 0 and at most at 100: {p}")
        # Counts are whole: they reach the product exactly where they reach the next whole number.
        needed = math.ceil(Fraction(p) / 100 * self.total)
        cumulative = zip(self.counts, accumulate(self.counts.values()), strict=True)
        reached = next((index for index, count in cumulative if count >= needed), OPEN_BIN)
        return None if reached == OPEN_BIN else bin_midpoint(reached)

    def samples_beyond(self, p: float) -> int:
        """Return total * (1 - p/100), rounded down, with p as written: of 10 000 operations 10 lie beyond 99.9."""
        return math.floor(self.total * (1 - Fraction(str(p)) / 100))

    def encode(self) -> str:
        deltas = (after - before for before, after in pairwise((0, *self.counts)))
        pairs = [[delta, count] for delta, count in zip(deltas, self.counts.values(), strict=True)]
        stream = zlib.compress(json.dumps(pairs, separators=(",", ":")).encode(), level=9)
        return f"{LAYOUT}:{base64.b64encode(stream).decode()}"

    @classmethod
    def decode(cls, text: str) -> Self:
        """Read the text form; HistogramError if `encode` does not write such a text, of this layout and size."""
        return cls(counts=dict(_entries(text)))


def _entries(text: str) -> Iterable[tuple[int, int]]:
    layout, _, body = text[:_MAX_TEXT_CHARACTERS].partition(":")
    if layout != LAYOUT:
        raise UnknownBinError(f"histogram layout {layout[:40]!r} is not {LAYOUT!r}")
    if len(text) > _MAX_TEXT_CHARACTERS:
        raise HistogramError(f"histogram text is longer than {_MAX_TEXT_CHARACTERS} characters")
    decompressor = zlib.decompressobj()
    try:
        content = decompressor.decompress(base64.b64decode(body, validate=True), _MAX_JSON_BYTES)
    except (ValueError, zlib.error) as error:
        raise HistogramError(f"histogram text is damaged: {error}") from None
    if not decompressor.eof:
        raise HistogramError(f"histogram is cut off, or expands beyond {_MAX_JSON_BYTES} bytes")
    if decompressor.unused_data:
        raise HistogramError("histogram is followed by other data")
    try:
        pairs = _PAIRS.decode(content)
    except msgspec.DecodeError as error:
        raise HistogramError(f"histogram is not a list of [delta, count]: {error}") from None
    deltas = [delta for delta, _ in pairs]
    if 0 in deltas[1:]:
        raise HistogramError(f"histogram does not ascend at `$[{deltas.index(0, 1)}]`")
    bin_bounds(sum(deltas))
    return zip(accumulate(deltas), (count for _, count in pairs), strict=True)


def sample_of(nanoseconds: Sequence[int]) -> LatencySample:
    """Return the latency of operations that a tool timed one by one."""
    if not nanoseconds:
        return LatencySample(kind=LatencyKind.FULL)
    return LatencySample(
        kind=LatencyKind.FULL,
        count=len(nanoseconds),
        mean_nanoseconds=fmean(nanoseconds),
        standard_deviation_nanoseconds=stdev(nanoseconds) if len(nanoseconds) > 1 else None,
        min_nanoseconds=min(nanoseconds),
        max_nanoseconds=max(nanoseconds),
        histogram=Histogram(counts=Counter(map(bin_index, nanoseconds))).encode(),
    )


def merge_latencies(latencies: Iterable[Latency | LatencySample]) -> Latency:
    """Merge the latencies of clients or trials into one latency of all operations.

    The result is as detailed as the least detailed part. A part whose histogram is damaged or does not match its
    operations counts as one with a mean only: a percentile without it would look better than it is.
    """
    parts = list(latencies)
    kind = max((part.kind for part in parts), key=[*LatencyKind].index, default=LatencyKind.NONE)
    timed = [part for part in parts if part.count]
    count, greatest = sum(part.count for part in timed), max((part.max_nanoseconds or 0 for part in timed), default=0)
    if kind in (LatencyKind.NONE, LatencyKind.MAX_ONLY) or not timed:
        known = greatest if timed and kind is LatencyKind.MAX_ONLY else None
        return Latency(kind=kind, count=count, max_nanoseconds=known)
    merged = None
    if kind is LatencyKind.FULL:
        try:
            merged = Histogram.merge(map(histogram_of, parts))
        except HistogramError:
            kind = LatencyKind.MEAN_ONLY
    # From the first mean on, so that a single part keeps its own.
    start = timed[0].mean_nanoseconds or 0.0
    mean = start + math.fsum(part.count * ((part.mean_nanoseconds or 0.0) - start) for part in timed) / count
    return Latency(
        kind=kind,
        count=count,
        mean_nanoseconds=mean,
        standard_deviation_nanoseconds=_deviation(timed, count, mean),
        min_nanoseconds=min(part.min_nanoseconds or 0 for part in timed),
        max_nanoseconds=greatest,
        percentiles={} if merged is None else percentiles_of(merged),
        histogram=None if merged is None else merged.encode(),
    )


def _deviation(parts: Sequence[Latency | LatencySample], count: int, mean: float) -> float | None:
    """Return the sample standard deviation of all operations; None if a part's is unknown, or of one operation."""
    if count == 1 or any(part.standard_deviation_nanoseconds is None and part.count > 1 for part in parts):
        return None
    within = math.fsum((part.standard_deviation_nanoseconds or 0.0) ** 2 * (part.count - 1) for part in parts)
    between = math.fsum(part.count * ((part.mean_nanoseconds or 0.0) - mean) ** 2 for part in parts)
    return math.sqrt((within + between) / (count - 1))


def histogram_of(latency: Latency | LatencySample) -> Histogram:
    """Return the histogram of full latency; HistogramError if it is damaged, or not of its operations."""
    histogram = Histogram(counts={}) if latency.histogram is None else Histogram.decode(latency.histogram)
    if histogram.total != latency.count:
        raise HistogramError(f"the histogram contains {histogram.total} of {latency.count} timed operations")
    return histogram


def percentiles_of(histogram: Histogram) -> dict[str, int]:
    """Return the percentiles with enough operations beyond them: `"99.9"` -> nanoseconds."""
    return {
        str(p): value
        for p in PERCENTILES
        if histogram.samples_beyond(p) >= MINIMUM_BEYOND and (value := histogram.percentile(p)) is not None
    }
