"""From the result of a search for the line to its metrics."""

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.line import Ending, Line, LineSearch, Objective, ProbeOutcome, Vary
from plimsoll.api.names import Verdict
from plimsoll.api.result import BenchmarkResult, DisturbanceResult, Trial
from plimsoll.metrics import catalogue
from plimsoll.metrics.catalogue import Sample
from plimsoll.metrics.objects import result_metrics, result_samples
from support.goldens import AFTERWARDS, values
from support.results import SEARCH, STORM, probe, searched, simulated
from support.simulated_storage import OBJECTIVE, linear

POINT = ("default", "baseline", "line", "line-000")
CALM = (*POINT, "")
_LINE = {
    catalogue.RESULT_LINE_INFO,
    catalogue.RESULT_LINE_PROBES,
    catalogue.RESULT_LINE_RATE,
    catalogue.RESULT_LINE_RATE_BOUND,
}


@pytest.fixture(scope="module")
def found() -> BenchmarkResult:
    return simulated()


def exposed(result: BenchmarkResult) -> list[Sample]:
    document = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    return list(result_samples([result_metrics(document, now=AFTERWARDS)]))


def changed(result: BenchmarkResult, *, line: dict[str, Any] | None = None, **status: Any) -> BenchmarkResult:
    """Return a result with other values in its status, and in its line."""
    assert result.status.line is not None
    update = status | {"line": result.status.line.model_copy(update=line or {})}
    return result.model_copy(update={"status": result.status.model_copy(update=update)})


def test_a_search_has_its_line_with_both_ends_of_the_interval(found: BenchmarkResult) -> None:
    line = found.status.line
    assert line is not None
    samples = exposed(found)
    assert values(samples, catalogue.RESULT_LINE_RATE) == {CALM: line.estimate}
    bounds = {(*CALM, "low"): line.low, (*CALM, "high"): line.high}
    assert values(samples, catalogue.RESULT_LINE_RATE_BOUND) == bounds
    assert values(samples, catalogue.RESULT_LINE_INFO) == {(*CALM, "Precise", "p99 <= 5 ms"): 1}
    assert values(samples, catalogue.RESULT_LINE_PROBES) == {CALM: line.probes}
    assert values(samples, catalogue.RESULT_TRIALS) == {POINT: line.counted}


def test_no_rate_of_a_search_looks_like_one_that_was_measured(found: BenchmarkResult) -> None:
    metrics = {sample.metric for sample in exposed(found)}
    assert metrics >= _LINE
    operations = {metric for metric in metrics if "operation" in metric.labels}
    assert operations == set()
    assert catalogue.RESULT_LINE_DEPTH not in metrics


def test_a_point_at_one_load_has_no_line() -> None:
    search = simulated()
    spec = search.spec.model_copy(update={"line": None})
    assert not {sample.metric for sample in exposed(search.model_copy(update={"spec": spec}))} & _LINE


def test_a_line_of_depths_has_metrics_of_its_own() -> None:
    search = LineSearch(vary=Vary.DEPTH, start=500, limit=200_000, objectives=(OBJECTIVE,))
    samples = exposed(simulated(search_for=search))
    assert set(values(samples, catalogue.RESULT_LINE_DEPTH)) == {CALM}
    assert len(values(samples, catalogue.RESULT_LINE_DEPTH_BOUND)) == 2
    assert values(samples, catalogue.RESULT_LINE_RATE) == {}


def test_a_line_above_the_limit_has_a_lower_bound_that_was_tried() -> None:
    limited = SEARCH.model_copy(update={"limit": 4000})
    search = simulated(linear(12_000, 0.03), search_for=limited)
    assert search.status.line is not None
    assert search.status.line.low is not None
    assert search.status.line.low >= 4000
    samples = exposed(search)
    assert values(samples, catalogue.RESULT_LINE_RATE) == {}
    assert values(samples, catalogue.RESULT_LINE_RATE_BOUND) == {(*CALM, "low"): 4000}


def test_the_objectives_are_those_that_all_had_to_hold(found: BenchmarkResult) -> None:
    objectives = (Objective(percentile="50", latency="800us"), OBJECTIVE)
    spec = found.spec.model_copy(update={"line": SEARCH.model_copy(update={"objectives": objectives})})
    samples = exposed(found.model_copy(update={"spec": spec}))
    (labels,) = values(samples, catalogue.RESULT_LINE_INFO)
    assert labels[-1] == "p50 <= 800 µs and p99 <= 5 ms"


def test_a_search_that_goes_on_has_nothing() -> None:
    assert exposed(simulated(probes=5))[0].metric is catalogue.RESULTS_OMITTED


def test_of_an_invalid_search_there_is_a_verdict_and_no_number(found: BenchmarkResult) -> None:
    samples = exposed(changed(found, verdict=Verdict.INVALID))
    assert {sample.metric for sample in samples if sample.labels} == {catalogue.RESULT_INFO, catalogue.RESULT_VERDICT}


def test_the_trials_of_a_search_still_show_whether_to_believe_them(found: BenchmarkResult) -> None:
    (seconds,) = values(exposed(found), catalogue.RESULT_TIME).values()
    assert seconds == max(_finished(found))


def test_a_search_has_at_most_14_series(found: BenchmarkResult) -> None:
    """As the docs say; simulated trials have neither a common window nor a series."""
    not_simulated = {catalogue.RESULT_STALL, catalogue.RESULT_OVERLAP, catalogue.RESULT_SPREAD}
    samples = [sample for sample in exposed(found) if sample.labels]
    assert not {sample.metric for sample in samples} & not_simulated
    assert len(samples) + len(not_simulated) == 14


def _finished(result: BenchmarkResult) -> list[float]:
    return [datetime.fromisoformat(trial.finished_at).timestamp() for trial in result.status.trials]


_LOADS = st.none() | st.floats(0, allow_infinity=False) | st.sampled_from([0.0, 5e-324])


@given(st.none() | st.sampled_from(Ending), _LOADS, _LOADS, _LOADS)
def test_every_combination_has_the_samples_that_are_known(
    ending: Ending | None, estimate: float | None, low: float | None, high: float | None
) -> None:
    line = Line(ending=ending, probes=2, counted=1, estimate=estimate, low=low, high=high)
    samples = exposed(searched(line, [probe(0, 500), probe(1, 1000)]))
    assert [*values(samples, catalogue.RESULT_LINE_RATE).values()] == ([] if estimate is None else [estimate])
    bounds = values(samples, catalogue.RESULT_LINE_RATE_BOUND)
    assert len(bounds) == (low is not None) + (high is not None)
    assert all(value <= SEARCH.highest_load for labels, value in bounds.items() if labels[-1] == "low")


def test_a_storm_line_has_a_label_and_the_longest_recovery_of_probes_that_met_the_objectives() -> None:
    def recovered(number: int, outcome: ProbeOutcome, clean: float | None) -> Trial:
        disturbance = DisturbanceResult(
            action="Out", osds=(3,), start_seconds=1, end_seconds=2, clean_seconds=clean, watched_seconds=60, phases=()
        )
        return probe(number, 7000, outcome).model_copy(update={"disturbance": disturbance})

    met, late = ProbeOutcome.MET, ProbeOutcome.LATE
    cases = [(met, 20.0), (late, None), (met, 30.0), (late, 50.0)]
    trials = [recovered(number, outcome, clean) for number, (outcome, clean) in enumerate(cases)]
    samples = exposed(searched(STORM, trials, point="line-000-storm"))
    point = (*POINT[:3], "line-000-storm")
    assert values(samples, catalogue.RESULT_LINE_RATE) == {(*point, "1 OSD out"): 7100}
    assert values(samples, catalogue.RESULT_LINE_RATE_BOUND).keys() == {
        (*point, "1 OSD out", "low"),
        (*point, "1 OSD out", "high"),
    }
    assert values(samples, catalogue.RESULT_RECOVERY) == {point: 30}
