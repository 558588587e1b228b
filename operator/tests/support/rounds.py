"""Simulated rounds of a suite, as their runs' values only: no results, no histograms."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plimsoll.api.names import Operation
from plimsoll.measure.compare.values import Metric
from plimsoll.suite.history.rounds import MeasuredRound, Quantity

GATING = (Metric.IOPS, Metric.P99)
Losses = Mapping[int, float]
"""Point -> lost part of its rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """The rounds of a suite of one workload.

    Attributes:
        noise: standard deviation of the logarithms of runs of the same round.
        shared: part of the variance that all points of a run share.
        between: standard deviation of the logarithms of rounds, beyond that of their runs; all points share it.

    """

    points: int
    variants: int = 1
    repeat: int = 3
    noise: float = 0.03
    shared: float = 0.0
    between: float = 0.0

    @property
    def names(self) -> Sequence[str]:
        """The names of the variants."""
        return [f"v{number}" for number in range(self.variants)]

    def round(self, chance: random.Random, minute: int, losses: Losses | None = None) -> MeasuredRound:
        """Return a round whose first variant has these losses."""
        values: dict[Quantity, dict[int, float]] = {}
        shared, own = math.sqrt(self.shared) * self.noise, math.sqrt(1 - self.shared) * self.noise
        for variant in self.names:
            lost = (losses or {}) if variant == self.names[0] else {}
            for metric in GATING:
                apart = chance.gauss(0, self.between)
                common = [apart + chance.gauss(0, shared) for _ in range(self.repeat)]
                for point in range(self.points):
                    loss = math.log1p(-lost.get(point, 0.0)) if metric.is_rate else 0.0
                    values[quantity_of(variant, point, metric)] = {
                        repeat: loss + one + chance.gauss(0, own) for repeat, one in enumerate(common)
                    }
        return MeasuredRound(minute=minute, digest="d", values=values)


def quantity_of(variant: str = "v0", point: int = 0, metric: Metric = Metric.IOPS) -> Quantity:
    """Return a quantity of a simulated round."""
    return Quantity(variant=variant, workload="w", point=f"w-{point:03d}", operation=Operation.READ, metric=metric)


def everywhere(loss: float, points: int) -> Losses:
    """Return the same loss at all points."""
    return dict.fromkeys(range(points), loss)


def drawn(seed: object) -> random.Random:
    """Return a source of noise."""
    return random.Random(str(seed))  # noqa: S311 - numbers, not secrets
