"""Idle time of a client, or of all clients together: stalls, and freezes, in which all operations in flight wait.

- A stall is 2 s or more without a completion; or 1 s or more in which 20 operations should have completed (with fewer
  than 8 in flight, 150 divided by their number; where that is unknown, 150). Of a tool that reports completions only in
  intervals (`cells`, usually seconds), every empty interval is a stall.
- A freeze is shorter than 1 s, and as many operations should have completed in it. If pauses are so frequent that the
  99th percentile shows them, only one of 0.5 s or three times their mean is a freeze.

Against the numbers count (`_counted`) all stalls of a client so fast outside of its stalls that an empty second
is more than chance (`least_pace`), and of a slower one those in which as many operations should have completed as in a
second at that pace, as in a freeze, and four queues; and freezes, if a stall counts, or if they take 5 % of the window.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

from plimsoll.api.names import Operation
from plimsoll.api.result import Stalls
from plimsoll.measure.intake import ClientMeasurement
from plimsoll.measure.timeline import NANOSECONDS, Interval, Share, both, joined, length_of, without

VERY_LONG = 2 * NANOSECONDS  # a stretch of this length is a stall
LONG = NANOSECONDS  # a freeze of this length is a stall
LEAST_FROZEN_PART = 0.05  # part of the window that freezes take before they count without a stall

_MILLISECOND = 10**6
_FREEZE = 100 * _MILLISECOND  # every freeze of this length is found, unless completions are reported too coarsely
_CLOCK_DIFFERENCE = 10 * _MILLISECOND  # the tolerated difference between the clients' clocks
_LEAST_MISSED = 20
_LEAST_MISSED_BY_ONE = 150
_QUEUES_MISSED = 4
_QUEUES_BETWEEN = 100  # with fewer between two pauses, the 99th percentile shows them: over a hundredth wait
_NO_BATCH = 500 * _MILLISECOND  # a pause of this length is a freeze, however much completes at once around it
_UNUSUAL = 3  # on slow storage, a pause this many times as long as their mean is a freeze
LEAST_PACE = 10  # operations per second at which, even if completions came at random, one second in 22 000 is empty
_CHANCE = 100  # one of so many trials, of any number of clients and seconds, may have an empty second by chance
_BESIDE_SYNC = 100 * _MILLISECOND  # time between a sync and the completions next to it that belongs to the sync


@dataclass(frozen=True, slots=True, kw_only=True)
class Standstill:
    """The idle time of a trial's clients in the common window, in seconds."""

    window: float
    clients: Mapping[int, float]  # client -> its idle time
    seconds: float  # in which all clients were idle
    counted: float  # what of that counts against the numbers
    alone: Mapping[int, float]  # client -> what counts of its idle time while another one worked

    def published(self) -> Stalls:
        worst = min(self.clients, key=lambda client: (-self.clients[client], client))
        return Stalls(
            seconds=self.seconds,
            worst_client_seconds=self.clients[worst],
            worst_client=worst if self.clients[worst] else None,
        )


def least_pace(seconds: float) -> float:
    """Return the operations per second from which on an empty second in so many seconds is more than chance."""
    # If completions come at random, `e^-pace` of all seconds are empty.
    return max(LEAST_PACE, math.log(_CHANCE * max(1.0, seconds)))


def standstill_of(measured: Collection[ClientMeasurement], window: Interval) -> Standstill | None:
    """Return the clients' idle time; None without a window, or if a client has no usable record of it."""
    recorded = (item.measurement.gaps or not any(share.lacks_series for share in _timed(item)) for item in measured)
    if not measured or not window.length or not all(recorded):
        return None
    # The tool with the widest intervals between reports of its completions.
    width = max((gaps.width_nanoseconds for item in measured if (gaps := item.measurement.gaps)), default=0)
    # How much longer than it appears a freeze may have been, and the shortest stretch to consider.
    blur = width + _CLOCK_DIFFERENCE
    shortest = max(_FREEZE - blur, width)
    progress = {item.client: _progress(item, window) for item in measured}
    idle = reduce(both, (part.idle for part in progress.values()))
    certain = reduce(both, (part.stalls for part in progress.values()))
    of_all = _Progress(
        ios=sum(part.ios for part in progress.values()),
        in_flight=sum(part.in_flight for part in progress.values()),
        idle=idle,
        pauses=len(idle) + min(part.pauses - len(part.idle) for part in progress.values()),
        stalls=joined([*certain, *(stretch for stretch in idle if stretch.length >= VERY_LONG)]),
        not_working=reduce(both, (part.not_working for part in progress.values())),
    )
    stalls, freezes = _stalls_and_freezes(of_all, window, shortest)
    # The same stall may begin and end differently on each client, by an interval, and a freeze by its blur.
    widths = (share.curve.width for item in measured for share in _timed(item) if share.curve is not None)
    near = joined([*joined(stalls, wider_by=max(widths, default=LONG)), *joined(freezes, wider_by=blur)])
    active = {client: window.length - length_of(part.not_working) for client, part in progress.items()}
    usual = _pace(of_all.ios, sum(active.values()))
    clients, alone = {}, {}
    for client, client_progress in progress.items():
        client_stalls, client_freezes = _stalls_and_freezes(client_progress, window, shortest)
        clients[client] = length_of(joined([*client_stalls, *client_freezes, *stalls, *freezes])) / NANOSECONDS
        rest = [stretch for stretch in without(client_freezes, near) if stretch.length >= shortest]
        # For a client that completes nothing, the mean of the others.
        pace = _pace(client_progress.ios, active[client]) if client_progress.ios else usual
        least = least_pace(window.length / NANOSECONDS * len(progress))
        significant = _significant(without(client_stalls, near), client_progress, pace, window, least)
        alone[client] = _counted(significant, rest, blur, window)
    pace = _pace(of_all.ios, window.length - length_of(of_all.not_working))
    significant = _significant(stalls, of_all, pace, window, least_pace(window.length / NANOSECONDS))
    return Standstill(
        window=window.length / NANOSECONDS,
        clients=clients,
        seconds=length_of([*stalls, *freezes]) / NANOSECONDS,
        counted=_counted(significant, freezes, blur, window),
        alone=alone,
    )


def _timed(item: ClientMeasurement) -> list[Share]:
    return [share for share in item.shares if share.sample.operation is not Operation.SYNC]


def _pace(ios: float, nanoseconds: int) -> float:
    return ios * NANOSECONDS / nanoseconds if nanoseconds else 0.0


def _counted(stalls: Iterable[Interval], freezes: Collection[Interval], blur: int, window: Interval) -> float:
    """Return the seconds that count; freezes may have been longer than they appear by `blur` each."""
    stalled, frozen = length_of(stalls), length_of(freezes)
    freezes_count = stalled or frozen + len(freezes) * blur >= LEAST_FROZEN_PART * window.length
    return (stalled + (frozen if freezes_count else 0)) / NANOSECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class _Progress:
    """The completions of a client, or of all clients, in the window, and its idle times."""

    ios: float
    in_flight: int  # the least number of operations that were in flight all the time
    idle: list[Interval]  # all recorded idle time
    pauses: int  # the number of idle stretches, some of which may not be recorded
    stalls: list[Interval]  # the part of it that is a stall at any pace
    # Gaps but half a second at either end: no working time for the pace, so that a slow client does not seem fast.
    not_working: list[Interval]

    @property
    def least_missed(self) -> float:
        """How many operations are missing in a freeze, since single ones may be slow: more if few are in flight."""
        return max(_LEAST_MISSED, _LEAST_MISSED_BY_ONE / max(1, self.in_flight))


def _significant(
    stalls: Collection[Interval], progress: _Progress, pace: float, window: Interval, least: float
) -> Collection[Interval]:
    """Return the stalls that exceed chance at this pace."""
    if pace >= least:
        return stalls
    # Storage may complete its queue at once.
    missed = max(least, progress.least_missed, _QUEUES_MISSED * progress.in_flight)
    elsewhere = (_pace(progress.ios, window.length - stall.length) if progress.ios else pace for stall in stalls)
    cases = zip(stalls, elsewhere, strict=True)
    return [stall for stall, usual in cases if usual * stall.length / NANOSECONDS >= missed]


def _progress(item: ClientMeasurement, window: Interval) -> _Progress:
    begin, gaps = item.interval.start, item.measurement.gaps
    done = [share.within(window) for share in _timed(item)]
    # Where a tool does not count operations, bytes also show that a pause is not chance.
    ios = sum(amount.ios for amount in done) or sum(amount.bytes for amount in done)
    in_flight = item.measurement.in_flight or 1
    syncs = (sample for sample in item.measurement.operations if sample.operation is Operation.SYNC)
    longest_sync = max((sample.latency.max_nanoseconds for sample in syncs), default=0)
    # Cells are only as precise as the thread that wrote them; completions are exact.
    if gaps is None:
        empty = reduce(both, map(_empty_cells, _timed(item)), [item.interval])
        idle = both(joined(stretch for stretch in empty if stretch.length > longest_sync), [window])
        return _Progress(ios=ios, in_flight=in_flight, idle=idle, pauses=len(idle), stalls=idle, not_working=idle)
    reported = [
        Interval(start=begin + start * _MILLISECOND, end=begin + (start + length) * _MILLISECOND)
        for start, length in zip(gaps.starts, gaps.lengths, strict=True)
    ]
    least = longest_sync + _BESIDE_SYNC if longest_sync else 0
    idle, half = [gap for gap in both(reported, [item.interval]) if gap.length > least], LONG // 2
    narrowed = [Interval(start=gap.start + half, end=gap.end - half) for gap in idle if gap.length > LONG]
    recorded = both(joined(idle), [window])
    return _Progress(
        ios=ios,
        in_flight=in_flight,
        idle=recorded,
        pauses=len(recorded) + gaps.omitted,
        stalls=both(joined(gap for gap in idle if gap.length >= VERY_LONG), [window]),
        not_working=both(joined(narrowed), [window]),
    )


def _empty_cells(share: Share) -> list[Interval]:
    cells, interval = share.sample.cells, share.interval
    if cells is None or not (share.sample.ios or share.sample.bytes):
        return [interval]
    width = cells.width_nanoseconds
    # A tool that does not count operations reports only bytes.
    counts = cells.ios if share.sample.ios else cells.bytes
    whole = counts[: interval.length // width]
    starts = (interval.start + index * width for index, count in enumerate(whole) if not count)
    return joined(Interval(start=start, end=start + width) for start in starts)


def _stalls_and_freezes(progress: _Progress, window: Interval, shortest: int) -> tuple[list[Interval], list[Interval]]:
    seen = [stretch for stretch in progress.idle if stretch.length >= shortest]
    active, missed = window.length - length_of(seen), progress.least_missed
    if not active or not progress.ios:
        return joined(progress.stalls), []
    least = max(float(shortest), missed * active / progress.ios)
    if progress.idle:
        pause = length_of(progress.idle) / len(progress.idle)
        # Slow: only a few queues complete between two pauses, in little time, if all pauses are like the recorded. The
        # pace between such pauses is unknown, but not the pace of the whole window.
        are_few = progress.ios < _QUEUES_BETWEEN * progress.in_flight * progress.pauses
        if are_few and window.length / progress.pauses - pause < _FREEZE:
            least = max(min(_NO_BATCH, _UNUSUAL * pause), missed * window.length / progress.ios)
    freezes = [stretch for stretch in without(seen, progress.stalls) if stretch.length >= least]
    long = [stretch for stretch in freezes if stretch.length >= LONG]
    return joined([*progress.stalls, *long]), [stretch for stretch in freezes if stretch.length < LONG]
