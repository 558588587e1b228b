"""The conductor's time limits. Every wait has one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """All in seconds, except factors.

    Attributes:
        hold: an order request is answered after this time even without a new order.
        lost_after: a client without a request for this time is lost.
        silence: an agent without an answer for this time stops its load and exits.
        lead: minimum time from the arming order to T0 after an arming that was not in time.
        lead_first: minimum time from the arming order to T0 before any arming is observed.
        lead_per_client: added to those two for every client of the trial.
        lead_per_arming: lead as a multiple of the slowest observed arming ...
        lead_least: ... but not less than this time ...
        lead_most: ... and not more than this time.
        lead_per_round_trip: minimum lead as a multiple of the slowest client's round trip.
        go_margin: armed clients must be released at least this long before T0.
        start_grace: a client must report within this time after T0 that it runs.
        work_factor: work that is not time-based may take this multiple of ramp and runtime longer.
        staging_grace: additional time for a tool to write the data that it reads.
        dropping: an agent may take this time to drop caches, which includes writing all dirty data before ...
        dropping_grace: ... and may report it this much later.
        overrun_grace: a tool may exceed ramp and runtime by this time.
        clean_up_grace: a tool that cleans up may take ramp, runtime and this time longer.
        gate_fresh: a view of the cluster expires after this time.
        live: minimum interval of reports of rates ...
        live_per_client: ... and the interval per client, because hundreds of clients share one conductor.
        linger: at the end, the agents have this time to fetch their dismissal.

    """

    hold: float = 10.0
    lost_after: float = 20.0
    silence: float = 60.0
    lead: float = 1.0
    lead_first: float = 0.4
    lead_per_client: float = 0.004
    lead_per_arming: float = 4.0
    lead_least: float = 0.3
    lead_most: float = 5.0
    lead_per_round_trip: float = 10.0
    go_margin: float = 0.1
    start_grace: float = 3.0
    work_factor: float = 10.0
    staging_grace: float = 600.0
    dropping: float = 300.0
    dropping_grace: float = 15.0
    overrun_grace: float = 45.0
    clean_up_grace: float = 60.0
    gate_fresh: float = 15.0
    live: float = 2.0
    live_per_client: float = 0.02
    linger: float = 5.0

    def live_seconds(self, clients: int) -> float:
        """Return the interval at which each of `clients` reports its rates."""
        return max(self.live, self.live_per_client * clients)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The current time: `seconds` on the monotonic clock, for deadlines; `wall` in Unix nanoseconds, for T0."""

    seconds: float
    wall: int
