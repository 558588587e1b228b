"""docs/tools.md describes every tool."""

import re
from pathlib import Path

import pytest

from plimsoll.tools.registry import TOOLS

DOCS = Path(__file__).parents[3] / "docs"
TEXT = (DOCS / "tools.md").read_text()
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))
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
    layer, _, operations, volume, latency, runs_for = ROWS[f"[`{key}`](#{key.lower()})"]
    assert layer.split(",")[0] == tool.layer.value
    assert operations == ("yes" if tool.quantities.operations else "no")
    assert volume in ("yes", "no")
    assert latency in ("full", "mean", "maximum", "none")
    assert ("its work" in runs_for) is not tool.windowed


def test_concepts_lead_to_the_tools() -> None:
    assert "](tools.md)" in (DOCS / "concepts.md").read_text()
