"""How long the conductor waits for what. Every wait has an end."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Seconds, all of them.

    Attributes:
        hold: an order request is answered after this long even if nothing changed.
        lost_after: a client that was not heard of for this long is lost.
        silence: an agent that heard nothing for this long stops its load and exits.
        lead: T0 lies at least this far ahead of the arming order.
        lead_per_client: added for every client of the trial.
        lead_per_round_trip: multiple of the slowest client's round trip that T0 lies ahead at least.
        go_margin: armed clients must be released at least this long before T0.
        start_grace: a client must have said that it runs this long after T0.
        work_factor: work that ends when it is done, and not by time, may take so many times ramp and runtime longer.
        staging_grace: to write what it is going to read a tool has this long beyond that.
        overrun_grace: a tool may take this long beyond ramp and runtime.
        clean_up_grace: a tool that cleans up afterwards has ramp, runtime and this long beyond that.
        gate_fresh: a look at the cluster that is older says nothing of how it is.
        live: clients that measure say this often what their tools do, or less often ...
        live_per_client: ... if this many seconds for every client are more: hundreds share one conductor.
        linger: at the end the agents have this long to fetch their dismissal.

    """

    hold: float = 10.0
    lost_after: float = 20.0
    silence: float = 60.0
    lead: float = 1.0
    lead_per_client: float = 0.004
    lead_per_round_trip: float = 10.0
    go_margin: float = 0.1
    start_grace: float = 3.0
    work_factor: float = 10.0
    staging_grace: float = 600.0
    overrun_grace: float = 45.0
    clean_up_grace: float = 60.0
    gate_fresh: float = 15.0
    live: float = 2.0
    live_per_client: float = 0.02
    linger: float = 5.0

    def live_seconds(self, clients: int) -> float:
        """Return how often each of so many clients says what its tool does."""
        return max(self.live, self.live_per_client * clients)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Now, twice: `seconds` on a clock that never jumps, for deadlines; `wall` in Unix nanoseconds, for T0."""

    seconds: float
    wall: int
