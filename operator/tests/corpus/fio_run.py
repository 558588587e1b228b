"""What fio leaves after a run of any length and rate: a recorded document and its logs, stretched.

Everything agrees as it does in a good run: the logs and the histogram hold exactly the operations of the totals, and
rate times mean latency is the queue depth. Latencies are spread as in the recorded run. All fields that fio writes are
there; those that Plimsoll does not read keep the recorded values.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from plimsoll.measure.histogram import BIN_COUNT, PERCENTILES, Histogram, bin_index, bin_midpoint
from plimsoll.tools.fio.parameters import FioParameters

GOLDEN = Path(__file__).parent.parent / "golden"
TEMPLATE = "randread-4k-qd16"
MILLISECONDS = 1000

_NANOSECONDS = 10**9
_SUBMISSION = 10e-6
_LEAST_SPREAD = 1000
_DIRECTIONS = {"read": 0, "write": 1, "trim": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A part of a run at one rate.

    Attributes:
        start: seconds after the start of measuring.
        end: likewise.
        iops: 0 for a stall, at whose end everything that was in flight completes.

    """

    start: float
    end: float
    iops: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FioRun:
    """One run.

    Attributes:
        started_at: when measuring began, Unix milliseconds.
        stretches: one after the other, without gaps.
        slice_seconds: width of a slice in the histogram log.
        gap_milliseconds: width of an interval in the log of latency.
        latency_factor: latency by how much longer than queue depth and rate say.
        submission: mean seconds that submitting one operation took.

    """

    version: str
    parameters: FioParameters
    started_at: int
    stretches: tuple[Stretch, ...]
    slice_seconds: int
    gap_milliseconds: int
    latency_factor: float = 1.0
    submission: float = _SUBMISSION

    @property
    def milliseconds(self) -> int:
        """Measured time."""
        return round(self.stretches[-1].end * MILLISECONDS)

    @property
    def operation(self) -> str:
        """Its direction, by fio's name."""
        (operation,) = self.parameters.pattern.operations
        return operation.value

    def files(self) -> dict[str, str]:
        """Return the document and the logs, by file name; all jobs do the same."""
        if (jobs := self.parameters.jobs) > 1:
            alone = self.parameters.model_copy(update={"jobs": 1})
            parts = tuple(replace(stretch, iops=stretch.iops / jobs) for stretch in self.stretches)
            files = replace(self, parameters=alone, stretches=parts).files()
            document = json.loads(files.pop("fio.json"))
            document["jobs"] *= jobs
            numbered = ((name, number) for name in files for number in range(1, jobs + 1))
            logs = {name.replace(".1.", f".{number}."): files[name] for name, number in numbered}
            return {"fio.json": json.dumps(document, indent=2) + "\n", **logs}
        cells = self.cells()
        kibibytes = {second: ios * min(self.parameters.block_sizes) // 2**10 for second, ios in cells.items()}
        return {
            "fio.json": json.dumps(self._document(sum(cells.values())), indent=2) + "\n",
            "fio_bw.1.log": self._log(kibibytes),
            "fio_iops.1.log": self._log(cells),
            "fio_clat_hist.1.log": "".join(self._histogram_lines()),
            "fio_lat.1.log": "".join(self._latency_lines()),
        }

    def cells(self) -> dict[int, int]:
        """Return the operations that completed in each second, without empty seconds."""
        return {second: sum(counts.values()) for second, counts in self.slices().items() if counts}

    def slices(self) -> dict[int, Counter[int]]:
        """Return the latencies of the operations of each second: nanoseconds -> operations."""
        seconds: dict[int, Counter[int]] = {}
        for stretch in self.stretches:
            for second, counts in self._slices_of(stretch):
                seconds.setdefault(second, Counter()).update(counts)
        return dict(sorted(seconds.items()))

    @property
    def completions(self) -> dict[int, Counter[int]]:
        """The same without submission, whose time is constant."""
        submission = round(self.submission * _NANOSECONDS)
        found: dict[int, Counter[int]] = {}
        for second, counts in self.slices().items():
            found[second] = Counter()
            for value, count in counts.items():
                found[second][max(1, value - submission)] += count
        return found

    def _slices_of(self, stretch: Stretch) -> Iterator[tuple[int, Mapping[int, int]]]:
        depth = self.parameters.io_depth
        if not stretch.iops:
            stall = round((stretch.end - stretch.start) * self.latency_factor * _NANOSECONDS)
            if stretch.end * MILLISECONDS < self.milliseconds:
                yield math.floor(stretch.end), {stall: depth}
            return
        latency = depth / stretch.iops * self.latency_factor
        edges = sorted({stretch.start, stretch.end, *range(math.ceil(stretch.start), math.ceil(stretch.end))})
        for start, end in pairwise(edges):
            done = round(end * stretch.iops) - round(start * stretch.iops)
            yield math.floor(start), latencies("lat_ns", done, round(latency * _NANOSECONDS))

    def _submissions(self, ios: int) -> Mapping[int, int]:
        """Return the submission latency; fio does not time it with synchronous engines."""
        if self.parameters.is_synchronous:
            return {}
        return latencies("slat_ns", ios, round(self.submission * _NANOSECONDS))

    def _log(self, cells: Mapping[int, int]) -> str:
        """Return one of fio's averaged logs: no line for a second without I/O, and none for the last, partial one."""
        direction, whole = _DIRECTIONS[self.operation], self.milliseconds // MILLISECONDS
        lines = (f"{MILLISECONDS * (n + 1)}, {rate}, {direction}, 0, 0\n" for n, rate in cells.items() if n < whole)
        return "".join(lines)

    def _latency_lines(self) -> Iterator[str]:
        """Yield fio's log of latency: a line for the first operation that completes after an interval is over."""
        due = self.gap_milliseconds
        for moment in self._first_completions():
            if moment >= due:
                yield f"{moment}, 1000000, {_DIRECTIONS[self.operation]}, 0, 0\n"
                due = (moment // self.gap_milliseconds + 1) * self.gap_milliseconds

    def _first_completions(self) -> Iterator[int]:
        """Yield when the first operation of each interval of that log completed, and some more; milliseconds."""
        for stretch in self.stretches:
            if not stretch.iops:
                if stretch.end * MILLISECONDS < self.milliseconds:
                    yield round(stretch.end * MILLISECONDS)
                continue
            moment = math.ceil(stretch.start * stretch.iops) / stretch.iops
            while moment < stretch.end:
                yield int(moment * MILLISECONDS)
                edge = (int(moment * MILLISECONDS) // self.gap_milliseconds + 1) * self.gap_milliseconds / MILLISECONDS
                moment = math.ceil(max(edge * stretch.iops, moment * stretch.iops + 0.5)) / stretch.iops

    def _histogram_lines(self) -> Iterator[str]:
        """Yield fio's histogram log: each line comes with, and counts, the first operation after its slice."""
        width, pending = self.slice_seconds, Counter[int]()
        slice_end = width
        for second, counts in self.completions.items():
            later = Counter(counts)
            while slice_end <= second and later:
                first = min(later)
                later.subtract({first: 1})
                later += Counter()
                yield self._histogram_line(second, pending + Counter({first: 1}))
                pending = Counter()
                slice_end += width
            pending += later

    def _histogram_line(self, second: int, counts: Mapping[int, int]) -> str:
        histogram = histogram_of(counts).counts
        bins = ", ".join(str(histogram.get(index, 0)) for index in range(BIN_COUNT))
        return f"{MILLISECONDS * second}, {_DIRECTIONS[self.operation]}, {min(self.parameters.block_sizes)}, {bins}\n"

    def _document(self, ios: int) -> dict[str, Any]:
        document = recorded(self.version)
        (job,) = document["jobs"]
        if self.operation != "read":
            job["read"], job[self.operation] = job[self.operation], job["read"]
        job["jobname"] = "measure"
        if "job_start" in job:
            job["job_start"] = self.started_at
        job["job_runtime"] = self.milliseconds
        document["timestamp_ms"] = self.started_at + self.milliseconds
        document["timestamp"] = document["timestamp_ms"] // MILLISECONDS
        size = ios * min(self.parameters.block_sizes)
        seconds = self.milliseconds / MILLISECONDS
        job[self.operation] |= {
            "io_bytes": size,
            "io_kbytes": size // 2**10,
            "bw_bytes": int(size / seconds),
            "bw": int(size / seconds / 2**10),
            "iops": round(ios / seconds, 6),
            "runtime": self.milliseconds,
            "total_ios": ios,
            "slat_ns": latency_fields(self._submissions(ios)),
            "clat_ns": latency_fields(sum(self.completions.values(), Counter())),
            "lat_ns": latency_fields(sum(self.slices().values(), Counter())),
        }
        return document


@cache
def _recorded(version: str) -> str:
    return (GOLDEN / f"fio-{version}-{TEMPLATE}.json").read_text()


def recorded(version: str) -> dict[str, Any]:
    """Return the recorded document of a version."""
    document: dict[str, Any] = json.loads(_recorded(version))
    return document


@cache
def _spread(kind: str) -> tuple[tuple[float, int], ...]:
    """Return the latencies of the recorded run: (multiple of the mean, operations), ascending."""
    bins = recorded("3.39")["jobs"][0]["read"][kind]["bins"]
    values = sorted((int(value), count) for value, count in bins.items())
    mean = sum(value * count for value, count in values) / sum(count for _, count in values)
    return tuple((value / mean, count) for value, count in values)


@cache
def latencies(kind: str, count: int, mean: int) -> Mapping[int, int]:
    """Return so many latencies with about that mean: nanoseconds -> operations.

    They are spread as in the recorded run, unless they are too few for that: then they are all alike.
    """
    if count < _LEAST_SPREAD:
        return {mean: count} if count else {}
    spread = _spread(kind)
    total = sum(weight for _, weight in spread)
    found: dict[int, int] = {}
    seen = placed = 0
    for part, weight in spread:
        seen += weight
        # Half an operation more makes the rounding unbiased.
        upto = min(count, (2 * count * seen + total) // (2 * total))
        if upto > placed:
            found[round(part * mean)] = upto - placed
        placed = upto
    return found


def histogram_of(counts: Mapping[int, int]) -> Histogram:
    """Return the histogram of latencies: nanoseconds -> operations."""
    bins: Counter[int] = Counter()
    for value, count in counts.items():
        bins[bin_index(value)] += count
    return Histogram(counts=bins)


def latency_fields(counts: Mapping[int, int]) -> dict[str, Any]:
    """Return fio's description of latencies."""
    total = sum(counts.values())
    if not total:
        return {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}
    mean = math.fsum(value * count for value, count in counts.items()) / total
    squares = math.fsum((value - mean) ** 2 * count for value, count in counts.items())
    histogram = histogram_of(counts)
    return {
        "min": min(counts),
        "max": max(counts),
        "mean": round(mean, 6),
        "stddev": round(math.sqrt(squares / max(1, total - 1)), 6),
        "N": total,
        "percentile": {f"{p:.6f}": histogram.percentile(p) for p in PERCENTILES},
        "bins": {str(bin_midpoint(index)): count for index, count in histogram.counts.items()},
    }
