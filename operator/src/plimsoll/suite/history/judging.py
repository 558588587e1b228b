"""Whether a round is worse than the accepted rounds, or has drifted from the pinned ones, variant by variant."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plimsoll.measure.checks.check import first_few
from plimsoll.measure.compare.comparison import overall
from plimsoll.measure.compare.tests import Conclusion, grouped
from plimsoll.measure.compare.values import RegressionRule
from plimsoll.plan.fingerprint import Difference
from plimsoll.suite.history.baselines import baselines_of, rounds_with
from plimsoll.suite.history.family import Against, Found, judge_changes
from plimsoll.suite.history.likeness import changes_since
from plimsoll.suite.history.noise import MINIMUM_ROUNDS
from plimsoll.suite.history.rounds import MeasuredRound

_OTHER_DIGEST = "the suite measures something else than in the rounds before; this round starts a new baseline"


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantJudgement:
    """The judgement of one variant of a round.

    Attributes:
        change: the conclusion against the accepted rounds.
        drift: the conclusion against the pinned rounds; None as long as these are the accepted rounds.
        found: what was compared, means first.
        reasons: why it is not known that nothing is worse, apart from the numbers.

    """

    variant: str
    change: Conclusion
    drift: Conclusion | None = None
    found: Sequence[Found] = ()
    reasons: Sequence[str] = ()

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
    """The judgement of a round by one comparison of a suite.

    Attributes:
        accepted: number of the accepted rounds before it.
        comparable: whether it may be accepted: conditions are those of the accepted rounds, or it starts a new
            baseline.
        changes: what changed since the last accepted round and is no obstacle, such as the version of Ceph.

    """

    minute: int
    accepted: int
    comparable: bool
    changes: Sequence[Difference]
    variants: Sequence[VariantJudgement]

    @property
    def conclusion(self) -> Conclusion:
        """The conclusion of the round: one variant that regressed decides."""
        found = {one.conclusion for one in self.variants}
        order = (Conclusion.REGRESSION, Conclusion.INCONCLUSIVE)
        return next((one for one in order if one in found), Conclusion.NO_REGRESSION)


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
        variants=[_variant(one, found, [*_reasons(accepted, measured, one)]) for one in variants],
    )


def _without_numbers(
    accepted: int, measured: MeasuredRound, variants: Sequence[str], reasons: Sequence[str], *, comparable: bool
) -> RoundJudgement:
    """Return the judgement of a round that was not measured like the accepted ones."""
    return RoundJudgement(
        minute=measured.minute,
        accepted=accepted,
        comparable=comparable,
        changes=(),
        variants=[
            VariantJudgement(
                variant=one, change=Conclusion.INCONCLUSIVE, reasons=[*reasons, *measured.doubts.get(one, ())]
            )
            for one in variants
        ],
    )


def _variant(variant: str, found: Sequence[Found], reasons: Sequence[str]) -> VariantJudgement:
    own = [one for one in found if one.group[0] == variant]
    change, drift = ([one for one in own if one.against is against] for against in Against)
    return VariantJudgement(
        variant=variant,
        change=_conclusion(change, reasons),
        drift=_conclusion(drift, reasons) if drift else None,
        found=own,
        reasons=reasons,
    )


def _conclusion(found: Sequence[Found], reasons: Sequence[str]) -> Conclusion:
    means = [one.judgement.conclusion for one in found if not one.point]
    points = [one.judgement for one in found if one.point]
    doubted = bool(reasons) or not means or any(one.suspected for one in points)
    return overall(means, [one.conclusion for one in points], doubted=doubted)


def _reasons(accepted: Sequence[MeasuredRound], measured: MeasuredRound, variant: str) -> Iterator[str]:
    """Yield why a variant of the round cannot be shown to be as good as the accepted rounds."""
    yield from measured.doubts.get(variant, ())
    yield from measured.gaps.get(variant, ())
    yield from _lost(accepted, measured, variant)
    if len(accepted) < MINIMUM_ROUNDS:
        yield (
            f"accepted rounds before this one: {len(accepted)}; at least {MINIMUM_ROUNDS} show how much rounds differ "
            "without a change; measure more rounds"
        )
        return
    own = [one for one in measured.values if one.variant == variant]
    if rare := [one.point for one in own if not rounds_with([one], accepted)]:
        yield f"fewer than {MINIMUM_ROUNDS} accepted rounds have numbers of {first_few([*dict.fromkeys(rare)])}"
    for group, quantities in grouped(own, lambda quantity: quantity.group).items():
        common = [one for one in quantities if rounds_with([one], accepted)]
        if common and not rounds_with(common, accepted):
            yield f"fewer than {MINIMUM_ROUNDS} accepted rounds have numbers of all points of {group[1]}"


def _lost(accepted: Sequence[MeasuredRound], measured: MeasuredRound, variant: str) -> Iterator[str]:
    """Yield the points without numbers that enough accepted rounds have, or all if they are few."""
    counts = Counter(one for earlier in accepted for one in earlier.values if one.variant == variant)
    needed = min(MINIMUM_ROUNDS, len(accepted))
    if lost := [one.point for one, count in counts.items() if count >= needed and one not in measured.values]:
        yield f"numbers that accepted rounds have are missing at {first_few([*dict.fromkeys(lost)])}"
