"""What a trial is judged by."""

from collections.abc import Mapping
from dataclasses import dataclass

from plimsoll.api.names import Operation
from plimsoll.api.result import OperationResult, Window
from plimsoll.measure.intake import Intake, Measured, TrialFacts
from plimsoll.measure.rates import OperationRates
from plimsoll.measure.stalls import Standstill
from plimsoll.measure.window import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A trial as it was planned, as it came back and as it was calculated.

    Attributes:
        span: the time that rates are taken over: the common window, or that of the whole run for a tool whose clients
            do not run for a time; None if nobody measured.
        standstill: None if it cannot be told.

    """

    facts: TrialFacts
    intake: Intake
    window: Window | None
    span: Interval | None
    rates: Mapping[Operation, OperationRates]
    operations: tuple[OperationResult, ...]
    standstill: Standstill | None

    @property
    def measured(self) -> tuple[Measured, ...]:
        """The measurements that can be calculated with."""
        return self.intake.measured
