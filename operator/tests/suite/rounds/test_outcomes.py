"""The worst outcomes are in the status, and the number of those that are not."""

import json

from plimsoll.api.suite_status import ComparisonOutcome, Conclusion, HypothesisResult, HypothesisVerdict
from support.pretend_suites import PretendSuites


def comparison(number: int, verdict: Conclusion, estimate: float | None) -> ComparisonOutcome:
    return ComparisonOutcome(name=f"c{number}", variant="a", verdict=verdict, message="m" * 512, estimate=estimate)


def judged(comparisons: list[ComparisonOutcome], hypotheses: list[HypothesisResult]) -> PretendSuites:
    """Return a suite after a round with these outcomes."""
    world = PretendSuites(spec={"repeat": 1}, comparisons=tuple(comparisons), hypotheses=tuple(hypotheses))
    world.measure_round()
    return world


def test_worst_comparisons_are_shown_and_the_others_counted() -> None:
    found = [
        *(comparison(number, Conclusion.NO_REGRESSION, 0.01) for number in range(300)),
        *(comparison(number, Conclusion.INCONCLUSIVE, None) for number in range(300, 400)),
        *(comparison(number, Conclusion.REGRESSION, -0.1 - number / 10_000) for number in range(400, 500)),
    ]
    status = judged(sorted(found, key=lambda one: one.name[::-1]), []).status
    verdicts = [one["verdict"] for one in status["comparisons"]]
    assert verdicts == ["Regression"] * 100 + ["Inconclusive"] * 28
    assert [one["name"] for one in status["comparisons"][:2]] == ["c499", "c498"]
    assert status["comparisonsLeftOut"] == 372
    assert len(json.dumps(status)) < 200_000


def test_refuted_hypotheses_are_shown_first_and_nothing_is_said_about_none_left_out() -> None:
    outcomes = [HypothesisVerdict.HELD, HypothesisVerdict.UNDECIDED, HypothesisVerdict.REFUTED]
    found = [HypothesisResult(name=f"h{number}", verdict=outcomes[number % 3]) for number in range(6)]
    status = judged([], found).status
    assert [one["name"] for one in status["hypotheses"]] == ["h2", "h5", "h1", "h4", "h0", "h3"]
    assert "hypothesesLeftOut" not in status
    assert "comparisonsLeftOut" not in status


def test_number_of_those_left_out_is_remembered() -> None:
    found = [comparison(number, Conclusion.REGRESSION, None) for number in range(130)]
    world = judged(found, [])
    world.change(gate=True)
    world.settle()
    assert world.status["comparisonsLeftOut"] == 2
    world.comparisons = ()
    world.change(repeat=2)
    world.measure_round()
    assert "comparisonsLeftOut" not in world.status
