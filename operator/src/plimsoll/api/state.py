"""The channel between the conductor and whoever watches it: the operator in a cluster, the launcher locally.

It is for showing and for resuming, and small. The numbers are in the results.
"""

from typing import Annotated, Literal

from pydantic import Field

from plimsoll.api.model import Model
from plimsoll.api.names import FailureReason, Operation, RunPhase

_MAX_POINT = 253
"""Characters of a point's name, which is a part of an object's."""


class TrialKey(Model):
    """Identity of one attempt. `str()` is how it is shown: `random-write-003 pass 1 attempt 0`."""

    point: Annotated[str, Field(max_length=_MAX_POINT)]
    pass_number: Annotated[int, Field(ge=0, lt=2**31)]
    attempt: Annotated[int, Field(ge=0, lt=2**31)]

    def __str__(self) -> str:
        """Return it for people."""
        return f"{self.point} pass {self.pass_number} attempt {self.attempt}"


class CurrentTrial(Model):
    """The trial that is under way; Unix seconds."""

    key: TrialKey
    label: str
    clients: tuple[int, ...]
    starts_at: float
    ends_at: float


class Prefill(Model):
    """Progress of the prefill over all clients."""

    done_bytes: int = 0
    total_bytes: int = 0


class LiveRate(Model):
    """What one operation does at this moment, in the words of a tool that runs: to watch, not to quote."""

    operation: Operation
    iops: Annotated[float, Field(ge=0, lt=2**63, allow_inf_nan=False)]
    bytes_per_second: Annotated[int, Field(ge=0, lt=2**63)]


class Live(Model):
    """What the tools of a trial under way say, added up.

    Attributes:
        clients: whose tools' rates are in the sums; the others have said nothing yet, or not for a while.

    """

    clients: int
    rates: tuple[LiveRate, ...]


class Failure(Model):
    """Why the run ended without being measured."""

    reason: FailureReason
    message: str


class RunState(Model):
    """What the conductor is doing.

    Attributes:
        epoch: identity of the conductor process that wrote this.
        in_flight: the attempt that was begun and not yet recorded; a later conductor records it as aborted.
        elapsed_seconds: how long the run has been active, without the time it was suspended or interrupted.
        live: absent unless the tools of a trial are running and one of them has said something.
        trials_done: (point, pass) pairs that need no further attempt.

    """

    schema_version: Literal[1] = 1
    epoch: str = ""
    phase: RunPhase = RunPhase.GATHERING
    message: str = ""
    registered: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    prefill: Prefill = Prefill()
    current: CurrentTrial | None = None
    live: Live | None = None
    in_flight: TrialKey | None = None
    in_flight_since: str = ""
    elapsed_seconds: float = 0.0
    trials_done: int = 0
    trials_total: int = 0
    failure: Failure | None = None
