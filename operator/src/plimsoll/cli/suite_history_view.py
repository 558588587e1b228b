"""The judgement of a suite's last round in the terminal: the rounds, what changed, and the verdict per variant."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from rich.console import Console
from rich.text import Text

from plimsoll.cli.fitted import FittedColumn, FittedTable, text_of
from plimsoll.cli.suite_history import Course
from plimsoll.measure.compare.comparison import change_text, quantity_text
from plimsoll.measure.compare.sides import ratios_of
from plimsoll.measure.compare.tests import Conclusion
from plimsoll.measure.compare.values import operation_text
from plimsoll.report.judgements import (
    baseline_text,
    found_interval_text,
    found_place,
    is_notable,
    ratios,
    started_text,
)
from plimsoll.report.text import count_text
from plimsoll.suite.history.family import Found
from plimsoll.suite.history.history import JudgedRound
from plimsoll.suite.history.judging import RoundJudgement, VariantJudgement

_COLOUR = {Conclusion.REGRESSION: "red", Conclusion.NO_REGRESSION: "green", Conclusion.INCONCLUSIVE: "yellow"}


def show_rounds(console: Console, course: Course) -> None:
    """Print the rounds, and which of them are the baseline of the next one."""
    lines = [*zip(course.history.rounds, course.conclusions, strict=True)]
    console.print(Text("\nRounds", style="bold"))
    console.print(FittedTable(rows=lines, layouts=[_ROUND_COLUMNS], missed=(), remedy=""))


def show_judgement(console: Console, name: str, judgement: RoundJudgement, *, is_local: bool) -> None:
    """Print whether each variant of a round is worse than its accepted rounds, and why."""
    baseline = count_text(judgement.accepted, "accepted round")
    console.print(Text(f"\n{name}: is round {judgement.minute} worse than {baseline}?", style="bold"))
    lines = [one for variant in judgement.variants for one in variant.found if is_notable(one)]
    if lines:
        console.print(FittedTable(rows=lines, layouts=_LAYOUTS, missed=(_INTERVAL, _AGAINST), remedy="-o json"))
    for change in judgement.changes:
        words = f"changed since the last accepted round: {change.key}: {change.baseline} -> {change.candidate}"
        console.print(Text(words), soft_wrap=True)
    for variant in judgement.variants:
        for text in _lines(variant):
            console.print(text, soft_wrap=True)
    if judgement.conclusion is Conclusion.REGRESSION:
        how = "add --accept " if is_local else "annotate the suite with plimsoll.dev/accept-round="
        remedy = f"If this is intended, {how}{judgement.minute}: the baseline then starts with this round."
        console.print(Text(remedy, style="dim"), soft_wrap=True)


def history_document(course: Course) -> dict[str, object]:
    """Return the rounds, and the judgements of the last one."""
    return {
        "rounds": [
            {
                "minute": one.measured.minute,
                "directory": None if round_.directory is None else str(round_.directory),
                "digest": one.measured.digest,
                "verdict": conclusion,
                "accepted": one.accepted,
                "pinned": one.pinned,
            }
            for one, round_, conclusion in zip(course.history.rounds, course.rounds, course.conclusions, strict=True)
        ],
        "judgements": [_judgement(name, one) for name, one in course.judgements.items()],
    }


def _verdict(conclusion: Conclusion | None) -> Text:
    return Text(conclusion, style=_COLOUR[conclusion]) if conclusion else Text("-")


def _verdict_of(found: Found) -> Text:
    return _verdict(found.judgement.conclusion).append(", improved" if found.judgement.improved else "")


_RoundLine = tuple[JudgedRound, Conclusion | None]
_RoundColumn = FittedColumn[_RoundLine]
_ROUND_COLUMNS = (
    _RoundColumn(heading="Round", cell=text_of(lambda line: str(line[0].measured.minute))),
    _RoundColumn(heading="Started", cell=text_of(lambda line: started_text(line[0].measured.minute))),
    _RoundColumn(heading="Verdict", cell=lambda line: _verdict(line[1])),
    _RoundColumn(heading="Baseline", cell=text_of(lambda line: baseline_text(line[0]))),
)

_Column = FittedColumn[Found]
_VARIANT = _Column(heading="Variant", cell=text_of(lambda one: one.group[0]))
_OF = _Column(heading="Point", cell=text_of(found_place), folded=True)
_METRIC = _Column(heading="Metric", cell=text_of(lambda one: quantity_text(one.group[2], one.metric)))
_AGAINST = _Column(heading="Against", cell=text_of(lambda one: one.against.value))
_CHANGE = _Column(heading="Change", cell=text_of(lambda one: change_text(ratios(one).ratio)), right=True)
_INTERVAL = _Column(heading="95 % interval", cell=text_of(found_interval_text), right=True)
_VERDICT = _Column(heading="Verdict", cell=_verdict_of)
_LAYOUTS = (
    (_VARIANT, _OF, _METRIC, _AGAINST, _CHANGE, _INTERVAL, _VERDICT),
    (_VARIANT, _OF, _METRIC, _AGAINST, _CHANGE, _VERDICT),
    (_VARIANT, _OF, _METRIC, _CHANGE, _VERDICT),
)


def _lines(variant: VariantJudgement) -> Iterator[Text]:
    for reason in variant.reasons:
        yield Text(f"{variant.variant}: {reason}", style="yellow")
    drift = f"; drift from the pinned rounds: {variant.drift}" if variant.drift else ""
    change = f", but {variant.change} against the accepted rounds" if variant.is_drift else ""
    yield Text(f"{variant.variant}: {variant.conclusion}{drift}{change}", style=_COLOUR[variant.conclusion])


def _judgement(name: str, judgement: RoundJudgement) -> Mapping[str, object]:
    return {
        "name": name,
        "acceptedRounds": judgement.accepted,
        "conclusion": judgement.conclusion,
        "changes": [asdict(one) for one in judgement.changes],
        "variants": [
            {
                "variant": one.variant,
                "conclusion": one.conclusion,
                "againstAccepted": one.change,
                "drift": one.drift,
                "isDrift": one.is_drift,
                "reasons": [*one.reasons],
                "found": [_found(each) for each in one.found],
            }
            for one in judgement.variants
        ],
    }


def _found(found: Found) -> Mapping[str, object]:
    _, workload, operation, metric = found.group
    ratios = ratios_of(metric, found.change)
    return {
        "against": found.against,
        "workload": workload,
        "point": found.point or None,
        "points": found.points,
        "operation": operation_text(operation, metric),
        "metric": metric,
        "ratio": ratios.ratio,
        "low": ratios.low,
        "high": ratios.high,
        "rounds": found.rounds,
        "conclusion": found.judgement.conclusion,
        "improved": found.judgement.improved,
        "suspected": found.judgement.suspected,
    }
