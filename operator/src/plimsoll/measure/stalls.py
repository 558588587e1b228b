"""Time in which nothing was completed.

Two things tell of it, and neither counts syncs, since no tool logs when they were done. A series has cells, one second
long, which may be empty. Some tools also tell when their operations completed, much finer, and so the gaps between
them. Where there are gaps they are taken, else the empty cells.

All clients stood still where all of them did. By the cells alone a stall of L seconds is reported with more than L - 2:
the cells at either end of it may hold something. Every stall of two seconds and more is found by them, on each client
and on all together. By gaps it is found too, and shorter ones from 100 ms on where they cannot be chance (`freezes`):
from a second on they are stalls like the others, and below that they count if there are many.

A client stood still alone in what is left of its own time. A stall of all may begin and end a little earlier or later
on each client, by a cell if cells tell of it; what lies so near to such a stretch is held against nobody alone.

A client that waits for a sync completes nothing meanwhile, and that is no stall: what is not longer than its longest
sync is left out.

Being still is not a fault of storage that is slow. Whether the two can be told apart depends on how many operations
are completed per second in which there is a chance of any, the pace, of each client and of all together.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

from plimsoll.api.names import Operation
from plimsoll.api.result import Stalls
from plimsoll.measure.freezes import LONG, VERY_LONG, Doer, Sharpness, Still, freezes_among
from plimsoll.measure.intake import Measured
from plimsoll.measure.sample import Gaps
from plimsoll.measure.series import Share
from plimsoll.measure.stretches import both, joined, length_of, without
from plimsoll.measure.window import NANOSECONDS, Interval

LEAST_PACE = 10
"""Operations per second, apart from stalls, from which on an empty second may be one: even if they came at random,
fewer than one second in 20 000 would be empty."""
_CHANCE = 100
"""One trial in so many may have a second that is empty by chance, however many clients and seconds it has."""
_MILLISECOND = 10**6
_BESIDE_SYNC = 100 * _MILLISECOND
"""What lies between a sync and the completions before and after it belongs to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standstill:
    """How long a trial's clients stood still within the common window.

    Attributes:
        window: seconds.
        clients: client -> seconds.
        common: when all of them did.
        own: client -> what is no part of that, nor of the edges of such a stretch.
        client_paces: client -> operations per second that it completes while it does not stand still; of a client that
            never does anything, what the others complete on average.
        pace: operations per second that all complete while not all stand still.

    """

    window: float
    clients: Mapping[int, float]
    common: Still
    own: Mapping[int, Still]
    client_paces: Mapping[int, float]
    pace: float

    @property
    def together(self) -> float:
        """Seconds in which all clients stood still."""
        return self.common.seconds

    @property
    def alone(self) -> Mapping[int, float]:
        """Client -> seconds in which it did and not all."""
        return {client: still.seconds for client, still in self.own.items()}

    def held(self) -> float:
        """Return the seconds that are held against all clients together: none that may be chance."""
        return self.common.held(self.window, stalls_tell=self.pace >= least_pace(self.window))

    def held_against(self, client: int) -> float:
        """Return those that are held against one client alone."""
        tells = self.client_paces[client] >= least_pace(self.window * len(self.clients))
        return self.own[client].held(self.window, stalls_tell=tells)

    def published(self) -> Stalls:
        """Return what stands in the result."""
        worst = min(self.clients, key=lambda client: (-self.clients[client], client))
        return Stalls(
            seconds=self.together,
            worst_client_seconds=self.clients[worst],
            worst_client=worst if self.clients[worst] else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Idle:
    """When somebody completed nothing.

    Attributes:
        known: all that is known.
        stalls: the part of it that is a stall unless the pace is slow.
        off: the part of those that is no time in which somebody works. Of a stall that no cell shows, a second does
            count: else who does an operation now and then would work fast, in next to no time.

    """

    known: list[Interval]
    stalls: list[Interval]
    off: list[Interval]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stretches:
    """When somebody stood still: in stalls, and in shorter freezes."""

    stalls: list[Interval]
    freezes: list[Interval]

    @classmethod
    def of(cls, idle: _Idle, doer: Doer, window: Interval, sharpness: Sharpness) -> "_Stretches":
        freezes = freezes_among(idle.known, idle.stalls, doer, window, sharpness)
        long = [stretch for stretch in freezes if stretch.length >= LONG]
        return cls(stalls=joined([*idle.stalls, *long]), freezes=[one for one in freezes if one.length < LONG])

    @property
    def all(self) -> list[Interval]:
        """All of it."""
        return joined([*self.stalls, *self.freezes])


def least_pace(seconds: float) -> float:
    """Return the pace at which not one of so many seconds would be empty by chance: `e^-pace` of them are."""
    return max(LEAST_PACE, math.log(_CHANCE * max(1.0, seconds)))


def standstill_of(measured: Collection[Measured], window: Interval) -> Standstill | None:
    """Return how long the clients stood still; None without a window, or if a client keeps no usable record."""
    if not measured or not window.length or not all(_has_series(item) or item.measurement.gaps for item in measured):
        return None
    sharpness = Sharpness.of(
        max((gaps.width_nanoseconds for item in measured if (gaps := item.measurement.gaps)), default=0)
    )
    idle = {item.client: _idle(item, window) for item in measured}
    doers = {item.client: _doer(item, window) for item in measured}
    everybody = Doer.together(doers.values())
    common = _common(idle.values())
    still = _Stretches.of(common, everybody, window, sharpness)
    # The same stall may begin and end a little differently on each client.
    shared = joined(
        [
            *joined(still.stalls, wider_by=_greatest_width(measured)),
            *joined(still.freezes, wider_by=sharpness.blur),
        ]
    )
    clients, own = dict[int, int](), dict[int, Still]()
    for client, part in idle.items():
        found = _Stretches.of(part, doers[client], window, sharpness)
        clients[client] = length_of(joined([*found.all, *still.all]))
        rest = [stretch for stretch in without(found.freezes, shared) if stretch.length >= sharpness.least]
        own[client] = Still.within(without(found.stalls, shared), rest, sharpness)
    ios = {client: doer.ios for client, doer in doers.items()}
    active = {client: window.length - length_of(part.off) for client, part in idle.items()}
    return Standstill(
        window=window.length / NANOSECONDS,
        clients={client: length / NANOSECONDS for client, length in clients.items()},
        common=Still.within(still.stalls, still.freezes, sharpness),
        own=own,
        client_paces=_paces(ios, active),
        pace=_pace(everybody.ios, window.length - length_of(common.off)),
    )


def _paces(ios: Mapping[int, float], active: Mapping[int, int]) -> dict[int, float]:
    usual = _pace(sum(ios.values()), sum(active.values()))
    return {client: _pace(done, active[client]) if done else usual for client, done in ios.items()}


def _timed(measured: Iterable[Measured]) -> Iterable[Share]:
    return (share for item in measured for share in item.shares if share.sample.operation is not Operation.SYNC)


def _has_series(item: Measured) -> bool:
    return not any(share.lacks_series for share in _timed([item]))


def _pace(ios: float, nanoseconds: int) -> float:
    return ios * NANOSECONDS / nanoseconds if nanoseconds else 0.0


def _doer(item: Measured, window: Interval) -> Doer:
    ios = sum(share.within(window).ios for share in _timed([item]))
    # Where it is not known how many were in flight, there was one at least.
    return Doer(ios=ios, in_flight=item.measurement.in_flight or 1)


def _common(clients: Collection[_Idle]) -> _Idle:
    known = reduce(both, (idle.known for idle in clients))
    stalls = reduce(both, (idle.stalls for idle in clients))
    off = reduce(both, (idle.off for idle in clients))
    return _Idle(known=known, stalls=joined([*stalls, *_very_long(known)]), off=off)


def _very_long(stretches: Iterable[Interval]) -> list[Interval]:
    return [stretch for stretch in stretches if stretch.length >= VERY_LONG]


def _narrowed(stretches: Iterable[Interval]) -> list[Interval]:
    """Return the long stretches with half a second less at either end."""
    half = LONG // 2
    return [Interval(start=one.start + half, end=one.end - half) for one in stretches if one.length > LONG]


def _idle(item: Measured, window: Interval) -> _Idle:
    """Return when a client completed nothing inside the window."""
    syncs = (sample for sample in item.measurement.operations if sample.operation is Operation.SYNC)
    longest_sync = max((sample.latency.max_nanoseconds for sample in syncs), default=0)
    # Cells are as good as the thread that wrote them was on time; completions tell better.
    by_cells = item.measurement.gaps is None
    empty = reduce(both, map(_empty, _timed([item])), [item.interval]) if by_cells else []
    stalls = [stretch for stretch in empty if stretch.length > longest_sync]
    told = _told(item.measurement.gaps, item.interval)
    gaps = [gap for gap in told if not longest_sync or gap.length > longest_sync + _BESIDE_SYNC]
    return _Idle(
        known=both(joined([*stalls, *gaps]), [window]),
        stalls=both(joined([*stalls, *_very_long(gaps)]), [window]),
        off=both(joined([*stalls, *_narrowed(gaps)]), [window]),
    )


def _told(gaps: Gaps | None, interval: Interval) -> list[Interval]:
    if gaps is None:
        return []
    starts = (interval.start + start * _MILLISECOND for start in gaps.starts)
    told = [
        Interval(start=start, end=start + length * _MILLISECOND)
        for start, length in zip(starts, gaps.lengths, strict=True)
    ]
    return both(told, [interval])


def _empty(share: Share) -> list[Interval]:
    """Return the whole cells without an operation, neighbours as one."""
    cells, interval = share.sample.cells, share.interval
    if cells is None or not share.sample.ios:
        return [interval]
    width = cells.width_nanoseconds
    starts = (
        interval.start + index * width for index, count in enumerate(cells.ios[: interval.length // width]) if not count
    )
    return joined(Interval(start=start, end=start + width) for start in starts)


def _greatest_width(measured: Iterable[Measured]) -> int:
    return max((share.curve.width for share in _timed(measured) if share.curve is not None), default=LONG)
