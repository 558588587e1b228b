"""Freezes are distinguished from heavy-tailed latency and from slow storage."""

import heapq
import random
from collections.abc import Iterator
from functools import cache
from itertools import count
from operator import itemgetter

import pytest

from plimsoll.api.names import Operation, Verdict
from plimsoll.measure.sample import Cells, ClientDocument, OperationSample
from plimsoll.measure.trial import TrialNumbers
from plimsoll.tools.fio.logs import JobCompletions, gaps_of
from support.client_documents import BLOCK, RUNTIME, SECOND, document, latency, measure, measurement

SIGMA = 1.5
"""Of log-normal latencies: the 99th percentile is 33 times the median."""
WIDTH = 10


class Chance:
    """The latencies of one seed in units of their median, drawn once for all medians.

    Attributes:
        first: latencies of what is in flight at the beginning, each with the part of it that is left.

    """

    def __init__(self, seed: int, in_flight: int) -> None:
        self._source = random.Random(seed)  # noqa: S311 - numbers, not secrets
        self.first = [(self._drawn(), self._source.random()) for _ in range(in_flight)]
        self._known: list[float] = []

    def factors(self) -> Iterator[float]:
        for number in count():
            if number == len(self._known):
                self._known.append(self._drawn())
            yield self._known[number]

    def _drawn(self) -> float:
        return self._source.lognormvariate(0, SIGMA)


@cache
def chance_of(seed: int, in_flight: int) -> Chance:
    return Chance(seed, in_flight)


def completions(seed: int, median: float, in_flight: int, *, every: float = 0.0, lasts: float = 0.0) -> list[float]:
    """Return when operations completed of which so many are always in flight, each as slow as chance has it.

    Args:
        seed: of chance.
        median: seconds of latency.
        in_flight: operations, none of which depends on another.
        every: seconds from the beginning of one freeze to that of the next.
        lasts: seconds of a freeze; what would complete in it waits until it is over.

    """
    chance = chance_of(seed, in_flight)
    pending = [median * factor * left for factor, left in chance.first]
    heapq.heapify(pending)
    factors = chance.factors()
    done = list[float]()
    while pending[0] < RUNTIME:
        moment = pending[0]
        if every and moment % every < lasts:
            moment += lasts - moment % every
        done.append(moment)
        heapq.heapreplace(pending, moment + median * next(factors))
    return sorted(moment for moment in done if moment < RUNTIME)


def client(number: int, done: list[float], in_flight: int) -> ClientDocument:
    """Return what an agent sends of them, with gaps read from the log that fio would have written."""
    lines, due = list[int](), WIDTH
    for milliseconds in (int(1000 * moment) for moment in done):
        if milliseconds >= due:
            lines.append(milliseconds)
            due = (milliseconds // WIDTH + 1) * WIDTH
    ios = {Operation.READ: len(done), Operation.WRITE: 0, Operation.TRIM: 0}
    text = "".join(f"{moment}, 1, 0, 0, 0\n" for moment in lines)
    gaps = gaps_of([JobCompletions(text=text, offset=0, ios=ios)], 1000 * RUNTIME, WIDTH)
    counts = [0.0] * RUNTIME
    for moment in done:
        counts[int(moment)] += 1
    cells = Cells(width_nanoseconds=SECOND, ios=tuple(counts), bytes=tuple(count * BLOCK for count in counts))
    mean = round(in_flight * RUNTIME * SECOND / len(done))
    sample = OperationSample(
        operation=Operation.READ, ios=len(done), bytes=len(done) * BLOCK, latency=latency(len(done), mean), cells=cells
    )
    return document(number, measurement(sample, in_flight=in_flight, gaps=gaps))


def measured(median: float, clients: int, depth: int, *, every: float = 0.0, lasts: float = 0.0) -> TrialNumbers:
    return measure(
        *(
            client(number, completions(number, median, depth, every=every, lasts=lasts), depth)
            for number in range(clients)
        )
    )


def stalls(numbers: TrialNumbers) -> dict[str, Verdict]:
    named = {"Stalled", "ClientStalled"}
    return {finding.reason: finding.verdict for finding in numbers.findings if finding.reason in named}


@pytest.mark.parametrize("median", [0.0002, 0.0005, 0.001, 0.002])
@pytest.mark.parametrize(("clients", "depth"), [(1, 1), (2, 1), (1, 4), (3, 2), (2, 16)])
def test_a_heavy_tail_is_no_freeze(median: float, clients: int, depth: int) -> None:
    assert stalls(measured(median, clients, depth)) == {}


@pytest.mark.parametrize("median", [0.005, 0.01, 0.03])
@pytest.mark.parametrize(("clients", "depth"), [(1, 4), (3, 2), (2, 16)])
def test_a_heavy_tail_of_slow_storage_is_no_freeze(median: float, clients: int, depth: int) -> None:
    """With one operation in flight it does stand still: single operations take more than two seconds there."""
    assert stalls(measured(median, clients, depth)) == {}


@pytest.mark.parametrize(
    ("every", "lasts", "verdict"),
    [
        (1.75, 0.85, Verdict.INVALID),
        (1.0, 0.25, Verdict.INVALID),
        (1.7, 0.12, Verdict.SUSPECT),
        (0.5, 0.1, Verdict.INVALID),
        (1.0, 0.95, Verdict.INVALID),
        (1.5, 1.45, Verdict.INVALID),
        (7.1, 0.1, None),
    ],
)
@pytest.mark.parametrize(("median", "clients", "depth"), [(0.0002, 2, 1), (0.001, 2, 16), (0.01, 4, 16)])
def test_freezes_are_found_whatever_their_period_and_however_heavy_the_tail(
    median: float, clients: int, depth: int, every: float, lasts: float, verdict: Verdict | None
) -> None:
    found = stalls(measured(median, clients, depth, every=every, lasts=lasts))
    assert found == ({"Stalled": verdict} if verdict else {})


def test_an_operation_that_gets_through_does_not_hide_a_freeze() -> None:
    """A throttle lets one operation through in the middle of each freeze."""
    done = completions(1, 0.001, 16, every=1.75, lasts=0.85)
    through = [second * 1.75 + 0.4 for second in range(int(RUNTIME / 1.75))]
    assert stalls(measure(client(0, sorted([*done, *through]), 16))) == {"Stalled": Verdict.INVALID}


def at_once(seed: int, in_flight: int, least: float, most: float) -> list[float]:
    """Return when operations completed of storage that completes all that is in flight at once, again and again."""
    chance = random.Random(seed)  # noqa: S311 - numbers, not secrets
    done, moment = list[float](), 0.0
    while (moment := moment + chance.uniform(least, most)) < RUNTIME:
        done += [moment] * in_flight
    return done


@pytest.mark.parametrize(("least", "most"), [(0.03, 0.1), (0.05, 0.12), (0.06, 0.09), (0.07, 0.085), (0.09, 0.11)])
@pytest.mark.parametrize("depth", [16, 64])
def test_storage_that_completes_its_queue_at_once_is_slow_and_not_frozen(least: float, most: float, depth: int) -> None:
    assert stalls(measure(client(0, at_once(1, depth, least, most), depth))) == {}


@pytest.mark.parametrize("depth", [1, 4, 8])
def test_storage_that_takes_long_for_few_operations_is_slow_and_not_frozen(depth: int) -> None:
    assert stalls(measure(client(0, at_once(1, depth, 0.5, 0.7), depth))) == {}


def by_tokens(rate: int, *, uneven: float = 0.0, times: float = 10.0) -> list[float]:
    """Return when operations completed of a volume whose limit is a number of tokens every tenth of a second.

    Linux's throttle of block devices works like this.

    Args:
        rate: the limit.
        uneven: seconds by which tokens come early or late.
        times: how many times as fast the storage itself is.

    """
    chance, each = random.Random(1), rate // 10  # noqa: S311 - numbers, not secrets
    due = (number / 10 + chance.uniform(0, 2 * uneven) for number in range(10 * RUNTIME - 1))
    return [moment + 0.0005 + place / each / times / 10 for moment in due for place in range(each)]


@pytest.mark.parametrize(
    ("rate", "depth", "verdict"), [(500, 4, None), (3000, 16, None), (3000, 64, None), (40_000, 16, Verdict.INVALID)]
)
def test_a_volume_whose_limit_comes_in_tokens_is_frozen_only_if_its_99th_percentile_hides_the_pauses(
    rate: int, depth: int, verdict: Verdict | None
) -> None:
    """Of 4000 operations in a tenth of a second, the 16 in flight wait: 0.4 %."""
    assert stalls(measure(client(0, by_tokens(rate), depth))) == ({"Stalled": verdict} if verdict else {})


@pytest.mark.parametrize(("rate", "depth"), [(500, 4), (3000, 16), (10_000, 16)])
@pytest.mark.parametrize(("uneven", "times"), [(0.015, 10), (0.015, 3), (0.03, 10), (0.03, 3)])
def test_uneven_tokens_are_no_freeze(rate: int, depth: int, uneven: float, times: float) -> None:
    """Storage that is three times as fast as its limit pauses for 7 to 127 ms."""
    assert stalls(measure(client(0, by_tokens(rate, uneven=uneven, times=times), depth))) == {}


@pytest.mark.parametrize(("omitted", "found"), [(True, {}), (False, {"Stalled": Verdict.INVALID})])
def test_of_a_long_window_the_number_of_pauses_counts_too(*, omitted: bool, found: dict[str, Verdict]) -> None:
    whole = client(0, by_tokens(3000, uneven=0.015), 16)
    assert whole.measurement is not None
    gaps = whole.measurement.gaps
    assert gaps is not None
    pairs = [*zip(gaps.starts, gaps.lengths, strict=True)]
    longest = sorted(sorted(pairs, key=itemgetter(1))[-20:])
    starts, lengths = zip(*longest, strict=True)
    kept = gaps.model_copy(update={"starts": starts, "lengths": lengths, "omitted": len(pairs) - 20 if omitted else 0})
    measured = whole.measurement.model_copy(update={"gaps": kept})
    assert stalls(measure(whole.model_copy(update={"measurement": measured}))) == found


@pytest.mark.parametrize("uneven", [0, 0.015])
@pytest.mark.parametrize(("rate", "depth"), [(500, 4), (3000, 16), (10_000, 16)])
def test_a_volume_whose_limit_comes_in_tokens_can_freeze(rate: int, depth: int, uneven: float) -> None:
    """For 0.4 s in every 3 s, which 16 of some 7800 operations show at a limit of 3000."""
    done = [moment for moment in by_tokens(rate, uneven=uneven) if moment % 3 > 0.4]
    assert stalls(measure(client(0, done, depth))) == {"Stalled": Verdict.INVALID}


def test_storage_that_completes_its_queue_at_once_can_freeze() -> None:
    done = [moment for moment in at_once(1, 64, 0.03, 0.1) if moment % 2 > 0.6]
    assert stalls(measure(client(0, done, 64))) == {"Stalled": Verdict.INVALID}
