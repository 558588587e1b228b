"""Whether a round is worse than accepted or pinned rounds, by how much, and trends over all rounds."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean

from plimsoll.api.names import Metric
from plimsoll.api.suite_status import PINNED_ROUNDS, WORST_FIRST, Conclusion, EndedRound
from plimsoll.measure.compare.comparison import Change, judged, overall, quantity_text
from plimsoll.measure.compare.significance import ROUND_LEVEL, LogChange, Member, assess, pass_means, weights
from plimsoll.measure.compare.values import RegressionRule, first_attempts_text, worsening
from plimsoll.measure.rates import grouped
from plimsoll.measure.statistics import CONFIDENCE, f_p_value, half_width, mean_and_variance, t_quantile
from plimsoll.measure.text import first_few
from plimsoll.plan.fingerprint import Difference
from plimsoll.suite.measured import (
    Condition,
    Group,
    MeasuredRound,
    Quantity,
    changes_since,
    differences_between,
    latest_conditions,
)

MINIMUM_ROUNDS = 3  # accepted rounds from which on the noise between rounds is known well enough to judge another one
_NOT_DIFFERENT = 0.25  # from this probability on, differences between rounds are taken to be chance


def step_between(before: Sequence[Sequence[float]], after: Sequence[Sequence[float]]) -> LogChange:
    """Return the change between the means of two groups of rounds, from the logarithms of all runs.

    All rounds of a side have the same weight. The `variances` of the change are a run's, and `trials` counts runs.
    ValueError if no side has two rounds, or a round has no run.
    """
    if max(len(before), len(after)) < 2 or not all(map(len, (before, after, *before, *after))):  # noqa: PLR2004
        raise ValueError("the noise between rounds shows in at least two rounds on one side, each with a run")
    # Sum of the squared deviations of the rounds' means, and its expectation in variances of a run.
    squares = expected = 0.0
    means, runs, unevenness = [], [], []
    for rounds in (before, after):
        means_of_rounds = [fmean(values) for values in rounds]
        means.append(fmean(means_of_rounds))
        runs.append(sum(map(len, rounds)))
        squares += math.fsum((value - means[-1]) ** 2 for value in means_of_rounds)
        inverse = math.fsum(1 / len(values) for values in rounds)
        expected += inverse * (1 - 1 / len(rounds))
        # How much larger the squared error of the mean is than if all rounds had the same number of runs.
        unevenness.append(runs[-1] * inverse / len(rounds) ** 2)
    between = (squares / expected, len(before) + len(after) - 2)
    variance, freedom = _pooled(noise_within([*before, *after]), between)
    return LogChange(
        estimate=means[1] - means[0],
        variances=(variance * unevenness[0], variance * unevenness[1]),
        trials=(runs[0], runs[1]),
        freedom=freedom,
    )


def noise_within(rounds: Sequence[Sequence[float]]) -> tuple[float, int]:
    """Return the variance of runs of the same round, and its degrees of freedom; both 0 if no round has two runs."""
    several = [(mean_and_variance(runs)[1], len(runs) - 1) for runs in rounds if len(runs) > 1]
    freedom = sum(degrees for _, degrees in several)
    return (math.fsum(variance * degrees for variance, degrees in several) / freedom if freedom else 0.0), freedom


def _pooled(within: tuple[float, int], between: tuple[float, int]) -> tuple[float, float]:
    """Return variance and freedom of a run in a round of its own; noise within counts as far as it agrees."""
    (inner, inner_freedom), (outer, outer_freedom) = within, between
    agreement = 0.0 if outer else 1.0
    if inner_freedom and inner:
        agreement = min(1.0, f_p_value(outer / inner, outer_freedom, inner_freedom) / _NOT_DIFFERENT)
    worth = inner_freedom * agreement
    return (worth * inner + outer_freedom * outer) / (worth + outer_freedom), worth + outer_freedom


_USUAL_RUNS = 3
_IMPROVED = 0.001
"""One-sided level of an improvement for each way to divide the rounds, of a workload's mean and points together."""

_Rounds = Sequence[MeasuredRound]


class Against(StrEnum):
    """The earlier rounds that a round is compared with."""

    ACCEPTED = "Accepted"
    PINNED = "Pinned"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedChange:
    """A change of a workload's mean, or of one of its several points."""

    against: Against
    group: Group
    point: str  # name of the point; empty for the mean of `points` points
    points: int
    rounds: int  # number of the earlier rounds
    comparison: Change  # with the conclusion

    @property
    def place(self) -> str:
        """The point, or the workload and the number of points of its mean."""
        workload = f"{self.group.workload} storm" if self.group.storm else self.group.workload
        return self.point or (f"{workload}, mean of {self.points} points" if self.points > 1 else workload)


def judge_changes(
    baselines: Mapping[Against, Mapping[Sequence[Quantity], _Rounds]],
    measured: MeasuredRound,
    rule: RegressionRule,
    *,
    has_own_scatter: bool = False,
) -> list[JudgedChange]:
    """Judge all changes of a round against these baselines, means first.

    A Regression is significantly worse (`ROUND_LEVEL`), by more than the threshold, and by more than several runs of
    the round scatter: one bad run of several is no regression. With `has_own_scatter`, the round may scatter more than
    those before: `NoRegression` then needs that its own runs exclude a loss beyond the threshold too.
    """
    tests: list[tuple[JudgedChange, Sequence[float], Member]] = []
    for against, workloads in baselines.items():
        for quantities, rounds in workloads.items():
            of_mean, of_point = weights(len(quantities))
            group = quantities[0].group
            unknown = Change(operation=group.operation, metric=group.metric, conclusion=Conclusion.INCONCLUSIVE)
            for point, values in _values_of(quantities, [*rounds, measured]):
                weight = of_point if point else of_mean
                member = Member(metric=group.metric, change=step_between(values[:-1], values[-1:]), weight=weight)
                known = JudgedChange(
                    against=against,
                    group=group,
                    point=point,
                    points=len(quantities),
                    rounds=len(rounds),
                    comparison=unknown,
                )
                tests.append((known, values[-1], member))
    assessments = assess([member for _, _, member in tests], ROUND_LEVEL)
    changes = []
    for (judged_change, own, member), assessment in zip(tests, assessments, strict=True):
        worsened, has_several = worsening(member.metric, assessment.change.estimate), len(own) > 1
        error = math.sqrt(mean_and_variance(own)[1] / len(own)) if has_several else 0.0
        # One standard deviation of three runs; it shrinks like the error of the mean, so that one bad run never makes
        # the mean of several worse by more.
        worse = assessment.worse and (not has_several or worsened > error * math.sqrt(_USUAL_RUNS))
        comparison = judged(judged_change.comparison, replace(assessment, worse=worse), rule)
        update: dict[str, object] = {}
        if assessment.worse and comparison.suspected:
            note = "worse, but by no more than the runs of the round scatter; request another round, or raise repeat"
            update = {"trials_needed": None, "notes": (note,)}
        elif has_own_scatter and comparison.conclusion is Conclusion.NO_REGRESSION:
            most = worsened + half_width(error, len(own) - 1, 2 * CONFIDENCE - 1) if has_several else math.inf
            if most > rule.log_threshold(member.metric):
                note = "the runs of the round do not exclude a loss beyond the threshold; request another round"
                update = {"conclusion": Conclusion.INCONCLUSIVE, "improved": False, "notes": (note,)}
        changes.append(replace(judged_change, comparison=comparison.model_copy(update=update)))
    return sorted(changes, key=lambda change: bool(change.point))


def _values_of(quantities: Sequence[Quantity], rounds: _Rounds) -> list[tuple[str, list[list[float]]]]:
    """Return the logarithms of the runs of each round: of the mean over points, unnamed, and of each of several."""
    points = {quantity.point: [measured.values[quantity] for measured in rounds] for quantity in quantities}
    means = [pass_means(of_round) for of_round in zip(*points.values(), strict=True)]
    named = [("", means), *(points.items() if len(points) > 1 else ())]
    return [(point, [[*series.values()] for series in of_rounds]) for point, of_rounds in named]


def baselines_of(
    accepted: _Rounds, pinned: _Rounds, measured: MeasuredRound, variants: Sequence[str], rule: RegressionRule
) -> Mapping[Against, Mapping[Sequence[Quantity], _Rounds]]:
    """Return the rounds by the quantities of a workload; only rounds with all of them count.

    A workload whose pinned rounds lack some of its points is compared with the first five accepted rounds that have
    them. Pinned rounds are left out if they are the accepted rounds that count.
    """
    baselines: dict[Against, dict[Sequence[Quantity], _Rounds]] = {against: {} for against in Against}
    comparable = [
        quantity for quantity in measured.values if quantity.variant in variants and rounds_with([quantity], accepted)
    ]
    for quantities in grouped(comparable, lambda quantity: quantity.group).values():
        if not (used := rounds_with(quantities, accepted)):
            continue
        current = _since_improvement(quantities, used, rule)
        complete = {earlier.minute: earlier for earlier in pinned if earlier.values.keys() >= {*quantities}}
        first = [*complete.values(), *(earlier for earlier in used if earlier.minute not in complete)][:PINNED_ROUNDS]
        baselines[Against.ACCEPTED][tuple(quantities)] = current
        if {earlier.minute for earlier in first} != {earlier.minute for earlier in current}:
            baselines[Against.PINNED][tuple(quantities)] = first
    return baselines


def rounds_with(quantities: Iterable[Quantity], rounds: _Rounds) -> _Rounds:
    """Return the rounds that have all these quantities; none if they are too few."""
    complete = [earlier for earlier in rounds if earlier.values.keys() >= {*quantities}]
    return complete if len(complete) >= MINIMUM_ROUNDS else []


def _since_improvement(quantities: Sequence[Quantity], rounds: _Rounds, rule: RegressionRule) -> _Rounds:
    """Return the rounds since the last clear improvement of the mean over these points, or of one of them."""
    values = [of_rounds for _, of_rounds in _values_of(quantities, rounds)]
    while split := _last_step(values, quantities[0].metric, rule):
        rounds, values = rounds[split:], [of_rounds[split:] for of_rounds in values]
    return rounds


def _last_step(tested: Sequence[Sequence[Sequence[float]]], metric: Metric, rule: RegressionRule) -> int:
    """Return after how many rounds one of these became clearly better, most clearly of all; 0 if none did."""
    p_values = []
    for rounds in tested:
        means = [fmean(runs) for runs in rounds]
        p_values += [
            (step_between(rounds[:split], rounds[split:]).p_value() / 2, split)
            for split in range(MINIMUM_ROUNDS, len(rounds) - MINIMUM_ROUNDS + 1)
            # The later rounds must be so much better that losing the gain would matter.
            if worsening(metric, fmean(means[split:]) - fmean(means[:split])) < -rule.log_threshold(metric)
        ]
    p_value, split = min(p_values, default=(1.0, 0))
    return split if p_value < _IMPROVED / len(tested) else 0


_OTHER_DIGEST = "the suite measures something else than in the rounds before; this round starts a new baseline"


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantJudgement:
    """The judgement of one variant of a round."""

    variant: str
    change: Conclusion  # the conclusion against the accepted rounds
    drift: Conclusion | None = None  # against the pinned rounds; None as long as these are the accepted rounds
    judged: Sequence[JudgedChange] = ()  # what was compared, means first
    reasons: Sequence[str] = ()  # why it is not known that nothing is worse
    # Whether the first attempts decide, because the attempts that count look better: only repeating made them so.
    is_of_first_attempts: bool = False

    @property
    def conclusion(self) -> Conclusion:
        """The conclusion of both: one regression decides."""
        return Conclusion.REGRESSION if self.drift is Conclusion.REGRESSION else self.change

    @property
    def is_drift(self) -> bool | None:
        """Whether a regression is slow drift, so one from the pinned rounds only; None without a regression."""
        return self.change is not Conclusion.REGRESSION if self.conclusion is Conclusion.REGRESSION else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundJudgement:
    """The judgement of a round by one comparison of a suite."""

    minute: int
    accepted: int  # number of the accepted rounds before it
    # Whether it may be accepted: its conditions do not differ from the accepted rounds, or it starts a new baseline.
    comparable: bool
    # Changes since the last accepted round that are reported but accepted, such as a new version of Ceph.
    changes: Sequence[Difference]
    variants: Sequence[VariantJudgement]

    @property
    def change_texts(self) -> list[str]:
        changes = (f"{change.key}: {change.baseline} -> {change.candidate}" for change in self.changes)
        return [f"changed since the last accepted round: {change}" for change in changes]

    @property
    def conclusion(self) -> Conclusion:
        """The conclusion of the round: one variant that regressed decides."""
        conclusions = (variant.conclusion for variant in self.variants)
        return min(conclusions, key=WORST_FIRST.index, default=Conclusion.NO_REGRESSION)


def judge(
    accepted: _Rounds, pinned: _Rounds, measured: MeasuredRound, variants: Sequence[str], rule: RegressionRule
) -> RoundJudgement:
    """Judge a round on the attempts that count and on the first ones; the worse judgement of each variant counts."""
    counted = _judge(accepted, pinned, measured, variants, rule)
    if all(each.first_values is None for each in (*accepted, measured)):
        return counted
    earlier, kept, (now,) = ([it.on_first_attempts for it in rounds] for rounds in (accepted, pinned, [measured]))
    of_first = _judge(earlier, kept, now, variants, rule, has_own_scatter=measured.first_values is not None)
    judgements = [*counted.variants]
    for index, first in enumerate(of_first.variants):
        conclusion = judgements[index].conclusion
        if WORST_FIRST.index(first.conclusion) < WORST_FIRST.index(conclusion):
            reason = first_attempts_text("conclusion", first.conclusion, conclusion)
            judgements[index] = replace(first, reasons=(reason, *first.reasons), is_of_first_attempts=True)
    return replace(counted, variants=judgements)


def _judge(
    accepted: _Rounds,
    pinned: _Rounds,
    measured: MeasuredRound,
    variants: Sequence[str],
    rule: RegressionRule,
    *,
    has_own_scatter: bool = False,
) -> RoundJudgement:
    measures_the_same = not accepted or accepted[-1].digest == measured.digest
    named, obstacles = changes_since(accepted, measured) if measures_the_same else ([], [_OTHER_DIGEST])
    changed: list[JudgedChange] = []
    if not obstacles:
        trusted = [variant for variant in variants if not measured.doubts.get(variant)]
        baselines = baselines_of(accepted, pinned, measured, trusted, rule)
        changed = judge_changes(baselines, measured, rule, has_own_scatter=has_own_scatter)
    judgements = []
    for variant in variants:
        changes = [change for change in changed if change.group.variant == variant]
        known = measured.doubts.get(variant, ()) if obstacles else _reasons(accepted, measured, variant)
        reasons = [*obstacles, *known]
        recent, drift = ([change for change in changes if change.against is against] for against in Against)
        judgement = VariantJudgement(
            variant=variant,
            change=_conclusion(recent, reasons),
            drift=_conclusion(drift, reasons) if drift else None,
            judged=changes,
            reasons=reasons,
        )
        if judgement.conclusion is Conclusion.INCONCLUSIVE:
            judgement = replace(judgement, reasons=[*reasons, *_open_questions(changes)])
        judgements.append(judgement)
    return RoundJudgement(
        minute=measured.minute,
        accepted=len(accepted),
        comparable=not obstacles or not measures_the_same,
        changes=() if obstacles else named,
        variants=judgements,
    )


def _conclusion(changes: Sequence[JudgedChange], reasons: Sequence[str]) -> Conclusion:
    means = [change.comparison.conclusion for change in changes if not change.point]
    points = [change.comparison for change in changes if change.point]
    doubted = bool(reasons) or not means or any(point.suspected for point in points)
    return overall(means, [point.conclusion for point in points], doubted=doubted)


def _open_questions(changes: Sequence[JudgedChange]) -> Sequence[str]:
    questions: dict[str, str] = {}
    for change in changes:
        comparison, needed = change.comparison, change.comparison.trials_needed
        decides = f"about {needed} runs on each side would decide it at this scatter" if needed else ""
        if (why := next(iter(comparison.notes), decides)) and (comparison.suspected or not change.point):
            # Against the accepted rounds before the pinned ones.
            questions.setdefault(f"{change.place} {quantity_text(comparison.operation, comparison.metric)}", why)
    return [f"{what}: {why}" for what, why in questions.items()]


def _reasons(accepted: Sequence[MeasuredRound], measured: MeasuredRound, variant: str) -> Iterator[str]:
    """Yield why a variant of the round cannot be shown to be as good as the accepted rounds, apart from the numbers."""
    yield from measured.doubts.get(variant, ())
    yield from measured.gaps.get(variant, ())
    # The points without numbers that enough accepted rounds have, or all if they are few.
    counts = Counter(quantity for earlier in accepted for quantity in earlier.values if quantity.variant == variant)
    needed = min(MINIMUM_ROUNDS, len(accepted))
    if lost := [it.point for it, count in counts.items() if count >= needed and it not in measured.values]:
        yield f"numbers that accepted rounds have are missing at {_points(lost)}"
    if len(accepted) < MINIMUM_ROUNDS:
        yield (
            f"accepted rounds before this one: {len(accepted)}; at least {MINIMUM_ROUNDS} show how much rounds differ "
            "without a change; measure more rounds"
        )
        return
    of_variant = [quantity for quantity in measured.values if quantity.variant == variant]
    comparable = {quantity for quantity in of_variant if rounds_with([quantity], accepted)}
    if rare := [quantity.point for quantity in of_variant if quantity not in comparable]:
        yield f"fewer than {MINIMUM_ROUNDS} accepted rounds have numbers of {_points(rare)}"
    for group, quantities in grouped(of_variant, lambda quantity: quantity.group).items():
        common = comparable.intersection(quantities)
        if common and not rounds_with(common, accepted):
            yield f"fewer than {MINIMUM_ROUNDS} accepted rounds have numbers of all points of {group.workload}"


def _points(names: Sequence[str]) -> str:
    return first_few([*dict.fromkeys(names)])


def is_acceptable(measured: MeasuredRound, judgements: Iterable[RoundJudgement]) -> bool:
    """Whether later rounds may be compared with it: complete, not worse, not in doubt, not good by repetition only."""
    is_sound = measured.is_complete and not any(measured.doubts.values())
    return is_sound and all(
        judgement.comparable
        and judgement.conclusion is not Conclusion.REGRESSION
        and not any(variant.is_of_first_attempts for variant in judgement.variants)
        for judgement in judgements
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendRow:
    """One round of a trend."""

    round: EndedRound
    estimate: float  # geometric mean over the runs of the round: operations or bytes per second, or nanoseconds
    # Its 95 % confidence interval, from the noise of runs within all rounds of the trend, without noise between rounds.
    # None if no round has two runs.
    interval: tuple[float, float] | None
    changes: Sequence[Difference]  # since the round before that has this point (`differences_between`)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """One quantity over the rounds that have numbers of it."""

    quantity: Quantity
    rows: Sequence[TrendRow]


def trends_of(rounds: Sequence[tuple[EndedRound, MeasuredRound]]) -> list[Trend]:
    """Return the trends of all quantities of rounds in the order of time, in the order of their first appearance."""
    quantities = dict.fromkeys(quantity for _, measured in rounds for quantity in measured.values)
    # Of each round, by variant and point: what changed since the round before that has them.
    changes: list[Mapping[tuple[str, str], Sequence[Difference]]] = []
    before: dict[tuple[str, str], Condition] = {}
    for _, measured in rounds:
        after = latest_conditions([measured])
        changes.append({key: differences_between(before[key], after[key]) for key in after if key in before})
        before.update(after)
    trends = []
    for quantity in quantities:
        values = [
            (ended, series, changed.get((quantity.variant, quantity.point), ()))
            for (ended, measured), changed in zip(rounds, changes, strict=True)
            if (series := measured.values.get(quantity))
        ]
        variance, freedom = noise_within([[*series.values()] for _, series, _ in values])
        quantile = t_quantile((1 + CONFIDENCE) / 2, freedom) if freedom else 0.0
        rows = []
        for ended, series, changed in values:
            mean, half = fmean(series.values()), quantile * math.sqrt(variance / len(series))
            interval = (math.exp(mean - half), math.exp(mean + half)) if freedom else None
            rows.append(TrendRow(round=ended, estimate=math.exp(mean), interval=interval, changes=changed))
        trends.append(Trend(quantity=quantity, rows=rows))
    return trends
