"""The judgement of a suite's last round in the terminal: the rounds, what changed, and the verdict per variant."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime

from rich.console import Console
from rich.text import Text

from plimsoll.cli.fitted import FittedColumn, FittedTable, text_of
from plimsoll.cli.suite_history import Course
from plimsoll.measure.compare.conclusion import Conclusion
from plimsoll.measure.compare.results import Ratios, ratios_of
from plimsoll.measure.compare.wording import change_text
from plimsoll.report.text import count_text
from plimsoll.suite.history.family import Found
from plimsoll.suite.history.history import JudgedRound
from plimsoll.suite.history.judging import RoundJudgement, VariantJudgement

_COLOUR = {Conclusion.REGRESSION: "red", Conclusion.NO_REGRESSION: "green", Conclusion.INCONCLUSIVE: "yellow"}
_SECONDS_PER_MINUTE = 60


def show_rounds(console: Console, course: Course) -> None:
    """Print the rounds, and which of them are the baseline of the next one."""
    lines = [*zip(course.history.rounds, course.conclusions, strict=True)]
    console.print(Text("\nRounds", style="bold"))
    console.print(FittedTable(rows=lines, layouts=[_ROUND_COLUMNS], missed=(), remedy=""))


def show_judgement(console: Console, name: str, judgement: RoundJudgement) -> None:
    """Print whether each variant of a round is worse than its accepted rounds, and why."""
    baseline = count_text(judgement.accepted, "accepted round")
    console.print(Text(f"\n{name}: is round {judgement.minute} worse than {baseline}?", style="bold"))
    lines = [one for variant in judgement.variants for one in variant.found if _is_shown(one)]
    if lines:
        console.print(FittedTable(rows=lines, layouts=_LAYOUTS, missed=(_INTERVAL, _AGAINST), remedy="-o json"))
    for change in judgement.changes:
        words = f"changed since the last accepted round: {change.key}: {change.baseline} -> {change.candidate}"
        console.print(Text(words), soft_wrap=True)
    for variant in judgement.variants:
        for text in _lines(variant):
            console.print(text, soft_wrap=True)
    if judgement.conclusion is Conclusion.REGRESSION:
        remedy = f"If this is intended, add --accept {judgement.minute}: the baseline then starts with this round."
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


def _state(one: JudgedRound) -> str:
    return "accepted, pinned" if one.pinned else "accepted" if one.accepted else "-"


def _verdict(conclusion: Conclusion | None) -> Text:
    return Text(conclusion, style=_COLOUR[conclusion]) if conclusion else Text("-")


def _verdict_of(found: Found) -> Text:
    return _verdict(found.judgement.conclusion).append(", improved" if found.judgement.improved else "")


def _is_shown(found: Found) -> bool:
    """Whether a change is shown: every mean against the accepted rounds, and whatever may be worse."""
    worse = found.judgement.conclusion is Conclusion.REGRESSION or found.judgement.suspected
    return worse or not found.point


def _ratios(found: Found) -> Ratios:
    return ratios_of(found.metric, found.change)


def _interval(found: Found) -> str:
    ratios = _ratios(found)
    return f"{change_text(ratios.low)} to {change_text(ratios.high)}"


def _place(found: Found) -> str:
    workload = found.group[1]
    return found.point or (f"{workload}, mean of {found.points} points" if found.points > 1 else workload)


def _started(minute: int) -> str:
    return datetime.fromtimestamp(minute * _SECONDS_PER_MINUTE, UTC).strftime("%Y-%m-%d %H:%M UTC")


_RoundLine = tuple[JudgedRound, Conclusion | None]
_RoundColumn = FittedColumn[_RoundLine]
_ROUND_COLUMNS = (
    _RoundColumn(heading="Round", cell=text_of(lambda line: str(line[0].measured.minute))),
    _RoundColumn(heading="Started", cell=text_of(lambda line: _started(line[0].measured.minute))),
    _RoundColumn(heading="Verdict", cell=lambda line: _verdict(line[1])),
    _RoundColumn(heading="Baseline", cell=text_of(lambda line: _state(line[0]))),
)

_Column = FittedColumn[Found]
_VARIANT = _Column(heading="Variant", cell=text_of(lambda one: one.group[0]))
_OF = _Column(heading="Point", cell=text_of(_place), folded=True)
_METRIC = _Column(heading="Metric", cell=text_of(lambda one: f"{one.group[2]} {one.metric}"))
_AGAINST = _Column(heading="Against", cell=text_of(lambda one: one.against.value))
_CHANGE = _Column(heading="Change", cell=text_of(lambda one: change_text(_ratios(one).ratio)), right=True)
_INTERVAL = _Column(heading="95 % interval", cell=text_of(_interval), right=True)
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
        "operation": operation,
        "metric": metric,
        "ratio": ratios.ratio,
        "low": ratios.low,
        "high": ratios.high,
        "rounds": found.rounds,
        "conclusion": found.judgement.conclusion,
        "improved": found.judgement.improved,
        "suspected": found.judgement.suspected,
    }
