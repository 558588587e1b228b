"""What a trial is judged by."""

from collections.abc import Mapping
from dataclasses import dataclass

from plimsoll.api.names import Operation
from plimsoll.api.result import OperationResult, Window
from plimsoll.measure.intake import ClientMeasurement, Intake, TrialFacts
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

    """

    facts: TrialFacts
    intake: Intake
    window: Window | None
    span: Interval | None
    rates: Mapping[Operation, OperationRates]
    operations: tuple[OperationResult, ...]
    standstill: Standstill | None

    @property
    def measured(self) -> tuple[ClientMeasurement, ...]:
        """The usable measurements."""
        return self.intake.measured

    def shares_of(self, operation: Operation) -> list[Share]:
        """Return the shares of all clients in one operation."""
        return [share for item in self.measured for share in item.shares if share.sample.operation is operation]
