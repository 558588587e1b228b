"""One attempt at a trial: its clients, its orders, its record, and the time limits: every wait has one."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from plimsoll.api.names import AbortReason, Cause, Outcome, Verdict
from plimsoll.api.result import Abort, Trial
from plimsoll.api.status import TrialKey
from plimsoll.api.surroundings import DroppedCaches
from plimsoll.conductor.ledger import Ledger
from plimsoll.conductor.reporting import timestamp
from plimsoll.conductor.roster import Client, Roster
from plimsoll.measure.intake import Offer
from plimsoll.measure.line.observe import probe_of
from plimsoll.measure.matrix import MatrixCell
from plimsoll.measure.sample import ClientDocument
from plimsoll.measure.trial import TrialNumbers
from plimsoll.plan.document import Plan, Point
from plimsoll.plan.refusals import at_load
from plimsoll.plan.sweep import client_seed
from plimsoll.protocol.messages import (
    AgentState,
    ArmOrder,
    PrepareOrder,
    ResultPost,
    ServeOrder,
    StageOrder,
)
from plimsoll.tools.base import StepKind, Timing, ToolParameters
from plimsoll.tools.cast import Cast, Round
from plimsoll.tools.registry import TOOLS


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """All in seconds, except factors."""

    hold: float = 10.0  # an order request is answered after this time even without a new order
    lost_after: float = 20.0  # a client without a request for this time is lost
    silence: float = 60.0  # an agent without an answer for this time stops its load and exits
    lead: float = 1.0  # minimum time from the arming order to T0 after an arming that was not in time
    lead_first: float = 0.4  # minimum time from the arming order to T0 before any arming is observed
    lead_per_client: float = 0.004  # added to those two for every client of the trial
    lead_per_arming: float = 4.0  # lead as a multiple of the slowest observed arming ...
    lead_least: float = 0.3  # ... but not less than this time ...
    lead_most: float = 5.0  # ... and not more than this time.
    lead_per_round_trip: float = 10.0  # minimum lead as a multiple of the slowest client's round trip
    go_margin: float = 0.1  # armed clients must be released at least this long before T0
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
    linger: float = 5.0  # at the end, the agents have this time to fetch their dismissal

    def live_seconds(self, clients: int) -> float:
        """Return the interval at which each of `clients` reports its rates."""
        return max(self.live, self.live_per_client * clients)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The current time: `seconds` on the monotonic clock, for deadlines; `wall` in Unix nanoseconds, for T0."""

    seconds: float
    wall: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why an attempt is aborted."""

    reason: AbortReason
    message: str
    cause: Cause | None = None  # what the evidence shows; None if the reason alone tells


@dataclass(slots=True, kw_only=True)
class Attempt:
    """The attempt in flight."""

    key: TrialKey
    point: Point
    cast: Cast | None = None  # the clients of each round; None before they are chosen
    round_number: int = 0  # the current round, from 0
    t0: int = 0  # start of the current round; Unix nanoseconds
    first_t0: int = 0  # start of the first round; 0 before it is set
    # Whether the current round has a second T0, because the first one was too soon for its clients.
    is_postponed: bool = False
    started_at: str = ""
    new_data_set: bool = False  # whether the data sets of all clients were prepared for this attempt
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
        """The current round."""
        return self.cast.rounds[self.round_number] if self.cast else Round()

    def expects(self, post: ResultPost) -> bool:
        """Whether a document belongs to the current round and has not arrived yet."""
        is_current = (post.trial, post.round_number) == (self.key, self.round_number)
        return is_current and post.client in self.round.loading and post.client not in self.documents

    @property
    def ends_at(self) -> int:
        """Planned end of the tools; Unix nanoseconds."""
        return self.t0 + (self.point.ramp_seconds + self.point.runtime_seconds) * 10**9

    def measured(self, numbers: TrialNumbers, *, epoch: str, moment: Moment) -> Trial:
        """Return the record of the attempt with its numbers, without its matrix, which the attempt keeps."""
        self.matrix = numbers.matrix
        return Trial(
            **self._identity(epoch, moment),
            places=numbers.places,
            probe=numbers.probe,
            load=numbers.load,
            outcome=Outcome.MEASURED,
            verdict=numbers.verdict,
            findings=numbers.findings,
            window=numbers.window,
            stalls=numbers.stalls,
            steadiness=numbers.steadiness,
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
            **self._identity(epoch, moment),
            probe=probe_of(self.offer) if self.offer else None,
            outcome=Outcome.ABORTED,
            abort=Abort(
                reason=fault.reason,
                message=fault.message,
                after_start=0 < self.first_t0 <= moment.wall or None,
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


def has_step(point: Point, step: StepKind) -> bool:
    """Whether a trial of the point has such a step."""
    return step in TOOLS[point.tool].steps(parameters_of(point))


def cast_of(point: Point, roster: Roster) -> Cast:
    """Return the clients of each round of a trial of the point."""
    return TOOLS[point.tool].cast(parameters_of(point), tuple(roster), point.clients)


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
    return has_step(attempt.point, StepKind.PREPARE) or bool(attempt.round.serving)


def looks_at_files_to_arm(point: Point) -> bool:
    """Whether clients look at files on their volumes to be armed: the tool's own, or those of the next client."""
    return point.reads_next_client or TOOLS[point.tool].own_files


def unready_clients(attempt: Attempt, roster: Roster) -> tuple[int, ...]:
    """Return the clients of the current round that are neither staged nor serving yet."""
    states = [(client, AgentState.STAGED) for client in roster.get(attempt.round.loading)]
    states += [(client, AgentState.SERVING) for client in roster.get(attempt.round.serving)]
    return tuple(client.number for client, state in states if not client.is_in(state))


def staging_seconds(point: Point, timings: Timings) -> float:
    """Return how long the clients may take to get ready for arming."""
    timing = Timing(ramp_seconds=point.ramp_seconds, runtime_seconds=point.runtime_seconds)
    planned = parameters_of(point).preparation_seconds(timing)
    return planned + timings.work_factor * (point.ramp_seconds + point.runtime_seconds) + timings.staging_grace


def overrun_seconds(point: Point, timings: Timings) -> float:
    """Return how long a tool may exceed ramp and runtime: longer if it is not time-based, or cleans up."""
    trial = point.ramp_seconds + point.runtime_seconds
    work = 0 if TOOLS[point.tool].windowed else timings.work_factor * trial
    cleaning = trial + timings.clean_up_grace if has_step(point, StepKind.CLEAN_UP) else 0
    return timings.overrun_grace + work + cleaning


def parameters_of(point: Point) -> ToolParameters:
    """Return the parameters of a point's tool."""
    parameters: ToolParameters = TOOLS[point.tool].parameters.model_validate(point.parameters)
    return parameters


def preparation_order(plan: Plan, client: int) -> PrepareOrder:
    """Return the order to discard, prefill and overwrite."""
    return PrepareOrder(
        discard=plan.prepare.discard,
        # Nothing else would make the data set new.
        must_discard=plan.renews_data_sets and not plan.prepare.prefill,
        prefill=plan.prepare.prefill,
        precondition=plan.prepare.precondition,
        fill_percent=plan.prepare.fill_percent,
        seed=client_seed(plan.seed, point="prefill", pass_number=0, client=client),
    )


def give_preparation(plan: Plan, unprepared: Iterable[Client]) -> None:
    """Order those clients to prepare that have confirmed that nothing else runs."""
    for client in unprepared:
        if client.is_quiet:
            client.give(preparation_order(plan, client.number))


def give_staging(plan: Plan, attempt: Attempt, roster: Roster) -> None:
    """Order the clients of the current round to get ready for arming."""
    for client in roster.get(attempt.round.serving):
        peers = _peers(attempt, client.number, roster)
        client.give(ServeOrder(**_tool_fields(plan, attempt, client.number), peers=peers))
    for client in roster.get(attempt.round.loading):
        # With the same seed as the order to arm.
        client.give(StageOrder(**_tool_fields(plan, attempt, client.number)))


def give_arming(plan: Plan, attempt: Attempt, roster: Roster) -> None:
    """Order the clients that generate load in the current round to arm."""
    for client in roster.get(attempt.round.loading):
        client.give(
            ArmOrder(
                **_tool_fields(plan, attempt, client.number),
                peers=_peers(attempt, client.number, roster),
                data_of=attempt.round.next_after(client.number) if attempt.point.reads_next_client else None,
                t0_nanoseconds=attempt.t0,
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
            plan.seed,
            point=point.name,
            pass_number=attempt.key.pass_number,
            attempt=attempt.key.attempt,
            client=client,
        ),
    }


def _peers(attempt: Attempt, client: int, roster: Roster) -> dict[int, str]:
    return {peer.number: peer.address for peer in roster.get(attempt.round.peers(client))}
