"""Whether a round is worse than accepted or pinned rounds, and trends over all rounds."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from plimsoll.api.suite_status import WORST_FIRST, Conclusion, EndedRound
from plimsoll.measure.compare.comparison import overall, quantity_text
from plimsoll.measure.compare.values import RegressionRule, first_attempts_text
from plimsoll.measure.rates import grouped
from plimsoll.measure.statistics import CONFIDENCE, t_quantile
from plimsoll.measure.text import first_few
from plimsoll.plan.fingerprint import Difference
from plimsoll.suite.changes import (
    MINIMUM_ROUNDS,
    Against,
    JudgedChange,
    baselines_of,
    judge_changes,
    noise_within,
    rounds_with,
)
from plimsoll.suite.measured import (
    Condition,
    MeasuredRound,
    Quantity,
    changes_since,
    differences_between,
    latest_conditions,
)

_OTHER_DIGEST = "the suite measures something else than in the rounds before; this round starts a new baseline"


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantJudgement:
    """The judgement of one variant of a round."""

    variant: str
    change: Conclusion  # the conclusion against the accepted rounds
    # The conclusion against the pinned rounds; None as long as these are the accepted rounds.
    drift: Conclusion | None = None
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
        """Whether a regression is slow drift, so one from the pinned rounds only; None without a regression.

        `drift` of a `ComparisonOutcome` has the same values.
        """
        if self.conclusion is not Conclusion.REGRESSION:
            return None
        return self.change is not Conclusion.REGRESSION


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
        return [
            f"changed since the last accepted round: {change.key}: {change.baseline} -> {change.candidate}"
            for change in self.changes
        ]

    @property
    def conclusion(self) -> Conclusion:
        """The conclusion of the round: one variant that regressed decides."""
        conclusions = (variant.conclusion for variant in self.variants)
        return min(conclusions, key=WORST_FIRST.index, default=Conclusion.NO_REGRESSION)


def judge(
    accepted: Sequence[MeasuredRound],
    pinned: Sequence[MeasuredRound],
    measured: MeasuredRound,
    variants: Sequence[str],
    rule: RegressionRule,
) -> RoundJudgement:
    """Judge a round against the accepted rounds, and against the pinned ones among them, both in their order.

    It is judged on the attempts that count, and on the first attempts. Of each variant the worse judgement is returned.
    """
    counted = _judge(accepted, pinned, measured, variants, rule)
    if all(each.first_values is None for each in (*accepted, measured)):
        return counted
    of_first = _judge(
        [each.on_first_attempts for each in accepted],
        [each.on_first_attempts for each in pinned],
        measured.on_first_attempts,
        variants,
        rule,
        has_own_scatter=measured.first_values is not None,
    )
    judgements = []
    for now, first in zip(counted.variants, of_first.variants, strict=True):
        worse = now
        if WORST_FIRST.index(first.conclusion) < WORST_FIRST.index(now.conclusion):
            reason = first_attempts_text("conclusion", first.conclusion, now.conclusion)
            worse = replace(first, reasons=(reason, *first.reasons), is_of_first_attempts=True)
        judgements.append(worse)
    return replace(counted, variants=judgements)


def _judge(
    accepted: Sequence[MeasuredRound],
    pinned: Sequence[MeasuredRound],
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
    """Return why means, and points that may be worse, are inconclusive, or what would decide them."""
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
    if lost := [
        quantity.point for quantity, count in counts.items() if count >= needed and quantity not in measured.values
    ]:
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
    """Whether later rounds may be compared with a round: it is complete, did not regress, and nothing is in doubt.

    A round that is as good as the accepted ones only because attempts were repeated would lower what later ones have to
    reach.
    """
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
    # Geometric mean over the runs of the round, in the unit of the metric: operations or bytes per second, or
    # nanoseconds.
    estimate: float
    # The 95 % confidence interval of the estimate in the same unit, from the noise of runs within all rounds of the
    # trend; it does not contain noise between rounds. None if no round has two runs.
    interval: tuple[float, float] | None
    # What changed since the round before that has this point: its identity, versions such as `ceph.versions` and
    # `kernel`, the hardware, and `nodes` (lists of names). Empty if nothing did.
    changes: Sequence[Difference]


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
