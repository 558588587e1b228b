"""Rounds of suites, and their variants, on storage whose trials collapse and are repeated until they do not."""

import json
import random
from collections import Counter
from collections.abc import Sequence

import pytest

from plimsoll.api.names import AbortReason, Cause, Verdict
from plimsoll.api.result import BenchmarkResult, Finding, Trial
from plimsoll.api.suite_status import Conclusion
from plimsoll.api.surroundings import ClusterSummary
from plimsoll.measure.attempts import first_attempts
from plimsoll.measure.compare.values import RegressionRule
from plimsoll.suite.evaluation import projected
from plimsoll.suite.judging import RoundJudgement, is_acceptable, judge
from plimsoll.suite.measured import MeasuredRound, measured_round
from support.results import aborted, measured, result, trial

STALLED = Finding(reason="Stalled", verdict=Verdict.INVALID, message="m")
LATE = Finding(reason="LateClient", verdict=Verdict.INVALID, message="m", cause=Cause.HARNESS)
HUNG = LATE.model_copy(update={"cause": Cause.STORAGE})
NEIGHBOURS = Finding(reason="ForeignLoad", verdict=Verdict.INVALID, message="m")
TRIALS = 10


def collapsed(number: int, finding: Finding = STALLED, rate: float = 400) -> Trial:
    return trial(number, measured(rate), verdict=Verdict.INVALID, findings=(finding,))


def run_of(name: str, chance: random.Random, *replaced: Trial) -> list[BenchmarkResult]:
    again = {attempt.pass_number for attempt in replaced}
    rates = [1000 * chance.lognormvariate(0, 0.02) for _ in range(TRIALS)]
    trials = [trial(number, measured(rate), attempt=number in again) for number, rate in enumerate(rates)]
    return [result([*replaced, *trials], run=name)]


def round_of(minute: int, *replaced: Trial, seed: str = "") -> MeasuredRound:
    """Return a round of three runs, of which the first one replaced these attempts."""
    chance = random.Random(f"{seed} {minute}")  # noqa: S311 - numbers, not secrets
    of_round = [run_of(f"r{minute}-{number}", chance, *(() if number else replaced)) for number in range(3)]
    return measured_round(minute=minute, digest="d", repeat=3, runs={"v": of_round})


def judged(accepted: Sequence[MeasuredRound], measured: MeasuredRound) -> RoundJudgement:
    return judge(accepted, accepted[:5], measured, ["v"], RegressionRule())


ACCEPTED = [round_of(minute) for minute in range(5)]


def test_a_round_without_replaced_attempts_is_judged_once() -> None:
    measured = round_of(9)
    assert measured.first_values is None
    assert measured.on_first_attempts is measured
    judgement = judged(ACCEPTED, measured)
    assert judgement.conclusion is Conclusion.NO_REGRESSION
    assert is_acceptable(measured, [judgement])


@pytest.mark.parametrize("finding", [STALLED, LATE, HUNG, NEIGHBOURS])
def test_the_part_of_a_result_that_is_read_has_the_same_first_attempts(finding: Finding) -> None:
    cluster = ClusterSummary(samples=9, failed=0, foreign_operations_per_second=100, foreign_bytes_per_second=409600)
    replaced = collapsed(0, finding).model_copy(update={"cluster": cluster})
    (whole,) = run_of("r", random.Random(1), replaced)  # noqa: S311 - numbers, not secrets
    part = projected(json.loads(whole.model_dump_json(by_alias=True, exclude_none=True)))
    first = [(attempt.pass_number, attempt.attempt) for attempt in first_attempts(whole.status.trials)]
    assert [(attempt.pass_number, attempt.attempt) for attempt in first_attempts(part.status.trials)] == first
    assert ((0, 0) in first) is (finding is not LATE)


@pytest.mark.parametrize(
    "replaced", [[collapsed(0), collapsed(1)], [aborted(0, reason=AbortReason.TOOL_OVERRAN)]], ids=["collapsed", "hung"]
)
def test_a_round_that_only_repeating_made_good_is_neither_good_nor_accepted(replaced: list[Trial]) -> None:
    measured = round_of(9, *replaced)
    judgement = judged(ACCEPTED, measured)
    assert judgement.conclusion is Conclusion.INCONCLUSIVE
    assert judgement.variants[0].reasons[0] == (
        "the storage spoiled first attempts, and with them the conclusion is Inconclusive; the attempts that count "
        "alone show NoRegression"
    )
    assert not is_acceptable(measured, [judgement])


def test_a_round_whose_attempts_the_harness_spoiled_is_as_good_as_any() -> None:
    measured = round_of(9, collapsed(0, LATE), aborted(1))
    judgement = judged(ACCEPTED, measured)
    assert judgement.conclusion is Conclusion.NO_REGRESSION
    assert is_acceptable(measured, [judgement])


def test_the_first_rounds_are_accepted_whatever_was_replaced() -> None:
    """Nothing is known yet of how this storage is without a change."""
    measured = round_of(9, collapsed(0))
    judgement = judged(ACCEPTED[:2], measured)
    assert judgement.conclusion is Conclusion.INCONCLUSIVE
    assert is_acceptable(measured, [judgement])


def collapsing(minute: int, chance: random.Random, collapse: float) -> MeasuredRound:
    """Return a round in all of whose runs trials collapse with that probability, and are repeated once."""
    of_round = []
    for number in range(3):
        replaced = [collapsed(place) for place in range(TRIALS) if chance.random() < collapse]
        of_round.append(run_of(f"c{minute}-{number}", chance, *replaced))
    return measured_round(minute=minute, digest="d", repeat=3, runs={"v": of_round})


@pytest.mark.parametrize(("collapse", "good"), [(0.0, 56), (0.1, 4)])
def test_rounds_of_storage_that_began_to_collapse_hardly_ever_enter_the_baseline(collapse: float, good: int) -> None:
    """At a probability of 0.1 the mean loss is 6 %; by chance, some rounds lose less than the tolerated 5 %."""
    chance = random.Random(7)  # noqa: S311 - numbers, not secrets
    outcomes = Counter[tuple[Conclusion, bool]]()
    for number in range(60):
        measured = collapsing(100 + number, chance, collapse)
        judgement = judged(ACCEPTED, measured)
        outcomes[judgement.conclusion, is_acceptable(measured, [judgement])] += 1
    accepted = sum(number for (_, is_accepted), number in outcomes.items() if is_accepted)
    assert outcomes[Conclusion.NO_REGRESSION, True] == accepted
    assert (accepted <= good) if collapse else (accepted >= good)
