"""A comparison in the terminal: a line per metric, notes, and the conclusion."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from plimsoll.cli.fitted import FittedColumn, FittedTable, text_of
from plimsoll.measure.compare.comparison import (
    change_text,
    conclusion_text,
    interval_text,
    is_left_to_mean,
    mean_text,
    notes_of,
    passes_text,
    trials_text,
    verdict_text,
)
from plimsoll.measure.compare.sides import Change, Comparison, MeanComparison, MetricComparison
from plimsoll.measure.compare.tests import Conclusion
from plimsoll.measure.compare.values import Metric, operation_text
from plimsoll.plan.likeness import Likeness
from plimsoll.report.text import count_text, first_few, metric_text

_COLOUR = {Conclusion.REGRESSION: "red", Conclusion.NO_REGRESSION: "green", Conclusion.INCONCLUSIVE: "yellow"}
_VALUE_CHARACTERS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """One metric of a point, or its mean change over a workload's points; `name` is empty if the line above has it."""

    name: Text
    change: Change
    baseline: str = "-"
    candidate: str = "-"
    trials: str
    verdict: Text


def show_comparison(console: Console, comparison: Comparison, likeness: Likeness, *, of_runs: bool = False) -> None:
    """Print a comparison; `of_runs` means that each run counted as a trial."""
    lines = [*_lines(comparison)]
    if lines:
        console.print(_table(lines))
        console.print(Text(_legend(comparison), style="dim"), soft_wrap=True)
    for part in (_notes(comparison), likeness_lines(likeness), _conclusion(comparison, of_runs=of_runs)):
        for text in part:
            console.print(text, soft_wrap=True)


def _legend(comparison: Comparison) -> str:
    words = (
        "At worst: with 95 % confidence it is no worse.",
        "In brackets: metrics that do not gate; their p-values are not adjusted.",
        "Trials of a line are its probes." if Metric.LINE in comparison.gates else "",
        "The mean decides what a point alone leaves Inconclusive, unless that is suspected to be a regression."
        if comparison.means
        else "",
    )
    return " ".join(filter(None, words))


def likeness_lines(likeness: Likeness) -> Iterator[Text]:
    """Yield the differences between the runs."""
    if likeness.unknown:
        yield Text(f"No fingerprint was recorded at {first_few(likeness.unknown)}: other differences are unknown.")
    if likeness.differences:
        yield Text("The runs differ in (baseline -> candidate):", style="bold")
    elif not likeness.unknown:
        yield Text("The recorded settings of the runs do not differ.")
    for difference, points in likeness.differences:
        change = f"{_value(difference.baseline)} -> {_value(difference.candidate)}"
        style = "yellow" if difference.part == "identity" else ""
        yield Text(f"  {difference.part} {difference.key}: {change}, at {first_few(points)}", style=style)


def _lines(comparison: Comparison) -> Iterator[_Line]:
    for workload, means in groupby(comparison.means, lambda mean: mean.workload):
        for number, mean in enumerate(means):
            yield _mean_line(mean, Text() if number else _name(workload, mean_text(mean)))
    for point in comparison.points:
        for number, metric in enumerate(point.metrics):
            label = f"{point.label}, {count_text(point.clients, 'client')}"
            yield _point_line(metric, Text() if number else _name(point.workload, label))


def _mean_line(mean: MeanComparison, name: Text) -> _Line:
    verdict = Text(verdict_text(mean), style=_COLOUR[mean.conclusion])
    return _Line(name=name, change=mean, trials=passes_text(mean), verdict=verdict)


def _point_line(metric: MetricComparison, name: Text) -> _Line:
    decides = metric.gates and not is_left_to_mean(metric)
    return _Line(
        name=name,
        change=metric,
        baseline=metric_text(metric.metric, metric.baseline.mean),
        candidate=metric_text(metric.metric, metric.candidate.mean),
        trials=trials_text(metric),
        verdict=Text(conclusion_text(metric), style=_COLOUR[metric.conclusion] if decides else "dim"),
    )


def _name(workload: str, what: str) -> Text:
    return Text(f"{workload}\n").append(what, style="dim")


_Column = FittedColumn[_Line]
_POINT = _Column(heading="Point", cell=lambda line: line.name, folded=True)
_OPERATION = _Column(heading="Op", cell=text_of(lambda line: operation_text(line.change.operation, line.change.metric)))
_METRIC = _Column(heading="Metric", cell=text_of(lambda line: line.change.metric.value))
_BASELINE = _Column(heading="Baseline", cell=text_of(lambda line: line.baseline), right=True)
_CANDIDATE = _Column(heading="Candidate", cell=text_of(lambda line: line.candidate), right=True)
_CHANGE = _Column(heading="Change", cell=text_of(lambda line: change_text(line.change.ratio)), right=True)
_INTERVAL = _Column(heading="95 % interval", cell=text_of(lambda line: interval_text(line.change)), right=True)
_BOUND = _Column(heading="At worst", cell=text_of(lambda line: change_text(line.change.bound)), right=True)
_TRIALS = _Column(heading="Trials", cell=text_of(lambda line: line.trials), right=True)
_VERDICT = _Column(heading="Verdict", cell=lambda line: line.verdict)

_NUMBERS = (_BASELINE, _CANDIDATE, _CHANGE, _INTERVAL, _BOUND, _TRIALS)
_LAYOUTS = (
    (_POINT, _OPERATION, _METRIC, *_NUMBERS, _VERDICT),
    (_POINT, _OPERATION, _METRIC, _BASELINE, _CANDIDATE, _CHANGE, _INTERVAL, _BOUND, _VERDICT),
    (_POINT, _OPERATION, _METRIC, _CHANGE, _INTERVAL, _BOUND, _VERDICT),
    (_POINT, _OPERATION, _METRIC, _CHANGE, _BOUND, _VERDICT),
    (_POINT, _OPERATION, _METRIC, _CHANGE, _VERDICT),
)


def _table(lines: Sequence[_Line]) -> FittedTable[_Line]:
    return FittedTable(rows=lines, layouts=_LAYOUTS, missed=_NUMBERS, remedy="-o json")


def _notes(comparison: Comparison) -> Iterator[Text]:
    for note, places in notes_of(comparison).items():
        yield Text(f"{first_few(places)}: {note}")


def _conclusion(comparison: Comparison, *, of_runs: bool) -> Iterator[Text]:
    if comparison.candidate_only:
        yield Text(f"Only the candidate has {first_few(comparison.candidate_only)}.")
    limits = f"{100 * comparison.rate_threshold:g} % less rate, {100 * comparison.latency_threshold:g} % more latency"
    yield Text(f"Tolerated: {limits}. Gates: {', '.join(comparison.gates)}.", style="dim")
    if of_runs:
        yield Text("Each run counts as a trial, so noise between runs is included.", style="dim")
    else:
        yield Text(_noise(comparison.noise_runs), style="dim" if comparison.noise_runs else "yellow")
    for reason in comparison.reasons:
        yield Text(f"- {reason}")
    yield Text(comparison.conclusion.value, style=f"bold {_COLOUR[comparison.conclusion]}")


def _noise(runs: int) -> str:
    """Return the known noise between runs."""
    if runs:
        return f"Noise between runs: from {runs} runs, so at most {runs - 1} degrees of freedom."
    return (
        "Noise between runs: unknown and not taken into account, so it may look like a change; measure the baseline "
        "several times and name those runs with --noise."
    )


def _value(value: JsonValue) -> str:
    """Return a value on one line, shortened."""
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _VALUE_CHARACTERS else text[: _VALUE_CHARACTERS - 1] + "…"
