"""The start of a run: how long the conductor waits for its clients, and when the time of the run starts to count."""

from plimsoll.api.run import Timeouts
from plimsoll.api.state import RunState
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
