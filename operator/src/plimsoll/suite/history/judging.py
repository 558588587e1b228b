"""Whether a round is worse than the accepted rounds, or has drifted from the pinned ones, variant by variant."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.measure.compare.conclusion import Conclusion
from plimsoll.measure.compare.family import grouped
from plimsoll.measure.compare.metrics import RegressionRule
from plimsoll.measure.compare.overall import overall
from plimsoll.measure.wording import first_few
from plimsoll.plan.fingerprint import Difference
from plimsoll.suite.history.family import Against, Found, Runs, judge_changes
from plimsoll.suite.history.likeness import changes_since
from plimsoll.suite.history.noise import MINIMUM_ROUNDS
from plimsoll.suite.history.rounds import MeasuredRound, Quantity

_OTHER_DIGEST = "the suite measures something else than in the rounds before; this round starts a new baseline"


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantJudgement:
    """The judgement of one variant of a round.

    Attributes:
        conclusion: of all accepted rounds and of drift: one regression decides.
        drift: against the pinned rounds; None as long as these are all accepted rounds.
        found: what was compared, means first.
        reasons: why it is not known that nothing is worse, apart from the numbers.

    """

    variant: str
    conclusion: Conclusion
    drift: Conclusion | None
    found: Sequence[Found]
    reasons: Sequence[str]


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
    baselines = {Against.ACCEPTED: accepted}
    if len(pinned) < len(accepted):
        baselines[Against.PINNED] = pinned
    trusted = [variant for variant in variants if not measured.doubts.get(variant)]
    found = judge_changes({against: _runs(rounds, measured, trusted) for against, rounds in baselines.items()}, rule)
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
            VariantJudgement(variant=one, conclusion=Conclusion.INCONCLUSIVE, drift=None, found=(), reasons=reasons)
            for one in variants
        ],
    )


def _runs(rounds: Sequence[MeasuredRound], measured: MeasuredRound, variants: Sequence[str]) -> Mapping[Quantity, Runs]:
    """Return the runs of what enough rounds have; of a workload, only rounds with all of its points."""
    known = [one for one in measured.values if one.variant in variants and _rounds_with([one], rounds)]
    found: dict[Quantity, Runs] = {}
    for quantities in grouped(known, lambda quantity: quantity.group).values():
        used = _rounds_with(quantities, rounds)
        for one in quantities if used else ():
            found[one] = Runs(earlier=[earlier.values[one] for earlier in used], judged=measured.values[one])
    return found


def _rounds_with(quantities: Sequence[Quantity], rounds: Sequence[MeasuredRound]) -> Sequence[MeasuredRound]:
    """Return the rounds that have all these quantities; none if they are too few."""
    found = [one for one in rounds if all(quantity in one.values for quantity in quantities)]
    return found if len(found) >= MINIMUM_ROUNDS else []


def _variant(variant: str, found: Sequence[Found], reasons: Sequence[str]) -> VariantJudgement:
    own = [one for one in found if one.group[0] == variant]
    by_baseline = {against: _conclusion([one for one in own if one.against is against], reasons) for against in Against}
    drift = by_baseline[Against.PINNED] if any(one.against is Against.PINNED for one in own) else None
    conclusion = Conclusion.REGRESSION if drift is Conclusion.REGRESSION else by_baseline[Against.ACCEPTED]
    return VariantJudgement(variant=variant, conclusion=conclusion, drift=drift, found=own, reasons=reasons)


def _conclusion(found: Sequence[Found], reasons: Sequence[str]) -> Conclusion:
    means = [one.judgement.conclusion for one in found if not one.point]
    points = [one.judgement for one in found if one.point]
    doubted = bool(reasons) or not means or any(one.suspected for one in points)
    return overall(means, [one.conclusion for one in points], doubted=doubted)


def _reasons(accepted: Sequence[MeasuredRound], measured: MeasuredRound, variant: str) -> Iterator[str]:
    """Yield why a variant of the round cannot be shown to be as good as the accepted rounds."""
    yield from measured.doubts.get(variant, ())
    yield from measured.gaps.get(variant, ())
    if len(accepted) < MINIMUM_ROUNDS:
        yield (
            f"accepted rounds before this one: {len(accepted)}; at least {MINIMUM_ROUNDS} show how much rounds differ "
            "without a change; measure more rounds"
        )
        return
    own = [one for one in measured.values if one.variant == variant]
    if rare := [one.point for one in own if not _rounds_with([one], accepted)]:
        yield f"fewer than {MINIMUM_ROUNDS} accepted rounds have numbers of {first_few([*dict.fromkeys(rare)])}"
    for group, quantities in grouped(own, lambda quantity: quantity.group).items():
        common = [one for one in quantities if _rounds_with([one], accepted)]
        if common and not _rounds_with(common, accepted):
            yield f"fewer than {MINIMUM_ROUNDS} accepted rounds have numbers of all points of {group[1]}"
    expected = [one for one in accepted[-1].values if one.variant == variant]
    if lost := [one.point for one in expected if one not in measured.values]:
        yield f"numbers that the last accepted round has are missing at {first_few([*dict.fromkeys(lost)])}"
