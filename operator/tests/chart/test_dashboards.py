"""The chart's dashboards: the rules of Grafana's linter, and the results of their expressions."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from chart.promql import counters_without_rate, problems_of, promtool
from plimsoll.api.line import Vary
from plimsoll.api.names import Verdict
from plimsoll.api.suite_status import RoundVerdict
from plimsoll.metrics import catalogue
from plimsoll.metrics.catalogue import METRICS, MetricFamily, MetricType, Sample, Source
from plimsoll.metrics.objects import (
    Exposed,
    result_metrics,
    result_samples,
    run_metrics,
    run_samples,
    suite_metrics,
    suite_samples,
)
from support.goldens import AFTERWARDS, RESULTS

NAMESPACE, BASELINE, RUN, LIVE = "bench", "before", "after", "under-way"
WEEKLY, IDLE = "weekly", "layouts"
"""Suites: one that regressed and measures its next round, and one without a schedule that waits for a change."""

NOW = 1800
"""Seconds since the first sample, at which expressions are evaluated."""

_TARGET = 'job="plimsoll",instance="10.0.0.1:8081",pod="plimsoll-0"'
_STEPS = 40


def evaluate(directory: Path, series: Mapping[str, str], tests: Sequence[Mapping[str, Any]]) -> None:
    """Evaluate expressions, each with what is expected of it, on series that have a value for every minute."""
    inputs = [{"series": name, "values": values} for name, values in series.items()]
    test = {"interval": "1m", "input_series": inputs, "promql_expr_test": list(tests)}
    path = directory / "test.yaml"
    path.write_text(yaml.safe_dump({"rule_files": [], "tests": [test]}, allow_unicode=True))
    promtool("test", "rules", path)


def series() -> dict[str, str]:
    """Return series -> values in promtool's notation. Gauges stay, counters and histograms grow with every minute."""
    found = {_name(sample.metric.name, sample): _values(sample) for sample in _gauges()}
    for metric in METRICS:
        if metric.kind is MetricType.COUNTER and metric is not catalogue.LIVE_ATTEMPTS:
            found[_name(metric.name, Sample(metric, _some(metric), 0))] = f"0+1x{_STEPS}"
        if metric.kind is MetricType.HISTOGRAM:
            found |= _histogram(metric)
    found[f"process_resident_memory_bytes{{{_TARGET}}}"] = f"1e8x{_STEPS}"
    found[f"process_cpu_seconds_total{{{_TARGET}}}"] = f"0+3x{_STEPS}"
    alert = 'alertname="PlimsollRunStuck",alertstate="firing",severity="warning",namespace="bench",run="under-way"'
    return found | {f"ALERTS{{{alert}}}": f"1x{_STEPS}"}


def _values(sample: Sample) -> str:
    """Return a value for every minute: from the beginning; of the newer run from when it was measured."""
    is_new = sample.metric.source is Source.RESULTS and RUN in sample.labels
    return f"{f'_x{NOW // 60 - 1} ' if is_new else ''}{float(sample.value)!r}x{_STEPS}"


def result(run: str, verdict: Verdict, iops: float, *, finished: float) -> Exposed:
    """Return the result of a point with one operation; its name says its place in a plan, and so differs over runs."""
    document = _result_document(run, verdict, finished)
    operation = document["status"]["summary"]["operations"][0] | {
        "operation": "write",
        "iops": {"trials": 3, "mean": iops, "low": iops * 0.9, "high": iops * 1.1},
        "bytesPerSecond": {"trials": 3, "mean": iops * 4096},
    }
    percentiles = {"50": 10**6, "95": 2 * 10**6, "99": 4 * 10**6, "99.9": 20 * 10**6}
    operation["latency"] |= {"percentiles": percentiles, "meanNanoseconds": 1e6}
    document["status"]["summary"] = {"trials": 3, "operations": [operation]}
    return _exposed(document)


def search(run: str, vary: Vary, estimate: float, *, finished: float, storm: bool = False) -> Exposed:
    """Return the result of a search for the calm or the storm line."""
    away = {"storm": {"count": 1, "action": "Out"}} if storm else {}
    document = _result_document(run, Verdict.VALID, finished)
    objective = {"percentile": "99", "latency": "5ms"}
    document["spec"] |= {
        "workload": f"line-{vary}",
        "point": f"line-{vary}-000{'-storm' if storm else ''}",
        "label": f"randwrite 4Ki up to qd64{', 1 OSD out' if storm else ''}",
        "line": {"vary": vary, "start": 1, "limit": 10_000, "objectives": [objective]},
    }
    bounds = {"estimate": estimate, "low": estimate * 0.95, "high": estimate * 1.05}
    line = {"ending": "Precise", "probes": 21, "counted": 20, **bounds, **away}
    document["status"] |= {"summary": None, "line": line}
    return _exposed(document)


def _result_document(run: str, verdict: Verdict, finished: float) -> dict[str, Any]:
    document = deepcopy(next(result for result in RESULTS if result["spec"]["point"] == "rbd-000"))
    document["metadata"]["namespace"] = NAMESPACE
    document["spec"] |= {
        "run": run,
        "workload": "random-write",
        "point": f"random-write-00{len(run)}",
        "label": "randwrite 4Ki qd16",
        "clients": 4,
    }
    trial = document["status"]["trials"][0] | {"finishedAt": _time(finished), "verdict": "Valid"}
    trial["window"] |= {"overlap": 0.99, "spreadSeconds": 0.002}
    trial["stalls"] |= {"seconds": 1.0}
    document["status"] |= {"trials": [trial], "verdict": verdict}
    return document


def _exposed(document: Mapping[str, Any]) -> Exposed:
    exposed = result_metrics(document, now=AFTERWARDS)
    assert exposed is not None
    return exposed


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _object(name: str, created: float = 0.0, **status: Any) -> dict[str, Any]:
    """Return a run or a suite."""
    metadata = {"namespace": NAMESPACE, "name": name, "creationTimestamp": _time(created)}
    return {"metadata": metadata, "status": status}


def _condition(kind: str, status: str, reason: str) -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason}


def _gauges() -> Iterator[Sample]:
    believed = result(BASELINE, Verdict.VALID, 1000, finished=60), result(RUN, Verdict.SUSPECT, 1200, finished=NOW - 70)
    searches = [
        search(RUN, vary, estimate, finished=NOW - 70, storm=storm)
        for vary in Vary
        for storm, estimate in ((False, 900), (True, 500))
    ]
    yield from result_samples((*believed, *searches, result("wrong", Verdict.INVALID, 9e9, finished=90)))
    ended = _object(RUN, completionTime=_time(NOW - 20.0), display={"status": "Valid"})
    active = _object(
        LIVE,
        startTime=_time(60.0),
        estimatedCompletionTime=_time(NOW + 600.0),
        display={"status": "Measuring"},
        conditions=[
            _condition("Reconciling", "True", "Measuring"),
            _condition("StorageReady", "True", "Bound"),
            _condition("Succeeded", "Unknown", "Measuring"),
        ],
    )
    yield from run_samples([run_metrics(ended), run_metrics(active)])
    yield from suite_samples([suite_metrics(_weekly()), suite_metrics(_object(IDLE, 1.0, display={"status": "Idle"}))])
    yield Sample(catalogue.OPERATOR_INFO, ("0.2.0",), 1)
    yield Sample(catalogue.OPERATOR_LEADER, (), 1)
    yield from _conductor()


def _weekly() -> dict[str, Any]:
    def ended(verdict: RoundVerdict, completion: float, *, accepted: bool = False) -> dict[str, Any]:
        times = {"startTime": _time(0.0), "completionTime": _time(completion)}
        return {"minute": 0, "cause": "Scheduled", "verdict": verdict, "accepted": accepted, "digest": "", **times}

    upgrade = {"name": "upgrade", "variant": "a", "verdict": "Regression"}
    return _object(
        WEEKLY,
        display={"status": "Measuring", "verdict": "Regressed"},
        conditions=[_condition("Ready", "True", "Measuring"), _condition("Regressed", "True", "Regressed")],
        nextScheduleTime=_time(NOW + 3600.0),
        lastScheduleTime=_time(1200.0),
        round={
            "minute": 20,
            "seed": 1,
            "cause": "Scheduled",
            "startTime": _time(1200.0),
            "children": {"total": 6, "done": 2},
        },
        rounds=[
            ended(RoundVerdict.FAILED, 900.0),
            ended(RoundVerdict.REGRESSED, 600.0),
            ended(RoundVerdict.INCONCLUSIVE, 300.0, accepted=True),
        ],
        comparisons=[
            upgrade | {"estimate": -0.12, "low": -0.15, "high": -0.09},
            upgrade | {"variant": "b", "verdict": "Inconclusive"},
        ],
        hypotheses=[{"name": "fast", "verdict": "Held", "estimate": 0.95, "low": 0.93, "high": 0.97}],
    )


def _conductor() -> Iterator[Sample]:
    run = (NAMESPACE, LIVE)
    point = (*run, "random-write", "random-write-002")
    for phase, value in (("Gathering", 0), ("Measuring", 1)):
        yield Sample(catalogue.LIVE_PHASE, (*run, phase), value)
    for state, value in (("planned", 4), ("registered", 4), ("missing", 0), ("armed", 0), ("measuring", 4)):
        yield Sample(catalogue.LIVE_CLIENTS, (*run, state), value)
    for metric, done, whole in (
        (catalogue.LIVE_TRIALS, ("done", 3), ("planned", 12)),
        (catalogue.LIVE_PREFILL, ("done", 2**30), ("total", 2**32)),
    ):
        for state, value in (done, whole):
            yield Sample(metric, (*run, state), value)
    yield Sample(catalogue.LIVE_ATTEMPTS, (*run, "Measured", "Valid"), 3)
    yield Sample(catalogue.LIVE_TRIAL_INFO, (*point, "randwrite 4Ki qd16", "0", "0"), 1)
    yield Sample(catalogue.LIVE_TRIAL_ELAPSED, run, 0.5)
    yield Sample(catalogue.LIVE_IOPS, (*point, "write"), 1100)
    yield Sample(catalogue.LIVE_BYTES, (*point, "write"), 1100 * 4096)
    yield Sample(catalogue.LIVE_REPORTING, run, 4)
    yield Sample(catalogue.LIVE_LATENCY, (*point, "write", "0.99"), 0.004)
    yield Sample(catalogue.LIVE_GATE, run, 1)


def _histogram(metric: MetricFamily) -> Mapping[str, str]:
    """Return a histogram of which every observation is in its third bucket."""
    sample = Sample(metric, _some(metric), 0)
    edges = (*map(str, metric.buckets), "+Inf")
    found = {
        _name(f"{metric.name}_bucket", sample, f'le="{edge}"'): f"0+{30 if place >= 2 else 0}x{_STEPS}"
        for place, edge in enumerate(edges)
    }
    return found | {_name(f"{metric.name}_count", sample): f"0+30x{_STEPS}"}


def _some(metric: MetricFamily) -> tuple[str, ...]:
    return tuple(f"a-{label}" for label in metric.labels)


def _name(name: str, sample: Sample, more: str = "") -> str:
    own = [f'{label}="{value}"' for label, value in zip(sample.metric.labels, sample.labels, strict=True)]
    return f"{name}{{{','.join([*own, *filter(None, [more]), _TARGET])}}}"


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
    """Return an expression as Grafana sends it, of runs of the world in `series`."""
    values = {
        "namespace": NAMESPACE if page == "live" else ".*",
        "run": LIVE if page == "live" else ".*",
        "suite": ".*",
        "workload": ".*",
        "baseline": BASELINE,
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
            "eval_time": f"{NOW}s",
            "exp_samples": [{"labels": "{}", "value": 1}],
        }
        for name, _, target in targets()
        if name == page
    ]
    evaluate(tmp_path, series(), tests)


def row(run: str, point: str, more: str = "") -> str:
    labels = f'namespace="bench",run="{run}",workload="random-write",point="{point}",parameters="randwrite 4Ki qd16"'
    return f'{{{labels},clients="4"{more}}}'


def expected(expr: str, **values: float) -> dict[str, Any]:
    samples = [{"labels": labels, "value": value} for labels, value in values.items()]
    return {"expr": expr, "eval_time": f"{NOW}s", "exp_samples": samples}


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
    evaluate(tmp_path, series(), tests)


@pytest.mark.chart
def test_a_result_is_drawn_once_when_it_was_measured_and_not_again(tmp_path: Path) -> None:
    history = expression("results", "IOPS over time")
    point = 'namespace="bench",workload="random-write",parameters="randwrite 4Ki qd16",clients="4",operation="write"'
    drawn = {f"{{{point}}}": 1200.0}
    steps = {NOW - 120: {}, NOW: drawn, NOW + 120: {}, NOW + 240: {}}
    tests = [{**expected(history, **dots), "eval_time": f"{second}s"} for second, dots in steps.items()]
    evaluate(tmp_path, series(), tests)


@pytest.mark.chart
def test_runs_are_compared_by_what_was_measured_and_not_by_the_names_of_points(tmp_path: Path) -> None:
    change = expression("results", "Change against $baseline")
    values = {
        row("before", "random-write-006", ',operation="write"'): 0.0,
        row("after", "random-write-005", ',operation="write"'): 1200 / 1000 - 1,
    }
    evaluate(tmp_path, series(), [expected(change, **values)])


@pytest.mark.chart
def test_half_of_the_confidence_interval_is_shown(tmp_path: Path) -> None:
    half = f"round({expression('results', 'Report', 'B')}, 0.001)"
    labels = 'namespace="bench",workload="random-write",operation="write"'
    values = {
        f'{{{labels},run="before",point="random-write-006"}}': 100.0,
        f'{{{labels},run="after",point="random-write-005"}}': 120.0,
    }
    evaluate(tmp_path, series(), [expected(half, **values)])


@pytest.mark.chart
def test_two_programs_that_expose_the_same_result_make_one_row(tmp_path: Path) -> None:
    """As two operators do for a moment, or one that is scraped twice."""
    once = series()
    twice = {name.replace("10.0.0.1", "10.0.0.2"): values for name, values in once.items()}
    tests = [
        expected(f"count({expression('results', title, 'A')})", **{"{}": count})
        for title, count in (("Report", 3.0), ("IOPS", 2.0), ("Change against $baseline", 2.0))
    ]
    evaluate(tmp_path, once | twice, tests)


@pytest.mark.chart
def test_a_suite_has_a_row_even_without_rounds(tmp_path: Path) -> None:
    rows = expression("suites", "Suites")
    accepted = {
        '{namespace="bench",suite="layouts",status="Idle"}': 0.0,
        '{namespace="bench",suite="weekly",status="Measuring",verdict="Regressed"}': 1.0,
    }
    evaluate(tmp_path, series(), [expected(rows, **accepted)])


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
    evaluate(tmp_path, series(), tests)


@pytest.mark.chart
def test_the_last_verdict_is_that_of_the_last_round_whatever_came_of_it(tmp_path: Path) -> None:
    verdicts = expression("suites", "Verdicts over time")
    failed = 4.0
    evaluate(tmp_path, series(), [expected(verdicts, **{'{namespace="bench",suite="weekly"}': failed})])


@pytest.mark.chart
def test_calm_and_storm_lines_of_rates_and_of_depths_are_apart_with_their_intervals(tmp_path: Path) -> None:
    def table(part: float) -> dict[str, float]:
        return {
            f'{{namespace="bench",run="after",workload="line-{vary}",point="line-{vary}-000{suffix}"}}': part * line
            for vary in Vary
            for suffix, line in (("", 900.0), ("-storm", 500.0))
        }

    def over_time(part: float) -> dict[str, float]:
        label = "randwrite 4Ki up to qd64"
        return {
            f'{{namespace="bench",workload="line-{vary}",parameters="{label}{away}",clients="4"}}': part * line
            for vary in Vary
            for away, line in (("", 900.0), (", 1 OSD out", 500.0))
        }

    tests = [expected(expression("results", "Lines", ref), **table(part)) for ref, part in (("B", 1), ("C", 0.95))]
    parts = {"A": 1, "B": 0.95, "C": 1.05}
    tests += [expected(expression("results", "Line over time", ref), **over_time(part)) for ref, part in parts.items()]
    evaluate(tmp_path, series(), tests)
