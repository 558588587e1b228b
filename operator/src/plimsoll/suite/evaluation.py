"""Evaluates a round: what its results show, compared with each other, with earlier rounds and with hypotheses."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plimsoll.api.result import BenchmarkResult, Fingerprint
from plimsoll.api.suite import Allowance, SuiteComparison, SuiteSpec
from plimsoll.api.suite_status import (
    MAX_OUTCOME_CHARACTERS,
    ComparisonOutcome,
    ComparisonVerdict,
    HypothesisOutcome,
    HypothesisResult,
    RoundVerdict,
)
from plimsoll.measure.checks.check import first_few, quote
from plimsoll.measure.compare.comparison import (
    change_text,
    compare,
    mean_text,
    place_of,
    quantity_text,
    repeated_too_often,
)
from plimsoll.measure.compare.noise import RepeatsDifferError, as_one_run
from plimsoll.measure.compare.sides import Change, Comparison, ratios_of
from plimsoll.measure.compare.tests import MINIMUM_TRIALS, Conclusion
from plimsoll.measure.compare.values import Metric, Pair, RegressionRule, match_points
from plimsoll.measure.hypotheses.decide import Decision, decide_all
from plimsoll.measure.hypotheses.select import measured_run
from plimsoll.plan.fingerprint import Difference, Likeness, leaves, likeness_of
from plimsoll.suite.children import unexplained
from plimsoll.suite.history.changes import Against, Found
from plimsoll.suite.history.judging import History, RoundJudgement, VariantJudgement, judge
from plimsoll.suite.history.rounds import MeasuredRound, measured_round
from plimsoll.suite.merging import FieldChange, changes_between
from plimsoll.suite.rounds.actions import Judge
from plimsoll.suite.rounds.observed import Judgement

_PERCENT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantComparison:
    """A comparison of a suite.

    Attributes:
        comparison: None if a variant has no complete run, or runs of a variant measured different things.
        unexplained: differences in identity that the variants do not set.
        doubts: other reasons not to rely on any of these runs.
        missing: planned runs of both variants that are not complete.
        of_runs: whether each run counts as a trial; otherwise the first run of each variant is compared.

    """

    name: str
    baseline: str
    candidate: str
    comparison: Comparison | None
    likeness: Likeness
    unexplained: Sequence[Difference]
    doubts: Sequence[str]
    missing: int
    of_runs: bool

    @property
    def conclusion(self) -> Conclusion:
        """The conclusion; Inconclusive if the variants were, or may have been, measured under different conditions.

        Runs that are missing could show a regression, but cannot disprove one.
        """
        if self.comparison is None or self.unexplained or self.doubts:
            return Conclusion.INCONCLUSIVE
        found = self.comparison.conclusion
        return Conclusion.INCONCLUSIVE if self.missing and found is Conclusion.NO_REGRESSION else found


def comparisons_of(spec: SuiteSpec, runs: Mapping[str, Sequence[list[BenchmarkResult]]]) -> list[VariantComparison]:
    """Return the comparisons between variants of a suite; `runs` are the complete ones of each variant."""
    return [
        _compared(spec, one, sides, (runs[sides[0]], runs[sides[1]]))
        for one in spec.comparisons
        if (sides := one.variants) is not None
    ]


def _compared(
    spec: SuiteSpec,
    asked: SuiteComparison,
    names: tuple[str, str],
    runs: tuple[Sequence[list[BenchmarkResult]], Sequence[list[BenchmarkResult]]],
) -> VariantComparison:
    (baseline, candidate), (ours, theirs) = names, runs
    of_runs = min(len(ours), len(theirs)) >= MINIMUM_TRIALS
    differing: list[str] = []
    try:
        sides = (as_one_run(ours), as_one_run(theirs)) if of_runs else (_first(ours), _first(theirs))
    except RepeatsDifferError as error:
        sides, differing = ([], []), [str(error)]
    # What the variants change may be a parameter, which does not make it another point here.
    matching = match_points(*sides, also_by_name=True)
    likeness = likeness_of(matching.pairs)
    return VariantComparison(
        name=asked.name,
        baseline=baseline,
        candidate=candidate,
        comparison=compare(matching, rule_of(asked.allow)) if ours and theirs and not differing else None,
        likeness=likeness,
        unexplained=_unexplained(changes_between(spec, baseline, candidate), matching.pairs),
        doubts=[*differing, *_unknown(likeness), *(doubt for run in (*ours, *theirs) for doubt in _repeated(run))],
        missing=2 * spec.repeat - len(ours) - len(theirs),
        of_runs=of_runs,
    )


def _unknown(likeness: Likeness) -> Iterator[str]:
    if likeness.unknown:
        yield f"without fingerprints, nothing shows that only the variants differ: {first_few(likeness.unknown, 1)}"


def _repeated(run: Sequence[BenchmarkResult]) -> Iterator[str]:
    """Yield that a run repeated too many trials; the trials that stand for whole runs do not show it."""
    yield from repeated_too_often(run[0].spec.run if run else "", run)


def _first(runs: Sequence[list[BenchmarkResult]]) -> list[BenchmarkResult]:
    return runs[0] if runs else []


def _unexplained(changes: Sequence[FieldChange], pairs: Sequence[Pair]) -> list[Difference]:
    """Return the differences in identity that do not follow from these changes, each once."""
    found: list[Difference] = []
    for pair in pairs:
        known = likeness_of([pair]).differences
        for one in unexplained(changes, pair.baseline.spec.workload, [difference for difference, _ in known]):
            if one not in found:
                found.append(one)
    return found


def rule_of(allow: Allowance) -> RegressionRule:
    """Return the rule of what a comparison tolerates."""
    return RegressionRule(rate=allow.rate_percent / _PERCENT, latency=allow.latency_percent / _PERCENT)


_SEVERITY = (Conclusion.REGRESSION, Conclusion.INCONCLUSIVE, Conclusion.NO_REGRESSION)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Deciding:
    """One change of a comparison.

    Attributes:
        place: what changed, such as `reads, mean of 4 points read iops`.
        ratio: new value divided by the old one; None if it cannot be computed.
        low: lower end of its 95 % confidence interval.
        high: upper end of it.

    """

    place: str
    metric: Metric
    ratio: float | None
    low: float | None
    high: float | None
    conclusion: Conclusion

    @property
    def worsening(self) -> float:
        """How much worse it is, for an order; negative if it is better."""
        if not self.ratio:
            return -math.inf
        return -math.log(self.ratio) if self.metric.is_rate else math.log(self.ratio)

    @property
    def effect(self) -> tuple[float | None, float | None, float | None]:
        """The change as a part of the old value, and its interval; less than 0 is worse."""
        if self.metric.is_rate:
            return _part(self.ratio), _part(self.low), _part(self.high)
        return _negative(_part(self.ratio)), _negative(_part(self.high)), _negative(_part(self.low))

    @property
    def words(self) -> str:
        """The change in words."""
        return f"{self.place} {change_text(self.ratio)} ({change_text(self.low)} to {change_text(self.high)})"


def outcome_of_variants(one: VariantComparison) -> ComparisonOutcome:
    """Return the outcome of a comparison between two variants of a round."""
    changes = [*_changes(one.comparison)] if one.comparison is not None else []
    doubts = [
        *(f"{found.key} differs although no variant sets it" for found in one.unexplained),
        *one.doubts,
        *([f"{one.missing} runs of the two variants have no numbers"] if one.missing else []),
        *(one.comparison.reasons if one.comparison is not None else ()),
    ]
    return _outcome(one.name, one.candidate, one.conclusion, changes, doubts)


def outcomes_of_rounds(name: str, judgement: RoundJudgement) -> Iterator[ComparisonOutcome]:
    """Yield the outcome of a comparison with the accepted rounds for each variant."""
    changed = [
        f"changed since the last accepted round: {one.key}: {one.baseline} -> {one.candidate}"
        for one in judgement.changes
    ]
    for variant in judgement.variants:
        yield _outcome_of_variant(name, variant, changed)


def outcome_of_hypothesis(one: Decision) -> HypothesisResult:
    """Return the outcome of a hypothesis."""
    return HypothesisResult(
        name=one.name,
        variant=one.variant,
        verdict=HypothesisOutcome(one.verdict),
        message=quote("; ".join((one.sentence, *one.notes)), MAX_OUTCOME_CHARACTERS),
        estimate=_finite(one.estimate),
        low=_finite(one.low),
        high=_finite(one.high),
    )


def _outcome_of_variant(name: str, one: VariantJudgement, changed: Sequence[str]) -> ComparisonOutcome:
    against = Against.PINNED if one.is_drift else Against.ACCEPTED
    changes = [_of_rounds(found) for found in one.found if found.against is against]
    drifted = ["it is slow drift: worse than the pinned rounds"] if one.is_drift else []
    outcome = _outcome(name, one.variant, one.conclusion, changes, [*drifted, *one.reasons, *changed])
    return outcome.model_copy(update={"drift": one.is_drift})


def _outcome(
    name: str, variant: str, conclusion: Conclusion, changes: Sequence[_Deciding], reasons: Sequence[str]
) -> ComparisonOutcome:
    """Return an outcome with the change that decides it: of those with the worst conclusion, the worst."""
    deciding = min(changes, key=lambda one: (_SEVERITY.index(one.conclusion), -one.worsening), default=None)
    words = [deciding.words] if deciding is not None else []
    # Doubts explain a conclusion, and numbers a regression.
    texts = [*words, *reasons] if conclusion is Conclusion.REGRESSION else [*reasons, *words]
    estimate, low, high = deciding.effect if deciding is not None else (None, None, None)
    return ComparisonOutcome(
        name=name,
        variant=variant,
        verdict=ComparisonVerdict(conclusion),
        message=quote("; ".join(texts), MAX_OUTCOME_CHARACTERS),
        estimate=estimate,
        low=low,
        high=high,
    )


def _changes(comparison: Comparison) -> Iterator[_Deciding]:
    """Yield the changes that decide a comparison: means, and gating metrics of points."""
    for mean in comparison.means:
        yield _of_variants(f"{mean.workload}, {mean_text(mean)} {mean.operation} {mean.metric}", mean)
    for point in comparison.points:
        for metric in point.metrics:
            if metric.gates:
                yield _of_variants(place_of(point, metric), metric)


def _of_variants(place: str, one: Change) -> _Deciding:
    return _Deciding(
        place=place, metric=one.metric, ratio=one.ratio, low=one.low, high=one.high, conclusion=one.conclusion
    )


def _of_rounds(one: Found) -> _Deciding:
    _, workload, operation, metric = one.group
    place = one.point or (f"{workload}, mean of {one.points} points" if one.points > 1 else workload)
    ratios = ratios_of(metric, one.change)
    return _Deciding(
        place=f"{place} {quantity_text(operation, metric)}",
        metric=metric,
        ratio=ratios.ratio,
        low=ratios.low,
        high=ratios.high,
        conclusion=one.judgement.conclusion,
    )


def _part(ratio: float | None) -> float | None:
    return None if ratio is None else _finite(ratio - 1)


def _negative(value: float | None) -> float | None:
    return None if value is None else -value


def _finite(value: float | None) -> float | None:
    """Return a number that JSON can represent; None if it cannot."""
    return value if value is not None and math.isfinite(value) else None


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


_OF_TRIAL = (
    "passNumber",
    "attempt",
    "epoch",
    "clients",
    "outcome",
    "startedAt",
    "finishedAt",
    "abort",
    "verdict",
    "operations",
    "probe",
)
_OF_OPERATION = ("operation", "ios", "bytes", "rates", "wholeRun", "sumOfRates", "latency")
_OF_STATUS = ("line", "verdict", "findings", "environment", "fingerprint", "final")
_HISTOGRAM = "histogram"


def projected(document: Mapping[str, Any]) -> BenchmarkResult:
    """Return a stored result without its distributions, series, hosts and summary.

    Raises:
        pydantic.ValidationError: the result is not of this version.

    """
    metadata, status = document["metadata"], document.get("status") or {}
    return BenchmarkResult.model_validate(
        {
            "apiVersion": document["apiVersion"],
            "kind": document["kind"],
            "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
            "spec": document["spec"],
            "status": {
                **_parts(status, _OF_STATUS),
                "trials": [_trial(one) for one in status.get("trials") or ()],
            },
        }
    )


def _trial(document: Mapping[str, Any]) -> Mapping[str, Any]:
    operations = [_operation(one) for one in document.get("operations") or ()]
    return {**_parts(document, _OF_TRIAL), "operations": operations}


def _operation(document: Mapping[str, Any]) -> Mapping[str, Any]:
    latency = {key: value for key, value in document["latency"].items() if key != _HISTOGRAM}
    return {**_parts(document, _OF_OPERATION), "latency": latency}


def _parts(document: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: document[name] for name in names if name in document}
