"""fio's latency of one operation: moments and histogram, checked against each other."""

import math
import re

from plimsoll.api.names import LatencyKind
from plimsoll.measure.histogram import (
    BIN_COUNT,
    Histogram,
    UnknownBinError,
    bin_bounds,
    bin_index,
    bin_midpoint,
    index_of_midpoint,
)
from plimsoll.measure.sample import LatencySample
from plimsoll.tools.command import OutputError
from plimsoll.tools.reading import JsonObject, printable

# Nanoseconds; fio prints six decimals.
_ROUNDING = 1.0
_BIN = re.compile(r"\d{1,19}", re.ASCII)


def read_latency(node: JsonObject) -> LatencySample:
    """Return the latency of one job.

    Raises:
        OutputError: a field is missing or malformed, the histogram does not hold exactly the timed operations, or the
            moments do not fit the histogram.

    """
    histogram = read_histogram(node)
    if not histogram.total:
        return LatencySample(kind=LatencyKind.FULL)
    sample = LatencySample(
        kind=LatencyKind.FULL,
        count=histogram.total,
        mean_nanoseconds=node.number("mean"),
        standard_deviation_nanoseconds=node.number("stddev"),
        min_nanoseconds=node.count("min"),
        max_nanoseconds=node.count("max"),
        histogram=histogram.encode(),
    )
    _check_moments(node, sample, histogram)
    return sample


def read_histogram(node: JsonObject) -> Histogram:
    """Return the bins of a latency; without operations, where fio prints none, an empty histogram.

    Raises:
        OutputError: a field is missing or malformed, or the bins do not hold exactly the timed operations.

    """
    count = node.count("N")
    if not count:
        return Histogram(counts={})
    histogram = _bins(node.child("bins"))
    if histogram.total != count:
        raise OutputError(f"{node.path}.bins holds {histogram.total} operations, but N is {count}")
    return histogram


def _bins(bins: JsonObject) -> Histogram:
    counts: dict[int, int] = {}
    for key in bins.fields:
        try:
            # -1 is not a bin either.
            index = index_of_midpoint(int(key) if _BIN.fullmatch(key) else -1)
        except UnknownBinError:
            raise OutputError(f"{bins.path}.{printable(key)} is not a bin of the known histogram layout") from None
        counts[index] = counts.get(index, 0) + bins.count(key)
    return Histogram(counts=counts)


def _check_moments(node: JsonObject, sample: LatencySample, histogram: Histogram) -> None:
    """Refuse moments that do not fit the histogram; nothing else would reveal them."""
    for name, value, index in (
        ("min", sample.min_nanoseconds, min(histogram.counts)),
        ("max", sample.max_nanoseconds, max(histogram.counts)),
    ):
        if bin_index(value) != index:
            raise OutputError(f"{node.path}.{name} is {value}, but the outermost bin is {bin_midpoint(index)}")
    mean, deviation, error = _moments(histogram, sample.max_nanoseconds)
    for name, found, about in (
        ("mean", sample.mean_nanoseconds, mean),
        ("stddev", sample.standard_deviation_nanoseconds, deviation),
    ):
        if abs(found - about) > error + _ROUNDING:
            raise OutputError(f"{node.path}.{name} is {found}, but the bins yield about {about:.0f}")


def _moments(histogram: Histogram, greatest: int) -> tuple[float, float, float]:
    """Return mean and standard deviation of the bins' midpoints, and their maximum error.

    Both are norms of the operations' values, so the error of either is at most the root mean square of the distances
    between values and midpoints.
    """
    count, degrees = histogram.total, max(1, histogram.total - 1)
    mean = math.fsum(bin_midpoint(index) * ios for index, ios in histogram.counts.items()) / count
    squares = math.fsum((bin_midpoint(index) - mean) ** 2 * ios for index, ios in histogram.counts.items())
    errors = math.fsum(_half_width(index, greatest) ** 2 * ios for index, ios in histogram.counts.items())
    return mean, math.sqrt(squares / degrees), math.sqrt(errors / degrees)


def _half_width(index: int, greatest: int) -> int:
    lower, upper = bin_bounds(index)
    # The last bin is open.
    return (max(upper, greatest) if index == BIN_COUNT - 1 else upper) - (lower + upper) // 2
