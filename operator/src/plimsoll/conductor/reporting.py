"""A session in words: its public state, the environment of its results, who is missing and why."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic import JsonValue

from plimsoll.api.names import RunPhase
from plimsoll.api.state import CurrentTrial, Prefill, RunState
from plimsoll.conductor.phases import (
    Arming,
    Attempt,
    Beginning,
    Ended,
    Gathering,
    Judging,
    Preparing,
    Recording,
    Running,
    Settling,
)

if TYPE_CHECKING:
    from plimsoll.conductor.roster import Roster
    from plimsoll.conductor.session import Session
    from plimsoll.conductor.timings import Moment

_SHOWN_CLIENTS = 12
_SHOWN_FACTS = 16


def timestamp(wall: int) -> str:
    """Write Unix nanoseconds as RFC 3339 in UTC, to the millisecond."""
    text = datetime.fromtimestamp(wall / 1e9, tz=UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def names(clients: Sequence[int]) -> str:
    """Write `client 3` or `clients 1, 2, 5`, shortened if there are many."""
    shown = ", ".join(map(str, clients[:_SHOWN_CLIENTS]))
    more = f" and {len(clients) - _SHOWN_CLIENTS} more" if len(clients) > _SHOWN_CLIENTS else ""
    return f"client{'s' if len(clients) > 1 else ''} {shown}{more}"


def why_not_ready(roster: Roster, missing: Sequence[int], ready_seconds: int) -> str:
    """Return why the clients did not come together within their deadline."""
    if missing:
        return f"{names(missing)} did not register, or was lost, and did not come back within {ready_seconds} s"
    busy = [client.number for client in roster if not client.is_quiet]
    return f"{names(busy)} did not confirm within {ready_seconds} s that the last tool has stopped"


def environment(roster: Roster) -> dict[str, JsonValue]:
    """Return what is known of where the numbers come from: nodes, and each distinct fact of the clients."""
    nodes: list[JsonValue] = [*sorted({client.node for client in roster})]
    facts: dict[str, list[JsonValue]] = {}
    for client in roster:
        for name, value in client.facts.items():
            known = facts.setdefault(name, [])
            if value not in known and len(known) < _SHOWN_FACTS:
                known.append(value)
    sizes = [client.prepared_bytes for client in roster]
    return {
        "nodes": nodes,
        "dataSetBytes": {"min": min(sizes, default=0), "max": max(sizes, default=0)},
        **{name: values[0] if len(values) == 1 else values for name, values in sorted(facts.items())},
    }


def run_state(session: Session, moment: Moment) -> RunState:
    """Return the public state of a session."""
    missing = session.roster.missing(moment.seconds)
    attempt = _attempt(session)
    ended = session.phase if isinstance(session.phase, Ended) else None
    return RunState(
        epoch=session.epoch,
        phase=ended.phase if ended else _shown_phase(session, missing),
        message=ended.failure.message if ended and ended.failure else _message(session, missing),
        registered=tuple(client.number for client in session.roster if client.number not in missing),
        missing=missing,
        prefill=_prefill(session),
        current=_current(attempt) if attempt and attempt.t0 else None,
        in_flight=attempt.key if attempt else None,
        in_flight_since=attempt.started_at if attempt else "",
        elapsed_seconds=round(session.elapsed(moment), 3),
        trials_done=session.ledger.done,
        trials_total=session.ledger.total,
        failure=ended.failure if ended else None,
    )


def _attempt(session: Session) -> Attempt | None:
    match session.phase:
        case Beginning() | Arming() | Running() | Judging() | Recording():
            return session.phase.attempt
        case _:
            return None


def _shown_phase(session: Session, missing: Sequence[int]) -> RunPhase:
    match session.phase:
        case Gathering() if missing:
            return RunPhase.GATHERING
        case Preparing():
            return RunPhase.PREPARING
        case Settling():
            return RunPhase.SETTLING
        case _:
            return RunPhase.MEASURING


def _message(session: Session, missing: Sequence[int]) -> str:
    match session.phase:
        case Gathering() if missing:
            return f"waiting for {names(missing)}"
        case Preparing():
            unfinished = [client.number for client in session.roster if not client.prepared_bytes]
            return f"prefilling: {names(unfinished)}" if unfinished else "prefilled"
        case Settling():
            return f"settling for {session.plan.prepare.settle_seconds} s after the prefill"
        case _:
            return ""


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
