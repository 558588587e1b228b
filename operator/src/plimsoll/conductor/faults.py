"""Why an attempt is aborted: late, silent or failed clients; and the lead to T0, which gives them time to arm."""

from collections import deque
from collections.abc import Sequence

from plimsoll.api.names import AbortReason, Cause
from plimsoll.conductor import reporting
from plimsoll.conductor.attempt import (
    Attempt,
    Fault,
    Moment,
    Timings,
    overrun_seconds,
    staging_seconds,
    unready_clients,
)
from plimsoll.conductor.phases import InFlight, Staging
from plimsoll.conductor.roster import Roster
from plimsoll.protocol.messages import AgentState, DropCachesOrder, GoOrder, ToolOrder

_SECOND = 10**9
_REMEMBERED_ARMINGS = 16
"""The slowest of this many armings counts, so one slow client delays some trials, but not the rest of the run."""

INTERRUPTED = Fault(reason=AbortReason.INTERRUPTED, message="the run was interrupted or suspended")

CONDUCTOR_RESTARTED = Fault(
    reason=AbortReason.CONDUCTOR_RESTARTED, message="the conductor was restarted while this attempt was in flight"
)


def reported_failure(
    members: Sequence[int], roster: Roster, reason: AbortReason, cause: Cause | None = None
) -> Fault | None:
    """Return the messages of the clients that failed as a fault with that reason; None if none did."""
    message = reporting.failures(roster.get(members))
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
    must_run = moment.wall > attempt.t0 + int(timings.start_grace * _SECOND)
    late = [
        client.number
        for client in waiting
        if client.is_in(AgentState.LATE) or (must_run and not client.is_in(AgentState.RUNNING))
    ]
    if late:
        message = f"{reporting.names(late)} did not start at T0; a late start would distort the sum of all clients"
        return Fault(reason=AbortReason.LATE_CLIENT, message=message)
    limit = overrun_seconds(attempt.point, timings)
    if moment.wall <= attempt.ends_at + int(limit * _SECOND):
        return None
    who = reporting.names([client.number for client in waiting])
    message = f"{who} sent no result within {limit:g} s after the end; check the storage for stalled I/O"
    return Fault(reason=AbortReason.TOOL_OVERRAN, message=message)


def lost_clients(phase: InFlight, roster: Roster, moment: Moment) -> Fault | None:
    """Return the clients that are silent or were replaced; None if there are none. Clients that delivered may leave."""
    attempt = phase.attempt
    silent = set(roster.missing(moment.seconds)) & set(attempt.round.members)
    replaced = {
        client.number
        for client in roster.get(phase.ordered)
        if not isinstance(client.order, ToolOrder | DropCachesOrder | GoOrder) or client.order.trial != attempt.key
    }
    lost = sorted((silent | replaced) - set(attempt.documents))
    if not lost:
        return None
    message = f"{reporting.names(lost)} died, was replaced, or was silent for too long"
    return Fault(reason=AbortReason.CLIENT_LOST, message=message)


def staging_fault(phase: Staging, roster: Roster, timings: Timings, moment: Moment) -> Fault | None:
    """Return the clients that failed to get ready for arming, or did not in time; None if there are none."""
    attempt = phase.attempt
    failure = reported_failure(attempt.round.members, roster, AbortReason.CLIENT_NOT_STAGED)
    if failure or moment.seconds < phase.deadline:
        return failure
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


class Lead:
    """The lead to T0, from observed armings: from the order until all clients, their commands built, are armed."""

    def __init__(self, timings: Timings) -> None:
        self._timings = timings
        self._armings: deque[float] = deque(maxlen=_REMEMBERED_ARMINGS)

    def seconds(self, attempt: Attempt, roster: Roster) -> float:
        """Return the lead to T0; each further attempt gets more time to arm."""
        timings = self._timings
        round_trip = max((2 * client.clock.error for client in roster if client.clock), default=0.0)
        observed = min(timings.lead_most, timings.lead_per_arming * max(self._armings, default=0.0))
        least = max(observed, timings.lead_per_round_trip * round_trip)
        for_clients = timings.lead_per_client * len(attempt.round.loading)
        if not _may_be_postponed(attempt):
            return (max(timings.lead, least) + for_clients) * (1 + attempt.key.attempt)
        if not self._armings:
            return max(timings.lead_first, least) + for_clients
        return max(timings.lead_least, least)

    def margin(self, attempt: Attempt, seconds: float) -> float:
        """Return how long before T0 clients must be released if arming took `seconds`: releasing them may as well."""
        return max(self._timings.go_margin, seconds if _may_be_postponed(attempt) else 0.0)

    def record_arming(self, attempt: Attempt, seconds: float, *, in_time: bool) -> bool:
        """Record how long an arming took; true if the attempt gets a second T0 because the first one was too soon.

        Only the first T0 of a first attempt is postponed; after any other one, the attempt is aborted.
        """
        postponed = not in_time and _may_be_postponed(attempt)
        self._armings.append(seconds)
        attempt.is_postponed |= postponed
        return postponed


def _may_be_postponed(attempt: Attempt) -> bool:
    """Whether an attempt gets a second T0 if the first one is too soon, which may therefore be soon."""
    return not attempt.key.attempt and not attempt.is_postponed
