"""Simulated sweeps and rounds of suites, as their trials' values only: no results, no histograms."""

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from plimsoll.api.names import Metric, Operation
from plimsoll.api.suite_status import Cause, Conclusion, EndedRound, RoundVerdict
from plimsoll.measure.compare.comparison import means_of, overall
from plimsoll.measure.compare.significance import Sample, Series, assess, conclude, point_members
from plimsoll.measure.compare.values import RegressionRule
from plimsoll.suite.judging import RoundJudgement, is_acceptable, judge
from plimsoll.suite.measured import MeasuredRound, Quantity
from plimsoll.suite.rounds.observed import State
from plimsoll.suite.rounds.turns import settle_baseline, start_baseline

RULE = RegressionRule()
SCATTER = {Metric.IOPS: 0.03, Metric.P99: 0.08}
"""Coefficient of variation of the trials of a point."""


Levels = Sequence[float]
"""Logarithms of the speed of the storage, one after the other in time."""

_APART = math.log(0.9)
_DAY = 10


def _autocorrelated(chance: random.Random, length: int, memory: float = 0.8, deviation: float = 0.03) -> Levels:
    levels = [chance.gauss(0, deviation)]
    for _ in range(1, length):
        levels.append(memory * levels[-1] + math.sqrt(1 - memory**2) * chance.gauss(0, deviation))
    return levels


def _states(chance: random.Random, length: int, leaves: float) -> Levels:
    states = [chance.random() < 0.5]
    for _ in range(1, length):
        states.append(states[-1] != (chance.random() < leaves))
    return [_APART * state for state in states]


def _drift(_: random.Random, length: int) -> Levels:
    return [_APART * number / (length - 1) for number in range(length)]


def _day(chance: random.Random, length: int) -> Levels:
    start = chance.random()
    return [0.05 * math.sin(2 * math.pi * (start + number / _DAY)) for number in range(length)]


COURSES: Mapping[str, Callable[[random.Random, int], Levels]] = {
    "independent": lambda chance, length: _autocorrelated(chance, length, memory=0),
    "autocorrelated": _autocorrelated,
    "two states, drawn for each pass": lambda chance, length: _states(chance, length, leaves=0.5),
    "two states, seldom left": lambda chance, length: _states(chance, length, leaves=0.1),
    "drifting": _drift,
    "day and night": _day,
}
"""How the speed of the storage changes with time; what is the same each time a course is drawn is no noise.

Levels that are independent of each other, or keep 0.8 of their deviation from one time to the next, with a standard
deviation of 3 %; two states 10 % apart, each with a probability of 1/2, which change each time with a probability of
1/2 or 0.1; a loss of 10 % from the first to the last time; a sine of 5 % with a period of ten times.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Two runs of one workload.

    Attributes:
        correlation: of trials of different points in one pass.
        quiet: factor of the scatter of every other point, from the first; the remaining ones are as much noisier, so
            that the mean is the same.
        calm: factor of the variance of the baseline's trials; the candidate's are as much noisier.
        scatter: of each metric.

    """

    points: int
    trials: int = 5
    correlation: float = 0.0
    quiet: float = 1.0
    calm: float = 1.0
    scatter: Mapping[Metric, float] = field(default_factory=lambda: SCATTER)

    def samples(self, chance: random.Random, changes: Mapping[int, float]) -> list[Sample]:
        """Return the trials of all metrics; rates of these points change by a part of the baseline: -0.1."""
        levels = self._levels(chance), self._levels(chance)
        return [
            Sample(
                group=("w", Operation.READ, metric),
                point=f"w-{point:03d}",
                gates=True,
                baseline=baseline,
                candidate=candidate,
            )
            for metric in self.scatter
            for point, (baseline, candidate) in enumerate(
                zip(
                    self._side(chance, metric, math.sqrt(self.calm), {}, levels[0]),
                    self._side(chance, metric, math.sqrt(2 - self.calm), changes if metric.is_rate else {}, levels[1]),
                    strict=True,
                )
            )
        ]

    def _levels(self, chance: random.Random) -> Levels:
        """Return the logarithm of the speed of the storage in each pass of a run."""
        return [0.0] * self.trials

    def _side(
        self, chance: random.Random, metric: Metric, factor: float, changes: Mapping[int, float], levels: Levels
    ) -> Iterator[Series]:
        speed = 1 if metric.is_rate else -1
        shared, own = math.sqrt(self.correlation), math.sqrt(1 - self.correlation)
        passes = [shared * chance.gauss(0, 1) for _ in range(self.trials)]
        for point in range(self.points):
            scatter = factor * self.scatter[metric] * (2 - self.quiet if point % 2 else self.quiet)
            yield {
                number: math.log((1 + changes.get(point, 0)) * (1 + scatter * (common + own * chance.gauss(0, 1))))
                + speed * level
                for number, (common, level) in enumerate(zip(passes, levels, strict=True))
            }

    def conclusion(self, chance: random.Random, changes: Mapping[int, float] | None = None) -> Conclusion:
        """Return the conclusion of a comparison of the samples, all of which gate."""
        samples = self.samples(chance, changes or {})
        means = means_of(samples, {}, RULE)
        members = [*(test for _, test in means if test), *point_members(samples)]
        assessed = zip(members, assess(members), strict=True)
        judged = [conclude(member.metric, assessment, RULE) for member, assessment in assessed]
        of_means, of_points = judged[: len(means)], judged[len(means) :]
        included = {(mean.workload, mean.operation, mean.metric) for mean, _ in means}
        alone = [one for sample, one in zip(samples, of_points, strict=True) if sample.group not in included]
        return overall(
            [one.conclusion for one in (*of_means, *alone)],
            [one.conclusion for one in of_points],
            doubted=any(one.suspected for one in of_points),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsteadySweep(Sweep):
    """Two sides measured on storage whose speed changes with time, for all points alike.

    Attributes:
        course: name of one of the `COURSES`, drawn for each run from its first pass to its last.
        of_runs: whether each trial stands for a run with five passes, at a time of its own.

    """

    course: str
    of_runs: bool = False

    def _levels(self, chance: random.Random) -> Levels:
        course = COURSES[self.course]
        if self.of_runs:
            return [fmean(course(chance, 5)) for _ in range(self.trials)]
        return course(chance, self.trials)


def sample_of(
    baseline: Sequence[float],
    candidate: Sequence[float],
    metric: Metric = Metric.IOPS,
    *,
    point: str = "w-000",
    gates: bool = True,
) -> Sample:
    """Return a sample with these values, one in each pass."""
    series = [{number: math.log(value) for number, value in enumerate(side)} for side in (baseline, candidate)]
    return Sample(
        group=(point.rpartition("-")[0], Operation.READ, metric),
        point=point,
        gates=gates,
        baseline=series[0],
        candidate=series[1],
    )


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
        return [f"v{number}" for number in range(self.variants)]

    def round(
        self, chance: random.Random, minute: int, losses: Losses | None = None, level: float = 0.0
    ) -> MeasuredRound:
        """Return a round whose first variant has these losses, at this logarithm of the storage's speed."""
        values: dict[Quantity, dict[int, float]] = {}
        shared, own = math.sqrt(self.shared) * self.noise, math.sqrt(1 - self.shared) * self.noise
        for variant in self.names:
            lost = (losses or {}) if variant == self.names[0] else {}
            for metric in GATING:
                apart = chance.gauss(0, self.between) + (level if metric.is_rate else -level)
                common = [apart + chance.gauss(0, shared) for _ in range(self.repeat)]
                for point in range(self.points):
                    loss = math.log1p(-lost.get(point, 0.0)) if metric.is_rate else 0.0
                    values[quantity_of(variant, point, metric)] = {
                        repeat: loss + one + chance.gauss(0, own) for repeat, one in enumerate(common)
                    }
        return MeasuredRound(minute=minute, digest="d", values=values)


def ended_round(minute: int, verdict: RoundVerdict = RoundVerdict.NO_REGRESSION, **marks: bool) -> EndedRound:
    time = "2026-03-01T03:00:00Z"
    times = {"start_time": time, "completion_time": time}
    return EndedRound.model_validate(
        {"minute": minute, "cause": Cause.SCHEDULED, **times, "verdict": verdict, "digest": "d", **marks}
    )


class Course:
    """Rounds one after the other, each judged by those that are accepted so far."""

    def __init__(self, names: Sequence[str] = ("v0",)) -> None:
        self.state = State()
        self._names = names
        self._measured: dict[int, MeasuredRound] = {}

    @property
    def accepted(self) -> list[MeasuredRound]:
        return [self._measured[ended.minute] for ended in reversed(self.state.rounds) if ended.accepted]

    @property
    def pinned(self) -> list[MeasuredRound]:
        return [self._measured[ended.minute] for ended in reversed(self.state.rounds) if ended.pinned]

    def judged(self, measured: MeasuredRound) -> RoundJudgement:
        return judge(self.accepted, self.pinned, measured, self._names, RULE)

    def add(self, *rounds: MeasuredRound) -> RoundJudgement:
        """Add rounds, and return the judgement of the last one."""
        for measured in rounds:
            judgement = self.judged(measured)
            regressed = judgement.conclusion is Conclusion.REGRESSION
            ended = ended_round(
                measured.minute,
                RoundVerdict.REGRESSED if regressed else RoundVerdict.INCONCLUSIVE,
                complete=measured.is_complete,
                accepted=is_acceptable(measured, [judgement]),
            ).model_copy(update={"digest": measured.digest})
            self.state = settle_baseline(self.state.model_copy(update={"rounds": (ended, *self.state.rounds)}))
            self._measured[measured.minute] = measured
        return judgement

    def accept(self, minute: int) -> None:
        chosen = next(ended for ended in self.state.rounds if ended.minute == minute)
        self.state = settle_baseline(start_baseline(self.state, chosen))


def quantity_of(variant: str = "v0", point: int = 0, metric: Metric = Metric.IOPS) -> Quantity:
    return Quantity(variant=variant, workload="w", point=f"w-{point:03d}", operation=Operation.READ, metric=metric)


def everywhere(loss: float, points: int) -> Losses:
    return dict.fromkeys(range(points), loss)


def drawn(seed: object) -> random.Random:
    return random.Random(str(seed))  # noqa: S311 - numbers, not secrets
