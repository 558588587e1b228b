"""The lead to T0: how long before T0 clients are ordered to arm, from the time that they needed before."""

from collections import deque

from plimsoll.conductor.phases import Attempt
from plimsoll.conductor.roster import Roster
from plimsoll.conductor.timings import Timings

_REMEMBERED = 16
"""The slowest of this many armings counts, so one slow client delays some trials, but not the rest of the run."""


class Lead:
    """The lead to T0, from observed armings: from the order until all clients, their commands built, are armed."""

    def __init__(self, timings: Timings) -> None:
        """Start without observed armings."""
        self._timings = timings
        self._armings: deque[float] = deque(maxlen=_REMEMBERED)

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
        margin = self._timings.go_margin
        return max(margin, seconds) if _may_be_postponed(attempt) else margin

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
