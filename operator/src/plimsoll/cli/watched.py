"""A run or a suite at one moment, as read from a cluster, and how a run or a round is followed to its end.

Fields that this version does not know are ignored. A conductor's state that this version cannot read, for example with
an unknown phase, is left out: then the run's status alone is shown.
"""

import asyncio
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import click
from pydantic import ValidationError

from plimsoll.api.line import STORM_SUFFIX
from plimsoll.api.model import Model
from plimsoll.api.names import ConditionStatus, ConditionType, RunPhase, SuiteConditionType
from plimsoll.api.reasons.suites import MEASURES_NEVERTHELESS
from plimsoll.api.status import (
    STATE_FILE,
    BenchmarkRunStatus,
    Condition,
    CurrentTrial,
    Display,
    RunState,
    SuiteCondition,
)
from plimsoll.api.suite_status import (
    MAX_ANNOTATION_CHARACTERS,
    BenchmarkSuiteStatus,
    EndedRound,
    RoundVerdict,
    round_name,
)
from plimsoll.cli import Exit, exit_on
from plimsoll.cli.cluster import explain, kubectl_options, program
from plimsoll.cli.source import CONFIG_MAP, RESULT, RUN, InCluster, no_such_object
from plimsoll.kube.port import ApiError, ForbiddenError, Kind, Object, UnauthorizedError
from plimsoll.lifecycle import naming
from plimsoll.measure.text import count_text
from plimsoll.suite.rounds.turns import REQUEST_ROUND

if TYPE_CHECKING:
    from plimsoll.kube.client import AioKube


_ABNORMAL = {ConditionType.RECONCILING, ConditionType.STALLED}
_READINESS = {ConditionType.STORAGE_READY, ConditionType.CLIENTS_READY}

UNSEEN = "not seen by the operator yet"

D = TypeVar("D", bound=Model)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedPoint:
    """A row of `kubectl get benchmarkresults`, as text."""

    name: str
    label: str
    clients: str
    operation: str = ""
    iops: str = ""
    p99: str = ""
    line: str = ""
    trials: str = ""
    verdict: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedRun:
    """A run at one moment."""

    shown_status: str
    message: str = ""
    start: datetime | None = None
    estimated_end: datetime | None = None
    ending: Condition | None = None  # how the run ended; None while it is active
    problems: Sequence[str] = ()  # the conditions that block the run and are not part of the message
    leftovers: str = ""  # which of the run's objects still exist, in words; empty if none does
    invalid: int = 0  # points
    state: RunState | None  # None if the conductor has not published any, or it cannot be read
    trials: tuple[int, int]  # completed ones, and all
    points: Sequence[WatchedPoint]
    passes: int = 0  # repetitions of each point; 0 if unknown
    searches: Collection[str] = ()  # workloads that search for the line: the passes of their points are probes
    share: float | None = None  # the part that is done, by time; None if only the trials are known

    @property
    def trial(self) -> CurrentTrial | None:
        return self.state.current if self.state is not None and self.state.phase is RunPhase.MEASURING else None

    @property
    def headline(self) -> str:
        done, total = self.trials
        return "  ".join(filter(None, (self.shown_status, f"{done}/{total}" if total else "", self.message)))

    @property
    def course(self) -> str:
        return self.headline

    @property
    def is_searching(self) -> bool:
        """Whether the current trial is a probe of a search for the line."""
        point = self.trial.key.point.removesuffix(STORM_SUFFIX) if self.trial is not None else ""
        return point.rpartition("-")[0] in self.searches


_TABLE_COLUMNS = {"label": "Point", "clients": "Clients", "operation": "Op", "iops": "IOPS", "p99": "P99"} | {
    name.lower(): name for name in ("Line", "Trials", "Verdict", "Reason")
}
"""Field of a `WatchedPoint` -> column of the API server's table."""


async def watched_points(kube: "AioKube", namespace: str, run: Mapping[str, Any]) -> Sequence[WatchedPoint]:
    prefix, labels = f"{run['metadata']['name']}-", {naming.LABEL_RUN_UID: run["metadata"]["uid"]}
    points: list[WatchedPoint] = []
    for row in await kube.table(RESULT, namespace=namespace, labels=labels):
        values = {key: row.get(column) for key, column in _TABLE_COLUMNS.items()}
        texts = {key: "" if value is None else str(value) for key, value in values.items()}
        points.append(WatchedPoint(name=str(row.get("Name")).removeprefix(prefix), **texts))
    return sorted(points, key=lambda point: point.name)


def watched_run(run: Mapping[str, Any], state: RunState | None, points: Sequence[WatchedPoint]) -> WatchedRun:
    spec, status = run.get("spec") or {}, _status_of(BenchmarkRunStatus, run)
    display = status.display or Display()
    conditions = {condition.type: condition for condition in status.conditions}
    succeeded, clean = conditions.get(ConditionType.SUCCEEDED), conditions.get(ConditionType.CLEANED_UP)
    ending = succeeded if succeeded and succeeded.status is not ConditionStatus.UNKNOWN else None
    # A component that is not ready is a problem only while the run measures; before that, the run waits for it.
    relevant = _ABNORMAL | _READINESS if display.status == "Measuring" else _ABNORMAL
    shown = [display.message or ""]
    for condition in status.conditions if ending is None else ():
        fine = ConditionStatus.FALSE if condition.type in _ABNORMAL else ConditionStatus.TRUE
        is_problem = condition.type in relevant and condition.status is not fine
        if is_problem and not any(condition.message in text for text in shown):
            shown.append(condition.message)
    done, _, total = (display.progress or "").partition("/")
    trials = (int(done), int(total)) if done.isdecimal() and total.isdecimal() else (0, 0)
    if state is not None and state.trials_total:
        trials = state.trials_done, state.trials_total
    return WatchedRun(
        shown_status="being deleted" if "deletionTimestamp" in run["metadata"] else display.status or UNSEEN,
        message=display.message or "",
        start=datetime.fromisoformat(status.start_time) if status.start_time else None,
        estimated_end=(
            datetime.fromisoformat(status.estimated_completion_time) if status.estimated_completion_time else None
        ),
        ending=ending,
        problems=shown[1:],
        leftovers=clean.message if clean is not None and clean.status is not ConditionStatus.TRUE else "",
        invalid=status.points.invalid if status.points else 0,
        state=state,
        trials=trials,
        points=points,
        passes=spec.get("repetitions") or 0,
        searches={str(workload.get("name")) for workload in spec.get("workloads") or () if workload.get("line")},
    )


def watched_state(config_map: Mapping[str, Any], uid: str) -> RunState | None:
    """Read a conductor's state; None if it belongs to another run or cannot be read."""
    if config_map["metadata"].get("labels", {}).get(naming.LABEL_RUN_UID) != uid:
        return None
    try:
        return RunState.model_validate_json(config_map.get("data", {}).get(STATE_FILE, ""), extra="ignore")
    except ValidationError:
        return None


def _status_of(model: type[D], document: Mapping[str, Any]) -> D:
    """Return a status without the fields that this version does not know; exits if it cannot be read."""
    name = f"{document['metadata']['namespace']}/{document['metadata']['name']}"
    what = f"the status of {name} cannot be read; is it of a later version than this program? "
    with exit_on(ValidationError, what=what):
        return model.model_validate(document.get("status") or {}, extra="ignore")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedSuite:
    """A suite at one moment."""

    status: BenchmarkSuiteStatus
    # Text of the annotation that requests a round, as far as the status remembers it; empty if absent.
    request: str = ""
    is_current: bool = True  # whether the operator has seen the last change of the specification
    run: WatchedRun | None = None  # the current one; None without one, or if it cannot be read
    shown_status: str = UNSEEN

    @property
    def is_due(self) -> bool:
        """Whether a round that has not started yet is due, except by the schedule."""
        is_requested = self.request not in {"", self.status.requested_round or ""}
        return not self.is_current or is_requested or self.condition(SuiteConditionType.RECONCILING) is not None

    @property
    def obstacle(self) -> str:
        """Return why the suite cannot measure until someone intervenes; empty if it can."""
        stalled = self.condition(SuiteConditionType.STALLED)
        if stalled is None or stalled.reason in MEASURES_NEVERTHELESS or not self.is_current:
            return ""
        return f"{stalled.reason}: {stalled.message}"

    @property
    def activity(self) -> str:
        if self.status.round is None:
            return (self.status.display.message if self.status.display else None) or ""
        children = self.status.round.children
        done = f"{children.done} of {count_text(children.total, 'run')} done"
        current = f", {self.status.round.current}" if self.status.round.current else ""
        return f"round {self.status.round.name} ({self.status.round.cause}): {done}{current}"

    @property
    def headline(self) -> str:
        return "  ".join(filter(None, (self.shown_status, self.activity)))

    @property
    def course(self) -> str:
        """The headline, and that of the current run."""
        return "  ".join(filter(None, (self.headline, self.run.headline if self.run else "")))

    def condition(self, kind: SuiteConditionType) -> SuiteCondition | None:
        """Return a condition that is True; None otherwise."""
        conditions = (condition for condition in self.status.conditions if condition.type is kind)
        return next((condition for condition in conditions if condition.status is ConditionStatus.TRUE), None)


def watched_suite(suite: Mapping[str, Any]) -> WatchedSuite:
    """Read a suite; exits if the status cannot be read."""
    metadata, status = suite["metadata"], _status_of(BenchmarkSuiteStatus, suite)
    return WatchedSuite(
        status=status,
        request=(metadata.get("annotations") or {}).get(REQUEST_ROUND, "")[:MAX_ANNOTATION_CHARACTERS],
        is_current=status.observed_generation == metadata.get("generation", status.observed_generation),
        shown_status=(status.display.status if status.display else None) or UNSEEN,
    )


Ending = EndedRound | str  # how waiting for a round ended: the round, or why there is none


class AwaitedRound:
    """The round that a user waits for: it answers a request, or else is active or due, or is the last one.

    If a change of the suite abandons the round, the round of that change replaces it.
    """

    def __init__(self, request: str | None = None) -> None:
        self._request = None if request is None else request[:MAX_ANNOTATION_CHARACTERS]
        self._minute: int | None = None

    def ending(self, suite: WatchedSuite) -> Ending | None:
        status, request = suite.status, self._request
        if self._minute is None and request is not None and status.requested_round == request:
            # None if the status does not have the round that answers the request.
            self._minute = status.requested_minute
        if self._minute is not None and (end := self._ended(suite, self._minute)) is not None:
            return end
        if suite.obstacle:
            return suite.obstacle
        if self._minute is not None:
            return None
        if request is not None:
            return _unknown_answer(suite, request)
        if status.round is None and (suite.is_due or not status.rounds):
            return None if suite.is_due else "no round is active or due, and none has ended"
        self._minute = status.round.minute if status.round else status.rounds[0].minute
        return self._ended(suite, self._minute)

    def _ended(self, suite: WatchedSuite, minute: int) -> Ending | None:
        """Return how the round of a minute, or its successor, ended; None while it is due or active."""
        active = [suite.status.round.minute] if suite.status.round else []
        if minute in active:
            return None
        rounds = {round_.minute: round_ for round_ in suite.status.rounds}
        if minute not in rounds:
            return f"round {round_name(minute)} is no longer in the suite's status"
        if rounds[minute].verdict != RoundVerdict.SUPERSEDED:
            return rounds[minute]
        # Also if it is no longer kept.
        successor = min((later for later in (*rounds, *suite.status.dropped, *active) if later > minute), default=None)
        if successor is None:
            return None if suite.is_due or suite.obstacle else rounds[minute]
        self._minute = successor
        return self._ended(suite, successor)


def _unknown_answer(suite: WatchedSuite, request: str) -> str | None:
    """Return why the round of a request cannot be known; None while the operator has not answered the request."""
    if suite.status.requested_round == request:
        return f"the status does not say which round answered {request!r}; request one with another text"
    if suite.request == request:
        return None
    present = f"it is {suite.request!r}" if suite.request else "there is none"
    return f"no round {request!r} was requested by annotation {REQUEST_ROUND}: {present}"


POLL_SECONDS = 2.0
SILENCE_SECONDS = 300.0  # how long the API server may be unavailable before polling ends
UNSEEN_SECONDS = 10.0  # after which an object without a status is unusual
Seen = TypeVar("Seen", bound=WatchedRun | WatchedSuite)
Shown_contra = TypeVar("Shown_contra", contravariant=True)


class View(Protocol[Shown_contra]):
    """Shows an object."""

    def show(self, seen: Shown_contra, /) -> None:
        """Show the current state."""

    def trouble(self, problem: str, /) -> None:
        """Show why the object cannot be read now."""


class Polling(ABC, Generic[Seen]):
    """Polls one object."""

    _forbidden = frozenset[str]()  # what the user lacks the right to
    _progress: object = None  # of the run whose points are known
    _points: Sequence[WatchedPoint] = ()
    last = "the cluster has not answered"
    """What was seen last, in one line."""

    def __init__(
        self,
        place: InCluster,
        view: View[Seen] | None,
        *,
        pause: float = POLL_SECONDS,
        silence: float = SILENCE_SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Poll an object every `pause` seconds, tolerate `silence` seconds without an answer, and show it if `view`."""
        self._place, self._view = place, view
        self.access = place.access
        self._pause, self._silence, self._now = pause, silence, now
        self._uid: str | None = None
        self._started_at, self._answered_at = now(), 0.0
        self._is_new_connection = True

    @abstractmethod
    async def _look(self, kube: "AioKube") -> tuple[Seen, bool]:
        """Return the current state, and whether polling is over."""

    async def to_the_end(self) -> Seen:
        """Return the last state; an ApiError if the cluster stops answering; exits if the object does not exist."""
        while True:
            try:
                self._is_new_connection = True
                async with self.access.connect() as kube:
                    while True:
                        seen, has_ended = await self._look(kube)
                        self._answered_at = self._now()
                        if self._answered_at - self._started_at >= UNSEEN_SECONDS and seen.shown_status == UNSEEN:
                            doctor = f"{program()} doctor --namespace {self._place.namespace}{kubectl_options()}"
                            seen = replace(seen, shown_status=f"{UNSEEN}; `{doctor}` shows why")
                        self.last = seen.course
                        if self._view is not None:
                            self._view.show(seen)
                        self._is_new_connection = False
                        if has_ended:
                            return seen
                        await asyncio.sleep(self._pause)
            except ApiError as error:
                # An API server that is starting may not know kinds or rights yet. A new connection replaces an expired
                # token; an error right after that is final.
                is_refused = self._is_new_connection and isinstance(error, UnauthorizedError)
                if self._uid is None or is_refused or self._now() - self._answered_at > self._silence:
                    raise
                self.last = str(error)
                if self._view is not None:
                    self._view.trouble(self.last)
            await asyncio.sleep(self._pause)

    async def _document(self, kube: "AioKube") -> dict[str, Any]:
        """Return the object; exits if it does not exist or was replaced."""
        place, word = self._place, self._place.word
        document = await kube.get(place.kind, place.name, place.namespace)
        if document is None:
            if self._uid is None:
                raise await no_such_object(kube, place)
            raise click.ClickException(f"{word} {place} was deleted before it ended")
        uid = str(document["metadata"]["uid"])
        if self._uid not in {None, uid}:
            raise click.ClickException(f"{word} {place} was deleted, and another {word} with this name was created")
        self._uid = uid
        return dict(document)

    async def _points_of(self, kube: "AioKube", run: Object, state: RunState | None = None) -> Sequence[WatchedPoint]:
        status = run.get("status") or {}
        current = (state.trials_done, state.current and state.current.key) if state else None
        displayed = status.get("display", {}).get("progress")
        progress = (run["metadata"]["uid"], status.get("points"), status.get("completionTime"), displayed, current)
        # The points are read again only after progress.
        if progress != self._progress:
            self._points = await watched_points(kube, self._place.namespace, run)
            self._progress = progress
        return self._points

    async def _readable(self, kube: "AioKube", kind: Kind, name: str) -> Object | None:
        """Return another object of the namespace; None if it does not exist or may not be read."""
        return await self._allowed(kind.kind, lambda: kube.get(kind, name, self._place.namespace))

    async def _allowed(self, what: str, ask: Callable[[], Awaitable[T]]) -> T | None:
        """Return an answer; None if the user lacks the right to what is asked for, which is not asked for again."""
        if what in self._forbidden:
            return None
        try:
            return await ask()
        except UnauthorizedError:
            raise
        except ForbiddenError:
            self._forbidden |= {what}
            return None


def follow(following: Polling[Seen], seconds: int | None) -> Seen | Exit:
    """Return the last state, or why it is not the end: INTERRUPTED or TIMEOUT; exits if there is nothing to follow."""

    async def until_stopped() -> Seen | Exit:
        task = asyncio.current_task()
        if task is not None:
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        try:
            async with asyncio.timeout(seconds):
                return await following.to_the_end()
        except TimeoutError:
            return Exit.TIMEOUT
        except asyncio.CancelledError:
            return Exit.INTERRUPTED

    try:
        return asyncio.run(until_stopped())
    except ApiError as error:
        raise click.ClickException(explain(error, following.access)) from error


class Following(Polling[WatchedRun]):
    """Follows one run."""

    async def _look(self, kube: "AioKube") -> tuple[WatchedRun, bool]:
        run = await self._document(kube)
        # The run's status has nearly the same information as the conductor's state.
        config_map = await self._readable(kube, CONFIG_MAP, naming.state_config_map(self._place.name))
        state = None if config_map is None else watched_state(config_map, run["metadata"]["uid"])
        seen = watched_run(run, state, await self._points_of(kube, run, state))
        return seen, seen.ending is not None


class SuiteFollowing(Polling[WatchedSuite]):
    """Follows one round of a suite."""

    def __init__(
        self,
        suite: InCluster,
        view: View[WatchedSuite] | None,
        awaited: AwaitedRound,
        *,
        pause: float = POLL_SECONDS,
    ) -> None:
        super().__init__(suite, view, pause=pause)
        self._awaited = awaited
        self.ending: Ending | None = None
        """How the round ended; None while it continues."""

    async def _look(self, kube: "AioKube") -> tuple[WatchedSuite, bool]:
        seen = watched_suite(await self._document(kube))
        self.ending = self._awaited.ending(seen)
        name = seen.status.round.current if seen.status.round else None
        if self._view is not None and name:
            run = await self._readable(kube, RUN, name)
            if run is not None:
                points = await self._allowed(RESULT.kind, partial(self._points_of, kube, run))
                seen = replace(seen, run=watched_run(run, None, points or ()))
        return seen, self.ending is not None
