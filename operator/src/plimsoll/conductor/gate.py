"""What an attempt waits for: that all clients have registered, and that the cluster is ready."""

from dataclasses import dataclass

from plimsoll.api.names import FailureReason
from plimsoll.api.run import Timeouts
from plimsoll.api.status import NO_OSDS, OsdsSeen, RunState
from plimsoll.conductor.phases import Gathering, Gating
from plimsoll.conductor.roster import Roster


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
    refusal: FailureReason | None = None  # why it will never be prepared, such as an option that Ceph refuses
    osds: OsdsSeen = NO_OSDS  # the most OSDs that have been seen so far


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
        self.view = ClusterView(prepared=not watched)
        self._seen_at = float("-inf")

    def see(self, view: ClusterView, now: float) -> None:
        """Update the view of the cluster."""
        self.view, self._seen_at = view, now

    def problems(self, now: float) -> tuple[str, ...]:
        """Return the reasons why no attempt may start; empty if the gate is open."""
        if not self.is_watched:
            return ()
        if not self.view.prepared:
            return self.view.problems or ("it is being prepared",)
        if not self._required:
            return self.view.differing_options
        if now - self._seen_at > self._fresh_seconds:
            return (f"Ceph has not reported its status for more than {self._fresh_seconds:g} s",)
        return self.view.problems
