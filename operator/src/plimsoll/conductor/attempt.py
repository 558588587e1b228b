"""One attempt at a trial: its clients, orders and record, the time limits of its waits, and why it is aborted."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

from plimsoll.api.names import AbortReason, Cause, Layer, Outcome, Verdict
from plimsoll.api.result import Abort, Trial
from plimsoll.api.status import TrialKey
from plimsoll.api.surroundings import DroppedCaches
from plimsoll.conductor.ledger import MAX_ATTEMPTS
from plimsoll.conductor.roster import Client, Roster, failures, names_of, timestamp
from plimsoll.measure.intake import Offer, TrialFacts
from plimsoll.measure.line.observe import probe_of
from plimsoll.measure.matrix import MatrixCell
from plimsoll.measure.sample import ClientDocument
from plimsoll.measure.text import numbered
from plimsoll.measure.trial import TrialNumbers
from plimsoll.plan.document import Plan, Point
from plimsoll.plan.refusals import offer_of
from plimsoll.plan.sweep import client_seed
from plimsoll.plan.windows import Windows
from plimsoll.protocol import messages
from plimsoll.tools.base import AnyTool, StepKind
from plimsoll.tools.cast import Cast, Round
from plimsoll.tools.registry import TOOLS
from plimsoll.tools.target import TargetKind

SECOND = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """All in seconds, except factors and windows."""

    hold: float = 10.0  # an order request is answered after this time even without a new order
    lost_after: float = 20.0  # a client without a request for this time is lost
    silence: float = 60.0  # an agent without an answer for this time stops its load and exits
    arming: float = 30.0  # clients may take this time to arm, which includes the start of a tool that can wait ...
    arming_per_client: float = 0.25  # ... and this time longer for every client, because they may share a node.
    lead: float = 0.2  # time from `Go` to T0, in which it reaches all clients, which start at the same instant ...
    lead_alone: float = 0.05  # ... or of a single client, which has no other to start with ...
    lead_per_round_trip: float = 4.0  # ... plus this multiple of the slowest client's round trip ...
    lead_per_client: float = 0.004  # ... plus this time for every client of the trial.
    lead_growth: float = 3.0  # The second attempt has this multiple of the lead, and the third of that.
    start_grace: float = 3.0  # a client must report within this time after T0 that it runs
    work_factor: float = 10.0  # work that is not time-based may take this multiple of ramp and runtime longer
    staging_grace: float = 600.0  # additional time for a tool to write the data that it reads
    # An agent may take this time to drop caches, which includes writing all dirty data before ...
    dropping: float = 300.0
    dropping_grace: float = 15.0  # ... and may report it this much later.
    overrun_grace: float = 45.0  # a tool may exceed ramp and runtime by this time
    clean_up_grace: float = 60.0  # a tool that cleans up may take ramp, runtime and this time longer
    gate_fresh: float = 15.0  # a view of the cluster expires after this time
    live: float = 2.0  # minimum interval of reports of rates ...
    live_per_client: float = 0.02  # ... and the interval per client, because hundreds of clients share one conductor.
    windows: Windows = ()  # the maintenance windows in which trials may load; empty for any time
    linger: float = 5.0  # at the end, the agents have this time to fetch their dismissal

    def live_seconds(self, clients: int) -> float:
        """Return the interval at which each of `clients` reports its rates."""
        return max(self.live, self.live_per_client * clients)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The current time: `seconds` on the monotonic clock, for deadlines; `wall` in Unix nanoseconds, for T0."""

    seconds: float
    wall: int

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(self.wall / SECOND, tz=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why an attempt is aborted."""

    reason: AbortReason
    message: str
    cause: Cause | None = None  # shown by the evidence; None if the reason alone tells


INTERRUPTED = Fault(reason=AbortReason.INTERRUPTED, message="the run was interrupted or suspended")
CONDUCTOR_RESTARTED = Fault(
    reason=AbortReason.CONDUCTOR_RESTARTED, message="the conductor was restarted while this attempt was in flight"
)


@dataclass(slots=True, kw_only=True)
class Attempt:
    """The attempt in flight. What returns a `Fault` returns None if there is no reason to abort the attempt."""

    plan: Plan
    roster: Roster
    timings: Timings
    epoch: str  # of the conductor
    key: TrialKey
    point: Point
    cast: Cast | None = None  # the clients of each round; None before they are chosen
    round_number: int = 0  # the current round, from 0
    t0: int = 0  # start of the current round; Unix nanoseconds
    first_t0: int = 0  # earliest start of the first round: when all its clients were armed; 0 before that
    started_at: str = ""
    documents: dict[int, ClientDocument] = field(default_factory=dict)  # documents of the current round, by client
    numbers: list[TrialNumbers] = field(default_factory=list)  # results of the completed rounds
    caches: DroppedCaches | None = None  # what was dropped before the current round; None if nothing was
    matrix: tuple[MatrixCell, ...] = ()  # the cells of the measured attempt
    offer: Offer | None = None  # the load of an attempt of a search; `point` is the point at that load

    @property
    def tool(self) -> AnyTool:
        return TOOLS[self.point.tool]

    @property
    def clients(self) -> tuple[int, ...]:
        """The clients that take part in any round."""
        return self.cast.members if self.cast else ()

    @property
    def round(self) -> Round:
        return self.cast.rounds[self.round_number] if self.cast else Round()

    @property
    def loading(self) -> list[Client]:
        """The registered clients that generate load in the current round."""
        return self.roster.get(self.round.loading)

    @property
    def ends_at(self) -> int:
        """Planned end of the tools; Unix nanoseconds."""
        return self.t0 + self.point.timing.total_seconds * SECOND

    def choose_clients(self) -> Cast:
        """Choose the clients of each round, unless that is done."""
        self.cast = self.cast or self.tool.cast(self.point.typed_parameters, tuple(self.roster), self.point.clients)
        return self.cast

    def measured(self, numbers: TrialNumbers, moment: Moment) -> Trial:
        """Return the record of the attempt with its numbers, without its matrix, which the attempt keeps."""
        self.matrix = numbers.matrix
        # Every other number has the name of its field in the record.
        recorded = {field.name: getattr(numbers, field.name) for field in fields(numbers) if field.name != "matrix"}
        return Trial(**self._identity(moment), outcome=Outcome.MEASURED, caches=self.caches, **recorded)

    def aborted(self, fault: Fault, moment: Moment) -> Trial:
        return Trial(
            **self._identity(moment),
            probe=probe_of(self.offer) if self.offer else None,
            outcome=Outcome.ABORTED,
            abort=Abort(
                reason=fault.reason,
                message=fault.message,
                after_start=self.first_t0 > 0 or None,
                cause=fault.cause,
            ),
            verdict=Verdict.INVALID,
        )

    def _identity(self, moment: Moment) -> dict[str, Any]:
        return {
            "pass_number": self.key.pass_number,
            "attempt": self.key.attempt,
            "epoch": self.epoch,
            "clients": self.clients,
            "new_data_set": self.plan.renews_data_sets or None,
            "started_at": self.started_at,
            "finished_at": timestamp(moment.wall),
        }

    # -- staging

    @property
    def needs_staging(self) -> bool:
        """Whether clients have something to do before the current round can be armed."""
        return StepKind.PREPARE in self.tool.steps(self.point.typed_parameters) or bool(self.round.serving)

    @property
    def staging_seconds(self) -> float:
        """How long the clients may take to get ready for arming."""
        planned = self.point.typed_parameters.preparation_seconds(self.point.timing)
        return planned + self.timings.work_factor * self.point.timing.total_seconds + self.timings.staging_grace

    def give_staging(self) -> None:
        """Order the clients of the current round to get ready for arming."""
        for client in self.roster.get(self.round.serving):
            client.give(messages.ServeOrder(**self._tool_fields(client), peers=self._peers(client)))
        for client in self.loading:
            # With the same seed as the order to arm.
            client.give(messages.StageOrder(**self._tool_fields(client)))

    @property
    def unready(self) -> list[Client]:
        """The clients of the current round that are neither staged nor serving yet."""
        states = [(client, messages.AgentState.STAGED) for client in self.loading]
        states += [(client, messages.AgentState.SERVING) for client in self.roster.get(self.round.serving)]
        return [client for client, state in states if not client.is_in(state)]

    def staging_fault(self, *, overdue: bool) -> Fault | None:
        """Return the clients that failed to get ready for arming, or did not in time."""
        failure = self._failure(self.round.members, AbortReason.CLIENT_NOT_STAGED)
        if failure or not overdue:
            return failure
        who, limit = names_of(self.unready), f"{self.staging_seconds:g} s"
        message = f"{who} did not write the data that the trial reads within {limit}; check the storage for stalled I/O"
        if self.round.serving:
            servers = numbered("client", self.round.serving)
            message = f"{who} did not get ready within {limit}; {servers} had to serve: check their logs"
        return Fault(reason=AbortReason.CLIENT_NOT_STAGED, message=message)

    # -- arming

    @property
    def arming_seconds(self) -> float:
        """How long the clients may take to arm."""
        return self.timings.arming + self.timings.arming_per_client * len(self.round.loading)

    def give_arming(self) -> None:
        """Order the clients that generate load in the current round to arm."""
        for client in self.loading:
            data_of = self.round.next_after(client.number) if self.point.reads_next_client else None
            client.give(messages.ArmOrder(**self._tool_fields(client), peers=self._peers(client), data_of=data_of))

    def arming_fault(self, unarmed: list[Client], *, overdue: bool) -> Fault | None:
        """Return the clients that failed to arm, or that are `unarmed` after their time."""
        # Looking at files fails, or takes too long, on storage that hangs. A tool that waits for T0 has looked up its
        # own.
        is_slow = overdue and self.tool.target is TargetKind.VOLUME
        cause = Cause.STORAGE if is_slow or self.point.reads_next_client or self.tool.own_files else None
        failure = self._failure(self.round.members, AbortReason.CLIENT_NOT_ARMED, cause)
        if failure or not unarmed or not overdue:
            return failure
        limit = f"{self.arming_seconds:g} s"
        message = f"{names_of(unarmed)} did not report within {limit} that they are armed; no client did any I/O"
        return Fault(reason=AbortReason.CLIENT_NOT_ARMED, message=message, cause=cause)

    @property
    def lead_seconds(self) -> float:
        """The time from `Go` to T0, in which it has to reach all clients."""
        timings, clients = self.timings, self.loading
        round_trip = max((2 * client.clock.error for client in clients if client.clock), default=0.0)
        lead = timings.lead if len(clients) > 1 else timings.lead_alone
        lead += timings.lead_per_round_trip * round_trip + timings.lead_per_client * len(clients)
        # Attempts that the user interrupts are not limited to three.
        return float(lead * timings.lead_growth ** min(self.key.attempt, MAX_ATTEMPTS - 1))

    # -- running

    @property
    def overrun_seconds(self) -> float:
        """How long a tool may exceed ramp and runtime: longer if it is not time-based, or cleans up."""
        timings, trial = self.timings, self.point.timing.total_seconds
        work = 0 if self.tool.windowed else timings.work_factor * trial
        cleans_up = StepKind.CLEAN_UP in self.tool.steps(self.point.typed_parameters)
        return timings.overrun_grace + work + (trial + timings.clean_up_grace if cleans_up else 0)

    def running_fault(self, moment: Moment) -> Fault | None:
        """Return the servers that failed, refused documents, or late clients."""
        failure = self._failure(self.round.serving, AbortReason.CLIENT_LOST)
        # A tool that cannot be ended after its document has arrived does not change the document.
        undelivered = [client for client in self.round.members if client not in self.documents]
        failure = failure or self._failure(undelivered, AbortReason.RESULT_REFUSED)
        if failure:
            return failure
        waiting = [client for client in self.loading if client.number not in self.documents]
        must_run = moment.wall > self.t0 + int(self.timings.start_grace * SECOND)
        late = [
            client
            for client in waiting
            if client.is_in(messages.AgentState.LATE) or (must_run and not client.is_in(messages.AgentState.RUNNING))
        ]
        if late:
            message = f"{names_of(late)} did not start at T0; a late start would distort the sum of all clients"
            return Fault(reason=AbortReason.LATE_CLIENT, message=message)
        limit = self.overrun_seconds
        if moment.wall <= self.ends_at + int(limit * SECOND):
            return None
        who = names_of(waiting)
        message = f"{who} sent no result within {limit:g} s after the end; check the storage for stalled I/O"
        return Fault(reason=AbortReason.TOOL_OVERRAN, message=message)

    def lost_clients(self, ordered: Iterable[int], moment: Moment) -> Fault | None:
        """Return the clients that are silent or were replaced, except those that delivered."""
        silent = set(self.roster.missing(moment.seconds)) & set(self.round.members)
        replaced = {
            client.number
            for client in self.roster.get(ordered)
            if not isinstance(client.order, messages.ToolOrder | messages.DropCachesOrder | messages.GoOrder)
            or client.order.trial != self.key
        }
        lost = sorted((silent | replaced) - set(self.documents))
        if not lost:
            return None
        message = f"{numbered('client', lost)} died, was replaced, or was silent for too long"
        return Fault(reason=AbortReason.CLIENT_LOST, message=message)

    @property
    def facts(self) -> TrialFacts:
        """What the documents of the current round are judged by."""
        tool, parameters = self.tool, self.point.typed_parameters
        caches = self.caches.osds if self.caches else None
        return TrialFacts(
            clients=self.round.loading,
            runtime_seconds=self.point.runtime_seconds,
            ramp_seconds=self.point.ramp_seconds,
            t0_nanoseconds=self.t0,
            windowed=tool.windowed,
            ends_when_done=tool.ends_when_done(parameters),
            new_data_set=self.plan.renews_data_sets,
            least_runtime_seconds=tool.least_runtime_seconds,
            measures_network=tool.layer is Layer.NETWORK,
            quantities=tool.quantities,
            network_bytes_per_second=self.plan.network_bytes_per_second,
            warm_caches=self.point.warm_caches,
            dropped_node_caches=self.caches is not None,
            # OSDs that kept theirs, for which the helpers have no key, say why.
            dropped_osd_caches=caches is not None and caches.reason is None,
            at_random=parameters.at_random,
            skew=parameters.skew,
            disturbance=self.point.disturb,
            offer=self.offer or offer_of(parameters, self.point.clients),
            nodes={client.number: client.node for client in self.roster.get(self.round.members)},
        )

    def _tool_fields(self, client: Client) -> dict[str, Any]:
        point, place = self.point, {"pass_number": self.key.pass_number, "attempt": self.key.attempt}
        fields_of_point = ("tool", "parameters", "ramp_seconds", "runtime_seconds")
        return {name: getattr(point, name) for name in fields_of_point} | {
            "trial": self.key,
            "round_number": self.round_number,
            "seed": client_seed(self.plan.seed, point=point.name, **place, client=client.number),
        }

    def _peers(self, client: Client) -> dict[int, str]:
        return {peer.number: peer.address for peer in self.roster.get(self.round.peers(client.number))}

    def _failure(self, members: Iterable[int], reason: AbortReason, cause: Cause | None = None) -> Fault | None:
        """Return the messages of the clients that failed as a fault with that reason."""
        message = failures(self.roster.get(members))
        return Fault(reason=reason, message=message, cause=cause) if message else None


def preparation_order(plan: Plan, client: int) -> messages.PrepareOrder:
    return messages.PrepareOrder(
        discard=plan.prepare.discard,
        # Nothing else would make the data set new.
        must_discard=plan.renews_data_sets and not plan.prepare.prefill,
        prefill=plan.prepare.prefill,
        precondition=plan.prepare.precondition,
        content=plan.data_content,
        fill_percent=plan.prepare.fill_percent,
        seed=client_seed(plan.seed, point="prefill", pass_number=0, client=client),
    )
