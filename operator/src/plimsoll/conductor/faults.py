"""Why an attempt has to be given up: what its clients have said, or have not said in time."""

from dataclasses import dataclass

from plimsoll.api.names import AbortReason
from plimsoll.conductor import orders, reporting
from plimsoll.conductor.phases import Attempt, Staging
from plimsoll.conductor.roster import Roster
from plimsoll.conductor.steps import overrun_seconds, staging_seconds
from plimsoll.conductor.timings import Moment, Timings
from plimsoll.protocol.messages import AgentState

_SECOND = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What ends an attempt, and the words for people."""

    reason: AbortReason
    message: str


def failed(attempt: Attempt, roster: Roster, reason: AbortReason) -> Fault | None:
    """Return what the clients that failed say, as that reason; None if none did."""
    words = reporting.failures(roster.get(attempt.clients))
    return Fault(reason=reason, message=words) if words else None


def lost(attempt: Attempt, roster: Roster, moment: Moment) -> Fault | None:
    """Return which clients are silent, or are a new process that knows nothing of it; None if no one is.

    Who has sent its document may go.
    """
    silent = set(roster.missing(moment.seconds)) & set(attempt.clients)
    clients = roster.get(attempt.clients)
    replaced = {client.number for client in clients if not orders.is_of(client.order, attempt)}
    gone = sorted((silent | replaced) - set(attempt.documents))
    if not gone:
        return None
    message = f"{reporting.names(gone)} died, was replaced, or was not heard of for too long"
    return Fault(reason=AbortReason.CLIENT_LOST, message=message)


def unstaged(phase: Staging, roster: Roster, timings: Timings, moment: Moment) -> Fault | None:
    """Return which clients had their time to get ready for being armed and have not; None while there is time."""
    if moment.seconds < phase.deadline:
        return None
    attempt = phase.attempt
    slow = [client.number for client in roster.get(attempt.clients) if not client.is_in(AgentState.STAGED)]
    limit = staging_seconds(attempt.point, timings)
    message = f"{reporting.names(slow)} did not write within {limit:g} s what the trial reads; is the storage stuck?"
    return Fault(reason=AbortReason.CLIENT_NOT_STAGED, message=message)


def late(attempt: Attempt, roster: Roster, timings: Timings, moment: Moment) -> Fault | None:
    """Return which clients did not start at T0, or have not answered long after the end; None if all is in time."""
    waiting = [client for client in roster.get(attempt.clients) if client.number not in attempt.documents]
    grace = moment.wall > attempt.t0 + int(timings.start_grace * _SECOND)
    behind = [
        client.number
        for client in waiting
        if client.is_in(AgentState.LATE) or (grace and not client.is_in(AgentState.RUNNING))
    ]
    if behind:
        message = f"{reporting.names(behind)} did not start at T0; starting late would skew the sum of all clients"
        return Fault(reason=AbortReason.LATE_CLIENT, message=message)
    limit = overrun_seconds(attempt.point, timings)
    if moment.wall <= attempt.ends_at + int(limit * _SECOND):
        return None
    who = reporting.names([client.number for client in waiting])
    message = f"{who} sent no result {limit:g} s after the end; is the storage stuck?"
    return Fault(reason=AbortReason.TOOL_OVERRAN, message=message)
