"""The phases of a session, the conditions of the first ones, effects for the shell, and the dropping of caches."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from plimsoll.api.names import AbortReason, Cause, FailureReason, RunPhase
from plimsoll.api.result import ResultStatus
from plimsoll.api.run import Disturbance, Timeouts
from plimsoll.api.status import NO_OSDS, Failure, OsdsSeen, RunState
from plimsoll.api.surroundings import MAX_LISTED, DroppedCaches
from plimsoll.ceph.safety import quota_message, risk_message
from plimsoll.conductor.attempt import Attempt, Fault, Moment
from plimsoll.conductor.roster import Client, Roster, failures
from plimsoll.measure.intake import TrialFacts
from plimsoll.measure.sample import ClientDocument
from plimsoll.measure.text import first_few
from plimsoll.protocol.helpers import CacheDrop
from plimsoll.protocol.messages import AgentState, DropCachesOrder


@dataclass(slots=True, kw_only=True)
class Gathering:
    """Waiting for every client to be registered, alive and quiet."""

    deadline: float


@dataclass(slots=True, kw_only=True)
class Preparing:
    """The clients without a data set prefill; `deadline` applies to missing clients, None if there are none."""

    deadline: float | None = None
    closes: datetime | None = None  # when the maintenance window closes; None if the clients may prefill at any time


@dataclass(slots=True, kw_only=True)
class AwaitingWindow:
    """Waiting for a maintenance window in which the next trial can end, with the preparation before it."""

    opens: datetime


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
    """The clients get ready for arming, such as by writing the data that the attempt reads; none is armed yet."""

    deadline: float


@dataclass(slots=True, kw_only=True)
class Dropping(InFlight):
    """One client on each node drops the caches of the node."""

    deadline: float
    is_staged: bool = False  # whether all clients of the round have been ordered to get ready before
    token: str | None = None  # the conductor's token for the helpers; None until the shell has read it
    chosen: dict[str, int] = field(default_factory=dict)  # node -> the client that drops its caches
    has_reached_osds: bool = False  # whether one of them has been ordered to have the OSDs drop theirs, after all nodes

    @property
    def ordered(self) -> tuple[int, ...]:
        return self.attempt.round.members if self.is_staged else tuple(self.chosen.values())

    @property
    def undropped_nodes(self) -> tuple[str, ...]:
        """The nodes of the clients that generate load, unless their caches are dropped."""
        nodes = {client.node for client in self.attempt.loading}
        return tuple(sorted(nodes - {client.node for client, _ in self._drops}))

    def is_dropped(self, fsid: str | None) -> bool:
        """Whether all caches are dropped: of the nodes and, for a run on the Ceph cluster `fsid`, of the OSDs."""
        if self.token is None or self.undropped_nodes:
            return False
        return self.has_reached_osds or fsid is None

    def give(self, fsid: str | None) -> None:
        """Order one client on each node that has no order yet; when all nodes are done, one of them for the OSDs."""
        attempt = self.attempt
        if self.token is None:
            return
        order = DropCachesOrder(trial=attempt.key, token=self.token, limit_seconds=attempt.timings.dropping)
        for client in attempt.loading:
            if client.node not in self.chosen:
                client.give(order)
                self.chosen[client.node] = client.number
        # A node first writes its dirty data, which would warm up the caches of the OSDs again.
        if fsid is not None and not self.has_reached_osds and not self.undropped_nodes:
            attempt.roster.give([max(self.chosen.values())], order.model_copy(update={"fsid": fsid}))
            self.has_reached_osds = True

    def fault(self, moment: Moment) -> Fault | None:
        """Return why the caches cannot be dropped, or were not in time; None if neither is the case."""
        timings = self.attempt.timings
        message = failures(self._droppers) or "; ".join(
            f"client {client.number} on {client.node}: the helper of node {drop.node.node} answered; "
            "the cluster's network must support internalTrafficPolicy: Local"
            for client, drop in self._drops
            if drop.node.node != client.node
        )
        if not message and moment.seconds >= self.deadline:
            limit = timings.dropping + timings.dropping_grace
            nodes = first_few(self.undropped_nodes)
            message = f"the caches of {nodes} were not dropped within {limit:g} s; check the helper's pod there"
        # OSDs that do not answer, or dirty data that does not reach them in time, show storage that hangs.
        is_late = moment.seconds >= self.deadline - timings.dropping_grace
        cause = Cause.STORAGE if is_late or self.has_reached_osds else None
        return Fault(reason=AbortReason.CACHES_NOT_DROPPED, message=message, cause=cause) if message else None

    @property
    def dropped_caches(self) -> DroppedCaches:
        nodes = {drop.node.node: drop.node for _, drop in self._drops}
        listed = tuple(nodes[name] for name in sorted(nodes))
        osds = next((drop.osds for _, drop in self._drops if drop.osds is not None), None)
        return DroppedCaches(node_count=len(listed), nodes=listed[:MAX_LISTED], osds=osds)

    @property
    def _droppers(self) -> list[Client]:
        return self.attempt.roster.get(self.chosen.values())

    @property
    def _drops(self) -> list[tuple[Client, CacheDrop]]:
        return [
            (client, client.caches) for client in self._droppers if client.caches and client.is_in(AgentState.DROPPED)
        ]


@dataclass(slots=True, kw_only=True)
class Arming(InFlight):
    """Waiting for every client to report that it is armed, and then for the sink to store that they are."""

    deadline: float
    is_stored: bool  # whether it is stored that the clients may have started since `Attempt.first_t0`


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


Phase = Gathering | AwaitingWindow | Preparing | Settling | Gating | InFlight | Ended


class Start:
    """Whether all clients have registered since the conductor's Job was created, together with theirs.

    Until then it waits for `provisionSeconds`, which are no time of the run, and for `readySeconds`.
    """

    def __init__(self, *, job: str, before: RunState | None, timeouts: Timeouts, now: float) -> None:
        """Start, or continue from the state `before` of an earlier conductor; without a Job, the clients exist."""
        self._job = job
        self._timeouts = timeouts
        self._elapsed_before = before.elapsed_seconds if before else 0.0
        self.has_gathered = not job or (before is not None and before.gathered == job)
        self._since = now
        self._is_paused = False

    @property
    def gathered(self) -> str:
        """The Job whose clients have all registered; empty before that."""
        return self._job if self.has_gathered else ""

    def deadline(self, now: float) -> float:
        """Return until when the conductor waits for missing clients, or for the cluster, from now on."""
        provisioning = 0 if self.has_gathered else self._timeouts.provision_seconds
        return now + provisioning + self._timeouts.ready_seconds

    def check_registrations(self, phase: Gathering | Gating, roster: Roster, now: float) -> tuple[int, ...]:
        """Return the missing clients; once all have registered for the first time, renew the deadline of the phase."""
        missing = roster.missing(now)
        if not missing and not self.has_gathered:
            self.has_gathered, self._since = True, now
            phase.deadline = self.deadline(now)
        return missing

    def elapsed(self, now: float) -> float:
        """Return the seconds that the run has been active, across all its conductors, without pauses."""
        return self._elapsed_before + (now - self._since if self.has_gathered and not self._is_paused else 0.0)

    def pause(self, now: float) -> None:
        """Do not count the time until `resume` as time of the run."""
        self._elapsed_before, self._is_paused = self.elapsed(now), True

    def resume(self, now: float) -> None:
        self._since, self._is_paused = now, False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """The state of the cluster at one time."""

    prepared: bool  # the cluster contains everything that the run needs; never reverts to false
    problems: tuple[str, ...] = ()  # reasons why no attempt may start now
    differing_options: tuple[str, ...] = ()  # problems that matter even if the run ignores the cluster's health
    refusal: FailureReason | None = None  # why it will never be prepared, such as an option that Ceph refuses
    osds: OsdsSeen = NO_OSDS  # the most OSDs that have been seen so far
    # The health checks that end the run if they appear under load; None if the cluster did not report its status
    risks: frozenset[str] | None = None
    full_pools: tuple[str, ...] = ()  # pools of the run that have reached their quotas


class Gate:
    """A session's knowledge of the cluster. The default gate watches no cluster and is always open."""

    def __init__(self, *, watched: bool = False, required: bool = True, fresh_seconds: float = 15.0) -> None:
        """Start closed if a cluster is `watched`; unless a healthy one is `required`, only its options matter then."""
        self.is_watched, self._required = watched, required
        self._fresh_seconds = fresh_seconds  # after which a view expires
        self.view = ClusterView(prepared=not watched)
        self.danger: Failure | None = None  # why the run has to end at once
        self._seen_at = float("-inf")
        self._risks_before: frozenset[str] | None = None  # the load

    def see(self, view: ClusterView, now: float, *, under_load: bool = False) -> None:
        """Update the view of the cluster; risks that existed before the load are no danger."""
        self.view, self._seen_at = view, now
        if self.danger is None and view.full_pools:
            self.danger = Failure(reason=FailureReason.QUOTA_REACHED, message=quota_message(view.full_pools))
        if view.risks is None:
            return
        if self._risks_before is None or not under_load:
            self._risks_before = view.risks
        if self.danger is None and (appeared := view.risks - self._risks_before):
            self.danger = Failure(reason=FailureReason.CLUSTER_AT_RISK, message=risk_message(appeared))

    def problems(self, now: float) -> tuple[str, ...]:
        """Return the reasons why no attempt may start; empty if the gate is open."""
        if not self.is_watched:
            return ()
        if not self.view.prepared:
            return self.view.problems or ("it is being prepared",)
        if not self._required:
            return self.view.differing_options
        if now - self._seen_at > self._fresh_seconds:
            return (f"Ceph has not reported its status for more than {self._fresh_seconds:g} s",)
        return self.view.problems


class Signal(Enum):
    """An effect without facts."""

    BEGIN_ATTEMPT = "begin"  # store durably that an attempt is in flight, then call `Session.begun`
    RELEASE = "release"  # store durably that the clients are about to start, then call `Session.release`
    READ_TOKEN = "read"  # read the token for the helpers that drop caches, then call `Session.authorized`  # noqa: S105


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturb:
    """Take OSDs away from that time on, in Unix nanoseconds, and give them back; there is nothing to call."""

    disturbance: Disturbance
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAttempt:
    """Merge and judge the documents with `measure_round`, which may take a while, then call `Session.judged`."""

    facts: TrialFacts
    documents: dict[int, ClientDocument]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordAttempt:
    """Store a point's status durably, then call `Session.recorded`."""

    point: str
    status: ResultStatus


Effect = Signal | Disturb | JudgeAttempt | RecordAttempt
