"""The text that real tools printed, damaged in every way that a parser can notice (the same in every run).

The outcome is the true measurement, an error, or a measurement with a warning.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import pytest

from plimsoll.api.json_reader import OutputError
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import AnyTool
from plimsoll.tools.dd import Dd
from plimsoll.tools.ioping import Ioping
from plimsoll.tools.osd_bench import OsdBench
from plimsoll.tools.rados_bench import RadosBench
from plimsoll.tools.rbd_bench import RbdBench
from plimsoll.tools.target import OsdsTarget, PoolTarget, Target, VolumeKind, VolumeTarget
from support.goldens import CEPH_VERSIONS, NETCAT, VERSIONS, network_golden, recorded

from .conftest import IMAGE, step_context
from .damage import check_totals, harmless, lines_damaged, noisy, outcome, totals

DD = Dd()
IOPING = Ioping()
OSD_BENCH = OsdBench()
RADOS_BENCH = RadosBench()
RBD_BENCH = RbdBench()

POOL = PoolTarget(pool="bench", namespace="n", user="agent")
OSDS = OsdsTarget(keyring="/etc/keyring")
VOLUME = VolumeTarget(kind=VolumeKind.DEVICE, path="/dev/plimsoll", size=128 * 2**20)
KEYRING = {"keyringSecret": {"name": "k"}}


@dataclass(frozen=True, slots=True)
class Recorded:
    case: str
    tool: AnyTool
    text: str
    parse: Callable[[str], Measurement]


def of_storage(
    case: str,
    tool: AnyTool,
    fields: Mapping[str, Any],
    target: Target,
    ramp: int,
    runtime: int,
    stream: Literal["stdout", "stderr"] = "stdout",
) -> Recorded:
    parameters, context, output = (
        tool.parameters.model_validate(fields),
        step_context(target, ramp, runtime),
        recorded(case),
    )

    def parse(text: str) -> Measurement:
        damaged = replace(output, stdout=text) if stream == "stdout" else replace(output, stderr=text)
        return tool.parse(parameters, context, damaged)

    return Recorded(case, tool, output.stdout if stream == "stdout" else output.stderr, parse)


def of_ceph(version: str) -> Iterator[Recorded]:
    for operation, concurrency, ramp, runtime in (("write", 2, 5, 15), ("rand", 4, 1, 2), ("seq", 4, 0, 9)):
        fields: dict[str, Any] = {"operation": operation, "objectSize": "64Ki", "concurrency": concurrency}
        yield of_storage(f"ceph-{version}/rados-bench-timed-{operation}", RADOS_BENCH, fields, POOL, ramp, runtime)
    for operation, order in product(("read", "write"), ("rand", "seq")):
        fields = {"operation": operation, "order": order, "concurrency": 4}
        yield of_storage(f"ceph-{version}/rbd-bench-timed-{operation}-{order}", RBD_BENCH, fields, IMAGE, 1, 4)
    yield of_storage(f"ceph-{version}/osds-bench", OSD_BENCH, {**KEYRING, "totalSize": "64Mi"}, OSDS, 0, 0)
    yield of_storage(f"ceph-{version}/osds-bench-4k", OSD_BENCH, {**KEYRING, "blockSize": "4Ki"}, OSDS, 0, 0)


def of_network(*names: str) -> Iterator[Recorded]:
    for name in names:
        golden = network_golden(name)
        yield Recorded(name, golden.tool, golden.output.stdout, golden.parse)


OF_DD: Mapping[str, dict[str, object]] = {
    "read": {},
    "copy": {"operation": "Copy"},
    "partial": {},
    "io-error": {},
    "slow-read": {"blockSize": 512},
    "interrupted": {"blockSize": 512},
    "stall": {"blockSize": 512},
}
IPERF3_CASES = [
    f"iperf3-{version}-{case}"
    for version in VERSIONS["iperf3"]
    for case in ("tcp-send", "tcp-receive", "tcp-4-streams", "udp-send", "udp-receive", "udp-lossy")
]
IN_LINES = [
    *(recorded for version in CEPH_VERSIONS for recorded in of_ceph(version)),
    *(
        of_storage(f"dd-{version}-{case}", DD, {"blockSize": "64Ki", **fields}, VOLUME, 0, 60, "stderr")
        for version in VERSIONS["dd"]
        for case, fields in OF_DD.items()
    ),
    of_storage("ioping-1.3-back-to-back", IOPING, {}, VOLUME, 0, 3),
    of_storage("ioping-1.3-interval", IOPING, {"intervalMilliseconds": 200}, VOLUME, 1, 3),
    *of_network(
        *(f"ping-{version}-{case}" for version in VERSIONS["ping"] for case in ("good", "large", "losses", "went-away"))
    ),
    *of_network("netcat-1.10-receive"),
]
CASES = [*IN_LINES, *of_network(*IPERF3_CASES)]


def every(cases: list[Recorded]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("recorded", cases, ids=lambda recorded: recorded.case)


@every([recorded for recorded in IN_LINES if recorded.tool is not NETCAT])
def test_lines_that_are_missing_repeated_or_swapped(recorded: Recorded) -> None:
    for damaged in lines_damaged(recorded.text):
        # The output does not contain the number of OSDs, and their order does not matter.
        if recorded.tool is OSD_BENCH and len(damaged) < len(recorded.text):
            continue
        # Nothing but their order tells which of two requests came first.
        if recorded.tool is IOPING and sorted(damaged.split("\n")) == sorted(recorded.text.split("\n")):
            continue
        check_totals(recorded.parse, recorded.text, damaged)


@every([recorded for recorded in IN_LINES if recorded.tool is NETCAT])
def test_lines_of_a_meter_that_are_missing_or_repeated_leave_true_numbers(recorded: Recorded) -> None:
    """Each line counts from the start, so the numbers between two others stay true, but a missing end is an error."""
    (truth,) = recorded.parse(recorded.text).peers
    for damaged in lines_damaged(recorded.text):
        found = outcome(recorded.parse, damaged)
        if found is not None:
            (peer,) = found.peers
            rate = truth.bytes / truth.seconds
            assert found.errors or peer.bytes / peer.seconds == pytest.approx(rate, rel=0.05)


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
    for recorded in IN_LINES
    for name in sorted(harmless(recorded.tool.key) if recorded.tool in {RADOS_BENCH, RBD_BENCH} else ())
    if name in recorded.text
] + [(recorded, "lines of progress") for recorded in IN_LINES if recorded.tool is DD and "\r" in recorded.text]


def pattern_of(name: str) -> str:
    return COLUMNS.get(name) or rf"^((?:\S+ )?{re.escape(name)}:\s+)\S+"


@pytest.mark.parametrize(("recorded", "name"), UNREAD, ids=lambda value: getattr(value, "case", value))
def test_fields_that_may_be_wrong_change_no_total(recorded: Recorded, name: str) -> None:
    truth = recorded.parse(recorded.text)
    for word in WORDS:
        text, count = re.subn(pattern_of(name), rf"\g<1>{word}", recorded.text, flags=re.MULTILINE)
        assert count
        assert totals(recorded.parse(text)) == totals(truth)


@every([recorded for recorded in IN_LINES if recorded.tool is RADOS_BENCH])
def test_all_other_totals_of_rados_bench_are_named_if_they_are_wrong(recorded: Recorded) -> None:
    names = {*re.findall(r"^(?:\S+\+0000 )?([A-Z][^:\n]+):  ", recorded.text, re.MULTILINE)} - harmless("radosBench")
    assert len(names) == 8
    for name, word in product(names, WORDS):
        text = re.sub(pattern_of(name), rf"\g<1>{word}", recorded.text, flags=re.MULTILINE)
        with pytest.raises(OutputError, match=re.escape(name)):
            recorded.parse(text)


@every(CASES)
def test_output_that_breaks_off(recorded: Recorded) -> None:
    whole = recorded.text.rstrip()
    for end in range(0, len(whole), max(1, len(whole) // 25)):
        # Between two lines, nothing shows that there is another OSD, or that the meter went on.
        if recorded.tool in {OSD_BENCH, NETCAT} and whole[:end].endswith("\n"):
            continue
        check_totals(recorded.parse, recorded.text, whole[:end])


@every(CASES)
def test_output_with_noise(recorded: Recorded) -> None:
    for damaged in noisy(recorded.case, recorded.text, 40):
        outcome(recorded.parse, damaged)


@every(IN_LINES)
@pytest.mark.parametrize("token", ["9" * 400, "1e308", "-1", "nan", "", "x\ud800"])
def test_word_that_became_another(recorded: Recorded, token: str) -> None:
    words = recorded.text.split(" ")
    for number in range(0, len(words), max(1, len(words) // 80)):
        outcome(recorded.parse, " ".join([*words[:number], token, *words[number + 1 :]]))
