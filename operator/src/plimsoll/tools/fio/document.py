"""Finding fio's JSON document between other text, and reading its jobs and latencies."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from errno import errorcode

from plimsoll.api.json_reader import DECODER, JsonNode, OutputError, printable
from plimsoll.api.names import LatencyKind
from plimsoll.measure.histogram import (
    BIN_COUNT,
    Histogram,
    UnknownBinError,
    bin_bounds,
    bin_index,
    bin_midpoint,
    index_of_midpoint,
)
from plimsoll.measure.sample import LatencySample
from plimsoll.tools.base import Output
from plimsoll.tools.fio.command import DOCUMENT
from plimsoll.tools.reading import NOISE_CHARACTERS, excerpt, failure

MAX_MILLISECONDS = 10**13  # the year 2286 as a time; 300 years as a duration


def read_document(text: str) -> tuple[JsonNode, list[str]]:
    """Return a text's last document, and the lines around all; OutputError, with the place, if it breaks off."""
    # fio indents everything inside a document, so a brace at the start of a line begins one.
    start = text.rfind("\n{") + 1
    if not text.startswith("{", start):
        begin = "; ".join(excerpt(text)[:3])
        raise OutputError(f"no JSON document in the output: {begin or 'it is empty'}")
    try:
        fields, used = DECODER.raw_decode(text[start:])
    except (ValueError, RecursionError) as error:
        position, reason = start + getattr(error, "pos", 0), getattr(error, "msg", type(error).__name__)
        line, column = text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)
        raise OutputError(f"a JSON document breaks off at line {line}, column {column}: {reason}") from error
    before = "" if text.startswith("{") else text[: text.index("\n{")]
    noise = [*excerpt(before[:NOISE_CHARACTERS]), *excerpt(text[start + used :])]
    if (number := text.count("\n{") + text.startswith("{")) > 1:
        noise.append(f"{number} documents in the output; the last one was taken")
    return JsonNode(fields), noise


def read_output(output: Output) -> tuple[JsonNode, list[str]]:
    """Return the document in fio's output file, and the lines around it; see `read_document`."""
    if DOCUMENT not in output.files:
        raise OutputError(f"fio left no {DOCUMENT}, {failure(output)}")
    return read_document(output.files[DOCUMENT])


def jobs_named(root: JsonNode, name: str, *, count: int) -> list[JsonNode]:
    """Return the jobs of that name; OutputError if their number is not `count`."""
    jobs = [job for job in root["jobs"].elements() if job["jobname"].line() == name]
    if len(jobs) != count:
        raise OutputError(f"jobs has {len(jobs)} jobs named {name}, but {count} were started")
    return jobs


def complaints(jobs: Sequence[JsonNode], output: Output, noise: Sequence[str]) -> list[str]:
    """Return each job's error, and fio's messages if it failed; then there may be no error in any job."""
    errors = []
    for number, job in enumerate(jobs, start=1):
        if error := job["error"].count():
            errors.append(f"job {number} of {len(jobs)} failed: {errorcode.get(error, 'unknown')} (error {error})")
        if "total_err" in job and (count := job["total_err"].count()):
            errors.append(f"job {number} of {len(jobs)} counted {count} errors")
    return [*errors, *dict.fromkeys([*noise, *excerpt(output.stderr)] if output.exit_code else [])]


def read_latency(node: JsonNode) -> LatencySample:
    """Return the latency of one job; OutputError as `read_histogram`, or if the moments do not fit the histogram."""
    histogram = read_histogram(node)
    if not histogram.total:
        return LatencySample(kind=LatencyKind.FULL)
    sample = LatencySample(
        kind=LatencyKind.FULL,
        count=histogram.total,
        mean_nanoseconds=node["mean"].number(),
        standard_deviation_nanoseconds=node["stddev"].number(),
        min_nanoseconds=node["min"].count(),
        max_nanoseconds=node["max"].count(),
        histogram=histogram.encode(),
    )
    _check_moments(node, sample, histogram)
    return sample


def read_histogram(node: JsonNode) -> Histogram:
    """Return the bins of a latency; OutputError if they do not hold exactly the timed operations."""
    count = node["N"].count()
    if not count:
        return Histogram(counts={})
    bins, counts = node["bins"], Counter[int]()
    for key, ios in bins.items():
        try:
            # -1 is not a bin either.
            index = index_of_midpoint(int(key) if re.fullmatch(r"\d{1,19}", key, re.ASCII) else -1)
        except UnknownBinError:
            raise OutputError(f"{bins.path}.{printable(key)} is not a bin of the known histogram layout") from None
        counts[index] += ios.count()
    histogram = Histogram(counts=counts)
    if histogram.total != count:
        raise OutputError(f"{node.path}.bins holds {histogram.total} operations, but N is {count}")
    return histogram


def _check_moments(node: JsonNode, sample: LatencySample, histogram: Histogram) -> None:
    """Refuse moments that do not fit the histogram; nothing else would reveal them."""
    for name, outermost in (("min", min(histogram.counts)), ("max", max(histogram.counts))):
        if bin_index(value := node[name].count()) != outermost:
            raise OutputError(f"{node.path}.{name} is {value}, but the outermost bin is {bin_midpoint(outermost)}")
    # Mean and standard deviation of the bins' midpoints. Both are norms of the operations' values, so the error of
    # either is at most the root mean square of the distances between values and midpoints.
    mean = math.fsum(bin_midpoint(index) * ios for index, ios in histogram.counts.items()) / histogram.total
    squares, errors = [], []
    for index, ios in histogram.counts.items():
        lower, upper = bin_bounds(index)
        # The last bin is open.
        end = max(upper, sample.max_nanoseconds) if index == BIN_COUNT - 1 else upper
        squares.append((bin_midpoint(index) - mean) ** 2 * ios)
        errors.append((end - (lower + upper) // 2) ** 2 * ios)
    degrees = max(1, histogram.total - 1)
    deviation, error = math.sqrt(math.fsum(squares) / degrees), math.sqrt(math.fsum(errors) / degrees)
    for name, about in (("mean", mean), ("stddev", deviation)):
        printed = node[name].number()
        # fio prints six decimals of a nanosecond.
        if abs(printed - about) > error + 1:
            raise OutputError(f"{node.path}.{name} is {printed}, but the bins yield about {about:.0f}")
