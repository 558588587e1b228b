"""The loop for every kind: observe, decide, write the status, act. What differs between kinds is in their `Steps`.

A look is level-triggered: it depends on what is observed and on the object's record, never on what triggered it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol

from plimsoll.kube.errors import ApiError, ForbiddenError, UnknownKindError
from plimsoll.kube.port import Kube
from plimsoll.lifecycle.decision import DecisionOf, Event
from plimsoll.metrics.instruments import UNEXPECTED, Instruments
from plimsoll.reconcile.records import Record, Records
from plimsoll.reconcile.refusals import refusal_of
from plimsoll.reconcile.steps import A, Body, M, S, Steps, T

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
