"""The state that the conductor publishes for the operator, or for the launcher in local mode.

It is small, and for display and resuming only. The results have the numbers.
"""

from typing import Annotated, Literal

from pydantic import Field

from plimsoll.api.model import Model
from plimsoll.api.names import FailureReason, Operation, RunPhase

_MAX_POINT = 253
"""Maximum length of a point's name, which is part of an object's name."""


class TrialKey(Model):
    """Identity of one attempt; as text, `random-write-003 pass 1 attempt 0`."""

    point: Annotated[str, Field(max_length=_MAX_POINT)]
    pass_number: Annotated[int, Field(ge=0, lt=2**31)]
    attempt: Annotated[int, Field(ge=0, lt=2**31)]

    def __str__(self) -> str:
        """Return the point, the pass and the attempt."""
        return f"{self.point} pass {self.pass_number} attempt {self.attempt}"


class CurrentTrial(Model):
    """The current trial; times in Unix seconds."""

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
    """The current rates of one operation as reported by the running tool; for display only."""

    operation: Operation
    iops: Annotated[float, Field(ge=0, lt=2**63, allow_inf_nan=False)]
    bytes_per_second: Annotated[int, Field(ge=0, lt=2**63)]


class Live(Model):
    """The sum of the current rates in a trial.

    Attributes:
        clients: number of clients in the sum; the others have not reported recently.

    """

    clients: int
    rates: tuple[LiveRate, ...]


class Failure(Model):
    """Why the run could not be measured."""

    reason: FailureReason
    message: str


class RunState(Model):
    """The state of the conductor.

    Attributes:
        epoch: identity of the conductor process.
        gathered: UID of the conductor's Job once all clients have registered with a conductor of that Job.
        in_flight: the attempt that has started and is not recorded yet; a later conductor records it as aborted.
        elapsed_seconds: how long the run has been active, without suspensions and interruptions.
        live: current rates; absent unless a running tool has reported any.
        trials_done: number of (point, pass) pairs that need no further attempt; a search for the line is one pair.
        probes_done: number of probes of the search to which the next trial belongs that need no further attempt.

    """

    schema_version: Literal[1] = 1
    epoch: str = ""
    phase: RunPhase = RunPhase.GATHERING
    message: str = ""
    registered: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    gathered: str = ""
    prefill: Prefill = Prefill()
    current: CurrentTrial | None = None
    live: Live | None = None
    in_flight: TrialKey | None = None
    in_flight_since: str = ""
    elapsed_seconds: float = 0.0
    trials_done: int = 0
    trials_total: int = 0
    probes_done: int = 0
    failure: Failure | None = None
