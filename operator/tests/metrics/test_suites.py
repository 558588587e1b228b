"""From a suite as the API server stores it to its metrics."""

import copy
from typing import Any

from plimsoll.api.suite_status import RoundVerdict
from plimsoll.metrics import catalogue
from plimsoll.metrics.catalogue import Sample
from plimsoll.metrics.objects import suite_metrics, suite_samples
from support.goldens import SUITE, values

NAMES = ("default", "layouts")
TIME = 1772334000.0
"""2026-03-01T03:00:00Z, the only time in the status."""


def suite(**status: Any) -> dict[str, Any]:
    """Return the suite with parts of its status replaced."""
    document = copy.deepcopy(SUITE)
    document["status"] |= status
    return document


def exposed(*documents: dict[str, Any]) -> list[Sample]:
    return list(suite_samples([suite_metrics(document) for document in documents]))


def of_rounds(*verdicts: RoundVerdict) -> list[Sample]:
    """Return the samples of a suite whose rounds ended so, newest first, one a second."""
    ended = SUITE["status"]["rounds"][0]
    times = (f"1970-01-01T00:00:{len(verdicts) - place:02}Z" for place in range(len(verdicts)))
    rounds = [
        ended | {"verdict": verdict, "completionTime": time, "accepted": False}
        for verdict, time in zip(verdicts, times, strict=True)
    ]
    return exposed(suite(rounds=rounds))


def test_a_suite_is_exposed_as_kubectl_shows_it() -> None:
    samples = exposed(SUITE)
    assert values(samples, catalogue.SUITE_INFO) == {(*NAMES, "Measuring", "NoRegression"): 1}
    assert values(samples, catalogue.OPERATOR_SUITES) == {("Measuring",): 1}
    assert values(samples, catalogue.SUITE_NEXT_SCHEDULE) == {NAMES: TIME}
    assert values(samples, catalogue.SUITE_LAST_SCHEDULE) == {NAMES: TIME}


def test_the_active_round_is_exposed_while_there_is_one() -> None:
    samples = exposed(SUITE)
    assert values(samples, catalogue.SUITE_ROUND_START) == {(*NAMES, "Scheduled"): TIME}
    assert values(samples, catalogue.SUITE_ROUND_RUNS) == {(*NAMES, "planned"): 10, (*NAMES, "done"): 2}
    idle = exposed(suite(round=None))
    assert not values(idle, catalogue.SUITE_ROUND_START)
    assert not values(idle, catalogue.SUITE_ROUND_RUNS)


def test_conditions_are_true_false_or_unknown() -> None:
    conditions = [
        {"type": "Regressed", "status": "True", "reason": "Regressed"},
        {"type": "Ready", "status": "False", "reason": "Regressed"},
        {"type": "Stalled", "status": "Unknown", "reason": "Waiting"},
    ]
    assert values(exposed(suite(conditions=conditions)), catalogue.SUITE_CONDITION) == {
        (*NAMES, "Regressed", "Regressed"): 1,
        (*NAMES, "Ready", "Regressed"): 0,
        (*NAMES, "Stalled", "Waiting"): -1,
    }


def test_the_last_round_has_exactly_one_verdict() -> None:
    samples = exposed(SUITE)
    verdicts = values(samples, catalogue.SUITE_ROUND_VERDICT)
    assert verdicts == {(*NAMES, verdict): verdict is RoundVerdict.NO_REGRESSION for verdict in RoundVerdict}
    assert values(samples, catalogue.SUITE_ROUND_COMPLETION) == {NAMES: TIME}
    assert values(samples, catalogue.SUITE_ROUNDS_ACCEPTED) == {NAMES: 1}
    assert values(samples, catalogue.SUITE_ROUNDS)[(*NAMES, "NoRegression")] == 1


def test_failed_rounds_are_counted_since_the_last_one_that_was_evaluated() -> None:
    failed, superseded, inconclusive = RoundVerdict.FAILED, RoundVerdict.SUPERSEDED, RoundVerdict.INCONCLUSIVE
    samples = of_rounds(failed, superseded, failed, inconclusive, failed)
    assert values(samples, catalogue.SUITE_ROUNDS_FAILED) == {NAMES: 2}
    assert values(samples, catalogue.SUITE_ROUND_COMPLETION) == {NAMES: 2}
    assert values(samples, catalogue.SUITE_ROUNDS)[(*NAMES, "Failed")] == 3
    assert values(samples, catalogue.SUITE_ROUND_VERDICT)[(*NAMES, "Failed")] == 1


def test_a_round_that_nothing_came_of_has_no_time_of_its_own() -> None:
    assert not values(of_rounds(RoundVerdict.SUPERSEDED), catalogue.SUITE_ROUND_COMPLETION)
    assert values(of_rounds(RoundVerdict.SUPERSEDED), catalogue.SUITE_ROUNDS_FAILED) == {NAMES: 0}


def test_a_comparison_has_its_verdict_and_its_interval() -> None:
    samples, labels = exposed(SUITE), (*NAMES, "costs", "b")
    assert values(samples, catalogue.SUITE_COMPARISON_VERDICT) == {
        (*labels, "Regression"): 1,
        (*labels, "NoRegression"): 0,
        (*labels, "Inconclusive"): 0,
    }
    assert values(samples, catalogue.SUITE_COMPARISON_CHANGE) == {labels: -0.12}
    assert values(samples, catalogue.SUITE_COMPARISON_BOUND) == {(*labels, "low"): -0.15, (*labels, "high"): -0.09}


def test_a_hypothesis_that_names_its_variants_has_an_empty_one() -> None:
    outcome = {"name": "faster", "verdict": "Undecided", "message": "too few trials"}
    samples, labels = exposed(suite(hypotheses=[outcome])), (*NAMES, "faster", "")
    assert values(samples, catalogue.SUITE_HYPOTHESIS_VERDICT) == {
        (*labels, "Held"): 0,
        (*labels, "Refuted"): 0,
        (*labels, "Undecided"): 1,
    }
    assert not values(samples, catalogue.SUITE_HYPOTHESIS_ESTIMATE)
    assert not values(samples, catalogue.SUITE_HYPOTHESIS_BOUND)


def test_a_suite_that_the_operator_has_not_seen_is_exposed() -> None:
    document = copy.deepcopy(SUITE)
    del document["status"]
    assert values(exposed(document), catalogue.SUITE_INFO) == {(*NAMES, "", ""): 1}


def test_an_unreadable_suite_is_exposed_as_such_and_spoils_nothing() -> None:
    samples = exposed(suite(nextScheduleTime="tomorrow"))
    assert {sample.metric for sample in samples if sample.labels[:2] == NAMES} == {catalogue.SUITE_INFO}
    assert values(samples, catalogue.OPERATOR_SUITES) == {("Unreadable",): 1}


def test_of_two_suites_with_one_name_the_later_is_exposed() -> None:
    later = copy.deepcopy(SUITE)
    later["metadata"]["creationTimestamp"] = "2099-01-01T00:00:00Z"
    del later["status"]
    for pair in ((SUITE, later), (later, SUITE)):
        assert values(exposed(*pair), catalogue.SUITE_INFO) == {(*NAMES, "", ""): 1}


def test_of_too_many_suites_the_oldest_are_exposed_and_all_are_counted() -> None:
    suites = []
    for age in range(3):
        metadata = SUITE["metadata"] | {"name": f"s{age}", "creationTimestamp": f"2026-01-01T00:00:0{age}Z"}
        suites.append(suite_metrics(SUITE | {"metadata": metadata}))
    samples = list(suite_samples(suites, limit=2))
    assert {labels[1] for labels in values(samples, catalogue.SUITE_INFO)} == {"s0", "s1"}
    assert values(samples, catalogue.SUITES_OMITTED) == {(): 1}
    assert values(samples, catalogue.OPERATOR_SUITES) == {("Measuring",): 3}
