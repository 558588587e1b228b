"""Repeated runs as one, whose trials are the runs."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.names import Operation, Verdict
from plimsoll.api.result import BenchmarkResult
from plimsoll.api.suite_status import Conclusion
from plimsoll.measure.compare.comparison import compare
from plimsoll.measure.compare.noise import RepeatsDifferError, as_one_run
from plimsoll.measure.compare.values import Metric, RegressionRule, match_points, values_of
from plimsoll.measure.summary import counted
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


def test_a_percentile_that_one_trial_lacks_is_absent() -> None:
    trials = [trial(0, measured(1000)), trial(1, measured(1000, p99=None))]
    (one,) = only([[result(trials)]]).status.trials
    assert values_of([one], Operation.READ, Metric.P99) == [None]
    assert values_of([one], Operation.READ, Metric.P50) == [MILLISECOND]


def test_an_operation_that_one_trial_lacks_has_the_mean_rate_of_all() -> None:
    trials = [trial(0, measured(1000)), trial(1, measured(500, operation=Operation.WRITE))]
    (one,) = only([[result(trials)]]).status.trials
    assert values_of([one], Operation.WRITE, Metric.IOPS) == [250]
    assert values_of([one], Operation.WRITE, Metric.P99) == [None]


def test_runs_of_another_specification_are_no_repetitions() -> None:
    first, second = repeats(1000, 1000)
    fingerprint = second[0].status.fingerprint
    assert fingerprint is not None
    status = second[0].status.model_copy(
        update={"fingerprint": fingerprint.model_copy(update={"identity_sha256": "other"})}
    )
    with pytest.raises(RepeatsDifferError, match="w-000: a-0 and a-1 are not repetitions of the same"):
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
