"""The reasons of conditions: lookups in the table of a run's reasons."""

from plimsoll.api.reasons.entry import ReasonEntry, Severity
from plimsoll.api.reasons.reason import Reason

_TABLE: dict[str, ReasonEntry] = {reason.value: reason.entry for reason in Reason}

LOAD_IS_GONE = frozenset(reason for reason in Reason if reason.entry.load_is_gone)
"""Reasons of CleanedUp with which a run no longer loads its target."""

PASSED_BY = frozenset(reason for reason in Reason if reason.entry.is_passed_by)
"""Reasons with which the queue skips a run that is not admitted yet."""

REFUSALS = frozenset(reason for reason in Reason if reason.entry.is_refusal)
"""Reasons of failed requests (`lifecycle.refusals`); of two of them the request succeeds later without any change."""


def remedy_of(reason: str) -> str:
    """Return what to do about a reason, as the last clause of a message; empty for an unknown reason."""
    return _TABLE[reason].remedy if reason in _TABLE else ""


def severity_of(reason: str) -> Severity:
    """Return the severity of a condition that is not True for this reason; Warning for an unknown reason."""
    return _TABLE[reason].severity if reason in _TABLE else Severity.WARNING


def event_name(name: str) -> str:
    return (_TABLE[name].event if name in _TABLE else "") or name
