"""The loop for every kind: observe, decide, write the status, act. What differs between kinds is in their `Steps`.

A look is level-triggered: it depends on what is observed and on the object's record, never on what triggered it.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from plimsoll.api.reasons.reason import Reason
from plimsoll.kube.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    TerminatingError,
    TransientError,
    UnknownKindError,
)
from plimsoll.kube.port import Kind, Kube
from plimsoll.lifecycle.decision import Action, DecisionOf, Event, Fact, Refusal, Removal, reason_of_words
from plimsoll.metrics.exposition import UNEXPECTED, Instruments

M = TypeVar("M")


@dataclass(slots=True, kw_only=True)
class Record(Generic[M]):
    """The state of one object.

    Attributes:
        memory: state that only its kind has.
        wakeup: set when something that the object depends on has changed.
        was_woken: whether such a change preceded the present look.
        lock: held during a look, so that daemon and deletion never handle the object at the same time.
        status: the last written status, because a watch lags behind the operator's own writes; None before the first.
        version: resourceVersion that the next status must replace; None for any.
        refusal: the last refused request, until a look at which every request succeeds.

    """

    memory: M
    wakeup: asyncio.Event = field(default_factory=asyncio.Event)
    was_woken: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    status: Mapping[str, Any] | None = None
    version: str | None = None
    refusal: Refusal | None = None


class Records(dict[str, Record[M]]):
    """The records of one kind, by UID. A lookup creates a missing record."""

    def __init__(self, memory: Callable[[], M]) -> None:
        """Start empty; `memory` returns the kind's initial state of an object."""
        super().__init__()
        self._memory = memory

    def __missing__(self, uid: str) -> Record[M]:
        record = self[uid] = Record(memory=self._memory())
        return record

    def wake(self, uid: str) -> None:
        """Wake the object's daemon, if it has a record."""
        if uid in self:
            self[uid].wakeup.set()

    def wake_all(self) -> None:
        """Wake all daemons."""
        for record in self.values():
            record.wakeup.set()

    def forget(self, uid: str) -> None:
        """Drop the record of an object that no longer needs attention."""
        self.pop(uid, None)


Body = Mapping[str, Any]
"""An object as a watch shows it, possibly older than what the operator wrote."""


class Subject(Protocol):
    """An object as decisions read it."""

    @property
    def name(self) -> str:
        """Return its name."""
        ...

    @property
    def namespace(self) -> str:
        """Return its namespace."""
        ...


T = TypeVar("T", bound=Subject)
S = TypeVar("S")

A = TypeVar("A")


class Steps(ABC, Generic[T, S, M, A]):
    """The steps for one kind: `T` is an object, `S` what is observed of it, `M` its state in memory, `A` an action.

    Attributes:
        kind: of the objects in the API.
        records: the state of each object.

    """

    kind: ClassVar[Kind]
    records: Records[M]

    @abstractmethod
    def read(self, body: Body) -> T:
        """Return an object as decisions read it."""

    @abstractmethod
    async def observe(self, subject: T, record: Record[M]) -> S:
        """Observe an object.

        Raises:
            ApiError: if it cannot be observed. If that is refused, the loop updates the status.

        """

    @abstractmethod
    def decide(self, subject: T, seen: S, record: Record[M]) -> DecisionOf[A]:
        """Return what to do for an object now, and its status."""

    @abstractmethod
    async def act(self, subject: T, actions: Sequence[A], record: Record[M]) -> None:
        """Perform actions for an object.

        Raises:
            ApiError: if one failed. The loop records it until all succeed.

        """

    @abstractmethod
    def decide_unseen(self, subject: T, refusal: Refusal) -> DecisionOf[A] | None:
        """Return the status of an object that the operator may not observe, without actions; None for no change."""

    def status_written(self, subject: T, status: Mapping[str, Any]) -> None:
        """Handle a written status. `subject` has the one before."""


class RemovalSteps(Steps[T, S, M, Action]):
    """The steps for a kind whose objects have to be cleaned up by the operator before they can go."""

    @abstractmethod
    async def observe_removal(self, subject: T, record: Record[M]) -> S:
        """Observe what has to be removed of a deleted object.

        Raises:
            ApiError: if it cannot be observed. If that is refused, the loop updates the status.

        """

    @abstractmethod
    def decide_removal(self, subject: T, seen: S, record: Record[M]) -> Removal:
        """Return what to do before a deleted object can go, and its status."""

    @abstractmethod
    def status_of_unseen_removal(self, subject: T, refusal: Refusal) -> Mapping[str, Any]:
        """Return the status of a deleted object that the operator may not observe."""

    def pause_removal(self, record: Record[M]) -> None:
        """Drop large state: the removal never continues if a user removes the finalizer."""


class TakenError(ApiError):
    """Another owner's object occupies the name of one to be created. `departing`: it will disappear by itself."""

    def __init__(self, asked: str, reason: str, *, departing: bool) -> None:
        """Record whether waiting helps."""
        self.departing = departing
        super().__init__(asked, reason)


class KeyringError(ApiError):
    """A Secret with a Ceph key does not exist, or has no key. The message never quotes its content."""


class KeyringRefusedError(KeyringError):
    """A Secret that a user names is not annotated as being for benchmarks."""


def refusal_of(error: ApiError) -> Refusal:
    """Return the refusal that a status shows for an error."""
    return Refusal(asked=error.asked, reason=_reason_of(error), words=error.reason)


def _reason_of(error: ApiError) -> Reason:
    match error:
        case TakenError():
            return Reason.WAITING_FOR_EARLIER_RUN if error.departing else Reason.NAME_TAKEN
        case KeyringRefusedError():
            return Reason.KEYRING_NOT_ALLOWED
        case KeyringError():
            return Reason.KEYRING_NOT_FOUND
        case TerminatingError():
            return Reason.NAMESPACE_TERMINATING
        case _:
            return reason_of_words(error.reason, passing=isinstance(error, TransientError | ConflictError))


Post = Callable[[Body, Event], None]
"""Creates a Kubernetes event about an object."""

Logger = logging.Logger | logging.LoggerAdapter[Any]


class Stopped(Protocol):
    """Whether a daemon should stop; kopf's `stopped`."""

    def __bool__(self) -> bool: ...

    def wait(self) -> Awaitable[object]:
        """Wait until it should."""
        ...


@dataclass(slots=True, kw_only=True)
class Reconciler(Generic[T, S, M, A]):
    """Reconciles the objects of one kind.

    Attributes:
        retry_seconds: pause after a failed request, and after a look at which a refused request succeeded.
        verify_seconds: maximum pause after a look that acted and changed the status: events need not tell of the next
            step, because not every kind of object is watched, and events can be lost.
        rest_seconds: minimum time from the start of a look that did not act to the next, in which events gather: they
            come in bursts. The first event after that leads to a look at once, and so does every event after a look
            that acted: a chain of steps gets no longer.

    """

    steps: Steps[T, S, M, A]
    kube: Kube
    instruments: Instruments
    post: Post
    retry_seconds: float = 5.0
    verify_seconds: float = 1.0
    rest_seconds: float = 0.5

    @property
    def records(self) -> Records[M]:
        """Return the records of all objects."""
        return self.steps.records

    async def drive(self, body: Body, stopped: Stopped, logger: Logger) -> None:
        """Reconcile one object until `stopped`; then drop its record."""
        uid = uid_of(body)
        record = self.records[uid]
        wakeup, loop = record.wakeup, asyncio.get_running_loop()
        try:
            while not stopped:
                record.was_woken = wakeup.is_set()
                wakeup.clear()
                next_at = loop.time() + self.rest_seconds
                try:
                    with self._counting_failures():
                        decision = await self.look(body)
                    seconds = decision.requeue_seconds
                    next_at = loop.time() if decision.actions else next_at
                except ApiError as error:
                    seconds = self.retry_seconds
                    logger.warning("API request failed, retrying in %s s: %s", seconds, error)
                await wait_for_first(seconds, wakeup.wait(), stopped.wait())
                await wait_for_first(max(0.0, next_at - loop.time()), stopped.wait())
        finally:
            self.records.forget(uid)

    async def look(self, body: Body) -> DecisionOf[A]:
        """Observe, decide, write the status, act; after a failed action, write the status again with the refusal."""
        record = self.records[uid_of(body)]
        async with record.lock:
            subject = self._read(body, record)
            with self.instruments.step("observe"):
                seen = await self._observe(subject, record, body)
            was_refused = record.refusal is not None
            with self.instruments.step("decide"):
                decision = self.steps.decide(subject, seen, record)
            with self.instruments.step("say"):
                has_changed = await self._publish(subject, decision, record, body)
            try:
                with self.instruments.step("act"):
                    await self._act(subject, decision.actions, record)
            except ApiError:
                subject = self._read(body, record)
                await self._publish(subject, self.steps.decide(subject, seen, record), record, body)
                raise
        if was_refused:
            # A refused request has succeeded: look again soon so that the status catches up.
            return replace(decision, requeue_seconds=self.retry_seconds)
        if decision.actions and has_changed:
            return replace(decision, requeue_seconds=_sooner(decision.requeue_seconds, self.verify_seconds))
        return decision

    @contextmanager
    def _counting_failures(self) -> Iterator[None]:
        try:
            yield
        except ApiError as error:
            self.instruments.step_failed(_class_of(error))
            raise
        except Exception:
            self.instruments.step_failed(UNEXPECTED)
            raise

    def _read(self, body: Body, record: Record[M]) -> T:
        return self.steps.read(dict(body) if record.status is None else {**body, "status": record.status})

    async def _observe(self, subject: T, record: Record[M], body: Body) -> S:
        try:
            return await self.steps.observe(subject, record)
        except (ForbiddenError, UnknownKindError) as error:
            decision = self.steps.decide_unseen(subject, refusal_of(error))
            if decision is not None:
                await self._publish(subject, decision, record, body)
            raise

    async def _publish(self, subject: T, decision: DecisionOf[A], record: Record[M], body: Body) -> bool:
        """Write the status if it has changed, and then post an event for every transition; return whether it has."""
        if not await self._write(subject, decision.status, record):
            return False
        self.steps.status_written(subject, decision.status)
        for event in decision.events:
            self.post(body, event)
        return True

    async def _write(self, subject: T, status: Mapping[str, Any], record: Record[M]) -> bool:
        """Write a status; return false if it has not changed."""
        if record.status == status:
            return False
        written = await self.kube.patch_status(
            self.steps.kind, subject.name, subject.namespace, status, version=record.version
        )
        record.status = dict(status)
        if record.version is not None:
            record.version = written["metadata"]["resourceVersion"]
        return True

    async def _act(self, subject: T, actions: Sequence[A], record: Record[M]) -> None:
        """Perform actions, and record what the API server refused."""
        try:
            await self.steps.act(subject, actions, record)
        except ApiError as error:
            record.refusal = refusal_of(error)
            raise
        if record.refusal is not None and not record.refusal.is_permanent(subject.namespace):
            record.refusal = None


def uid_of(body: Body) -> str:
    """Return the UID of an object."""
    return str(body["metadata"]["uid"])


def _sooner(seconds: float | None, most: float) -> float:
    """Return a pause that is limited; None is for ever."""
    return most if seconds is None else min(seconds, most)


def _class_of(error: ApiError) -> str:
    """Return the name of an error's class without its suffix: `Forbidden`."""
    return type(error).__name__.removesuffix("Error")


async def wait_for_first(seconds: float | None, *events: Awaitable[object]) -> None:
    """Wait for the first of some events, or for the timeout.

    Unlike `asyncio.timeout` of Python 3.11.2, also in a task that a failed group of requests has cancelled, and unlike
    `asyncio.wait_for` there, a cancellation that arrives together with an event is never lost.
    """
    waiting = [asyncio.ensure_future(event) for event in events]
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()


_NO_ANSWER = "the API server does not respond"


@dataclass(slots=True, kw_only=True)
class RemovingReconciler(Reconciler[T, S, M, Action]):
    """Reconciles the objects of one kind, and cleans up after those that are deleted.

    Attributes:
        removal_look_seconds: pause between two looks at a deleted object.
        removal_seconds: maximum duration of one call of `remove`.

    """

    steps: RemovalSteps[T, S, M]
    removal_look_seconds: float = 2.0
    removal_seconds: float = 300.0

    async def remove(self, body: Body, logger: Logger) -> str | None:
        """Clean up a deleted object; return what the removal waits for, None if nothing is left."""
        uid, missing = uid_of(body), _NO_ANSWER
        async with self.records[uid].lock:
            for _ in range(int(self.removal_seconds / self.removal_look_seconds)):
                try:
                    with self._counting_failures(), self.instruments.step("remove"):
                        cleaned_up = await self.look_at_removal(body)
                except ApiError as error:
                    logger.warning("API request failed, teardown continues: %s", error)
                else:
                    if cleaned_up.holds:
                        self.records.forget(uid)
                        return None
                    missing = cleaned_up.message
                await self._rest(uid)
        self.steps.pause_removal(self.records[uid])
        return missing

    async def look_at_removal(self, body: Body) -> Fact:
        """Observe a deleted object, decide, write the status, act; return whether its finalizer can go.

        Raises:
            ApiError: if a request failed. If observing the object is refused, the status shows it.

        """
        record = self.records[uid_of(body)]
        subject = self._read(body, record)
        try:
            seen = await self.steps.observe_removal(subject, record)
        except (ForbiddenError, UnknownKindError) as error:
            with suppress(NotFoundError):
                status = self.steps.status_of_unseen_removal(subject, refusal_of(error))
                await self._write(subject, status, record)
            raise
        removal = self.steps.decide_removal(subject, seen, record)
        # Also when nothing is left: another finalizer may keep the object, and the next run must not wait for it.
        with suppress(NotFoundError):
            await self._write(subject, removal.status, record)
        if not removal.cleaned_up.holds:
            await self._act(subject, removal.actions, record)
        return removal.cleaned_up

    async def _rest(self, uid: str) -> None:
        """Wait until an event about a deleted object, or the timeout."""
        # Not the earlier record: a daemon that stops during the removal drops it.
        wakeup = self.records[uid].wakeup
        await wait_for_first(self.removal_look_seconds, wakeup.wait())
        wakeup.clear()
