"""The chart's dashboards: the rules of Grafana's linter, and the results of their expressions."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from plimsoll.api.line import Vary
from support import exposed
from support.promql import counters_without_rate, problems_of
from support.promtool import evaluate

ROOT = Path(__file__).parents[3]
DIRECTORY = ROOT / "charts" / "plimsoll" / "files" / "dashboards"
PAGES: dict[str, dict[str, Any]] = {path.stem: json.loads(path.read_text()) for path in DIRECTORY.glob("*.json")}

OLDEST_SCHEMA = 40
"""Of Grafana 11."""

COUNTERS_AS_THEY_ARE = {"plimsoll_live_attempts_total"}
"""A conductor has one run: what it counted since it began is what is to be known."""

PLACEHOLDER = re.compile(r"\$\{?(\w+)\}?")

Panel = dict[str, Any]


def panels(page: str) -> list[Panel]:
    return [panel for panel in PAGES[page]["panels"] if panel["type"] != "row"]


def targets() -> Iterator[tuple[str, Panel, dict[str, Any]]]:
    for page in PAGES:
        for panel in panels(page):
            for target in panel["targets"]:
                yield page, panel, target


EVERY_PANEL = [pytest.param(panel, id=f"{page}: {panel['title']}") for page in PAGES for panel in panels(page)]
EVERY_TARGET = [
    pytest.param(page, target["expr"], id=f"{page}: {panel['title']} {target['refId']}")
    for page, panel, target in targets()
]


def substituted(page: str, expr: str) -> str:
    """Return an expression as Grafana sends it, of runs of the world in `support.exposed`."""
    values = {
        "namespace": exposed.NAMESPACE if page == "live" else ".*",
        "run": exposed.LIVE if page == "live" else ".*",
        "suite": ".*",
        "workload": ".*",
        "baseline": exposed.BASELINE,
        "__rate_interval": "5m",
        "__interval": "2m",
        "__interval_ms": "120000",
    }
    return PLACEHOLDER.sub(lambda found: values[found[1]], expr)


def expression(page: str, title: str, ref: str = "A") -> str:
    found = [t["expr"] for p, panel, t in targets() if (p, panel["title"], t["refId"]) == (page, title, ref)]
    assert len(found) == 1
    return substituted(page, found[0])


def test_dashboards_are_what_their_code_says() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "hack" / "dashboards.py", "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_runs_under_way_results_suites_and_the_operator_have_one_each() -> None:
    assert {page: PAGES[page]["uid"] for page in sorted(PAGES)} == {
        "live": "plimsoll-live",
        "operator": "plimsoll-operator",
        "results": "plimsoll-results",
        "suites": "plimsoll-suites",
    }


@pytest.mark.parametrize("page", PAGES)
def test_a_dashboard_is_found_and_leads_to_the_others(page: str) -> None:
    document = PAGES[page]
    assert document["title"].startswith("Plimsoll / ")
    assert document["description"]
    assert document["schemaVersion"] >= OLDEST_SCHEMA
    assert document["tags"] == ["plimsoll"]
    assert [(link["type"], link["tags"]) for link in document["links"]] == [("dashboards", ["plimsoll"])]
    assert not document["editable"]
    assert "id" not in document
    assert "version" not in document


@pytest.mark.parametrize("page", PAGES)
def test_the_data_source_is_chosen_first(page: str) -> None:
    first, *others = PAGES[page]["templating"]["list"]
    assert (first["name"], first["type"], first["query"]) == ("datasource", "datasource", "prometheus")
    for variable in others:
        assert variable["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert variable["label"]
        metric = re.search(r"label_values\((.*), (\w+)\)$", variable["query"])
        assert metric is not None
        assert list(problems_of(f"sum by ({metric[2]}) ({metric[1]})")) == []


@pytest.mark.parametrize("page", PAGES)
def test_every_variable_that_is_used_is_there_and_every_one_there_is_used(page: str) -> None:
    document = PAGES[page]
    names = {variable["name"] for variable in document["templating"]["list"]}
    used = set(PLACEHOLDER.findall(json.dumps([document["panels"], document["templating"]])))
    assert {name for name in used if not name.startswith("__")} == names


@pytest.mark.parametrize("page", PAGES)
def test_panels_have_numbers_of_their_own_and_do_not_overlap(page: str) -> None:
    everything = PAGES[page]["panels"]
    assert [panel["id"] for panel in everything] == list(range(1, len(everything) + 1))
    places = [panel["gridPos"] for panel in everything]
    assert all(place["x"] + place["w"] <= 24 and place["w"] > 0 and place["h"] > 0 for place in places)
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below


@pytest.mark.parametrize("panel", EVERY_PANEL)
def test_a_panel_says_what_it_shows_and_in_which_unit(panel: Panel) -> None:
    defaults = panel["fieldConfig"]["defaults"]
    assert panel["title"]
    assert panel["description"].endswith(".")
    assert defaults["unit"]
    assert defaults["noValue"]
    assert panel["datasource"]["uid"] == "${datasource}"
    assert panel["targets"]


@pytest.mark.parametrize("panel", EVERY_PANEL)
def test_a_panel_asks_each_question_once_and_names_the_answers(panel: Panel) -> None:
    refs = [target["refId"] for target in panel["targets"]]
    assert len(set(refs)) == len(refs)
    for target in panel["targets"]:
        assert target["datasource"]["uid"] == "${datasource}"
        tabled = target.get("format") == "table"
        assert tabled == (panel["type"] in {"table", "barchart"})
        assert tabled or target["legendFormat"] not in {"", "__auto"}
        assert target["instant"] != (panel["type"] in {"timeseries", "state-timeline"})


@pytest.mark.parametrize("panel", [param for param in EVERY_PANEL if "transformations" in str(param.values)])
def test_a_table_shows_columns_that_its_queries_have(panel: Panel) -> None:
    """Every column is a label, or the value of a query, and every query has its column."""
    options = {step["id"]: step["options"] for step in panel["transformations"]}
    shown = options["filterFieldsByName"]["include"]["names"]
    refs = [target["refId"] for target in panel["targets"]]
    values = {"Value"} if len(refs) == 1 else {f"Value #{ref}" for ref in refs}
    exprs = " ".join(target["expr"] for target in panel["targets"])
    hidden = {"Value"} if panel["title"] in {"Now", "Alerts"} else set()
    assert {name for name in shown if name.startswith("Value")} == values - hidden
    assert all(re.search(rf"\b{name}\b", exprs) for name in shown if not name.startswith("Value"))
    overridden = {override["matcher"]["options"] for override in panel["fieldConfig"]["overrides"]}
    assert overridden <= set(options["organize"]["renameByName"].values())


@pytest.mark.parametrize(("page", "expr"), EVERY_TARGET)
def test_an_expression_reads_what_plimsoll_exposes(page: str, expr: str) -> None:
    assert list(problems_of(expr)) == []
    assert counters_without_rate(expr) <= COUNTERS_AS_THEY_ARE
    assert set(re.findall(r"\[([^\]]*)\]", expr)) <= {"$__rate_interval"}


@pytest.mark.chart
@pytest.mark.parametrize("page", PAGES)
def test_every_expression_shows_something_of_what_is_exposed(page: str, tmp_path: Path) -> None:
    """An expression that cannot be read, joins what does not match, or finds nothing fails."""
    tests = [
        {
            "expr": f"count({substituted(page, target['expr'])}) > bool 0",
            "eval_time": f"{exposed.NOW}s",
            "exp_samples": [{"labels": "{}", "value": 1}],
        }
        for name, _, target in targets()
        if name == page
    ]
    evaluate(tmp_path, exposed.series(), tests)


def row(run: str, point: str, more: str = "") -> str:
    labels = f'namespace="bench",run="{run}",workload="random-write",point="{point}",parameters="randwrite 4Ki qd16"'
    return f'{{{labels},clients="4"{more}}}'


def expected(expr: str, **values: float) -> dict[str, Any]:
    samples = [{"labels": labels, "value": value} for labels, value in values.items()]
    return {"expr": expr, "eval_time": f"{exposed.NOW}s", "exp_samples": samples}


@pytest.mark.chart
def test_the_report_has_a_row_for_every_result_and_withholds_invalid_numbers(tmp_path: Path) -> None:
    report = expression("results", "Report")
    believed = {
        row("before", "random-write-006", ',operation="write",verdict="Valid"'): 1000.0,
        row("after", "random-write-005", ',operation="write",verdict="Suspect"'): 1200.0,
    }
    shown = "parameters, clients, verdict"
    withheld = {row("wrong", "random-write-005", ',verdict="Invalid"'): 1.0}
    # promtool takes no NaN for equal to another: what is left without it are the numbers, what is none is counted.
    tests = [
        expected(f"({report}) >= 0", **believed),
        expected(f"count by (namespace, run, workload, point, {shown}) (({report}) != ({report}))", **withheld),
    ]
    evaluate(tmp_path, exposed.series(), tests)


@pytest.mark.chart
def test_a_result_is_drawn_once_when_it_was_measured_and_not_again(tmp_path: Path) -> None:
    history = expression("results", "IOPS over time")
    point = 'namespace="bench",workload="random-write",parameters="randwrite 4Ki qd16",clients="4",operation="write"'
    drawn = {f"{{{point}}}": 1200.0}
    steps = {exposed.NOW - 120: {}, exposed.NOW: drawn, exposed.NOW + 120: {}, exposed.NOW + 240: {}}
    tests = [{**expected(history, **dots), "eval_time": f"{second}s"} for second, dots in steps.items()]
    evaluate(tmp_path, exposed.series(), tests)


@pytest.mark.chart
def test_runs_are_compared_by_what_was_measured_and_not_by_the_names_of_points(tmp_path: Path) -> None:
    change = expression("results", "Change against $baseline")
    values = {
        row("before", "random-write-006", ',operation="write"'): 0.0,
        row("after", "random-write-005", ',operation="write"'): 1200 / 1000 - 1,
    }
    evaluate(tmp_path, exposed.series(), [expected(change, **values)])


@pytest.mark.chart
def test_half_of_the_confidence_interval_is_shown(tmp_path: Path) -> None:
    half = f"round({expression('results', 'Report', 'B')}, 0.001)"
    labels = 'namespace="bench",workload="random-write",operation="write"'
    values = {
        f'{{{labels},run="before",point="random-write-006"}}': 100.0,
        f'{{{labels},run="after",point="random-write-005"}}': 120.0,
    }
    evaluate(tmp_path, exposed.series(), [expected(half, **values)])


@pytest.mark.chart
def test_two_programs_that_expose_the_same_result_make_one_row(tmp_path: Path) -> None:
    """As two operators do for a moment, or one that is scraped twice."""
    series = exposed.series()
    twice = {name.replace("10.0.0.1", "10.0.0.2"): values for name, values in series.items()}
    tests = [
        expected(f"count({expression('results', title, 'A')})", **{"{}": count})
        for title, count in (("Report", 3.0), ("IOPS", 2.0), ("Change against $baseline", 2.0))
    ]
    evaluate(tmp_path, series | twice, tests)


@pytest.mark.chart
def test_a_suite_has_a_row_even_without_rounds(tmp_path: Path) -> None:
    rows = expression("suites", "Suites")
    accepted = {
        '{namespace="bench",suite="layouts",status="Idle"}': 0.0,
        '{namespace="bench",suite="weekly",status="Measuring",verdict="Regressed"}': 1.0,
    }
    evaluate(tmp_path, exposed.series(), [expected(rows, **accepted)])


@pytest.mark.chart
def test_a_comparison_has_a_row_even_without_an_estimate(tmp_path: Path) -> None:
    changes = expression("suites", "Comparisons")
    labels = 'namespace="bench",suite="weekly",comparison="upgrade"'
    known = {f'{{{labels},variant="a",verdict="Regression"}}': -0.12}
    unknown = {f'{{{labels},variant="b",verdict="Inconclusive"}}': 1.0}
    # promtool takes no NaN for equal to another.
    row = "namespace, suite, comparison, variant, verdict"
    tests = [
        expected(f"({changes}) <= 0", **known),
        expected(f"count by ({row}) (({changes}) != ({changes}))", **unknown),
    ]
    evaluate(tmp_path, exposed.series(), tests)


@pytest.mark.chart
def test_the_last_verdict_is_that_of_the_last_round_whatever_came_of_it(tmp_path: Path) -> None:
    verdicts = expression("suites", "Verdicts over time")
    failed = 4.0
    evaluate(tmp_path, exposed.series(), [expected(verdicts, **{'{namespace="bench",suite="weekly"}': failed})])


@pytest.mark.chart
def test_lines_of_rates_and_of_depths_are_in_one_table_with_their_intervals(tmp_path: Path) -> None:
    def of_both(value: float) -> dict[str, float]:
        names = (f"line-{vary}" for vary in Vary)
        return {f'{{namespace="bench",run="after",workload="{name}",point="{name}-000"}}': value for name in names}

    values = {"B": 900.0, "C": 855.0, "D": 945.0}
    tests = [expected(expression("results", "Lines", ref), **of_both(value)) for ref, value in values.items()]
    evaluate(tmp_path, exposed.series(), tests)
