"""Whether an activity beside the measurement changed the numbers: scrubs, neighbours, a throttled client.

A shared cluster always has some. An activity is harmless if rate, median and 99th percentile of the time with it are no
worse than in the rest of the window, but for chance and a stated bound. For the reasoning see docs/trust.md.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from plimsoll.api.names import LatencyKind, Operation
from plimsoll.measure.checks.evidence import Evidence
from plimsoll.measure.histogram import MINIMUM_BEYOND, Histogram, HistogramError, bin_midpoint
from plimsoll.measure.rates import by_operation, grouped
from plimsoll.measure.statistics import margin_of_difference
from plimsoll.measure.text import percent_text
from plimsoll.measure.timeline import NANOSECONDS, Interval, Share, amounts_between, both, joined, length_of, without

MOST_SLOWER = 0.05
"""Part by which the rate may be lower."""
MOST_LONGER = 0.10
"""Part by which the median and the 99th percentile of the latency may be longer."""
NEGLIGIBLE_TIME = 0.005
"""Part of the time in which an activity cannot matter: it changes the rate by no more, and adds less than half of the
slowest hundredth of the operations."""
UNCOMPARED_TIME = 0.02
"""Part of the OSDs' time that an activity may take if there is no time without it to compare with."""

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
    possible: Sequence[Interval]  # all the time in which it may have gone on
    part: float  # part of the OSDs' time, or of a client's, that it took at most, 0 to 1

    @classmethod
    def polled(cls, polls: Sequence[tuple[int, float]]) -> "Activity | None":
        """Return the activity that polls showed, each at a time and with the part of the OSDs that took part.

        It may have begun just after the poll before and ended just before the next one. None if no poll shows any.
        """
        shown = [number for number, (_, part) in enumerate(polls) if part]
        if not shown:
            return None
        last = len(polls) - 1
        return cls(
            certain=[
                Interval(start=polls[before][0], end=polls[after][0])
                for before, after in pairwise(shown)
                if after == before + 1
            ],
            possible=[
                Interval(start=polls[max(0, number - 1)][0], end=polls[min(last, number + 1)][0]) for number in shown
            ],
            part=math.fsum(min(1.0, part) for _, part in polls) / len(polls),
        )


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
        return not self.is_noticeable and (self.is_known or self.activity.part < UNCOMPARED_TIME)

    @property
    def text(self) -> str:
        """The effect, in words."""
        if not self.is_known and not self.is_noticeable:
            why = "chance hides it" if self.differences else "there was no time without it to compare with"
            part = percent_text(100 * self.activity.part)
            limit = percent_text(100 * UNCOMPARED_TIME)
            return f"its effect is unknown, since {why}, and it took up to {part} of the time, more than {limit}"
        shown = [difference for difference in self.differences if difference.is_noticeable] or self.differences
        return f"meanwhile {', '.join(difference.text for difference in shown)}"


def effect_of(evidence: Evidence, activity: Activity, clients: Collection[int] = ()) -> Effect:
    """Return the effect of an activity on the numbers of these clients, by default of all.

    It is unknown without 10 s of time without it, if a client has no series of its rates, or if a percentile is
    published whose course over time the tool did not keep.
    """
    span = evidence.span
    if span is None or not span.length:
        return Effect(activity=activity, time=1.0)
    possible = both(joined(part for part in activity.possible if part.length), [span])
    time = length_of(possible) / span.length
    calm = without([span], possible)
    if evidence.window is None or not possible or length_of(calm) < _LEAST_COMPARED:
        return Effect(activity=activity, time=time)
    # The certain time alone, unless it is too short.
    certain = both(joined(activity.certain), [span])
    busy = certain if length_of(certain) >= _LEAST_COMPARED else possible
    shares = (share for item in evidence.measured if not clients or item.client in clients for share in item.shares)
    differences = list[Difference]()
    # No tool keeps a series of its syncs.
    for operation, parts in by_operation(shares, lambda share: share.sample.operation).items():
        if operation is not Operation.SYNC and any(share.sample.ios for share in parts):
            found = [*_differences(operation, parts, span, busy, calm)]
            if not found:
                return Effect(activity=activity, time=time)
            differences += found
    return Effect(activity=activity, time=time, differences=tuple(differences))


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
        during = _histograms(blocks, busy, partly=True)
        otherwise = _histograms(blocks, calm, partly=False)
        total = sum(histogram.total for _, histogram in blocks)
        names = {50: "median", 99: "99th percentile"} if total >= _LEAST_FOR_P99 else {50: "median"}
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
    with_it = [rate for cell, rate in rates if _overlap(cell, busy) > 0]
    without_it = [rate for cell, rate in rates if _overlap(cell, calm) == cell.length]
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


def _histograms(blocks: Blocks, times: Sequence[Interval], *, partly: bool) -> list[Histogram]:
    """Return the blocks that lie in these times, or at least partly."""
    least: Callable[[Interval], int] = (lambda _: 1) if partly else (lambda block: block.length)
    return [histogram for block, histogram in blocks if _overlap(block, times) >= least(block)]


def _overlap(block: Interval, times: Iterable[Interval]) -> int:
    return sum(block.clipped(part) for part in times)


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
