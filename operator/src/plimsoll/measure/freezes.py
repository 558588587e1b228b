"""Freezes: times in which all operations in flight wait at once, which cannot be chance.

Latency alone does not distinguish freezes from a heavy tail. In a freeze, operations that do not depend on each other
wait at the same time. The more operations there are, the sooner chance is ruled out, so an idle time counts as a freeze
only if this many operations would have completed in it, at the pace between such stretches:

    pace * length  >=  max(20, 150 / in flight)

Storage that completes its whole queue at once, and then nothing for a while, is slow and not frozen: between two
freezes either more than a few queues complete, or there is time for many. Single freezes under a second are normal for
storage; they count if all of them take a notable part of the window. docs/trust.md has the reasoning.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from plimsoll.measure.stretches import length_of, without
from plimsoll.measure.window import NANOSECONDS, Interval

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """The operations of a client, or of all clients.

    Attributes:
        ios: operations completed in the window.
        in_flight: the least number of operations that were in flight all the time.

    """

    ios: float
    in_flight: int

    @classmethod
    def total(cls, parts: Collection["Activity"]) -> "Activity":
        """Return the operations of all parts together."""
        return cls(ios=sum(part.ios for part in parts), in_flight=sum(part.in_flight for part in parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """How precisely idle time is known, in nanoseconds.

    Attributes:
        blur: how much longer than it appears a freeze may have been.
        least: the shortest stretch to consider.

    """

    blur: int
    least: int

    @classmethod
    def of(cls, width: int) -> "Resolution":
        """Return the resolution if the coarsest tool reports its completions in intervals of that width."""
        blur = width + _CLOCK_DIFFERENCE
        return cls(blur=blur, least=max(_FREEZE - blur, width))


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleTime:
    """The idle time of a client, or of all clients together, in seconds.

    Attributes:
        stalled: in stretches that are stalls by themselves.
        frozen: in shorter freezes.
        unsure: how much longer the freezes may have been.

    """

    stalled: float
    frozen: float
    unsure: float

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
