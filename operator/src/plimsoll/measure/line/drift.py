"""Whether the storage became slower, or faster, during a search."""

from collections.abc import Sequence
from dataclasses import replace

from plimsoll.measure.line.curve import Trial, posterior

_DRIFTS = (-0.8, -0.4, -0.2, -0.1, 0.1, 0.2, 0.4, 0.8)
"""Change of the line's position from the first to the last trial: the alternatives, all equally likely."""


def drift_evidence(trials: Sequence[Trial]) -> float:
    """Return how much likelier the trials, in the order of time, are if the line moves steadily than if it does not.

    It is a Bayes factor: a storage that does not change exceeds 1/a in less than that part of searches.
    """
    if len(trials) < 2:  # noqa: PLR2004 - one trial has no order
        return 1.0
    still = posterior(trials).evidence
    return sum(posterior(_seen_from_start(trials, drift)).evidence for drift in _DRIFTS) / len(_DRIFTS) / still


def _seen_from_start(trials: Sequence[Trial], drift: float) -> list[Trial]:
    """Return the trials at the loads that would have been as far from the line in the middle of the search."""
    last = len(trials) - 1
    return [
        replace(trial, position=trial.position - drift * (index / last - 0.5)) for index, trial in enumerate(trials)
    ]
