"""A comparison as people read it: a line per metric, what is to be known of it, and the conclusion."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from plimsoll.api.duration import format_duration
from plimsoll.cli.fitted import NONE, Column, FittedTable, text_of
from plimsoll.cli.likeness import Likeness
from plimsoll.measure.compare.comparison import Comparison, MetricComparison, PointComparison
from plimsoll.measure.compare.conclusion import Conclusion
from plimsoll.measure.compare.metrics import Metric
from plimsoll.measure.compare.sides import Side
from plimsoll.measure.compare.wording import change_text, conclusion_text, interval_text, notes_of

_COLOUR = {Conclusion.REGRESSION: "red", Conclusion.NO_REGRESSION: "green", Conclusion.INCONCLUSIVE: "yellow"}
_MEBIBYTE = 2**20
_VALUE_CHARACTERS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """One metric. `is_first` of its point, which is named only there."""

    point: PointComparison
    metric: MetricComparison
    is_first: bool


def show_comparison(console: Console, comparison: Comparison, likeness: Likeness) -> None:
    """Print a comparison."""
    lines = [*_lines(comparison)]
    if lines:
        console.print(_table(lines))
        console.print(Text("In brackets: does not gate, its p-value is not adjusted.", style="dim"))
    for part in (_notes(comparison), likeness_lines(likeness), _conclusion(comparison)):
        for text in part:
            console.print(text, soft_wrap=True)


def likeness_lines(likeness: Likeness) -> Iterator[Text]:
    """Yield what differs between the runs."""
    if likeness.unknown:
        yield Text(f"No fingerprint was recorded at {_first(likeness.unknown)}: nobody knows what else differs.")
    if likeness.differences:
        yield Text("The runs differ in (baseline -> candidate):", style="bold")
    elif not likeness.unknown:
        yield Text("The runs do not differ in anything that was recorded of them.")
    for difference, points in likeness.differences:
        change = f"{_value(difference.baseline)} -> {_value(difference.candidate)}"
        style = "yellow" if difference.part == "identity" else ""
        yield Text(f"  {difference.part} {difference.key}: {change}, at {_first(points)}", style=style)


def format_value(metric: Metric, value: float | None) -> str:
    """Write a rate or a latency as people do."""
    if value is None:
        return NONE
    if metric is Metric.BYTES:
        return f"{value / _MEBIBYTE:,.1f} MiB/s"
    return f"{value:,.0f}" if metric is Metric.IOPS else format_duration(value)


def _lines(comparison: Comparison) -> Iterator[_Line]:
    for point in comparison.points:
        for number, metric in enumerate(point.metrics):
            yield _Line(point=point, metric=metric, is_first=number == 0)


def _point(line: _Line) -> Text:
    if not line.is_first:
        return Text()
    text = Text(f"{line.point.workload}\n")
    return text.append(f"{line.point.label}, {_clients(line.point.clients)}", style="dim")


def _clients(number: int) -> str:
    return f"{number} client{'' if number == 1 else 's'}"


def _side(line: _Line, side: Side) -> str:
    return format_value(line.metric.metric, side.mean)


def _verdict(line: _Line) -> Text:
    metric = line.metric
    return Text(conclusion_text(metric), style=_COLOUR[metric.conclusion] if metric.gates else "dim")


_POINT = Column[_Line](heading="Point", cell=_point, folded=True)
_OPERATION = Column[_Line](heading="Op", cell=text_of(lambda line: line.metric.operation.value))
_METRIC = Column[_Line](heading="Metric", cell=text_of(lambda line: line.metric.metric.value))
_BASELINE = Column[_Line](heading="Baseline", cell=text_of(lambda line: _side(line, line.metric.baseline)), right=True)
_CANDIDATE = Column[_Line](
    heading="Candidate", cell=text_of(lambda line: _side(line, line.metric.candidate)), right=True
)
_CHANGE = Column[_Line](heading="Change", cell=text_of(lambda line: change_text(line.metric.ratio)), right=True)
_INTERVAL = Column[_Line](heading="95 % interval", cell=text_of(lambda line: interval_text(line.metric)), right=True)
_TRIALS = Column[_Line](
    heading="Trials",
    cell=text_of(lambda line: f"{line.metric.baseline.trials}+{line.metric.candidate.trials}"),
    right=True,
)
_VERDICT = Column[_Line](heading="Verdict", cell=_verdict)

_NUMBERS = (_BASELINE, _CANDIDATE, _CHANGE, _INTERVAL, _TRIALS)
_LAYOUTS = (
    (_POINT, _OPERATION, _METRIC, *_NUMBERS, _VERDICT),
    (_POINT, _OPERATION, _METRIC, _BASELINE, _CANDIDATE, _CHANGE, _INTERVAL, _VERDICT),
    (_POINT, _OPERATION, _METRIC, _CHANGE, _INTERVAL, _VERDICT),
    (_POINT, _OPERATION, _METRIC, _CHANGE, _VERDICT),
)


def _table(lines: Sequence[_Line]) -> FittedTable[_Line]:
    return FittedTable(rows=lines, layouts=_LAYOUTS, missed=_NUMBERS, remedy="-o json")


def _notes(comparison: Comparison) -> Iterator[Text]:
    for note, places in notes_of(comparison).items():
        yield Text(f"{_first(places)}: {note}")


def _conclusion(comparison: Comparison) -> Iterator[Text]:
    if comparison.candidate_only:
        yield Text(f"Only the candidate has {_first(comparison.candidate_only)}.")
    limits = f"{100 * comparison.rate_threshold:g} % less rate, {100 * comparison.latency_threshold:g} % more latency"
    yield Text(f"Tolerated: {limits}. Gates: {', '.join(comparison.gates)}.", style="dim")
    yield Text(_noise(comparison.noise_runs), style="dim" if comparison.noise_runs else "yellow")
    for reason in comparison.reasons:
        yield Text(f"- {reason}")
    yield Text(comparison.conclusion.value, style=f"bold {_COLOUR[comparison.conclusion]}")


def _noise(runs: int) -> str:
    """Say what is known of the noise between runs."""
    if runs:
        return f"Noise between runs: from {runs} runs of the same, so at most {runs - 1} degrees of freedom."
    return (
        "Noise between runs: not known and not counted, so what differs between any two runs may pass for a change; "
        "measure the baseline several times and name those runs with --noise."
    )


def _first(places: Sequence[str]) -> str:
    more = f" and {len(places) - 1} more" if len(places) > 1 else ""
    return f"{places[0]}{more}"


def _value(value: JsonValue) -> str:
    """Return a value on one line, shortened."""
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _VALUE_CHARACTERS else text[: _VALUE_CHARACTERS - 1] + "…"
