"""A probe: one trial at one load, and whether it meets the objectives of latency.

An open loop offers operations at a rate that does not depend on how fast the storage answers. A tool with a bounded
number of operations in flight can hold it only while that bound is not reached: from then on operations start late,
and a latency that is counted from their start hides how long they waited (coordinated omission). So a load that the
storage did not achieve breaks every objective, whatever the latencies.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.api.line import Vary
from plimsoll.api.names import Verdict

MOST_DROPPED = 0.01
"""From this share of submissions that found the depth full, the offered load was not achieved."""

LEAST_SHORTFALL = 0.01
"""Smallest shortfall of the achieved load, as a part of the offered load, that matters."""

_DEVIATIONS = 3
"""A Poisson process of N expected operations is this many standard deviations sqrt(N) short in 1 of 741 trials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A percentile of latency, in percent, and the highest latency that meets the objective."""

    percentile: float
    latency_nanoseconds: int

    def __post_init__(self) -> None:
        if not 0 < self.percentile <= 100:  # noqa: PLR2004 - percent
            raise ValueError(f"a percentile lies above 0 and at most at 100: {self.percentile:g}")
        if self.latency_nanoseconds <= 0:
            raise ValueError(f"an objective is a positive latency, not {self.latency_nanoseconds} ns")


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one trial measured.

    Attributes:
        offered: the load that was offered.
        achieved: the load that was achieved: operations completed per second, or for a depth the mean number of
            operations in flight (Little's law: their rate times their mean latency in seconds).
        operations: number of operations completed.
        dropped_share: share of submissions that found the depth full; None in a closed loop, where all do.
        latencies: of each objective, its percentile in nanoseconds: infinity if it exceeds what the tool can count,
            None if there are too few operations to know it.

    """

    vary: Vary
    offered: float
    achieved: float
    operations: int
    dropped_share: float | None
    latencies: Sequence[float | None]
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One trial of a search.

    Attributes:
        load: the load that was offered, in the unit of `Vary`.
        is_achieved: whether the storage kept up with it.
        met: whether each objective was met, in their order; None if its percentile is not known.
        verdict: of the trial; an Invalid one says nothing about the storage.

    """

    load: float
    is_achieved: bool
    met: tuple[bool | None, ...]
    verdict: Verdict = Verdict.VALID

    @property
    def is_broken(self) -> bool | None:
        """Whether the load was not achieved or an objective not met; None if that is not known."""
        if not self.is_achieved or False in self.met:
            return True
        return None if None in self.met else False

    @property
    def counts(self) -> bool:
        """Whether the probe says anything about the storage."""
        return self.verdict is not Verdict.INVALID and self.is_broken is not None


def judge_probe(observation: Observation, objectives: Sequence[Objective]) -> Probe:
    """Judge a trial by the objectives, all of which must hold.

    Raises:
        ValueError: the latencies do not match the objectives, or what is offered in an open loop is unknown.

    """
    return Probe(
        load=observation.offered,
        is_achieved=_is_achieved(observation),
        met=tuple(
            None if latency is None else latency <= objective.latency_nanoseconds
            for objective, latency in zip(objectives, observation.latencies, strict=True)
        ),
        verdict=observation.verdict,
    )


def tolerated_shortfall(operations: int) -> float:
    """Return by how large a part of the offered load the achieved one may fall short: max(1 %, 3/sqrt(N))."""
    return max(LEAST_SHORTFALL, _DEVIATIONS / math.sqrt(operations)) if operations else LEAST_SHORTFALL


def _is_achieved(observation: Observation) -> bool:
    if observation.vary is Vary.RATE:
        if observation.dropped_share is None:
            raise ValueError("in an open loop the share of submissions that found the depth full must be known")
        if observation.dropped_share >= MOST_DROPPED:
            return False
    return observation.achieved >= observation.offered * (1 - tolerated_shortfall(observation.operations))
