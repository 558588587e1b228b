"""What real programs printed, and reports and scrapes of it."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml
from prometheus_client import Metric as Family
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.registry import Collector

from plimsoll.api.result import BenchmarkResult
from plimsoll.cli.source import load_results
from plimsoll.measure.sample import Measurement
from plimsoll.metrics.catalogue import METRICS, MetricFamily, MetricType, Sample
from plimsoll.report.figure import ReportedRun
from plimsoll.report.view import Block, Chart, Details, Section, Table, Text
from plimsoll.tools.base import AnyTool, Output, StepContext, StepKind, Timing, ToolParameters
from plimsoll.tools.iperf3 import Iperf3
from plimsoll.tools.netcat import Netcat
from plimsoll.tools.ping import Ping
from plimsoll.tools.target import PeerTarget
from support.full_documents import FULL_SUITE, FULL_SUITE_STATUS

IPERF3 = Iperf3()
NETCAT = Netcat()
PING = Ping()

_GOLDEN = Path(__file__).parent.parent / "golden"


AFTERWARDS = 5e9
"""Unix seconds after all recorded times."""

CEPH_VERSIONS = ("18.2", "20.2")
"""Those of the test clusters whose output was recorded."""


def ceph(name: str, version: str = "18.2") -> str:
    """Return a golden of a test cluster, by the name of its file without the ending."""
    return (_GOLDEN / f"ceph-{version}" / f"{name}.json").read_text()


OLD_ROOK, NEW_ROOK = "rook-1.18.11", "rook-master-20260821"
"""A Rook with Ceph 18.2.7, and one with Ceph 20.2.4."""


def rook(name: str, version: str = OLD_ROOK) -> str:
    return (_GOLDEN / version / f"{name}.json").read_text()


def rook_object(name: str, version: str = NEW_ROOK) -> dict[str, Any]:
    """Return an object as Rook wrote it, by the name of its file without the ending."""
    document: dict[str, Any] = yaml.safe_load((_GOLDEN / version / f"{name}.yaml").read_text())
    return document


def shown(text: str) -> dict[str, str]:
    """Return what `ceph config show` printed about an OSD: option -> value."""
    return {entry["name"]: entry["value"] for entry in json.loads(text)}


CRUSH_RULES = """
[{"rule_id":0,"rule_name":"replicated_rule","type":1,"steps":[{"op":"take","item":-1,"item_name":"default"},
  {"op":"chooseleaf_firstn","num":0,"type":"host"},{"op":"emit"}]},
 {"rule_id":1,"rule_name":"golden-data","type":3,"steps":[{"op":"set_chooseleaf_tries","num":5},
  {"op":"set_choose_tries","num":100},{"op":"take","item":-2,"item_name":"default~ssd"},
  {"op":"chooseleaf_indep","num":0,"type":"host"},{"op":"emit"}]},
 {"rule_id":2,"rule_name":"two-steps","type":1,"steps":[{"op":"take","item":-1,"item_name":"default"},
  {"op":"choose_firstn","num":2,"type":"rack"},{"op":"chooseleaf_firstn","num":2,"type":"host"},{"op":"emit"}]}]
"""
"""`ceph osd crush rule dump --format json` of the test cluster, with a rule for a device class and one of two steps."""


VERSIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"dd": ("9.1", "9.10"), "iperf3": ("3.12", "3.22"), "ping": ("20221126", "20250605"), "netcat": ("1.10",)}
)
"""Those of each program whose output was recorded; the tests of its parser hold for all of them."""

PEER = PeerTarget(addresses={1: "192.0.2.2"})

_TOOLS: Mapping[str, AnyTool] = MappingProxyType({"iperf3": IPERF3, "ping": PING, "netcat": NETCAT})


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkGolden:
    """One captured case with what its command was given."""

    tool: AnyTool
    parameters: ToolParameters
    timing: Timing
    output: Output

    def parse(self, stdout: str | None = None) -> Measurement:
        """Return the measurement, of another standard output if there is one."""
        output = self.output if stdout is None else replace(self.output, stdout=stdout)
        return self.tool.parse(self.parameters, self.context(), output)

    def context(self) -> StepContext:
        return StepContext(step=StepKind.MEASURE, target=PEER, timing=self.timing, seed=1, work_directory="/work")


_UDP = {"protocol": "UDP", "bitrate": "10M", "datagramBytes": 1400}
_CASES: Mapping[str, tuple[Mapping[str, object], int, int]] = MappingProxyType(
    {
        "iperf3-tcp-send": ({}, 1, 3),
        "iperf3-tcp-receive": ({"direction": "Receive"}, 2, 3),
        "iperf3-tcp-4-streams": ({"streams": 4, "window": "256Ki"}, 1, 3),
        "iperf3-udp-send": ({**_UDP, "streams": 2}, 1, 3),
        "iperf3-udp-receive": ({**_UDP, "direction": "Receive"}, 1, 3),
        "iperf3-udp-lossy": ({**_UDP, "bitrate": "30M"}, 1, 3),
        "iperf3-killed": ({}, 1, 30),
        "iperf3-server-died": ({}, 1, 5),
        "iperf3-refused": ({}, 1, 3),
        "ping-good": ({}, 1, 3),
        "ping-large": ({"size": 1400, "intervalMilliseconds": 50}, 0, 3),
        "ping-losses": ({"size": 1000}, 1, 3),
        "ping-nobody": ({"intervalMilliseconds": 100}, 0, 1),
        "ping-went-away": ({}, 1, 3),
        "ping-killed": ({"intervalMilliseconds": 50}, 1, 28),
        "netcat-receive": ({}, 1, 4),
        "netcat-server-died": ({}, 1, 4),
    }
)


@cache
def recorded(stem: str) -> Output:
    """Return what a program printed, by the name of its golden files without the ending."""
    files = {path.name.rpartition(".")[2]: path.read_text() for path in _GOLDEN.glob(f"{stem}.*")}
    began, ended = map(int, files.get("times", "0 0").split())
    return Output(
        exit_code=int(files.get("exit", "0")),
        stdout=next((files[kind] for kind in ("txt", "json", "csv") if kind in files), ""),
        stderr=files.get("stderr", ""),
        files={},
        launched_at=began,
        finished_at=ended + round(float(files.get("seconds", "0")) * 10**9),
    )


@cache
def network_golden(name: str) -> NetworkGolden:
    """Return a golden of a network tool, by program, version and case: `iperf3-3.22-tcp-send`."""
    program, _, case = name.split("-", 2)
    fields, ramp, runtime = _CASES[f"{program}-{case}"]
    tool = _TOOLS[program]
    # Instead of the shell's number for a signal, that of an agent.
    code = recorded(name).exit_code
    output = replace(recorded(name), exit_code=128 - code if code > 128 else code)
    parameters, timing = tool.parameters.model_validate(fields), Timing(ramp_seconds=ramp, runtime_seconds=runtime)
    return NetworkGolden(tool=tool, parameters=parameters, timing=timing, output=output)


_REPORTS = _GOLDEN / "report"
SWEEP = _REPORTS / "fio-3.39-sweep.json"
LATER = _REPORTS / "fio-3.39-sweep-later.json"
CEPH = _REPORTS / "ceph-18.2-layers.json"


def golden(path: Path) -> list[BenchmarkResult]:
    return load_results(str(path))


def run_of(results: Sequence[BenchmarkResult], label: str = "run") -> ReportedRun:
    return ReportedRun(label=label, results=results)


def blocks_of(section: Section | None) -> Iterator[Block]:
    assert section is not None
    waiting = [*section.blocks]
    while waiting:
        block = waiting.pop(0)
        yield block
        if isinstance(block, Details):
            waiting = [*block.blocks, *waiting]


def charts_of(section: Section | None) -> list[Chart]:
    return [block for block in blocks_of(section) if isinstance(block, Chart)]


def tables_of(section: Section | None) -> list[Table]:
    return [block for block in blocks_of(section) if isinstance(block, Table)]


def words_of(section: Section | None) -> str:
    return "\n".join(text for block in blocks_of(section) if isinstance(block, Text) for text in block.paragraphs)


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


RESULTS: list[dict[str, Any]] = json.loads((_GOLDEN / "metrics" / "results-demo-ceph.json").read_text())["items"]
RUN: dict[str, Any] = json.loads((_GOLDEN / "metrics" / "run-demo-ceph.json").read_text())

SUITE: dict[str, Any] = {
    **FULL_SUITE,
    "metadata": {**FULL_SUITE["metadata"], "creationTimestamp": "2026-01-01T00:00:00Z"},
    "status": FULL_SUITE_STATUS,
}

_BY_NAME = {metric.name: metric for metric in METRICS}


def values(samples: Iterable[Sample], metric: MetricFamily) -> dict[tuple[str, ...], float]:
    of_metric = [sample for sample in samples if sample.metric is metric]
    by_labels = {sample.labels: sample.value for sample in of_metric}
    assert len(by_labels) == len(of_metric), "two values for one series"
    return by_labels


def scraped(collector: Collector) -> list[Family]:
    """Return what both formats say, which is the same, after it went through them."""
    families = list(parse_text(generate_latest(collector).decode()))
    text = openmetrics.generate_latest(collector).decode()  # type: ignore[no-untyped-call]
    again = list(parse_openmetrics(text))  # type: ignore[no-untyped-call]
    assert sorted(_series(families)) == sorted(_series(again))
    return families


def check_against_catalogue(families: Iterable[Family]) -> None:
    """Fail if something is exposed that is not in the catalogue, with its type, its labels and its meaning."""
    series = []
    for family in families:
        if family.name.startswith(("process_", "python_")):
            continue  # of the library
        metric = _BY_NAME.get(family.name) or _BY_NAME[f"{family.name}_total"]
        assert family.type == metric.kind.value, metric.name
        assert family.documentation == metric.help
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(metric.labels), sample
            is_part = metric.kind is MetricType.HISTOGRAM and sample.name.endswith(("_bucket", "_count", "_sum"))
            assert sample.name == metric.name or is_part
            series.append((sample.name, *sorted(sample.labels.items())))
    assert len(series) == len(set(series)), "two values for one series"


def _series(families: Iterable[Family]) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    return [(sample.name, tuple(sorted(sample.labels.items()))) for family in families for sample in family.samples]
