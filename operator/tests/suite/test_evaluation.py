"""What a round shows: verdict, outcomes and hypotheses, from full results or from the part that is read."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from plimsoll.api.result import BenchmarkResult
from plimsoll.api.suite import SuiteSpec, decode_suite
from plimsoll.api.suite_status import ComparisonOutcome, RoundVerdict
from plimsoll.suite.evaluation import RoundResults, evaluate_round, projected, recorded_evaluation
from plimsoll.suite.rounds.observed import Judge, RecordedEvaluation, RoundRuns
from support.full_documents import RESULT
from support.results import line, measured, result, searched, steady, trial, trials_of
from support.specs import suite_document

BETWEEN = {"name": "costs", "baseline": {"variant": "small"}, "candidate": {"variant": "large"}}
ACCEPTED = {"name": "upgrade", "baseline": {"rounds": "Accepted"}}
ABOUT = {"workload": "reads", "where": {"ioDepth": 1}, "quantity": "iops"}
HYPOTHESIS = {
    "name": "half",
    "left": ABOUT | {"variant": "large"},
    "of": ABOUT | {"variant": "small"},
    "atLeastPercent": 50,
}


def spec(*comparisons: Any, **fields: Any) -> SuiteSpec:
    return decode_suite(suite_document(comparisons=[*comparisons], **fields)).spec


def run(mean: float, name: str, **context: Any) -> list[BenchmarkResult]:
    return [result(trials_of(steady(mean)), run=name, point="reads-000", context=context)]


def round_of(minute: int = 1, digest: str = "d", **means: Sequence[float]) -> RoundResults:
    runs: Mapping[str, Mapping[str, Sequence[BenchmarkResult]]] = {
        variant: {
            f"{variant}-{number}": run(mean, f"{variant}-{number}", kernel="6.1") for number, mean in enumerate(of)
        }
        for variant, of in means.items()
    }
    return RoundResults(minute=minute, digest=digest, repeat=3, runs=runs)


def judged(asked: SuiteSpec, found: RoundResults, earlier: Sequence[RoundResults] = ()) -> RecordedEvaluation:
    rounds = [one.measured() for one in earlier]
    request = Judge(
        round=RoundRuns(minute=found.minute, digest=found.digest, runs={}), baseline=(), pinned=(), questions=""
    )
    judgement = recorded_evaluation(request, found, evaluate_round(asked, found, accepted=rounds, pinned=rounds[:5]))
    assert judgement.request == request
    return judgement


def interval(outcome: ComparisonOutcome) -> tuple[float, float, float]:
    """Return estimate and interval, lowest first."""
    assert outcome.low is not None
    assert outcome.estimate is not None
    assert outcome.high is not None
    return outcome.low, outcome.estimate, outcome.high


EARLIER = [
    round_of(minute, small=(1000 + minute, 1010, 990), large=(2000, 2020 - minute, 1980)) for minute in range(1, 5)
]


def test_what_a_variant_costs_makes_no_round_a_regression() -> None:
    costly = [
        round_of(minute, small=(2000 + minute, 2020, 1980), large=(1000, 1010 - minute, 990)) for minute in range(1, 5)
    ]
    found = judged(spec(ACCEPTED, BETWEEN), round_of(9, small=(2000, 2020, 1980), large=(1000, 1010, 990)), costly)
    *others, last = found.comparisons
    assert (last.name, last.verdict) == ("costs", "Regression")
    assert {one.verdict for one in others} == {"NoRegression"}
    assert (found.verdict, found.is_acceptable) == (RoundVerdict.NO_REGRESSION, True)
    assert found.counts == {"NoRegression": 2}
    assert found.message == "no comparison shows a regression"


def test_rounds_and_variants_are_compared_and_the_worst_round_decides() -> None:
    same = judged(spec(ACCEPTED), round_of(9, small=(1000, 1010, 990), large=(2000, 2020, 1980)), EARLIER)
    assert (same.verdict, same.is_acceptable) == (RoundVerdict.NO_REGRESSION, True)
    assert same.counts == {"NoRegression": 2}
    worse = judged(spec(ACCEPTED, BETWEEN), round_of(9, small=(1000, 1010, 990), large=(1500, 1520, 1480)), EARLIER)
    assert (worse.verdict, worse.is_acceptable) == (RoundVerdict.REGRESSED, False)
    _, first, _ = worse.comparisons
    assert (first.name, first.variant, first.verdict) == ("upgrade", "large", "Regression")
    assert first.estimate == pytest.approx(-0.25, abs=0.01)
    low, estimate, high = interval(first)
    assert low < estimate < high < 0
    assert "reads" in first.message
    assert "-25" in first.message
    assert [(one.name, one.variant) for one in worse.comparisons] == [
        ("upgrade", "small"),
        ("upgrade", "large"),
        ("costs", "large"),
    ]
    assert worse.message.startswith("comparison upgrade, variant large: Regression: ")


def test_the_status_says_why_a_worse_round_is_inconclusive() -> None:
    earlier = [round_of(minute, small=(1000 + minute, 1010, 990)) for minute in range(20)]
    found = judged(spec(ACCEPTED, variants=[{"name": "small"}]), round_of(99, small=(600, 1000, 1010)), earlier)
    (outcome,) = found.comparisons
    assert (found.verdict, outcome.verdict) == (RoundVerdict.INCONCLUSIVE, "Inconclusive")
    assert "reads read iops: worse, but by no more than the runs of the round scatter" in outcome.message
    assert outcome.message in found.message


def test_accepted_round_that_has_lost_runs_is_no_baseline() -> None:
    """Whoever deletes the fast runs of an earlier round would otherwise hide a loss."""
    asked = spec(ACCEPTED, variants=[{"name": "small"}])
    earlier = [round_of(minute, small=(1000 + minute, 1010, 990)) for minute in range(1, 4)]
    slower = round_of(9, small=(800, 810, 790))
    assert judged(asked, slower, earlier).verdict is RoundVerdict.REGRESSED
    selected = [round_of(minute, small=(790,)) for minute in range(4, 9)]
    assert judged(asked, slower, [*earlier, *selected]).verdict is RoundVerdict.REGRESSED
    assert judged(asked, slower, selected).verdict is RoundVerdict.INCONCLUSIVE


def test_slow_drift_is_named_and_shown_against_the_pinned_rounds() -> None:
    def alike(minute: int, mean: float) -> RoundResults:
        return round_of(minute, small=(mean, mean * 1.01, mean * 0.99))

    earlier = [*(alike(minute, 1000) for minute in range(5)), *(alike(5 + n, 990 - 5 * n) for n in range(10))]
    asked = spec(ACCEPTED, variants=[{"name": "small"}])
    found = judged(asked, alike(99, 935), earlier)
    (outcome,) = found.comparisons
    assert (found.verdict, outcome.verdict, outcome.drift) == (RoundVerdict.REGRESSED, "Regression", True)
    assert outcome.estimate == pytest.approx(-0.065, abs=0.002)
    assert "slow drift: worse than the pinned rounds" in outcome.message
    (sudden,) = judged(asked, alike(99, 800), earlier).comparisons
    assert (sudden.verdict, sudden.drift) == ("Regression", False)


def test_new_version_of_ceph_is_named() -> None:
    with_version = [
        RoundResults(
            minute=minute,
            digest="d",
            repeat=3,
            runs={"small": {f"s{n}": run(1000 + n, f"s{n}", ceph={"versions": version}) for n in range(3)}},
        )
        for minute, version in enumerate(("18.2.7", "18.2.7", "18.2.7", "19.2.0"))
    ]
    asked = spec(ACCEPTED, variants=[{"name": "small"}])
    (outcome,) = judged(asked, with_version[3], with_version[:3]).comparisons
    assert "changed since the last accepted round: ceph.versions: 18.2.7 -> 19.2.0" in outcome.message


def test_longer_latency_is_an_effect_below_zero() -> None:
    def latencies(p99: int) -> list[BenchmarkResult]:
        trials = [trial(n, measured(1000 + n, p99=p99 + n * 1000)) for n in range(5)]
        return [result(trials, point="reads-000", run=str(p99))]

    found = RoundResults(
        minute=1,
        digest="d",
        repeat=3,
        runs={
            "small": {f"s{n}": latencies(5_000_000 + n * 1000) for n in range(3)},
            "large": {f"l{n}": latencies(9_000_000 + n * 1000) for n in range(3)},
        },
    )
    (outcome,) = judged(spec(BETWEEN), found).comparisons
    assert outcome.estimate == pytest.approx(-0.8, abs=0.01)
    low, estimate, high = interval(outcome)
    assert low <= estimate <= high


def test_missing_run_leaves_hypotheses_undecided_and_the_round_unacceptable() -> None:
    asked = spec(ACCEPTED, hypotheses=[HYPOTHESIS])
    whole = judged(asked, round_of(9, small=(1000, 1010, 990), large=(2000, 2020, 1980)), EARLIER)
    assert [one.verdict for one in whole.hypotheses] == ["Held"]
    assert whole.hypotheses[0].estimate == pytest.approx(2, abs=0.05)
    missing = judged(asked, round_of(9, small=(1000, 1010, 990), large=(2000, 2020)), EARLIER)
    assert [one.verdict for one in missing.hypotheses] == ["Undecided"]
    assert (missing.verdict, missing.is_acceptable) == (RoundVerdict.INCONCLUSIVE, False)


def test_suite_without_comparisons_shows_no_regression() -> None:
    judgement = judged(spec(), round_of(small=(1000,) * 3, large=(1,) * 3))
    assert (judgement.verdict, judgement.message) == (RoundVerdict.NO_REGRESSION, "the suite compares no rounds")
    assert judged(spec(), round_of(small=(1000,), large=())).verdict is RoundVerdict.INCONCLUSIVE


def test_environment_has_all_versions_of_the_round() -> None:
    runs = {"small": {"a": run(1, "a", kernel="6.1", kubernetes="v1.34"), "b": run(1, "b", kernel="6.2")}}
    found = RoundResults(minute=1, digest="d", repeat=2, runs=runs)
    assert judged(spec(), found).environment == {"kernel": "6.1, 6.2", "kubernetes": "v1.34"}


def test_part_of_a_result_that_is_read_is_evaluated_like_the_whole() -> None:
    found = round_of(9, small=(1000, 1010, 990), large=(1500, 1520, 1480))
    part = RoundResults(
        minute=9,
        digest="d",
        repeat=3,
        runs={
            variant: {name: [projected(_stored(one)) for one in results] for name, results in runs.items()}
            for variant, runs in found.runs.items()
        },
    )
    asked = spec(ACCEPTED, BETWEEN, hypotheses=[HYPOTHESIS])
    assert judged(asked, part, EARLIER) == judged(asked, found, EARLIER)


def with_line(load: float, name: str) -> list[BenchmarkResult]:
    return [searched(line(load), run=name, point="reads-000")]


def lines_of(minute: int, **loads: Sequence[float]) -> RoundResults:
    runs = {
        variant: {
            f"{variant}-{number}": [projected(_stored(one)) for one in with_line(load, f"{variant}-{number}")]
            for number, load in enumerate(of)
        }
        for variant, of in loads.items()
    }
    return RoundResults(minute=minute, digest="d", repeat=3, runs=runs)


def test_a_round_regresses_where_the_line_fell() -> None:
    before = [
        lines_of(minute, small=(12_000 + minute, 12_100, 11_900), large=(20_000, 20_200 - minute, 19_800))
        for minute in range(1, 5)
    ]
    about = {"workload": "reads", "quantity": "line"}
    hypothesis = HYPOTHESIS | {"left": about | {"variant": "large"}, "of": about | {"variant": "small"}}
    asked = spec(ACCEPTED, BETWEEN, hypotheses=[hypothesis])
    fallen = judged(asked, lines_of(9, small=(12_000, 12_100, 11_900), large=(15_000, 15_100, 14_900)), before)
    assert fallen.verdict is RoundVerdict.REGRESSED
    assert "variant large: Regression: reads line -25.0 %" in fallen.message
    assert fallen.hypotheses[0].verdict == "Held"
    costs = next(one for one in fallen.comparisons if one.name == "costs")
    assert costs.verdict == "NoRegression"
    assert costs.estimate == pytest.approx(0.25, abs=0.01)
    same = judged(asked, lines_of(9, small=(12_000, 12_100, 11_900), large=(20_000, 20_100, 19_900)), before)
    assert same.verdict is RoundVerdict.NO_REGRESSION


def test_part_has_neither_distributions_nor_hosts_and_ignores_later_additions() -> None:
    stored = _stored(RESULT)
    stored["metadata"] |= {"uid": "u", "managedFields": []}
    stored["status"] |= {"display": {"iops": "1"}, "ofALaterVersion": 1}
    part = projected(stored)
    assert part.spec == RESULT.spec
    assert part.status.fingerprint == RESULT.status.fingerprint
    assert part.status.summary is None
    for one, whole in zip(part.status.trials, RESULT.status.trials, strict=True):
        assert (one.hosts, one.slowest, one.warnings) == (None, (), ())
        assert (one.cluster is None) is (whole.cluster is None)
        # What decides about foreign load.
        assert one.cluster is None or one.cluster.problems == ()
        assert [each.rates for each in one.operations] == [each.rates for each in whole.operations]
        assert all(each.series is None and each.latency.histogram is None for each in one.operations)
    assert len(part.model_dump_json()) < len(RESULT.model_dump_json()) / 2


def _stored(one: BenchmarkResult) -> dict[str, Any]:
    document: dict[str, Any] = one.model_dump(mode="json", by_alias=True, exclude_none=True)
    return document
