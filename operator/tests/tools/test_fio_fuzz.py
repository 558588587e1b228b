"""Every golden file, damaged in every way that a parser can notice, with the same damage in every run.

The outcome is the true measurement, an error, or a measurement with a warning. Changed digits are not tried: many
numbers occur only once in the document.

Every field of one case per version is damaged; of the others, a sample that differs between cases.
PLIMSOLL_FUZZ=all damages every field of all cases, which takes minutes.
"""

import json
import os
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.api.json_reader import OutputError
from plimsoll.measure.histogram import Histogram
from plimsoll.measure.sample import Measurement, OperationSample
from plimsoll.tools.base import Output
from plimsoll.tools.fio.preparation import changed_bytes

from .conftest import FILE, IMAGE, Golden, load
from .damage import VALUES, check, damaged, noisy

GOLDEN = Path(__file__).parent.parent / "golden"
CASES = sorted(
    (match[1], match[2])
    for path in GOLDEN.glob("fio-*.json")
    if (match := re.fullmatch(r"fio-([\d.]+)-(.+)\.json", path.name)) and path.stat().st_size
)
WRITING: dict[str, Callable[[Output], int]] = {
    "prefill": lambda output: changed_bytes("prefill", output, FILE),
    "precondition": lambda output: changed_bytes("precondition", output, FILE),
    "rbd-prefill": lambda output: changed_bytes("prefill", output, IMAGE),
    "rbd-precondition": lambda output: changed_bytes("precondition", output, IMAGE),
    "rbd-discard": lambda output: changed_bytes("discard", output, IMAGE),
}
THOROUGH = "write-fsync"
SAMPLE = 3
every_golden = pytest.mark.parametrize(("version", "case"), CASES, ids=["-".join(pair) for pair in CASES])

FieldPath = tuple[str | int, ...]
T = TypeVar("T")


def chance_of(text: str) -> random.Random:
    return random.Random(text)  # noqa: S311  # the same damage in every run


def sampled(case: str, items: Sequence[T], version: str) -> list[T]:
    if case == THOROUGH or os.environ.get("PLIMSOLL_FUZZ") == "all":
        return list(items)
    return chance_of(f"{version} {case}").sample(list(items), min(SAMPLE, len(items)))


@dataclass(frozen=True)
class Reading:
    """The parsed output: `totals` must be true unless `remarks` has something new."""

    totals: object
    remarks: frozenset[str]


def job_of(case: str) -> str:
    return case.removeprefix("rbd-") if case in WRITING else "measure"


@cache
def without_histograms(version: str, case: str) -> tuple[Golden, Reading]:
    """A golden without the large log, which has its own tests, and the true reading."""
    whole = load(version, case, job=job_of(case))
    files = {name: text for name, text in whole.output.files.items() if "hist" not in name}
    golden = whole.with_files(files)
    return golden, read(golden, case)


def read(golden: Golden, case: str) -> Reading:
    if case in WRITING:
        return Reading(totals=WRITING[case](golden.output), remarks=frozenset())
    measurement = golden.parse()
    measurement.model_dump_json().encode()
    totals = (measurement.runtime, [totals_of(sample) for sample in measurement.operations])
    remarks = {*measurement.errors, *measurement.warnings, *(["estimated"] if measurement.start_is_estimated else [])}
    return Reading(totals=totals, remarks=frozenset(remarks))


def totals_of(sample: OperationSample) -> tuple[object, ...]:
    return sample.operation, sample.ios, sample.bytes, sample.latency, sample.submission_nanoseconds


def outcome(version: str, case: str, document: str) -> str:
    """Return the error; empty if the totals are true or the measurement has a warning."""
    golden, truth = without_histograms(version, case)
    try:
        found = read(golden.with_document(document), case)
    except OutputError as error:
        str(error).encode()
        return str(error)
    assert found.totals == truth.totals or found.remarks - truth.remarks, "a wrong number without a warning"
    return ""


def objects(node: Any, path: FieldPath = ()) -> Iterator[tuple[FieldPath, dict[str, Any]]]:
    """Yield every object of a document with its path."""
    if isinstance(node, dict):
        yield path, node
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from objects(value, (*path, key))


def fields(document: Any) -> list[FieldPath]:
    """Return the path of every field, but of equal ones side by side (bins, percentiles) only the first two."""
    return [
        (*path, key)
        for path, node in objects(document)
        for key in (list(node)[:2] if all(re.match(r"[\d>]", name) for name in node) else node)
    ]


def name_of(path: Sequence[str | int]) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


def decoded(golden: Golden) -> Any:
    """The last document of a golden, without the text in front of it."""
    start = golden.document.rindex("\n{\n") + 1 if "\n{\n" in golden.document else 0
    return json.loads(golden.document[start:])


class Editor:
    """One document, changed at one place at a time."""

    def __init__(self, version: str, case: str) -> None:
        self.document = decoded(without_histograms(version, case)[0])

    def holder(self, path: FieldPath) -> Any:
        node = self.document
        for key in path[:-1]:
            node = node[key]
        return node

    def without(self, path: FieldPath) -> str:
        holder = self.holder(path)
        kept = dict(holder)
        del holder[path[-1]]
        text = json.dumps(self.document)
        holder.clear()
        holder.update(kept)
        return text

    def with_value(self, path: FieldPath, value: object) -> str:
        holder = self.holder(path)
        kept = holder.get(path[-1], self)
        holder[path[-1]] = value
        text = json.dumps(self.document)
        if kept is self:
            del holder[path[-1]]
        else:
            holder[path[-1]] = kept
        return text


@every_golden
def test_truncated_document(version: str, case: str) -> None:
    document = without_histograms(version, case)[0].document.rstrip()
    for end in range(0, len(document), len(document) // 12):
        error = outcome(version, case, document[:end])
        assert error or case == "status-interval", end


@every_golden
def test_document_without_a_field(version: str, case: str) -> None:
    """What is read and missing is named; of bins, that their sum is not N."""
    editor = Editor(version, case)
    for path in sampled(case, fields(editor.document), version):
        error = outcome(version, case, editor.without(path))
        assert not error or error.startswith((f"{name_of(path)} ", f"{name_of(path[:-1])} holds")), error


@every_golden
def test_document_with_a_wrong_value(version: str, case: str) -> None:
    editor = Editor(version, case)
    for number, path in enumerate(sampled(case, fields(editor.document), version)):
        error = outcome(version, case, editor.with_value(path, VALUES[number % len(VALUES)]))
        assert not error or error.startswith((str(path[0]), job_of(case))), error


@every_golden
def test_document_with_an_unknown_field(version: str, case: str) -> None:
    golden, truth = without_histograms(version, case)
    editor = Editor(version, case)
    for path in sampled(case, [path for path, _ in objects(editor.document)], version):
        name = name_of((*path, "new"))
        document = editor.with_value((*path, "new"), 1)
        if path and path[-1] == "bins":
            error = outcome(version, case, document)
            assert not error or error.startswith(f"{name} is not a bin"), error
            continue
        assert read(golden.with_document(document), case).totals == truth.totals


@every_golden
def test_document_with_a_field_twice(version: str, case: str) -> None:
    document = without_histograms(version, case)[0].document
    found = list(re.finditer(r'^ *"([^"]+)" : [^\[{\n]*?(?=,?$)', document, re.MULTILINE))
    for match in sampled(case, found[::12], version):
        outcome(version, case, f'{document[: match.end()]}, "{match[1]}" : 7{document[match.end() :]}')


@every_golden
def test_document_with_noise(version: str, case: str) -> None:
    for damage in noisy(f"{version} {case}", without_histograms(version, case)[0].document, SAMPLE):
        outcome(version, case, damage)


@pytest.mark.parametrize(
    ("version", "case"), [("3.33", "write-fsync"), ("3.39", "randread-4k-qd16"), ("3.41", "randrw-jobs2-ramp")]
)
@given(data=st.data())
@settings(max_examples=settings().max_examples // 2)  # documents are large
def test_damaged_field_is_named_or_changes_no_number(version: str, case: str, data: st.DataObject) -> None:
    golden = without_histograms(version, case)[0]
    intact = json.dumps(decoded(golden))
    check("fio", lambda text: golden.with_document(text).parse(), intact, data.draw(damaged(intact)))


LOGS = [
    (version, case, name)
    for version, case in CASES
    if case not in {*WRITING, "missing-file", "rbd-no-image"}
    for name in load(version, case).output.files
    # The log of operations is read for the smallest blocks only.
    if re.fullmatch(r"fio_(bw|clat_hist)\.\d\.log", name)
]


@cache
def measured(version: str, case: str) -> tuple[Golden, Measurement]:
    golden = load(version, case)
    return golden, golden.parse()


def damages(log: str) -> Iterator[str]:
    """Yield a log that was cut off, that lacks, repeats or swaps lines, and that has something else in it."""
    chance = chance_of(log)
    for _ in range(2):
        yield log[: chance.randrange(len(log) + 1)]
    lines = log.splitlines(keepends=True)
    number = chance.randrange(len(lines) + 1)
    yield "".join(lines[:number])
    yield "".join([*lines[:number], *lines[number + 1 :]])
    yield "".join([*lines[:number], *lines[number - 1 :]])
    yield "".join(reversed(lines))
    yield "".join(line.replace(",", ";") for line in lines)
    for token in chance.sample(["9" * 400, "-1", "nan", "1e9", "\x00", "", "999999999999"], 3):
        start = chance.randrange(len(log) + 1)
        yield log[:start] + token + log[start + 1 :]


@pytest.mark.parametrize(("version", "case", "name"), LOGS, ids=["-".join(parts) for parts in LOGS])
def test_damaged_log(version: str, case: str, name: str) -> None:
    """No log touches a total; a series that is not true within what logs are known to differ by is not there."""
    golden, truth = measured(version, case)
    for log in damages(golden.output.files[name]):
        found = golden.with_files({**golden.output.files, name: log}).parse()
        assert [totals_of(sample) for sample in found.operations] == [totals_of(sample) for sample in truth.operations]
        for sample, true in zip(found.operations, truth.operations, strict=True):
            check_over_time(sample, true)
            lost = (sample.cells is None and true.cells is not None, sample.slices is None and true.slices is not None)
            assert not any(lost) or set(found.warnings) - set(truth.warnings)


def check_over_time(sample: OperationSample, true: OperationSample) -> None:
    if sample.cells is None or true.cells is None:
        assert sample.slices is None
        return
    most = max(true.cells.ios, default=0)
    assert sum(sample.cells.ios) == pytest.approx(sample.ios)
    assert list(sample.cells.ios) == pytest.approx(list(true.cells.ios), abs=0.1 * most + 3)
    if sample.slices is not None and true.slices is not None:
        assert counts(sample) == pytest.approx(counts(true), abs=0.75 * most + 3)


def counts(sample: OperationSample) -> list[int]:
    assert sample.slices is not None
    return [Histogram.decode(histogram).total for histogram in sample.slices.histograms]
