"""Rounds of a suite whose workloads search for the line."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.line import Ending, Line, ProbeOutcome
from plimsoll.api.names import Metric
from plimsoll.api.storage import OsdsAway
from plimsoll.api.suite_status import Conclusion
from plimsoll.measure.compare.values import RegressionRule
from plimsoll.suite.evaluation import outcomes_of_rounds, projected
from plimsoll.suite.judging import Against, RoundJudgement, judge, trends_of
from plimsoll.suite.measured import MeasuredRound, measured_round
from support.results import above, below, line, probe, searched
from support.simulated_comparisons import ended_round

_BEFORE = ((12_000, 12_100), (11_950, 12_050), (12_100, 11_900), (12_050, 11_980))


def _round(minute: int, lines: Sequence[Line]) -> MeasuredRound:
    runs = [[searched(found, run=f"r{minute}-{number}")] for number, found in enumerate(lines)]
    return measured_round(minute=minute, digest="d", repeat=len(lines), runs={"v": runs})


def _judged(*lines: Line) -> RoundJudgement:
    earlier = [_round(minute, [*map(line, loads)]) for minute, loads in enumerate(_BEFORE)]
    return judge(earlier, earlier, _round(9, lines), ["v"], RegressionRule())


@pytest.mark.parametrize(
    ("lines", "conclusion"),
    [
        ((line(9_600), line(9_700)), Conclusion.REGRESSION),
        ((line(12_000), line(12_100)), Conclusion.NO_REGRESSION),
        ((line(15_000), line(15_100)), Conclusion.NO_REGRESSION),
        ((below(), below()), Conclusion.REGRESSION),
        ((above(), line(12_000)), Conclusion.INCONCLUSIVE),
        ((line(12_000, ending=Ending.DRIFTING), line(12_000)), Conclusion.INCONCLUSIVE),
    ],
)
def test_conclusions(lines: Sequence[Line], conclusion: Conclusion) -> None:
    assert _judged(*lines).conclusion is conclusion


def test_the_outcome_names_the_line() -> None:
    (outcome,) = outcomes_of_rounds("upgrade", _judged(line(9_600), line(9_700)))
    assert outcome.message.startswith("line line -19.")
    assert outcome.estimate == pytest.approx(-0.197, abs=0.003)


def test_a_round_has_one_value_per_run_and_keeps_what_it_lacks() -> None:
    found = _round(1, [line(12_000), line(12_500)])
    (quantity,) = found.values
    assert quantity.metric is Metric.LINE
    assert [*found.values[quantity]] == [0, 1]
    lacking = _round(1, [above(), line(12_000)])
    assert not lacking.values
    assert lacking.gaps["v"] == ["the line of the run has only a lower bound; increase limit: line-000"]


def test_each_reason_for_a_line_without_a_value_names_its_points() -> None:
    found = {"a": above(), "b": line(None, high=450, ending=Ending.PROBES_USED_UP), "c": above()}
    run = [searched(one, run="r", point=point) for point, one in found.items()]
    round_ = measured_round(minute=1, digest="d", repeat=1, runs={"v": [run]})
    assert round_.gaps["v"] == [
        "the line of the run has only a lower bound; increase limit: a, c",
        "the line of the run has only an upper bound; decrease start: b",
    ]


def test_an_estimate_that_no_trial_brackets_is_no_value() -> None:
    trials = [probe(number, 12_000) for number in range(8)]
    stored = searched(line(12_000, counted=8), trials, run="r").model_dump(mode="json", exclude_none=True)
    found = measured_round(minute=1, digest="d", repeat=1, runs={"v": [[projected(stored)]]})
    assert not found.values
    assert found.gaps["v"] == [
        "the line of the run is only assumed: no load at or above it broke; find out why probes do not count: line-000"
    ]
    bracketed = searched(line(12_000), run="r").model_dump(mode="json", exclude_none=True)
    assert measured_round(minute=1, digest="d", repeat=1, runs={"v": [[projected(bracketed)]]}).values


_LOADS = st.none() | st.sampled_from([0.0, 5e-324, 999.99, 12_000.0, 1.7e308])
_LINES = st.builds(
    Line,
    ending=st.none() | st.sampled_from(Ending),
    probes=st.just(4),
    counted=st.sampled_from([0, 4]),
    estimate=_LOADS,
    low=_LOADS,
    high=_LOADS,
)


@given(st.lists(_LINES, min_size=2, max_size=3))
def test_every_run_has_a_value_or_the_round_says_why_not(lines: Sequence[Line]) -> None:
    trials = [probe(0, 0.0), probe(1, 1e9, ProbeOutcome.LATE)]
    runs = [[searched(found, trials, run=f"r{number}")] for number, found in enumerate(lines)]
    found = measured_round(minute=1, digest="d", repeat=len(lines), runs={"v": runs})
    assert bool(found.values) != bool(found.gaps["v"])
    judge([], [], found, ["v"], RegressionRule())


def test_the_trend_follows_the_line() -> None:
    rounds = [(ended_round(minute), _round(minute, [*map(line, loads)])) for minute, loads in enumerate(_BEFORE)]
    (trend,) = trends_of(rounds)
    assert [round(row.estimate, -2) for row in trend.rows] == [12_000] * 4


def _stormy(minute: int, calm: float, storm: float) -> MeasuredRound:
    during = line(storm).model_copy(update={"storm": OsdsAway(count=1, action="Out")})
    run = [searched(line(calm), run=f"r{minute}"), searched(during, run=f"r{minute}", point="line-000-storm")]
    return measured_round(minute=minute, digest="d", repeat=1, runs={"v": [run]})


@pytest.mark.parametrize(
    ("calm", "storm", "expected"),
    [
        (12_000, 7_000, {"line": Conclusion.NO_REGRESSION, "line storm": Conclusion.NO_REGRESSION}),
        (13_500, 6_000, {"line": Conclusion.NO_REGRESSION, "line storm": Conclusion.REGRESSION}),
        (10_000, 8_000, {"line": Conclusion.REGRESSION, "line storm": Conclusion.NO_REGRESSION}),
    ],
)
def test_a_round_judges_the_calm_and_the_storm_line_apart(
    calm: float, storm: float, expected: dict[str, Conclusion]
) -> None:
    earlier = [
        _stormy(number, 12_000 * noise, 7_000 * noise) for number, noise in enumerate((1, 1.005, 0.995, 1.002, 0.998))
    ]
    (judgement,) = judge(earlier, earlier, _stormy(9, calm, storm), ["v"], RegressionRule()).variants
    accepted = [change for change in judgement.judged if change.against is Against.ACCEPTED]
    assert {change.place: change.comparison.conclusion for change in accepted} == expected
