"""Decides hypotheses: on which points, with which verdict, in words and in numbers."""

import math
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from plimsoll.api.hypothesis import Hypothesis
from plimsoll.api.model import Model
from plimsoll.api.names import Verdict
from plimsoll.measure.hypotheses.inference import geometric_mean
from plimsoll.measure.hypotheses.judgement import MINIMUM_REPLICATES, HypothesisVerdict, Judgement, Unit, judge
from plimsoll.measure.hypotheses.samples import MeasuredRun, Sample, sample_of
from plimsoll.measure.hypotheses.selection import SelectionError, scopes, select
from plimsoll.measure.hypotheses.wording import interval_reason, sentence
from plimsoll.measure.wording import first_few


class Form(StrEnum):
    """What a hypothesis is about: the ratio of two points, as a part of 1, or the exponent of a power law."""

    RATIO = "Ratio"
    EXPONENT = "Exponent"


class Basis(Model):
    """One point behind a decision.

    Attributes:
        field: the selector that it belongs to: left or of.
        axis_value: its value on the axis; absent for a ratio.
        trials: number of trials behind the decision; 0 if the point decides nothing.
        mean: geometric mean over them: a rate per second, or a latency in nanoseconds; absent without any.
        verdict: of the point; absent without numbers.
        reasons: of a verdict that is not Valid.

    """

    field: str
    variant: str
    run: str
    point: str
    axis_value: int | None = None
    trials: int
    mean: float | None = None
    verdict: Verdict | None = None
    reasons: tuple[str, ...] = ()


class Decision(Model):
    """A hypothesis, decided.

    Attributes:
        variant: the variant that it is decided in, if it is decided in each variant by itself.
        estimate: the ratio, or the exponent; absent if it cannot be computed, as of a line above or below all loads.
        low: lower end of its 95 % confidence interval; absent if unknown.
        high: upper end of it; likewise.
        at_least: smallest expected value; absent without such a limit.
        at_most: largest expected value; absent without such a limit.
        unit: what replicates the numbers; absent without any.
        replicates: number of these units behind left and of; a single number for scaling.
        sentence: the decision in words.
        reasons: why it is Undecided.
        notes: doubts about the numbers, and what the interval does not cover.
        basis: the points behind it.

    """

    name: str
    variant: str | None = None
    verdict: HypothesisVerdict
    form: Form
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    unit: Unit | None = None
    replicates: tuple[int, ...] = ()
    sentence: str
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    basis: tuple[Basis, ...] = ()

    @property
    def is_suspect(self) -> bool:
        """Whether a point behind it is Suspect."""
        return any(one.verdict is Verdict.SUSPECT for one in self.basis)


def decide_all(hypotheses: Iterable[Hypothesis], runs: Sequence[MeasuredRun]) -> tuple[Decision, ...]:
    """Decide all hypotheses of a suite on the runs of one round."""
    return tuple(decision for hypothesis in hypotheses for decision in decide(hypothesis, runs))


def decide(hypothesis: Hypothesis, runs: Sequence[MeasuredRun]) -> tuple[Decision, ...]:
    """Return the decision; one for each variant if the hypothesis names none and the runs are of several."""
    return tuple(_decision(hypothesis, variant, of_scope) for variant, of_scope in scopes(hypothesis, runs))


def _decision(hypothesis: Hypothesis, variant: str | None, runs: Sequence[MeasuredRun]) -> Decision:
    samples, problems = _samples(hypothesis, runs)
    if problems:
        judgement = Judgement(verdict=HypothesisVerdict.UNDECIDED, reasons=problems)
    else:
        judgement = judge(hypothesis, samples)
    interval, (at_least, at_most) = judgement.interval, hypothesis.bounds
    basis = tuple(map(_basis, samples))
    return Decision(
        name=hypothesis.name,
        variant=variant,
        verdict=judgement.verdict,
        form=Form.EXPONENT if hypothesis.over else Form.RATIO,
        estimate=interval.estimate if interval and not interval.is_open else None,
        low=_finite(interval.low) if interval else None,
        high=_finite(interval.high) if interval else None,
        at_least=at_least,
        at_most=at_most,
        unit=judgement.unit,
        replicates=judgement.replicates,
        sentence=sentence(hypothesis, judgement, samples, variant),
        reasons=judgement.reasons or interval_reason(hypothesis, judgement),
        notes=(*_suspect(basis), *_uncounted(judgement)),
        basis=basis,
    )


def _samples(hypothesis: Hypothesis, runs: Sequence[MeasuredRun]) -> tuple[list[Sample], tuple[str, ...]]:
    """Return the samples of both sides, and why a side has none."""
    samples, problems = [], []
    for field, selector in hypothesis.selectors:
        try:
            samples += [sample_of(field, selector, one) for one in select(hypothesis, field, selector, runs)]
        except SelectionError as error:
            problems.append(str(error))
    return samples, tuple(problems)


def _finite(end: float) -> float | None:
    return end if math.isfinite(end) else None


def _basis(sample: Sample) -> Basis:
    status, selected = sample.result.status, sample.selected
    return Basis(
        field=sample.field,
        variant=selected.variant,
        run=selected.run,
        point=selected.point.name,
        axis_value=selected.axis_value,
        trials=len(sample.values),
        mean=geometric_mean(sample.values) if sample.values else None,
        verdict=status.verdict,
        reasons=tuple(dict.fromkeys(finding.reason for finding in status.findings)),
    )


def _suspect(basis: Sequence[Basis]) -> Iterator[str]:
    """Yield the reasons of Suspect points, each with its points."""
    places: dict[str, list[str]] = {}
    for one in basis:
        if one.verdict is Verdict.SUSPECT:
            for reason in one.reasons:
                places.setdefault(reason, []).append(f"{one.point} of run {one.run}")
    for reason, names in places.items():
        yield f"{Verdict.SUSPECT} ({reason}): {first_few(list(dict.fromkeys(names)))}"


def _uncounted(judgement: Judgement) -> Iterator[str]:
    if judgement.unit in (Unit.TRIAL, Unit.PROBE):
        yield f"noise between runs is not counted; it is if each variant has at least {MINIMUM_REPLICATES} runs"
