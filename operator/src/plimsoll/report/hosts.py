"""The load of the clients' nodes and of the block devices below their data sets, point by point."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from plimsoll.api.result import BenchmarkResult
from plimsoll.api.surroundings import Hosts, Spread
from plimsoll.measure.summary import counted
from plimsoll.report.runs import ReportedRun
from plimsoll.report.text import NONE, ratio_text
from plimsoll.report.view import Cell, Section, Table, Text

_KIBIBYTE = 1024

_WORDS = (
    "The median over clients and over the trials that count, and in parentheses the highest value of a client. Numbers "
    "of devices are those of the block device below the data set on the client's node, with its other users. They are "
    "absent where a node shows no such device, as with librbd and network file systems. A request may be larger than "
    "the tool's blocks where the kernel merges them, and smaller where the device cannot take them whole."
)


def _number(value: float) -> str:
    return f"{value:.2f}"


def _kibibytes(value: float) -> str:
    return f"{value / _KIBIBYTE:,.1f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    heading: str
    part: Callable[[Hosts], Spread | None]
    show: Callable[[float], str]


_COLUMNS = (
    _Column(heading="CPUs", part=lambda hosts: hosts.cpu, show=_number),
    _Column(heading="Throttled, s", part=lambda hosts: hosts.throttled_seconds, show=_number),
    _Column(heading="Node busy", part=lambda hosts: hosts.node_cpu_busy, show=ratio_text),
    _Column(heading="Device busy", part=lambda hosts: hosts.device_busy, show=ratio_text),
    _Column(heading="Queue", part=lambda hosts: hosts.device_queue, show=_number),
    _Column(heading="Read request, KiB", part=lambda hosts: hosts.device_read_request_bytes, show=_kibibytes),
    _Column(heading="Write request, KiB", part=lambda hosts: hosts.device_write_request_bytes, show=_kibibytes),
)


def hosts_section(runs: Sequence[ReportedRun]) -> Section | None:
    """Return the hosts of all points; None if no host was observed."""
    several = len(runs) > 1
    rows = [
        [*([Cell(text=run.label)] if several else []), Cell(text=result.spec.point, title=result.spec.label), *cells]
        for run in runs
        for result in run.results
        if (cells := _cells(result))
    ]
    if not rows:
        return None
    headings = [column.heading for column in _COLUMNS]
    table = Table(
        caption="Load of the clients' hosts",
        headings=(*(["Run"] if several else []), "Point", *headings),
        numbers=headings,
        rows=rows,
        sortable=True,
    )
    return Section(key="hosts", title="Hosts and devices", blocks=[Text(paragraphs=[_WORDS]), table])


def _cells(result: BenchmarkResult) -> list[Cell]:
    """Return the numbers of a point; empty if no host was observed."""
    observed = [trial.hosts for trial in counted(result.status.trials) if trial.hosts is not None]
    return [_cell(column, observed) for column in _COLUMNS] if observed else []


def _cell(column: _Column, observed: Sequence[Hosts]) -> Cell:
    spreads = [spread for hosts in observed if (spread := column.part(hosts)) is not None]
    if not spreads:
        return Cell(text=NONE)
    middle = median(spread.median for spread in spreads)
    highest = max(spread.max for spread in spreads)
    return Cell(text=f"{column.show(middle)} ({column.show(highest)})", sort=middle)
