"""What a check is, and how values beyond its limits become a finding."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from plimsoll.api.names import Cause, Verdict
from plimsoll.api.result import Finding
from plimsoll.measure.rates import grouped
from plimsoll.measure.text import clients_text, number_text

MAX_NAMED_CLIENTS = 32
SEVERITY = (Verdict.VALID, Verdict.SUSPECT, Verdict.INVALID)  # the worst verdict last


class Direction(StrEnum):
    """On which side of its limit a value is bad."""

    ABOVE = "above"
    BELOW = "below"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What a value shows, its limits, and what to do beyond them."""

    reason: str  # CamelCase; the `reason` of its findings
    what: str  # describes the value, in words that fit before a number
    unit: str = ""  # of the value and the limits; empty for counts and ratios
    suspect: float | None = None  # a value beyond it makes the numbers Suspect; None if no value does
    invalid: float | None = None  # a value beyond it makes them Invalid; None if no value does
    direction: Direction = Direction.ABOVE  # which side of a limit is beyond it; a value equal to its limit passes
    remedy: str  # what the user can do, as a clause
    # What makes an attempt Invalid: the storage, unless that is excluded. None if each value has a cause of its own, or
    # if only other attempts show it. An attempt with a storage cause is evidence, whatever came after it.
    cause: Cause | None = Cause.STORAGE

    def verdict(self, value: float) -> Verdict:
        """Return the verdict on a value."""
        if self._is_beyond(value, self.invalid):
            return Verdict.INVALID
        return Verdict.SUSPECT if self._is_beyond(value, self.suspect) else Verdict.VALID

    def fails(self, value: float) -> bool:
        """Whether a value is beyond a limit."""
        return self.verdict(value) is not Verdict.VALID

    def limit(self, verdict: Verdict) -> float:
        """Return the limit that a value with this verdict exceeds; ValueError if no value has this verdict."""
        limit = {Verdict.SUSPECT: self.suspect, Verdict.INVALID: self.invalid}.get(verdict)
        if limit is None:
            raise ValueError(f"{self.reason} is never {verdict}")
        return limit

    def limit_text(self, limit: float | None) -> str:
        """Return a limit for a table; `-` for none."""
        return f"{self.direction} {self.with_unit(limit)}" if limit is not None else "-"

    def with_unit(self, value: float) -> str:
        """Return a value for people, with as many digits as it takes to differ from a limit."""
        texts = [number_text(value, digits) for digits in range(3, 7)]
        bounds = (self.suspect, self.invalid)
        limits = [number_text(limit) for limit in bounds if limit is not None and limit != value]
        return f"{next((text for text in texts if text not in limits), texts[-1])} {self.unit}".strip()

    def badness(self, value: float) -> float:
        """Return a number that is greater for a worse value."""
        return value if self.direction is Direction.ABOVE else -value

    def _is_beyond(self, value: float, limit: float | None) -> bool:
        return limit is not None and self.badness(value) > self.badness(limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedValue:
    """A value that a check compares with its limits."""

    value: float
    clients: tuple[int, ...] = ()  # those with this value; empty for a value of the trial or the point
    detail: str = ""  # replaces the bare value in the message, such as the tool's own message
    detail_names_clients: bool = False  # whether the message needs no other mention of the clients
    cause: Cause | None = None  # what this value shows if it is Invalid; None if its check or other attempts tell


CheckedValues = Iterator[CheckedValue]


def client_value(client: int, value: float, detail: str = "") -> CheckedValue:
    """Return a value of one client."""
    return CheckedValue(clients=(client,), value=value, detail=detail)


def verdict_of(findings: Iterable[Finding]) -> Verdict:
    """Return the worst verdict, Valid without findings."""
    return max((finding.verdict for finding in findings), key=SEVERITY.index, default=Verdict.VALID)


def invalid_reasons(findings: Iterable[Finding]) -> list[str]:
    """Return the reasons of the Invalid findings, each once."""
    return list(dict.fromkeys(finding.reason for finding in findings if finding.verdict is Verdict.INVALID))


def by_reason(findings: Iterable[tuple[int, Finding]]) -> list[list[tuple[int, Finding]]]:
    """Group numbered findings by reason, in the order of their first ones."""
    return [*grouped(findings, lambda case: case[1].reason).values()]


def worst_of(findings: Iterable[tuple[int, Finding]]) -> tuple[int, Finding]:
    """Return the first of the numbered findings with the worst verdict, of equal ones one that blames the storage."""

    def badness(case: tuple[int, Finding]) -> tuple[int, bool]:
        return SEVERITY.index(case[1].verdict), case[1].cause is Cause.STORAGE

    return max(findings, key=badness)


def evaluate(check: Check, values: Iterable[CheckedValue]) -> tuple[Finding, ...]:
    """Return one finding for all values that fail the check, worded by the worst of them; none if all pass."""
    bad = [item for item in values if check.fails(item.value)]
    if not bad:
        return ()
    worst = max(bad, key=lambda item: check.badness(item.value))
    verdict = check.verdict(worst.value)
    clients = sorted({client for item in bad for client in item.clients})
    others = [client for client in clients if client not in worst.clients]
    subject = f"{clients_text(worst.clients)}: " if worst.clients and not worst.detail_names_clients else ""
    value = worst.detail or f"{check.what}: {check.with_unit(worst.value)}"
    limit = check.limit(verdict)
    # A detail about something that must not occur needs no "limit 0".
    limit_text = f" (limit {check.with_unit(limit)})" if limit or not worst.detail else ""
    also = f"; also {clients_text(others)}" if others else ""
    message = f"{subject}{value}{limit_text}{also}; {check.remedy}"
    causes = {item.cause for item in bad if item.cause and check.verdict(item.value) is Verdict.INVALID}
    return (
        Finding(
            reason=check.reason,
            verdict=verdict,
            message=message,
            clients=tuple(clients[:MAX_NAMED_CLIENTS]),
            # One client that the storage may have spoiled is enough.
            cause=Cause.STORAGE if Cause.STORAGE in causes else next(iter(causes), None),
        ),
    )
