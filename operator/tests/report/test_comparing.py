"""The comparison of two runs, and the layers of a run."""

import pytest

from plimsoll.api.result import BenchmarkResult
from plimsoll.cli.layers import layer_notes
from plimsoll.measure.compare.comparison import compare
from plimsoll.measure.compare.values import RegressionRule, match_points
from plimsoll.measure.layers import layers
from plimsoll.plan.fingerprint import Difference, Likeness
from plimsoll.report.comparing import comparison_section
from plimsoll.report.figure import ReportedRun
from plimsoll.report.layers_links import layers_section
from plimsoll.suite.evaluation import Compared
from plimsoll.tools.registry import LAYERS
from support.goldens import CEPH, blocks_of, charts_of, golden, tables_of, texts, words_of
from support.results import line, result, searched, steady, trials_of


def compared(baseline: list[BenchmarkResult], candidate: list[BenchmarkResult], *differences: Difference) -> Compared:
    matching = match_points(baseline, candidate)
    comparison = compare(matching, RegressionRule()) if matching.pairs else None
    likeness = Likeness(differences=[(difference, ["w-000"]) for difference in differences], unknown=[])
    return Compared(baseline="before", candidate="after", comparison=comparison, likeness=likeness)


def test_a_regression_is_drawn_with_its_interval_and_the_threshold() -> None:
    before, after = result(trials_of(steady(1000))), result(trials_of(steady(700)), run="candidate")
    section = comparison_section([compared([before], [after])])
    (table,) = tables_of(section)
    iops = dict(zip(table.headings, table.rows[0], strict=True))
    assert (iops["Metric"].text, iops["Conclusion"].mark, iops["Change"].text) == ("iops", "Regression", "-30.0 %")
    assert " to " in iops["95 % interval"].text
    words = words_of(section)
    assert words.startswith("after against before: Regression: Regression in 1 of 2 gating metrics")
    assert "Tolerated: 5 % less rate, 10 % more latency." in words
    rate, latency = charts_of(section)
    (trace,) = rate.data
    assert (trace["name"], trace["y"]) == ("Regression", ["w-000 read iops"])
    assert trace["x"] == pytest.approx([0.7], rel=0.01)
    assert trace["error_x"]["array"][0] > 0
    assert [shape["x0"] for shape in rate.layout["shapes"]] == [1, 0.95]
    assert [shape["x0"] for shape in latency.layout["shapes"]] == [1, 1.1]


def test_a_lower_line_is_a_lower_rate() -> None:
    section = comparison_section([compared([searched(line(12_000))], [searched(line(9_600), run="candidate")])])
    (table,) = tables_of(section)
    assert texts(table)[0][2:7] == ["all", "line", "12,000", "9,600", "-20.0 %"]
    assert table.rows[0][-1].mark == "Regression"
    assert "its trials are the probes behind it" in words_of(section)
    (chart,) = charts_of(section)
    assert [(trace["name"], trace["y"]) for trace in chart.data] == [("Regression", ["line-000 line"])]


def test_the_table_has_every_metric_and_marks_only_those_that_gate() -> None:
    before, after = result(trials_of(steady(1000))), result(trials_of(steady(1000)), run="candidate")
    (table,) = tables_of(comparison_section([compared([before], [after])]))
    marks = {row[3].text: row[-1].mark for row in table.rows}
    assert marks == {"iops": "NoRegression", "bytesPerSecond": "", "meanLatency": "", "p50": "", "p99": "NoRegression"}


def test_mean_changes_of_a_sweep_have_a_table_and_mark_what_they_decide() -> None:
    noise = [0.93, 0.97, 1.0, 1.03, 1.07]
    baseline, candidate = (
        [
            result(
                trials_of(1000 * noise[(point * step + number) % 5] for number in range(5)),
                run=run,
                point=f"w-{point:03d}",
                parameters={"ioDepth": point + 1},
            )
            for point in range(4)
        ]
        for run, step in (("baseline", 2), ("candidate", 3))
    )
    section = comparison_section([compared(baseline, candidate)])
    (table,) = tables_of(section)
    means = [row for row in table.rows if row[0].text == "w"]
    assert [(row[0].text, row[1].text, row[3].text, row[-1].mark) for row in means] == [
        ("w", "mean of 4 points", "iops", "NoRegression"),
        ("w", "mean of 4 points", "p99", "NoRegression"),
    ]
    iops = [row[-1] for row in table.rows[len(means) :] if row[3].text == "iops"]
    assert {(cell.text, cell.mark) for cell in iops} == {("Inconclusive", "")}
    assert "The mean change of a workload decides" in words_of(section)


def test_runs_with_different_specifications_are_compared_with_a_warning() -> None:
    difference = Difference(part="identity", key="pool.size", baseline=3, candidate=2)
    one = compared([result(trials_of(steady(10)))], [result(trials_of(steady(10)), run="candidate")], difference)
    section = comparison_section([one])
    assert "differ or are unknown" in words_of(section)
    assert ["identity", "pool.size", "3", "2", "1"] in texts(tables_of(section)[-1])


def test_runs_without_a_common_point_say_so() -> None:
    one = compared([result(trials_of([1]))], [result(trials_of([1]), point="other-000")])
    section = comparison_section([one])
    assert "no workload has the same parameters" in words_of(section)
    assert tables_of(section) == []


def test_incomparable_metric_has_a_reason() -> None:
    one = compared([result(trials_of([1]))], [result(trials_of([1]), run="candidate")])
    section = comparison_section([one])
    assert "not enough trials" in words_of(section)


def test_one_run_has_no_comparison() -> None:
    assert comparison_section([]) is None


def ceph() -> ReportedRun:
    results = golden(CEPH)
    found = layers(results, LAYERS, write_amplification=3)
    return ReportedRun(label="ceph", results=results, layers=found, layer_notes=[*layer_notes(found, results)])


def test_layers_are_shown_with_their_limits_and_marks() -> None:
    run = ceph()
    section = layers_section([run])
    assert "OSD is the sum of all OSDs" in words_of(section)
    (table,) = tables_of(section)
    assert [row[7].mark for row in table.rows] == ["Suspect"] * 3
    assert [row[4].text for row in table.rows] == ["-", "the OSDs", "RADOS"]
    assert "RADOS writes reach" in words_of(section)
    assert "of the limit set by the OSDs." in words_of(section)


def test_a_single_layer_is_no_layering() -> None:
    run = ceph()
    assert layers_section([ReportedRun(label="ceph", results=run.results, layers=run.layers[:1])]) is None
    assert layers_section([ReportedRun(label="local", results=run.results)]) is None


def test_nothing_of_a_comparison_is_lost_in_folded_blocks() -> None:
    difference = Difference(part="context", key="seed", baseline=1, candidate=2)
    one = compared([result(trials_of(steady(10)))], [result(trials_of(steady(10)), run="candidate")], difference)
    kinds = [block.kind for block in blocks_of(comparison_section([one]))]
    assert kinds[-2:] == ["details", "table"]
