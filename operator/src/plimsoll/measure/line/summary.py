"""The line of a point over the trials of its search, and their verdict."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plimsoll.api.line import Ending, Line
from plimsoll.api.names import Verdict
from plimsoll.api.result import Finding, Trial
from plimsoll.measure.checking import checks
from plimsoll.measure.checking.check import CheckedValue, evaluate, verdict_of
from plimsoll.measure.checking.line_checks import DRIFTING, NOT_MONOTONE
from plimsoll.measure.line.probe import counting_trials
from plimsoll.measure.line.result import Progress
from plimsoll.measure.line.uncounted import uncounted_text
from plimsoll.measure.summary import last_attempts, rolled_up, same_tool
from plimsoll.measure.wording import number_text, probes_text

_DOUBTS = {
    Ending.NOT_MONOTONE: (NOT_MONOTONE, "a range of loads differs from those around it"),
    Ending.DRIFTING: (DRIFTING, "the line moved during the search"),
}


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
        *_counted(trials, good),
        *same_tool(good),
        *_doubts(progress),
        *rolled_up(good or list(last_attempts(trials).values()), probes_text),
    )
    return LineNumbers(line=progress.line, verdict=verdict_of(findings), findings=findings)


def _counted(trials: Sequence[Trial], good: Sequence[Trial]) -> tuple[Finding, ...]:
    why = uncounted_text(trials)
    detail = f"no probe counts, of {len(last_attempts(trials))}{f': {why}' if why else ''}"
    return evaluate(checks.NO_TRIAL_COUNTS, [CheckedValue(value=len(good), detail=detail)])


def _doubts(progress: Progress) -> Iterator[Finding]:
    if progress.line.ending in _DOUBTS:
        check, what = _DOUBTS[progress.line.ending]
        detail = f"{what}: the outcomes are {number_text(progress.evidence)} times likelier so"
        yield from evaluate(check, [CheckedValue(value=progress.evidence, detail=detail)])
