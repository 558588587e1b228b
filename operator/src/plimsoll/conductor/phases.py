"""The phases of a session, and the effects that its shell performs for it."""

from dataclasses import dataclass, field

from plimsoll.api.caches import DroppedCaches
from plimsoll.api.names import AbortReason, Outcome, RunPhase, Verdict
from plimsoll.api.result import Abort, ResultStatus, Trial
from plimsoll.api.state import Failure, TrialKey
from plimsoll.conductor.reporting import timestamp
from plimsoll.conductor.timings import Moment
from plimsoll.measure.intake import Offer, TrialFacts
from plimsoll.measure.line.observe import probe_of
from plimsoll.measure.matrix import MatrixCell
from plimsoll.measure.sample import ClientDocument
from plimsoll.measure.trial import TrialNumbers
from plimsoll.plan.document import Point
from plimsoll.protocol.messages import RefusedError, ResultPost
from plimsoll.tools.cast import Cast, Round


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why an attempt is aborted."""

    reason: AbortReason
    message: str


@dataclass(slots=True, kw_only=True)
class Attempt:
    """The attempt in flight.

    Attributes:
        cast: the clients of each round; None before they are chosen.
        round_number: the current round, from 0.
        t0: start of the current round; Unix nanoseconds.
        is_postponed: whether the current round has a second T0, because the first one was too soon for its clients.
        documents: documents of the current round, by client.
        numbers: results of the completed rounds.
        new_data_set: whether the data sets of all clients were prepared for this attempt.
        caches: what was dropped before the current round; None if nothing was.
        matrix: the cells of the measured attempt.
        offer: the load of an attempt of a search; `point` is the point at that load.

    """

    key: TrialKey
    point: Point
    cast: Cast | None = None
    round_number: int = 0
    t0: int = 0
    is_postponed: bool = False
    started_at: str = ""
    new_data_set: bool = False
    documents: dict[int, ClientDocument] = field(default_factory=dict)
    numbers: list[TrialNumbers] = field(default_factory=list)
    caches: DroppedCaches | None = None
    matrix: tuple[MatrixCell, ...] = ()
    offer: Offer | None = None

    @property
    def clients(self) -> tuple[int, ...]:
        """The clients that take part in any round."""
        return self.cast.members if self.cast else ()

    @property
    def round(self) -> Round:
        """The current round."""
        return self.cast.rounds[self.round_number] if self.cast else Round()

    @property
    def is_last_round(self) -> bool:
        """Whether the current round is the last one."""
        return self.cast is None or self.round_number + 1 == len(self.cast.rounds)

    def expects(self, post: ResultPost) -> bool:
        """Whether a document belongs to the current round and has not arrived yet."""
        is_current = (post.trial, post.round_number) == (self.key, self.round_number)
        return is_current and post.client in self.round.loading and post.client not in self.documents

    def begin_next_round(self) -> None:
        """Start the next round, without documents."""
        self.round_number += 1
        self.is_postponed = False
        self.documents = {}

    @property
    def ends_at(self) -> int:
        """Planned end of the tools; Unix nanoseconds."""
        return self.t0 + (self.point.ramp_seconds + self.point.runtime_seconds) * 10**9

    def measured(self, numbers: TrialNumbers, *, epoch: str, moment: Moment) -> Trial:
        """Return the record of the attempt with its numbers, without its matrix, which the attempt keeps."""
        self.matrix = numbers.matrix
        return Trial(
            pass_number=self.key.pass_number,
            attempt=self.key.attempt,
            epoch=epoch,
            clients=self.clients,
            new_data_set=self.new_data_set or None,
            probe=numbers.probe,
            outcome=Outcome.MEASURED,
            started_at=self.started_at,
            finished_at=timestamp(moment.wall),
            verdict=numbers.verdict,
            findings=numbers.findings,
            window=numbers.window,
            stalls=numbers.stalls,
            operations=numbers.operations,
            hosts=numbers.hosts,
            caches=self.caches,
            slowest=numbers.slowest,
            osds=numbers.osds,
            cluster=numbers.cluster,
            tool=numbers.tool,
            warnings=numbers.warnings,
        )

    def aborted(self, fault: Fault, *, epoch: str, moment: Moment) -> Trial:
        """Return the record of the attempt with the reason of its abort."""
        return Trial(
            pass_number=self.key.pass_number,
            attempt=self.key.attempt,
            epoch=epoch,
            clients=self.clients,
            new_data_set=self.new_data_set or None,
            probe=probe_of(self.offer) if self.offer else None,
            outcome=Outcome.ABORTED,
            started_at=self.started_at,
            finished_at=timestamp(moment.wall),
            abort=Abort(reason=fault.reason, message=fault.message),
            verdict=Verdict.INVALID,
        )


def check_author(post: ResultPost) -> None:
    """Raise RefusedError if a client posts another client's document."""
    if post.document.client != post.client:
        message = (
            f"document.client is {post.document.client}, but it was posted as client {post.client}'s; "
            "a client posts its own document, or its I/O would count twice"
        )
        raise RefusedError("BadRequest", message)


@dataclass(slots=True, kw_only=True)
class Gathering:
    """Waiting for every client to be registered, alive and quiet."""

    deadline: float


@dataclass(slots=True, kw_only=True)
class Preparing:
    """The clients without a data set prefill; `deadline` applies to missing clients, None if there are none."""

    deadline: float | None = None


@dataclass(slots=True, kw_only=True)
class Settling:
    """The storage settles after the prefill."""

    until: float


@dataclass(slots=True, kw_only=True)
class Gating:
    """Waiting for the gate: until the cluster is prepared, and has no problems."""

    deadline: float


@dataclass(slots=True, kw_only=True)
class InFlight:
    """A phase with an attempt in flight."""

    attempt: Attempt

    @property
    def ordered(self) -> tuple[int, ...]:
        """The clients that have an order of this attempt."""
        return self.attempt.round.members


class Beginning(InFlight):
    """Waiting for the sink to store that the attempt is in flight."""


@dataclass(slots=True, kw_only=True)
class Staging(InFlight):
    """The clients get ready for arming, such as by writing the data that the attempt reads; T0 is not set yet."""

    deadline: float


@dataclass(slots=True, kw_only=True)
class Dropping(InFlight):
    """One client on each node drops the caches of the node.

    Attributes:
        is_staged: whether all clients of the round have been ordered to get ready before.
        token: the conductor's token for the helpers; None until the shell has read it.
        chosen: node -> the client that drops its caches.
        has_reached_osds: whether one of them has been ordered to have the OSDs drop theirs, after all nodes.

    """

    deadline: float
    is_staged: bool = False
    token: str | None = None
    chosen: dict[str, int] = field(default_factory=dict)
    has_reached_osds: bool = False

    @property
    def ordered(self) -> tuple[int, ...]:
        """The clients that have an order of this attempt."""
        return self.attempt.round.members if self.is_staged else tuple(self.chosen.values())


@dataclass(slots=True, kw_only=True)
class Arming(InFlight):
    """Waiting for every client to report that it is armed for T0; they were ordered to arm at `since`."""

    since: float


class Running(InFlight):
    """The tools run; documents arrive."""


class Judging(InFlight):
    """The documents are being merged and judged."""


class Recording(InFlight):
    """Waiting for the sink to store the attempt."""


@dataclass(slots=True, kw_only=True)
class Ended:
    """This conductor measures nothing more."""

    phase: RunPhase
    failure: Failure | None
    since: float


Phase = (
    Gathering
    | Preparing
    | Settling
    | Gating
    | Beginning
    | Staging
    | Dropping
    | Arming
    | Running
    | Judging
    | Recording
    | Ended
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginAttempt:
    """Store durably that an attempt is in flight, then call `Session.begun`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadToken:
    """Read the conductor's token for the helpers that drop caches, then call `Session.authorized`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAttempt:
    """Merge and judge the documents with `measure_trial`, which may take a while, then call `Session.judged`."""

    facts: TrialFacts
    documents: dict[int, ClientDocument]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordAttempt:
    """Store a point's status durably, then call `Session.recorded`."""

    point: str
    status: ResultStatus


Effect = BeginAttempt | ReadToken | JudgeAttempt | RecordAttempt
