"""Which earlier rounds the quantities of a round are compared with.

Of the accepted rounds, only those since the last clear improvement count: with those before, a loss of what was gained
would disappear in the difference between the two levels. Slow drift stays within what is tolerated from round to round,
so a round is also compared with the first accepted ones, the pinned rounds.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from plimsoll.api.suite_status import PINNED_ROUNDS
from plimsoll.measure.compare.tests import grouped
from plimsoll.measure.compare.values import Metric, RegressionRule, worsening
from plimsoll.suite.history.family import Against
from plimsoll.suite.history.noise import MINIMUM_ROUNDS, step_between
from plimsoll.suite.history.rounds import MeasuredRound, Quantity
from plimsoll.suite.history.samples import Runs, mean_series

_IMPROVED = 0.001
"""One-sided level of an improvement for each way to divide the rounds, of a workload's mean and points together."""

_Rounds = Sequence[MeasuredRound]


def baselines_of(
    accepted: _Rounds, pinned: _Rounds, measured: MeasuredRound, variants: Sequence[str], rule: RegressionRule
) -> Mapping[Against, Mapping[Quantity, Runs]]:
    """Return the runs of what enough rounds have; of a workload, only rounds with all of its points.

    A workload whose pinned rounds lack some of its points is compared with the first five accepted ones that do not.
    Pinned rounds are left out if they are the accepted ones that count.
    """
    found: dict[Against, dict[Quantity, Runs]] = {against: {} for against in Against}
    known = [one for one in measured.values if one.variant in variants and rounds_with([one], accepted)]
    for quantities in grouped(known, lambda quantity: quantity.group).values():
        used = rounds_with(quantities, accepted)
        if not used:
            continue
        current = _since_improvement(quantities, used, rule)
        first = _first(quantities, pinned, used)
        found[Against.ACCEPTED] |= _runs(quantities, current, measured)
        if {one.minute for one in first} != {one.minute for one in current}:
            found[Against.PINNED] |= _runs(quantities, first, measured)
    return found


def rounds_with(quantities: Iterable[Quantity], rounds: _Rounds) -> _Rounds:
    """Return the rounds that have all these quantities; none if they are too few."""
    found = [one for one in rounds if one.values.keys() >= {*quantities}]
    return found if len(found) >= MINIMUM_ROUNDS else []


def _runs(quantities: Sequence[Quantity], rounds: _Rounds, measured: MeasuredRound) -> Mapping[Quantity, Runs]:
    return {
        one: Runs(earlier={earlier.minute: earlier.values[one] for earlier in rounds}, judged=measured.values[one])
        for one in quantities
    }


def _first(quantities: Sequence[Quantity], pinned: _Rounds, accepted: _Rounds) -> _Rounds:
    """Return the pinned rounds that have all these quantities, and the accepted ones after them if they are too few."""
    own = [one for one in pinned if one.values.keys() >= {*quantities}]
    minutes = {one.minute for one in own}
    return [*own, *(one for one in accepted if one.minute not in minutes)][:PINNED_ROUNDS]


def _since_improvement(quantities: Sequence[Quantity], rounds: _Rounds, rule: RegressionRule) -> _Rounds:
    """Return the rounds since the last clear improvement of the mean over these points, or of one of them."""
    metric = quantities[0].metric
    points = [[one.values[quantity] for one in rounds] for quantity in quantities]
    tested = [[mean_series(one) for one in zip(*points, strict=True)], *(points if len(points) > 1 else ())]
    start = 0
    while split := _last_step([[[*one.values()] for one in each[start:]] for each in tested], metric, rule):
        start += split
    return rounds[start:]


def _last_step(tested: Sequence[Sequence[Sequence[float]]], metric: Metric, rule: RegressionRule) -> int:
    """Return after how many rounds one of these became clearly better, most clearly of all; 0 if none did."""
    p_values = [
        (step_between(rounds[:split], rounds[split:]).p_value() / 2, split)
        for rounds in tested
        for split in _gains(rounds, metric, rule)
    ]
    p_value, split = min(p_values, default=(1.0, 0))
    return split if p_value < _IMPROVED / len(tested) else 0


def _gains(rounds: Sequence[Sequence[float]], metric: Metric, rule: RegressionRule) -> Iterator[int]:
    """Yield after how many rounds the mean of the others is so much better that losing it again would matter."""
    means = [math.fsum(runs) / len(runs) for runs in rounds]
    for split in range(MINIMUM_ROUNDS, len(rounds) - MINIMUM_ROUNDS + 1):
        change = math.fsum(means[split:]) / len(means[split:]) - math.fsum(means[:split]) / split
        if -worsening(metric, change) > rule.log_threshold(metric):
            yield split
