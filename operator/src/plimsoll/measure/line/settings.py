"""What a search for the line is asked to do."""

import math
from dataclasses import dataclass

from plimsoll.api.line import MOST_PROBES

_FLOOR = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Bounds and precision of a search; loads are in operations per second or operations in flight.

    Attributes:
        start: the first load.
        limit: the highest load that is ever offered.
        precision_percent: the search ends when its interval is at most this wide, in percent of the estimate.
        floor: the lowest load that is ever offered.
        step: every load is a multiple of it: the number of clients that share the load evenly.
        most_probes: the search ends after this many probes.

    """

    start: float
    limit: float
    precision_percent: float = 10.0
    floor: float = 0.0
    step: float = 1.0
    most_probes: int = MOST_PROBES

    def __post_init__(self) -> None:
        if self.step <= 0:
            raise ValueError(f"the step between loads must be positive, not {self.step:g}")
        if not self.floor:
            object.__setattr__(self, "floor", self.start / _FLOOR)
        if not 0 < self.floor <= self.start <= self.limit:
            raise ValueError(
                f"loads must ascend from floor to start to limit, not {self.floor:g}, {self.start:g}, {self.limit:g}"
            )
        if self.lowest > self.highest:
            raise ValueError(f"no multiple of {self.step:g} lies between {self.floor:g} and {self.limit:g}")
        if not 0 < self.precision_percent < 100:  # noqa: PLR2004 - percent
            raise ValueError(f"the precision lies between 0 and 100 %, not at {self.precision_percent:g} %")
        if self.most_probes < 1:
            raise ValueError(f"a search needs at least one probe, not {self.most_probes}")

    @property
    def lowest(self) -> float:
        """The lowest load that can be offered."""
        return max(1, math.ceil(self.floor / self.step)) * self.step

    @property
    def highest(self) -> float:
        """The highest load that can be offered."""
        return math.floor(self.limit / self.step) * self.step

    def offered(self, load: float) -> float:
        """Return the load closest to this one that can be offered."""
        return min(max(round(load / self.step) * self.step, self.lowest), self.highest)
