"""The phases a session can be in, and the effects it asks its shell for."""

from dataclasses import dataclass, field

from plimsoll.api.names import RunPhase
from plimsoll.api.result import ResultStatus
from plimsoll.api.state import Failure, TrialKey
from plimsoll.measure.sample import ClientDocument
from plimsoll.measure.trial import TrialFacts
from plimsoll.plan.document import Point


@dataclass(slots=True, kw_only=True)
class Attempt:
    """The attempt at a trial that is under way."""

    key: TrialKey
    point: Point
    clients: tuple[int, ...] = ()
    t0: int = 0
    started_at: str = ""
    documents: dict[int, ClientDocument] = field(default_factory=dict)

    @property
    def ends_at(self) -> int:
        """When the tools should have ended; Unix nanoseconds."""
        return self.t0 + (self.point.ramp_seconds + self.point.runtime_seconds) * 10**9


@dataclass(slots=True, kw_only=True)
class Gathering:
    """Waiting until every client is registered, alive and quiet."""

    deadline: float


@dataclass(slots=True, kw_only=True)
class Preparing:
    """The clients that have not done so yet prefill; `deadline` is for those that are gone, None if nobody is."""

    deadline: float | None = None


@dataclass(slots=True, kw_only=True)
class Settling:
    """The storage digests the prefill."""

    until: float


@dataclass(slots=True, kw_only=True)
class Gating:
    """Waiting until the cluster is prepared, and until it is as it has to be for an attempt."""

    deadline: float


@dataclass(slots=True, kw_only=True)
class Beginning:
    """Waiting for the sink to note that the attempt is in flight."""

    attempt: Attempt


@dataclass(slots=True, kw_only=True)
class Staging:
    """The chosen clients write what the attempt is going to read; T0 is not set yet."""

    attempt: Attempt
    deadline: float


@dataclass(slots=True, kw_only=True)
class Arming:
    """Waiting for every chosen client to say that it is armed for T0."""

    attempt: Attempt


@dataclass(slots=True, kw_only=True)
class Running:
    """The tools run; documents come in."""

    attempt: Attempt


@dataclass(slots=True, kw_only=True)
class Judging:
    """The documents are being merged and judged."""

    attempt: Attempt


@dataclass(slots=True, kw_only=True)
class Recording:
    """Waiting for the sink to have the attempt for good."""

    attempt: Attempt


@dataclass(slots=True, kw_only=True)
class Ended:
    """Nothing more will be measured by this conductor."""

    phase: RunPhase
    failure: Failure | None
    since: float


Phase = Gathering | Preparing | Settling | Gating | Beginning | Staging | Arming | Running | Judging | Recording | Ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Store the state durably: an attempt is in flight. Then call `Session.begun`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Merge and judge the documents with `measure_trial`, then call `Session.judged`. May take a while."""

    facts: TrialFacts
    documents: dict[int, ClientDocument]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Store a point's status with the attempt durably, then call `Session.recorded`."""

    point: str
    status: ResultStatus


Effect = Begin | Judge | Record
