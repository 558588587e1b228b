"""Why an attempt has to be aborted: what its clients have reported, or have failed to report in time."""

from collections.abc import Sequence

from plimsoll.api.names import AbortReason
from plimsoll.conductor import orders, reporting
from plimsoll.conductor.phases import Attempt, Fault, InFlight, Staging
from plimsoll.conductor.roster import Roster
from plimsoll.conductor.steps import overrun_seconds, staging_seconds, unready_clients
from plimsoll.conductor.timings import Moment, Timings
from plimsoll.protocol.messages import AgentState

_SECOND = 10**9

INTERRUPTED = Fault(reason=AbortReason.INTERRUPTED, message="the run was interrupted or suspended")

CONDUCTOR_RESTARTED = Fault(
    reason=AbortReason.CONDUCTOR_RESTARTED, message="the conductor was restarted while this attempt was in flight"
)


def reported_failure(members: Sequence[int], roster: Roster, reason: AbortReason) -> Fault | None:
    """Return the messages of the clients that failed as a fault with that reason; None if none did."""
    message = reporting.failures(roster.get(members))
    return Fault(reason=reason, message=message) if message else None


def running_fault(attempt: Attempt, roster: Roster, timings: Timings, moment: Moment) -> Fault | None:
    """Return the servers that failed, refused documents, or late clients; None if there are none."""
    failure = reported_failure(attempt.round.serving, roster, AbortReason.CLIENT_LOST)
    failure = failure or reported_failure(attempt.round.members, roster, AbortReason.RESULT_REFUSED)
    return failure or _late_clients(attempt, roster, timings, moment)


def lost_clients(phase: InFlight, roster: Roster, moment: Moment) -> Fault | None:
    """Return the clients that are silent or were replaced; None if there are none. Clients that delivered may leave."""
    attempt = phase.attempt
    silent = set(roster.missing(moment.seconds)) & set(attempt.round.members)
    clients = roster.get(phase.ordered)
    replaced = {client.number for client in clients if not orders.belongs_to(client.order, attempt)}
    lost = sorted((silent | replaced) - set(attempt.documents))
    if not lost:
        return None
    message = f"{reporting.names(lost)} died, was replaced, or was silent for too long"
    return Fault(reason=AbortReason.CLIENT_LOST, message=message)


def staging_fault(phase: Staging, roster: Roster, timings: Timings, moment: Moment) -> Fault | None:
    """Return the clients that failed to get ready for arming, or did not in time; None if there are none."""
    failure = reported_failure(phase.attempt.round.members, roster, AbortReason.CLIENT_NOT_STAGED)
    return failure or _staging_timeout(phase, roster, timings, moment)


def _staging_timeout(phase: Staging, roster: Roster, timings: Timings, moment: Moment) -> Fault | None:
    if moment.seconds < phase.deadline:
        return None
    attempt = phase.attempt
    who = reporting.names(unready_clients(attempt, roster))
    limit = staging_seconds(attempt.point, timings)
    message = f"{who} did not write the data that the trial reads within {limit:g} s; check the storage for stalled I/O"
    if attempt.round.serving:
        servers = reporting.names(attempt.round.serving)
        message = f"{who} did not get ready within {limit:g} s; {servers} had to serve: check their logs"
    return Fault(reason=AbortReason.CLIENT_NOT_STAGED, message=message)


def out_of_time(elapsed: float, limit: int) -> Fault | None:
    """Return that the run has exceeded its time limit; None if it has not."""
    if elapsed <= limit:
        return None
    message = f"the run exceeded timeouts.totalSeconds ({limit} s)"
    return Fault(reason=AbortReason.DEADLINE_EXCEEDED, message=message)


def arming_timeout(clients: Sequence[int]) -> Fault:
    """Return the clients that were not armed when T0 was too close to release them."""
    message = f"{reporting.names(clients)} did not report in time that they are armed; no client did any I/O"
    return Fault(reason=AbortReason.CLIENT_NOT_ARMED, message=message)


def _late_clients(attempt: Attempt, roster: Roster, timings: Timings, moment: Moment) -> Fault | None:
    """Return the clients that did not start at T0, or did not deliver in time; None if there are none."""
    waiting = [client for client in roster.get(attempt.round.loading) if client.number not in attempt.documents]
    must_run = moment.wall > attempt.t0 + int(timings.start_grace * _SECOND)
    late = [
        client.number
        for client in waiting
        if client.is_in(AgentState.LATE) or (must_run and not client.is_in(AgentState.RUNNING))
    ]
    if late:
        message = f"{reporting.names(late)} did not start at T0; a late start would distort the sum of all clients"
        return Fault(reason=AbortReason.LATE_CLIENT, message=message)
    if moment.wall <= attempt.ends_at:
        return None
    limit = overrun_seconds(attempt.point, timings)
    if moment.wall <= attempt.ends_at + int(limit * _SECOND):
        return None
    who = reporting.names([client.number for client in waiting])
    message = f"{who} sent no result within {limit:g} s after the end; check the storage for stalled I/O"
    return Fault(reason=AbortReason.TOOL_OVERRAN, message=message)
