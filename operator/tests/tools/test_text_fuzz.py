"""Recorded output of Ceph's own tools, dd and ioping, damaged in every way that a parser can notice, always the same.

The outcome is the true measurement, an error, or a measurement with a warning.
"""

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

import pytest

from plimsoll.api.json_reader import OutputError
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import AnyTool, Output, StepContext, StepKind, Timing, ToolParameters
from plimsoll.tools.dd import DD, DdParameters
from plimsoll.tools.ioping import IOPING, IopingParameters
from plimsoll.tools.osd_bench import OSD_BENCH, OsdBenchParameters
from plimsoll.tools.rados_bench import RADOS_BENCH, RadosBenchParameters
from plimsoll.tools.rbd_bench import RBD_BENCH, RbdBenchParameters
from plimsoll.tools.target import OsdsTarget, PoolTarget, Target, VolumeKind, VolumeTarget
from support.goldens import CEPH_VERSIONS, VERSIONS, recorded

from .conftest import IMAGE, text_golden
from .damage import harmless

POOL = PoolTarget(pool="bench", namespace="n", run_name="r", user="agent")
VOLUME = VolumeTarget(kind=VolumeKind.DEVICE, path="/dev/plimsoll", size=128 * 2**20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    case: str
    tool: AnyTool
    parameters: ToolParameters
    target: Target
    timing: Timing
    prints_to: Literal["stdout", "stderr"] = "stdout"
    ceph_version: str = "18.2"

    def parse(self, text: str) -> Measurement:
        context = StepContext(
            step=StepKind.MEASURE, target=self.target, timing=self.timing, seed=1, work_directory="/work"
        )
        whole = self.output
        output = replace(whole, stdout=text) if self.prints_to == "stdout" else replace(whole, stderr=text)
        found = self.tool.parse(self.parameters, context, output)
        found.model_dump_json().encode()
        return found

    @property
    def output(self) -> Output:
        if isinstance(self.target, VolumeTarget):
            return recorded(self.case)
        return text_golden(self.case, self.ceph_version)

    @property
    def text(self) -> str:
        return self.output.stdout if self.prints_to == "stdout" else self.output.stderr


def rados(operation: str, concurrency: int, ramp: int, runtime: int) -> Recorded:
    return Recorded(
        case=f"rados-bench-timed-{operation}",
        tool=RADOS_BENCH,
        parameters=RadosBenchParameters.model_validate(
            {"operation": operation, "objectSize": "64Ki", "concurrency": concurrency}
        ),
        target=POOL,
        timing=Timing(ramp_seconds=ramp, runtime_seconds=runtime),
    )


def rbd(operation: str, order: str) -> Recorded:
    return Recorded(
        case=f"rbd-bench-timed-{operation}-{order}",
        tool=RBD_BENCH,
        parameters=RbdBenchParameters.model_validate({"operation": operation, "order": order, "concurrency": 4}),
        target=IMAGE,
        timing=Timing(ramp_seconds=1, runtime_seconds=4),
    )


def osds(case: str, **parameters: object) -> Recorded:
    return Recorded(
        case=case,
        tool=OSD_BENCH,
        parameters=OsdBenchParameters.model_validate({"keyringSecret": {"name": "k"}, **parameters}),
        target=OsdsTarget(keyring="/etc/keyring"),
        timing=Timing(ramp_seconds=0, runtime_seconds=0),
    )


def dd(version: str, case: str, **parameters: object) -> Recorded:
    return Recorded(
        case=f"dd-{version}-{case}",
        tool=DD,
        parameters=DdParameters.model_validate({"blockSize": "64Ki", **parameters}),
        target=VOLUME,
        timing=Timing(ramp_seconds=0, runtime_seconds=60),
        prints_to="stderr",
    )


def ioping(case: str, ramp: int, **parameters: object) -> Recorded:
    return Recorded(
        case=f"ioping-1.3-{case}",
        tool=IOPING,
        parameters=IopingParameters.model_validate(parameters),
        target=VOLUME,
        timing=Timing(ramp_seconds=ramp, runtime_seconds=3),
    )


OF_CEPH = [
    rados("write", 2, 5, 15),
    rados("rand", 4, 1, 2),
    rados("seq", 4, 0, 9),
    *(rbd(operation, order) for operation in ("read", "write") for order in ("rand", "seq")),
    osds("osds-bench", totalSize="64Mi"),
    osds("osds-bench-4k", blockSize="4Ki"),
]
OF_DD: Mapping[str, dict[str, object]] = {
    "read": {},
    "copy": {"operation": "Copy"},
    "partial": {},
    "io-error": {},
    "slow-read": {"blockSize": 512},
    "interrupted": {"blockSize": 512},
    "stall": {"blockSize": 512},
}
CASES = [
    *(replace(recorded, ceph_version=version) for recorded in OF_CEPH for version in CEPH_VERSIONS),
    *(dd(version, case, **parameters) for version in VERSIONS["dd"] for case, parameters in OF_DD.items()),
    ioping("back-to-back", ramp=0),
    ioping("interval", ramp=1, intervalMilliseconds=200),
]
every_case = pytest.mark.parametrize(
    "recorded", CASES, ids=[f"{recorded.case}-{recorded.ceph_version}" for recorded in CASES]
)
NOISE = '\x00\x1b\x7f\ufffd{}[]",:-eE. \n'


def check(recorded: Recorded, text: str) -> None:
    truth = recorded.parse(recorded.text)
    try:
        found = recorded.parse(text)
    except OutputError as error:
        str(error).encode()
        return
    remarks = {*found.errors, *found.warnings} - {*truth.errors, *truth.warnings}
    assert remarks or totals(found) == totals(truth), "a wrong number without a warning"


def totals(measurement: Measurement) -> object:
    return measurement.runtime, measurement.operations, measurement.osds


def without_lines(text: str) -> Iterator[str]:
    """Yield it without each line, with each line twice, and with each pair of neighbours swapped."""
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        yield "".join([*lines[:number], *lines[number + 1 :]])
        yield "".join([*lines[:number], line, *lines[number:]])
        yield "".join([*lines[:number], *reversed(lines[number : number + 2]), *lines[number + 2 :]])


@every_case
def test_lines_that_are_missing_repeated_or_swapped(recorded: Recorded) -> None:
    for damaged in without_lines(recorded.text):
        # The output does not contain the number of OSDs, and their order does not matter.
        if recorded.tool is OSD_BENCH and len(damaged) < len(recorded.text):
            continue
        # Nothing but their order tells which of two requests came first.
        if recorded.tool is IOPING and sorted(damaged.split("\n")) == sorted(recorded.text.split("\n")):
            continue
        check(recorded, damaged)


WORDS = ("nan", "-nan", "inf", "-inf", "-665408776", "1e999", "-", "x")
COLUMNS = {
    "cur MB/s": r"^(\d{4}-\S+(?:\s+\d+){4}\s+\S+\s+)\S+",
    "last lat(s)": r"^(\d{4}-\S+(?:\s+\d+){4}(?:\s+\S+){2}\s+)\S+",
    "OPS/SEC": r"^(\s+\d+\s+\d+\s+)\S+",
    "BYTES/SEC": r"^(\s+\d+\s+\d+\s+\S+\s+)\S+",
    "lines of progress": r"(\r)[^\r\n]+",
}
UNREAD = [
    (recorded, name)
    for recorded in CASES
    for name in sorted(harmless(recorded.tool.key) if recorded.tool in {RADOS_BENCH, RBD_BENCH} else ())
    if name in recorded.text
] + [(recorded, "lines of progress") for recorded in CASES if recorded.tool is DD and "\r" in recorded.text]


def pattern_of(name: str) -> str:
    return COLUMNS.get(name) or rf"^((?:\S+ )?{re.escape(name)}:\s+)\S+"


@pytest.mark.parametrize(("recorded", "name"), UNREAD, ids=lambda value: getattr(value, "case", value))
def test_fields_that_may_be_wrong_change_no_total(recorded: Recorded, name: str) -> None:
    truth = recorded.parse(recorded.text)
    for word in WORDS:
        text, count = re.subn(pattern_of(name), rf"\g<1>{word}", recorded.text, flags=re.MULTILINE)
        assert count
        assert totals(recorded.parse(text)) == totals(truth)


@pytest.mark.parametrize("recorded", [recorded for recorded in CASES if recorded.tool is RADOS_BENCH])
def test_all_other_totals_of_rados_bench_are_named_if_they_are_wrong(recorded: Recorded) -> None:
    names = {*re.findall(r"^(?:\S+\+0000 )?([A-Z][^:\n]+):  ", recorded.text, re.MULTILINE)} - harmless("radosBench")
    assert len(names) == 8
    for name, word in product(names, WORDS):
        text = re.sub(pattern_of(name), rf"\g<1>{word}", recorded.text, flags=re.MULTILINE)
        with pytest.raises(OutputError, match=re.escape(name)):
            recorded.parse(text)


@every_case
def test_output_that_breaks_off(recorded: Recorded) -> None:
    whole = recorded.text.rstrip()
    ends = range(0, len(whole), max(1, len(whole) // 60))
    for end in ends:
        # Between two lines, nothing shows that there is another OSD.
        if recorded.tool is OSD_BENCH and whole[:end].endswith("\n"):
            continue
        check(recorded, whole[:end])


@every_case
def test_output_with_noise(recorded: Recorded) -> None:
    chance = random.Random(recorded.case)  # noqa: S311  # the same damage in every run
    for _ in range(100):
        noise = "".join(chance.choice(NOISE) for _ in range(chance.randint(1, 6)))
        start = chance.randrange(len(recorded.text))
        damaged = recorded.text[:start] + noise + recorded.text[start + chance.randint(0, 6) :]
        try:
            recorded.parse(damaged).model_dump_json().encode()
        except OutputError as error:
            str(error).encode()


@every_case
@pytest.mark.parametrize("token", ["9" * 400, "1e308", "-1", "nan", "", "x\ud800"])
def test_word_that_became_another(recorded: Recorded, token: str) -> None:
    words = list(recorded.text.split(" "))
    for number in range(len(words)):
        damaged = " ".join([*words[:number], token, *words[number + 1 :]])
        try:
            recorded.parse(damaged).model_dump_json().encode()
        except OutputError as error:
            str(error).encode()
