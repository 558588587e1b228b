"""The reasons of conditions: lookups in the table of a run's reasons."""

from collections.abc import Mapping

from plimsoll.api.reasons.reason import ReasonEntry, Severity
from plimsoll.api.reasons.runs import ENTRIES

TABLE: Mapping[str, ReasonEntry] = {entry.reason: entry for entry in ENTRIES}

LOAD_IS_GONE = frozenset(entry.reason for entry in ENTRIES if entry.load_is_gone)
"""Reasons of CleanedUp with which a run no longer loads its target."""

PASSED_BY = frozenset(entry.reason for entry in ENTRIES if entry.is_passed_by)
"""Reasons with which the queue skips a run that is not admitted yet."""

REFUSALS = frozenset(entry.reason for entry in ENTRIES if entry.is_refusal)
"""Reasons of failed requests (`lifecycle.refusals`); of two of them the request succeeds later without any change."""


def remedy_of(reason: str) -> str:
    """Return what to do about a reason, as the last clause of a message; empty if the messages have their own."""
    return TABLE[reason].remedy if reason in TABLE else ""


def severity_of(reason: str) -> Severity:
    """Return the severity of a condition that is not True for this reason; Warning for an unknown reason."""
    return TABLE[reason].severity if reason in TABLE else Severity.WARNING


def event_name(name: str) -> str:
    """Return the name of the event about this reason or condition."""
    return (TABLE[name].event if name in TABLE else "") or name
