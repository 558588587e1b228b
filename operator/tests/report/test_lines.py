"""Searches for the line: their figures, tables and sentences, and sections that leave them out."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.line import Ending, Line, Objective, ProbeOutcome
from plimsoll.api.names import Operation, Verdict
from plimsoll.api.result import BenchmarkResult, DisturbanceResult, Finding, Phase, PhaseOperation
from plimsoll.measure.line.summary import outcome_text
from plimsoll.report.figure import runs_of
from plimsoll.report.line import headline_sentences, lines_section
from plimsoll.report.overview import overview_section, results_section, verdicts_section
from plimsoll.report.page import make_page
from plimsoll.report.plot import plain
from plimsoll.report.points import objective_rows, probe_columns, probe_rows
from plimsoll.report.view import Chart, Section
from support.goldens import charts_of, run_of, tables_of, texts, words_of
from support.results import SEARCH, STORM, probe, result, searched, simulated, steady, trials_of, with_spec
from support.simulated_storage import OBJECTIVE, HockeyStick, linear

STORM_FIGURE = Path(__file__).parent.parent / "golden" / "figures" / "storm-line.json"


def other(point: str = "line-001", *, run: str = "baseline") -> BenchmarkResult:
    """Return a search at another block size, on storage whose depth fills."""
    storage = HockeyStick(6000, latency_noise=0.05)
    label = "randread 64Ki up to qd64"
    return simulated(storage, run=run, point=point, parameters={"blockSize": "64Ki"}, label=label)


@pytest.fixture(scope="module")
def small() -> BenchmarkResult:
    return simulated()


@pytest.fixture(scope="module")
def large() -> BenchmarkResult:
    return other()


def section(*results: BenchmarkResult) -> Section:
    found = lines_section(runs_of(results))
    assert found is not None
    return found


def figures(*results: BenchmarkResult) -> list[Chart]:
    return charts_of(section(*results))


def shapes(chart: Chart, kind: str) -> list[Any]:
    return [shape for shape in chart.layout["shapes"] if shape["type"] == kind]


def with_line(point: BenchmarkResult, line: Line) -> BenchmarkResult:
    return point.model_copy(update={"status": point.status.model_copy(update={"line": line})})


def with_first_trial(point: BenchmarkResult, **update: Any) -> BenchmarkResult:
    first, *rest = point.status.trials
    trials = (first.model_copy(update=update), *rest)
    return point.model_copy(update={"status": point.status.model_copy(update={"trials": trials})})


def test_without_a_search_there_is_no_section() -> None:
    assert lines_section([run_of([result(trials_of(steady(100)))])]) is None


def test_every_probe_is_a_mark_by_its_outcome(large: BenchmarkResult) -> None:
    (chart,) = figures(large)
    marks = [trace for trace in chart.data if trace["mode"] == "markers"]
    drawn = sorted((x, trace["name"]) for trace in marks for x in trace["x"])
    words = {ProbeOutcome.NOT_ACHIEVED: "not achieved", ProbeOutcome.DEPTH_FULL: "depth full"}
    probes = [trial.probe for trial in large.status.trials if trial.probe]
    assert drawn == sorted((one.offered, words.get(one.outcome, one.outcome.value.lower())) for one in probes)
    forms = {trace["name"]: {*trace["marker"]["symbol"]} for trace in marks}
    assert all(len(found) == 1 for found in forms.values())
    assert len({*map(str, forms.values())}) == len(forms) >= 3


@pytest.mark.parametrize("outcome", ProbeOutcome)
def test_each_outcome_can_be_drawn(small: BenchmarkResult, outcome: ProbeOutcome) -> None:
    first = small.status.trials[0].probe
    assert first is not None
    (chart,) = figures(with_first_trial(small, probe=first.model_copy(update={"outcome": outcome})))
    assert outcome_text(outcome) in {trace["name"] for trace in chart.data}


def test_marks_are_at_the_latency_of_the_objective_in_microseconds(small: BenchmarkResult) -> None:
    (chart,) = figures(small)
    met = next(trace for trace in chart.data if trace["name"] == "met")
    first = small.status.trials[0]
    assert met["x"][0] == 500
    assert met["y"][0] == first.operations[0].latency.percentiles["99"] / 1000
    assert "offered 500, achieved 500 IOPS" in met["text"][0]


@pytest.mark.parametrize(
    ("verdict", "symbol"),
    [(Verdict.VALID, "circle"), (Verdict.SUSPECT, "circle-open-dot"), (Verdict.INVALID, "circle-open")],
)
def test_a_probe_that_is_not_valid_is_hollow(small: BenchmarkResult, verdict: Verdict, symbol: str) -> None:
    (chart,) = figures(with_first_trial(small, verdict=verdict))
    met = next(trace for trace in chart.data if trace["name"] == "met")
    assert met["marker"]["symbol"][0] == symbol


def test_a_probe_without_the_percentile_is_below_all_others(small: BenchmarkResult) -> None:
    (chart,) = figures(with_first_trial(small, operations=()))
    heights = [
        (y, x)
        for trace in chart.data
        if trace["mode"] == "markers"
        for x, y in zip(trace["x"], trace["y"], strict=True)
    ]
    assert min(heights)[1] == 500
    curve = next(trace for trace in chart.data if trace["mode"] == "lines")
    assert 500 not in curve["x"]


def test_the_estimate_is_a_line_with_its_interval_as_a_band(small: BenchmarkResult) -> None:
    (chart,) = figures(small)
    line = small.status.line
    assert line is not None
    (band,) = shapes(chart, "rect")
    assert (band["x0"], band["x1"]) == (line.low, line.high)
    objective, estimate = shapes(chart, "line")
    assert estimate["x0"] == estimate["x1"] == line.estimate
    assert objective["y0"] == objective["y1"] == 5000
    assert objective["label"]["text"] == "p99 <= 5 ms"


@pytest.mark.parametrize(
    ("line", "band"),
    [
        (Line(probes=7, counted=7, low=16_000), (16_000, 32_000)),
        (Line(probes=7, counted=7, high=700), (500, 700)),
        (Line(probes=7, counted=7, high=300), None),
        (Line(probes=0, counted=0), None),
    ],
)
def test_an_open_interval_ends_at_the_loads_that_were_tried(
    small: BenchmarkResult, line: Line, band: tuple[int, int] | None
) -> None:
    (chart,) = figures(with_line(small, line))
    found = [(one["x0"], one["x1"]) for one in shapes(chart, "rect")]
    assert found == ([] if band is None else [band])
    assert len(shapes(chart, "line")) == 1


def test_each_objective_has_a_figure(small: BenchmarkResult) -> None:
    objectives = (Objective(percentile="99.9", latency="20ms"), OBJECTIVE)
    spec = small.spec.model_copy(update={"line": SEARCH.model_copy(update={"objectives": objectives})})
    tail, p99 = figures(small.model_copy(update={"spec": spec}))
    assert (tail.title, p99.title) == ("p99.9 latency against load: line", "p99 latency against load: line")
    first = small.status.trials[0].operations[0].latency.percentiles
    heights = [next(trace for trace in chart.data if trace["name"] == "met")["y"][0] for chart in (tail, p99)]
    assert heights == [first["99.9"] / 1000, first["99"] / 1000]
    assert len({tail.key, p99.key}) == 2


def test_searches_over_an_axis_are_drawn_together(small: BenchmarkResult, large: BenchmarkResult) -> None:
    (latency,) = figures(small, large)
    curves = [trace for trace in latency.data if trace["mode"] == "lines"]
    assert [trace["name"].partition(":")[0] for trace in curves] == ["4Ki", "64Ki"]
    assert len({(one["line"]["color"], one["line"]["dash"]) for one in curves}) == 2
    assert len(shapes(latency, "rect")) == 2
    legend = [trace["name"] for trace in latency.data if trace.get("showlegend", True)]
    assert len(legend) == len({*legend}), "each search and each form once"


def stormy(*, run: str = "baseline", point: str = "line-000", block: str = "4Ki") -> list[BenchmarkResult]:
    """Return the searches for a calm line and a storm line, whose probes were slow only while an OSD was out."""
    met, late = ProbeOutcome.MET, ProbeOutcome.LATE
    calm = [probe(0, 8_000, p99=1_500_000), probe(1, 16_000, late, p99=9_000_000), probe(2, 12_000, p99=4_000_000)]
    storm = []
    for number, (load, outcome, p99) in enumerate([(6_000, met, 3_000_000), (8_000, late, 20_000_000)]):
        part = PhaseOperation(
            operation=Operation.READ, iops=load, bytes_per_second=load * 4096, percentiles={"99": p99}
        )
        outage = DisturbanceResult(
            action="Out",
            osds=(3,),
            start_seconds=60,
            end_seconds=120,
            watched_seconds=60,
            phases=(Phase(name="Storm", seconds=90, operations=(part,)),),
        )
        storm.append(probe(number, load, outcome, p99=1_600_000).model_copy(update={"disturbance": outage}))
    pair = [searched(trials=calm, run=run, point=point), searched(STORM, storm, run=run, point=f"{point}-storm")]
    labels = ["randread", "randread, 1 OSD out"]
    return [
        with_spec(each, workload="line", label=label, parameters={"blockSize": block})
        for each, label in zip(pair, labels, strict=True)
    ]


def test_a_storm_line_is_drawn_with_its_calm_line() -> None:
    """With PLIMSOLL_WRITE_GOLDEN=1 the figure is written; read the difference."""
    (latency,) = figures(*stormy())
    drawn = plain({"description": latency.description, "data": latency.data, "shapes": latency.layout["shapes"]})
    if os.environ.get("PLIMSOLL_WRITE_GOLDEN"):
        STORM_FIGURE.write_text(json.dumps(drawn, indent=1) + "\n")
    assert drawn == json.loads(STORM_FIGURE.read_text())
    curves = [trace for trace in latency.data if trace["mode"] == "lines"]
    assert [trace["name"] for trace in curves] == [
        "randread: 11,800 to 13,000", "randread, 1 OSD out: 6,700 to 7,500"
    ]  # fmt: skip
    assert curves[1]["y"] == [3_000, 20_000], "the latency from the start of the disturbance until all is clean"
    assert "while OSDs are away" in words_of(section(*stormy()))
    assert "while OSDs are away" not in words_of(section(stormy()[0]))


def test_each_storm_line_has_one_figure_with_its_calm_line_and_a_name() -> None:
    searches = [*stormy(), *stormy(point="line-001", block="64Ki"), *stormy(point="line-002", block="1Mi")]
    pairs = figures(*searches)
    assert [chart.title for chart in pairs] == [
        f"p99 latency against load: line, {block}" for block in ("4Ki", "64Ki", "1Mi")
    ]
    assert {len(shapes(chart, "rect")) for chart in pairs} == {2}
    names = [trace["name"].partition(":")[0] for trace in pairs[0].data if trace["mode"] == "lines"]
    assert names == ["4Ki", "4Ki, 1 OSD out"]


def test_the_latency_of_a_storm_lines_probe_is_that_of_the_judged_time() -> None:
    _, storm = stormy()
    rows = [*objective_rows(probe_rows([("r", storm)]))]
    column = next(column for column in probe_columns() if column.key == "latency_nanoseconds")
    assert [column.value(row) for row in rows] == [3_000_000, 20_000_000]


def test_searches_of_several_runs_have_their_runs_in_their_names(small: BenchmarkResult) -> None:
    (latency,) = figures(small, simulated(linear(10_000, 0.03), run="candidate"))
    curves = [trace["name"].partition(":")[0] for trace in latency.data if trace["mode"] == "lines"]
    assert curves == ["baseline", "candidate"]
    assert "baseline" in latency.description
    assert "Run" in tables_of(section(small, simulated(run="candidate")))[0].headings


def test_searches_with_other_objectives_are_not_drawn_together(small: BenchmarkResult) -> None:
    slower = SEARCH.model_copy(update={"objectives": (Objective(percentile="99", latency="9ms"),)})
    spec = small.spec.model_copy(update={"line": slower, "point": "line-001"})
    charts = figures(small, small.model_copy(update={"spec": spec}))
    assert len(charts) == len({chart.key for chart in charts}) == 2


def test_more_searches_than_a_figure_can_show_are_split() -> None:
    many = [
        simulated(probes=3, point=f"line-{number:03d}", parameters={"blockSize": f"{2**number}Ki"})
        for number in range(7)
    ]
    charts = figures(*many)
    assert [chart.title[-8:] for chart in charts] == ["(1 of 2)", "(2 of 2)"]
    assert sum(trace["mode"] == "lines" for chart in charts for trace in chart.data) == 7


def test_a_sentence_says_what_was_found_and_why_it_ended(small: BenchmarkResult) -> None:
    words = words_of(section(small))
    assert (
        "line-000, randread 4Ki up to qd64: carries 12,400 ± 600 IOPS at p99 <= 5 ms. The search ended after 19 probes"
    ) in words


@pytest.mark.parametrize(
    ("verdicts", "mark"),
    [
        ((Verdict.VALID, Verdict.VALID), ""),
        ((Verdict.SUSPECT, Verdict.SUSPECT), " [Suspect]"),
        ((Verdict.VALID, Verdict.SUSPECT), " [Valid, storm line Suspect]"),
    ],
)
def test_the_overview_tells_the_storm_line_with_its_calm_line(verdicts: tuple[Verdict, Verdict], mark: str) -> None:
    calm, storm = searched(verdict=verdicts[0]), searched(STORM, point="line-000-storm", verdict=verdicts[1])
    (sentence,) = headline_sentences(runs_of([storm, calm]))
    assert sentence.endswith(f": carries 12,400 ± 600 IOPS at p99 <= 5 ms, 7,100 ± 400 while 1 OSD is out{mark}.")
    assert [*headline_sentences(runs_of([storm]))] != [sentence]


def test_tables_have_every_line_and_every_probe(small: BenchmarkResult, large: BenchmarkResult) -> None:
    lines, probes = tables_of(section(small, large))
    assert [row[0] for row in texts(lines)] == ["line-000", "line-001"]
    assert len(probes.rows) == len(small.status.trials) + len(large.status.trials)
    first = dict(zip(probes.headings, texts(probes)[0], strict=True))
    assert first["Offered IOPS"] == "500"
    assert (first["Outcome"], first["Verdict"], first["Depth full"]) == ("met", "Valid", "0.00 %")
    full = [row for row in texts(probes) if "90.00 %" in row]
    assert full
    assert {row[probes.headings.index("Outcome")] for row in full} <= {"not achieved", "depth full"}


def test_a_search_that_goes_on_has_its_probes_and_no_estimate() -> None:
    found = section(simulated(probes=3))
    (chart,) = charts_of(found)
    assert shapes(chart, "rect") == []
    assert "is not known yet" in words_of(found)
    assert "searching" in texts(tables_of(found)[0])[0]


def test_a_search_that_gave_up_names_the_most_frequent_reasons(small: BenchmarkResult) -> None:
    short = Finding(reason="RuntimeTooShort", verdict=Verdict.INVALID, message="m")
    trials = tuple(
        trial.model_copy(update={"verdict": Verdict.INVALID, "findings": (short,)}) for trial in small.status.trials[:5]
    )
    line = Line(ending=Ending.PROBES_DO_NOT_COUNT, probes=5, counted=0)
    status = small.status.model_copy(update={"trials": trials, "line": line, "verdict": Verdict.INVALID})
    found = section(small.model_copy(update={"status": status}))
    assert "would not count either (RuntimeTooShort in 5 probes); remove the cause" in words_of(found)
    assert "ProbesDoNotCount" in texts(tables_of(found)[0])[0]


def test_a_search_without_a_probe_has_a_row_and_no_figure() -> None:
    bare = simulated(probes=0)
    bare = bare.model_copy(update={"status": bare.status.model_copy(update={"line": None})})
    found = section(bare)
    assert charts_of(found) == []
    assert len(tables_of(found)) == 1


def test_the_verdicts_start_with_the_lines(small: BenchmarkResult) -> None:
    runs = runs_of([small, result(trials_of(steady(100)))])
    words = words_of(verdicts_section(runs, [], []))
    assert "line, randread 4Ki up to qd64: carries 12,400 ± 600 IOPS at p99 <= 5 ms." in words


def test_the_overview_does_not_count_probes_as_repetitions(small: BenchmarkResult) -> None:
    (table,) = tables_of(overview_section(runs_of([small, result(trials_of(steady(100)))])))
    facts = dict(texts(table))
    assert facts["Points"] == "1, each measured 5 times; 1 searched for the line"
    assert facts["Attempts"] == "24"
    (table,) = tables_of(overview_section(runs_of([small])))
    assert dict(texts(table))["Points"] == "1 searched for the line"


def test_the_results_have_the_line_in_place_of_means(small: BenchmarkResult) -> None:
    (table,) = tables_of(results_section(runs_of([small, result(trials_of(steady(100)))])))
    assert {len(row) for row in table.rows} == {len(table.headings)}
    row = dict(zip(table.headings, texts(table)[0], strict=True))
    assert (row["Trials"], row["IOPS ± 95 %"], row["p99"]) == ("19", "-", "-")
    assert row["Reasons"] == "carries 12,400 ± 600 IOPS at p99 <= 5 ms"


def test_a_page_of_searches_only_has_no_section_of_means(small: BenchmarkResult, large: BenchmarkResult) -> None:
    page = make_page(runs_of([small, large]))
    assert [one.key for one in page.sections] == ["what", "verdicts", "line", "results", "trials", "provenance"]
    trials = next(one for one in page.sections if one.key == "trials")
    assert charts_of(trials) == []


def test_a_search_changes_no_section_of_other_points(small: BenchmarkResult) -> None:
    point = result(trials_of(steady(100)))
    alone = {one.key: one for one in make_page(runs_of([point])).sections}
    both = {one.key: one for one in make_page(runs_of([point, small])).sections}
    assert both.keys() - alone.keys() == {"line"}
    assert charts_of(both["trials"]) == charts_of(alone["trials"])


_LOADS = st.none() | st.sampled_from([0.0, 5e-324, 0.5, 999.99, 12_000.0, 1.7e308])


@given(st.none() | st.sampled_from(Ending), _LOADS, _LOADS, _LOADS, st.sampled_from([0.0, 5e-324, 1e9]))
def test_every_combination_has_a_section_whose_numbers_a_browser_can_read(
    ending: Ending | None, estimate: float | None, low: float | None, high: float | None, offered: float
) -> None:
    line = Line(ending=ending, probes=2, counted=1, estimate=estimate, low=low, high=high)
    probes = [probe(0, 500), probe(1, offered, ProbeOutcome.LATE)]
    found = section(searched(line, probes), searched(line, probes, point="line-001"))
    assert json.dumps(asdict(found), allow_nan=False)
    for chart in charts_of(found):
        if chart.layout["xaxis"].get("type") == "log":
            assert all(shape["x0"] > 0 for shape in chart.layout["shapes"] if shape["xref"] == "x")
            assert all(x is None or x > 0 for trace in chart.data for x in trace["x"])
