"""What a check is, and how values beyond its limits become a finding.

A check compares one value of each client, or of the trial or the point as a whole, with its limits.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from plimsoll.api.names import Verdict
from plimsoll.api.result import Finding
from plimsoll.measure.wording import clients_text, number_text, sentence

MAX_NAMED_CLIENTS = 32
_SEVERITY = (Verdict.VALID, Verdict.SUSPECT, Verdict.INVALID)


class Direction(StrEnum):
    """On which side of its limit a value is bad."""

    ABOVE = "above"
    BELOW = "below"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check.

    Attributes:
        reason: CamelCase; the `reason` of its findings.
        what: the value, as words that fit before a number.
        unit: of the value and the limits; empty for counts and ratios.
        suspect: a value beyond it makes the numbers Suspect; None if nothing does.
        invalid: a value beyond it makes them Invalid; None if nothing does.
        direction: which side of a limit is beyond it. A value equal to its limit holds.
        remedy: what to do about it, as a clause.

    """

    reason: str
    what: str
    unit: str = ""
    suspect: float | None = None
    invalid: float | None = None
    direction: Direction = Direction.ABOVE
    remedy: str

    def verdict(self, value: float) -> Verdict:
        """Return what a value makes of the numbers."""
        if self._beyond(value, self.invalid):
            return Verdict.INVALID
        return Verdict.SUSPECT if self._beyond(value, self.suspect) else Verdict.VALID

    def limit(self, verdict: Verdict) -> float:
        """Return the limit that a value with this verdict is beyond.

        Raises:
            ValueError: this check never comes to that verdict.

        """
        limit = {Verdict.SUSPECT: self.suspect, Verdict.INVALID: self.invalid}.get(verdict)
        if limit is None:
            raise ValueError(f"{self.reason} is never {verdict}")
        return limit

    def limit_text(self, limit: float | None) -> str:
        """Return a limit as words for a table; `-` for none."""
        return f"{self.direction} {self.with_unit(limit)}" if limit is not None else "-"

    def with_unit(self, value: float) -> str:
        """Return a value as words."""
        return f"{number_text(value)} {self.unit}".strip()

    def badness(self, value: float) -> float:
        """Return a number that is greater for a worse value."""
        return value if self.direction is Direction.ABOVE else -value

    def _beyond(self, value: float, limit: float | None) -> bool:
        return limit is not None and self.badness(value) > self.badness(limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A value that a check looks at.

    Attributes:
        clients: whose value it is; empty if it is that of the trial or the point.
        detail: in words, to stand in the message in place of the bare value: the tool's own message, an operation.

    """

    value: float
    clients: tuple[int, ...] = ()
    detail: str = ""


def verdict_of(findings: Iterable[Finding]) -> Verdict:
    """Return the worst verdict, Valid without findings."""
    return max((finding.verdict for finding in findings), key=_SEVERITY.index, default=Verdict.VALID)


def evaluate(check: Check, observations: Iterable[Observation]) -> tuple[Finding, ...]:
    """Return one finding for all observations that do not hold, with the worst one's value; none if all hold."""
    bad = [item for item in observations if check.verdict(item.value) is not Verdict.VALID]
    if not bad:
        return ()
    worst = max(bad, key=lambda item: check.badness(item.value))
    verdict = check.verdict(worst.value)
    # Words about something of which there must be none need no "limit 0" behind them.
    limit = check.limit(verdict)
    clients = sorted({client for item in bad for client in item.clients})
    others = [client for client in clients if client not in worst.clients]
    message = sentence(
        subject=clients_text(worst.clients),
        value=worst.detail or f"{check.what}: {check.with_unit(worst.value)}",
        limit=check.with_unit(limit) if limit or not worst.detail else "",
        others=clients_text(others),
        remedy=check.remedy,
    )
    return (Finding(reason=check.reason, verdict=verdict, message=message, clients=tuple(clients[:MAX_NAMED_CLIENTS])),)
