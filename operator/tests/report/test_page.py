"""The whole page: its sections, its limits, and its safety."""

import base64
import json
import re
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import pytest
from markupsafe import escape

from plimsoll.api.environment import Environment
from plimsoll.api.names import Verdict
from plimsoll.api.result import BenchmarkResult, Finding
from plimsoll.report.figure import ReportedRun, runs_of
from plimsoll.report.page import make_page
from plimsoll.report.plot import plain
from plimsoll.report.render import embedded, render
from plimsoll.report.view import Chart, ReportPage
from support.goldens import CEPH, LATER, SWEEP, charts_of, golden, run_of
from support.results import measured, result, steady, trial, trials_of


def all_charts(page: ReportPage) -> list[Chart]:
    return [chart for section in page.sections for chart in charts_of(section)]


EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"


def page_of(*results: BenchmarkResult) -> ReportPage:
    return make_page(runs_of(results))


@pytest.fixture(scope="module")
def page() -> ReportPage:
    return page_of(*golden(SWEEP), *golden(LATER), *golden(CEPH))


class Elements(HTMLParser):
    """Collects elements that could run code or fetch data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def evil() -> BenchmarkResult:
    """Return a result in which every text is an injection attempt."""
    point = result(trials_of(steady(100)), run=EVIL, point=f"{EVIL}-000", parameters={"note": EVIL})
    finding = Finding(reason=EVIL, verdict=Verdict.SUSPECT, message=EVIL)
    environment = Environment.model_validate({EVIL: EVIL})
    return point.model_copy(
        update={
            "spec": point.spec.model_copy(update={"workload": EVIL, "label": EVIL}),
            "status": point.status.model_copy(
                update={"verdict": Verdict.SUSPECT, "findings": (finding,), "environment": environment}
            ),
        }
    )


def evil_sweep() -> list[BenchmarkResult]:
    """Return two such results over an axis, so that there is a figure of them."""
    first = evil()
    spec = first.spec.model_copy(update={"clients": 2 * first.spec.clients, "point": f"{EVIL}-001"})
    return [first, first.model_copy(update={"spec": spec})]


def test_verdicts_come_before_all_numbers(page: ReportPage) -> None:
    keys = [section.key for section in page.sections]
    assert keys == [
        *("what", "verdicts", "results", "curves", "latency", "time", "trials", "hosts", "provenance"),
    ]


def test_every_figure_says_what_it_shows_and_in_which_unit(page: ReportPage) -> None:
    for chart in all_charts(page):
        assert chart.title
        assert len(chart.description) > 40
        assert chart.data
        titled = [axis for axis in ("xaxis", "yaxis") if chart.layout[axis].get("title", {}).get("text")]
        categories = [axis for axis in ("xaxis", "yaxis") if chart.layout[axis].get("type") == "category"]
        assert {*titled, *categories} == {"xaxis", "yaxis"}, chart.title


def test_every_figure_has_a_place_of_its_own(page: ReportPage) -> None:
    keys = [chart.key for chart in all_charts(page)]
    assert len(keys) == len(set(keys))


def test_the_same_results_give_the_same_file(page: ReportPage) -> None:
    assert render(page) == render(page_of(*golden(SWEEP), *golden(LATER), *golden(CEPH)))


def test_512_points_stay_readable() -> None:
    (point,) = [one for one in golden(SWEEP) if one.spec.point == "random-read-000"]
    many = [
        point.model_copy(
            update={
                "spec": point.spec.model_copy(
                    update={
                        "point": f"random-read-{number:03d}",
                        "clients": 1 + number // 64,
                        "parameters": point.spec.parameters
                        | {"ioDepth": 2 ** (number % 8), "blockSize": f"{2 ** (number // 8 % 8)}Ki"},
                    }
                )
            }
        )
        for number in range(512)
    ]
    made = make_page([run_of(many)])
    assert len(all_charts(made)) <= 80
    assert len(embedded(made)) < 3_000_000


def test_names_never_become_markup() -> None:
    text = render(page_of(evil()))
    elements = Elements(text)
    assert [one.get("type") for one in elements.of("script")] == ["application/json", None, None]
    assert elements.of("img") == []
    assert EVIL not in text
    assert escape(EVIL) in text


def test_no_element_has_a_handler_or_names_another_file(page: ReportPage) -> None:
    for tag, attributes in Elements(render(page)).found:
        assert not [name for name in attributes if name.startswith("on")]
        assert not {"src", "srcset", "action", "data"} & attributes.keys()
        if "href" in attributes:
            assert (attributes["href"] or "").startswith("#") or (tag, attributes["href"]) == ("link", "data:,")


def test_figures_survive_being_embedded(page: ReportPage) -> None:
    read: dict[str, Any] = json.loads(embedded(page))
    assert {*read} == {chart.key for chart in all_charts(page)}
    hostile = embedded(page_of(*evil_sweep()))
    assert json.loads(hostile)
    assert "<" not in hostile


def test_only_the_two_scripts_of_the_file_may_run(page: ReportPage) -> None:
    text = render(page)
    (policy,) = [
        one["content"] or "" for one in Elements(text).of("meta") if one.get("http-equiv") == "Content-Security-Policy"
    ]
    scripts = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    digests = [base64.b64encode(sha256(script.encode()).digest()).decode() for script in scripts]
    assert re.findall(r"'sha256-([^']+)'", policy) == digests
    assert policy.startswith("default-src 'none';")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"text": ["<b>a\nb"]}, {"text": ["&lt;b&gt;a<br>b"]}),
        ({"hovertemplate": "%{x}<extra></extra>"}, {"hovertemplate": "%{x}<extra></extra>"}),
        ({"y": [float("nan"), float("inf"), 1 / 3, 7, None, True]}, {"y": [None, None, 0.3333333, 7, None, True]}),
        ({"color": "$series0"}, {"color": "$series0"}),
    ],
)
def test_what_a_figure_may_hold(value: object, expected: object) -> None:
    assert plain(value) == expected


def test_a_result_without_anything_has_a_page() -> None:
    nothing = result([], final=False, repetitions=3)
    bare = nothing.model_copy(update={"status": nothing.status.model_copy(update={"fingerprint": None})})
    assert render(make_page([ReportedRun(label="empty", results=[bare])]))


def test_a_result_of_which_no_trial_counts_has_a_page() -> None:
    made = page_of(result([trial(0, measured(1), verdict=Verdict.INVALID)]))
    assert [section.key for section in made.sections] == ["what", "verdicts", "results", "trials", "provenance"]
