"""Variants side by side: the line of each, with its interval."""

import pytest

from plimsoll.api.names import Verdict
from plimsoll.report.figure import ReportedRun
from plimsoll.report.trends import variants_section
from support.goldens import charts_of
from support.results import line, searched


def test_lines_of_variants_are_drawn_once_with_their_intervals() -> None:
    runs = [
        ReportedRun(label=name, results=[searched(line(load), run=name)])
        for name, load in (("a", 12_000), ("b", 9_600))
    ]
    (chart,) = charts_of(variants_section(runs))
    assert chart.title == "line: line"
    assert [(trace["name"], trace["y"]) for trace in chart.data] == [("a", [12_000]), ("b", [9_600])]
    assert chart.data[0]["error_y"]["array"] == pytest.approx([600])
    assert "12,000 (11,400 to 12,600)" in chart.data[0]["text"][0]


def test_an_invalid_line_is_not_drawn() -> None:
    runs = [
        ReportedRun(label=name, results=[searched(line(12_000), run=name, verdict=Verdict.INVALID)]) for name in "ab"
    ]
    assert variants_section(runs) is None
