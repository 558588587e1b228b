"""Whether rate and tail latency were steady over the window of a trial, as far as chance allows to tell.

The window is divided into equal rounds. Of all its parts (the beginning, the end, a stretch in the middle) the test
takes the part that differs most from the rest: the likelihood ratio test for a change at an unknown time (Quandt, JASA
55, 1960), with the epidemic alternative of a change that ends again (Levin and Kline, Statistics in Medicine 4, 1985).

Chance is the scatter of counts (Poisson), or of the rounds themselves if that is larger: the Allan variance (Allan,
Proc. IEEE 54, 1966; overlapping, as in NIST SP 1065), which compares only neighbours, so that the change in question
does not count as chance.
"""

import math
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from itertools import accumulate, combinations
from operator import sub

from plimsoll.api.names import Operation
from plimsoll.api.operation import Steadiness, SteadinessState
from plimsoll.measure.histogram import MINIMUM_BEYOND, Histogram, HistogramError, bin_midpoint
from plimsoll.measure.rates import ALL_QUANTITIES, Quantities
from plimsoll.measure.text import number_text, percent_text
from plimsoll.measure.timeline import NANOSECONDS, Interval, Share, amounts_between, divided, histograms_between

LEAST_ROUNDS = 10  # with fewer, a window is never called steady, and not steady only because of a burst
FEWEST_ROUNDS = 5  # with fewer, nothing is known; rounds are no shorter than the intervals of the series
MAX_ROUNDS = 40
MAX_RATE_CHANGE = 0.10
MAX_LATENCY_CHANGE = 0.20
"""Parts of the mean over the window; a smaller change moves the mean by half of it at most, and is no finding."""
MAX_SHIFT, MAX_SHIFT_OF_FEW = 0.20, 0.40
"""A burst is a change only if it raises the mean by more above the rate of the rest; of fewer rounds by the latter."""
LEAST_DEVIATIONS = 6  # standard deviations of chance from which a change is one

_DECIMALS = 6
_EDGE, _MIDDLE = 5, 3
"""A part at an edge of the window is at least a fifth of it, one in the middle a third; so is the rest."""
_LONGEST = 10  # scatter is averaged over up to this part of the window: half of the shortest part
_MOST_DEVIATIONS = 1000
_SURE = 3  # standard deviations to be sure that a change is below twice its limit


def rate_steadiness(
    shares: Collection[Share], window: Interval, quantities: Quantities = ALL_QUANTITIES
) -> Steadiness | None:
    """Judge operations per second of all clients and operations together, or bytes of a tool that counts only those.

    None if the window is shorter than five intervals of the series, if nothing completed in it, or if a client has no
    usable series. Syncs do not count: no tool keeps their series.
    """
    scaled, variance = _rates(shares, window, quantities)
    rounds = len(scaled)
    judged = _judged(scaled, window, _parts(rounds), variance=variance, limit=MAX_RATE_CHANGE)
    if judged is None or (judged.state is SteadinessState.NOT_STEADY and rounds >= LEAST_ROUNDS):
        return judged
    bursts = _judged(scaled, window, _bursts(scaled), variance=variance, limit=MAX_RATE_CHANGE)
    if bursts and bursts.state is SteadinessState.NOT_STEADY:
        return bursts
    return judged if rounds >= LEAST_ROUNDS else judged.model_copy(update={"state": SteadinessState.UNKNOWN})


def _rates(shares: Collection[Share], window: Interval, quantities: Quantities) -> tuple[list[float], float]:
    """Return the rate in each round, and its variance by counting; no rounds if they would be too few."""
    counted = [share for share in shares if share.sample.operation is not Operation.SYNC]
    rounds = _rounds(window, [share.curve.width for share in counted if share.curve], least=FEWEST_ROUNDS)
    amounts = amounts_between(counted, divided(window, rounds)) if rounds else None
    if not amounts:
        return [], 0.0
    totals = [quantities.amount(amount.ios, amount.bytes) for amount in amounts]
    counting = sum(totals) / rounds if quantities.operations else 0.0
    per_second = rounds * NANOSECONDS / window.length
    return [total * per_second for total in totals], counting * per_second**2


def doubts_about(
    measured: Steadiness | None, shares: Collection[Share], window: Interval, quantities: Quantities = ALL_QUANTITIES
) -> list[str]:
    """Return why it is unknown whether the rate was steady: a short window, or a rate that may have several states."""
    seconds, doubts = window.length / NANOSECONDS, list[str]()
    if seconds < LEAST_ROUNDS and not (measured and measured.state is SteadinessState.NOT_STEADY):
        doubts.append(
            f"the window of {number_text(seconds)} s is too short to show whether the rate was steady; measure for "
            f"{LEAST_ROUNDS} s or longer"
        )
    if measured and _is_change_of_states(measured, shares, window, quantities):
        change = steadiness_text(measured, f"{quantities.unit}/s", number_text, seconds)
        doubts.append(
            f"it is unknown whether the rate was steady: {change}, but the scatter is too large to call that a "
            "change; if the series shows different states, measure many times longer than they last"
        )
    return doubts


def _is_change_of_states(
    measured: Steadiness, shares: Collection[Share], window: Interval, quantities: Quantities
) -> bool:
    """Whether the state is unknown although the rate changed by more than twice the limit.

    Neither counting nor scatter from round to round explains the change, only a rate that goes up and down for several
    rounds at a time. Standstills have checks of their own.
    """
    is_unknown = measured.state is SteadinessState.UNKNOWN and _deviations(measured) <= LEAST_DEVIATIONS
    rates, variance = _rates(shares, window, quantities)
    if not is_unknown or abs(measured.change) <= 2 * MAX_RATE_CHANGE or 0 in rates:
        return False
    part = _rounds_of(measured, window, len(rates))
    scatter = max(variance, _scatter([*accumulate(rates, initial=0.0)], part, longest=1))
    deviation = math.sqrt(scatter) * _spread(len(rates), part) * len(rates) / sum(rates)
    return abs(measured.change) > LEAST_DEVIATIONS * deviation


def latency_steadiness(shares: Collection[Share], window: Interval, percentile: int) -> Steadiness | None:
    """Judge a percentile, 0 to 100, of one operation's latency, in nanoseconds, over all clients.

    Without ten rounds with ten operations beyond the percentile, only a change that these operations show is judged
    (`_of_few`). None if nothing is known, as without usable latencies over time.
    """
    widths, ends = list[int](), [window.end]
    for share in shares:
        slices = share.sample.slices
        if not share.sample.ios or slices is None or slices.width_nanoseconds <= 0:
            continue
        width, number = slices.width_nanoseconds, len(slices.histograms)
        # The last one, which is partial, may be missing, and so may one that ended just before the tool did.
        if number + 1 < share.interval.length // width:
            return None
        if number:
            widths.append(width)
            ends.append(share.interval.start + number * width)
    covered = Interval(start=window.start, end=min(ends))
    most = sum(share.sample.latency.count for share in shares) * (100 - percentile) // (100 * MINIMUM_BEYOND)
    rounds = _rounds(covered, widths, most=most if most >= LEAST_ROUNDS else MAX_ROUNDS)
    if not rounds:
        return None
    try:
        merged = histograms_between(shares, divided(covered, rounds))
    except HistogramError:
        return None
    if most < LEAST_ROUNDS:
        return _of_few(merged, covered, percentile)
    tails = [tail for histogram in merged if (tail := _value(histogram, percentile)) is not None]
    if len(tails) < rounds:
        return None
    values, deviations = zip(*tails, strict=True)
    variance = math.fsum(deviation**2 for deviation in deviations) / rounds
    return _judged(values, covered, _parts(rounds), variance=variance, limit=MAX_LATENCY_CHANGE)


def _of_few(rounds: Sequence[Histogram], window: Interval, percentile: int) -> Steadiness | None:
    """Return a change of a percentile that too few operations exceed for one of each round; None if there is none.

    The number of operations of each round that reach the percentile of the whole window shows it (Mood's median test,
    for another quantile: Conover, "Practical Nonparametric Statistics", section 4.3), and scatters as counts do.
    """
    whole = Histogram.merge(rounds)
    usual = whole.percentile(percentile)
    if usual is None or whole.samples_beyond(percentile) < MINIMUM_BEYOND:
        return None
    late = [sum(count for index, count in each.counts.items() if bin_midpoint(index) >= usual) for each in rounds]
    counted = _judged(late, window, _parts(len(late)), variance=sum(late) / len(late), limit=0.0)
    if counted is None or counted.state is not SteadinessState.NOT_STEADY:
        return None
    start, end = _rounds_of(counted, window, len(rounds))
    parts = rounds[start:end], [*rounds[:start], *rounds[end:]]
    inside, outside = (Histogram.merge(part).percentile(percentile) or math.inf for part in parts)
    change = (inside - outside) / usual
    if not MAX_LATENCY_CHANGE < abs(change) < math.inf:
        return None
    values = {"inside": inside, "outside": outside, "change": round(change, _DECIMALS)}
    return counted.model_copy(update=values | {"deviation": round(abs(change) / _deviations(counted), _DECIMALS)})


def steadiness_text(measured: Steadiness, quantity: str, show: Callable[[float], str], window_seconds: float) -> str:
    """Return the change of a quantity, shown by `show`, in words: `read p99: 5 ms in the first 20 s of 60 s, ...`."""
    start, end, seconds = map(number_text, (measured.start_seconds, measured.end_seconds, window_seconds))
    if not measured.start_seconds:
        part = f"in the first {end} s of {seconds} s"
    elif end == seconds:
        part = f"in the last {number_text(window_seconds - measured.start_seconds)} s of {seconds} s"
    else:
        part = f"from {start} s to {end} s of {seconds} s"
    inside, outside, size = show(measured.inside), show(measured.outside), percent_text(100 * abs(measured.change))
    return f"{quantity}: {inside} {part}, {outside} in the rest, which differs by {size} of the mean"


def deviations_of(measured: Steadiness) -> float:
    """Return a change in standard deviations of chance, at most 1000; 0 unless the state is NotSteady."""
    return _deviations(measured) if measured.state is SteadinessState.NOT_STEADY else 0.0


def _deviations(measured: Steadiness) -> float:
    size = abs(measured.change)
    return size / max(measured.deviation, size / _MOST_DEVIATIONS)


def _rounds(window: Interval, widths: Sequence[int], *, least: int = LEAST_ROUNDS, most: int = MAX_ROUNDS) -> int:
    """Return the number of rounds, none shorter than the widest interval; 0 if they would be too few."""
    rounds = min(most, MAX_ROUNDS, window.length // max(widths)) if widths and min(widths) > 0 else 0
    return rounds if rounds >= least else 0


def _value(histogram: Histogram, percentile: int) -> tuple[int, float] | None:
    """Return a percentile of a round, and its deviation, from its rank's (order statistics); None if unknown."""
    # Rounds have ten operations beyond it on average, some of them fewer.
    if histogram.samples_beyond(percentile) < MINIMUM_BEYOND / 2:
        return None
    rank = math.sqrt(percentile * (100 - percentile) / histogram.total)
    low, value, high = (histogram.percentile(p) for p in (percentile - rank, percentile, percentile + rank))
    return None if low is None or value is None or high is None else (value, (high - low) / 2)


_Part = tuple[int, int]  # a part of the window: its first round, and the one after its last


def _judged(
    rounds: Sequence[float], window: Interval, parts: Sequence[_Part], *, variance: float, limit: float
) -> Steadiness | None:
    """Judge values in equal rounds by these parts, with a round's `variance`. None without parts or values."""
    sums = [*accumulate(rounds, initial=0.0)]
    number, total = len(rounds), sums[-1]
    if total <= 0 or not parts:
        return None

    def means(part: _Part) -> tuple[float, float]:
        start, end = part
        inside = sums[end] - sums[start]
        return inside / (end - start), (total - inside) / (number - end + start)

    start, end = part = max(parts, key=lambda part: abs(sub(*means(part))) / _spread(number, part))
    (inside, outside), mean = means(part), total / number
    change = (inside - outside) / mean
    deviation = math.sqrt(max(variance, _scatter(sums, part))) * _spread(number, part) / mean
    state = SteadinessState.UNKNOWN
    if abs(change) > limit and abs(change) > LEAST_DEVIATIONS * deviation:
        state = SteadinessState.NOT_STEADY
    # Two one-sided tests (Schuirmann, J. Pharmacokinetics and Biopharmaceutics 15, 1987).
    elif abs(change) + _SURE * deviation <= 2 * limit:
        state = SteadinessState.STEADY
    return Steadiness(
        state=state,
        start_seconds=round(window.length * start / number / NANOSECONDS, _DECIMALS),
        end_seconds=round(window.length * end / number / NANOSECONDS, _DECIMALS),
        inside=round(inside, _DECIMALS),
        outside=round(outside, _DECIMALS),
        change=round(change, _DECIMALS),
        deviation=round(deviation, _DECIMALS),
    )


@lru_cache(maxsize=MAX_ROUNDS)
def _parts(rounds: int) -> tuple[_Part, ...]:
    # A part in the middle and its rest are long enough; the other half is the rest of a part at the edge.
    middle, edge = (-(-rounds // part) for part in (_MIDDLE, _EDGE))
    limits = {True: (middle, rounds - middle), False: (edge, rounds // 2)}
    parts = ((start, end, *limits[start > 0 and end < rounds]) for start, end in combinations(range(rounds + 1), 2))
    return tuple((start, end) for start, end, least, most in parts if least <= end - start <= most)


def _bursts(rounds: Sequence[float]) -> list[_Part]:
    """Return the parts, of any length up to half of the window, that raise the mean far above the rate of the rest.

    None if nothing completed in half of the rounds: then most of the window has no rate.
    """
    sums = [*accumulate(rounds, initial=0.0)]
    number, total = len(rounds), sums[-1]
    least = total / number - (MAX_SHIFT if number >= LEAST_ROUNDS else MAX_SHIFT_OF_FEW) * total / number
    parts = combinations(range(number + 1), 2) if 2 * rounds.count(0) < number else ()
    short = ((start, end) for start, end in parts if end - start <= number // 2)
    return [(a, b) for a, b in short if (total - sums[b] + sums[a]) / (number - b + a) < least]


def _rounds_of(measured: Steadiness, window: Interval, rounds: int) -> _Part:
    per_second = NANOSECONDS * rounds / window.length
    return round(measured.start_seconds * per_second), round(measured.end_seconds * per_second)


def _spread(rounds: int, part: _Part) -> float:
    """Return the deviation of the difference between part and rest, as a multiple of the deviation of one round."""
    length = part[1] - part[0]
    return math.sqrt(1 / length + 1 / (rounds - length))


def _scatter(sums: Sequence[float], part: _Part, *, longest: int | None = None) -> float:
    """Return the variance of one round that explains the means of several: times their number, it is the largest.

    It is the overlapping Allan variance over neighbours on the same side of the part's edges, of means over up to
    `longest` rounds, by default a tenth of the window. Each estimate is taken one standard error high, sqrt(2 / degrees
    of freedom) of a variance, because few neighbours underestimate it easily.
    """
    number, worst = len(sums) - 1, 0.0
    for length in range(1, (longest or max(1, number // _LONGEST)) + 1):
        differences = [
            (sums[first + 2 * length] - 2 * sums[first + length] + sums[first]) / length
            for first in range(number - 2 * length + 1)
            if not any(first < edge < first + 2 * length for edge in part)
        ]
        variance = length * math.fsum(value * value for value in differences) / (2 * len(differences))
        worst = max(worst, variance * (1 + math.sqrt(2 * length / len(differences))))
    return worst
