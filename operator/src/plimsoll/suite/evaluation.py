"""Evaluates a round: what its results show, compared with each other, with earlier rounds and with hypotheses."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plimsoll.api.result import BenchmarkResult, Fingerprint
from plimsoll.api.suite import Allowance, SuiteComparison, SuiteSpec
from plimsoll.api.suite_status import (
    MAX_OUTCOME_CHARACTERS,
    WORST_FIRST,
    ComparisonOutcome,
    Conclusion,
    HypothesisResult,
    RoundVerdict,
)
from plimsoll.measure.attempts import repeated_too_often, runs_on_first_attempts
from plimsoll.measure.compare.comparison import (
    Change,
    Comparison,
    change_text,
    compare,
    interval_text,
    mean_text,
    place_of,
    quantity_text,
)
from plimsoll.measure.compare.repeats import as_one_run
from plimsoll.measure.compare.values import (
    Matching,
    RegressionRule,
    RepeatsError,
    check_distinct,
    match_points,
    worsening,
)
from plimsoll.measure.hypotheses.decide import Decision, decide
from plimsoll.measure.hypotheses.select import MeasuredRun, measured_run
from plimsoll.measure.summary import MINIMUM_TRIALS
from plimsoll.measure.text import first_few, quote
from plimsoll.plan.fingerprint import Difference, Likeness, leaves, likeness_of
from plimsoll.suite.children import changes_between, unexplained
from plimsoll.suite.judging import Against, RoundJudgement, is_acceptable, judge
from plimsoll.suite.measured import GATES, MeasuredRound, measured_round
from plimsoll.suite.rounds.observed import Judge, RecordedEvaluation

_ENVIRONMENT = {
    "ceph": ("ceph.versions", "rook.cephVersion"),
    "kernel": ("kernel",),
    "kubernetes": ("kubernetes",),
    "plimsoll": ("plimsoll",),
}
"""Name in a round's environment -> keys of a fingerprint's context, the first of which that is known counts."""

_UNREAD = {"histogram", "series", "hosts", "slowest", "warnings", "problems", "caches", "places", "placeDigests"}
"""Large fields of trials that no evaluation needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundResults:
    """What was measured in a round."""

    minute: int
    digest: str
    repeat: int  # number of planned runs of each variant
    # Variant -> name of a run, in the order of the repeats -> its results; without numbers they are empty or absent
    runs: Mapping[str, Mapping[str, Sequence[BenchmarkResult]]]

    @property
    def complete(self) -> Mapping[str, list[list[BenchmarkResult]]]:
        """The results of the runs with numbers of each variant."""
        return {variant: [[*run] for run in runs.values() if run] for variant, runs in self.runs.items()}

    def measured(self) -> MeasuredRound:
        """Return one value for each run and quantity, which is all that later rounds are compared with."""
        return measured_round(minute=self.minute, digest=self.digest, repeat=self.repeat, runs=self.complete)

    def measured_runs(self) -> list[MeasuredRun]:
        """Return all planned runs as hypotheses select from them."""
        runs = [measured_run(variant, name, run) for variant, runs in self.runs.items() for name, run in runs.items()]
        # A hypothesis is undecided if a run is missing.
        return runs + [
            measured_run(variant, f"{variant} that is missing", [])
            for variant, of_variant in self.runs.items()
            for _ in range(self.repeat - len(of_variant))
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The comparison of two runs, or of two variants."""

    baseline: str
    candidate: str
    # None if they have no point in common, or runs of a variant measured different things
    comparison: Comparison | None
    likeness: Likeness


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantComparison(Compared):
    """A comparison of two variants of a suite."""

    name: str
    unexplained: Sequence[Difference]  # differences in identity that the variants do not set
    doubts: Sequence[str]  # other reasons not to rely on any of these runs
    missing: int  # planned runs of both variants that are not complete
    of_runs: bool  # whether each run counts as a trial; otherwise the first run of each variant is compared

    @property
    def reasons(self) -> list[str]:
        """Why its conclusion may not follow from the results alone."""
        return [
            *(f"{difference.key} differs although no variant sets it" for difference in self.unexplained),
            *self.doubts,
            *([f"{self.missing} runs of the two variants have no numbers"] if self.missing else []),
        ]

    @property
    def remarks(self) -> list[str]:
        """The reasons, and the conclusion if it differs from the conclusion of the results."""
        is_of_results = self.comparison is not None and self.conclusion is self.comparison.conclusion
        return [*self.reasons, *([] if is_of_results else [self.conclusion.value])]

    @property
    def conclusion(self) -> Conclusion:
        """Inconclusive if conditions may differ; missing runs could show a regression, but cannot disprove one."""
        if self.comparison is None or self.unexplained or self.doubts:
            return Conclusion.INCONCLUSIVE
        conclusion = self.comparison.conclusion
        return Conclusion.INCONCLUSIVE if self.missing and conclusion is Conclusion.NO_REGRESSION else conclusion


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What a round shows."""

    measured: MeasuredRound
    verdict: RoundVerdict  # Regressed, Inconclusive or NoRegression
    message: str  # the verdict in a sentence
    is_acceptable: bool  # whether later rounds may be compared with it
    outcomes: Sequence[ComparisonOutcome]  # of each comparison with accepted rounds for each variant
    judgements: Mapping[str, RoundJudgement]  # by the name of the comparison with accepted rounds
    comparisons: Sequence[VariantComparison]  # between variants
    decisions: Sequence[Decision]  # the hypotheses

    @property
    def counts(self) -> dict[str, int]:
        """The number of outcomes of comparisons with accepted rounds, by conclusion, the worst first."""
        counts = Counter(outcome.verdict for outcome in self.outcomes)
        return {conclusion.value: counts[conclusion] for conclusion in WORST_FIRST if conclusion in counts}


def evaluate_round(
    spec: SuiteSpec, results: RoundResults, *, accepted: Sequence[MeasuredRound], pinned: Sequence[MeasuredRound]
) -> Evaluation:
    """Return what a round shows, given the accepted and the pinned rounds, both in their order. It takes seconds.

    Comparisons between variants show what a variant costs, in every round alike, and do not decide if it regressed.
    """
    measured, runs = results.measured(), results.measured_runs()
    # A round that has lost runs is a selection: a user may have deleted the fast ones.
    whole = [earlier.minute for earlier in accepted if earlier.is_complete or earlier.digest != measured.digest]
    accepted, pinned = ([earlier for earlier in rounds if earlier.minute in whole] for rounds in (accepted, pinned))
    names = [variant.name for variant in spec.variants]
    judgements = {
        comparison.name: judge(accepted, pinned, measured, names, rule_of(comparison.allow))
        for comparison in spec.comparisons
        if comparison.baseline.rounds is not None
    }
    outcomes = [outcome for name, judged in judgements.items() for outcome in outcomes_of_rounds(name, judged)]
    worst = min(outcomes, key=lambda outcome: WORST_FIRST.index(outcome.verdict), default=None)
    conclusion = worst.verdict if worst else Conclusion.NO_REGRESSION
    message = "no comparison shows a regression" if worst else "the suite compares no rounds"
    # Runs that are missing could show a regression, but cannot disprove one.
    verdict = RoundVerdict.NO_REGRESSION if measured.is_complete else RoundVerdict.INCONCLUSIVE
    if worst and conclusion is not Conclusion.NO_REGRESSION:
        message = f"comparison {worst.name}, variant {worst.variant}: {conclusion}: {worst.message}"
        regressed = conclusion is Conclusion.REGRESSION
        verdict = RoundVerdict.REGRESSED if regressed else RoundVerdict.INCONCLUSIVE
    return Evaluation(
        measured=measured,
        verdict=verdict,
        message=message,
        is_acceptable=is_acceptable(measured, judgements.values()),
        outcomes=outcomes,
        judgements=judgements,
        comparisons=[*comparisons_of(spec, results.complete)],
        decisions=[decision for hypothesis in spec.hypotheses for decision in decide(hypothesis, runs)],
    )


def versions_of(fingerprints: Iterable[Fingerprint | None]) -> dict[str, str]:
    """Return the versions of Ceph, the kernel, Kubernetes and Plimsoll; several if they differ between the results."""
    contexts = [dict(leaves(fingerprint.context)) for fingerprint in fingerprints if fingerprint is not None]
    known = {
        name: {str(context[key]) for context in contexts for key in [key for key in keys if key in context][:1]}
        for name, keys in _ENVIRONMENT.items()
    }
    return {name: ", ".join(sorted(versions)) for name, versions in known.items() if versions}


def recorded_evaluation(request: Judge, results: RoundResults, evaluation: Evaluation) -> RecordedEvaluation:
    """Return the part of an evaluation that the status of a suite records."""
    fingerprints = (result.status.fingerprint for runs in results.complete.values() for run in runs for result in run)
    return RecordedEvaluation(
        request=request,
        verdict=evaluation.verdict,
        is_acceptable=evaluation.is_acceptable,
        message=evaluation.message,
        environment=versions_of(fingerprints),
        counts=evaluation.counts,
        comparisons=(*evaluation.outcomes, *map(outcome_of_variants, evaluation.comparisons)),
        hypotheses=tuple(
            HypothesisResult(
                message=quote("; ".join((decision.sentence, *decision.notes)), MAX_OUTCOME_CHARACTERS),
                **decision.model_dump(include={"name", "variant", "verdict", "estimate", "low", "high"}),
            )
            for decision in evaluation.decisions
        ),
    )


def comparisons_of(spec: SuiteSpec, runs: Mapping[str, Sequence[list[BenchmarkResult]]]) -> Iterator[VariantComparison]:
    """Yield the comparisons between variants of a suite; `runs` are the complete ones of each variant."""
    for comparison in spec.comparisons:
        if comparison.variants is not None:
            yield _compared(spec, comparison, comparison.variants, runs)


def rule_of(allow: Allowance) -> RegressionRule:
    return RegressionRule(rate=allow.rate_percent / 100, latency=allow.latency_percent / 100, gates=GATES)


def outcomes_of_rounds(name: str, judgement: RoundJudgement) -> Iterator[ComparisonOutcome]:
    for variant in judgement.variants:
        against = Against.PINNED if variant.is_drift else Against.ACCEPTED
        compared = [(judged.place, judged.comparison) for judged in variant.judged if judged.against is against]
        changes = [(f"{place} {quantity_text(change.operation, change.metric)}", change) for place, change in compared]
        drifted = ["slow drift: worse than the pinned rounds"] if variant.is_drift else []
        reasons = [*drifted, *variant.reasons, *judgement.change_texts]
        outcome = _outcome(name, variant.variant, variant.conclusion, changes, reasons)
        yield outcome.model_copy(update={"drift": variant.is_drift})


def projected(document: Mapping[str, Any]) -> BenchmarkResult:
    """Return a stored result without its distributions, series, hosts and summary; as `model_validate` does."""
    status = document.get("status") or {}
    update = {"trials": _read(status.get("trials") or ()), "summary": None}
    return BenchmarkResult.model_validate({**document, "status": {**status, **update}}, extra="ignore")


def _read(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return {key: _read(part) for key, part in value.items() if key not in _UNREAD}
    return [*map(_read, value)] if isinstance(value, list | tuple) else value


def _compared(
    spec: SuiteSpec,
    asked: SuiteComparison,
    variants: tuple[str, str],
    runs: Mapping[str, Sequence[list[BenchmarkResult]]],
) -> VariantComparison:
    baseline, candidate = variants
    ours, theirs = runs[baseline], runs[candidate]
    of_runs = min(len(ours), len(theirs)) >= MINIMUM_TRIALS

    def matched(*sides: Sequence[Sequence[BenchmarkResult]]) -> Matching:
        # A variant may change a parameter of a point, which is the same point here.
        one_run = [as_one_run(side) if of_runs else next(iter(side), []) for side in sides]
        return match_points(*one_run, also_by_name=True)

    doubts: list[str] = []
    comparison, matching = None, match_points([], [])
    try:
        check_distinct((*ours, *theirs))
        matching = matched(ours, theirs)
        if ours and theirs:
            firsts = [runs_on_first_attempts(side) for side in (ours, theirs)] if of_runs else []
            first = matched(firsts[0] or ours, firsts[1] or theirs) if any(firsts) else None
            comparison = compare(matching, rule_of(asked.allow), first=first)
    except RepeatsError as error:
        doubts = [str(error)]
    likeness = likeness_of(matching.pairs)
    if likeness.unknown:
        unknown = first_few(likeness.unknown, 1)
        doubts.append(f"without fingerprints, nothing shows that only the variants differ: {unknown}")
    # The trials that represent whole runs do not show that a run repeated too many of its trials.
    for run in (*ours, *theirs):
        doubts += repeated_too_often(run[0].spec.run, run)
    changes, differences = changes_between(spec, baseline, candidate), list[Difference]()
    for pair in matching.pairs:
        of_pair = (difference for difference, _ in likeness_of([pair]).differences)
        unset = unexplained(changes, pair.baseline.spec.workload, of_pair)
        differences += [difference for difference in unset if difference not in differences]
    return VariantComparison(
        name=asked.name,
        baseline=baseline,
        candidate=candidate,
        comparison=comparison,
        likeness=likeness,
        unexplained=differences,
        doubts=doubts,
        missing=2 * spec.repeat - len(ours) - len(theirs),
        of_runs=of_runs,
    )


def outcome_of_variants(compared: VariantComparison) -> ComparisonOutcome:
    """Return the outcome of a comparison between two variants: means decide it, and gating metrics of points."""
    changes: list[tuple[str, Change]] = []
    reasons = compared.reasons
    if (comparison := compared.comparison) is not None:
        reasons += comparison.reasons
        if not compared.of_runs:
            reasons.append("the noise between runs is unknown")
        means = comparison.means
        changes += [(f"{it.workload}, {mean_text(it)} {it.operation} {it.metric}", it) for it in means]
        for point in comparison.points:
            changes += [(place_of(point, metric), metric) for metric in point.metrics if metric.gates]
    return _outcome(compared.name, compared.candidate, compared.conclusion, changes, reasons)


def _outcome(
    name: str, variant: str, conclusion: Conclusion, changes: Sequence[tuple[str, Change]], reasons: Sequence[str]
) -> ComparisonOutcome:
    """Return an outcome with the words for the change that decides it: the worst of those with the worst conclusion."""

    def severity(placed: tuple[str, Change]) -> tuple[int, bool, float]:
        _, change = placed
        order = worsening(change.metric, -math.log(change.ratio)) if change.ratio else math.inf
        # A change without an interval, of too few trials, explains less than any other.
        return WORST_FIRST.index(change.conclusion), not _has_interval(change), order

    texts, parts = [*reasons], dict[str, float | None]()
    if changes:
        place, change = min(changes, key=severity)
        interval = f" ({interval_text(change)})" if _has_interval(change) else ""
        words = f"{place} {change_text(change.ratio)}{interval}"
        # Doubts explain a conclusion, and numbers a regression.
        texts = [words, *texts] if conclusion is Conclusion.REGRESSION else [*texts, words]
        # The change as a part of the old value; less than 0 is worse.
        sign, ends = (1, (change.low, change.high)) if change.metric.is_rate else (-1, (change.high, change.low))
        ratios = zip(("estimate", "low", "high"), (change.ratio, *ends), strict=True)
        parts = {key: sign * (ratio - 1) for key, ratio in ratios if ratio is not None and _has_interval(change)}
    message = quote("; ".join(texts), MAX_OUTCOME_CHARACTERS)
    outcome = ComparisonOutcome(name=name, variant=variant, verdict=conclusion, message=message)
    return outcome.model_copy(update=parts)


def _has_interval(change: Change) -> bool:
    return change.low is not None or change.high is not None
