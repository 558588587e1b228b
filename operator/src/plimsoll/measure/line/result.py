"""What a search for the line found, and the next load that it needs."""

from dataclasses import dataclass

from plimsoll.api.line import Ending
from plimsoll.api.names import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The next probe of a search.

    Attributes:
        load: to offer, in operations per second or operations in flight.
        number: of the probe, from 0.

    """

    load: float
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The end of a search; loads are in operations per second or operations in flight.

    Attributes:
        ending: why the search ended.
        verdict: Invalid without a probe that counts.
        probes: number of probes made, with those that do not count.
        counted: number of probes behind the numbers.
        estimate: the load at which half of the trials meet all objectives; None if it is outside of the loads that may
            be offered, or unknown.
        low: lower end of its 95 % interval; None if that is below the lowest load that may be offered, or unknown.
        high: upper end of it; None if that is above the highest load that may be offered, or unknown.

    """

    ending: Ending
    verdict: Verdict
    probes: int
    counted: int
    estimate: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def width_percent(self) -> float | None:
        """The width of the interval in percent of the estimate; None if one of them is unknown."""
        if self.estimate is None or self.low is None or self.high is None:
            return None
        return 100 * (self.high - self.low) / self.estimate
