"""Reports of real results in a real browser: complete, without errors, readable at all widths and in both themes."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser, Page

from plimsoll.api.result import BenchmarkResult
from plimsoll.cli import main
from support.command_line import rounds_in
from support.goldens import CEPH, LATER, SWEEP
from support.results import simulated
from support.simulated_storage import HockeyStick

pytestmark = pytest.mark.browser

Scheme = Literal["light", "dark"]
REPORTS = {"two-runs": (SWEEP, LATER), "ceph": (CEPH,)}


@dataclass
class Opened:
    """A page with its requests and console messages."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def ask(self, expression: str) -> Any:
        return self.page.evaluate(expression)


Open = Callable[..., Opened]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("reports")
    found = {name: directory / f"{name}.html" for name in REPORTS}
    for name, sources in REPORTS.items():
        written = CliRunner().invoke(main, ["report", *map(str, sources), "--html", str(found[name])])
        assert written.exit_code == 0, written.output
    searches = directory / "line.json"
    searches.write_text(json.dumps({"items": [one.model_dump(mode="json", exclude_none=True) for one in _searches()]}))
    found["line"] = directory / "line.html"
    written = CliRunner().invoke(main, ["report", str(searches), "--html", str(found["line"])])
    assert written.exit_code == 0, written.output
    rounds = directory / "rounds"
    rounds.mkdir()
    found["suite"] = directory / "suite.html"
    written = CliRunner().invoke(main, ["report", *rounds_in(rounds), "--html", str(found["suite"])])
    assert written.exit_code == 0, written.output
    return found


def _searches() -> list[BenchmarkResult]:
    """Return searches of two workloads: one over an axis, and one alone."""
    large = simulated(HockeyStick(6000, latency_noise=0.05), point="line-001", parameters={"blockSize": "64Ki"})
    return [simulated(), large, simulated(HockeyStick(9000, speed_noise=0.05), point="steady-000")]


@pytest.fixture
def opened(chromium: Browser) -> Iterator[Open]:
    """Open a file offline, and wait until all figures are drawn."""
    contexts = []

    def open_page(file: Path, width: int = 1600, scheme: Scheme = "light") -> Opened:
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True, reduced_motion="reduce"
        )
        contexts.append(context)
        found = Opened(page=context.new_page())
        found.page.on("request", lambda request: found.requests.append(request.url))
        found.page.on("console", lambda message: found.complaints.append(f"{message.type}: {message.text}"))
        found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
        found.page.goto(file.as_uri())
        found.page.wait_for_selector("html[data-drawn]", state="attached")
        return found

    yield open_page
    for context in contexts:
        context.close()


FIGURES = """() => Object.entries(JSON.parse(document.getElementById("figures").textContent)).map(([key, figure]) => {
  const place = document.getElementById(key);
  const box = place.querySelector("svg.main-svg").getBoundingClientRect();
  return {key, width: box.width, height: box.height, asked: figure.data.length, drawn: place.data.length,
          marks: place.querySelectorAll("g.trace, g.traces, g.hm, g.bars .point").length,
          left: place.getBoundingClientRect().left, right: place.getBoundingClientRect().right};
})"""


@pytest.mark.parametrize(
    ("name", "least_figures", "width", "scheme"),
    [
        ("two-runs", 9, 360, "dark"),
        ("ceph", 5, 1600, "light"),
        ("suite", 2, 360, "light"),
        ("line", 2, 360, "light"),
        ("line", 2, 1600, "dark"),
    ],
)
def test_a_report_opens_offline_with_every_figure_drawn_and_nothing_beyond_the_page(
    name: str,
    least_figures: int,
    width: int,
    scheme: Scheme,
    files: dict[str, Path],
    opened: Open,
    tmp_path: Path,
) -> None:
    found = opened(files[name], width, scheme)
    assert found.requests == [files[name].as_uri()]
    assert found.complaints == []
    figures = found.ask(FIGURES)
    assert len(figures) >= least_figures
    for one in figures:
        assert one["width"] > 200, one
        assert one["height"] > 100, one
        assert one["asked"] == one["drawn"], one
        assert one["marks"] > 0, one
        assert 0 <= one["left"] < one["right"] <= width, one
    assert found.ask("() => document.documentElement.scrollWidth") <= width
    picture = tmp_path / f"{name}-{width}-{scheme}.png"
    found.page.screenshot(path=picture, full_page=True)
    assert picture.stat().st_size > 50_000


NEXT_FRAME = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""The page is notified of a change of the theme before the next frame."""

COLOURS = """() => {
  const line = document.querySelector("#curves .plot .scatterlayer path.js-line");
  return [getComputedStyle(document.body).backgroundColor, getComputedStyle(line).stroke,
          getComputedStyle(document.querySelector("#curves .plot .xtick text")).fill];
}"""


def test_figures_follow_the_theme_also_when_it_changes(files: dict[str, Path], opened: Open) -> None:
    found = opened(files["two-runs"])
    light = found.ask(COLOURS)
    found.page.emulate_media(color_scheme="dark")
    found.ask(NEXT_FRAME)
    dark = found.ask(COLOURS)
    assert all(before != after for before, after in zip(light, dark, strict=True))
    assert dark == opened(files["two-runs"], scheme="dark").ask(COLOURS)
    found.page.emulate_media(color_scheme="light")
    found.ask(NEXT_FRAME)
    assert found.ask(COLOURS) == light


def test_paper_is_light_and_figures_fit_on_it(files: dict[str, Path], opened: Open, tmp_path: Path) -> None:
    found = opened(files["ceph"], scheme="dark")
    found.ask("() => window.dispatchEvent(new Event('beforeprint'))")
    assert found.ask("() => document.documentElement.dataset.theme") == "light"
    assert {round(one["width"]) for one in found.ask(FIGURES)} == {490}
    found.ask("() => window.dispatchEvent(new Event('afterprint'))")
    assert found.ask("() => document.documentElement.dataset.theme ?? null") is None
    printed = tmp_path / "report.pdf"
    found.page.pdf(path=printed, prefer_css_page_size=True)
    assert printed.read_bytes().startswith(b"%PDF")


PAPER_WIDTH, PAPER_HEIGHT = 1032, 703
"""CSS pixels of an A4 page in landscape within the margins of the style sheet."""

PRINTED = """() => [...document.querySelectorAll(".blocks > .chart")].map((chart) => {
  const box = chart.getBoundingClientRect();
  const plot = chart.querySelector("svg.main-svg").getBoundingClientRect();
  return {section: chart.closest("section").id, top: Math.round(box.top), height: box.height,
          inside: box.left <= plot.left && plot.right <= box.right && plot.bottom <= box.bottom};
})"""


def test_figures_are_printed_side_by_side_and_several_on_a_page(files: dict[str, Path], opened: Open) -> None:
    found = opened(files["two-runs"], PAPER_WIDTH)
    found.page.emulate_media(media="print")
    found.ask("() => window.dispatchEvent(new Event('beforeprint'))")
    found.ask(NEXT_FRAME)
    charts = found.ask(PRINTED)
    assert all(one["inside"] for one in charts)
    rows = Counter((one["section"], one["top"]) for one in charts)
    assert max(rows.values()) == 2
    assert len(rows) <= len(charts) / 2 + len({one["section"] for one in charts})
    assert sorted(one["height"] for one in charts)[len(charts) // 2] < PAPER_HEIGHT / 2


def test_a_click_on_a_heading_sorts_by_the_number_behind_the_text(files: dict[str, Path], opened: Open) -> None:
    found = opened(files["two-runs"])
    column = "() => [...document.querySelectorAll('#results tbody tr')].map((row) => Number(row.cells[6].dataset.sort))"
    heading = found.page.locator("#results thead button", has_text="IOPS")
    heading.click()
    ascending = found.ask(column)
    assert ascending == sorted(ascending)
    heading.click()
    assert found.ask(column) == ascending[::-1]
    assert found.page.locator("#results th[aria-sort='descending']").count() == 1


@pytest.mark.parametrize("heading", ["Op", "IOPS ± 95 %"])
def test_absent_values_are_last_in_both_orders(heading: str, opened: Open, tmp_path: Path) -> None:
    documents = json.loads(SWEEP.read_text())
    documents[0]["status"] |= {"summary": None, "verdict": None, "final": False}
    source, file = tmp_path / "unfinished.json", tmp_path / "unfinished.html"
    source.write_text(json.dumps(documents))
    written = CliRunner().invoke(main, ["report", str(source), "--html", str(file)])
    assert written.exit_code == 0, written.output
    found = opened(file)
    button = found.page.locator("#results thead button", has_text=re.compile(f"^{re.escape(heading)}"))
    point = documents[0]["spec"]["point"]
    for _ in range(2):
        button.click()
        assert found.page.locator("#results tbody tr").last.locator("th").inner_text() == point


def test_wide_tables_scroll_within_themselves(files: dict[str, Path], opened: Open) -> None:
    found = opened(files["ceph"], 360)
    table = found.page.locator("#results .scroll")
    widths = table.evaluate("(one) => [one.scrollWidth, one.clientWidth]")
    assert widths[0] > widths[1]


def test_hostile_names_stay_text(opened: Open, tmp_path: Path) -> None:
    evil = '</script><script>window.hurt = 1</script><img src=x onerror="window.hurt = 1"><b>'
    documents = json.loads(SWEEP.read_text())
    for document in documents:
        document["spec"] |= {"workload": evil, "label": evil, "run": evil}
        document["status"]["findings"] = [{"reason": evil, "verdict": "Suspect", "message": evil}]
    source, file = tmp_path / "evil.json", tmp_path / "evil.html"
    source.write_text(json.dumps(documents))
    written = CliRunner().invoke(main, ["report", str(source), "--html", str(file)])
    assert written.exit_code == 0, written.output
    found = opened(file)
    assert found.ask("() => window.hurt ?? null") is None
    assert (found.requests, found.complaints) == ([file.as_uri()], [])
    assert found.ask("() => document.querySelectorAll('main img, main script, main b').length") == 0
    assert found.page.locator("h1").inner_text() == evil
