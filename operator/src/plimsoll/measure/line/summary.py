"""The line of a point over the trials of its search, and their verdict."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plimsoll.api.line import Ending, Line
from plimsoll.api.names import Verdict
from plimsoll.api.result import Finding, Trial
from plimsoll.measure.checking import checks
from plimsoll.measure.checking.check import CheckedValue, evaluate, verdict_of
from plimsoll.measure.checking.line_checks import DRIFTING, NOT_MONOTONE
from plimsoll.measure.line.probe import BROKEN, arrived_load, counting_trials
from plimsoll.measure.line.result import Progress
from plimsoll.measure.line.uncounted import uncounted_text
from plimsoll.measure.summary import judge_replaced, last_attempts, replaced_attempts, rolled_up, same_tool
from plimsoll.measure.wording import number_text, probes_text

_DOUBTS = {
    Ending.NOT_MONOTONE: (NOT_MONOTONE, "a range of loads differs from those around it"),
    Ending.DRIFTING: (DRIFTING, "the line moved during the search"),
}

_NEAR = 1.5
"""Loads within this factor of the line, or within its interval, are next to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineNumbers:
    """The line of a point; the verdict and the findings are those of a search that ended."""

    line: Line
    verdict: Verdict
    findings: tuple[Finding, ...]


def summarise_search(trials: Sequence[Trial], progress: Progress) -> LineNumbers:
    """Summarise the trials of a search that has come this far."""
    good = counting_trials(trials)
    findings = (
        *_counted(trials, good, progress.line),
        *judge_replaced(replaced_attempts(trials) if good else (), probes_text),
        *same_tool(good),
        *_doubts(progress),
        *rolled_up([one for one in good if _matters(one, progress.line)] if good else _last(trials), probes_text),
    )
    return LineNumbers(line=progress.line, verdict=verdict_of(findings), findings=findings)


def _last(trials: Sequence[Trial]) -> list[Trial]:
    return [*last_attempts(trials).values()]


def _counted(trials: Sequence[Trial], good: Sequence[Trial], line: Line) -> tuple[Finding, ...]:
    probes, why = _last(trials), uncounted_text(trials)
    causes = f": {why}" if why else ""
    if not good:
        return evaluate(
            checks.NO_TRIAL_COUNTS, [CheckedValue(value=0, detail=f"no probe counts, of {len(probes)}{causes}")]
        )
    # A load with too few operations is not repeated but exceeded, which does no harm unless the search has to give up.
    gave_up = line.ending is Ending.PROBES_DO_NOT_COUNT
    missing = len(probes) - len(good) if gave_up else sum(one.verdict is Verdict.INVALID for one in probes)
    detail = f"{len(probes) - len(good)} of {len(probes)} probes do not count{causes}"
    return evaluate(checks.PASSES_MISSING, [CheckedValue(value=missing, detail=detail)])


def _matters(trial: Trial, line: Line) -> bool:
    """Whether what makes a probe that counts Suspect casts doubt on the line.

    A load far beyond the line overloads the storage and the clients on purpose, and one far below it cannot move it,
    as long as the one breaks and the other does not.
    """
    known = [load for load in (line.low, line.estimate, line.high) if load]
    if trial.probe is None or not known:
        return True
    load, broke = arrived_load(trial, trial.probe), trial.probe.outcome in BROKEN
    is_far_below = load < min(*known, (line.estimate or known[0]) / _NEAR)
    is_far_above = load > max(*known, (line.estimate or known[-1]) * _NEAR)
    return not (is_far_above if broke else is_far_below)


def _doubts(progress: Progress) -> Iterator[Finding]:
    if progress.line.ending in _DOUBTS:
        check, what = _DOUBTS[progress.line.ending]
        detail = f"{what}: the outcomes are {number_text(progress.evidence)} times likelier so"
        yield from evaluate(check, [CheckedValue(value=progress.evidence, detail=detail)])
