"""Why an attempt has to wait or to be aborted: the lead to T0, registrations, the cluster, late or failed clients."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.api.names import AbortReason
from plimsoll.api.run import Timeouts
from plimsoll.api.status import RunState
from plimsoll.conductor import orders, reporting
from plimsoll.conductor.phases import (
    Attempt,
    Fault,
    Gathering,
    Gating,
    InFlight,
    Moment,
    Staging,
    Timings,
    overrun_seconds,
    staging_seconds,
    unready_clients,
)
from plimsoll.conductor.roster import Roster
from plimsoll.protocol.messages import AgentState

_SECOND = 10**9
_REMEMBERED_ARMINGS = 16
"""The slowest of this many armings counts, so one slow client delays some trials, but not the rest of the run."""

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
    # A tool that cannot be ended after its document has arrived does not change the document.
    undelivered = [client for client in attempt.round.members if client not in attempt.documents]
    failure = failure or reported_failure(undelivered, roster, AbortReason.RESULT_REFUSED)
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
    limit = overrun_seconds(attempt.point, timings)
    if moment.wall <= attempt.ends_at + int(limit * _SECOND):
        return None
    who = reporting.names([client.number for client in waiting])
    message = f"{who} sent no result within {limit:g} s after the end; check the storage for stalled I/O"
    return Fault(reason=AbortReason.TOOL_OVERRAN, message=message)


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


class Start:
    """Whether all clients have registered since the conductor's Job was created.

    In a cluster, that Job is created once the clients have nodes; their volumes and pods may take `provisionSeconds`.
    The operator enforces that limit and `readySeconds` after it, because it observes the pods. The conductor gives up
    only after both, and the time until all clients have registered does not count as time of the run.
    """

    def __init__(self, *, job: str, before: RunState | None, timeouts: Timeouts, now: float) -> None:
        """Start, or continue from the state that an earlier conductor of the Job stored (`before`).

        Without a Job, the clients already exist.
        """
        self._job = job
        self._timeouts = timeouts
        self._elapsed_before = before.elapsed_seconds if before else 0.0
        self.has_gathered = not job or (before is not None and before.gathered == job)
        self._since = now

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
        """Return the seconds that the run has been active, across all its conductors."""
        return self._elapsed_before + (now - self._since if self.has_gathered else 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """The state of the cluster at one time."""

    prepared: bool  # the cluster contains everything that the run needs; never reverts to false
    problems: tuple[str, ...] = ()  # reasons why no attempt may start now
    # Those of the problems that matter even if the cluster's health does not: options that do not have the run's
    # values, so that a trial would be Invalid.
    differing_options: tuple[str, ...] = ()
    refused: bool = False  # whether these would remain, however long one waits


class Gate:
    """A session's knowledge of the cluster. The default gate watches no cluster and is always open."""

    def __init__(self, *, watched: bool = False, required: bool = True, fresh_seconds: float = 15.0) -> None:
        """Start closed if a cluster is `watched`.

        Unless a healthy cluster is `required`, the gate ignores all problems but differing options once the cluster is
        prepared. A view expires after `fresh_seconds`.
        """
        self.is_watched = watched
        self._required = required
        self._fresh_seconds = fresh_seconds
        self._view = ClusterView(prepared=not watched)
        self._seen_at = float("-inf")

    @property
    def is_prepared(self) -> bool:
        """Whether the cluster contains everything that the clients need."""
        return self._view.prepared

    @property
    def is_refused(self) -> bool:
        """Whether the cluster will never be prepared, because Ceph refuses what the run asks for."""
        return self._view.refused

    def see(self, view: ClusterView, now: float) -> None:
        """Update the view of the cluster."""
        self._view, self._seen_at = view, now

    def problems(self, now: float) -> tuple[str, ...]:
        """Return the reasons why no attempt may start; empty if the gate is open."""
        if not self.is_watched:
            return ()
        if not self._view.prepared:
            return self._view.problems or ("it is being prepared",)
        if not self._required:
            return self._view.differing_options
        if now - self._seen_at > self._fresh_seconds:
            return (f"Ceph has not reported its status for more than {self._fresh_seconds:g} s",)
        return self._view.problems
