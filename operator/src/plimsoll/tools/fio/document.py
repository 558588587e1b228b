"""Finding fio's JSON document between other text, and reading its jobs and latencies."""

import json
import math
import re
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from errno import errorcode
from itertools import pairwise

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

MAX_MILLISECONDS = 10**13
"""The year 2286 as a time; 300 years as a duration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The content of a text."""

    root: JsonNode  # the last complete document
    noise: tuple[str, ...]  # lines outside of documents, shortened; at most 20 in a row
    warnings: tuple[str, ...]  # problems of the documents


def read_document(text: str) -> Document:
    """Return the last complete document of a text with other lines and documents.

    fio indents everything inside a document, so a brace at the start of a line begins one. Reading each only up to the
    next such brace keeps the effort proportional to the length of any text. OutputError without a complete
    document, with the place where the last one breaks off.
    """
    # A measurement prints one document. Only the last ones are read.
    starts = deque((match.start() for match in re.finditer(r"^\{", text, re.MULTILINE)), maxlen=100)
    if not starts:
        begin = "; ".join(excerpt(text)[:3])
        raise OutputError(f"no JSON document in the output: {begin or 'it is empty'}")
    parts = [_decode(text, start, end) for start, end in pairwise([*starts, len(text)])]
    complete = [root for root, _ in parts if root]
    problems = [rest for root, rest in parts if root is None]
    if not complete:
        raise OutputError(problems[-1])
    before = excerpt(text[: starts[0]][:NOISE_CHARACTERS])
    return Document(
        root=complete[-1],
        noise=(*before, *(line for root, rest in parts if root for line in excerpt(rest))),
        warnings=(
            *problems,
            *([f"{len(complete)} documents in the output; the last one was taken"] if len(complete) > 1 else []),
        ),
    )


def _decode(text: str, start: int, end: int) -> tuple[JsonNode | None, str]:
    """Return the document between two places and the text after it, or None and where it breaks off."""
    part = text[start:end]
    try:
        fields, used = DECODER.raw_decode(part)
        return JsonNode(fields), part[used:]
    except json.JSONDecodeError as error:
        position, reason = start + error.pos, error.msg
    except (ValueError, RecursionError) as error:
        position, reason = start, type(error).__name__
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return None, f"a JSON document breaks off at line {line}, column {column}: {reason}"


def read_output(output: Output) -> Document:
    """Return the content of fio's output file; OutputError without a file or a complete document in it."""
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
    """Return each job's error, and fio's messages if it failed.

    fio can fail without an error in any job, for example if the target is missing.
    """
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
    """Return the bins of a latency; without operations, where fio prints none, an empty histogram.

    OutputError if a field is missing or malformed, or the bins do not hold exactly the timed operations.
    """
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
    for name, value, index in (
        ("min", sample.min_nanoseconds, min(histogram.counts)),
        ("max", sample.max_nanoseconds, max(histogram.counts)),
    ):
        if bin_index(value) != index:
            raise OutputError(f"{node.path}.{name} is {value}, but the outermost bin is {bin_midpoint(index)}")
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
