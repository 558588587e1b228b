"""Repeated runs as one, whose trials are the runs."""

import json
import random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.names import Metric, Operation, Verdict
from plimsoll.api.result import BenchmarkResult, Finding
from plimsoll.api.suite_status import Conclusion
from plimsoll.measure.attempts import counted
from plimsoll.measure.compare import values
from plimsoll.measure.compare.comparison import compare
from plimsoll.measure.compare.repeats import as_one_run
from plimsoll.measure.compare.values import RegressionRule, RepeatsError, match_points
from plimsoll.measure.summary import values_of
from support.results import MILLISECOND, aborted, measured, result, steady, trial, trials_of


def repeats(*means: float, variant: str = "a") -> list[list[BenchmarkResult]]:
    return [[result(trials_of(steady(mean)), run=f"{variant}-{number}")] for number, mean in enumerate(means)]


def only(runs: list[list[BenchmarkResult]]) -> BenchmarkResult:
    (found,) = as_one_run(runs)
    return found


def test_each_run_counts_as_a_trial_with_the_mean_of_its_trials() -> None:
    found = only(repeats(1000, 1100, 900))
    assert [one.pass_number for one in found.status.trials] == [0, 1, 2]
    rates = values_of(found.status.trials, Operation.READ, Metric.IOPS)
    assert rates == pytest.approx([998, 1097.8, 898.2], abs=0.5)
    assert values_of(found.status.trials, Operation.READ, Metric.P99) == [5 * MILLISECOND] * 3
    assert (found.spec.repetitions, found.status.final, found.status.verdict) == (3, True, Verdict.VALID)


def test_attempts_that_do_not_count_are_left_out() -> None:
    trials = [aborted(0), trial(0, measured(1000), attempt=1), trial(1, measured(10), verdict=Verdict.INVALID)]
    (one,) = only([[result(trials)]]).status.trials
    assert values_of([one], Operation.READ, Metric.IOPS) == [1000]


def test_a_run_without_numbers_of_a_point_is_missing_and_not_zero() -> None:
    runs = [*repeats(1000, 1000), [result([trial(0, measured(10), verdict=Verdict.INVALID)], run="a-2")]]
    found = only(runs)
    assert [one.pass_number for one in found.status.trials] == [0, 1]
    assert found.status.verdict is Verdict.INVALID


def test_a_run_that_lacks_the_point_makes_the_result_unfinished() -> None:
    found = only([*repeats(1000), []])
    assert not found.status.final
    assert len(found.status.trials) == 1


def test_the_worst_finding_of_all_runs_comes_first() -> None:
    weak, strong = (result(trials_of(steady(1000)), run=run) for run in ("a", "b"))
    findings = [
        (weak, Finding(reason="NodeCpuSaturated", verdict=Verdict.SUSPECT, message="busy")),
        (strong, Finding(reason="Stalled", verdict=Verdict.INVALID, message="stalled")),
    ]
    runs = [
        [one.model_copy(update={"status": one.status.model_copy(update={"findings": (finding,)})})]
        for one, finding in findings
    ]
    assert [finding.reason for finding in only(runs).status.findings] == ["Stalled", "NodeCpuSaturated"]


def test_a_percentile_that_one_trial_lacks_is_absent() -> None:
    trials = [trial(0, measured(1000)), trial(1, measured(1000, p99=None))]
    (one,) = only([[result(trials)]]).status.trials
    assert values_of([one], Operation.READ, Metric.P99) == [None]
    assert values_of([one], Operation.READ, Metric.P50) == [MILLISECOND]


def lacking(run: str, *, at: int | None = 4) -> list[BenchmarkResult]:
    """Return a run of five trials, of which one has no writes: they were too fast to be timed."""
    writes = measured(500, operation=Operation.WRITE)
    return [result([trial(n, measured(1000), *(() if n == at else (writes,))) for n in range(5)], run=run)]


def test_an_operation_that_one_trial_lacks_has_no_value_in_its_run() -> None:
    whole, part = lacking("a", at=None), lacking("b")
    trials = only([whole, part]).status.trials
    assert values_of(trials, Operation.READ, Metric.IOPS) == [1000, 1000]
    assert values_of(trials, Operation.WRITE, Metric.IOPS) == [500, None]
    assert values_of(trials, Operation.WRITE, Metric.P99) == [5 * MILLISECOND, None]


@pytest.mark.parametrize("runs", [1, 3])
def test_an_operation_that_was_too_fast_in_a_trial_is_no_regression(runs: int) -> None:
    """It counted as a rate of 0, so the mean of its run was a fifth lower."""
    ours = [lacking(f"a-{number}", at=None) for number in range(3)]
    theirs = [lacking(f"b-{number}", at=4 if number < runs else None) for number in range(3)]
    found = compare(match_points(as_one_run(ours), as_one_run(theirs)), RegressionRule())
    (metric,) = [
        each for each in found.points[0].metrics if (each.operation, each.metric) == (Operation.WRITE, Metric.IOPS)
    ]
    assert (found.conclusion, metric.conclusion, metric.ratio) == (
        Conclusion.INCONCLUSIVE,
        Conclusion.INCONCLUSIVE,
        None,
    )
    assert f"iops is missing in {runs} of 3 trials of the candidate: its operation is absent" in metric.notes[0]


def test_an_operation_that_every_run_has_in_part_is_not_dropped() -> None:
    sides = [as_one_run([lacking(f"{side}-{number}") for number in range(3)]) for side in "ab"]
    found = compare(match_points(*sides), RegressionRule())
    assert found.conclusion is Conclusion.INCONCLUSIVE
    places = {(each.operation, each.metric): each.notes for each in found.points[0].metrics}
    assert "iops is missing in 3 of 3 trials of the baseline" in places[Operation.WRITE, Metric.IOPS][0]
    assert sides[0][0].status.summary is not None
    assert [each.operation for each in sides[0][0].status.summary.operations] == [Operation.READ]


def test_a_point_that_the_first_run_lacks_is_missing_and_not_dropped() -> None:
    (found,) = as_one_run([[], *repeats(1000, 1000)])
    assert [each.pass_number for each in found.status.trials] == [1, 2]
    assert not found.status.final


def test_a_run_that_is_given_twice_is_no_repetition() -> None:
    (run,) = repeats(1000)
    with pytest.raises(RepeatsError, match="run default/a-0 is given more than once; name each run once"):
        as_one_run([run, run])


def test_many_points_are_matched_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each result's identity is computed a fixed number of times, whatever the number of points is."""
    calls = 0

    def counting(*args: Any, **options: Any) -> str:
        nonlocal calls
        calls += 1
        return json.dumps(*args, **options)

    monkeypatch.setattr(values, "json", SimpleNamespace(dumps=counting))
    runs = [
        [result(trials_of([1000]), run=run, point=f"w-{n:03d}", parameters={"ioDepth": n}) for n in range(50)]
        for run in ("a", "b", "c")
    ]
    assert len(as_one_run(runs)) == 50
    assert calls == 3 * 50


def test_runs_of_another_specification_are_no_repetitions() -> None:
    first, second = repeats(1000, 1000)
    fingerprint = second[0].status.fingerprint
    assert fingerprint is not None
    status = second[0].status.model_copy(
        update={"fingerprint": fingerprint.model_copy(update={"identity_sha256": "other"})}
    )
    with pytest.raises(RepeatsError, match="w-000: a-0 and a-1 are not repetitions of the same"):
        as_one_run([first, [second[0].model_copy(update={"status": status})]])


def test_noise_between_runs_prevents_the_regression_that_single_runs_would_show() -> None:
    """Trials of a run scatter by 1 %, runs by 8 %: two of them differ, three of each side do not."""
    ours, theirs = repeats(1000, 900, 1080), repeats(880, 1020, 950, variant="b")
    rule = RegressionRule(gates=frozenset({Metric.IOPS}))
    alone = compare(match_points(ours[0], theirs[0]), rule)
    together = compare(match_points(as_one_run(ours), as_one_run(theirs)), rule)
    assert alone.conclusion is Conclusion.REGRESSION
    assert together.conclusion is Conclusion.INCONCLUSIVE


@given(st.lists(st.floats(min_value=100, max_value=1e6), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_trials_within_a_run_does_not_matter(rates: list[float], chance: random.Random) -> None:
    trials = trials_of(rates)
    shuffled = [*trials]
    chance.shuffle(shuffled)
    (ours,), (theirs,) = (only([[result(found)]]).status.trials for found in (trials, shuffled))
    assert values_of([ours], Operation.READ, Metric.IOPS) == pytest.approx(
        values_of([theirs], Operation.READ, Metric.IOPS)
    )
    assert len(counted([ours])) == 1
