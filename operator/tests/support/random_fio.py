"""What fio leaves after a run on storage whose speed over time is known, with chance in all that it counts and times.

As in a real run, the document, the logs and the histograms contain the same operations, and in a closed loop rate times
mean latency is the queue depth.
"""

import json
import math
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from statistics import NormalDist
from typing import Any

from corpus.fio_run import histogram_of, latency_fields, recorded
from plimsoll.api.names import Operation
from plimsoll.measure.histogram import BIN_COUNT, bin_index, bin_midpoint
from plimsoll.tools.base import Timing
from plimsoll.tools.fio.command import LOG_MILLISECONDS, gap_milliseconds, slice_seconds
from plimsoll.tools.fio.logs import DIRECTIONS
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.fio.tool import EXACT_DEPTHS

SECOND = 10**9
TAIL = 6
"""How many times as long as others an operation takes that is late."""

_SUBMISSION = 5_000
_STEP = 1.03
_ONE_BY_ONE = 1_500
_IN_EVERY_INTERVAL = 300
"""Operations per second, from which on no gap between them is as long as those that the agent reads."""


@dataclass(frozen=True, kw_only=True)
class RandomRun:
    """One client's run.

    Attributes:
        started_at: when measuring begins, Unix milliseconds.
        rates: operations expected in each measured second, if nothing is frozen.
        late: of each second, the share of operations that take `TAIL` times as long.
        frozen: seconds from and until which nothing completes, in ascending order.
        sigma: of the logarithm of the latency.
        dispersion: the variance of the operations of a second divided by their mean; 1 if they arrive at random.
        latency: the mean in seconds; None in a closed loop, where it follows from depth and rate.
        full: share of the submissions that fill the depth.
    """

    parameters: FioParameters
    timing: Timing
    started_at: int
    rates: Sequence[float]
    late: Sequence[float]
    frozen: Sequence[tuple[float, float]] = ()
    sigma: float = 0.4
    dispersion: float = 0.2
    latency: float | None = None
    full: float = 1.0

    def files(self, chance: Random) -> dict[str, str]:
        """Return the document and the logs, by file name."""
        seconds = range(self.timing.runtime_seconds)
        live = [1 - sum(_overlap(start, end, second) for start, end in self.frozen) for second in seconds]
        done = [drawn(chance, rate * part, self.dispersion) for rate, part in zip(self.rates, live, strict=True)]
        counts = dict(self._by_operation(chance, done))
        slices = {operation: list[Counter[int]]() for operation in counts}
        width = slice_seconds(self.timing)
        for begin in seconds[::width]:
            part = slice(begin, begin + width)
            ios, late = sum(done[part]), sum(self.late[part]) / len(self.late[part])
            mean = self.latency or self.parameters.io_depth * sum(live[part]) / max(1, ios)
            for operation, cells in counts.items():
                thawed = [end - start for start, end in self.frozen if begin <= end < begin + width]
                share = sum(cells[part]) / max(1, ios)
                slices[operation].append(self._latencies(chance, sum(cells[part]), mean, late, thawed, share))
        document = self._document({operation: sum(parts, Counter()) for operation, parts in slices.items()})
        logs = {"bw": self._rate_log(counts, self.parameters.block_size / 2**10), "iops": self._rate_log(counts, 1.0)}
        logs["clat_hist"] = [line for operation, parts in slices.items() for line in self._slice_log(operation, parts)]
        logs["lat"] = [line for operation, cells in counts.items() for line in self._gap_log(chance, operation, cells)]
        return {"fio.json": json.dumps(document)} | {
            f"fio_{kind}.1.log": "".join(f"{moment}, {text}\n" for moment, text in sorted(lines))
            for kind, lines in logs.items()
        }

    def _by_operation(self, chance: Random, done: Sequence[int]) -> Iterator[tuple[Operation, list[int]]]:
        """Yield each operation with how many of them completed in each second; of a mix they come at random."""
        first, *others = self.parameters.shares.items()
        if not others:
            yield first[0], [*done]
            return
        part = first[1] / 100
        cells = [min(ios, drawn(chance, ios * part, 1 - part)) for ios in done]
        yield first[0], cells
        yield others[0][0], [ios - cell for ios, cell in zip(done, cells, strict=True)]

    def _latencies(
        self, chance: Random, ios: int, mean: float, late: float, thawed: Sequence[float], share: float
    ) -> Counter[int]:
        """Return the latencies of so many operations of a slice, in nanoseconds; `mean` is that of all of them.

        All that were in flight waited for the end of each of the freezes that ended in it, whose lengths are `thawed`.
        """
        spread, weights = _spread(self.sigma)
        stuck = min(ios, round(self.parameters.io_depth * share * len(thawed)))
        tail = min(ios - stuck, drawn(chance, (ios - stuck) * late))
        parts = Counter[float]()
        for number, factor in ((ios - stuck - tail, 1), (tail, TAIL)):
            if number <= _ONE_BY_ONE:
                parts.update(factor * spread[bisect(weights, chance.random())] for _ in range(number))
                continue
            before, rest = 0.0, number
            for value, until in zip(spread, weights, strict=True):
                expected, before = number * (until - before), until
                count = min(rest, drawn(chance, expected))
                parts[factor * value] += count
                rest -= count
            parts[factor] += rest
        # In a closed loop, the sum of all latencies is what time and depth make it.
        is_closed = self.latency is None
        usual = sum(value * count for value, count in parts.items()) / max(1, parts.total()) if is_closed else 1.0
        latencies = Counter[int]()
        for value, count in parts.items():
            latencies[_midpoint(SECOND * mean * value / (usual or 1.0))] += count
        for number in range(stuck):
            latencies[_midpoint(SECOND * (mean + thawed[number % len(thawed)]))] += 1
        return latencies

    def _rate_log(self, counts: Mapping[Operation, Sequence[int]], size: float) -> list[tuple[int, str]]:
        """Return the lines of one of fio's averaged logs; there is none for a second without I/O."""
        return [
            (LOG_MILLISECONDS * second, f"{int(ios * size)}, {DIRECTIONS[operation]}, 0, 0")
            for operation, cells in counts.items()
            for second, ios in enumerate(cells, start=1)
            if ios
        ]

    def _slice_log(self, operation: Operation, parts: Sequence[Counter[int]]) -> Iterator[tuple[int, str]]:
        """Yield a line for each slice but the last; that of an empty one comes with an operation of the next."""
        width, waiting = LOG_MILLISECONDS * slice_seconds(self.timing), 0
        prefix = f"{DIRECTIONS[operation]}, {self.parameters.block_size}, "
        for number, part in enumerate(parts):
            left = Counter(part)
            while waiting and left:
                first = min(left)
                left -= Counter({first: 1})
                yield number * width + 1, prefix + _bins({first: 1})
                waiting -= 1
            if not left:
                waiting += 1
            elif number < len(parts) - 1:
                yield (number + 1) * width + 1, prefix + _bins(left)

    def _gap_log(self, chance: Random, operation: Operation, cells: Sequence[int]) -> Iterator[tuple[int, str]]:
        """Yield a line for the first operation that completes after an interval is over."""
        width, due = gap_milliseconds(self.parameters, self.timing), 0
        text = f"1000000, {DIRECTIONS[operation]}, 0, 0"
        due = width
        thaws = [round(1000 * end) for _, end in self.frozen]
        for second, ios in enumerate(cells):
            begin = 1000 * second
            if not ios:
                continue
            if ios >= _IN_EVERY_INTERVAL:
                moments = [*range(begin, begin + 1000, width)]
            else:
                moments = [begin + int(1000 * chance.random()) for _ in range(ios)]
            if self.frozen:
                moments = [self._thawed(moment) for moment in moments]
                moments += [moment for moment in thaws if begin <= moment < begin + 1000]
            for moment in sorted(moments):
                if moment >= due:
                    yield moment, text
                    due = (moment // width + 1) * width

    def _thawed(self, moment: int) -> int:
        """Return when something completes that would have completed then; in the same second, if it can."""
        for start, end in self.frozen:
            if 1000 * start <= moment < 1000 * end:
                ended, second = math.ceil(1000 * end), moment // 1000
                return ended if ended // 1000 == second else max(1000 * second, int(1000 * start) - 1)
        return moment

    def _document(self, latencies: Mapping[Operation, Counter[int]]) -> dict[str, Any]:
        document, milliseconds = recorded("3.39"), LOG_MILLISECONDS * self.timing.runtime_seconds + 1
        (job,) = document["jobs"]
        job |= {"jobname": "measure", "job_start": self.started_at, "job_runtime": milliseconds}
        document["timestamp_ms"] = self.started_at + milliseconds
        document["timestamp"] = document["timestamp_ms"] // 1000
        nothing = job["trim"]
        job |= {"read": nothing, "write": nothing, "trim": nothing}
        depth = self.parameters.io_depth
        filled = ">=64" if depth >= EXACT_DEPTHS[-1] else str(1 << (depth.bit_length() - 1))
        job["iodepth_level"] = dict.fromkeys(job["iodepth_level"], 0.0) | {"1": 100 * (1 - self.full)}
        job["iodepth_level"][filled] += 100 * self.full
        for operation, counts in latencies.items():
            ios = counts.total()
            size = ios * self.parameters.block_size
            job[operation] = nothing | {
                "io_bytes": size,
                "io_kbytes": size // 2**10,
                "bw_bytes": 1000 * size // milliseconds,
                "bw": 1000 * size // milliseconds // 2**10,
                "iops": round(1000 * ios / milliseconds, 6),
                "runtime": milliseconds,
                "total_ios": ios,
                "slat_ns": latency_fields({} if self.parameters.is_synchronous or not ios else {_SUBMISSION: ios}),
                "clat_ns": latency_fields(_completions(counts)),
                "lat_ns": latency_fields(counts),
            }
        return document


def drawn(chance: Random, mean: float, dispersion: float = 1.0) -> int:
    """Return a number of events: Poisson's if they are few and come at random, otherwise close to normal."""
    if mean <= 0:
        return 0
    if mean > 20 or dispersion < 1 / 2:
        return max(0, round(chance.gauss(mean, math.sqrt(dispersion * mean))))
    number, product, least = -1, 1.0, math.exp(-mean)
    while product > least:
        number, product = number + 1, product * chance.random()
    return number


@cache
def _spread(sigma: float) -> tuple[list[float], list[float]]:
    """Return log-normal latencies with the mean 1, and the probability of each with all shorter ones."""
    normal = NormalDist(-sigma * sigma / 2, sigma)
    edges = [-3.5 * sigma + number * math.log(_STEP) for number in range(math.ceil(8 * sigma / math.log(_STEP)))]
    weights = [normal.cdf(edge) for edge in edges]
    weights[-1] = 1.0
    return [math.exp(edge) / math.sqrt(_STEP) for edge in edges], weights


def _midpoint(nanoseconds: float) -> int:
    return bin_midpoint(bin_index(max(2 * _SUBMISSION, int(nanoseconds))))


def _completions(counts: Mapping[int, int]) -> dict[int, int]:
    return {value - _SUBMISSION: count for value, count in counts.items() if count}


def _bins(counts: Mapping[int, int]) -> str:
    bins = ["0"] * BIN_COUNT
    for index, count in histogram_of(_completions(counts)).counts.items():
        bins[index] = str(count)
    return ", ".join(bins)


def _overlap(start: float, end: float, second: int) -> float:
    return max(0.0, min(end, second + 1) - max(start, second))
