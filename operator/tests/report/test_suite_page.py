"""The report of a suite: its rounds, trends with what changed, variants, comparisons and hypotheses."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from markupsafe import escape

from plimsoll.api.suite_status import round_name
from plimsoll.cli import main
from plimsoll.cli.suite_rounds import load_rounds
from plimsoll.report.page import make_suite_page
from plimsoll.report.render import embedded, render
from plimsoll.report.view import Block, Chart, ReportPage, Section, Table, Text
from support.command_line import MINUTE, WEEK, rounds_in, written_round


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return rounds_in(tmp_path_factory.mktemp("rounds"))


@pytest.fixture(scope="module")
def page(sources: list[str]) -> ReportPage:
    return make_suite_page(load_rounds(sources, ()))


def section(page: ReportPage, key: str) -> Section:
    return next(one for one in page.sections if one.key == key)


def table_in(blocks: Sequence[Block]) -> Table:
    return next(block for block in blocks if isinstance(block, Table))


def cells(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def trend_of(page: ReportPage, metric: str) -> Chart:
    charts = [block for block in section(page, "trend").blocks if isinstance(block, Chart)]
    return next(chart for chart in charts if chart.title.endswith(metric))


def test_a_suite_is_reported_from_its_rounds_to_its_environment(page: ReportPage) -> None:
    keys = [one.key for one in page.sections]
    assert keys == ["rounds", "judgement", "hypotheses", "trend", "comparison", "results", "what"]
    assert (page.title, page.subtitle) == ("weekly", "5 rounds of old, new")


def test_a_later_round_that_failed_is_named(sources: list[str]) -> None:
    suite = replace(load_rounds(sources, ()), failed="round 6 measured too little")
    assert make_suite_page(suite).subtitle == "5 rounds of old, new; round 6 measured too little"


def test_the_last_round_comes_first_with_what_changed(page: ReportPage) -> None:
    rows = cells(table_in(section(page, "rounds").blocks))
    assert [row[0] for row in rows] == [round_name(MINUTE + number * WEEK) for number in (4, 3, 2, 1, 0)]
    assert rows[0][-1] == "nodes: a → b"
    assert rows[1][-1] == "kernel: 6.1.0 → 6.12.0"
    assert [row[-1] for row in rows[2:]] == ["-"] * 3
    assert [row[2] for row in rows[1:]] == ["accepted, pinned"] * 4


def test_a_trend_has_a_line_for_each_variant_with_an_interval(page: ReportPage) -> None:
    chart = trend_of(page, "iops")
    assert [trace["name"] for trace in chart.data] == ["old", "new"]
    for trace in chart.data:
        assert len(trace["x"]) == 5
        assert trace["y"][0] == pytest.approx(1000, rel=0.01)
        assert trace["y"][4] == pytest.approx(800, rel=0.01)
        assert all(half > 0 for half in (*trace["error_y"]["array"], *trace["error_y"]["arrayminus"]))


def test_changes_of_kernel_and_nodes_are_marked_where_they_happened(page: ReportPage) -> None:
    layout = trend_of(page, "iops").layout
    assert [one["text"] for one in layout["annotations"]] == ["kernel", "nodes"]
    starts = trend_of(page, "iops").data[0]["x"]
    assert [one["x"] for one in layout["annotations"]] == [starts[3], starts[4]]
    assert [one["x0"] for one in layout["shapes"]] == [starts[3], starts[4]]


def test_rounds_of_the_baseline_are_filled_and_regressions_are_crosses(tmp_path: Path) -> None:
    sources = [str(written_round(tmp_path, number, {})) for number in range(3)]
    sources.append(str(written_round(tmp_path, 3, {"old": 0.8, "new": 0.8})))
    found = make_suite_page(load_rounds(sources, ()))
    for trace in trend_of(found, "iops").data:
        assert all(not name.endswith("-open") for name in trace["marker"]["symbol"][:3])
        assert trace["marker"]["symbol"][3] == "x"
    rows = cells(table_in(section(found, "judgement").blocks))
    assert {row[0] for row in rows} == {"old", "new"}
    assert "Regression" in {row[-1] for row in rows}


def test_a_change_of_the_suite_itself_is_marked(tmp_path: Path) -> None:
    sources = [str(written_round(tmp_path, 0, {})), str(written_round(tmp_path, 1, {}, repeat=4))]
    found = make_suite_page(load_rounds(sources, ()))
    assert [one["text"] for one in trend_of(found, "iops").layout["annotations"]] == ["suite"]


def test_variants_are_side_by_side(page: ReportPage) -> None:
    rows = cells(table_in(section(page, "results").blocks))
    assert [row[1] for row in rows] == ["old", "new"]
    assert len({row[0] for row in rows}) == 1


def test_hypotheses_have_their_numbers_and_their_sentence(page: ReportPage) -> None:
    blocks = section(page, "hypotheses").blocks
    (row,) = cells(table_in(blocks))
    assert row[0] == "alike"
    assert row[2] == "Held"
    assert row[3].endswith(" %")
    assert " to " in row[4]
    assert row[5] == "at least 90 %"
    texts = [block for block in blocks if isinstance(block, Text)]
    assert any("at least 90 % was expected: Held." in words for words in texts[-1].paragraphs)


def test_the_last_round_is_judged_in_words_and_numbers(page: ReportPage) -> None:
    blocks = section(page, "judgement").blocks
    words = [words for block in blocks if isinstance(block, Text) for words in block.paragraphs]
    assert "costs: is new worse than old? NoRegression." in words
    assert any(
        one.startswith(f"upgrade: is round {round_name(MINUTE + 4 * WEEK)} worse than 4 accepted rounds?")
        for one in words
    )
    assert any("changed since the accepted rounds: nodes: " in one for one in words)


def test_a_single_round_has_no_trend(tmp_path: Path) -> None:
    sources = [str(written_round(tmp_path, 0, {}))]
    found = make_suite_page(load_rounds(sources, ()))
    assert "trend" not in [one.key for one in found.sections]


def test_every_figure_has_a_key_of_its_own_and_its_texts_are_escaped(page: ReportPage) -> None:
    charts = [block for one in page.sections for block in one.blocks if isinstance(block, Chart)]
    keys = [chart.key for chart in charts]
    assert len(set(keys)) == len(keys)
    figures: Mapping[str, Any] = json.loads(embedded(page))
    assert figures.keys() == set(keys)
    text = render(page)
    assert all(escape(chart.title) in text for chart in charts)


def test_the_command_writes_the_same_file_twice(sources: list[str], tmp_path: Path) -> None:
    files = [tmp_path / "a.html", tmp_path / "b.html"]
    for file in files:
        done = CliRunner().invoke(main, ["report", *sources, "--html", str(file)])
        assert done.exit_code == 0, done.output
        assert done.output == f"{file}: 5 rounds of suite weekly; open it in a browser\n"
    assert files[0].read_bytes() == files[1].read_bytes()
