"""One attempt at a trial: its clients, orders and record, the time limits of its waits, and why it is aborted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

from plimsoll.api.names import AbortReason, Cause, Outcome, Verdict
from plimsoll.api.result import Abort, Trial
from plimsoll.api.status import TrialKey
from plimsoll.api.surroundings import DroppedCaches
from plimsoll.conductor.ledger import MAX_ATTEMPTS, Ledger
from plimsoll.conductor.roster import Client, Roster, failures, names, timestamp
from plimsoll.measure.intake import Offer
from plimsoll.measure.line.observe import probe_of
from plimsoll.measure.matrix import MatrixCell
from plimsoll.measure.sample import ClientDocument
from plimsoll.measure.trial import TrialNumbers
from plimsoll.plan.document import Plan, Point
from plimsoll.plan.refusals import at_load
from plimsoll.plan.sweep import client_seed
from plimsoll.plan.windows import Windows
from plimsoll.protocol import messages
from plimsoll.tools.base import StepKind
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
    lead: float = 0.2  # time from `Go` to T0, in which it reaches all clients ...
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


@dataclass(slots=True, kw_only=True)
class Attempt:
    """The attempt in flight."""

    key: TrialKey
    point: Point
    cast: Cast | None = None  # the clients of each round; None before they are chosen
    round_number: int = 0  # the current round, from 0
    t0: int = 0  # start of the current round; Unix nanoseconds
    first_t0: int = 0  # earliest start of the first round: when all its clients were armed; 0 before that
    started_at: str = ""
    new_data_set: bool  # whether the data sets of all clients were prepared for this attempt
    documents: dict[int, ClientDocument] = field(default_factory=dict)  # documents of the current round, by client
    numbers: list[TrialNumbers] = field(default_factory=list)  # results of the completed rounds
    caches: DroppedCaches | None = None  # what was dropped before the current round; None if nothing was
    matrix: tuple[MatrixCell, ...] = ()  # the cells of the measured attempt
    offer: Offer | None = None  # the load of an attempt of a search; `point` is the point at that load

    @property
    def clients(self) -> tuple[int, ...]:
        """The clients that take part in any round."""
        return self.cast.members if self.cast else ()

    @property
    def round(self) -> Round:
        return self.cast.rounds[self.round_number] if self.cast else Round()

    @property
    def ends_at(self) -> int:
        """Planned end of the tools; Unix nanoseconds."""
        return self.t0 + self.point.timing.total_seconds * SECOND

    def measured(self, numbers: TrialNumbers, *, epoch: str, moment: Moment) -> Trial:
        """Return the record of the attempt with its numbers, without its matrix, which the attempt keeps."""
        self.matrix = numbers.matrix
        # Every other number has the name of its field in the record.
        recorded = {field.name: getattr(numbers, field.name) for field in fields(numbers) if field.name != "matrix"}
        return Trial(**self._identity(epoch, moment), outcome=Outcome.MEASURED, caches=self.caches, **recorded)

    def aborted(self, fault: Fault, *, epoch: str, moment: Moment) -> Trial:
        return Trial(
            **self._identity(epoch, moment),
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

    def _identity(self, epoch: str, moment: Moment) -> dict[str, Any]:
        return {
            "pass_number": self.key.pass_number,
            "attempt": self.key.attempt,
            "epoch": epoch,
            "clients": self.clients,
            "new_data_set": self.new_data_set or None,
            "started_at": self.started_at,
            "finished_at": timestamp(moment.wall),
        }


def new_attempt(ledger: Ledger, key: TrialKey, started_at: str) -> Attempt:
    """Return an attempt that begins once all clients are prepared; in a search, at the load that is needed next."""
    plan = ledger.plan
    point, offer = plan.point(key.point), ledger.offer(key)
    return Attempt(
        key=key,
        point=at_load(point, offer.search, offer.load) if offer and offer.search else point,
        started_at=started_at,
        new_data_set=plan.renews_data_sets,
        offer=offer,
    )


def cast_of(point: Point, roster: Roster) -> Cast:
    return TOOLS[point.tool].cast(point.typed_parameters, tuple(roster), point.clients)


def unprepared_clients(plan: Plan, roster: Roster, *, continues: bool = False) -> list[Client]:
    """Return the clients that have to prepare their data sets before the next attempt; servers have none.

    With a new data set for each trial, those are also clients whose tool has worked since, unless the attempt has begun
    and `continues` with its next round.
    """
    if plan.volume is None:
        return []
    renews = plan.renews_data_sets and not continues
    clients = [client for client in roster if not client.serves]
    return [client for client in clients if not client.prepared_bytes or (renews and client.data_set_used)]


def needs_staging(attempt: Attempt) -> bool:
    """Whether clients have something to do before the current round can be armed."""
    steps = TOOLS[attempt.point.tool].steps(attempt.point.typed_parameters)
    return StepKind.PREPARE in steps or bool(attempt.round.serving)


def unready_clients(attempt: Attempt, roster: Roster) -> tuple[int, ...]:
    """Return the clients of the current round that are neither staged nor serving yet."""
    states = [(client, messages.AgentState.STAGED) for client in roster.get(attempt.round.loading)]
    states += [(client, messages.AgentState.SERVING) for client in roster.get(attempt.round.serving)]
    return tuple(client.number for client, state in states if not client.is_in(state))


def staging_seconds(point: Point, timings: Timings) -> float:
    """Return how long the clients may take to get ready for arming."""
    planned = point.typed_parameters.preparation_seconds(point.timing)
    return planned + timings.work_factor * point.timing.total_seconds + timings.staging_grace


def overrun_seconds(point: Point, timings: Timings) -> float:
    """Return how long a tool may exceed ramp and runtime: longer if it is not time-based, or cleans up."""
    tool, trial = TOOLS[point.tool], point.timing.total_seconds
    work = 0 if tool.windowed else timings.work_factor * trial
    cleaning = trial + timings.clean_up_grace if StepKind.CLEAN_UP in tool.steps(point.typed_parameters) else 0
    return timings.overrun_grace + work + cleaning


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


def give_staging(plan: Plan, attempt: Attempt, roster: Roster) -> None:
    """Order the clients of the current round to get ready for arming."""
    for client in roster.get(attempt.round.serving):
        peers = _peers(attempt, client.number, roster)
        client.give(messages.ServeOrder(**_tool_fields(plan, attempt, client.number), peers=peers))
    for client in roster.get(attempt.round.loading):
        # With the same seed as the order to arm.
        client.give(messages.StageOrder(**_tool_fields(plan, attempt, client.number)))


def give_arming(plan: Plan, attempt: Attempt, roster: Roster) -> None:
    """Order the clients that generate load in the current round to arm."""
    for client in roster.get(attempt.round.loading):
        client.give(
            messages.ArmOrder(
                **_tool_fields(plan, attempt, client.number),
                peers=_peers(attempt, client.number, roster),
                data_of=attempt.round.next_after(client.number) if attempt.point.reads_next_client else None,
            )
        )


def _tool_fields(plan: Plan, attempt: Attempt, client: int) -> dict[str, Any]:
    point = attempt.point
    return {
        "trial": attempt.key,
        "round_number": attempt.round_number,
        "tool": point.tool,
        "parameters": point.parameters,
        "ramp_seconds": point.ramp_seconds,
        "runtime_seconds": point.runtime_seconds,
        "seed": client_seed(
            plan.seed, point=point.name, pass_number=attempt.key.pass_number, attempt=attempt.key.attempt, client=client
        ),
    }


def _peers(attempt: Attempt, client: int, roster: Roster) -> dict[int, str]:
    return {peer.number: peer.address for peer in roster.get(attempt.round.peers(client))}


INTERRUPTED = Fault(reason=AbortReason.INTERRUPTED, message="the run was interrupted or suspended")
CONDUCTOR_RESTARTED = Fault(
    reason=AbortReason.CONDUCTOR_RESTARTED, message="the conductor was restarted while this attempt was in flight"
)


def reported_failure(
    members: Sequence[int], roster: Roster, reason: AbortReason, cause: Cause | None = None
) -> Fault | None:
    """Return the messages of the clients that failed as a fault with that reason; None if none did."""
    message = failures(roster.get(members))
    return Fault(reason=reason, message=message, cause=cause) if message else None


def running_fault(attempt: Attempt, roster: Roster, timings: Timings, moment: Moment) -> Fault | None:
    """Return the servers that failed, refused documents, or late clients; None if there are none."""
    failure = reported_failure(attempt.round.serving, roster, AbortReason.CLIENT_LOST)
    # A tool that cannot be ended after its document has arrived does not change the document.
    undelivered = [client for client in attempt.round.members if client not in attempt.documents]
    failure = failure or reported_failure(undelivered, roster, AbortReason.RESULT_REFUSED)
    if failure:
        return failure
    waiting = [client for client in roster.get(attempt.round.loading) if client.number not in attempt.documents]
    must_run = moment.wall > attempt.t0 + int(timings.start_grace * SECOND)
    late = [
        client.number
        for client in waiting
        if client.is_in(messages.AgentState.LATE) or (must_run and not client.is_in(messages.AgentState.RUNNING))
    ]
    if late:
        message = f"{names(late)} did not start at T0; a late start would distort the sum of all clients"
        return Fault(reason=AbortReason.LATE_CLIENT, message=message)
    limit = overrun_seconds(attempt.point, timings)
    if moment.wall <= attempt.ends_at + int(limit * SECOND):
        return None
    who = names([client.number for client in waiting])
    message = f"{who} sent no result within {limit:g} s after the end; check the storage for stalled I/O"
    return Fault(reason=AbortReason.TOOL_OVERRAN, message=message)


def lost_clients(attempt: Attempt, ordered: Iterable[int], roster: Roster, moment: Moment) -> Fault | None:
    """Return the clients that are silent or were replaced, except those that delivered; None if there are none."""
    silent = set(roster.missing(moment.seconds)) & set(attempt.round.members)
    replaced = {
        client.number
        for client in roster.get(ordered)
        if not isinstance(client.order, messages.ToolOrder | messages.DropCachesOrder | messages.GoOrder)
        or client.order.trial != attempt.key
    }
    lost = sorted((silent | replaced) - set(attempt.documents))
    if not lost:
        return None
    message = f"{names(lost)} died, was replaced, or was silent for too long"
    return Fault(reason=AbortReason.CLIENT_LOST, message=message)


def staging_fault(attempt: Attempt, roster: Roster, timings: Timings, *, overdue: bool) -> Fault | None:
    """Return the clients that failed to get ready for arming, or did not in time; None if there are none."""
    failure = reported_failure(attempt.round.members, roster, AbortReason.CLIENT_NOT_STAGED)
    if failure or not overdue:
        return failure
    who = names(unready_clients(attempt, roster))
    limit = staging_seconds(attempt.point, timings)
    message = f"{who} did not write the data that the trial reads within {limit:g} s; check the storage for stalled I/O"
    if attempt.round.serving:
        servers = names(attempt.round.serving)
        message = f"{who} did not get ready within {limit:g} s; {servers} had to serve: check their logs"
    return Fault(reason=AbortReason.CLIENT_NOT_STAGED, message=message)


def arming_seconds(attempt: Attempt, timings: Timings) -> float:
    """Return how long the clients may take to arm."""
    return timings.arming + timings.arming_per_client * len(attempt.round.loading)


def arming_fault(
    attempt: Attempt, unarmed: Sequence[int], roster: Roster, timings: Timings, *, overdue: bool
) -> Fault | None:
    """Return the clients that failed to arm, or that are `unarmed` after their time; None if there are none."""
    tool = TOOLS[attempt.point.tool]
    # Looking at files fails, or takes too long, on storage that hangs. A tool that waits for T0 has looked up its own.
    is_slow = overdue and tool.target is TargetKind.VOLUME
    looks_at_files = is_slow or attempt.point.reads_next_client or tool.own_files
    cause = Cause.STORAGE if looks_at_files else None
    failure = reported_failure(attempt.round.members, roster, AbortReason.CLIENT_NOT_ARMED, cause)
    if failure or not unarmed or not overdue:
        return failure
    limit = arming_seconds(attempt, timings)
    message = f"{names(unarmed)} did not report within {limit:g} s that they are armed; no client did any I/O"
    return Fault(reason=AbortReason.CLIENT_NOT_ARMED, message=message, cause=cause)


def lead_seconds(attempt: Attempt, roster: Roster, timings: Timings) -> float:
    """Return the time from `Go` to T0, in which it has to reach all clients."""
    clients = roster.get(attempt.round.loading)
    round_trip = max((2 * client.clock.error for client in clients if client.clock), default=0.0)
    lead = timings.lead + timings.lead_per_round_trip * round_trip + timings.lead_per_client * len(clients)
    # Attempts that the user interrupts are not limited to three.
    return float(lead * timings.lead_growth ** min(attempt.key.attempt, MAX_ATTEMPTS - 1))


def out_of_time(elapsed: float, limit: int) -> Fault | None:
    """Return that the run has exceeded its time limit; None if it has not."""
    if elapsed <= limit:
        return None
    message = f"the run exceeded timeouts.totalSeconds ({limit} s)"
    return Fault(reason=AbortReason.DEADLINE_EXCEEDED, message=message)
