"""Every check that a number has to pass, with its limits and what to do when it does not hold.

This table is the only place with limits; the documentation of the checks is generated from it. A check compares one
value of each client, or of the trial or the point as a whole, with its limits. What the values are is `judge`'s and
`summary`'s business.
"""

from collections.abc import Iterable, Sequence
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


TOOL_FAILED = Check(
    reason="ToolFailed",
    what="errors of the tool",
    invalid=0,
    remedy="read the tool's message; it did not do what it was asked to",
)
OUTPUT_UNREADABLE = Check(
    reason="OutputUnreadable",
    what="documents of the tool that cannot be read",
    invalid=0,
    remedy="check the tool's version and its raw output; report it as a bug if the version is a supported one",
)
CLIENT_MISSING = Check(
    reason="ClientMissing",
    what="planned clients without an answer",
    invalid=0,
    remedy="look at the client's pod and node; what the others did is not what was asked for",
)
LATE_CLIENT = Check(
    reason="LateClient",
    what="start after the planned time",
    unit="s",
    suspect=1,
    invalid=5,
    remedy="lengthen the ramp and look for load on the client's node",
)
SHORT_RUN = Check(
    reason="ShortRun",
    what="difference between actual and requested runtime",
    unit="%",
    suspect=1,
    invalid=10,
    remedy="find out why the tool ended early or overran: an error, a signal, a stall at the end",
)
LOW_OVERLAP = Check(
    reason="LowOverlap",
    what="part of the mean runtime in which all clients measured",
    suspect=0.98,
    invalid=0.90,
    direction=Direction.BELOW,
    remedy="lengthen the ramp and the runtime, or find what delays the clients",
)
WIDE_SPREAD = Check(
    reason="WideSpread",
    what="time between the first and the last client's start",
    unit="s",
    suspect=1,
    remedy="lengthen the ramp and look for load on the late clients' nodes",
)
TOOL_TOO_OLD = Check(
    reason="ToolTooOld",
    what="starts that were estimated because the tool does not tell its own",
    suspect=0,
    remedy="use a newer version of the tool (fio 3.36 or later)",
)
NOT_PREFILLED = Check(
    reason="NotPrefilled",
    what="clients that read a data set which was not written before",
    suspect=0,
    remedy="set prepare.prefill: true; extents that were never written are answered without reading anything",
)
SHORT_IO = Check(
    reason="ShortIo",
    what="operations that transferred less than asked",
    suspect=0,
    remedy="check that the data set is fully written and not smaller than the tool was told",
)
DROPPED_IO = Check(
    reason="DroppedIo",
    what="operations that the tool gave up",
    invalid=0,
    remedy="look for errors of the storage in the client's kernel log",
)
NO_IO = Check(
    reason="NoIo",
    what="completed operations inside the window",
    invalid=1,
    direction=Direction.BELOW,
    remedy="look for a stalled cluster or a tool that did something else; a longer runtime helps very slow storage",
)
SERIES_INCOMPLETE = Check(
    reason="SeriesIncomplete",
    what="operations without a complete series over time",
    suspect=0,
    remedy="the client's mean rate was used inside the window, which hides stalls; check the tool's logs",
)
CLOCK_UNKNOWN = Check(
    reason="ClockUnknown",
    what="clients whose clock was not compared",
    suspect=0,
    remedy="check the connection between conductor and client; without it the window rests on trust",
)
CLOCK_OFFSET = Check(
    reason="ClockOffset",
    what="certain difference between the client's clock and the conductor's",
    unit="ms",
    suspect=10,
    invalid=50,
    remedy="synchronise the nodes' clocks (chrony, ntp)",
)
HISTOGRAM_MISMATCH = Check(
    reason="HistogramMismatch",
    what="operations whose latency histogram does not hold exactly the operations done",
    invalid=0,
    remedy="check the tool's version and its raw output; its percentiles would be of something else",
)
NO_TRIAL_COUNTS = Check(
    reason="NoTrialCounts",
    what="repetitions that count",
    invalid=1,
    direction=Direction.BELOW,
    remedy="remove the causes that the trials name, then run again",
)
PASSES_MISSING = Check(
    reason="PassesMissing",
    what="planned repetitions that do not count",
    suspect=0,
    remedy="the numbers rest on the others; remove the causes, then run again",
)
UNREPLICATED = Check(
    reason="Unreplicated",
    what="repetitions that count, where more were planned",
    suspect=2,
    direction=Direction.BELOW,
    remedy="one trial says nothing about how far the next would differ; run again",
)

CHECKS = (
    TOOL_FAILED,
    OUTPUT_UNREADABLE,
    CLIENT_MISSING,
    LATE_CLIENT,
    SHORT_RUN,
    LOW_OVERLAP,
    WIDE_SPREAD,
    TOOL_TOO_OLD,
    NOT_PREFILLED,
    SHORT_IO,
    DROPPED_IO,
    NO_IO,
    SERIES_INCOMPLETE,
    CLOCK_UNKNOWN,
    CLOCK_OFFSET,
    HISTOGRAM_MISMATCH,
    NO_TRIAL_COUNTS,
    PASSES_MISSING,
    UNREPLICATED,
)


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
        value=worst.detail or f"{check.what}: {_with_unit(check, worst.value)}",
        limit=_with_unit(check, limit) if limit or not worst.detail else "",
        others=clients_text(others),
        remedy=check.remedy,
    )
    return (Finding(reason=check.reason, verdict=verdict, message=message, clients=tuple(clients[:MAX_NAMED_CLIENTS])),)


def markdown_table(checks: Sequence[Check] = CHECKS) -> str:
    """Return the table of checks as Markdown, for the documentation."""
    rows = [
        "| Reason | What is measured | Suspect | Invalid | What to do |",
        "|---|---|---|---|---|",
        *(
            f"| `{check.reason}` | {check.what} | {_limit_text(check, check.suspect)} "
            f"| {_limit_text(check, check.invalid)} | {check.remedy} |"
            for check in checks
        ),
    ]
    return "\n".join(rows) + "\n"


def _limit_text(check: Check, limit: float | None) -> str:
    return f"{check.direction} {_with_unit(check, limit)}" if limit is not None else "-"


def _with_unit(check: Check, value: float) -> str:
    return f"{number_text(value)} {check.unit}".strip()
