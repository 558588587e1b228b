"""Time in which nothing completed, and freezes: times in which all operations in flight wait at once."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from plimsoll.api.names import Operation
from plimsoll.api.result import Stalls
from plimsoll.measure.intake import ClientMeasurement
from plimsoll.measure.timeline import NANOSECONDS, Interval, Share, both, joined, length_of, without

LEAST_PART = 0.05
"""Part of the window that freezes take before they count."""
LONG = NANOSECONDS
"""A stretch of this length that cannot be chance is a stall by itself."""
VERY_LONG = 2 * NANOSECONDS
"""A stretch of this length is a stall by itself unless the pace is slow."""

_MILLISECOND = 10**6
_FREEZE = 100 * _MILLISECOND
"""Every freeze of this length is found, unless the tool reports its completions too coarsely."""
_CLOCK_DIFFERENCE = 10 * _MILLISECOND
"""The tolerated difference between the clients' clocks."""
_LEAST_MISSED = 20
_LEAST_MISSED_BY_ONE = 150
_QUEUES_BETWEEN = 4
_NO_BATCH = 500 * _MILLISECOND
"""A pause of this length is a freeze, however much completes at once before and after it, unless little does."""
_UNUSUAL = 3
"""On slow storage, a stretch this many times as long as usual is a freeze."""
LEAST_PACE = 10
"""The least operations per second, outside stalls, at which an empty second may be a stall: even if completions came at
random, fewer than one second in 20 000 would be empty."""
_CHANCE = 100
"""One of so many trials may have a second that is empty by chance, however many clients and seconds it has."""
_BESIDE_SYNC = 100 * _MILLISECOND
"""The time between a sync and the completions before and after it belongs to the sync."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """The operations of a client, or of all clients."""

    ios: float  # operations completed in the window
    in_flight: int  # the least number of operations that were in flight all the time

    @classmethod
    def total(cls, parts: Collection["Activity"]) -> "Activity":
        """Return the operations of all parts together."""
        return cls(ios=sum(part.ios for part in parts), in_flight=sum(part.in_flight for part in parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """How precisely idle time is known, in nanoseconds."""

    blur: int  # how much longer than it appears a freeze may have been
    least: int  # the shortest stretch to consider

    @classmethod
    def of(cls, measured: Iterable[ClientMeasurement]) -> "Resolution":
        """Return the resolution of the tool that reports its completions in the widest intervals."""
        widths = (gaps.width_nanoseconds for item in measured if (gaps := item.measurement.gaps))
        width = max(widths, default=0)
        blur = width + _CLOCK_DIFFERENCE
        return cls(blur=blur, least=max(_FREEZE - blur, width))


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleTime:
    """The idle time of a client, or of all clients together, in seconds."""

    stalled: float  # in stretches that are stalls by themselves
    frozen: float  # in shorter freezes
    unsure: float  # how much longer the freezes may have been

    @classmethod
    def within(cls, stalls: Iterable[Interval], freezes: Collection[Interval], resolution: Resolution) -> "IdleTime":
        """Return the time in these stretches."""
        return cls(
            stalled=length_of(stalls) / NANOSECONDS,
            frozen=length_of(freezes) / NANOSECONDS,
            unsure=len(freezes) * resolution.blur / NANOSECONDS,
        )

    @property
    def seconds(self) -> float:
        """All certain idle time."""
        return self.stalled + self.frozen

    def charged(self, window: float, *, stalls_count: bool) -> float:
        """Return the seconds that count against the numbers: none that may be chance, and no few short freezes."""
        stalled = self.stalled if stalls_count else 0.0
        freezes_count = stalled or self.frozen + self.unsure >= LEAST_PART * window
        return stalled + self.frozen if freezes_count else stalled


def freezes_among(
    idle: Sequence[Interval], stalls: Sequence[Interval], activity: Activity, window: Interval, resolution: Resolution
) -> list[Interval]:
    """Return the stretches of the known idle time in the window that are freezes, without parts of stalls."""
    seen = [stretch for stretch in idle if stretch.length >= resolution.least]
    active = window.length - length_of(seen)
    if not active or not activity.ios:
        return []
    missed = max(_LEAST_MISSED, _LEAST_MISSED_BY_ONE / max(1, activity.in_flight))
    if _is_slow(seen, activity, window, _FREEZE):
        # The pace between such stretches is unknown; that of the whole window is known.
        least = max(float(_NO_BATCH), missed * window.length / activity.ios)
    else:
        least = max(float(resolution.least), missed * active / activity.ios)
        if _is_slow(idle, activity, window, _FREEZE // 2):
            least = max(least, _UNUSUAL * length_of(idle) / len(idle))
    return [stretch for stretch in without(seen, stalls) if stretch.length >= least]


def _is_slow(stretches: Sequence[Interval], activity: Activity, window: Interval, time_for_many: int) -> bool:
    """Whether only a few queues complete between two stretches, in little time."""
    active, number = window.length - length_of(stretches), len(stretches)
    return activity.ios < _QUEUES_BETWEEN * activity.in_flight * number and active < time_for_many * number


@dataclass(frozen=True, slots=True, kw_only=True)
class Standstill:
    """The idle time of a trial's clients in the common window."""

    window: float  # seconds
    clients: Mapping[int, float]  # client -> seconds in which it was idle
    common: IdleTime  # the time in which all clients were idle
    own: Mapping[int, IdleTime]  # client -> its other idle time, without the edges of common idle time
    # Client -> operations per second while it is not idle; for a client that completes nothing, the mean of the others.
    client_paces: Mapping[int, float]
    pace: float  # operations per second of all clients while not all of them are idle

    @property
    def together(self) -> float:
        """Seconds in which all clients were idle."""
        return self.common.seconds

    @property
    def alone(self) -> Mapping[int, float]:
        """Client -> seconds in which it was idle and others were not."""
        return {client: idle.seconds for client, idle in self.own.items()}

    def charged_to_all(self) -> float:
        """Return the seconds that count against the numbers of all clients together."""
        return self.common.charged(self.window, stalls_count=self.pace >= least_pace(self.window))

    def charged_to(self, client: int) -> float:
        """Return the seconds that count against the numbers of one client alone."""
        is_fast = self.client_paces[client] >= least_pace(self.window * len(self.clients))
        return self.own[client].charged(self.window, stalls_count=is_fast)

    def published(self) -> Stalls:
        """Return the stalls' part of the result."""
        worst = min(self.clients, key=lambda client: (-self.clients[client], client))
        return Stalls(
            seconds=self.together,
            worst_client_seconds=self.clients[worst],
            worst_client=worst if self.clients[worst] else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Idle:
    """When a client, or all clients, completed nothing."""

    known: list[Interval]  # all known idle time
    stalls: list[Interval]  # the part of it that is a stall unless the pace is slow
    # The part of the stalls that does not count as working time for the pace. Of a stall that no cell shows, a second
    # counts as working time: a client that rarely completes anything must not seem fast.
    off: list[Interval]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stretches:
    """The idle time that counts: stalls, and shorter freezes."""

    stalls: list[Interval]
    freezes: list[Interval]

    @classmethod
    def of(cls, idle: _Idle, activity: Activity, window: Interval, resolution: Resolution) -> "_Stretches":
        freezes = freezes_among(idle.known, idle.stalls, activity, window, resolution)
        long = [stretch for stretch in freezes if stretch.length >= LONG]
        return cls(stalls=joined([*idle.stalls, *long]), freezes=[one for one in freezes if one.length < LONG])

    @property
    def all(self) -> list[Interval]:
        """Stalls and freezes."""
        return joined([*self.stalls, *self.freezes])


def least_pace(seconds: float) -> float:
    """Return the pace at which not even one of so many seconds is empty by chance: `e^-pace` of them are."""
    return max(LEAST_PACE, math.log(_CHANCE * max(1.0, seconds)))


def standstill_of(measured: Collection[ClientMeasurement], window: Interval) -> Standstill | None:
    """Return the clients' idle time; None without a window, or if a client has no usable record of it."""
    if not measured or not window.length or not all(_is_recorded(item) for item in measured):
        return None
    resolution = Resolution.of(measured)
    idle = {item.client: _idle(item, window) for item in measured}
    activities = {item.client: _activity(item, window) for item in measured}
    everybody, everywhere = Activity.total(activities.values()), _common(idle.values())
    common = _Stretches.of(everywhere, everybody, window, resolution)
    single = {client: _Stretches.of(idle[client], activities[client], window, resolution) for client in idle}
    # The same stall may begin and end a little differently on each client.
    widths = (share.curve.width for share in _timed(measured) if share.curve is not None)
    near_stalls = joined(common.stalls, wider_by=max(widths, default=LONG))
    near = joined([*near_stalls, *joined(common.freezes, wider_by=resolution.blur)])
    clients = {client: length_of(joined([*stretches.all, *common.all])) for client, stretches in single.items()}
    alone = {}
    for client, stretches in single.items():
        freezes = [stretch for stretch in without(stretches.freezes, near) if stretch.length >= resolution.least]
        alone[client] = IdleTime.within(without(stretches.stalls, near), freezes, resolution)
    active = {client: window.length - length_of(part.off) for client, part in idle.items()}
    usual = _pace(everybody.ios, sum(active.values()))
    return Standstill(
        window=window.length / NANOSECONDS,
        clients={client: length / NANOSECONDS for client, length in clients.items()},
        common=IdleTime.within(common.stalls, common.freezes, resolution),
        own=alone,
        client_paces={
            client: _pace(part.ios, active[client]) if part.ios else usual for client, part in activities.items()
        },
        pace=_pace(everybody.ios, window.length - length_of(everywhere.off)),
    )


def _timed(measured: Iterable[ClientMeasurement]) -> Iterable[Share]:
    return (share for item in measured for share in item.shares if share.sample.operation is not Operation.SYNC)


def _is_recorded(item: ClientMeasurement) -> bool:
    return bool(item.measurement.gaps) or not any(share.lacks_series for share in _timed([item]))


def _pace(ios: float, nanoseconds: int) -> float:
    return ios * NANOSECONDS / nanoseconds if nanoseconds else 0.0


def _activity(item: ClientMeasurement, window: Interval) -> Activity:
    done = [share.within(window) for share in _timed([item])]
    # Where a tool does not count operations, bytes also show that a pause is not chance.
    ios = sum(amount.ios for amount in done) or sum(amount.bytes for amount in done)
    return Activity(ios=ios, in_flight=item.measurement.in_flight or 1)


def _common(clients: Collection[_Idle]) -> _Idle:
    known = reduce(both, (idle.known for idle in clients))
    stalls = reduce(both, (idle.stalls for idle in clients))
    off = reduce(both, (idle.off for idle in clients))
    return _Idle(known=known, stalls=joined([*stalls, *_very_long(known)]), off=off)


def _very_long(stretches: Iterable[Interval]) -> list[Interval]:
    return [stretch for stretch in stretches if stretch.length >= VERY_LONG]


def _idle(item: ClientMeasurement, window: Interval) -> _Idle:
    """Return when a client completed nothing in the window."""
    begin, gaps = item.interval.start, item.measurement.gaps
    syncs = (sample for sample in item.measurement.operations if sample.operation is Operation.SYNC)
    longest_sync = max((sample.latency.max_nanoseconds for sample in syncs), default=0)
    # Cells are only as precise as the thread that wrote them; completions are exact.
    if gaps is None:
        empty = reduce(both, map(_empty, _timed([item])), [item.interval])
        known = both(joined(stretch for stretch in empty if stretch.length > longest_sync), [window])
        return _Idle(known=known, stalls=known, off=known)
    reported = [
        Interval(start=begin + start * _MILLISECOND, end=begin + (start + length) * _MILLISECOND)
        for start, length in zip(gaps.starts, gaps.lengths, strict=True)
    ]
    least = longest_sync + _BESIDE_SYNC if longest_sync else 0
    idle = [gap for gap in both(reported, [item.interval]) if not least or gap.length > least]
    # Half a second at either end of a long gap counts as working time.
    half = LONG // 2
    narrowed = [Interval(start=gap.start + half, end=gap.end - half) for gap in idle if gap.length > LONG]
    return _Idle(
        known=both(joined(idle), [window]),
        stalls=both(joined(_very_long(idle)), [window]),
        off=both(joined(narrowed), [window]),
    )


def _empty(share: Share) -> list[Interval]:
    """Return the whole cells without an operation, joined where they touch."""
    cells, interval = share.sample.cells, share.interval
    if cells is None or not (share.sample.ios or share.sample.bytes):
        return [interval]
    width = cells.width_nanoseconds
    # A tool that does not count operations reports only bytes.
    counts = cells.ios if share.sample.ios else cells.bytes
    whole = counts[: interval.length // width]
    starts = (interval.start + index * width for index, count in enumerate(whole) if not count)
    return joined(Interval(start=start, end=start + width) for start in starts)
