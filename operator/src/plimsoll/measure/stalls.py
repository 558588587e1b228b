"""Time in which nothing was completed.

A client stood still in every whole cell of its series, one second long with fio, in which it completed no operation of
any kind; syncs are not looked at, since no tool logs when they were done. Such cells lie on the client's own clock,
which began with its measuring. All clients stood still where all of them did: the length of time that lies in an empty
cell of each, whatever the fractions of a second by which their cells are shifted against each other.

A client stood still alone in what is left of its own time. The same shift makes a stall of all begin and end up to a
cell earlier or later on each client, so what lies within one cell of such a stretch is held against nobody alone.

So what is reported was certainly idle, and a stall of L seconds is reported with more than L - 2: the cells at either
end of it may hold something. Every stall of two seconds and more is found, on each client and on all together.

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
from plimsoll.measure.intake import Measured
from plimsoll.measure.series import Share
from plimsoll.measure.window import NANOSECONDS, Interval

LEAST_PACE = 10
"""Operations per second, apart from stalls, from which on an empty second may be one: even if they came at random,
fewer than one second in 20 000 would be empty."""
_CHANCE = 100
"""One trial in so many may have a second that is empty by chance, however many clients and seconds it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standstill:
    """How long a trial's clients stood still within the common window.

    Attributes:
        window: seconds.
        clients: client -> seconds.
        together: seconds in which all of them did.
        alone: client -> seconds of its own that are no part of those, nor of the edges of such a stretch.
        client_paces: client -> operations per second that it completes while it does not stand still; of a client that
            never does anything, what the others complete on average.
        pace: operations per second that all complete while not all stand still.

    """

    window: float
    clients: Mapping[int, float]
    together: float
    alone: Mapping[int, float]
    client_paces: Mapping[int, float]
    pace: float

    def tells(self) -> bool:
        """Whether seconds in which nobody completes anything cannot be chance."""
        return self.pace >= least_pace(self.window)

    def tells_of(self, client: int) -> bool:
        """Whether those of one client cannot."""
        return self.client_paces[client] >= least_pace(self.window * len(self.clients))

    def published(self) -> Stalls:
        """Return what stands in the result."""
        worst = min(self.clients, key=lambda client: (-self.clients[client], client))
        return Stalls(
            seconds=self.together,
            worst_client_seconds=self.clients[worst],
            worst_client=worst if self.clients[worst] else None,
        )


def least_pace(seconds: float) -> float:
    """Return the pace at which not one of so many seconds would be empty by chance: `e^-pace` of them are."""
    return max(LEAST_PACE, math.log(_CHANCE * max(1.0, seconds)))


def standstill_of(measured: Collection[Measured], window: Interval) -> Standstill | None:
    """Return how long the clients stood still; None without a window, or if a client has no usable series."""
    if not measured or not window.length or any(share.lacks_series for share in _timed(measured)):
        return None
    idle = {item.client: _clipped(_idle(item), window) for item in measured}
    together = reduce(_both, idle.values())
    shared = _widened(together, _greatest_width(measured))
    ios = {item.client: sum(share.within(window).ios for share in _timed([item])) for item in measured}
    lengths = {client: _length(stretches) for client, stretches in idle.items()}
    return Standstill(
        window=window.length / NANOSECONDS,
        clients={client: length / NANOSECONDS for client, length in lengths.items()},
        together=_length(together) / NANOSECONDS,
        alone={
            client: (lengths[client] - _length(_both(stretches, shared))) / NANOSECONDS
            for client, stretches in idle.items()
        },
        client_paces=_paces(ios, {client: window.length - length for client, length in lengths.items()}),
        pace=_pace(sum(ios.values()), window.length - _length(together)),
    )


def _paces(ios: Mapping[int, float], active: Mapping[int, int]) -> dict[int, float]:
    usual = _pace(sum(ios.values()), sum(active.values()))
    return {client: _pace(done, active[client]) if done else usual for client, done in ios.items()}


def _timed(measured: Iterable[Measured]) -> Iterable[Share]:
    return (share for item in measured for share in item.shares if share.sample.operation is not Operation.SYNC)


def _pace(ios: float, nanoseconds: int) -> float:
    return ios * NANOSECONDS / nanoseconds if nanoseconds else 0.0


def _idle(item: Measured) -> list[Interval]:
    """Return when a client completed nothing, in ascending order."""
    syncs = (sample for sample in item.measurement.operations if sample.operation is Operation.SYNC)
    longest_sync = max((sample.latency.max_nanoseconds for sample in syncs), default=0)
    stretches = reduce(_both, map(_empty, _timed([item])), [item.interval])
    return [stretch for stretch in stretches if stretch.length > longest_sync]


def _empty(share: Share) -> list[Interval]:
    """Return the whole cells without an operation, neighbours as one."""
    cells, interval = share.sample.cells, share.interval
    if cells is None or not share.sample.ios:
        return [interval]
    width, found = cells.width_nanoseconds, list[Interval]()
    for index, count in enumerate(cells.ios[: interval.length // width]):
        if not count:
            start = interval.start + index * width
            joins = found and found[-1].end == start
            first = found.pop().start if joins else start
            found.append(Interval(start=first, end=start + width))
    return found


def _both(some: list[Interval], others: list[Interval]) -> list[Interval]:
    """Return what lies in a stretch of either list; both are ascending and without overlap."""
    found, rest = list[Interval](), list(reversed(others))
    for stretch in some:
        while rest and rest[-1].end <= stretch.start:
            rest.pop()
        while rest and rest[-1].start < stretch.end:
            found.append(Interval(start=max(stretch.start, rest[-1].start), end=min(stretch.end, rest[-1].end)))
            if rest[-1].end > stretch.end:
                break
            rest.pop()
    return found


def _greatest_width(measured: Iterable[Measured]) -> int:
    return max((share.curve.width for share in _timed(measured) if share.curve is not None), default=0)


def _widened(stretches: Iterable[Interval], width: int) -> list[Interval]:
    """Return the stretches with that much more at either end, those that touch as one; they are in ascending order."""
    found = list[Interval]()
    for stretch in stretches:
        start = stretch.start - width
        joins = found and found[-1].end >= start
        first = found.pop().start if joins else start
        found.append(Interval(start=first, end=stretch.end + width))
    return found


def _clipped(stretches: list[Interval], window: Interval) -> list[Interval]:
    return _both(stretches, [window])


def _length(stretches: Iterable[Interval]) -> int:
    return sum(stretch.length for stretch in stretches)
