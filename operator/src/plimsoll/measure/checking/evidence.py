"""What a trial is judged by."""

from collections.abc import Mapping
from dataclasses import dataclass

from plimsoll.api.line import Vary
from plimsoll.api.names import Operation
from plimsoll.api.result import OperationResult, Window
from plimsoll.measure.intake import ClientMeasurement, Intake, TrialFacts
from plimsoll.measure.line.observation import Observation, outcome_of
from plimsoll.measure.line.probe import BROKEN
from plimsoll.measure.rates import OperationRates
from plimsoll.measure.series import Share
from plimsoll.measure.stalls import Standstill
from plimsoll.measure.window import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A trial as planned, as received and as calculated.

    Attributes:
        span: the time that rates cover: the common window, or the whole run for a tool without a window; None if no
            client measured.
        standstill: None if it is unknown.
        observation: what the trial shows of an offered load; None outside of a search, and if it shows nothing.

    """

    facts: TrialFacts
    intake: Intake
    window: Window | None
    span: Interval | None
    rates: Mapping[Operation, OperationRates]
    operations: tuple[OperationResult, ...]
    standstill: Standstill | None
    observation: Observation | None = None

    @property
    def measured(self) -> tuple[ClientMeasurement, ...]:
        """The usable measurements."""
        return self.intake.measured

    @property
    def is_search(self) -> bool:
        """Whether the trial belongs to a search for the line."""
        return self.facts.offer is not None

    @property
    def is_open_loop(self) -> bool:
        """Whether operations arrived at an offered rate, however fast the storage answered."""
        return self.facts.offer is not None and self.facts.offer.search.vary is Vary.RATE

    @property
    def is_broken(self) -> bool:
        """Whether an open loop was late, or more arrived than the storage completed: what a search looks for."""
        if self.facts.offer is None or self.observation is None or not self.is_open_loop:
            return False
        return outcome_of(self.observation, self.facts.offer.search.objectives) in BROKEN

    def shares_of(self, operation: Operation) -> list[Share]:
        """Return the shares of all clients in one operation."""
        return [share for item in self.measured for share in item.shares if share.sample.operation is operation]
