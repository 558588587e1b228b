"""The reasons of conditions: the table of a run's reasons, and lookups in it."""

from collections.abc import Mapping

from plimsoll.api.reasons.reason import Reason, ReasonEntry, Severity
from plimsoll.api.reasons.runs import CLIENT_REASONS, ENDING_REASONS, WAITING_REASONS
from plimsoll.api.reasons.storage import REMOVAL_REASONS, STORAGE_REASONS

ENTRIES: tuple[ReasonEntry, ...] = (
    *WAITING_REASONS,
    *STORAGE_REASONS,
    *CLIENT_REASONS,
    *REMOVAL_REASONS,
    *ENDING_REASONS,
)
"""All reasons, in the order of the documentation."""

TABLE: Mapping[Reason, ReasonEntry] = {entry.reason: entry for entry in ENTRIES}

LOAD_IS_GONE = frozenset(entry.reason for entry in ENTRIES if entry.load_is_gone)
"""Reasons of CleanedUp with which a run no longer loads its target."""

PASSED_BY = frozenset(entry.reason for entry in ENTRIES if entry.is_passed_by)
"""Reasons with which the queue skips a run that is not admitted yet."""

REFUSALS = frozenset(entry.reason for entry in ENTRIES if entry.is_refusal)
"""Reasons of refused requests."""

_REMEDIES: Mapping[str, str] = {entry.reason: entry.remedy for entry in ENTRIES}
_EVENTS: Mapping[str, str] = {entry.reason: entry.event for entry in ENTRIES if entry.event}
_HARMLESS = frozenset(entry.reason for entry in ENTRIES if entry.severity is Severity.NORMAL)


def remedy_of(reason: str) -> str:
    """Return what to do about a reason, as the last clause of a message; empty if the messages have their own."""
    return _REMEDIES.get(reason, "")


def severity_of(reason: str) -> Severity:
    """Return the severity of a condition that is not True for this reason; Warning for an unknown reason."""
    return Severity.NORMAL if reason in _HARMLESS else Severity.WARNING


def event_name(name: str) -> str:
    """Return the name of the event about this reason or condition."""
    return _EVENTS.get(name, name)
