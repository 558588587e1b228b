"""A session's public state: what whoever watches a run may see of it."""

from collections.abc import Sequence

from plimsoll.api.names import RunPhase
from plimsoll.api.state import CurrentTrial, Prefill, RunState
from plimsoll.conductor.live import live_rates
from plimsoll.conductor.phases import (
    Arming,
    Attempt,
    Beginning,
    Ended,
    Gathering,
    Gating,
    Judging,
    Preparing,
    Recording,
    Running,
    Settling,
    Staging,
)
from plimsoll.conductor.reporting import names, shortened
from plimsoll.conductor.roster import Client
from plimsoll.conductor.session import Session
from plimsoll.conductor.timings import Moment
from plimsoll.protocol.messages import AgentState


def run_state(session: Session, moment: Moment) -> RunState:
    """Return the public state of a session."""
    missing = session.roster.missing(moment.seconds)
    attempt = _attempt(session)
    # It is over, and counted in what is done.
    is_recorded = isinstance(session.phase, Recording)
    ended = session.phase if isinstance(session.phase, Ended) else None
    return RunState(
        epoch=session.epoch,
        phase=ended.phase if ended else _shown_phase(session, missing),
        message=ended.failure.message if ended and ended.failure else _message(session, missing, moment),
        registered=tuple(client.number for client in session.roster if client.number not in missing),
        missing=missing,
        prefill=_prefill(session),
        current=_current(attempt) if attempt and attempt.t0 and not is_recorded else None,
        live=live_rates(session, moment),
        in_flight=attempt.key if attempt else None,
        in_flight_since=attempt.started_at if attempt else "",
        elapsed_seconds=round(session.elapsed(moment), 3),
        trials_done=session.ledger.done,
        trials_total=session.ledger.total,
        failure=ended.failure if ended else None,
    )


def _attempt(session: Session) -> Attempt | None:
    match session.phase:
        case Beginning() | Staging() | Arming() | Running() | Judging() | Recording():
            return session.phase.attempt
        case _:
            return None


def _shown_phase(session: Session, missing: Sequence[int]) -> RunPhase:
    match session.phase:
        case Gathering() if missing:
            return RunPhase.GATHERING
        case Gating() if missing or not session.gate.is_prepared:
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
        case Preparing():
            message = _preparation([client for client in session.roster if not client.prepared_bytes])
        case Gating():
            message = f"waiting for the cluster: {shortened(session.gate.problems(moment.seconds)) or 'it is ready'}"
        case Staging():
            message = _staging(session.roster.get(session.phase.attempt.clients))
        case Recording():
            message = f"recording {session.phase.attempt.key}"
        case Settling():
            message = f"settling for {session.plan.prepare.settle_seconds} s after the prefill"
    return message


def _preparation(unfinished: Sequence[Client]) -> str:
    """Say what the clients are at: a client without words of its own prefills."""
    speaking = [client for client in unfinished if client.is_in(AgentState.PREPARING) and client.message]
    silent = [client for client in unfinished if client not in speaking]
    # The clients' progress differs by a second or two: one of them speaks for all.
    steps = [("prefilling", silent), (speaking[0].message if speaking else "", speaking)]
    said = [f"{step}: {names([client.number for client in clients])}" for step, clients in steps if clients]
    return "; ".join(said) or "prefilled"


def _staging(clients: Sequence[Client]) -> str:
    """Say what the clients of an attempt are at, that are not staged yet."""
    unfinished = [client for client in clients if not client.is_in(AgentState.STAGED)]
    words = next((client.message for client in unfinished if client.is_in(AgentState.STAGING) and client.message), "")
    step = words or "writing what the trial reads"
    return f"{step}: {names([client.number for client in unfinished])}" if unfinished else "all clients are staged"


def _prefill(session: Session) -> Prefill:
    return Prefill(
        done_bytes=sum(client.prepared_bytes or client.done_bytes for client in session.roster),
        total_bytes=sum(client.prepared_bytes or client.total_bytes for client in session.roster),
    )


def _current(attempt: Attempt) -> CurrentTrial:
    return CurrentTrial(
        key=attempt.key,
        label=attempt.point.label,
        clients=attempt.clients,
        starts_at=attempt.t0 / 1e9,
        ends_at=attempt.ends_at / 1e9,
    )
