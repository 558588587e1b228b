"""Response curves."""

from itertools import product

import pytest

from plimsoll.api.names import Verdict
from plimsoll.api.result import BenchmarkResult
from plimsoll.report.figure import sweeps_of
from plimsoll.report.plot import MOST_FIGURES, MOST_SERIES
from plimsoll.report.sweeps import curves_section
from plimsoll.report.view import MEBIBYTE, Chart
from support.goldens import charts_of, run_of, words_of
from support.results import BLOCK, result, steady, trials_of


def point(
    number: int,
    *,
    depth: int = 1,
    size: str = "4Ki",
    rate: float = 100,
    verdict: Verdict = Verdict.VALID,
    **more: object,
) -> BenchmarkResult:
    parameters = {"ioDepth": depth, "blockSize": size, **more}
    made = result(trials_of(steady(rate)), point=f"w-{number:03d}", parameters=parameters)
    spec = made.spec.model_copy(update={"label": f"randread {size} qd{depth}"})
    return made.model_copy(update={"spec": spec, "status": made.status.model_copy(update={"verdict": verdict})})


def curves(*points: BenchmarkResult) -> list[Chart]:
    return charts_of(curves_section(sweeps_of([run_of(points)])))


def test_a_line_joins_what_differs_in_depth_only_in_ascending_order() -> None:
    iops, p99 = curves(point(0, depth=16, rate=300), point(1, depth=1), point(2, depth=4, rate=200))
    (trace,) = iops.data
    assert (trace["x"], trace["y"]) == ([1, 4, 16], pytest.approx([100, 200, 300], rel=0.01))
    assert (iops.title, p99.title) == ("IOPS against depth: w, read", "p99 latency against depth: w, read")
    assert iops.layout["xaxis"]["ticktext"] == ["1", "4", "16"]


def test_error_bars_are_the_confidence_interval_of_the_mean() -> None:
    points = point(0), point(1, depth=2)
    (trace,) = curves(*points)[0].data
    summary = points[0].status.summary
    assert summary is not None
    statistic = summary.operations[0].iops
    assert statistic.high is not None
    assert trace["error_y"]["array"][0] == statistic.high - statistic.mean


def test_every_other_axis_makes_a_series_of_its_own_with_its_own_colour_dash_and_mark() -> None:
    points = [
        point(number, depth=depth, size=size)
        for number, (size, depth) in enumerate(product(("4Ki", "8Ki", "64Ki"), (1, 2)))
    ]
    traces = curves(*points)[0].data
    assert [trace["name"] for trace in traces] == ["4Ki", "8Ki", "64Ki"]
    for looks in ([trace["line"]["color"] for trace in traces], [trace["line"]["dash"] for trace in traces]):
        assert len(set(looks)) == 3
    assert len({trace["marker"]["symbol"][0] for trace in traces}) == 3


def test_suspect_points_are_hollow_with_a_dot_and_invalid_ones_are_in_no_curve() -> None:
    suspect = point(1, depth=2, verdict=Verdict.SUSPECT)
    invalid = point(2, depth=4, rate=9999, verdict=Verdict.INVALID)
    (trace,) = curves(point(0), suspect, invalid)[0].data
    assert trace["x"] == [1, 2]
    assert trace["marker"]["symbol"][1] == "circle-open-dot"


def test_a_single_depth_has_no_curve() -> None:
    assert curves_section(sweeps_of([run_of([point(0)])])) is None


def test_throughput_is_drawn_against_clients() -> None:
    more = point(1, rate=200)
    more = more.model_copy(update={"spec": more.spec.model_copy(update={"clients": 8})})
    volume, _ = curves(point(0), more)
    (trace,) = volume.data
    assert trace["x"] == [2, 8]
    assert trace["y"] == pytest.approx([100 * BLOCK / MEBIBYTE, 200 * BLOCK / MEBIBYTE], rel=0.01)


def test_more_series_than_colours_use_further_figures_and_the_rest_is_counted() -> None:
    some = [point(number, depth=1 + number % 2, fsyncEvery=number // 2) for number in range(2 * (MOST_SERIES + 1))]
    assert [chart.title[-8:] for chart in curves(*some)] == ["(1 of 2)", "(1 of 2)", "(2 of 2)", "(2 of 2)"]
    many = [point(number, depth=1 + number % 2, fsyncEvery=number // 2) for number in range(512)]
    section = curves_section(sweeps_of([run_of(many)]))
    assert len(charts_of(section)) == 2 * MOST_FIGURES
    assert "40 more figures omitted" in words_of(section)
