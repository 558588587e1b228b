"""Whether a round is worse than accepted or pinned rounds, which rounds these are, and trends over all rounds."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from plimsoll.api.suite_status import PINNED_ROUNDS, Conclusion
from plimsoll.measure.checks.check import first_few
from plimsoll.measure.compare.comparison import overall
from plimsoll.measure.compare.tests import grouped
from plimsoll.measure.compare.values import RegressionRule
from plimsoll.measure.statistics import CONFIDENCE, t_quantile
from plimsoll.plan.fingerprint import Difference
from plimsoll.suite.history.changes import (
    MINIMUM_ROUNDS,
    Against,
    Found,
    baselines_of,
    judge_changes,
    noise_within,
    rounds_with,
)
from plimsoll.suite.history.rounds import (
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
    found: Sequence[Found] = ()  # what was compared, means first
    reasons: Sequence[str] = ()  # why it is not known that nothing is worse, apart from the numbers

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
    # Whether it may be accepted: conditions are those of the accepted rounds, or it starts a new baseline.
    comparable: bool
    # What changed since the last accepted round and is no obstacle, such as the version of Ceph.
    changes: Sequence[Difference]
    variants: Sequence[VariantJudgement]

    @property
    def conclusion(self) -> Conclusion:
        """The conclusion of the round: one variant that regressed decides."""
        conclusions = {variant.conclusion for variant in self.variants}
        order = (Conclusion.REGRESSION, Conclusion.INCONCLUSIVE)
        return next((conclusion for conclusion in order if conclusion in conclusions), Conclusion.NO_REGRESSION)


def judge(
    accepted: Sequence[MeasuredRound],
    pinned: Sequence[MeasuredRound],
    measured: MeasuredRound,
    variants: Sequence[str],
    rule: RegressionRule,
) -> RoundJudgement:
    """Judge a round against the accepted rounds, and against the pinned ones among them, both in their order."""
    if accepted and accepted[-1].digest != measured.digest:
        return _without_numbers(len(accepted), measured, variants, [_OTHER_DIGEST], comparable=True)
    changes = changes_since(accepted, measured)
    if changes.obstacles:
        return _without_numbers(len(accepted), measured, variants, changes.obstacles, comparable=False)
    trusted = [variant for variant in variants if not measured.doubts.get(variant)]
    found = judge_changes(baselines_of(accepted, pinned, measured, trusted, rule), rule)
    return RoundJudgement(
        minute=measured.minute,
        accepted=len(accepted),
        comparable=True,
        changes=changes.named,
        variants=[_variant(variant, found, [*_reasons(accepted, measured, variant)]) for variant in variants],
    )


def _without_numbers(
    accepted: int, measured: MeasuredRound, variants: Sequence[str], reasons: Sequence[str], *, comparable: bool
) -> RoundJudgement:
    """Return the judgement of a round that was not measured like the accepted ones."""
    doubts = {variant: [*reasons, *measured.doubts.get(variant, ())] for variant in variants}
    return RoundJudgement(
        minute=measured.minute,
        accepted=accepted,
        comparable=comparable,
        changes=(),
        variants=[
            VariantJudgement(variant=variant, change=Conclusion.INCONCLUSIVE, reasons=doubts[variant])
            for variant in variants
        ],
    )


def _variant(variant: str, found: Sequence[Found], reasons: Sequence[str]) -> VariantJudgement:
    of_variant = [change for change in found if change.group[0] == variant]
    accepted, pinned = ([change for change in of_variant if change.against is against] for against in Against)
    return VariantJudgement(
        variant=variant,
        change=_conclusion(accepted, reasons),
        drift=_conclusion(pinned, reasons) if pinned else None,
        found=of_variant,
        reasons=reasons,
    )


def _conclusion(found: Sequence[Found], reasons: Sequence[str]) -> Conclusion:
    means = [change.judgement.conclusion for change in found if not change.point]
    points = [change.judgement for change in found if change.point]
    doubted = bool(reasons) or not means or any(judgement.suspected for judgement in points)
    return overall(means, [judgement.conclusion for judgement in points], doubted=doubted)


def _reasons(accepted: Sequence[MeasuredRound], measured: MeasuredRound, variant: str) -> Iterator[str]:
    """Yield why a variant of the round cannot be shown to be as good as the accepted rounds."""
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
    known = {quantity for quantity in of_variant if rounds_with([quantity], accepted)}
    if rare := [quantity.point for quantity in of_variant if quantity not in known]:
        yield f"fewer than {MINIMUM_ROUNDS} accepted rounds have numbers of {_points(rare)}"
    for group, quantities in grouped(of_variant, lambda quantity: quantity.group).items():
        common = known.intersection(quantities)
        if common and not rounds_with(common, accepted):
            yield f"fewer than {MINIMUM_ROUNDS} accepted rounds have numbers of all points of {group[1]}"


def _points(names: Sequence[str]) -> str:
    return first_few([*dict.fromkeys(names)])


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRound:
    """A round of the history."""

    measured: MeasuredRound
    regressed: bool = False  # whether a comparison found a regression; such a round counts only if the user accepted it
    accepted: bool = False  # whether it is a part of the baseline
    pinned: bool = False  # whether drift is tested against it


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The rounds of one suite, in their order."""

    rounds: tuple[JudgedRound, ...] = ()

    @property
    def accepted(self) -> Sequence[MeasuredRound]:
        """The accepted rounds."""
        return [judged.measured for judged in self.rounds if judged.accepted]

    @property
    def pinned(self) -> Sequence[MeasuredRound]:
        """The pinned rounds."""
        return [judged.measured for judged in self.rounds if judged.pinned]

    def extended(self, measured: MeasuredRound, judgements: Iterable[RoundJudgement]) -> "History":
        """Return the history with one more round, as the comparisons of the suite judged it.

        Without any comparison with accepted rounds, every complete round is accepted.
        """
        found = [*judgements]
        regressed = any(judgement.conclusion is Conclusion.REGRESSION for judgement in found)
        comparable = all(judgement.comparable for judgement in found) and not any(measured.doubts.values())
        accepted = measured.is_complete and comparable and not regressed
        starts_anew = accepted and any(earlier.digest != measured.digest for earlier in self.accepted)
        earlier = map(_dismissed, self.rounds) if starts_anew else self.rounds
        return History(
            rounds=_pinned((*earlier, JudgedRound(measured=measured, regressed=regressed, accepted=accepted)))
        )

    def accept(self, minute: int) -> "History":
        """Return the history whose baseline starts with the round of that minute, whatever it showed.

        Raises:
            ValueError: there is no such round, or it lacks runs.

        """
        minutes = [judged.measured.minute for judged in self.rounds]
        if minute not in minutes:
            raise ValueError(f"there is no round {minute}; the rounds are {', '.join(map(str, minutes)) or 'none'}")
        index = minutes.index(minute)
        if not self.rounds[index].measured.is_complete:
            raise ValueError(f"round {minute} lacks runs; complete it first")
        later = [replace(judged, pinned=False) for judged in self.rounds[index + 1 :]]
        chosen = replace(self.rounds[index], accepted=True, pinned=False)
        return History(rounds=_pinned((*map(_dismissed, self.rounds[:index]), chosen, *later)))


def _dismissed(judged: JudgedRound) -> JudgedRound:
    return replace(judged, accepted=False, pinned=False)


def _pinned(rounds: tuple[JudgedRound, ...]) -> tuple[JudgedRound, ...]:
    """Return the rounds with the first accepted ones pinned."""
    first = [judged.measured.minute for judged in rounds if judged.accepted][:PINNED_ROUNDS]
    return tuple(replace(judged, pinned=judged.accepted and judged.measured.minute in first) for judged in rounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendRow:
    """One round of a trend."""

    minute: int  # of the round's start, since the epoch
    digest: str  # of what the suite measured; rows of different digests are not to be compared
    # Geometric mean over the runs of the round, in the unit of the metric: operations or bytes per second, or
    # nanoseconds.
    estimate: float
    # The 95 % confidence interval of the estimate in the same unit, from the noise of runs within all rounds of the
    # trend; it does not contain noise between rounds. None if no round has two runs.
    interval: tuple[float, float] | None
    accepted: bool  # whether the round is a part of the baseline
    pinned: bool  # whether drift is tested against it
    regressed: bool  # whether a comparison found a regression in the round, maybe at another point
    # What changed since the round before that has this point: its identity, versions such as `ceph.versions` and
    # `kernel`, the hardware, and `nodes` (lists of names). Empty if nothing did.
    changes: Sequence[Difference]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """One quantity over the rounds that have numbers of it."""

    quantity: Quantity
    rows: Sequence[TrendRow]


def trends_of(rounds: Sequence[JudgedRound]) -> list[Trend]:
    """Return the trends of all quantities of rounds in the order of time, in the order of their first appearance."""
    quantities = dict.fromkeys(quantity for judged in rounds for quantity in judged.measured.values)
    changes: list[_Changes] = []
    before: dict[tuple[str, str], Condition] = {}
    for judged in rounds:
        after = latest_conditions([judged.measured])
        changes.append({key: differences_between(before[key], after[key]) for key in after if key in before})
        before.update(after)
    return [Trend(quantity=quantity, rows=_rows(quantity, rounds, changes)) for quantity in quantities]


_Changes = Mapping[tuple[str, str], Sequence[Difference]]
"""Variant and point -> what changed since the round before that has them."""


def _rows(quantity: Quantity, rounds: Sequence[JudgedRound], changes: Sequence[_Changes]) -> list[TrendRow]:
    known = [
        (judged, series, changed.get((quantity.variant, quantity.point), ()))
        for judged, changed in zip(rounds, changes, strict=True)
        if (series := judged.measured.values.get(quantity))
    ]
    variance, freedom = noise_within([[*series.values()] for _, series, _ in known])
    quantile = t_quantile((1 + CONFIDENCE) / 2, freedom) if freedom else 0.0
    rows = []
    for judged, series, changed in known:
        mean, half = fmean(series.values()), quantile * math.sqrt(variance / len(series))
        rows.append(
            TrendRow(
                minute=judged.measured.minute,
                digest=judged.measured.digest,
                estimate=math.exp(mean),
                interval=(math.exp(mean - half), math.exp(mean + half)) if freedom else None,
                accepted=judged.accepted,
                pinned=judged.pinned,
                regressed=judged.regressed,
                changes=changed,
            )
        )
    return rows
