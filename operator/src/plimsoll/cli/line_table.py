"""Searches for the line in the terminal: what each found, and its probes in order."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from plimsoll.api.line import Line, LineSearch, Objective, ProbeOutcome
from plimsoll.api.names import Outcome, Verdict
from plimsoll.api.result import BenchmarkResult, Trial
from plimsoll.cli.fitted import FittedColumn, FittedTable, text_of
from plimsoll.measure.line.summary import (
    UNKNOWN,
    ending_sentence,
    ending_text,
    headline_text,
    interval_text,
    line_probes_text,
    load_with_unit,
    objective_text,
    objectives_text,
    outcome_text,
    rounded_load,
    uncounted_text,
    unit_text,
)
from plimsoll.report.points import UNFINISHED, verdict_text
from plimsoll.report.searches import line_of
from plimsoll.report.text import duration_text

VERDICT_COLOUR = {Verdict.VALID: "green", Verdict.SUSPECT: "yellow", Verdict.INVALID: "red", UNFINISHED: "cyan"}

_OUTCOME_COLOUR = {ProbeOutcome.MET: "green", ProbeOutcome.UNKNOWN: "dim", ProbeOutcome.NOT_OFFERED: "dim"}
_BROKEN = "yellow"

PROBE_COLUMNS = (
    *("run", "point", "probe", "attempt", "offered", "achieved", "depth_full_percent", "operation"),
    *("percentile", "latency_nanoseconds", "limit_nanoseconds", "trial_outcome", "outcome", "verdict"),
)
"""Columns of CSV, a row per probe, operation and objective: loads of all clients, and nanoseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A search and what it has found so far."""

    result: BenchmarkResult
    search: LineSearch
    line: Line


@dataclass(frozen=True, slots=True, kw_only=True)
class _Probe:
    """An attempt at a probe of a search."""

    search: LineSearch
    trial: Trial


def lines_table(results: Iterable[BenchmarkResult]) -> FittedTable[_Found]:
    """Return a table with one line per search."""
    return FittedTable(rows=[*_found(results)], layouts=_LAYOUTS, missed=_NUMBERS, remedy="-o csv")


def line_sentences(results: Iterable[BenchmarkResult]) -> Iterator[str]:
    """Yield what each search found and why it ended."""
    for one in _found(results):
        headline = headline_text(one.line, one.search)
        sentence = ending_sentence(one.line, one.search, uncounted_text(one.result.status.trials))
        yield f"{one.result.spec.point} {headline}. {sentence}"


def probes_table(result: BenchmarkResult) -> FittedTable[_Probe] | None:
    """Return a table of all attempts of a search, in order; None if the point is measured at one load."""
    search = result.spec.line
    if search is None:
        return None
    offered = _Column(heading=f"Offered {unit_text(search)}", cell=_probed(_offered), right=True)
    verdict = _Column(heading="Verdict", cell=_verdict)
    known = (_NUMBER, offered, _ACHIEVED, _DEPTH_FULL, *_latency_columns(search), _OUTCOME, verdict)
    essential = (_NUMBER, offered, _ACHIEVED, _OUTCOME, verdict)
    rows = [_Probe(search=search, trial=trial) for trial in in_order(result)]
    return FittedTable(rows=rows, layouts=(known, essential), missed=known, remedy="--probes -o csv")


def probe_rows(results: Iterable[BenchmarkResult]) -> Iterator[dict[str, object]]:
    """Yield the values of `PROBE_COLUMNS`; an attempt without numbers has one row."""
    for result in results:
        for trial in in_order(result) if result.spec.line else ():
            base = _probe_row(result, trial)
            rows = [
                base | _objective_row(trial, number, objective)
                for number in range(len(trial.operations))
                for objective in (result.spec.line.objectives if result.spec.line else ())
            ]
            yield from rows or [base]


def in_order(result: BenchmarkResult) -> Sequence[Trial]:
    """Return all attempts by probe and attempt."""
    return sorted(result.status.trials, key=lambda trial: (trial.pass_number, trial.attempt))


def _found(results: Iterable[BenchmarkResult]) -> Iterator[_Found]:
    for result in results:
        if result.spec.line is not None:
            yield _Found(result=result, search=result.spec.line, line=line_of(result))


def _probe_row(result: BenchmarkResult, trial: Trial) -> dict[str, object]:
    probe = trial.probe
    unmeasured: dict[str, object] = dict.fromkeys(PROBE_COLUMNS)
    return unmeasured | {
        "run": result.spec.run,
        "point": result.spec.point,
        "probe": trial.pass_number,
        "attempt": trial.attempt,
        "offered": probe.offered if probe else None,
        "achieved": probe.achieved if probe else None,
        "depth_full_percent": probe.depth_full_percent if probe else None,
        "trial_outcome": trial.outcome.value,
        "outcome": probe.outcome.value if probe else None,
        "verdict": trial.verdict.value,
    }


def _objective_row(trial: Trial, number: int, objective: Objective) -> dict[str, object]:
    operation = trial.operations[number]
    return {
        "operation": operation.operation.value,
        "percentile": objective.percentile,
        "latency_nanoseconds": operation.latency.percentiles.get(objective.percentile),
        "limit_nanoseconds": objective.latency_nanoseconds,
    }


def _latency_columns(search: LineSearch) -> Iterator[FittedColumn[_Probe]]:
    for objective in search.objectives:
        yield _Column(heading=objective_text(objective), cell=_latencies(objective), right=True)


def _latencies(objective: Objective) -> Callable[[_Probe], Text]:
    """Return the percentile of each operation, in red where it exceeds the objective."""

    def cell(row: _Probe) -> Text:
        texts = []
        for operation in row.trial.operations:
            latency = operation.latency.percentiles.get(objective.percentile)
            is_late = latency is not None and latency > objective.latency_nanoseconds
            texts.append(Text(duration_text(latency), style="red" if is_late else ""))
        return Text(" / ").join(texts) if texts else Text(UNKNOWN)

    return cell


def _probed(text: Callable[[_Probe], str | None]) -> Callable[[_Probe], Text]:
    return lambda row: Text(text(row) or UNKNOWN)


def _offered(row: _Probe) -> str | None:
    return rounded_load(row.trial.probe.offered) if row.trial.probe else None


def _achieved(row: _Probe) -> str | None:
    probe = row.trial.probe
    return rounded_load(probe.achieved) if probe and probe.achieved is not None else None


def _depth_full(row: _Probe) -> str | None:
    probe = row.trial.probe
    return f"{probe.depth_full_percent:.2f} %" if probe and probe.depth_full_percent is not None else None


def _number(row: _Probe) -> str:
    return f"{row.trial.pass_number}.{row.trial.attempt}" if row.trial.attempt else str(row.trial.pass_number)


def _outcome(row: _Probe) -> Text:
    if row.trial.outcome is Outcome.ABORTED:
        reason = f" ({row.trial.abort.reason})" if row.trial.abort else ""
        return Text(f"aborted{reason}", style="dim")
    if row.trial.probe is None:
        return Text(UNKNOWN)
    outcome = row.trial.probe.outcome
    return Text(outcome_text(outcome), style=_OUTCOME_COLOUR.get(outcome, _BROKEN))


def _verdict(row: _Probe) -> Text:
    return Text(row.trial.verdict.value, style=VERDICT_COLOUR[row.trial.verdict])


_Column = FittedColumn[_Probe]
_NUMBER = _Column(heading="Probe", cell=text_of(_number), right=True)
_ACHIEVED = _Column(heading="Achieved", cell=_probed(_achieved), right=True)
_DEPTH_FULL = _Column(heading="Depth full", cell=_probed(_depth_full), right=True)
_OUTCOME = _Column(heading="Outcome", cell=_outcome)


def _search_verdict(row: _Found) -> Text:
    verdict = verdict_text(row.result)
    return Text(verdict, style=VERDICT_COLOUR[verdict])


def _reasons(row: _Found) -> str:
    return " ".join(dict.fromkeys(finding.reason for finding in row.result.status.findings))


def _stacked(row: _Found) -> Text:
    """Return workload, parameters, objectives and reasons in one cell."""
    spec, reasons = row.result.spec, _reasons(row)
    text = Text(f"{spec.workload}\n").append(f"{spec.label}\n{objectives_text(row.search.objectives)}", style="dim")
    return text.append(f"\n{reasons}", style=VERDICT_COLOUR[verdict_text(row.result)]) if reasons else text


_Search = FittedColumn[_Found]
_CLIENTS = _Search(heading="Clients", cell=text_of(lambda row: str(row.result.spec.clients)), right=True)
_LINE = _Search(heading="Line", cell=text_of(lambda row: load_with_unit(row.line, row.search)), right=True)
_INTERVAL = _Search(heading="95 % interval", cell=text_of(lambda row: interval_text(row.line, row.search)), right=True)
_PROBES = _Search(heading="Probes", cell=text_of(lambda row: line_probes_text(row.line)), right=True)
_ENDING = _Search(heading="Ending", cell=text_of(lambda row: ending_text(row.line)))
_VERDICT = _Search(heading="Verdict", cell=_search_verdict)
_STACKED = _Search(heading="Point", cell=_stacked, folded=True)
_NUMBERS = (_CLIENTS, _LINE, _INTERVAL, _PROBES, _ENDING, _VERDICT)
_LAYOUTS = (
    (
        _Search(heading="Workload", cell=text_of(lambda row: row.result.spec.workload), folded=True),
        _Search(heading="Parameters", cell=text_of(lambda row: row.result.spec.label), folded=True),
        _Search(heading="Objectives", cell=text_of(lambda row: objectives_text(row.search.objectives)), folded=True),
        *_NUMBERS,
        _Search(heading="Reasons", cell=text_of(_reasons), folded=True),
    ),
    (_STACKED, *_NUMBERS),
    (_STACKED, _LINE, _INTERVAL, _PROBES, _ENDING, _VERDICT),
    (_STACKED, _LINE, _ENDING, _VERDICT),
    (_STACKED, _LINE, _VERDICT),
)
"""From wide to narrow: the least important columns are left out first."""
