"""A lower line is a regression, as far as the intervals of both searches show."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.line import Ending, Line, LineSearch, Objective, ProbeOutcome, Vary
from plimsoll.api.names import Metric, Verdict
from plimsoll.api.result import BenchmarkResult
from plimsoll.api.storage import OsdsAway
from plimsoll.api.suite_status import Conclusion
from plimsoll.measure.compare.comparison import Comparison, MetricComparison, compare, place_of
from plimsoll.measure.compare.lines import line_estimate, valueless
from plimsoll.measure.compare.repeats import as_one_run
from plimsoll.measure.compare.significance import Floor
from plimsoll.measure.compare.values import RegressionRule, match_points
from support.results import SEARCH, above, below, line, probe, result, searched, steady, trials_of

_RULE = RegressionRule()


def _comparison(
    baseline: list[BenchmarkResult], candidate: list[BenchmarkResult], floor: Floor | None = None
) -> Comparison:
    return compare(match_points(baseline, candidate, also_by_name=True), _RULE, floor)


def _line(comparison: Comparison) -> MetricComparison:
    (metric,) = comparison.points[0].metrics
    assert metric.metric is Metric.LINE
    return metric


def _of(baseline: Line | None, candidate: Line | None) -> MetricComparison:
    found = _comparison([searched(baseline)], [searched(candidate, run="candidate")])
    assert found.conclusion is _line(found).conclusion
    return _line(found)


@pytest.mark.parametrize(
    ("baseline", "candidate", "conclusion"),
    [
        (line(12_000), line(9_600), Conclusion.REGRESSION),
        (line(12_000, width=0.03), line(10_800, width=0.03), Conclusion.REGRESSION),
        (line(12_000), line(11_400), Conclusion.INCONCLUSIVE),
        (line(12_000), line(12_000), Conclusion.INCONCLUSIVE),
        (line(12_000, width=0.04), line(12_000, width=0.04), Conclusion.NO_REGRESSION),
        (line(12_000), line(15_000), Conclusion.NO_REGRESSION),
        (above(), line(150_000), Conclusion.REGRESSION),
        (above(), line(195_000), Conclusion.INCONCLUSIVE),
        (above(), above(), Conclusion.INCONCLUSIVE),
        (line(150_000), above(), Conclusion.NO_REGRESSION),
        (line(12_000), below(), Conclusion.REGRESSION),
        (below(), below(), Conclusion.INCONCLUSIVE),
        (below(), line(12_000), Conclusion.NO_REGRESSION),
        (above(), below(), Conclusion.REGRESSION),
        (line(12_000), line(6_000, ending=Ending.NOT_MONOTONE), Conclusion.INCONCLUSIVE),
        (line(12_000), line(None, high=6_000, ending=Ending.PROBES_DO_NOT_COUNT), Conclusion.INCONCLUSIVE),
        (line(12_000), line(6_000, ending=Ending.DRIFTING), Conclusion.INCONCLUSIVE),
        (line(12_000), line(6_000, ending=None), Conclusion.INCONCLUSIVE),
        (line(12_000), None, Conclusion.INCONCLUSIVE),
    ],
)
def test_conclusions(baseline: Line, candidate: Line, conclusion: Conclusion) -> None:
    assert _of(baseline, candidate).conclusion is conclusion


def test_numbers_of_a_regression() -> None:
    found = _of(line(12_000), line(9_600))
    assert found.ratio == pytest.approx(0.8)
    assert (found.baseline.mean, found.candidate.mean, found.baseline.trials) == (12_000, 9_600, 20)
    # Each interval is 10 % of its estimate wide, so that of the ratio is about sqrt(2) as wide.
    assert found.low == pytest.approx(0.8 * (1 - 0.0712), abs=0.003)
    assert found.high == pytest.approx(0.8 * (1 + 0.0712), abs=0.003)
    assert found.confirmed


def test_a_bound_has_no_ratio_and_says_why() -> None:
    found = _of(above(), line(150_000))
    assert (found.ratio, found.low) == (None, None)
    assert found.high is not None
    assert found.high < 1
    assert "above 200,000" in found.notes[0]


def test_too_wide_intervals_have_a_remedy() -> None:
    (note,) = _of(line(12_000), line(12_000)).notes
    assert note.endswith("too wide to show that nothing is worse; decrease precisionPercent, or tolerate more")


@pytest.mark.parametrize(
    "other",
    [
        SEARCH.model_copy(update={"vary": Vary.DEPTH}),
        LineSearch(start=500, limit=200_000, objectives=(Objective(percentile="99", latency="4ms"),)),
    ],
)
def test_different_searches_have_no_ratio(other: LineSearch) -> None:
    found = _line(_comparison([searched(line(12_000))], [searched(line(6_000), run="candidate", search=other)]))
    assert (found.ratio, found.conclusion) == (None, Conclusion.INCONCLUSIVE)
    assert "cannot be compared" in found.notes[0]


def _both(calm: float, storm: float, run: str, count: int = 1) -> list[BenchmarkResult]:
    during = line(storm, width=0.04).model_copy(update={"storm": OsdsAway(count=count, action="Out")})
    return [searched(line(calm, width=0.04), run=run), searched(during, run=run, point="line-000-storm")]


@pytest.mark.parametrize(
    ("calm", "storm", "count", "conclusions"),
    [
        (12_000, 7_000, 1, [Conclusion.NO_REGRESSION, Conclusion.NO_REGRESSION]),
        (12_000, 5_600, 1, [Conclusion.NO_REGRESSION, Conclusion.REGRESSION]),
        (9_600, 7_000, 1, [Conclusion.REGRESSION, Conclusion.NO_REGRESSION]),
        (12_000, 5_600, 2, [Conclusion.NO_REGRESSION, Conclusion.INCONCLUSIVE]),
    ],
)
def test_the_calm_and_the_storm_line_are_compared_each_with_its_counterpart(
    calm: float, storm: float, count: int, conclusions: list[Conclusion]
) -> None:
    found = _comparison(_both(12_000, 7_000, "baseline"), _both(calm, storm, "candidate", count)[::-1])
    metrics = [metric for point in found.points for metric in point.metrics]
    assert [metric.conclusion for metric in metrics] == conclusions
    assert [place_of(point, point.metrics[0]) for point in found.points] == ["line-000 line", "line-000-storm line"]
    reason = "the storm lines have different disturbances (1 OSD out and 2 OSDs out), so they cannot be compared"
    assert metrics[1].notes == ((reason,) if count == 2 else ())


def test_repeated_runs_keep_what_was_away() -> None:
    runs = [_both(12_000, 7_000 + number, f"r{number}") for number in range(3)]
    assert [each.status.line.storm for each in as_one_run(runs) if each.status.line] == [
        None,
        OsdsAway(count=1, action="Out"),
    ]


def test_the_calm_line_as_a_storm_line_needs_no_probe_that_broke() -> None:
    equal = line(12_000, ending=Ending.EQUALS_CALM).model_copy(update={"storm": OsdsAway(count=1, action="Out")})
    held = [probe(number, 12_600) for number in range(6)]
    assert line_estimate(searched(equal, held)) == 12_000
    assert line_estimate(searched(line(12_000), held)) is None


def test_a_search_and_a_point_at_one_load_have_no_ratio() -> None:
    plain = result(trials_of(steady(1000)), run="candidate", point="line-000")
    found = _line(_comparison([searched(line(12_000))], [plain]))
    assert "candidate does not search" in found.notes[0]


def test_an_invalid_search_decides_nothing() -> None:
    candidate = searched(line(6_000), run="candidate", verdict=Verdict.INVALID)
    assert _comparison([searched(line(12_000))], [candidate]).conclusion is Conclusion.INCONCLUSIVE


@pytest.mark.parametrize("outcome", [ProbeOutcome.MET, ProbeOutcome.LATE])
def test_an_estimate_that_no_trial_brackets_decides_nothing(outcome: ProbeOutcome) -> None:
    trials = [probe(number, 6000, outcome) for number in range(8)]
    found = _line(_comparison([searched(line(12_000))], [searched(line(6_000), trials, run="candidate")]))
    assert found.conclusion is Conclusion.INCONCLUSIVE
    assert found.notes[0].startswith("the line of the candidate is only assumed: no load at or")


_ANY_LOAD = st.none() | st.sampled_from([0.0, 5e-324, 0.5, 1.0, 999.99, 12_000.0, 2e5, 1e300, 1.7e308])
_ANY_LINES = st.builds(
    Line,
    ending=st.none() | st.sampled_from(Ending),
    probes=st.integers(0, 4),
    counted=st.integers(0, 4),
    estimate=_ANY_LOAD,
    low=_ANY_LOAD,
    high=_ANY_LOAD,
)


@given(_ANY_LINES, _ANY_LINES)
def test_any_two_lines_are_compared_or_refused_with_a_reason(baseline: Line, candidate: Line) -> None:
    trials = [probe(0, 0.0), probe(1, 1e9, ProbeOutcome.LATE)]
    run = searched(baseline, trials)
    found = _line(_comparison([run], [searched(candidate, trials, run="candidate")]))
    ratios = [one for one in (found.low, found.ratio, found.high) if one is not None]
    assert ratios == sorted(ratios)
    assert found.conclusion is not Conclusion.INCONCLUSIVE or found.notes or ratios
    assert found.conclusion is not Conclusion.REGRESSION or found.high is not None
    assert not any(re.search(r"\de[+-]?\d|\binf\b|nan|None| - ", note) for note in found.notes)
    assert (line_estimate(run) is None) == bool(valueless(run))


def test_a_suspect_search_is_compared_and_named() -> None:
    found = _comparison([searched(line(12_000))], [searched(line(6_000), run="candidate", verdict=Verdict.SUSPECT)])
    assert found.conclusion is Conclusion.REGRESSION
    assert found.points[0].notes == ("the candidate is Suspect: no reason is recorded",)


def test_lines_and_metrics_of_points_are_one_family() -> None:
    plain = [result(trials_of(steady(1000)), run=run, point="w-000") for run in ("baseline", "candidate")]
    lines = [searched(line(12_000)), searched(line(10_800), run="candidate")]
    alone = _line(_comparison([lines[0]], [lines[1]]))
    among = _comparison([lines[0], plain[0]], [lines[1], plain[1]])
    assert Metric.LINE in among.gates
    assert alone.p_worse is not None
    assert _line(among).p_worse == pytest.approx(3 * alone.p_worse)


def test_noise_between_runs_widens_the_interval() -> None:
    same = [[searched(line(load), run=f"same-{load}")] for load in (10_000, 12_000, 14_000)]
    baseline, candidate = [searched(line(12_000))], [searched(line(9_600), run="candidate")]
    assert _comparison(baseline, candidate).conclusion is Conclusion.REGRESSION
    found = _comparison(baseline, candidate, Floor(runs=same))
    assert found.conclusion is Conclusion.INCONCLUSIVE
    assert _line(found).between == pytest.approx(0.166, abs=0.01)
    unknown = _comparison(baseline, candidate, Floor(runs=[same[0], [searched(above(), run="same")]]))
    assert "noise between runs is unknown" in _line(unknown).notes[0]


def test_repeated_runs_count_as_trials() -> None:
    def one_run(loads: tuple[float, ...], name: str) -> list[BenchmarkResult]:
        return as_one_run([[searched(line(load), run=f"{name}-{number}")] for number, load in enumerate(loads)])

    baseline = one_run((11_900, 12_000, 12_100, 12_000), "baseline")
    assert baseline[0].status.summary is None
    assert len(baseline[0].status.trials) == 4
    fallen = _comparison(baseline, one_run((9_900, 10_000, 10_100, 10_000), "candidate"))
    assert fallen.conclusion is Conclusion.REGRESSION
    assert _line(fallen).baseline.trials == 4
    assert _comparison(baseline, one_run((11_900, 12_050, 12_100, 12_000), "c")).conclusion is Conclusion.NO_REGRESSION
    # Runs that scatter by much more than their own intervals show noise between runs.
    noisy = _comparison(baseline, one_run((8_000, 12_000, 9_000, 11_000), "candidate"))
    assert noisy.conclusion is Conclusion.INCONCLUSIVE


def test_a_repeated_run_without_an_estimate_leaves_none() -> None:
    runs = [[searched(line(12_000), run="a")], [searched(above(), run="b")], [searched(line(12_000), run="c")]]
    (combined,) = as_one_run(runs)
    assert combined.status.line is not None
    assert combined.status.line.estimate is None
    assert line_estimate(combined) is None


_LOADS = st.floats(min_value=100, max_value=100_000)
_WIDTHS = st.floats(min_value=0.001, max_value=0.5)


@given(_LOADS, _LOADS, _WIDTHS, _WIDTHS)
def test_swapped_runs_have_the_opposite_change(ours: float, theirs: float, width: float, other: float) -> None:
    there = _of(line(ours, width=width), line(theirs, width=other))
    back = _of(line(theirs, width=other), line(ours, width=width))
    assert there.low is not None
    assert back.high is not None
    assert there.low * back.high == pytest.approx(1)
    assert {there.conclusion, back.conclusion} != {Conclusion.REGRESSION}


@given(_LOADS, _LOADS, _WIDTHS)
def test_a_lower_candidate_is_never_judged_better(ours: float, theirs: float, width: float) -> None:
    order = [Conclusion.REGRESSION, Conclusion.INCONCLUSIVE, Conclusion.NO_REGRESSION]
    found = [_of(line(ours, width=width), line(load, width=width)).conclusion for load in (theirs, 0.9 * theirs)]
    assert order.index(found[1]) <= order.index(found[0])


def test_of_an_interval_that_is_not_symmetric_the_wider_side_counts() -> None:
    even, uneven = (_of(line(12_000, low=low, high=12_600), line(12_000)) for low in (12_000 / 1.05, 11_900))
    assert even.low == pytest.approx(uneven.low)
    assert even.high == pytest.approx(uneven.high)
