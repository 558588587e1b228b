"""Doubts about a comparison as a whole, whatever its numbers say."""

from collections.abc import Iterator, Sequence

from plimsoll.api.names import AbortReason, Verdict
from plimsoll.api.result import BenchmarkResult, Trial
from plimsoll.measure.compare.matching import Matching, Pair
from plimsoll.measure.summary import counted
from plimsoll.measure.wording import first_few

MAX_REPLACED = 0.2
"""Above this share of repeated trials, a run's numbers describe selected moments only."""


def marks_of(pair: Pair) -> tuple[str, ...]:
    """Return the doubts about either result; none if both are Valid."""
    return tuple(filter(None, (_mark("baseline", pair.baseline), _mark("candidate", pair.candidate))))


def repeated_runs(matching: Matching) -> Iterator[str]:
    """Yield the runs that repeated too many trials: the remaining ones are a selection."""
    yield from repeated_too_often("the baseline", [pair.baseline for pair in matching.pairs])
    yield from repeated_too_often("the candidate", [pair.candidate for pair in matching.pairs])


def repeated_too_often(name: str, results: Sequence[BenchmarkResult]) -> Iterator[str]:
    """Yield that a run repeated too many trials, if it did."""
    planned = sum(map(_planned, results))
    failed = sum(len(_failed_passes(result.status.trials)) for result in results)
    if failed > MAX_REPLACED * planned:
        yield (
            f"{failed} of {planned} trials of {name} were repeated or do not count (limit {100 * MAX_REPLACED:g} %); "
            "find the cause, then measure again"
        )


def gaps(matching: Matching, ungated: Sequence[str]) -> Iterator[str]:
    """Yield what should have been compared and was not; `ungated` are the points without a gating metric."""
    if not matching.pairs:
        yield "the runs have no point in common"
    if matching.baseline_only:
        yield f"the candidate lacks these points: {first_few([one.spec.point for one in matching.baseline_only])}"
    unfinished = [
        pair.baseline.spec.point
        for pair in matching.pairs
        if not (pair.baseline.status.final and pair.candidate.status.final)
    ]
    if unfinished:
        yield f"trials are missing because a run is not finished: {first_few(unfinished)}"
    if ungated:
        yield f"no metric gates because no trial counts or the tool measures none: {first_few(ungated)}"


def _mark(name: str, result: BenchmarkResult) -> str:
    """Return the doubt about a result; empty if it is Valid."""
    status = result.status
    if not status.final:
        return f"the {name} is not finished"
    if status.verdict is Verdict.VALID:
        return ""
    reasons = ", ".join(dict.fromkeys(finding.reason for finding in status.findings))
    return f"the {name} is {status.verdict}: {reasons or 'no reason is recorded'}"


def _planned(result: BenchmarkResult) -> int:
    """Return the number of planned trials; a search needs as many as it made."""
    if result.spec.line is None:
        return result.spec.repetitions
    return len({trial.pass_number for trial in result.status.trials})


def _failed_passes(trials: Sequence[Trial]) -> set[int]:
    """Return the passes with an attempt that does not count, unless the user interrupted it."""
    return {
        trial.pass_number
        for trial in trials
        if not counted([trial]) and not (trial.abort and trial.abort.reason is AbortReason.INTERRUPTED)
    }
