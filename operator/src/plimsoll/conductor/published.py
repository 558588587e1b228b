"""The public state of a session, for everyone who watches the run."""

from collections.abc import Sequence

from plimsoll.api.names import Operation, RunPhase
from plimsoll.api.status import CurrentTrial, Live, LiveRate, Prefill, RunState
from plimsoll.conductor.attempt import Moment, unready_clients
from plimsoll.conductor.phases import (
    Dropping,
    Ended,
    Gathering,
    Gating,
    InFlight,
    Preparing,
    Recording,
    Running,
    Settling,
    Staging,
    undropped_nodes,
)
from plimsoll.conductor.reporting import failures, names, shortened
from plimsoll.conductor.roster import Client
from plimsoll.conductor.session import Session
from plimsoll.protocol.messages import AgentState, PrepareOrder

_LIVE_INTERVALS = 3
"""A client without a report for this many intervals does not count for live rates."""


def run_state(session: Session, moment: Moment) -> RunState:
    """Return the public state of a session."""
    missing = session.roster.missing(moment.seconds)
    attempt = session.phase.attempt if isinstance(session.phase, InFlight) else None
    # Between two rounds, the clients gather as they do between attempts.
    begun = attempt or session.unfinished
    current = None
    # An attempt that is being recorded is over, and counted as done.
    if attempt and attempt.t0 and not isinstance(session.phase, Recording):
        current = CurrentTrial(
            key=attempt.key,
            label=attempt.point.label,
            clients=attempt.clients,
            starts_at=attempt.t0 / 1e9,
            ends_at=attempt.ends_at / 1e9,
        )
    ended = session.phase if isinstance(session.phase, Ended) else None
    key = session.ledger.next_trial()
    search = session.ledger.search(key.point) if key else None
    written = [_written(client) for client in session.roster]
    return RunState(
        epoch=session.epoch,
        phase=ended.phase if ended else _shown_phase(session, missing),
        message=ended.failure.message if ended and ended.failure else _message(session, missing, moment),
        registered=tuple(client.number for client in session.roster if client.number not in missing),
        missing=missing,
        gathered=session.start.gathered,
        prefill=Prefill(done_bytes=sum(done for done, _ in written), total_bytes=sum(total for _, total in written)),
        current=current,
        live=_live_rates(session, moment),
        in_flight=begun.key if begun else None,
        in_flight_since=begun.started_at if begun else "",
        in_flight_t0_nanoseconds=begun.first_t0 if begun else 0,
        osds=session.osds,
        elapsed_seconds=round(session.start.elapsed(moment.seconds), 3),
        trials_done=session.ledger.done,
        trials_total=session.ledger.total,
        probes_done=search.progress.line.probes if search else 0,
        failure=ended.failure if ended else None,
    )


def _shown_phase(session: Session, missing: Sequence[int]) -> RunPhase:
    match session.phase:
        case Gathering() if missing:
            return RunPhase.GATHERING
        case Gating() if missing or not session.gate.view.prepared:
            return RunPhase.GATHERING
        case Preparing():
            return RunPhase.PREPARING
        case Settling():
            return RunPhase.SETTLING
        case _:
            return RunPhase.MEASURING


def _message(session: Session, missing: Sequence[int], moment: Moment) -> str:
    message = ""
    match session.phase:
        case Gathering() if missing:
            message = f"waiting for {names(missing)}"
        case Gathering():
            message = failures(session.roster)
        case Preparing():
            step = "prefilling" if session.plan.prepare.prefill else "preparing"
            message = f"{_purpose(session)}{_preparation(session.unprepared(), step)}"
        case Gating():
            message = f"waiting for the cluster: {shortened(session.gate.problems(moment.seconds)) or 'it is ready'}"
        case Staging():
            unready = session.roster.get(unready_clients(session.phase.attempt, session.roster))
            steps = (client.message for client in unready if client.is_in(AgentState.STAGING) and client.message)
            step = next(steps, "writing the data that the trial reads")
            message = f"{step}: {names([client.number for client in unready])}" if unready else "all clients are staged"
        case Dropping():
            message = f"dropping the caches of {shortened(undropped_nodes(session.phase, session.roster))}"
        case Recording():
            message = f"recording {session.phase.attempt.key}"
        case Settling():
            step = "prefill" if session.plan.prepare.prefill else "preparation"
            message = f"{_purpose(session)}settling for {session.plan.prepare.settle_seconds} s after the {step}"
        case InFlight():
            search = session.ledger.search(session.phase.attempt.key.point)
            message = search.message if search else ""
    return message


def _purpose(session: Session) -> str:
    """Return the attempt that the clients prepare for; empty if they prepare for all of them."""
    key = session.ledger.next_trial() if session.plan.renews_data_sets else None
    return f"new data set for {key}: " if key else ""


def _preparation(unfinished: Sequence[Client], step: str) -> str:
    """Return the clients' current steps: `step` of a client without a message of its own."""
    others = [client for client in unfinished if client.is_in(AgentState.PREPARING) and client.message]
    silent = [client for client in unfinished if client not in others]
    # The clients' progress differs by a second or two, so one message is enough.
    steps = [(step, silent), (others[0].message if others else "", others)]
    messages = [f"{text}: {names([client.number for client in clients])}" for text, clients in steps if clients]
    return "; ".join(messages) or "prepared"


def _written(client: Client) -> tuple[int, int]:
    """Return how much of its data set a client has written, and its size; one that prepares again begins at 0."""
    prepares = isinstance(client.order, PrepareOrder) and not client.is_in(AgentState.PREPARED)
    if client.prepared_bytes and not prepares:
        return client.prepared_bytes, client.prepared_bytes
    reported = (client.done_bytes, client.total_bytes) if client.is_in(AgentState.PREPARING) else (0, 0)
    return reported[0], reported[1] or client.prepared_bytes


def _live_rates(session: Session, moment: Moment) -> Live | None:
    """Return the sum of the clients' newest rates; None if no tool runs, or none has reported any."""
    if not isinstance(session.phase, Running):
        return None
    since = moment.seconds - _LIVE_INTERVALS * session.timings.live_seconds(session.plan.members)
    clients = session.roster.get(session.phase.attempt.round.loading)
    reported = [client.rates for client in clients if client.rates and client.rated_at >= since]
    if not reported:
        return None
    sums: dict[Operation, LiveRate] = {}
    for rate in (rate for rates in reported for rate in rates):
        before = sums.get(rate.operation)
        sums[rate.operation] = (
            rate
            if before is None
            else LiveRate(
                operation=rate.operation,
                iops=before.iops + rate.iops,
                bytes_per_second=before.bytes_per_second + rate.bytes_per_second,
            )
        )
    return Live(clients=len(reported), rates=tuple(sums.values()))
