"""The loop around the looks at an object, of whichever kind: a subclass of `Reconciler` looks at its kind.

A look is level-triggered: it depends on what is observed and on the object's record, never on what triggered it.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from plimsoll.kube.port import ApiError, Kube
from plimsoll.lifecycle.decision import Event
from plimsoll.lifecycle.run import Settings
from plimsoll.metrics.exposition import UNEXPECTED, Instruments


@dataclass(slots=True, kw_only=True)
class Record:
    """What the operator remembers of one object, whatever its kind."""

    # Set when something that the object depends on has changed.
    wakeup: asyncio.Event = field(default_factory=asyncio.Event)
    was_woken: bool = False  # whether such a change preceded the present look
    # Held during a look, so that daemon and deletion never handle the object at the same time.
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


R = TypeVar("R", bound=Record)


class Records(defaultdict[str, R]):
    """The records of one kind, by UID. A lookup creates a missing record."""

    def wake(self, uid: str) -> None:
        """Wake the object's daemon, if it has a record."""
        if uid in self:
            self[uid].wakeup.set()

    def wake_all(self) -> None:
        """Wake all daemons."""
        for record in self.values():
            record.wakeup.set()

    def forget(self, uid: str) -> None:
        """Drop the record of an object that is gone, unless a look or a removal is using it."""
        if uid in self and not self[uid].lock.locked():
            del self[uid]


Body = Mapping[str, Any]  # an object as a watch shows it, possibly older than what the operator wrote
Post = Callable[[Body, Event], None]  # creates a Kubernetes event about an object
Logger = logging.Logger | logging.LoggerAdapter[Any]


class Stopped(Protocol):
    """Whether a daemon should stop; kopf's `stopped`."""

    def __bool__(self) -> bool: ...

    def wait(self) -> Awaitable[object]:
        """Wait until it should."""


@dataclass(slots=True, kw_only=True)
class Reconciler(ABC, Generic[R]):
    """Reconciles the objects of one kind."""

    kube: Kube
    settings: Settings
    # Returns the API server's time, because it is compared with times that the API server has set.
    now: Callable[[], datetime]
    instruments: Instruments
    post: Post
    records: Records[R]  # the record of each object
    retry_seconds: float = 5.0  # pause after a failed request, and after a look at which a refused request succeeded
    # Minimum time from the start of a look that did not act to the next, in which events gather: they come in bursts.
    # The first event after that leads to a look at once, and so does every event after a look that acted: a chain of
    # steps gets no longer.
    rest_seconds: float = 0.5

    @abstractmethod
    async def look(self, body: Body) -> tuple[float | None, bool]:
        """Observe an object, decide, write its status, act. Raises ApiError if a request failed.

        Return the seconds until the next look, None until an event; and whether this one acted.
        """

    async def drive(self, body: Body, stopped: Stopped, logger: Logger) -> None:
        """Reconcile one object until `stopped`; then drop its record, unless the object is being deleted.

        A removal needs what the record says about the last written status: a watch may lag behind it.
        """
        uid = body["metadata"]["uid"]
        record = self.records[uid]
        wakeup, loop = record.wakeup, asyncio.get_running_loop()
        try:
            while not stopped:
                record.was_woken = wakeup.is_set()
                wakeup.clear()
                next_at = loop.time() + self.rest_seconds
                try:
                    with self.counting_failures():
                        seconds, has_acted = await self.look(body)
                    next_at = loop.time() if has_acted else next_at
                except ApiError as error:
                    seconds = self.retry_seconds
                    logger.warning("API request failed, retrying in %s s: %s", seconds, error)
                await wait_for_first(seconds, wakeup.wait(), stopped.wait())
                await wait_for_first(max(0.0, next_at - loop.time()), stopped.wait())
        finally:
            if "deletionTimestamp" not in body["metadata"]:
                self.records.pop(uid, None)

    @contextmanager
    def counting_failures(self) -> Iterator[None]:
        """Count an error of a look by its class, such as `Forbidden`."""
        try:
            yield
        except ApiError as error:
            self.instruments.step_failed(type(error).__name__.removesuffix("Error"))
            raise
        except Exception:
            self.instruments.step_failed(UNEXPECTED)
            raise


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
