"""Requests and events, as data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plimsoll.api.reasons.reason import Severity

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchStatus:
    """Write the whole status, unless the suite has changed since it was read: that is a conflict, and a failed action.

    A request to create a run always comes after it, so that an operator that read an old suite creates none.
    """

    status: Mapping[str, Any]  # the fields; one that is None is removed
    resource_version: str  # of the suite as read; the API server refuses the request with 409 if it has another one


@dataclass(frozen=True, slots=True, kw_only=True)
class Emit:
    """Create a Kubernetes event about the suite."""

    severity: Severity
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRun:
    """Create a run. Outcome: `Found`, or `RunRefusal`.

    A run of the same name is `Found` too, if the suite owns it and it measures the same.
    """

    run: Object

    @property
    def name(self) -> str:
        """Name of the run."""
        return str(self.run["metadata"]["name"])


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRun:
    """Delete a run if it still has that UID. Outcome: `Deleted`, also for one that is gone or has another UID."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetRun:
    """Get a run by its name from the API server, not from a cache.

    Outcome: `Absent` if there is none. `Found` if it has the UID, or if the suite owns it and it measures what is asked
    for. `RunRefusal` with `is_taken` otherwise.
    """

    name: str
    uid: str = ""  # of the run that was seen before; empty if it is unknown
    measures: str = ""  # digest of what the run measures (`suite.children.measured_digest`); empty if unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """Have the API server check the run of every variant, until it refuses one. Outcome: `Checked`."""

    digest: str  # of what the suite measures; the outcome is about it
    runs: Mapping[str, Object]  # by the variant's name


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRuns:
    """The data of a round."""

    minute: int  # identity of the round
    digest: str  # of run, variants and repeat
    # Variant -> name -> UID of the finished runs with valid numbers, which never change, whatever else a user changes
    # about a run. Every variant that the suite has now is there.
    runs: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Evaluate the results of a round. Outcome: a `Judgement` of exactly this request."""

    round: RoundRuns  # the round to judge
    baseline: tuple[RoundRuns, ...]  # the accepted rounds, oldest first
    pinned: tuple[int, ...]  # minutes of those that slow drift is tested against, oldest first
    questions: str  # digest of the comparisons and hypotheses of the suite

    @property
    def minute(self) -> int:
        """Identity of the round."""
        return self.round.minute


Request = CreateRun | DeleteRun | GetRun | DryRun | Judge
Action = PatchStatus | Emit | Request

LONGEST_WAIT_SECONDS = 300.0
"""Until the next look, whatever happens: an event that was lost delays nothing for longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do, in this order. After a failed action, the others are not performed."""

    # The status if it changed or a run is to be created, events about it, and at most one request, the last
    actions: tuple[Action, ...] = ()
    # Seconds until the next look if nothing happens before; None if nothing is left to do
    again_after: float | None = None

    @property
    def request(self) -> Request | None:
        """The request, whose outcome the next look needs at once; None if there is none."""
        last = self.actions[-1] if self.actions else None
        return None if last is None or isinstance(last, PatchStatus | Emit) else last
