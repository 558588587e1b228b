"""What a trial is judged by, its checks, and the effect of a disturbance."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from plimsoll.api.names import Operation
from plimsoll.api.operation import OperationResult, Steadiness
from plimsoll.api.result import Finding, Window
from plimsoll.ceph.watch import ClusterSample, ClusterStatus
from plimsoll.measure.checks.check import Check, CheckedValue, CheckedValues, evaluate
from plimsoll.measure.cluster import polls_around, statuses_of
from plimsoll.measure.histogram import Histogram, HistogramError, bin_midpoint
from plimsoll.measure.intake import ClientMeasurement, Intake, TrialFacts
from plimsoll.measure.line.observe import BROKEN, Observation, outcome_of
from plimsoll.measure.rates import OperationRates, grouped
from plimsoll.measure.sample import HostUse
from plimsoll.measure.stalls import Standstill
from plimsoll.measure.text import number_text, percent_text
from plimsoll.measure.timeline import NANOSECONDS, Interval, Share, add, both, joined, length_of, without

ObservedClient = tuple[ClientMeasurement, HostUse]


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A trial as planned, as received and as calculated."""

    facts: TrialFacts
    intake: Intake
    window: Window | None
    # The time that rates cover: the common window, or the whole run for a tool without a window; None if no client
    # measured.
    span: Interval | None
    rates: Mapping[Operation, OperationRates]
    operations: tuple[OperationResult, ...]
    standstill: Standstill | None  # None if it is unknown
    steadiness: Steadiness | None  # of the rate of all operations; None if it is not judged
    # What the trial shows of an offered load; None outside of a search, and if it shows nothing.
    observation: Observation | None = None

    @property
    def measured(self) -> tuple[ClientMeasurement, ...]:
        """The usable measurements."""
        return self.intake.measured

    @cached_property
    def observed(self) -> list[ObservedClient]:
        """The usable measurements whose host was observed, with the observation."""
        return [(item, host) for item in self.measured if (host := item.answer.host) is not None]

    @cached_property
    def polls(self) -> tuple[ClusterSample, ...]:
        """The polls of the cluster during the trial, the last one before and the first one after it."""
        return polls_around(self.facts.cluster, self.span) if self.facts.cluster else ()

    @cached_property
    def statuses(self) -> list[ClusterStatus]:
        """The status of each of these polls that Ceph answered."""
        return statuses_of(self.polls)

    @property
    def is_open_loop(self) -> bool:
        """Whether operations arrived at an offered rate, however fast the storage answered."""
        return self.facts.is_open_loop

    @cached_property
    def is_beyond_line(self) -> bool:
        """Whether an open loop was late, or more arrived than the storage completed: what a search looks for."""
        if self.facts.offer is None or self.observation is None or not self.is_open_loop:
            return False
        return outcome_of(self.observation, self.facts.offer.search.objectives) in BROKEN

    def shares_of(self, operation: Operation) -> list[Share]:
        """Return the shares of all clients in one operation."""
        return [share for item in self.measured for share in item.shares if share.sample.operation is operation]


def by_node(clients: Iterable[ObservedClient]) -> dict[str, list[ObservedClient]]:
    """Group clients by their node."""
    return grouped(clients, lambda client: client[0].node)


def value_of_clients(clients: Iterable[ObservedClient], value: float, detail: str) -> CheckedValue:
    """Return a value that several clients share."""
    return CheckedValue(clients=tuple(item.client for item, _ in clients), value=value, detail=detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialCheck(Check):
    """A check on every trial: decorates the function that yields its values. `judge.TRIAL_CHECKS` lists all of them."""

    values_of: Callable[[Evidence], CheckedValues] = lambda _: iter(())
    # The state of the Ceph cluster: never Invalid if the run requires no healthy one, because its user wants the
    # numbers.
    concerns_health: bool = False

    def __call__(self, values_of: Callable[[Evidence], CheckedValues]) -> Self:
        """Return the check of these values."""
        return replace(self, values_of=values_of)

    def judge(self, evidence: Evidence) -> tuple[Finding, ...]:
        """Return the finding on a trial; none if it passes."""
        check, cluster = self, evidence.facts.cluster
        if self.concerns_health and cluster is not None and not cluster.required:
            check = replace(self, suspect=self.invalid if self.suspect is None else self.suspect, invalid=None)
        return evaluate(check, self.values_of(evidence))


MOST_SLOWER = 0.05
MOST_LATE = 2.0
"""Times the part that is beyond the 99th percentile in calm time; chance is allowed three standard deviations more."""
MOST_LONGER = 0.1
"""Part by which the median of the latency may be longer."""

_LEAST_CALM = 10 * NANOSECONDS
_LEAST_OPERATIONS = 1000
_MEDIAN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What changed during a disturbance, compared with calm time."""

    slower: float  # the part by which the rate was lower; negative if it was higher
    late: float  # how many times as many operations took longer than the calm 99th percentile
    late_by_chance: float  # how many times as many chance can cause
    longer: float  # the part by which the median latency was longer; negative if it was shorter

    @property
    def is_noticeable(self) -> bool:
        """Whether the numbers would have been different without the disturbance."""
        return self.slower > MOST_SLOWER or self.late > self.late_by_chance or self.longer > MOST_LONGER

    @property
    def text(self) -> str:
        """The effect, in words."""
        rate = f"{percent_text(abs(100 * self.slower))} {'lower' if self.slower > 0 else 'higher'}"
        median = f"{percent_text(abs(100 * self.longer))} {'longer' if self.longer > 0 else 'shorter'}"
        return (
            f"meanwhile the rate was {rate}, {number_text(self.late)} times as many operations were late, and the "
            f"median latency was {median}"
        )


def effect_of(evidence: Evidence, disturbed: Iterable[Interval]) -> Effect | None:
    """Return the effect of a disturbance; None if it is unknown.

    It is unknown without 10 s of calm and 1000 operations in it, or if a client has no series of rates and latencies.
    """
    span = evidence.span
    if span is None or evidence.window is None:
        return None
    troubles = both(joined(part for part in disturbed if part.length), [span])
    calm = without([span], troubles)
    if not troubles or length_of(calm) < _LEAST_CALM:
        return None
    # No tool keeps a series of its syncs.
    timed = [operation for operation in evidence.rates if operation is not Operation.SYNC]
    effects = [_effect_on(evidence.shares_of(operation), troubles, calm) for operation in timed]
    clear = [effect for effect in effects if effect is not None]
    if not clear or len(clear) < len(effects):
        return None
    return max(clear, key=lambda effect: (effect.is_noticeable, effect.slower))


def _effect_on(shares: Collection[Share], troubles: Sequence[Interval], calm: Sequence[Interval]) -> Effect | None:
    if any(share.lacks_series for share in shares):
        return None
    during, calmly = list[str](), list[str]()
    try:
        for interval, text in (piece for share in shares for piece in share.slices()):
            is_calm = any(part.start <= interval.start and interval.end <= part.end for part in calm)
            (calmly if is_calm else during).append(text)
        meanwhile, otherwise = Histogram.merge_texts(during), Histogram.merge_texts(calmly)
    except HistogramError:
        return None
    limit, median = otherwise.percentile(99), otherwise.percentile(_MEDIAN)
    usual, rate = _rate(shares, calm), _rate(shares, troubles)
    if limit is None or not median or otherwise.total < _LEAST_OPERATIONS or not usual:
        return None
    expected = max(_beyond(otherwise, limit) / otherwise.total, 0.01) * meanwhile.total
    late = _beyond(meanwhile, limit) / expected if expected else 0.0
    by_chance = MOST_LATE + 3 / math.sqrt(expected) if expected else math.inf
    longer = (meanwhile.percentile(_MEDIAN) or limit) / median - 1 if meanwhile.total else 0.0
    return Effect(slower=1 - rate / usual, late=late, late_by_chance=by_chance, longer=longer)


def _rate(shares: Collection[Share], parts: Sequence[Interval]) -> float:
    """Return operations per nanosecond."""
    length = length_of(parts)
    done = [share.within(part) for share in shares for part in parts]
    return add(done).ios / length if length else 0.0


def _beyond(histogram: Histogram, limit: int) -> int:
    return sum(count for index, count in histogram.counts.items() if bin_midpoint(index) > limit)
