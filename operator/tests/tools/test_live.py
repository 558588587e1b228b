"""Rates of running tools, read from every prefix of their output."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.names import Operation
from plimsoll.api.status import LiveRate
from plimsoll.tools.base import AnyTool, P, Tool, ToolParameters
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.fio.tool import Fio
from plimsoll.tools.rados_bench import RadosBench
from plimsoll.tools.registry import TOOLS

from .conftest import text_golden

FIO = Fio()
RADOS_BENCH = RadosBench()

GOLDEN = Path(__file__).parents[1] / "golden"
READ, WRITE, TRIM = Operation.READ, Operation.WRITE, Operation.TRIM

MIXED = FioParameters.model_validate({"pattern": "randrw", "readPercent": 70, "blockSize": 8192, "jobs": 2})
RADOS = {"operation": "write", "objectSize": 65536, "concurrency": 2}


def fio_output(version: str, case: str) -> str:
    return (GOLDEN / f"fio-{version}-live-{case}.stdout").read_bytes().decode()


def over_time(tool: AnyTool, parameters: ToolParameters, text: str) -> list[tuple[LiveRate, ...]]:
    """Return the rates after each further character, without repetitions."""
    answers = [tool.live(parameters, text[:end]) for end in range(len(text) + 1)]
    return answers[:1] + [after for before, after in pairwise(answers) if after != before]


def fio_over_time(version: str, case: str, **fields: Any) -> list[tuple[LiveRate, ...]]:
    return over_time(FIO, FioParameters.model_validate(fields), fio_output(version, case))


def parameters_of(tool: Tool[P], **fields: Any) -> P:
    return tool.parameters.model_validate(fields)


# -- fio


def test_a_mixture_at_a_limit_has_the_rates_of_its_limit_and_none_during_the_ramp(version: str) -> None:
    text = fio_output(version, "mixed-jobs2-ramp")
    ramp = text[: text.rindex("/(")]
    assert ramp.count("\r") >= 9
    assert over_time(FIO, MIXED, ramp) == [()]
    first, *later = over_time(FIO, MIXED, text)
    assert first == ()
    assert len(later) >= 2
    for read, write in later:
        assert (read.operation, write.operation) == (READ, WRITE)
        assert read.iops == pytest.approx(700, rel=0.05)
        assert write.iops == pytest.approx(300, rel=0.05)
        assert read.bytes_per_second == pytest.approx(read.iops * 8192, rel=0.005)
        assert write.bytes_per_second == pytest.approx(write.iops * 8192, rel=0.005)


def test_without_completions_the_rate_is_zero(version: str) -> None:
    rates = [found[0].iops for found in fio_over_time(version, "stall", pattern="randread") if found]
    assert 0.0 in rates
    assert max(rates) > 900


def test_thousands_and_gibibytes_are_read(version: str) -> None:
    found = [found for found in fio_over_time(version, "fast", pattern="randwrite", blockSize=65536) if found]
    assert len(found) == 2
    for (rate,) in found:
        assert rate.iops > 500_000
        assert rate.bytes_per_second == pytest.approx(rate.iops * 65536, rel=0.01)


def test_rates_of_trims_are_read(version: str) -> None:
    found = [found for found in fio_over_time(version, "trim", pattern="randtrim", blockSize=65536) if found]
    assert found
    for (rate,) in found:
        assert rate.operation is TRIM
        assert rate.iops == pytest.approx(500, rel=0.06)


RUNNING = "Jobs: 1 (f=1): [r(1)][50.0%][r=4000KiB/s][r=1000 IOPS][eta 00m:05s]\r"


@pytest.mark.parametrize(
    ("text", "iops"),
    [
        (RUNNING, None),
        (RUNNING + RUNNING, 1000.0),
        (RUNNING + RUNNING[:-1], None),
        ("fio: something odd\n" + RUNNING + RUNNING, 1000.0),
        (RUNNING + "fio: something odd\n" + RUNNING, None),
        (RUNNING + "Jobs: 1 (f=1): [r(1)][52.0%][eta 00m:03s]                         \r", 0.0),
        ("Jobs: 2 (f=1): [r(1),/(1)][50.0%][r=1KiB/s][r=1 IOPS][eta 00m:05s]\r" + RUNNING, None),
        (RUNNING + "Jobs: 2 (f=2): [r(1),f(1)][99.0%][r=2000kB/s][r=500 IOPS][eta 00m:00s]\r", 500.0),
        (RUNNING + "Jobs: 1 (f=1): [f(1)][100.0%][r=1KiB/s][r=1 IOPS][eta 00m:00s]\r", None),
        (RUNNING + "Jobs: 1 (f=1): [r(1)][1.0%][r=1.50MiB/s][r=2.5M IOPS][eta 01d:02h:00m:00s]\r", 2.5e6),
        (RUNNING + "Jobs: 1 (f=1), 0-1000 IOPS\r", None),
    ],
)
def test_a_rate_needs_two_whole_lines_of_the_measurement(text: str, iops: float | None) -> None:
    found = FIO.live(FioParameters(), text)
    assert [rate.iops for rate in found] == ([] if iops is None else [iops])


# -- rados bench


@pytest.mark.parametrize("operation", ["write", "rand"])
def test_rados_bench_shows_the_rate_of_the_last_seconds(operation: str, ceph_version: str) -> None:
    text = text_golden(f"rados-bench-timed-{operation}", ceph_version).stdout
    parameters = parameters_of(RADOS_BENCH, **(RADOS | {"operation": operation}))
    first, *later = over_time(RADOS_BENCH, parameters, text)
    assert first == ()
    assert len(later) >= 3
    for (rate,) in later:
        assert rate.operation is (WRITE if operation == "write" else READ)
        assert rate.bytes_per_second == round(rate.iops * 65536)
        assert 100 < rate.iops < 50_000


def test_rados_bench_counts_from_two_seconds_before() -> None:
    lines = text_golden("rados-bench-timed-write").stdout.splitlines(keepends=True)
    until_three = "".join(lines[: next(n for n, line in enumerate(lines) if "     3       2" in line) + 1])
    (rate,) = RADOS_BENCH.live(parameters_of(RADOS_BENCH, **RADOS), until_three)
    assert rate.iops == pytest.approx((520 - 131) / (36.674845 - 34.672031))


# -- any text

TOOLS_WITH_RATES = [tool for tool in TOOLS.values() if type(tool).live is not Tool.live]
TEXTS = [
    fio_output("3.39", "mixed-jobs2-ramp"),
    text_golden("rados-bench-timed-write").stdout,
]


@given(
    st.sampled_from(TOOLS_WITH_RATES),
    st.one_of(
        st.text(),
        st.lists(st.sampled_from([RUNNING, "\r", "\n", "9" * 400, "[", "=", "e+99", " "])).map("".join),
        st.tuples(st.sampled_from(TEXTS), st.integers(0), st.integers(0), st.text()).map(
            lambda drawn: drawn[0][drawn[1] % len(drawn[0]) :][: drawn[2] % 4096] + drawn[3]
        ),
    ),
)
def test_any_text_yields_rates_or_nothing(tool: AnyTool, text: str) -> None:
    for rate in tool.live(tool.parameters(), text):
        assert LiveRate.model_validate_json(rate.model_dump_json()) == rate
