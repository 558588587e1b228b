"""Reports of real results, and of results that a test makes."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from plimsoll.api.result import BenchmarkResult
from plimsoll.cli.source import load_results
from plimsoll.report.inputs import ReportedRun
from plimsoll.report.view import Block, Chart, Details, ReportPage, Section, Table, Text

GOLDEN = Path(__file__).parent.parent / "golden" / "report"
SWEEP = GOLDEN / "fio-3.39-sweep.json"
LATER = GOLDEN / "fio-3.39-sweep-later.json"
CEPH = GOLDEN / "ceph-18.2-layers.json"


def golden(path: Path) -> list[BenchmarkResult]:
    return load_results(str(path))


def run_of(results: Sequence[BenchmarkResult], label: str = "run") -> ReportedRun:
    return ReportedRun(label=label, results=results)


def blocks_of(section: Section | None) -> Iterator[Block]:
    """Yield all blocks of a section, those that are folded away as well."""
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


def all_charts(page: ReportPage) -> list[Chart]:
    return [chart for section in page.sections for chart in charts_of(section)]


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]
