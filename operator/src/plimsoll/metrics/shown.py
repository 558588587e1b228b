"""What the statuses of runs and suites have in common."""

from collections.abc import Sequence

from pydantic import AwareDatetime

from plimsoll.api.names import ConditionStatus
from plimsoll.metrics.document import Names, Part

UNREADABLE = "Unreadable"
"""The status of an object that this version cannot read."""

_VALUES = {ConditionStatus.TRUE: 1, ConditionStatus.FALSE: 0, ConditionStatus.UNKNOWN: -1}


class Condition(Part):
    """A condition."""

    type: str
    status: ConditionStatus
    reason: str


class Display(Part):
    """What `kubectl get` shows."""

    status: str | None = None
    verdict: str | None = None


class DatedNames(Names):
    """An object's metadata, with its creation."""

    creation_timestamp: AwareDatetime


class Stored(Part):
    """An object, without its status."""

    metadata: DatedNames


def values_of(conditions: Sequence[Condition]) -> tuple[tuple[str, str, int], ...]:
    """Return type, reason and value of each condition; of two of one type the last one."""
    by_type = {condition.type: condition for condition in conditions}
    return tuple((kind, entry.reason, _VALUES[entry.status]) for kind, entry in by_type.items())


def unix_seconds(moment: AwareDatetime | None) -> float | None:
    """Return a time in Unix seconds."""
    return None if moment is None else moment.timestamp()
