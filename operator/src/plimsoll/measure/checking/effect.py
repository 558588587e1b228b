"""Whether a disturbance during a part of the window changed the clients' numbers.

The numbers of all clients during the disturbance are compared with those of the calm rest of the window: operations per
second, how many operations took longer than the calm 99th percentile, and the median latency. A rate-limited load keeps
its rate, and a long tail hides what only comes near it, so none of them is enough alone.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from plimsoll.api.names import Operation
from plimsoll.measure.checking.evidence import Evidence
from plimsoll.measure.histogram import Histogram, HistogramError, bin_midpoint
from plimsoll.measure.series import Share, add
from plimsoll.measure.stretches import both, joined, length_of, without
from plimsoll.measure.window import NANOSECONDS, Interval
from plimsoll.measure.wording import number_text, percent_text

MOST_SLOWER = 0.05
MOST_LATE = 2.0
"""Times the part that is beyond the 99th percentile in calm time; chance is allowed three standard deviations more."""
MOST_LONGER = 0.1
"""Part by which the median of the latency may be longer."""

_LEAST_CALM = 10 * NANOSECONDS
_LEAST_OPERATIONS = 1000
_PERCENTILE = 99
_MEDIAN = 50
_LATE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What changed during a disturbance, compared with calm time.

    Attributes:
        slower: the part by which the rate was lower; negative if it was higher.
        late: how many times as many operations took longer than the calm 99th percentile.
        late_by_chance: how many times as many chance can cause.
        longer: the part by which the median latency was longer; negative if it was shorter.

    """

    slower: float
    late: float
    late_by_chance: float
    longer: float

    @property
    def is_noticeable(self) -> bool:
        """Whether the numbers would have been different without the disturbance."""
        return self.slower > MOST_SLOWER or self.late > self.late_by_chance or self.longer > MOST_LONGER

    @property
    def text(self) -> str:
        """The effect, in words."""
        rate = f"{percent_text(abs(100 * self.slower))} {'lower' if self.slower > 0 else 'higher'}"
        median = f"{percent_text(abs(100 * self.longer))} {'longer' if self.longer > 0 else 'shorter'}"
        return (
            f"meanwhile the rate was {rate}, {number_text(self.late)} times as many operations were late, and the "
            f"median latency was {median}"
        )


def effect_of(evidence: Evidence, disturbed: Iterable[Interval]) -> Effect | None:
    """Return the effect of a disturbance; None if it is unknown.

    It is unknown without 10 s of calm and 1000 operations in it, or if a client has no series of rates and latencies.
    """
    span = evidence.span
    if span is None or evidence.window is None:
        return None
    troubles = both(joined(part for part in disturbed if part.length), [span])
    calm = without([span], troubles)
    if not troubles or length_of(calm) < _LEAST_CALM:
        return None
    # No tool keeps a series of its syncs.
    timed = [operation for operation in evidence.rates if operation is not Operation.SYNC]
    found = [_effect_on(evidence.shares_of(operation), troubles, calm) for operation in timed]
    known = [effect for effect in found if effect is not None]
    if not known or len(known) < len(found):
        return None
    return max(known, key=lambda effect: (effect.is_noticeable, effect.slower))


def _effect_on(shares: Collection[Share], troubles: Sequence[Interval], calm: Sequence[Interval]) -> Effect | None:
    if any(share.lacks_series for share in shares):
        return None
    try:
        meanwhile, otherwise = _latencies(shares, calm)
    except HistogramError:
        return None
    limit, median = otherwise.percentile(_PERCENTILE), otherwise.percentile(_MEDIAN)
    usual, rate = _rate(shares, calm), _rate(shares, troubles)
    if limit is None or not median or otherwise.total < _LEAST_OPERATIONS or not usual:
        return None
    expected = max(_beyond(otherwise, limit) / otherwise.total, _LATE) * meanwhile.total
    late = _beyond(meanwhile, limit) / expected if expected else 0.0
    by_chance = MOST_LATE + 3 / math.sqrt(expected) if expected else math.inf
    longer = (meanwhile.percentile(_MEDIAN) or limit) / median - 1 if meanwhile.total else 0.0
    return Effect(slower=1 - rate / usual, late=late, late_by_chance=by_chance, longer=longer)


def _rate(shares: Collection[Share], parts: Sequence[Interval]) -> float:
    """Return operations per nanosecond."""
    length = length_of(parts)
    done = [share.within(part) for share in shares for part in parts]
    return add(done).ios / length if length else 0.0


def _latencies(shares: Iterable[Share], calm: Sequence[Interval]) -> tuple[Histogram, Histogram]:
    """Return the latencies of slices that touch a disturbance, and of the calm ones.

    Raises:
        HistogramError: a client has none, or they are damaged.

    """
    meanwhile: list[str] = []
    otherwise: list[str] = []
    for share in shares:
        for whole, text in share.slices():
            is_calm = any(part.start <= whole.start and whole.end <= part.end for part in calm)
            (otherwise if is_calm else meanwhile).append(text)
    return Histogram.merge_texts(meanwhile), Histogram.merge_texts(otherwise)


def _beyond(histogram: Histogram, limit: int) -> int:
    return sum(count for index, count in histogram.counts.items() if bin_midpoint(index) > limit)
