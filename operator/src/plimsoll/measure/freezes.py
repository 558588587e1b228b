"""Freezes: stretches in which all that is in flight waits at once, and that cannot be chance.

Latency alone does not tell them from a heavy tail: a log-normal one whose 99th percentile is 33 times its median has a
third of its in-flight time in operations of 20 times the median, and nothing is wrong. What tells is that operations
which do not depend on each other wait at the same time. By chance that is rare the sooner the more of them there are,
so a stretch counts as a freeze if so many operations would have completed in it that chance is ruled out:

    pace * length  >=  max(20, 150 / in flight)

With this the tail above spends less than 0.5 % of its time in such stretches, whether 1, 2, 4 or more operations are in
flight. The pace is that between the stretches. Storage that completes its whole queue at once, and then nothing for a
while, is slow and not frozen: between two freezes either more than a few queues complete, or there is time for many.
Shorter stretches than a freeze are looked at for this too: where one follows another all the time, those that happen to
last a little longer are no freezes.

Single freezes under a second are what storage does; they count if all of them take a notable part of the window.
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
"""One of this length is, if only the pace is not slow: whoever waits so long for one operation stands still."""

_MILLISECOND = 10**6
_FREEZE = 100 * _MILLISECOND
"""Every freeze of this length is found, unless the tool tells too roughly when its operations completed."""
_CLOCKS_DIFFER = 10 * _MILLISECOND
"""By so much the clocks of clients may differ without being held against anyone."""
_LEAST_MISSED = 20
_LEAST_MISSED_BY_ONE = 150
_QUEUES_BETWEEN = 4
_NO_BATCH = 500 * _MILLISECOND
"""A pause of this length is a freeze, however much completes at once before and after it, unless little does."""
_UNUSUAL = 3
"""Times the usual stretch of storage that is slow: what lasts so long is a freeze there too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doer:
    """Who completes operations: a client, or all of them.

    Attributes:
        ios: operations completed inside the window.
        in_flight: operations that were in flight all the time, at least.

    """

    ios: float
    in_flight: int

    @classmethod
    def together(cls, doers: Collection["Doer"]) -> "Doer":
        """Return all of them as one."""
        return cls(ios=sum(doer.ios for doer in doers), in_flight=sum(doer.in_flight for doer in doers))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharpness:
    """How sharp the picture is; nanoseconds.

    Attributes:
        blur: by how much more a freeze may have lasted than the stretch that is seen of it.
        least: the shortest stretch that is looked at.

    """

    blur: int
    least: int

    @classmethod
    def of(cls, width: int) -> "Sharpness":
        """Return that of tools of which the roughest tells so finely when its operations completed."""
        blur = width + _CLOCKS_DIFFER
        return cls(blur=blur, least=max(_FREEZE - blur, width))


@dataclass(frozen=True, slots=True, kw_only=True)
class Still:
    """For how long somebody was still, in seconds.

    Attributes:
        stalled: in stretches that are stalls by themselves.
        frozen: in shorter freezes.
        unsure: by so much more the freezes may have lasted.

    """

    stalled: float
    frozen: float
    unsure: float

    @classmethod
    def within(cls, stalls: Iterable[Interval], freezes: Collection[Interval], sharpness: Sharpness) -> "Still":
        """Return how long those stretches are."""
        return cls(
            stalled=length_of(stalls) / NANOSECONDS,
            frozen=length_of(freezes) / NANOSECONDS,
            unsure=len(freezes) * sharpness.blur / NANOSECONDS,
        )

    @property
    def seconds(self) -> float:
        """All of it that is certain."""
        return self.stalled + self.frozen

    def held(self, window: float, *, stalls_tell: bool) -> float:
        """Return the seconds that are held against somebody: none that may be chance, nor a few short ones."""
        stalled = self.stalled if stalls_tell else 0.0
        counts = stalled or self.frozen + self.unsure >= LEAST_PART * window
        return stalled + self.frozen if counts else stalled


def freezes_among(
    idle: Sequence[Interval], stalls: Sequence[Interval], doer: Doer, window: Interval, sharpness: Sharpness
) -> list[Interval]:
    """Return the stretches that are freezes: long enough, no part of a stall, and no chance.

    Args:
        idle: when nothing completed, as far as it is known; inside the window.
        stalls: the part of it in stalls.
        doer: who it was.
        window: that is judged.
        sharpness: of what is known.

    """
    seen = [stretch for stretch in idle if stretch.length >= sharpness.least]
    active = window.length - length_of(seen)
    if not active or not doer.ios:
        return []
    missed = max(_LEAST_MISSED, _LEAST_MISSED_BY_ONE / max(1, doer.in_flight))
    if _is_slow(seen, doer, window, _FREEZE):
        # The pace between such stretches is not known, only that of the whole window.
        least = max(float(_NO_BATCH), missed * window.length / doer.ios)
        return [stretch for stretch in without(seen, stalls) if stretch.length >= least]
    least = max(float(sharpness.least), missed * active / doer.ios)
    if _is_slow(idle, doer, window, _FREEZE // 2):
        least = max(least, _UNUSUAL * length_of(idle) / len(idle))
    return [stretch for stretch in without(seen, stalls) if stretch.length >= least]


def _is_slow(stretches: Sequence[Interval], doer: Doer, window: Interval, time_for_many: int) -> bool:
    """Tell whether only a few queues complete between two stretches, in little time."""
    active, number = window.length - length_of(stretches), len(stretches)
    return doer.ios < _QUEUES_BETWEEN * doer.in_flight * number and active < time_for_many * number
