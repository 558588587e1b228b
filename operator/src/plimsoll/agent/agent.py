"""The agent's loop: hold a request for orders, obey the newest one, report, post results, exit after long silence."""

import asyncio
import io
import logging
import random
import ssl
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import aiohttp
from pydantic import ValidationError

from plimsoll.agent.process import PreparationError, Progress
from plimsoll.agent.worker import Armed, Worker
from plimsoll.api.model import Model
from plimsoll.measure.sample import Clock
from plimsoll.protocol import messages
from plimsoll.protocol.assignment import CERTIFICATE_FILE, TOKEN_FILE

EXIT_DISMISSED = 0
EXIT_REFUSED = 4
EXIT_SILENCE = 5
EXIT_UNUSABLE = 6

LATE_SECONDS = 0.25  # an agent that wakes up later than this after T0 does not start its tool
RETRY_SECONDS = 0.25
_REGISTRATION_SECONDS = 0.1  # between attempts to register: the conductor starts at the same time as its agents
_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 10.0
_POST_SECONDS = 30.0  # hundreds of clients post at once, and the document of a long trial has several MiB
_HTTP_ERROR = 400
_HTTP_SERVER_ERROR = 500
_CLOCK_PROBES = 3
_PROGRESS_SECONDS = 1.0
_SECOND = 10**9

M = TypeVar("M", bound=Model)
T = TypeVar("T")

_log = logging.getLogger(__name__)


class UnreachableError(Exception):
    """The conductor did not answer, or not with a message of the protocol."""


class Connection:
    """Requests to one conductor."""

    def __init__(self, url: str, secret: Path) -> None:
        context = ssl.create_default_context(cafile=str(secret / CERTIFICATE_FILE))
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        self._session = aiohttp.ClientSession(
            url,
            connector=aiohttp.TCPConnector(ssl=context, limit=4),
            headers={"Authorization": f"Bearer {(secret / TOKEN_FILE).read_text().strip()}"},
        )
        self.last_answer = time.monotonic()
        self.last_error = ""  # the HTTP status since then; empty after an answer, or without any response

    async def close(self) -> None:
        await self._session.close()

    async def register(self, registration: messages.Registration) -> messages.Registered:
        return await self._ask(messages.Registered, "POST", "/v1/clients", body=registration)

    async def orders(self, *, client: int, instance: str, epoch: str, after: int, hold: float) -> messages.Ordered:
        """Wait for an order newer than `after`, for about `hold` seconds at most."""
        query = {"client": str(client), "instance": instance, "epoch": epoch, "after": str(after)}
        return await self._ask(messages.Ordered, "GET", "/v1/orders", query=query, seconds=hold + _ANSWER_SECONDS)

    async def report(self, report: messages.Report) -> None:
        """Report the agent's progress with its order."""
        await self._send("POST", "/v1/reports", body=report)

    async def post(self, post: messages.ResultPost) -> bool:
        """Post a document; false if the conductor discards it."""
        return (await self._ask(messages.Acknowledged, "POST", "/v1/results", body=post, seconds=_POST_SECONDS)).kept

    async def clock(self, probes: int) -> Clock:
        """Compare clocks as NTP does (RFC 5905 section 8): the probe with the shortest round trip counts."""
        readings = []
        for _ in range(probes):
            t0 = time.time_ns()
            reading = await self._ask(messages.ClockReading, "GET", "/v1/clock")
            t3 = time.time_ns()
            offset = ((reading.received_at - t0) + (reading.sent_at - t3)) / 2
            round_trip = (t3 - t0) - (reading.sent_at - reading.received_at)
            readings.append(Clock(offset=offset / _SECOND, error=max(0, round_trip) / 2 / _SECOND))
        return min(readings, key=lambda clock: clock.error)

    async def _ask(self, answer: type[M], method: str, path: str, **options: Any) -> M:  # noqa: ANN401 - of `_send`
        try:
            return answer.model_validate_json(await self._send(method, path, **options))
        except ValidationError as error:
            raise UnreachableError(f"the answer is not a valid {answer.__name__}") from error

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: Model | None = None,
        seconds: float = _ANSWER_SECONDS,
    ) -> str:
        # As a stream: aiohttp warns about large bodies in one piece.
        data = None if body is None else io.BytesIO(body.model_dump_json().encode())
        try:
            async with self._session.request(
                method,
                path,
                params=query,
                data=data,
                headers=None if body is None else {"Content-Type": "application/json"},
                timeout=aiohttp.ClientTimeout(total=seconds, connect=_CONNECT_SECONDS),
                server_hostname=messages.SERVER_NAME,
            ) as response:
                text = await response.text()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self.last_error = ""
            raise UnreachableError(f"{path}: {str(error) or type(error).__name__}") from error
        if response.status < _HTTP_ERROR:
            self.last_answer, self.last_error = time.monotonic(), ""
            return text
        # The status comes from the conductor: its certificate was verified.
        message = f"{path} answered with status {response.status}"
        try:
            refusal = messages.Refusal.model_validate_json(text)
        except ValidationError:
            if response.status < _HTTP_SERVER_ERROR:
                raise messages.RefusedError("BadRequest", message) from None
            self.last_error = message
            raise UnreachableError(message) from None
        raise messages.RefusedError(refusal.code, refusal.message)


async def until_answered(ask: Callable[[], Awaitable[T]], retry_seconds: float = RETRY_SECONDS) -> T:
    """Retry until there is an answer; the agent's watchdog limits the time."""
    while True:
        try:
            return await ask()
        except UnreachableError:
            await asyncio.sleep(retry_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentIdentity:
    """An agent's client number, the number of earlier processes of this client, and its node."""

    client: int
    attempt: int
    node: str


class _Comparison(NamedTuple):
    """A comparison of clocks, and by how much the wall clock led the monotonic clock then; nanoseconds."""

    clock: Clock
    lead: int

    def at(self, lead: int) -> Clock:
        """Return it for another moment, with that lead: only setting the wall clock changes the lead."""
        return self.clock.model_copy(update={"offset": self.clock.offset + (self.lead - lead) / _SECOND})


def _lead_of_wall_clock() -> int:
    """Return by how much the wall clock leads the monotonic clock; nanoseconds."""
    # An interruption between the two readings makes it smaller.
    return max(time.time_ns() - time.monotonic_ns() for _ in range(_CLOCK_PROBES))


class _SilenceError(Exception):
    pass


class Agent:
    """One agent process. `run` returns its exit code."""

    def __init__(
        self, *, identity: AgentIdentity, connection: Connection, work: Worker, silence_seconds: float
    ) -> None:
        """Serve conductors that are silent for at most `silence_seconds`, from the first order to work on."""
        self._identity = identity
        self._connection = connection
        self._work = work
        self._silence = silence_seconds
        self._live_seconds = 0.0
        self._instance = uuid.uuid4().hex
        self._epoch = ""
        self._prepared_bytes = 0
        self._data_set_used = False
        self._task: asyncio.Task[None] | None = None
        self._armed_trial: messages.ArmOrder | None = None
        self._go: asyncio.Future[tuple[int, int]] | None = None  # the sequence of `Go`, and T0 in Unix nanoseconds
        self._broken: asyncio.Future[None]

    async def run(self) -> int:
        """Obey orders until dismissed, refused or alone, then kill running work."""
        self._broken = asyncio.get_running_loop().create_future()
        tasks = [asyncio.create_task(self._watch_silence()), asyncio.create_task(self._listen())]
        try:
            done, _ = await asyncio.wait({*tasks, self._broken}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except messages.RefusedError as refused:
            _log.error("refused: %s", refused)
            return EXIT_REFUSED
        except PreparationError as error:
            _log.error("%s", error)
            return EXIT_UNUSABLE
        except _SilenceError as error:
            _log.error("%s", error)
            return EXIT_SILENCE
        finally:
            for task in tasks:
                task.cancel()
            await self._drop_work()
        return EXIT_DISMISSED

    async def _watch_silence(self) -> None:
        while time.monotonic() - self._connection.last_answer < self._silence:  # noqa: ASYNC110 - time is no event
            await asyncio.sleep(RETRY_SECONDS)
        if answer := self._connection.last_error:
            raise _SilenceError(f"the conductor answered only errors for {self._silence:g} s: {answer}")
        raise _SilenceError(f"the conductor did not answer for {self._silence:g} s")

    async def _listen(self) -> None:
        """Obey orders; if another conductor has taken over, stop all work and register with it."""
        facts = await self._work.facts()
        while True:
            registration = messages.Registration(
                protocol=messages.PROTOCOL_VERSION,
                client=self._identity.client,
                instance=self._instance,
                attempt=self._identity.attempt,
                node=self._identity.node,
                prepared_bytes=self._prepared_bytes,
                data_set_used=self._data_set_used,
                facts=facts,
            )
            register = partial(self._connection.register, registration)
            registered = await until_answered(register, _REGISTRATION_SECONDS)
            self._epoch, self._live_seconds = registered.epoch, registered.live_seconds
            try:
                await self._obey_all(registered)
            except messages.RefusedError as refused:
                if refused.code not in {"StaleEpoch", "UnknownClient"}:
                    raise
                _log.warning("%s", refused)
                await self._drop_work()
            else:
                return

    async def _obey_all(self, registered: messages.Registered) -> None:
        after = -1
        while True:
            ordered = await until_answered(
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
            if not isinstance(ordered.order, messages.WaitOrder):
                self._silence = registered.silence_seconds
            await self._obey(ordered)
            if isinstance(ordered.order, messages.LeaveOrder):
                return

    async def _obey(self, ordered: messages.Ordered) -> None:
        sequence, order = ordered.sequence, ordered.order
        if isinstance(order, messages.GoOrder):
            armed = self._armed_trial
            if armed is not None and armed.trial == order.trial and self._go is not None and not self._go.done():
                self._go.set_result((sequence, order.t0_nanoseconds))
            return
        await self._drop_work()
        match order:
            case messages.LeaveOrder():
                with suppress(UnreachableError, messages.RefusedError):
                    await self._connection.report(self._report(messages.AgentState.LEAVING, sequence))
            case _ if self._work.unended:
                self._start(self._report_unended(sequence, is_idle=isinstance(order, messages.WaitOrder)))
            case messages.ArmOrder():
                self._go = asyncio.get_running_loop().create_future()
                self._armed_trial = order
                self._start(self._take_part(order, sequence, self._go))
            case _:
                self._start(self._perform(order, sequence))

    async def _report_unended(self, sequence: int, *, is_idle: bool) -> None:
        """Report that an earlier tool cannot be ended, so that no work can begin; if `is_idle`, until it has ended."""
        _log.error("%s", self._work.unended)
        await self._report_failure(self._work.unended, sequence)
        while self._work.unended:  # noqa: ASYNC110 - it may end hours later
            await asyncio.sleep(_PROGRESS_SECONDS)
        if is_idle:
            await self._send(self._report(messages.AgentState.IDLE, sequence))

    async def _perform(self, order: messages.Order, sequence: int) -> None:
        """Perform an order that is complete once it is reported, and report its result or failure."""
        state = messages.AgentState
        try:
            match order:
                case messages.WaitOrder():
                    await self._send(self._report(state.IDLE, sequence))
                case messages.PrepareOrder():
                    # Until it is prepared again: a part may be written.
                    self._prepared_bytes = 0
                    size = await self._report_progress(partial(self._work.prepare, order), state.PREPARING, sequence)
                    self._prepared_bytes, self._data_set_used = size, False
                    _log.info("prepared %d bytes", size)
                    await self._send(self._report(state.PREPARED, sequence, done_bytes=size, total_bytes=size))
                case messages.StageOrder():
                    self._data_set_used = True
                    await self._report_progress(partial(self._work.stage, order), state.STAGING, sequence)
                    _log.info("staged %s", order.trial)
                    await self._send(self._report(state.STAGED, sequence))
                case messages.ServeOrder():
                    await self._work.serve(order, partial(self._send, self._report(state.SERVING, sequence)))
                case messages.DropCachesOrder():
                    dropped = await self._work.drop_caches(order)
                    await self._send(self._report(state.DROPPED, sequence, caches=dropped))
        except PreparationError as error:
            await self._report_failure(str(error), sequence)

    async def _report_progress(
        self, begin: Callable[[Progress], Coroutine[None, None, T]], state: messages.AgentState, sequence: int
    ) -> T:
        """Return the result of some work, and report its progress every second meanwhile."""
        latest = 0, 0, ""

        def note(done: int, total: int, message: str) -> None:
            nonlocal latest
            latest = done, total, message[: messages.MAX_REPORT_CHARACTERS]

        working = asyncio.create_task(begin(note))
        try:
            # The first report shows the work's first step.
            await asyncio.sleep(0)
            while not working.done():
                done, total, message = latest
                await self._send(self._report(state, sequence, message=message, done_bytes=done, total_bytes=total))
                await asyncio.wait({working}, timeout=_PROGRESS_SECONDS)
            return await working
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    async def _take_part(self, order: messages.ArmOrder, sequence: int, go: asyncio.Future[tuple[int, int]]) -> None:
        """Arm, wait for `Go` and for T0, measure, and post the document until it is acknowledged or refused."""
        try:
            armed = await self._work.arm(order)
        except PreparationError as error:
            await self._report_failure(str(error), sequence)
            return
        try:
            await self._take_part_armed(armed, sequence, go)
        finally:
            await self._work.disarm(armed)

    async def _take_part_armed(self, armed: Armed, sequence: int, go: asyncio.Future[tuple[int, int]]) -> None:
        order = armed.order
        await self._work.launch(armed)
        try:
            before = await self._compare_clocks()
        except UnreachableError as error:
            await self._report_failure(str(error), sequence)
            return
        await self._send(self._report(messages.AgentState.ARMED, sequence, clock=before.clock))
        _log.info("armed for %s", order.trial)
        released, t0 = await go
        while (remaining := t0 - time.time_ns()) > 0:  # noqa: ASYNC110 - time is no event
            await asyncio.sleep(remaining / _SECOND)
        if -remaining > LATE_SECONDS * _SECOND:
            await self._send(self._report(messages.AgentState.LATE, released))
            return
        lead_at_start = _lead_of_wall_clock()
        self._data_set_used = True
        reporting = asyncio.create_task(self._report_rates(armed, released))
        try:
            document = await self._work.measure(armed, before.clock)
        finally:
            reporting.cancel()
        try:
            after = await until_answered(self._compare_clocks)
            # The larger certain offset counts: the clock may be set before, at the start of, or after a trial.
            clocks = [before.clock, after.clock, before.at(lead_at_start), after.at(lead_at_start)]
            clock = max(clocks, key=lambda clock: abs(clock.offset) - clock.error)
            post = messages.ResultPost(
                epoch=self._epoch,
                client=self._identity.client,
                instance=self._instance,
                trial=order.trial,
                round_number=order.round_number,
                document=document.model_copy(update={"clock": clock}),
            )
            kept = await until_answered(lambda: self._connection.post(post))
        except messages.RefusedError as refused:
            _log.warning("result of %s refused: %s", order.trial, refused)
            await self._report_failure(f"its result was refused ({refused.code}): {refused}", released)
            return
        _log.info("result of %s %s", order.trial, "delivered" if kept else "was no longer needed")

    async def _report_rates(self, armed: Armed, sequence: int) -> None:
        """Report that the tool runs, and then, after a random delay, its rates; a lost report is not repeated."""
        await self._send(self._report(messages.AgentState.RUNNING, sequence))
        await asyncio.sleep(self._live_seconds * random.random())  # noqa: S311 - no secret
        has_reported = False
        while True:
            rates = self._work.live(armed)
            if rates or has_reported:
                has_reported = bool(rates)
                with suppress(messages.RefusedError, UnreachableError):
                    await self._connection.report(self._report(messages.AgentState.RUNNING, sequence, rates=rates))
            await asyncio.sleep(self._live_seconds)

    async def _compare_clocks(self) -> _Comparison:
        clock = await self._connection.clock(_CLOCK_PROBES)
        return _Comparison(clock, _lead_of_wall_clock())

    async def _report_failure(self, message: str, sequence: int) -> None:
        short = message[: messages.MAX_REPORT_CHARACTERS]
        await self._send(self._report(messages.AgentState.FAILED, sequence, message=short))

    async def _send(self, report: messages.Report) -> None:
        """Send a report until it arrives. If it is refused, the next request for orders shows the reason."""
        with suppress(messages.RefusedError):
            await until_answered(lambda: self._connection.report(report))

    def _report(self, state: messages.AgentState, sequence: int, **fields: Any) -> messages.Report:  # noqa: ANN401
        return messages.Report(
            epoch=self._epoch,
            client=self._identity.client,
            instance=self._instance,
            sequence=sequence,
            state=state,
            **fields,
        )

    def _start(self, work: Coroutine[None, None, None]) -> None:
        def note_failure(task: asyncio.Task[None]) -> None:
            # An unexpected error ends the agent: the launcher starts another one.
            if not task.cancelled() and (error := task.exception()) is not None and not self._broken.done():
                self._broken.set_exception(error)

        self._task = asyncio.create_task(work)
        self._task.add_done_callback(note_failure)

    async def _drop_work(self) -> None:
        """Kill running work and wait until it has ended, or cannot be ended (`Worker.unended`)."""
        self._armed_trial = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
            self._task = None
