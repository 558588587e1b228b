"""The speed of the OSDs of a cluster, each measured alone."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, median

from plimsoll.api.surroundings import OsdResult, Osds, Spread
from plimsoll.measure.sample import Measurement, OsdRate
from plimsoll.measure.series import rounded_iops

MAX_SLOWEST_OSDS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class OsdSpeed:
    """One OSD's rates, over all measurements of it."""

    osd: int
    iops: float
    bytes_per_second: float


def speeds_of(measurements: Iterable[Measurement]) -> list[OsdSpeed]:
    """Return the speed of each OSD, by its number."""
    rates = defaultdict[int, list[OsdRate]](list)
    for measurement in measurements:
        for rate in measurement.osds:
            rates[rate.osd].append(rate)
    return [_speed(osd, found) for osd, found in sorted(rates.items())]


def osds_summary(measurements: Iterable[Measurement]) -> Osds | None:
    """Return the OSDs' part of the result; None if no OSD was measured."""
    speeds = speeds_of(measurements)
    if not speeds:
        return None
    slowest = sorted(speeds, key=lambda speed: (speed.bytes_per_second, speed.osd))
    return Osds(
        count=len(speeds),
        iops=_spread([speed.iops for speed in speeds]),
        bytes_per_second=_spread([speed.bytes_per_second for speed in speeds]),
        mean_iops=rounded_iops(fmean(speed.iops for speed in speeds)),
        mean_bytes_per_second=round(fmean(speed.bytes_per_second for speed in speeds)),
        slowest=tuple(
            OsdResult(osd=speed.osd, iops=rounded_iops(speed.iops), bytes_per_second=round(speed.bytes_per_second))
            for speed in slowest[:MAX_SLOWEST_OSDS]
        ),
    )


def _speed(osd: int, rates: list[OsdRate]) -> OsdSpeed:
    seconds = sum(rate.seconds for rate in rates)
    return OsdSpeed(
        osd=osd,
        iops=sum(rate.ios for rate in rates) / seconds,
        bytes_per_second=sum(rate.bytes for rate in rates) / seconds,
    )


def _spread(values: list[float]) -> Spread:
    return Spread(min=rounded_iops(min(values)), median=rounded_iops(median(values)), max=rounded_iops(max(values)))
