"""docs/reference/tools.md describes every tool."""

import re
from pathlib import Path

import pytest

from corpus import case as case_file
from corpus.trial_case import measure
from plimsoll.api.names import LatencyKind
from plimsoll.api.operation import OperationResult
from plimsoll.tools.fio.tool import Fio
from plimsoll.tools.registry import TOOLS

FIO = Fio()

DOCS = Path(__file__).parents[3] / "docs"
TEXT = (DOCS / "reference" / "tools.md").read_text()
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))
LATENCIES = {
    LatencyKind.FULL: "full",
    LatencyKind.MEAN_ONLY: "mean",
    LatencyKind.MAX_ONLY: "maximum",
    LatencyKind.NONE: "none",
}
ROWS = {
    cells[0]: cells[1:]
    for line in TEXT.splitlines()
    if (cells := [cell.strip() for cell in line.strip("|").split("|")]) and cells[0].startswith("[`")
}


def test_table_has_a_row_of_every_tool_and_of_no_other() -> None:
    """No other test notices that a tool is no longer registered."""
    assert sorted(ROWS) == sorted(f"[`{key}`](#{key.lower()})" for key in TOOLS)


@pytest.mark.parametrize("key", TOOLS)
def test_every_tool_has_a_section(key: str) -> None:
    for part in ("**Good for**", "**Hides**", "**Reproduces**"):
        assert part in SECTIONS[key]


@pytest.mark.parametrize("key", TOOLS)
def test_row_of_a_tool_is_what_it_declares(key: str) -> None:
    tool = TOOLS[key]
    layer, _, operations, _, _, runs_for = ROWS[f"[`{key}`](#{key.lower()})"]
    assert layer.split(",")[0] == tool.layer.value
    assert operations == ("yes" if tool.quantities.operations else "no")
    assert ("its work" in runs_for) is not tool.windowed


def recorded_operations(key: str) -> list[OperationResult]:
    """Return what results say of a tool's recorded outputs, of all trials of the corpus whose numbers count."""
    cases = [case_file.load(path) for path in case_file.paths()]
    counting = [case for case in cases if case.trial and case.trial.tool == key and case.expect.headline]
    if key == FIO.key:
        counting = [case for case in counting if case.slug == "good-trial"]
    trials = [trial for case in counting for trial in measure(case).trials.values()]
    return [operation for trial in trials for operation in trial.operations]


@pytest.mark.parametrize("key", TOOLS)
def test_row_of_a_tool_says_what_its_results_contain(key: str) -> None:
    _, _, _, volume, latency, _ = ROWS[f"[`{key}`](#{key.lower()})"]
    operations = recorded_operations(key)
    assert operations
    assert volume == ("yes" if any(operation.bytes for operation in operations) else "no")
    kinds = {operation.latency.kind for operation in operations if operation.ios} or {LatencyKind.NONE}
    assert {latency} == {LATENCIES[kind] for kind in kinds}


def test_glossary_leads_to_the_tools() -> None:
    assert "](tools.md)" in (DOCS / "reference" / "glossary.md").read_text()
