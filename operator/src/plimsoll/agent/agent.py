"""The agent's loop: hold a request for orders, obey the newest, report, post, and leave when alone too long."""

import asyncio
import logging
import random
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from pydantic import JsonValue

from plimsoll.agent.connection import Connection, RefusedError, UnreachableError
from plimsoll.agent.work import Work
from plimsoll.agent.worker import Armed, PreparationError
from plimsoll.api.state import LiveRate
from plimsoll.measure.sample import ClientDocument, Clock
from plimsoll.protocol.messages import (
    MAX_REPORT_CHARACTERS,
    PROTOCOL_VERSION,
    AgentState,
    Arm,
    Go,
    Leave,
    Ordered,
    Prepare,
    Registered,
    Registration,
    Report,
    ResultPost,
    Stage,
    Wait,
)

EXIT_DISMISSED = 0
EXIT_REFUSED = 4
EXIT_SILENCE = 5
EXIT_UNUSABLE = 6

LATE_SECONDS = 0.25
"""An agent that wakes up later than this after T0 does not start at all."""

_RETRY_SECONDS = 0.25
_CLOCK_PROBES = 3
_PROGRESS_SECONDS = 1.0
_SECOND = 10**9

T = TypeVar("T")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who an agent is: its number, how many processes this client had before, and the node it runs on."""

    client: int
    attempt: int
    node: str


@dataclass(slots=True)
class _Progress:
    """How far a preparation has come; see `plimsoll.agent.worker.Progress`."""

    done: int = 0
    total: int = 0
    message: str = ""

    def note(self, done: int, total: int, message: str = "") -> None:
        """Remember the latest."""
        self.done, self.total, self.message = done, total, message


class _SilenceError(Exception):
    """The conductor was not heard of for too long."""


class Agent:
    """One agent process. `run` returns its exit code."""

    def __init__(self, *, identity: Identity, connection: Connection, work: Work, silence_seconds: float) -> None:
        """Serve the conductor behind `connection`; until it says otherwise bear its silence that long."""
        self._identity = identity
        self._connection = connection
        self._work = work
        self._silence = silence_seconds
        self._live_seconds = 0.0
        self._instance = uuid.uuid4().hex
        self._epoch = ""
        self._prepared_bytes = 0
        self._task: asyncio.Task[None] | None = None
        self._armed_trial: Arm | None = None
        self._go: asyncio.Future[int] | None = None
        self._broken: asyncio.Future[None]

    async def run(self) -> int:
        """Obey until dismissed, refused or alone. Whatever runs then is killed."""
        self._broken = asyncio.get_running_loop().create_future()
        watchdog = asyncio.create_task(self._watch_silence())
        listening = asyncio.create_task(self._listen())
        try:
            ends = {watchdog, listening, self._broken}
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except RefusedError as refused:
            _log.error("refused: %s", refused)
            return EXIT_REFUSED
        except PreparationError as error:
            _log.error("%s", error)
            return EXIT_UNUSABLE
        except _SilenceError:
            _log.error("the conductor was silent for %s s", self._silence)
            return EXIT_SILENCE
        finally:
            for task in (watchdog, listening):
                task.cancel()
            await self._drop_work()
        return EXIT_DISMISSED

    async def _watch_silence(self) -> None:
        while time.monotonic() - self._connection.last_answer < self._silence:  # noqa: ASYNC110 - time is no event
            await asyncio.sleep(_RETRY_SECONDS)
        raise _SilenceError

    async def _listen(self) -> None:
        """Obey order after order; when another conductor has taken over, stop everything and register there."""
        facts = await self._work.facts()
        while True:
            registered = await self._register(facts)
            self._epoch, self._silence = registered.epoch, registered.silence_seconds
            self._live_seconds = registered.live_seconds
            try:
                await self._obey_all(registered)
            except RefusedError as refused:
                if refused.code not in {"StaleEpoch", "UnknownClient"}:
                    raise
                _log.warning("%s", refused)
                await self._drop_work()
            else:
                return

    async def _register(self, facts: dict[str, JsonValue]) -> Registered:
        registration = Registration(
            protocol=PROTOCOL_VERSION,
            client=self._identity.client,
            instance=self._instance,
            attempt=self._identity.attempt,
            node=self._identity.node,
            prepared_bytes=self._prepared_bytes,
            facts=facts,
        )
        return await _insist(lambda: self._connection.register(registration))

    async def _obey_all(self, registered: Registered) -> None:
        after = -1
        while True:
            ordered = await _insist(
                partial(
                    self._connection.orders,
                    client=self._identity.client,
                    instance=self._instance,
                    epoch=registered.epoch,
                    after=after,
                    hold=registered.hold_seconds,
                )
            )
            if ordered.sequence <= after:
                continue
            after = ordered.sequence
            await self._obey(ordered)
            if isinstance(ordered.order, Leave):
                return

    async def _obey(self, ordered: Ordered) -> None:
        sequence, order = ordered.sequence, ordered.order
        if isinstance(order, Go):
            self._release(order, sequence)
            return
        await self._drop_work()
        match order:
            case Wait():
                self._start(self._say(self._report(AgentState.IDLE, sequence)))
            case Prepare():
                self._start(self._prepare(order, sequence))
            case Stage():
                self._start(self._stage(order, sequence))
            case Arm():
                self._go = asyncio.get_running_loop().create_future()
                self._armed_trial = order
                self._start(self._take_part(order, sequence, self._go))
            case Leave():
                with suppress(UnreachableError, RefusedError):
                    await self._connection.report(self._report(AgentState.LEAVING, sequence))

    def _release(self, order: Go, sequence: int) -> None:
        """Pass the word that everybody is armed to the trial that waits for it."""
        armed = self._armed_trial
        if armed is not None and armed.trial == order.trial and self._go is not None and not self._go.done():
            self._go.set_result(sequence)

    async def _prepare(self, order: Prepare, sequence: int) -> None:
        try:
            async with self._telling(AgentState.PREPARING, sequence) as progress:
                size = await self._work.prepare(order, progress.note)
        except PreparationError as error:
            await self._say(self._report(AgentState.FAILED, sequence, message=str(error)))
            return
        self._prepared_bytes = size
        _log.info("prepared %d bytes", size)
        await self._say(self._report(AgentState.PREPARED, sequence, done=size, total=size))

    async def _stage(self, order: Stage, sequence: int) -> None:
        try:
            async with self._telling(AgentState.STAGING, sequence) as progress:
                await self._work.stage(order, progress.note)
        except PreparationError as error:
            await self._say(self._report(AgentState.FAILED, sequence, message=str(error)))
            return
        _log.info("staged %s", order.trial)
        await self._say(self._report(AgentState.STAGED, sequence))

    @asynccontextmanager
    async def _telling(self, state: AgentState, sequence: int) -> AsyncIterator[_Progress]:
        """Report every second how far the work within has come."""
        progress, finished = _Progress(), asyncio.Event()
        telling = asyncio.create_task(self._tell_progress(state, sequence, progress, finished))
        try:
            try:
                yield progress
            except PreparationError:
                finished.set()
                await telling
                raise
            # The last word on progress must have arrived before the outcome is told.
            finished.set()
            await telling
        finally:
            telling.cancel()

    async def _tell_progress(
        self, state: AgentState, sequence: int, progress: _Progress, finished: asyncio.Event
    ) -> None:
        while not finished.is_set():
            words, done, total = progress.message, progress.done, progress.total
            await self._say(self._report(state, sequence, message=words, done=done, total=total))
            with suppress(TimeoutError):
                async with asyncio.timeout(_PROGRESS_SECONDS):
                    await finished.wait()

    async def _take_part(self, order: Arm, sequence: int, go: asyncio.Future[int]) -> None:
        """Arm, wait for the word and for T0, measure, deliver."""
        try:
            armed = self._work.arm(order)
            clock = await self._connection.clock(_CLOCK_PROBES)
        except (PreparationError, UnreachableError) as error:
            await self._say(self._report(AgentState.FAILED, sequence, message=str(error)))
            return
        await self._say(self._report(AgentState.ARMED, sequence, clock=clock))
        released = await go
        if not await _sleep_until(order.t0_nanoseconds):
            await self._say(self._report(AgentState.LATE, released))
            return
        running = asyncio.create_task(self._tell_rates(armed, released))
        try:
            document = await self._work.measure(armed, clock)
        finally:
            running.cancel()
        await self._deliver(order, released, await self._with_clock_again(document))

    async def _tell_rates(self, armed: Armed, sequence: int) -> None:
        """Say that the tool runs, and every now and then what it says of its rates: once, whether that arrives or not.

        Each at its own moment: all clients began at the same one.
        """
        await self._say(self._report(AgentState.RUNNING, sequence))
        await asyncio.sleep(self._live_seconds * random.random())  # noqa: S311 - nobody is to be kept from guessing it
        told: tuple[LiveRate, ...] = ()
        while True:
            rates = self._work.live(armed)
            if rates or told:
                told = rates
                with suppress(RefusedError, UnreachableError):
                    await self._connection.report(self._report(AgentState.RUNNING, sequence, rates=rates))
            await asyncio.sleep(self._live_seconds)

    async def _with_clock_again(self, document: ClientDocument) -> ClientDocument:
        """Return the document with the comparison, before or after the trial, that shows the more certain difference.

        A clock that was right before may have been stepped meanwhile. A comparison over a busy network tells little.
        """
        try:
            readings = [await self._connection.clock(_CLOCK_PROBES)]
        except (UnreachableError, RefusedError):
            return document
        if document.clock is not None:
            readings.append(document.clock)
        worst = max(readings, key=lambda clock: abs(clock.offset) - clock.error)
        return document.model_copy(update={"clock": worst})

    async def _deliver(self, order: Arm, sequence: int, document: ClientDocument) -> None:
        """Post until acknowledged; a document that is refused is refused for good, which is said."""
        post = ResultPost(
            epoch=self._epoch,
            client=self._identity.client,
            instance=self._instance,
            trial=order.trial,
            document=document,
        )
        try:
            kept = await _insist(lambda: self._connection.post(post))
        except RefusedError as refused:
            _log.warning("result of %s refused: %s", order.trial, refused)
            message = f"its result was refused ({refused.code}): {refused}"
            await self._say(self._report(AgentState.FAILED, sequence, message=message))
        else:
            _log.info("result of %s %s", order.trial, "delivered" if kept else "was not needed any more")

    async def _say(self, report: Report) -> None:
        """Report until it arrives. A conductor that does not know this agent finds out by the next order request."""
        with suppress(RefusedError):
            await _insist(lambda: self._connection.report(report))

    def _report(
        self,
        state: AgentState,
        sequence: int,
        *,
        message: str = "",
        done: int = 0,
        total: int = 0,
        clock: Clock | None = None,
        rates: tuple[LiveRate, ...] = (),
    ) -> Report:
        return Report(
            epoch=self._epoch,
            client=self._identity.client,
            instance=self._instance,
            sequence=sequence,
            state=state,
            message=message[:MAX_REPORT_CHARACTERS],
            done_bytes=done,
            total_bytes=total,
            clock=clock,
            rates=rates,
        )

    def _start(self, work: Coroutine[None, None, None]) -> None:
        self._task = asyncio.create_task(work)
        self._task.add_done_callback(self._note_failure)

    def _note_failure(self, task: asyncio.Task[None]) -> None:
        """End the agent if its work failed in a way it does not know: its launcher starts another."""
        if not task.cancelled() and (error := task.exception()) is not None and not self._broken.done():
            self._broken.set_exception(error)

    async def _drop_work(self) -> None:
        """Kill whatever runs, and return when it is gone."""
        self._armed_trial = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
            self._task = None


async def _sleep_until(t0: int) -> bool:
    """Sleep until a wall-clock time; false if it is too late for it."""
    while (remaining := t0 - time.time_ns()) > 0:  # noqa: ASYNC110 - time is no event
        await asyncio.sleep(remaining / _SECOND)
    return time.time_ns() - t0 <= LATE_SECONDS * _SECOND


async def _insist(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask again and again until there is an answer; the watchdog ends it when that takes too long."""
    while True:
        try:
            return await ask()
        except UnreachableError:
            await asyncio.sleep(_RETRY_SECONDS)
