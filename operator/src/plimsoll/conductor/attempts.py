"""How often a trial is repeated."""

from collections.abc import Sequence

from plimsoll.api.names import AbortReason, Outcome, Verdict
from plimsoll.api.result import Trial

MAX_ATTEMPTS = 3
"""An aborted or invalid trial is repeated at most twice."""

_FREE_ABORTS = {AbortReason.INTERRUPTED}
"""Interruptions by the user do not use up a trial's attempts ..."""

MAX_FREE_ATTEMPTS = 20
"""... up to this number, because the size of results is bounded; in a search, over all its probes."""


def is_settled(attempts: Sequence[Trial], free_before: int = 0) -> bool:
    """Whether a (point, pass) needs no further attempt: it has trustworthy numbers, or has used up its attempts.

    `free_before` is the number of free attempts that other passes have used up.
    """
    if any(trial.outcome is Outcome.MEASURED and trial.verdict is not Verdict.INVALID for trial in attempts):
        return True
    free = min(free_attempts(attempts), max(0, MAX_FREE_ATTEMPTS - free_before))
    return len(attempts) - free >= MAX_ATTEMPTS


def next_attempt(attempts: Sequence[Trial]) -> int:
    """Return the number of the next attempt; one may be missing among those that were recorded."""
    return max((trial.attempt for trial in attempts), default=-1) + 1


def free_attempts(attempts: Sequence[Trial]) -> int:
    """Return the number of attempts that do not use up a trial's attempts."""
    return sum(trial.abort is not None and trial.abort.reason in _FREE_ABORTS for trial in attempts)
