"""When an operator may take the Lease, decided as client-go does: from its content, and how long that has not changed.

Only the local monotonic clock counts. The times in the Lease are for people: clocks differ, and are set.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Any

Spec = Mapping[str, Any]

_LONGEST = 4.0  # times the own duration: a Lease with a longer one was edited


@dataclass(frozen=True, slots=True)
class Terms:
    """How long a Lease counts, in proportions of client-go: 15 s, 10 s and 2 s."""

    seconds: float = 15.0
    """A Lease that is unchanged for so long may be taken."""

    @property
    def lead_seconds(self) -> float:
        """How long after the last renewal its holder leads. The rest is for requests that are under way."""
        return self.seconds * 2 / 3

    @property
    def pause_seconds(self) -> float:
        return self.seconds * 2 / 15


@dataclass(frozen=True, slots=True)
class Sighting:
    """The content of the Lease, and the monotonic time when it was first seen like that."""

    spec: Spec
    since: float

    @property
    def holder(self) -> str:
        return self.spec.get("holderIdentity") or ""


def sight(lease: Mapping[str, Any] | None, before: Sighting | None, now: float) -> Sighting:
    """Return the sighting of the Lease; one that is deleted counts as unchanged: its holder may not know yet."""
    spec: Spec = (lease.get("spec") or {}) if lease is not None else before.spec if before is not None else {}
    return before if before is not None and before.spec == spec else Sighting(spec, now)


def seconds_to_wait(sighting: Sighting, identity: str, terms: Terms, now: float) -> float:
    """Return how long the operator with that identity has to wait before it may take the Lease; 0 if it may."""
    if sighting.holder in {"", identity}:
        return 0.0
    # The holder may have longer terms.
    stated = min(float(sighting.spec.get("leaseDurationSeconds") or 0), _LONGEST * terms.seconds)
    return max(0.0, sighting.since + max(stated, terms.seconds) - now)


def taken(sighting: Sighting, identity: str, terms: Terms, time: datetime) -> Spec:
    return {
        "acquireTime": _micro_time(time),
        "leaseDurationSeconds": ceil(terms.seconds),
        "leaseTransitions": (sighting.spec.get("leaseTransitions") or 0) + 1,
        **renewed(identity, time),
    }


def renewed(identity: str | None, time: datetime) -> Spec:
    """Return the part of the content that a renewal changes; None releases the Lease."""
    return {"holderIdentity": identity, "renewTime": _micro_time(time)}


def _micro_time(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
