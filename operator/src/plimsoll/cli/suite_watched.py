"""A suite at one moment, as read from a cluster, and the round that a user waits for.

The document is read leniently: the operator may be of another version and write more fields.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from plimsoll.api.names import GROUP, ConditionStatus, SuiteConditionType
from plimsoll.api.suite_status import MAX_ANNOTATION_CHARACTERS, RoundVerdict
from plimsoll.cli.watched import Lenient, WatchedCondition, WatchedDisplay, read_leniently

REQUEST_ROUND = f"{GROUP}/request-round"

_REGRESSED = "Regressed"
"""The reason of a suite that is Stalled because of its gate: it measures nevertheless."""


class WatchedChildren(Lenient):
    """The number of runs of a round: those that ended, and all."""

    done: int
    total: int


class WatchedActiveRound(Lenient):
    """The round that is being measured."""

    minute: int
    cause: str
    start_time: datetime
    children: WatchedChildren
    current: str = ""


class WatchedRound(Lenient):
    """A former round."""

    minute: int
    cause: str
    verdict: str
    accepted: bool = False


class WatchedSuiteStatus(Lenient):
    """The suite's status."""

    observed_generation: int = -1
    conditions: tuple[WatchedCondition, ...] = ()
    requested_round: str = ""
    requested_minute: int = 0
    next_schedule_time: datetime | None = None
    round: WatchedActiveRound | None = None
    rounds: tuple[WatchedRound, ...] = ()
    dropped: tuple[int, ...] = ()
    display: WatchedDisplay = WatchedDisplay()


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedSuite:
    """A suite at one moment.

    Attributes:
        request: text of the annotation that requests a round, as far as the status remembers it; empty if absent.
        is_current: whether the operator has seen the last change of the specification.
        run: what the run that is being measured does; empty if there is none or it cannot be read.

    """

    status: WatchedSuiteStatus
    request: str = ""
    is_current: bool = True
    run: str = ""

    @property
    def active(self) -> WatchedActiveRound | None:
        """Return the round that is being measured."""
        return self.status.round

    @property
    def is_due(self) -> bool:
        """Whether a round that has not started yet is due, except by the schedule."""
        is_requested = self.request not in {"", self.status.requested_round}
        return not self.is_current or is_requested or self.condition(SuiteConditionType.RECONCILING) is not None

    @property
    def obstacle(self) -> str:
        """Return what keeps the suite from measuring until somebody changes something; empty if nothing does."""
        stalled = self.condition(SuiteConditionType.STALLED)
        if stalled is None or stalled.reason == _REGRESSED or not self.is_current:
            return ""
        return f"{stalled.reason}: {stalled.message}"

    def condition(self, kind: SuiteConditionType) -> WatchedCondition | None:
        """Return a condition that is True; None otherwise."""
        found = (one for one in self.status.conditions if one.type == kind and one.status == ConditionStatus.TRUE)
        return next(found, None)

    def round(self, minute: int) -> WatchedRound | None:
        """Return the former round of a minute."""
        return next((one for one in self.status.rounds if one.minute == minute), None)

    def successor(self, minute: int) -> int | None:
        """Return the minute of the round after that of a minute, even if it is no longer kept; None if none is."""
        known = [*(one.minute for one in self.status.rounds), *self.status.dropped]
        known += [self.active.minute] if self.active else []
        return min((one for one in known if one > minute), default=None)


def watched_suite(suite: Mapping[str, Any], run: Mapping[str, Any] | None = None) -> WatchedSuite:
    """Read a suite, and the display of the run that is being measured."""
    metadata = suite["metadata"]
    status = read_leniently(WatchedSuiteStatus, suite.get("status") or {}) or WatchedSuiteStatus()
    return WatchedSuite(
        status=status,
        request=remembered((metadata.get("annotations") or {}).get(REQUEST_ROUND, "")),
        is_current=status.observed_generation == metadata.get("generation", status.observed_generation),
        run=_run_text(run) if run is not None else "",
    )


def remembered(text: str) -> str:
    """Return the text of an annotation as far as the status of a suite remembers it."""
    return text[:MAX_ANNOTATION_CHARACTERS]


def _run_text(run: Mapping[str, Any]) -> str:
    display = read_leniently(WatchedDisplay, (run.get("status") or {}).get("display") or {}) or WatchedDisplay()
    progress = f"{display.progress} trials" if display.progress else ""
    return "  ".join(filter(None, (display.status, progress, display.message)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How waiting for a round ended.

    Attributes:
        round: the round; None if there is none to wait for.
        problem: why there is none; empty otherwise.

    """

    round: WatchedRound | None = None
    problem: str = ""


class AwaitedRound:
    """The round that a user waits for: the one that answers a request, or else the active or due one, or the last one.

    A round that a change of the suite abandons is replaced by the round of that change.
    """

    def __init__(self, request: str | None = None) -> None:
        """Wait for the round that answers this text of the annotation; by default for the active one."""
        self._request = None if request is None else remembered(request)
        self._minute: int | None = None

    def ending(self, suite: WatchedSuite) -> Ending | None:
        """Return how the round ended; None while it is due or being measured."""
        if self._minute is None and self._request is not None:
            self._minute = _answer(suite, self._request)
        if self._minute is not None and (end := self._ended(suite, self._minute)) is not None:
            return end
        if suite.obstacle:
            return Ending(problem=suite.obstacle)
        if self._minute is not None:
            return None
        if self._request is not None:
            return _not_answered(suite, self._request)
        self._minute = _present(suite)
        if self._minute is None:
            return None if suite.is_due else Ending(problem="no round is active or due, and none has ended")
        return self._ended(suite, self._minute)

    def _ended(self, suite: WatchedSuite, minute: int) -> Ending | None:
        """Return how the round of a minute, or the one that replaced it, ended; None while it is due or active."""
        if suite.active is not None and suite.active.minute == minute:
            return None
        found = suite.round(minute)
        if found is None:
            return Ending(problem=f"round {minute} is no longer in the suite's status")
        if found.verdict != RoundVerdict.SUPERSEDED:
            return Ending(round=found)
        successor = suite.successor(minute)
        if successor is None:
            return None if suite.is_due or suite.obstacle else Ending(round=found)
        self._minute = successor
        return self._ended(suite, successor)


def _answer(suite: WatchedSuite, request: str) -> int | None:
    """Return the minute of the round that answers a request; None if the status does not have it."""
    is_last = suite.status.requested_round == request
    return suite.status.requested_minute or None if is_last else None


def _not_answered(suite: WatchedSuite, request: str) -> Ending | None:
    """Return why the round of a request cannot be known; None while the operator has not answered the request."""
    if suite.status.requested_round == request:
        problem = f"the status does not say which round answered {request!r}; request one with another text"
        return Ending(problem=problem)
    if suite.request == request:
        return None
    present = f"it is {suite.request!r}" if suite.request else "there is none"
    return Ending(problem=f"no round {request!r} was requested by annotation {REQUEST_ROUND}: {present}")


def _present(suite: WatchedSuite) -> int | None:
    """Return the minute of the active round, or else of the last one; None if there is none or another one is due."""
    if suite.active is not None:
        return suite.active.minute
    return suite.status.rounds[0].minute if suite.status.rounds and not suite.is_due else None
