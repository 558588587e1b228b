"""The loop that reconciles all objects of a kind. It is level-triggered: each pass depends only on what it observes."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Any, Generic, TypeVar

from plimsoll.api.reasons.entry import Event
from plimsoll.kube.port import ApiError, Kube
from plimsoll.lifecycle.run import Settings
from plimsoll.metrics.exposition import UNEXPECTED, Instruments

_log = logging.getLogger(__name__)


Body = Mapping[str, Any]  # an object as a watch shows it, possibly older than what the operator wrote
Post = Callable[[Body, Event], None]  # creates a Kubernetes event about an object


@dataclass(slots=True, kw_only=True)
class Record:
    """What the operator remembers of one object while a task looks at it."""

    body: Body = field(default_factory=dict)  # as the watch last showed it
    is_gone: bool = False
    task: asyncio.Task[None] | None = None  # looks at the object
    wakeup: asyncio.Event = field(default_factory=asyncio.Event)  # set when what it depends on has changed
    was_woken: bool = False  # whether such a change preceded the present look


R = TypeVar("R", bound=Record)


class Records(defaultdict[str, R]):
    """The records of one kind, by UID. A lookup creates a missing record."""

    def wake(self, uid: str) -> None:
        if uid in self:
            self[uid].wakeup.set()

    def wake_all(self) -> None:
        for record in self.values():
            record.wakeup.set()


@dataclass(slots=True, kw_only=True)
class Reconciler(ABC, Generic[R]):
    """Reconciles the objects of one kind."""

    kube: Kube
    settings: Settings
    now: Callable[[], datetime]  # returns the API server's time, which objects have
    instruments: Instruments
    post: Post
    records: Records[R]  # the record of each object
    retry_seconds: float = 5.0  # pause after a failed request, and after a look at which a refused request succeeded
    # Minimum time from the start of a look that did not act to the next, in which events gather: they come in bursts.
    # The first event after that leads to a look at once, and so does every event after a look that acted: a chain of
    # steps gets no longer.
    rest_seconds: float = 0.5
    error_seconds: float = 15.0  # pause after an unexpected error
    stop_seconds: float = 5.0  # how long a look may last when the operator stops
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    spread_seconds: float = 0.1  # between the first looks after the start at objects that are in no hurry
    most_spread_seconds: float = 10.0
    _spread: Iterator[int] = field(default_factory=count, init=False)

    @abstractmethod
    async def look(self, body: Body) -> tuple[float | None, bool]:
        """Observe an object, decide, write its status, act. Raises ApiError if a request failed.

        Return the seconds until the next look, None until an event; and whether this one acted.
        """

    def needs_look(self, _body: Body) -> bool:
        return True

    def notice(self, body: Body, *, is_gone: bool = False) -> None:
        """Take an object as a watch shows it, at once. A task looks at it until it is gone, or needs no look."""
        uid = body["metadata"]["uid"]
        if uid not in self.records and (is_gone or self.stopping.is_set() or not self.needs_look(body)):
            return
        record = self.records[uid]
        record.body, record.is_gone = body, is_gone
        if record.task is None:
            record.task = asyncio.create_task(self._drive(record), name=f"{body['kind']} {uid}")
        if is_gone:
            record.wakeup.set()

    async def _drive(self, record: R) -> None:
        wakeup, loop = record.wakeup, asyncio.get_running_loop()
        metadata = record.body["metadata"]
        place = f"{record.body['kind']} {metadata['namespace']}/{metadata['name']}"
        try:
            while not (record.is_gone or self.stopping.is_set()) and self.needs_look(record.body):
                record.was_woken = wakeup.is_set()
                wakeup.clear()
                next_at = loop.time() + self.rest_seconds
                try:
                    seconds, has_acted = await self.look(record.body)
                    next_at = loop.time() if has_acted else next_at
                except ApiError as error:
                    seconds = self.retry_seconds
                    self.instruments.step_failed(type(error).__name__.removesuffix("Error"))
                    _log.warning("%s: API request failed, retrying in %s s: %s", place, seconds, error)
                except Exception:  # noqa: BLE001 - logged and counted, whatever it is; the object needs another look
                    seconds, next_at = self.error_seconds, loop.time() + self.error_seconds
                    self.instruments.step_failed(UNEXPECTED)
                    _log.exception("%s: looking at it again in %s s after an unexpected error", place, seconds)
                await wait_for_first(seconds, wakeup.wait(), self.stopping.wait())
                await wait_for_first(max(0.0, next_at - loop.time()), self.stopping.wait())
        finally:
            self.records.pop(metadata["uid"], None)

    async def spread(self, record: R) -> None:
        """Wait a little longer than the last caller did, or until the object changes: at the start, all need a look."""
        seconds = min(next(self._spread) * self.spread_seconds, self.most_spread_seconds)
        await wait_for_first(seconds, record.wakeup.wait(), self.stopping.wait())

    async def stop(self) -> None:
        self.stopping.set()
        tasks = {record.task for record in self.records.values() if record.task is not None}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=self.stop_seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)


async def wait_for_first(seconds: float | None, *events: Awaitable[object]) -> None:
    """Wait for the first of some events, or for the timeout.

    Unlike `asyncio.timeout` and `asyncio.wait_for` of Python 3.11.2, also in a task that a failed group of requests has
    cancelled, and without losing a cancellation that arrives together with an event.
    """
    waiting = [asyncio.ensure_future(event) for event in events]
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()


@asynccontextmanager
async def in_background(
    work: Coroutine[Any, Any, Any], name: str, ended: Callable[[BaseException | None], object]
) -> AsyncIterator[None]:
    """Do work that never ends. `ended` is called with its error, or None, if it does."""
    task = asyncio.create_task(work, name=name)
    task.add_done_callback(lambda task: None if task.cancelled() else ended(task.exception()))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
