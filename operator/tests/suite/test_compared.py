"""The comparisons of a suite: what they rest on, and what keeps them from a conclusion."""

from collections.abc import Sequence
from typing import Any

import pytest

from plimsoll.api.names import AbortReason, Verdict
from plimsoll.api.result import BenchmarkResult, Finding, Trial
from plimsoll.api.suite import SuiteSpec, decode_suite
from plimsoll.api.suite_status import Conclusion
from plimsoll.suite.evaluation import VariantComparison, comparisons_of, outcome_of_variants
from support.results import aborted, measured, result, steady, trial, trials_of

SIZES: dict[str, Any] = {"blockSize": ["64Ki"]}
Runs = list[list[BenchmarkResult]]


def spec(repeat: int = 3) -> SuiteSpec:
    fields: dict[str, Any] = {
        "repeat": repeat,
        "run": {
            "storage": {"storageClass": {"name": "any"}, "volume": {"size": "16Mi"}},
            "workloads": [{"name": "w", "fio": {}}],
        },
        "variants": [{"name": "old"}, {"name": "new", "set": {"workloads": [{"name": "w", "fio": SIZES}]}}],
        "comparisons": [{"name": "upgrade", "baseline": {"variant": "old"}, "candidate": {"variant": "new"}}],
    }
    document: dict[str, Any] = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "BenchmarkSuite",
        "metadata": {"name": "s"},
    }
    return decode_suite({**document, "spec": fields}).spec


def runs(*means: float, variant: str = "old", **identity: Any) -> Runs:
    return [
        [result(trials_of(steady(mean)), run=f"{variant}-{number}", identity=identity)]
        for number, mean in enumerate(means)
    ]


def compared(old: Runs, new: Runs, repeat: int = 3) -> VariantComparison:
    (found,) = comparisons_of(spec(repeat), {"old": old, "new": new})
    return found


def with_trials(run: list[BenchmarkResult], trials: Sequence[Trial]) -> list[BenchmarkResult]:
    return [result(trials, run=run[0].spec.run)]


def test_equal_variants_have_no_regression_and_a_slower_one_has() -> None:
    old = runs(1000, 1002, 998)
    equal = compared(old, runs(1001, 999, 1000, variant="new"))
    assert (equal.conclusion, equal.of_runs, equal.missing) == (Conclusion.NO_REGRESSION, True, 0)
    assert compared(old, runs(801, 799, 800, variant="new")).conclusion is Conclusion.REGRESSION


def test_fewer_than_three_runs_are_compared_by_their_first_ones() -> None:
    found = compared(runs(1000, 1000), runs(800, 1000, variant="new"), repeat=2)
    assert not found.of_runs
    assert found.conclusion is Conclusion.REGRESSION


def test_missing_runs_cannot_disprove_a_regression_but_show_one() -> None:
    old = runs(1000, 1002, 998)
    unknown = compared(old, runs(1001, 999, 1000, variant="new"), repeat=4)
    assert (unknown.conclusion, unknown.missing) == (Conclusion.INCONCLUSIVE, 2)
    assert compared(old, runs(801, 799, 800, variant="new"), repeat=4).conclusion is Conclusion.REGRESSION


def test_a_variant_without_a_complete_run_is_inconclusive() -> None:
    found = compared(runs(1000, 1000, 1000), [])
    assert (found.comparison, found.conclusion, found.missing) == (None, Conclusion.INCONCLUSIVE, 3)


def test_what_the_variants_set_may_differ_and_nothing_else() -> None:
    old = runs(1000, 1002, 998, parameters={"blockSize": 4096})
    new: dict[str, Any] = {"variant": "new", "parameters": {"blockSize": 65536}}
    assert compared(old, runs(801, 799, 800, **new)).conclusion is Conclusion.REGRESSION
    other = compared(old, runs(801, 799, 800, toolVersions={"fio": "3.40"}, **new))
    assert other.conclusion is Conclusion.INCONCLUSIVE
    assert [difference.key for difference in other.unexplained] == ["toolVersions.fio"]


def test_without_fingerprints_nothing_is_concluded() -> None:
    new = [
        [one.model_copy(update={"status": one.status.model_copy(update={"fingerprint": None})}) for one in run]
        for run in runs(801, 799, 800, variant="new")
    ]
    found = compared(runs(1000, 1002, 998), new)
    assert found.conclusion is Conclusion.INCONCLUSIVE
    assert "without fingerprints, nothing shows that only the variants differ" in found.doubts[0]


def test_a_run_that_repeated_too_many_trials_is_a_selection() -> None:
    """Its mean, which stands for the whole run, does not show them."""
    old, new = runs(1000, 1002, 998), runs(1001, 999, 1000, variant="new")
    kept = [aborted(0), aborted(1), *(trial(number, measured(1000), attempt=number < 2) for number in range(5))]
    new[1] = with_trials(new[1], kept)
    found = compared(old, new)
    assert found.conclusion is Conclusion.INCONCLUSIVE
    (doubt,) = found.doubts
    assert doubt.startswith("2 of 7 attempts of new-1 were replaced or do not count (limit 20 %): ClientLost (2); ")


def test_variants_are_compared_by_the_first_attempts_of_their_runs_too() -> None:
    old, new = runs(1000, 1001, 999), runs(1000, 1002, 999, variant="new")
    again = [trial(number, measured(rate), attempt=number == 0) for number, rate in enumerate(steady(1000))]

    def after(attempt: Trial) -> VariantComparison:
        """Compare with a run whose first trial replaced this attempt."""
        return compared(old, [with_trials(new[0], [attempt, *again]), *new[1:]])

    def spoiled(reason: str) -> Trial:
        finding = Finding(reason=reason, verdict=Verdict.INVALID, message="m")
        return trial(0, measured(400), verdict=Verdict.INVALID, findings=(finding,))

    assert compared(old, new).conclusion is Conclusion.NO_REGRESSION
    assert after(spoiled("LateClient")).conclusion is Conclusion.NO_REGRESSION
    for attempt in (spoiled("Stalled"), aborted(0, reason=AbortReason.TOOL_OVERRAN)):
        found = after(attempt)
        assert found.conclusion is Conclusion.INCONCLUSIVE
        assert found.comparison is not None
        assert "the attempts that count alone show NoRegression" in found.comparison.reasons[0]


def test_a_run_that_is_given_twice_is_not_compared() -> None:
    old = runs(1000, 1002, 998)
    new = runs(1000, 1001, 999, variant="new")
    for sides in (([*old[:2], old[0]], new), (old, [*new[:2], old[0]])):
        found = compared(*sides)
        assert (found.comparison, found.conclusion) == (None, Conclusion.INCONCLUSIVE)
        assert "run default/old-0 is given more than once; name each run once" in found.doubts[0]


def test_repeats_that_measured_different_things_are_not_compared() -> None:
    old = runs(1000, 1002, 998)
    fingerprint = old[2][0].status.fingerprint
    assert fingerprint is not None
    other = fingerprint.model_copy(update={"identity_sha256": "other"})
    status = old[2][0].status.model_copy(update={"fingerprint": other})
    old[2] = [old[2][0].model_copy(update={"status": status})]
    found = compared(old, runs(1000, 1000, 1000, variant="new"))
    assert (found.comparison, found.conclusion) == (None, Conclusion.INCONCLUSIVE)
    assert "old-0 and old-2 are not repetitions of the same" in found.doubts[0]


def test_a_change_without_an_interval_does_not_stand_for_the_comparison() -> None:
    """A point with too few trials has a larger change than another that was tested."""

    def of(variant: str, tested: float, single: float) -> Runs:
        both = [
            result(trials_of([tested, tested * 1.2, tested * 0.8]), run=variant, point="w-000"),
            result(trials_of([single]), run=variant, point="w-001", parameters={"ioDepth": 2}),
        ]
        return [both]

    (compared,) = comparisons_of(spec(repeat=1), {"old": of("old", 1000, 1000), "new": of("new", 930, 500)})
    outcome = outcome_of_variants(compared)
    assert outcome.verdict is Conclusion.INCONCLUSIVE
    assert outcome.estimate == pytest.approx(-0.07, abs=0.001)
    assert outcome.low is not None
    (alone,) = comparisons_of(spec(repeat=1), {"old": [of("old", 1, 1000)[0][1:]], "new": [of("new", 1, 500)[0][1:]]})
    assert outcome_of_variants(alone).estimate is None
    assert "w-001 read iops -50.0 %" in outcome_of_variants(alone).message
