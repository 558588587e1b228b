"""A measured round, from the results of its runs."""

from typing import Any

from plimsoll.api.names import Verdict
from plimsoll.api.result import BenchmarkResult
from plimsoll.measure.compare.inference import logarithm
from plimsoll.measure.compare.metrics import Metric
from plimsoll.suite.history.rounds import MeasuredRound, measured_round
from support.repeated import aborted, measured, result, steady, trial, trials_of
from support.rounds import quantity_of

Runs = list[list[BenchmarkResult]]


def runs(*means: float, **fields: Any) -> Runs:
    return [[result(trials_of(steady(mean)), run=f"r-{number}", **fields)] for number, mean in enumerate(means)]


def of(found: Runs, repeat: int = 3) -> MeasuredRound:
    return measured_round(minute=7, digest="d", repeat=repeat, runs={"v0": found})


def test_a_run_has_one_value_of_each_gating_metric() -> None:
    found = of(runs(1000, 1100, 900))
    assert {one.metric for one in found.values} == {Metric.IOPS, Metric.P99}
    means = [logarithm(sum(map(round, steady(mean))) / 5) for mean in (1000, 1100, 900)]
    assert [*found.values[quantity_of()].values()] == means
    assert (found.is_complete, [*found.gaps["v0"]], [*found.doubts["v0"]]) == (True, [], [])


def test_missing_runs_leave_a_gap() -> None:
    found = of(runs(1000, 1100))
    assert not found.is_complete
    assert found.gaps["v0"] == ["1 of 3 runs are not measured completely"]
    assert len(found.values[quantity_of()]) == 2


def test_a_point_that_is_invalid_in_one_run_has_no_values() -> None:
    found = runs(1000, 1100, 900)
    status = found[1][0].status.model_copy(update={"verdict": Verdict.INVALID})
    found[1] = [found[1][0].model_copy(update={"status": status})]
    assert of(found).values == {}
    assert of(found).gaps["v0"] == ["Invalid, not finished or missing in a run: w-000"]


def test_a_point_that_a_run_lacks_has_no_values() -> None:
    found = runs(1000, 1100, 900)
    for number, run in enumerate(found[:2]):
        run.append(result(trials_of(steady(1000)), run=f"r-{number}", point="x-000", parameters={"ioDepth": 2}))
    assert {one.point for one in of(found).values} == {"w-000"}
    assert of(found).gaps["v0"] == ["Invalid, not finished or missing in a run: x-000"]


def test_a_metric_without_a_value_in_one_run_is_a_gap() -> None:
    found = runs(1000, 1100, 900)
    found[2] = [result([trial(number, measured(900, p99=None)) for number in range(5)], run="r-2")]
    assert {one.metric for one in of(found).values} == {Metric.IOPS}
    assert of(found).gaps["v0"] == ["a gating metric has no value, or is 0, in a run: w-000"]


def test_a_selection_of_trials_and_runs_of_different_things_are_doubts() -> None:
    kept = [aborted(0), aborted(1), *(trial(number, measured(1000), attempt=number < 2) for number in range(5))]
    found = runs(1000, 1100, 900)
    assert of([*found[:2], [result(kept, run="r-2")]]).doubts["v0"][0].startswith("2 of 5 trials of r-2 were repeated")
    status = found[1][0].status
    assert status.fingerprint is not None
    other = status.fingerprint.model_copy(update={"identity_sha256": "other"})
    found[1] = [found[1][0].model_copy(update={"status": status.model_copy(update={"fingerprint": other})})]
    assert "are not repetitions of the same" in of(found).doubts["v0"][0]


def test_the_nodes_are_those_of_all_runs() -> None:
    found = runs(1000, 1100, 900)
    for number, run in enumerate(found):
        environment = run[0].status.environment.model_copy(update={"nodes": (f"node-{number % 2}",)})
        status = run[0].status.model_copy(update={"environment": environment})
        run[0] = run[0].model_copy(update={"status": status})
    (condition,) = of(found).conditions
    assert condition.nodes == {"node-0", "node-1"}
