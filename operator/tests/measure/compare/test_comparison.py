import random
from collections.abc import Sequence
from typing import Any

import pytest

from plimsoll.api.line import OfferedLoad
from plimsoll.api.names import AbortReason, LatencyKind, Metric, Operation, Verdict
from plimsoll.api.result import Abort, BenchmarkResult, Finding, Trial
from plimsoll.api.suite_status import Conclusion
from plimsoll.measure.compare.comparison import Comparison, MetricComparison, compare, notes_of
from plimsoll.measure.compare.significance import Floor
from plimsoll.measure.compare.values import RegressionRule, match_points
from support.results import MILLISECOND, aborted, measured, result, steady, trial, trials_of

RULE = RegressionRule()


def compared(
    baseline: Sequence[BenchmarkResult], candidate: Sequence[BenchmarkResult], rule: RegressionRule = RULE
) -> Comparison:
    return compare(match_points(baseline, candidate), rule)


def one(
    baseline: Sequence[Trial], candidate: Sequence[Trial], rule: RegressionRule = RULE, **changes: Any
) -> Comparison:
    """Compare two runs of one point; `changes` are of the candidate."""
    return compared([result(baseline)], [result(candidate, run="candidate", **changes)], rule)


def metric(comparison: Comparison, name: Metric, operation: Operation = Operation.READ) -> MetricComparison:
    (found,) = [
        metric for metric in comparison.points[0].metrics if (metric.metric, metric.operation) == (name, operation)
    ]
    return found


# One point


def test_less_iops_are_a_regression() -> None:
    found = one(trials_of(steady(1000)), trials_of(steady(800)))
    assert found.conclusion is Conclusion.REGRESSION
    iops = metric(found, Metric.IOPS)
    assert iops.gates
    assert iops.confirmed
    assert iops.baseline.mean == pytest.approx(998)
    assert iops.candidate.mean == pytest.approx(798.4)
    assert iops.ratio == pytest.approx(0.8, abs=0.001)
    assert iops.low is not None
    assert iops.high is not None
    assert iops.low < 0.8 < iops.high < 0.95
    assert found.reasons == ("Regression in 1 of 2 gating metrics", "NoRegression in 1 of 2 gating metrics")


def test_equal_runs_have_no_regression() -> None:
    found = one(trials_of(steady(1000)), trials_of(steady(1000)))
    assert found.conclusion is Conclusion.NO_REGRESSION
    assert found.reasons == ("NoRegression in 2 of 2 gating metrics",)
    assert {each.conclusion for each in found.points[0].metrics} == {Conclusion.NO_REGRESSION}


def test_higher_p99_is_a_regression() -> None:
    def trials(p99: float) -> list[Trial]:
        return [trial(number, measured(1000, p99=round(value))) for number, value in enumerate(steady(p99))]

    found = one(trials(5 * MILLISECOND), trials(6 * MILLISECOND))
    assert found.conclusion is Conclusion.REGRESSION
    assert metric(found, Metric.P99).ratio == pytest.approx(1.2, abs=0.001)


def test_what_does_not_gate_is_reported_and_decides_nothing() -> None:
    rule = RegressionRule(gates=frozenset({Metric.P99}))
    found = one(trials_of(steady(1000)), trials_of(steady(800)), rule)
    assert metric(found, Metric.IOPS).conclusion is Conclusion.REGRESSION
    assert not metric(found, Metric.IOPS).gates
    assert found.conclusion is Conclusion.NO_REGRESSION
    assert found.gates == (Metric.P99,)


def test_an_improvement_is_no_regression() -> None:
    found = one(trials_of(steady(1000)), trials_of(steady(1300)))
    assert found.conclusion is Conclusion.NO_REGRESSION
    assert metric(found, Metric.IOPS).improved


@pytest.mark.parametrize(("ours", "theirs"), [(2, 5), (5, 2), (0, 5), (1, 1)])
def test_less_than_three_trials_are_not_enough(ours: int, theirs: int) -> None:
    found = one(trials_of(steady(1000, ours)), trials_of(steady(800, theirs)))
    assert found.conclusion is Conclusion.INCONCLUSIVE
    iops = metric(found, Metric.IOPS)
    # What was measured is shown, without an interval.
    assert iops.ratio == (pytest.approx(0.8, rel=0.02) if ours else None)
    assert (iops.low, iops.bound, iops.p_value) == (None, None, None)
    assert f"but {ours} of the baseline and {theirs} of the candidate do;" in iops.notes[0]


def test_three_trials_are_enough() -> None:
    assert one(trials_of(steady(1000, 3)), trials_of(steady(800, 3))).conclusion is Conclusion.REGRESSION


def test_an_absent_percentile_is_reported_and_not_skipped() -> None:
    some = [trial(number, measured(1000, p99=None if number == 2 else 10**6)) for number in range(5)]
    found = one(trials_of(steady(1000)), some)
    assert found.conclusion is Conclusion.INCONCLUSIVE
    (note,) = metric(found, Metric.P99).notes
    assert note.startswith("p99 is missing in 1 of 5 trials of the candidate: its operation is absent, was too fast")


def test_a_percentile_that_gates_and_is_absent_everywhere_is_inconclusive() -> None:
    never = [trial(number, measured(1000, p99=None)) for number in range(5)]
    found = one(never, never)
    assert metric(found, Metric.P99).conclusion is Conclusion.INCONCLUSIVE
    assert found.conclusion is Conclusion.INCONCLUSIVE
    assert Metric.P999 not in [each.metric for each in found.points[0].metrics]


@pytest.mark.parametrize(
    ("kind", "metrics"),
    [
        (LatencyKind.MEAN_ONLY, [Metric.IOPS, Metric.BYTES, Metric.MEAN]),
        (LatencyKind.NONE, [Metric.IOPS, Metric.BYTES]),
    ],
)
def test_what_the_tool_cannot_know_is_not_asked_for(kind: LatencyKind, metrics: list[Metric]) -> None:
    trials = [trial(number, measured(1000, kind=kind)) for number in range(5)]
    found = one(trials, trials)
    assert [each.metric for each in found.points[0].metrics] == metrics
    assert found.conclusion is Conclusion.NO_REGRESSION


def test_nothing_that_gates_is_no_reassurance() -> None:
    trials = [trial(number, measured(1000, kind=LatencyKind.NONE)) for number in range(5)]
    found = one(trials, trials, RegressionRule(gates=frozenset({Metric.P99})))
    assert found.conclusion is Conclusion.INCONCLUSIVE
    assert found.reasons[0].startswith("no metric gates")


def test_zero_has_no_ratio() -> None:
    found = one(trials_of(steady(1000)), trials_of([0, 0, 1000, 1000, 1000]))
    (note,) = metric(found, Metric.IOPS).notes
    assert note == "iops is 0 in 2 of 5 trials of the candidate, so it has no logarithm; check these trials"
    assert found.conclusion is Conclusion.INCONCLUSIVE


def test_an_operation_that_only_one_side_did_is_inconclusive() -> None:
    both = [trial(n, measured(1000), measured(500, operation=Operation.WRITE)) for n in range(5)]
    found = one(both, trials_of([1000] * 5))
    assert metric(found, Metric.IOPS).conclusion is Conclusion.NO_REGRESSION
    assert metric(found, Metric.IOPS, Operation.WRITE).conclusion is Conclusion.INCONCLUSIVE


def test_noise_beyond_the_threshold_is_unreliable_and_gates() -> None:
    found = one(trials_of([900, 1000, 1100]), trials_of([900, 1000, 1100]))
    assert any(note.startswith("unreliable: it varies by 10.0 %") for note in metric(found, Metric.IOPS).notes)
    assert not metric(found, Metric.P99).notes


def limited(p50: int, *, iops: float = 1000) -> list[Trial]:
    """Make trials of a workload that sets its rate, whose median scatters by about 1 %."""
    load = OfferedLoad(offered=1000, achieved=iops)
    trials = []
    for number, median in enumerate(steady(p50)):
        operation = measured(iops)
        latency = operation.latency.model_copy(update={"percentiles": {"50": round(median), "99": 5 * 10**6}})
        trials.append(trial(number, operation.model_copy(update={"latency": latency}), load=load))
    return trials


def test_the_median_gates_in_place_of_a_rate_that_the_workload_sets() -> None:
    found = one(limited(500_000), limited(1_000_000))
    assert found.conclusion is Conclusion.REGRESSION
    assert metric(found, Metric.P50).gates
    assert not metric(found, Metric.IOPS).gates
    assert one(limited(500_000), limited(505_000)).conclusion is Conclusion.NO_REGRESSION
    # A closed loop has its rate to show that.
    free = [each.model_copy(update={"load": None}) for each in limited(1_000_000)]
    assert one(limited(500_000), free).conclusion is Conclusion.NO_REGRESSION
    only_rate = RegressionRule(gates=frozenset({Metric.P99}))
    assert not metric(one(limited(500_000), limited(500_000), only_rate), Metric.P50).gates


# Trials that count


def test_trials_that_the_harness_spoiled_are_not_compared() -> None:
    good = trials_of(steady(1000, 9))
    late = Finding(reason="LateClient", verdict=Verdict.INVALID, message="m")
    invalid = trial(0, measured(1), verdict=Verdict.INVALID, findings=(late,))
    again = trial(0, *good[0].operations, attempt=1)
    found = one(good, [invalid, again, *good[1:]])
    assert metric(found, Metric.IOPS).ratio == pytest.approx(1)
    assert metric(found, Metric.IOPS).candidate.trials == 9


def test_suspect_points_are_compared_and_named() -> None:
    finding = Finding(reason="ClockOffset", verdict=Verdict.SUSPECT, message="m")
    suspect = [
        each.model_copy(update={"verdict": Verdict.SUSPECT, "findings": (finding,)}) for each in trials_of([1000] * 5)
    ]
    found = one(trials_of([1000] * 5), suspect)
    assert found.points[0].notes == ("the candidate is Suspect: ClockOffset",)
    assert notes_of(found) == {"the candidate is Suspect: ClockOffset": [found.points[0].baseline]}
    assert found.conclusion is Conclusion.NO_REGRESSION


@pytest.mark.parametrize(("failed", "conclusion"), [(1, Conclusion.REGRESSION), (2, Conclusion.INCONCLUSIVE)])
def test_a_run_that_repeated_more_than_a_fifth_of_its_trials_shows_nothing(failed: int, conclusion: Conclusion) -> None:
    repeated = [aborted(number) for number in range(failed)]
    trials = [each.model_copy(update={"attempt": 1}) for each in trials_of(steady(800))]
    found = one(trials_of(steady(1000)), [*repeated, *trials])
    assert found.conclusion is conclusion
    assert any("2 of 7 attempts of the candidate were replaced" in reason for reason in found.reasons) == (failed == 2)


@pytest.mark.parametrize(
    ("abort", "conclusion"),
    [
        pytest.param(Abort(reason=AbortReason.INTERRUPTED, message="m"), Conclusion.NO_REGRESSION, id="before-T0"),
        pytest.param(
            Abort(reason=AbortReason.INTERRUPTED, message="m", after_start=True), Conclusion.INCONCLUSIVE, id="after-T0"
        ),
        # Nothing shows whether a user deleted its pod because of what a trial showed.
        pytest.param(
            Abort(reason=AbortReason.CONDUCTOR_RESTARTED, message="m", after_start=True),
            Conclusion.INCONCLUSIVE,
            id="killed",
        ),
        pytest.param(
            Abort(reason=AbortReason.CONDUCTOR_RESTARTED, message="m"), Conclusion.NO_REGRESSION, id="killed-before-T0"
        ),
    ],
)
def test_attempts_that_were_interrupted_count_if_somebody_may_have_seen_their_rates(
    abort: Abort, conclusion: Conclusion
) -> None:
    interrupted = [aborted(number).model_copy(update={"abort": abort}) for number in range(3)]
    trials = [each.model_copy(update={"attempt": 1}) for each in trials_of(steady(1000))]
    assert one(trials_of(steady(1000)), [*interrupted, *trials]).conclusion is conclusion


@pytest.mark.parametrize("reason", [AbortReason.INTERRUPTED, AbortReason.CONDUCTOR_RESTARTED])
def test_trials_that_were_interrupted_and_not_repeated_are_a_selection(reason: AbortReason) -> None:
    lost = [aborted(number, reason=reason).model_copy(update={"attempt": 2}) for number in range(2)]
    found = one(trials_of(steady(1000)), [*lost, *trials_of(steady(1000))[2:]])
    assert found.conclusion is Conclusion.INCONCLUSIVE
    assert any("2 of 5 attempts of the candidate" in text for text in found.reasons)


def test_an_unfinished_run_proves_no_equivalence_but_may_have_regressed() -> None:
    found = one(trials_of(steady(1000)), trials_of(steady(1000)), final=False, repetitions=10)
    assert found.conclusion is Conclusion.INCONCLUSIVE
    assert found.reasons[0] == "trials are missing because a run is not finished: w-000"
    assert found.points[0].notes == ("the candidate is not finished",)
    assert one(trials_of(steady(1000)), trials_of(steady(800)), final=False).conclusion is Conclusion.REGRESSION


# Several points


def points(rates: Sequence[float], run: str) -> list[BenchmarkResult]:
    return [
        result(trials_of(steady(rate)), run=run, point=f"w-{number:03d}", parameters={"ioDepth": number + 1})
        for number, rate in enumerate(rates)
    ]


def test_one_point_that_regresses_is_enough() -> None:
    found = compared(points([1000] * 4, "a"), points([1000, 1000, 700, 1000], "b"))
    assert found.conclusion is Conclusion.REGRESSION
    assert [point.metrics[0].conclusion for point in found.points].count(Conclusion.REGRESSION) == 1


def test_a_point_without_counterpart_leaves_a_doubt_and_a_new_one_does_not() -> None:
    fewer, more = points([1000] * 2, "a"), points([1000] * 3, "b")
    found = compared(more, fewer)
    assert found.conclusion is Conclusion.INCONCLUSIVE
    assert found.reasons[0] == "the candidate lacks these points: w-002"
    assert found.baseline_only == ("w-002",)
    assert compared(fewer, more).conclusion is Conclusion.NO_REGRESSION
    assert compared(fewer, more).candidate_only == ("w-002",)


def test_runs_without_a_common_point_are_inconclusive() -> None:
    found = compared([], [])
    assert (found.conclusion, found.reasons) == (Conclusion.INCONCLUSIVE, ("the runs have no point in common",))


def test_p_values_of_gates_are_adjusted_for_all_points_and_others_are_not() -> None:
    rates = [1000, 1010, 1005, 995, 1003]
    worse = [970, 985, 960, 990, 958]
    alone = metric(one(trials_of(rates), trials_of(worse)), Metric.IOPS)
    sides = [
        [result(trials_of(side), run=run, point=f"{n}-000") for n in range(4)]
        for run, side in (("a", rates), ("b", worse))
    ]
    many = metric(compared(sides[0], sides[1]), Metric.IOPS)
    assert alone.p_value is not None
    assert many.p_value is not None
    other = metric(compared(sides[0], sides[1]), Metric.BYTES)
    assert other.p_value is not None
    assert other.p_worse is None
    assert alone.p_worse == pytest.approx(alone.p_value / 2)
    assert many.p_value == pytest.approx(8 * other.p_value)
    assert many.p_worse == pytest.approx(8 * other.p_value / 2)


# Mean changes


def scattered(run: str, seed: int, points: int, change: float = 0) -> list[BenchmarkResult]:
    """Return points with a scatter of 3 %; the rate of the first one changes by this part."""
    chance = random.Random(f"{run} {seed}")  # noqa: S311 - numbers, not secrets
    return [
        result(
            trials_of(10_000 * (1 + (0 if point else change)) * (1 + chance.gauss(0, 0.03)) for _ in range(5)),
            run=run,
            point=f"w-{point:03d}",
            parameters={"ioDepth": point + 1},
        )
        for point in range(points)
    ]


def test_points_that_show_nothing_alone_have_no_regression_together() -> None:
    found = compared(scattered("a", 1, 12), scattered("b", 1, 12))
    assert Conclusion.INCONCLUSIVE in {point.metrics[0].conclusion for point in found.points}
    assert found.conclusion is Conclusion.NO_REGRESSION
    assert found.reasons == ("NoRegression in 2 of 2 mean changes of workloads",)
    mean = found.means[0]
    assert (mean.workload, mean.operation, mean.metric, mean.points) == ("w", Operation.READ, Metric.IOPS, 12)
    assert (mean.baseline_passes, mean.candidate_passes) == (5, 5)
    assert mean.low is not None
    assert mean.ratio is not None
    assert mean.high is not None
    assert 0.95 < mean.low < mean.ratio < mean.high < 1.05
    assert all(metric.in_mean == metric.gates for point in found.points for metric in point.metrics)


def test_a_loss_at_all_points_is_one_of_their_mean_though_none_shows_it_alone() -> None:
    rates = [[1000, 1040, 960, 1020, 980], [900, 940, 860, 920, 880]]
    turned = [[[side[(number + point) % 5] for number in range(5)] for point in range(10)] for side in rates]
    sides = [
        [
            result(trials_of(values), run=run, point=f"w-{number:03d}", parameters={"ioDepth": number + 1})
            for number, values in enumerate(of_side)
        ]
        for run, of_side in zip(("a", "b"), turned, strict=True)
    ]
    found = compared(sides[0], sides[1])
    assert found.conclusion is Conclusion.REGRESSION
    assert found.means[0].conclusion is Conclusion.REGRESSION
    assert found.means[0].confirmed
    assert found.reasons[0] == "Regression in 1 of 2 mean changes of workloads"


def test_a_suspected_point_prevents_no_regression() -> None:
    """One point of 12 looks 7 % slower, which is too likely for `NoRegression`, and too unlikely for a regression."""
    found = compared(scattered("a", 1, 12), scattered("b", 1, 12, change=-0.11))
    iops = found.points[0].metrics[0]
    assert (iops.conclusion, iops.suspected) == (Conclusion.INCONCLUSIVE, True)
    assert {mean.conclusion for mean in found.means} == {Conclusion.NO_REGRESSION}
    assert found.conclusion is Conclusion.INCONCLUSIVE
    assert found.reasons[-1] == "a regression is suspected in 1 of 24 gating metrics of single points"


def test_a_point_that_cannot_be_compared_prevents_no_regression_of_the_others() -> None:
    short = scattered("b", 1, 12)
    short[3] = result(trials_of([10_000, 10_000]), run="b", point="w-003", parameters={"ioDepth": 4})
    found = compared(scattered("a", 1, 12), short)
    assert {(mean.points, mean.conclusion) for mean in found.means} == {(11, Conclusion.NO_REGRESSION)}
    assert found.conclusion is Conclusion.INCONCLUSIVE


def without(runs: list[BenchmarkResult], point: int, *passes: int) -> list[BenchmarkResult]:
    """Return the results of a run without these passes of a point."""
    status = runs[point].status
    left = tuple(one for one in status.trials if one.pass_number not in passes)
    shorter = runs[point].model_copy(update={"status": status.model_copy(update={"trials": left})})
    return [*runs[:point], shorter, *runs[point + 1 :]]


def test_a_pass_that_lacks_a_point_is_missing_in_the_mean_too() -> None:
    found = compared(scattered("a", 1, 12), without(scattered("b", 1, 12), 3, 0))
    assert found.conclusion is Conclusion.NO_REGRESSION
    assert (found.means[0].points, found.means[0].candidate_passes) == (12, 4)


def test_fewer_than_three_passes_with_all_points_show_nothing_of_the_mean() -> None:
    fewer = without(without(scattered("b", 1, 12), 3, 0, 1), 5, 2)
    found = compared(scattered("a", 1, 12), fewer)
    assert found.conclusion is Conclusion.INCONCLUSIVE
    mean = found.means[0]
    assert (mean.conclusion, mean.ratio) == (Conclusion.INCONCLUSIVE, None)
    assert (mean.baseline_passes, mean.candidate_passes) == (5, 2)
    assert "at least 3 are needed on each side, but the baseline has 5 and the candidate 2;" in mean.notes[0]
    lost = without(without(scattered("b", 1, 12, change=-0.5), 3, 0, 1), 5, 2)
    assert compared(scattered("a", 1, 12), lost).conclusion is Conclusion.REGRESSION


def test_workloads_have_means_of_their_own() -> None:
    """One workload is 20 % faster, and hides nothing of the other one."""
    sides = [
        [
            result(trials_of(steady(rate)), run=run, point=f"{name}-{number:03d}", parameters={"ioDepth": number + 1})
            for name, rate in (("fast", fast), ("slow", slow))
            for number in range(2)
        ]
        for run, fast, slow in (("a", 1000, 1000), ("b", 1200, 900))
    ]
    found = compared(sides[0], sides[1])
    assert found.conclusion is Conclusion.REGRESSION
    assert {(mean.workload, mean.conclusion) for mean in found.means if mean.metric is Metric.IOPS} == {
        ("fast", Conclusion.NO_REGRESSION),
        ("slow", Conclusion.REGRESSION),
    }
    assert found.means[0].improved


def test_noise_runs_widen_the_mean_and_need_all_its_points() -> None:
    runs = [scattered(f"same-{number}", number, 4) for number in range(3)]
    matching = match_points(scattered("a", 1, 4), scattered("b", 1, 4))
    alone, known = compare(matching, RULE).means[0], compare(matching, RULE, Floor(runs=runs)).means[0]
    assert known.between is not None
    assert (known.ratio, alone.between) == (alone.ratio, None)
    assert (known.low or 0) < (alone.low or 0)
    partly = Floor(runs=[runs[0], runs[1][:3], runs[2][1:], scattered("same-3", 3, 4)])
    assert compare(matching, RULE, partly).means[0].between is not None
    unknown = compare(matching, RULE, Floor(runs=[runs[0], runs[1][:3], runs[2][1:]])).means[0]
    assert (unknown.conclusion, unknown.ratio) == (Conclusion.INCONCLUSIVE, None)
    assert "noise between runs is unknown" in unknown.notes[0]
