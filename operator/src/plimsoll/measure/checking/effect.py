"""Whether what went on for a part of the window changed the clients' numbers.

What they did meanwhile is held against what they did otherwise: operations per second, and how many operations took
longer than the 99th percentile of the rest, of which chance alone makes one in a hundred. A load with a limit of its
own keeps its rate, and a long tail hides what only comes near to it, so the median counts as well. All are those of all
clients. A slice of the latencies over time that the disturbance only touches counts to it.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from plimsoll.api.names import Operation
from plimsoll.measure.checking.evidence import Evidence
from plimsoll.measure.histogram import Histogram, HistogramError, bin_midpoint
from plimsoll.measure.series import Share, add
from plimsoll.measure.window import NANOSECONDS, Interval

MOST_SLOWER = 0.05
MOST_LATE = 2.0
"""Times the part that is otherwise beyond the 99th percentile; chance is allowed three of its standard deviations."""
MOST_LONGER = 0.1
"""Part by which the median of the latency may be longer."""

_LEAST_CALM = 10 * NANOSECONDS
_LEAST_OPERATIONS = 1000
_PERCENTILE = 99
_MEDIAN = 50
_LATE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What changed while something went on.

    Attributes:
        slower: by which part of the rate of the calm time it was lower; below 0 if it was higher.
        late: times as many operations as otherwise took longer than the 99th percentile of the calm time.
        late_by_chance: so many times may come by chance.
        longer: by which part of the median latency of the calm time it was longer; below 0 if it was shorter.

    """

    slower: float
    late: float
    late_by_chance: float
    longer: float

    @property
    def is_noticeable(self) -> bool:
        """Whether the numbers would have been others without it."""
        return self.slower > MOST_SLOWER or self.late > self.late_by_chance or self.longer > MOST_LONGER

    @property
    def text(self) -> str:
        """Say it."""
        rate = f"{abs(100 * self.slower):.3g} % {'lower' if self.slower > 0 else 'higher'}"
        median = f"{abs(100 * self.longer):.3g} % {'longer' if self.longer > 0 else 'shorter'}"
        return (
            f"the rate was {rate} meanwhile, {self.late:.3g} times as many operations were late, and the median "
            f"latency was {median}"
        )


def effect_of(evidence: Evidence, disturbed: Iterable[Interval]) -> Effect | None:
    """Return the effect; None if it cannot be told.

    That is so without 10 s of calm and 1000 operations in it, or if a client keeps no series of rates and latencies.
    """
    span = evidence.span
    if span is None or evidence.window is None:
        return None
    troubles = _within(span, disturbed)
    calm = _rest(span, troubles)
    if not troubles or sum(part.length for part in calm) < _LEAST_CALM:
        return None
    found = [_effect_on(shares, troubles, calm) for shares in _by_operation(evidence)]
    known = [effect for effect in found if effect is not None]
    if not known or len(known) < len(found):
        return None
    return max(known, key=lambda effect: (effect.is_noticeable, effect.slower))


def _by_operation(evidence: Evidence) -> Iterator[list[Share]]:
    for operation in evidence.rates:
        # No tool keeps a series of its syncs.
        if operation is not Operation.SYNC:
            yield [share for item in evidence.measured for share in item.shares if share.sample.operation is operation]


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
    length = sum(part.length for part in parts)
    done = [share.within(part) for share in shares for part in parts]
    return add(done).ios / length if length else 0.0


def _latencies(shares: Iterable[Share], calm: Sequence[Interval]) -> tuple[Histogram, Histogram]:
    """Return the latencies of slices that are not calm all the time, and of those that are.

    Raises:
        HistogramError: a client has none, or they are damaged.

    """
    meanwhile: list[Histogram] = []
    otherwise: list[Histogram] = []
    for share in shares:
        slices = share.sample.slices
        if not share.sample.ios:
            continue
        if slices is None or slices.width_nanoseconds <= 0:
            raise HistogramError(f"there are no latencies over time of {share.sample.operation} operations")
        for index, text in enumerate(slices.histograms):
            start = share.interval.start + index * slices.width_nanoseconds
            whole = Interval(start=start, end=start + slices.width_nanoseconds)
            is_calm = any(part.start <= whole.start and whole.end <= part.end for part in calm)
            (otherwise if is_calm else meanwhile).append(Histogram.decode(text))
    return Histogram.merge(meanwhile), Histogram.merge(otherwise)


def _beyond(histogram: Histogram, limit: int) -> int:
    return sum(count for index, count in histogram.counts.items() if bin_midpoint(index) > limit)


def _within(span: Interval, disturbed: Iterable[Interval]) -> list[Interval]:
    """Return the parts of the span, joined where they touch, by time."""
    parts: list[Interval] = []
    for part in sorted(disturbed, key=lambda part: part.start):
        start, end = max(part.start, span.start), min(part.end, span.end)
        if parts and start <= parts[-1].end:
            parts[-1] = Interval(start=parts[-1].start, end=max(end, parts[-1].end))
        elif start < end:
            parts.append(Interval(start=start, end=end))
    return parts


def _rest(span: Interval, parts: Sequence[Interval]) -> list[Interval]:
    edges = [span.start, *(edge for part in parts for edge in (part.start, part.end)), span.end]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return [Interval(start=start, end=end) for start, end in pairs if start < end]
