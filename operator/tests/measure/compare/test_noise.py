import math
from collections.abc import Sequence

import pytest

from plimsoll.api.names import Metric
from plimsoll.measure.compare.noise import MetricNoise, noise_of
from plimsoll.measure.compare.sides import MOST_SCATTER_OF_THRESHOLD
from plimsoll.measure.compare.significance import REGRESSION_LEVEL, minimum_detectable_change
from plimsoll.measure.compare.values import RegressionRule, RepeatsError
from support.results import aborted, measured, result, trial, trials_of

RULE = RegressionRule()
QUIET, NOISY = [990, 1000, 1010], [950, 1000, 1050]


def noise(*rates: Sequence[float], trials: int = 5) -> dict[Metric, MetricNoise]:
    runs = [result(trials_of(one), run=str(number)) for number, one in enumerate(rates)]
    return {found.metric: found for found in noise_of(runs, RULE, trials)}


def test_noise_of_one_run() -> None:
    found = noise(QUIET)[Metric.IOPS]
    assert found.gates
    assert found.side.trials == 3
    assert found.side.mean == 1000
    assert found.side.deviation == pytest.approx(0.01, rel=0.01)
    assert found.detectable == pytest.approx(
        minimum_detectable_change(0.01, 5, confidence=1 - 2 * REGRESSION_LEVEL / 2), rel=0.02
    )
    assert found.note == ""


def test_a_metric_gates_up_to_two_thirds_of_its_threshold() -> None:
    assert noise(NOISY)[Metric.IOPS].note.startswith("ungateable: it varies by 5.0 %")
    limit = RULE.rate * MOST_SCATTER_OF_THRESHOLD
    inside = [1000 * (1 - 0.95 * limit), 1000, 1000 * (1 + 0.95 * limit)]
    assert noise(inside)[Metric.IOPS].note == ""


def test_what_never_changes_is_no_noise() -> None:
    assert noise(NOISY)[Metric.P50].detectable == 0


def test_what_differs_between_runs_of_the_same_is_noise() -> None:
    shifted = [value * 1.1 for value in QUIET]
    alone, together = noise(QUIET)[Metric.IOPS], noise(QUIET, shifted)[Metric.IOPS]
    assert together.side.trials == 6
    assert alone.side.deviation is not None
    assert together.side.deviation is not None
    assert together.side.deviation > 4 * alone.side.deviation
    assert together.within == pytest.approx(alone.side.deviation)
    assert together.between == pytest.approx(math.log(1.1) / math.sqrt(2), rel=0.02)
    assert (alone.between, alone.runs, together.runs) == (None, 0, 2)
    assert alone.note == ""
    assert together.note != ""


def test_more_trials_do_not_lessen_what_differs_between_runs() -> None:
    runs: list[list[float]] = [[value * level for value in QUIET] for level in (1, 1.05, 0.95)]
    few, many = noise(*runs, trials=5)[Metric.IOPS], noise(*runs, trials=100)[Metric.IOPS]
    assert few.detectable is not None
    assert many.detectable == pytest.approx(few.detectable, rel=0.02)


def test_runs_of_which_too_few_tell_have_no_detectable_change() -> None:
    found = noise(QUIET, [1100, 1101])[Metric.IOPS]
    assert (found.within, found.between, found.detectable) == (None, None, None)


def test_more_trials_find_smaller_changes() -> None:
    few, many = noise(QUIET, trials=3)[Metric.IOPS], noise(QUIET, trials=10)[Metric.IOPS]
    assert few.detectable is not None
    assert many.detectable is not None
    assert many.detectable < few.detectable / 2


@pytest.mark.parametrize(
    ("scatter", "rate", "latency"), [(0.1, 0.213, 0.270), (0.2, 0.380, 0.614), (0.4, 0.616, None), (5.0, None, None)]
)
def test_no_change_of_100_percent_or_more_is_called_detectable(
    scatter: float, rate: float | None, latency: float | None
) -> None:
    """By t(0.99, 8) + t(0.8, 8) = 2.896 + 0.889, times the scatter of the logarithm and the root of 2/5."""
    factors = [math.exp(scatter * deviation) for deviation in (-1, 0, 1)]
    trials = [trial(n, measured(1e6 * factor, p99=round(1e9 / factor))) for n, factor in enumerate(factors)]
    found = {each.metric: each.detectable for each in noise_of([result(trials)], RULE, 5)}
    assert found[Metric.IOPS] == (rate if rate is None else pytest.approx(rate, abs=0.001))
    assert found[Metric.P99] == (latency if latency is None else pytest.approx(latency, abs=0.001))


def test_two_runs_that_differ_show_no_nonsense() -> None:
    """With one degree of freedom the detectable change of a latency was 10^16 %."""
    runs = [
        result([trial(n, measured(1000, p99=p99 + 1000 * n)) for n in range(5)], run=str(p99)) for p99 in (10**6, 10**7)
    ]
    (found,) = [each for each in noise_of(runs, RULE, 5) if each.metric is Metric.P99]
    assert found.between == pytest.approx(math.log(10) / math.sqrt(2), rel=0.01)
    assert found.detectable is None


def test_a_run_that_is_given_twice_shows_no_noise() -> None:
    run = result(trials_of(QUIET))
    with pytest.raises(RepeatsError, match="run default/baseline is given more than once; name each run once"):
        noise_of([run, run], RULE, 5)


@pytest.mark.parametrize("rates", [[1000], [0, 1000, 1000]])
def test_what_trials_do_not_tell_is_left_out(rates: list[float]) -> None:
    found = noise(rates)[Metric.IOPS]
    assert (found.side.deviation, found.detectable, found.note) == (None, None, "")


def test_without_trials_that_count_there_is_nothing() -> None:
    assert noise_of([result([aborted(0)])], RULE, 5) == ()


def test_one_trial_a_side_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2 trials on each side, not 1"):
        noise_of([result(trials_of(QUIET))], RULE, 1)
