"""Evaluates a round: what its results show, compared with each other, with earlier rounds and with hypotheses."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.api.result import BenchmarkResult, Fingerprint
from plimsoll.api.suite import SuiteSpec
from plimsoll.api.suite_status import (
    ComparisonOutcome,
    ComparisonVerdict,
    HypothesisOutcome,
    HypothesisResult,
    RoundVerdict,
)
from plimsoll.measure.hypotheses.decide import decide_all
from plimsoll.measure.hypotheses.select import measured_run
from plimsoll.plan.fingerprint import leaves
from plimsoll.suite.compared import comparisons_of, rule_of
from plimsoll.suite.history.history import History
from plimsoll.suite.history.judging import RoundJudgement, judge
from plimsoll.suite.history.rounds import MeasuredRound, measured_round
from plimsoll.suite.outcomes import outcome_of_hypothesis, outcome_of_variants, outcomes_of_rounds
from plimsoll.suite.rounds.actions import Judge
from plimsoll.suite.rounds.observed import Judgement

_ENVIRONMENT = {
    "ceph": ("ceph.versions", "rook.cephVersion"),
    "kernel": ("kernel",),
    "kubernetes": ("kubernetes",),
    "plimsoll": ("plimsoll",),
}
"""Name in a round's environment -> keys of a fingerprint's context, the first of which that is known counts."""

_VERDICTS = {
    ComparisonVerdict.REGRESSION: RoundVerdict.REGRESSED,
    ComparisonVerdict.INCONCLUSIVE: RoundVerdict.INCONCLUSIVE,
    ComparisonVerdict.NO_REGRESSION: RoundVerdict.NO_REGRESSION,
}
"""The worst first."""

_HYPOTHESES = (HypothesisOutcome.REFUTED, HypothesisOutcome.UNDECIDED, HypothesisOutcome.HELD)

RunResults = Mapping[str, Sequence[BenchmarkResult]]
"""Name of a run -> its results; none if it has no numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundResults:
    """What was measured in a round.

    Attributes:
        repeat: number of planned runs of each variant.
        runs: variant -> its runs with numbers.

    """

    minute: int
    digest: str
    repeat: int
    runs: Mapping[str, RunResults]

    def measured(self) -> MeasuredRound:
        """Return one value for each run and quantity, which is all that later rounds are compared with."""
        runs = {variant: [*map(list, of_variant.values())] for variant, of_variant in self.runs.items()}
        return measured_round(minute=self.minute, digest=self.digest, repeat=self.repeat, runs=runs)


def evaluate(
    request: Judge,
    spec: SuiteSpec,
    found: RoundResults,
    *,
    accepted: Sequence[MeasuredRound],
    pinned: Sequence[MeasuredRound],
) -> Judgement:
    """Return what a round shows, given the accepted and the pinned rounds, both in their order. It takes seconds.

    Only comparisons with accepted rounds decide whether it regressed: one between variants shows what a variant costs,
    in every round alike.
    """
    measured = found.measured()
    # A round that has lost runs is a selection: somebody may have deleted the fast ones.
    whole = [one.minute for one in accepted if one.is_complete or one.digest != measured.digest]
    accepted, pinned = ([one for one in rounds if one.minute in whole] for rounds in (accepted, pinned))
    against_rounds = _against_rounds(spec, measured, accepted, pinned)
    over_time = [one for name, judgement in against_rounds.items() for one in outcomes_of_rounds(name, judgement)]
    between_variants = map(outcome_of_variants, comparisons_of(spec, _complete(found)))
    outcomes = sorted([*over_time, *between_variants], key=lambda one: [*_VERDICTS].index(one.verdict))
    counts = Counter(one.verdict for one in over_time)
    verdict = next((_VERDICTS[one] for one in _VERDICTS if counts[one]), RoundVerdict.NO_REGRESSION)
    if verdict is RoundVerdict.NO_REGRESSION and not measured.is_complete:
        verdict = RoundVerdict.INCONCLUSIVE
    return Judgement(
        request=request,
        verdict=verdict,
        is_acceptable=History().extended(measured, against_rounds.values()).rounds[-1].accepted,
        message=_message(over_time),
        environment=_environment(found),
        counts={one.value: counts[one] for one in _VERDICTS if counts[one]},
        comparisons=tuple(outcomes),
        hypotheses=_decided(spec, found),
    )


def _against_rounds(
    spec: SuiteSpec, measured: MeasuredRound, accepted: Sequence[MeasuredRound], pinned: Sequence[MeasuredRound]
) -> Mapping[str, RoundJudgement]:
    names = [variant.name for variant in spec.variants]
    return {
        one.name: judge(accepted, pinned, measured, names, rule_of(one.allow))
        for one in spec.comparisons
        if one.baseline.rounds is not None
    }


def _complete(found: RoundResults) -> Mapping[str, Sequence[list[BenchmarkResult]]]:
    return {variant: [[*results] for results in runs.values() if results] for variant, runs in found.runs.items()}


def _decided(spec: SuiteSpec, found: RoundResults) -> tuple[HypothesisResult, ...]:
    runs = [measured_run(variant, name, results) for variant, of in found.runs.items() for name, results in of.items()]
    # A hypothesis is undecided if a run is missing.
    runs += [
        measured_run(variant, f"{variant} that is missing", [])
        for variant, of in found.runs.items()
        for _ in range(found.repeat - len(of))
    ]
    decided = map(outcome_of_hypothesis, decide_all(spec.hypotheses, runs))
    return tuple(sorted(decided, key=lambda one: _HYPOTHESES.index(one.verdict)))


def _message(outcomes: Sequence[ComparisonOutcome]) -> str:
    """Return the most important outcome in a sentence."""
    if not outcomes:
        return "the suite compares no rounds"
    first = min(outcomes, key=lambda one: [*_VERDICTS].index(one.verdict))
    if first.verdict is ComparisonVerdict.NO_REGRESSION:
        return "no comparison shows a regression"
    return f"comparison {first.name}, variant {first.variant}: {first.verdict}: {first.message}"


def _environment(found: RoundResults) -> Mapping[str, str]:
    """Return the versions that the round was measured with; several if they differ between its results."""
    contexts = [dict(leaves(one.context)) for one in _fingerprints(found)]
    versions = {
        name: sorted({str(context[key]) for context in contexts for key in _known(context, keys)})
        for name, keys in _ENVIRONMENT.items()
    }
    return {name: ", ".join(of) for name, of in versions.items() if of}


def _known(context: Mapping[str, object], keys: Sequence[str]) -> Sequence[str]:
    """Return the first of the keys that the context has; none if it has none."""
    return [key for key in keys if key in context][:1]


def _fingerprints(found: RoundResults) -> Iterator[Fingerprint]:
    for runs in found.runs.values():
        for results in runs.values():
            yield from (one.status.fingerprint for one in results if one.status.fingerprint is not None)
