"""Whether an activity beside the measurement changed the numbers: scrubs, neighbours, a throttled client.

A shared cluster always has some. An activity is harmless if rate, median and 99th percentile of the time with it are no
worse than in the time without any activity, but for chance and a stated bound. For the reasoning see docs/trust.md.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from plimsoll.api.names import LatencyKind, Operation
from plimsoll.measure.checks.evidence import Evidence
from plimsoll.measure.cluster import LONGEST_PAUSE
from plimsoll.measure.histogram import MINIMUM_BEYOND, Histogram, HistogramError, bin_midpoint
from plimsoll.measure.rates import by_operation, grouped
from plimsoll.measure.statistics import margin_of_difference
from plimsoll.measure.text import percent_text
from plimsoll.measure.timeline import (
    NANOSECONDS,
    Coverage,
    Interval,
    Share,
    amounts_between,
    both,
    joined,
    length_of,
    without,
)

MOST_SLOWER = 0.05
"""Part by which the rate may be lower."""
MOST_LONGER = 0.10
"""Part by which the median and the 99th percentile of the latency may be longer."""
NEGLIGIBLE_TIME = 0.005
"""Part of the time in which an activity cannot matter: it changes the rate by no more, and adds less than half of the
slowest hundredth of the operations."""
_MOST_TOUCHED = 0.005
"""Part of the operations that an activity may touch if its effect is unknown: half of those that a 99th percentile
leaves out."""
_MOST_TOUCHED_BRIEFLY = 0.02
"""The same if no 99th percentile is published, so that only the rate and the median can change, and of an activity that
delays an operation by no more than one usually takes: few become as late as the slowest hundredth."""

_SERIOUSLY_SLOWER = 0.25
_SERIOUSLY_LONGER = 1.0
"""An effect is known if chance does not hide one of this size."""
_CONFIDENCE = 0.9973
"""Three standard deviations on both sides."""
_DEVIATIONS = 3
_LEAST_COMPARED = 10 * NANOSECONDS
_LEAST_FOR_P99 = 1000
_MOST_BLOCKS = 600

Blocks = list[tuple[Interval, Histogram]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """Something that went on beside the measurement."""

    certain: Sequence[Interval]  # when it certainly went on
    possible: Sequence[Interval]  # all the time in which it may have gone on, as far as it was seen
    unknown: Sequence[Interval] = ()  # when nobody looked
    part: float  # part of the operations that it can have touched, 0 to 1; 0 if it was not seen
    is_brief: bool = False  # whether it delays an operation by no more than one usually takes
    clients: tuple[int, ...] = ()  # those that it concerns; empty for all

    @classmethod
    def polled(
        cls, polls: Sequence[tuple[int, float | None]], span: Interval | None, *, touching: int = 1
    ) -> "Activity":
        """Return the activity that polls showed, each at a time and with the part of the OSDs that took part.

        It may have begun just after the poll before and ended just before the next one. The part of a poll that was not
        answered is None: it may have been the greatest that was seen, and the time around it is unknown, as are pauses
        of more than 15 s and what lies in `span` outside of all answers. `touching` is the number of OSDs that an
        operation takes.
        """
        known = [(number, at, part) for number, (at, part) in enumerate(polls) if part is not None]
        most = max((part for _, _, part in known), default=0.0)
        certain, possible, unknown = list[Interval](), list[Interval](), list[Interval]()
        for (number, at, part), (following, end, next_part) in pairwise(known):
            stretch = Interval(start=at, end=end)
            is_watched = following == number + 1 and stretch.length <= LONGEST_PAUSE
            if not is_watched:
                unknown.append(stretch)
            elif part and next_part:
                certain.append(stretch)
            if part or next_part:
                possible.append(stretch)
        if span is not None:
            first, last = (known[0][1], known[-1][1]) if known else (span.end, span.end)
            unknown += [Interval(start=span.start, end=first)] if first > span.start else []
            unknown += [Interval(start=last, end=span.end)] if last < span.end else []
        touched = math.fsum(min(1.0, touching * (most if part is None else part)) for _, part in polls)
        return cls(certain=certain, possible=possible, unknown=unknown, part=touched / len(polls) if most else 0.0)


NO_ACTIVITY = Activity(certain=(), possible=(), part=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How a quantity of the time with an activity differs from that of the time without it."""

    text: str  # such as `the rate was 20 % lower`
    size: float  # part by which it was worse; negative if it was better
    is_noticeable: bool  # worse by more than chance and the bound
    is_known: bool  # chance does not hide a serious effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What an activity changed; without differences, there was no time without it to compare with."""

    activity: Activity
    time: float  # part of the window in which it may have gone on
    most_touched: float = _MOST_TOUCHED  # part of the operations that it may touch if what it changed is unknown
    differences: tuple[Difference, ...] = ()

    @property
    def is_noticeable(self) -> bool:
        """Whether the numbers would have been different without the activity."""
        return any(difference.is_noticeable for difference in self.differences)

    @property
    def is_known(self) -> bool:
        """Whether the comparison could have shown a serious effect."""
        return bool(self.differences) and all(difference.is_known for difference in self.differences)

    @property
    def is_harmless(self) -> bool:
        """Whether the numbers are as good as without the activity."""
        if self.time < NEGLIGIBLE_TIME:
            return True
        return not self.is_noticeable and (self.is_known or self.activity.part < self.most_touched)

    @property
    def text(self) -> str:
        """The effect, in words."""
        if not self.is_known and not self.is_noticeable:
            why = "chance hides it" if self.differences else "there was no time without any activity to compare with"
            part, limit = percent_text(100 * self.activity.part), percent_text(100 * self.most_touched)
            return f"its effect is unknown, since {why}, and it may have touched {part} of the operations, over {limit}"
        shown = [difference for difference in self.differences if difference.is_noticeable] or self.differences
        return f"meanwhile {', '.join(difference.text for difference in shown)}"


def effect_of(evidence: Evidence, activity: Activity, all_activities: Iterable[Activity] = ()) -> Effect:
    """Return the effect of an activity on the numbers of the clients that it concerns.

    It is compared with the time that was free of all activities. It is unknown without 10 s of such time, if a client
    has no series of its rates, or if a percentile is published whose course over time the tool did not keep.
    """
    span = evidence.span
    if span is None or not span.length:
        return Effect(activity=activity, time=1.0)
    shares = by_operation(
        (
            share
            for item in evidence.measured
            if not activity.clients or item.client in activity.clients
            for share in item.shares
            # No tool keeps a series of its syncs.
            if share.sample.operation is not Operation.SYNC
        ),
        lambda share: share.sample.operation,
    )
    shares = {operation: parts for operation, parts in shares.items() if any(share.sample.ios for share in parts)}
    has_p99 = any(_publishes_p99(parts) for parts in shares.values())

    def most_touched(each: Activity) -> float:
        return _MOST_TOUCHED if has_p99 and not each.is_brief else _MOST_TOUCHED_BRIEFLY

    def time_of(each: Activity) -> list[Interval]:
        return both(joined(part for part in (*each.possible, *each.unknown) if part.length > 0), [span])

    unknown = Effect(
        activity=activity, time=length_of(time_of(activity)) / span.length, most_touched=most_touched(activity)
    )
    taken = [*activity.possible, *activity.unknown]
    for other in all_activities:
        if activity.clients and other.clients and not {*activity.clients} & {*other.clients}:
            continue
        matters = other.part >= most_touched(other) and length_of(time_of(other)) >= NEGLIGIBLE_TIME * span.length
        taken += [*other.possible, *other.unknown] if matters else other.unknown
    calm = without([span], joined(part for part in taken if part.length > 0))
    possible = both(joined(part for part in activity.possible if part.length > 0), [span])
    if evidence.window is None or not possible or length_of(calm) < _LEAST_COMPARED:
        return unknown
    # The certain time alone, unless it is too short.
    certain = both(joined(activity.certain), [span])
    busy = certain if length_of(certain) >= _LEAST_COMPARED else possible
    differences = list[Difference]()
    for operation, parts in shares.items():
        found = [*_differences(operation, parts, span, busy, calm)]
        if not found:
            return unknown
        differences += found
    return replace(unknown, differences=tuple(differences))


def _publishes_p99(shares: Sequence[Share]) -> bool:
    """Whether the operations of all clients have a 99th percentile."""
    return (
        any(share.sample.latency.kind is LatencyKind.FULL for share in shares)
        and sum(share.sample.ios for share in shares) >= _LEAST_FOR_P99
    )


def _differences(
    operation: Operation, shares: Sequence[Share], span: Interval, busy: Sequence[Interval], calm: Sequence[Interval]
) -> Iterator[Difference]:
    """Yield the differences of an operation; nothing if they are unknown."""
    try:
        # Of a tool without percentiles the rate is all that is published, besides a mean that follows from it.
        blocks = _latencies(shares) if any(share.sample.latency.kind is LatencyKind.FULL for share in shares) else []
    except HistogramError:
        return
    rate = _rate_difference(operation, shares, span, busy, calm)
    if rate is None:
        return
    yield rate
    if blocks:
        active, quiet = Coverage(busy), Coverage(calm)
        during = [histogram for block, histogram in blocks if active.within(block)]
        otherwise = [histogram for block, histogram in blocks if quiet.within(block) == block.length]
        names = {50: "median", 99: "99th percentile"} if _publishes_p99(shares) else {50: "median"}
        for percentile, name in names.items():
            yield _percentile_difference(f"{name} of {operation}", percentile, during, otherwise)


def _rate_difference(
    operation: Operation, shares: Sequence[Share], span: Interval, busy: Sequence[Interval], calm: Sequence[Interval]
) -> Difference | None:
    width = max(NANOSECONDS, -(-span.length // _MOST_BLOCKS))
    edges = [*range(span.start, span.end, width), span.end]
    amounts = amounts_between(shares, edges)
    if amounts is None:
        return None
    # The last block may be shorter.
    cells = [Interval(start=start, end=end) for start, end in pairwise(edges)]
    rates = [(cell, amount.per_second(cell.length).ios) for cell, amount in zip(cells, amounts, strict=True)]
    active, quiet = Coverage(busy), Coverage(calm)
    with_it = [rate for cell, rate in rates if active.within(cell)]
    without_it = [rate for cell, rate in rates if quiet.within(cell) == cell.length]
    usual = math.fsum(without_it) / len(without_it) if without_it else 0.0
    if not with_it or not usual:
        return None
    slower = 1 - math.fsum(with_it) / len(with_it) / usual
    margin = margin_of_difference(with_it, without_it, _CONFIDENCE) / usual
    return Difference(
        text=f"the {operation} rate was {percent_text(abs(100 * slower))} {'lower' if slower > 0 else 'higher'}",
        size=slower,
        is_noticeable=slower > MOST_SLOWER + margin,
        is_known=slower + margin <= _SERIOUSLY_SLOWER,
    )


def _latencies(shares: Sequence[Share]) -> Blocks:
    """Return the latencies of all clients in each slice of time; HistogramError if one client's are missing."""
    pieces = ((number, *piece) for share in shares for number, piece in enumerate(share.slices()))
    return [
        (
            Interval(start=min(piece.start for _, piece, _ in same), end=max(piece.end for _, piece, _ in same)),
            Histogram.merge_texts(text for _, _, text in same),
        )
        for _, same in sorted(grouped(pieces, lambda piece: piece[0]).items())
    ]


def _percentile_difference(
    name: str, percentile: float, during: Sequence[Histogram], otherwise: Sequence[Histogram]
) -> Difference:
    """Compare a percentile in two times by the part of the operations beyond it.

    The percentile is longer by the bound if more than the usual part of the operations took longer than the bound
    allows. The error of a part of operations that come in clusters, the blocks, is that of a ratio (Cochran, "Sampling
    Techniques", 3rd edition, 1977, section 3.12), and no less than the binomial one.
    """
    limit = Histogram.merge(otherwise).percentile(percentile)
    busy, calm = (sum(histogram.total for histogram in histograms) for histograms in (during, otherwise))
    if not limit or not busy:
        return Difference(text=f"the {name} is unknown", size=0.0, is_noticeable=False, is_known=False)
    expected = 1 - percentile / 100
    binomial = _DEVIATIONS * math.sqrt(expected * (1 - expected))
    part, margin = _part_beyond(during, otherwise, (1 + MOST_LONGER) * limit)
    serious_part, serious_margin = _part_beyond(during, otherwise, (1 + _SERIOUSLY_LONGER) * limit)
    longer = (Histogram.merge(during).percentile(percentile) or math.inf) / limit - 1
    return Difference(
        text=f"the {name} was {percent_text(abs(100 * longer))} {'longer' if longer > 0 else 'shorter'}",
        size=longer,
        is_noticeable=part - expected > max(margin, binomial * math.sqrt(1 / busy + 1 / calm)),
        is_known=(
            serious_part + max(serious_margin, binomial / math.sqrt(busy)) <= expected
            and calm * expected >= MINIMUM_BEYOND
        ),
    )


def _part_beyond(during: Sequence[Histogram], otherwise: Sequence[Histogram], limit: float) -> tuple[float, float]:
    """Return the part of the operations beyond a limit, and how much it may differ between two times by chance."""
    (part, residuals), (_, usual_residuals) = _beyond(during, limit), _beyond(otherwise, limit)
    return part, margin_of_difference(residuals, usual_residuals, _CONFIDENCE)


def _beyond(histograms: Sequence[Histogram], limit: float) -> tuple[float, list[float]]:
    """Return the part of the operations beyond a limit, and by how much it is exceeded in each histogram."""
    totals = [histogram.total for histogram in histograms]
    late = [sum(n for index, n in item.counts.items() if bin_midpoint(index) > limit) for item in histograms]
    part, mean = sum(late) / sum(totals), sum(totals) / len(totals)
    return part, [(number - part * total) / mean for number, total in zip(late, totals, strict=True)]
