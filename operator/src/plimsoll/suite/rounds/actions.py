"""Requests and events, as data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plimsoll.api.reasons.entry import Severity

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchStatus:
    """Write the whole status. A field that is None is removed."""

    status: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Emit:
    """Create a Kubernetes event about the suite."""

    severity: Severity
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRun:
    """Create a run. One of the same name that this suite owns is success; another one is a refusal (`is_taken`)."""

    run: Object

    @property
    def name(self) -> str:
        """Name of the run."""
        return str(self.run["metadata"]["name"])


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRun:
    """Delete a run if it still has that UID; one that is gone is success."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """Have the API server check the run of every variant without creating it, until it refuses one.

    Attributes:
        digest: of what the suite measures; the outcome is about it.
        runs: by the variant's name.

    """

    digest: str
    runs: Mapping[str, Object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Evaluate the results of a round.

    Attributes:
        minute: identity of the round.
        runs: names of its finished runs with valid numbers, by variant.
        baseline: minutes of the accepted rounds, oldest first.
        pinned: minutes of those that slow drift is tested against, oldest first.

    """

    minute: int
    runs: Mapping[str, Sequence[str]]
    baseline: tuple[int, ...]
    pinned: tuple[int, ...]


Request = CreateRun | DeleteRun | DryRun | Judge
Action = PatchStatus | Emit | Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do, in this order. After a failed action, the others are not performed.

    Attributes:
        actions: the status if it changed, events about it, and at most one request.
        again_after: seconds until the next look if nothing happens before; None if only an event can change anything.

    """

    actions: tuple[Action, ...] = ()
    again_after: float | None = None
