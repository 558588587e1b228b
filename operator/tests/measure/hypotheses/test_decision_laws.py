"""Laws that hold for all results: units, the order of anything, and which side is called left change no verdict."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.api.suite_status import HypothesisVerdict
from plimsoll.measure.hypotheses.decide import Decision
from plimsoll.measure.hypotheses.select import MeasuredRun, measured_run
from support.results import RATIO, SCALING, decided, hypothesis, pair, sweep, trials_at

IOPS = {"left": {"workload": "rbd", "quantity": "iops"}, "of": {"workload": "rados", "quantity": "iops"}}
PAIR = pair([100] * 3, [100] * 3)
SWEEP = sweep({clients: [100] * 3 for clients in (1, 2, 4)})

rates = st.lists(st.floats(50, 200), min_size=1, max_size=5)
runs_of_pairs = st.lists(st.tuples(rates, rates), min_size=1, max_size=4)
percents = st.integers(20, 500)


def measured_as(template: MeasuredRun, rates: Sequence[Sequence[float]], number: int = 0) -> MeasuredRun:
    """Return a run with the points of another one, each with these rates; faster than to summarise every point."""
    results = []
    for point, of_point in zip(template.points, rates, strict=True):
        status = point.result.status.model_copy(update={"trials": tuple(trials_at(of_point))})
        spec = point.result.spec.model_copy(update={"run_uid": f"uid of r{number}"})
        results.append(point.result.model_copy(update={"spec": spec, "status": status}))
    return measured_run("", f"r{number}", results)


def decision(pairs: Sequence[tuple[Sequence[float], Sequence[float]]], low: int, high: int) -> Decision:
    given_ = hypothesis(RATIO, **IOPS, atLeastPercent=low, atMostPercent=high)
    return decided(given_, *(measured_as(PAIR, sides, number) for number, sides in enumerate(pairs)))


@settings(max_examples=60)  # two decisions, of up to 4 runs
@given(runs_of_pairs, percents, percents, st.floats(1e-3, 1e6))
def test_the_unit_of_a_rate_changes_no_verdict(
    pairs: list[tuple[list[float], list[float]]], one: int, other: int, unit: float
) -> None:
    scaled = [([unit * rate for rate in rbd], [unit * rate for rate in rados]) for rbd, rados in pairs]
    low, high = sorted((one, other))
    found, again = decision(pairs, low, high), decision(scaled, low, high)
    assert (again.verdict, again.unit, again.replicates) == (found.verdict, found.unit, found.replicates)
    assert again.estimate == (None if found.estimate is None else pytest.approx(found.estimate))


@settings(max_examples=60)  # two decisions, of up to 4 runs
@given(runs_of_pairs, st.sampled_from([(20, 50), (50, 200), (80, 125), (100, 500)]))
def test_swapped_sides_have_the_inverse_ratio_and_the_same_verdict(
    pairs: list[tuple[list[float], list[float]]], bounds: tuple[int, int]
) -> None:
    low, high = bounds
    found = decision(pairs, low, high)
    swapped = decision([(rados, rbd) for rbd, rados in pairs], 10_000 // high, 10_000 // low)
    assert swapped.verdict is found.verdict
    if found.estimate and found.low and found.high:
        inverse = (1 / found.estimate, 1 / found.high, 1 / found.low)
        assert (swapped.estimate, swapped.low, swapped.high) == pytest.approx(inverse)


@given(runs_of_pairs, percents)
def test_a_decision_is_held_or_refuted_exactly_if_its_interval_is_clear_of_the_limit(
    pairs: list[tuple[list[float], list[float]]], limit: int
) -> None:
    found = decision(pairs, limit, 1_000_000)
    if found.low is None or found.high is None:
        assert min(len(side) for run in pairs for side in run) < 3
        assert found.verdict is HypothesisVerdict.UNDECIDED
    elif found.verdict is HypothesisVerdict.UNDECIDED and len(pairs) < 5:
        # Either the interval includes the limit, or runs or trials scatter too much for so few.
        few = "runs scatter" if len(pairs) >= 3 else "trials of fewer than 3 runs scatter"
        assert found.low <= limit / 100 <= found.high or found.reasons[0].startswith(few)
    elif not any(end == pytest.approx(limit / 100) for end in (found.low, found.high)):
        expected = {
            (True, True): HypothesisVerdict.HELD,
            (False, True): HypothesisVerdict.UNDECIDED,
            (False, False): HypothesisVerdict.REFUTED,
        }
        assert found.verdict is expected[found.low > limit / 100, found.high > limit / 100]


def permuted(run: MeasuredRun, chance: random.Random) -> MeasuredRun:
    """Return a run whose results, and the attempts in each, are in another order."""
    results = [point.result for point in run.points]
    shuffled = []
    for result in chance.sample(results, len(results)):
        attempts = tuple(chance.sample(result.status.trials, len(result.status.trials)))
        status = result.status.model_copy(update={"trials": attempts})
        shuffled.append(result.model_copy(update={"status": status}))
    return measured_run(run.variant, run.name, shuffled)


@settings(max_examples=25)  # each with up to 8 runs
@given(st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_order_of_runs_results_and_trials_changes_nothing(count: int, chance: random.Random) -> None:
    for text, template in ((RATIO, PAIR), (SCALING, SWEEP)):
        runs = [measured_as(template, [some(chance) for _ in template.points], number) for number in range(count)]
        again = [permuted(run, chance) for run in chance.sample(runs, count)]
        assert decided(hypothesis(text), *again) == decided(hypothesis(text), *runs)


def some(chance: random.Random) -> list[float]:
    return [chance.uniform(50, 200) for _ in range(3)]


@given(st.lists(st.floats(50, 200), min_size=9, max_size=9), st.floats(1e-3, 1e6))
def test_the_unit_of_a_rate_changes_no_exponent(values: list[float], unit: float) -> None:
    left = {"workload": "rados", "quantity": "iops"}

    def scaling(factor: float) -> Decision:
        rates = [[factor * value for value in values[3 * n : 3 * n + 3]] for n in range(3)]
        return decided(hypothesis(SCALING, left=left), measured_as(SWEEP, rates))

    found, scaled = scaling(1), scaling(unit)
    assert scaled.verdict is found.verdict
    assert (scaled.estimate, scaled.low, scaled.high) == pytest.approx(
        (found.estimate, found.low, found.high), abs=1e-6
    )
