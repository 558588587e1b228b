"""The rendezvous: passes the agents' HTTPS requests to the session, which decides."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from aiohttp import web
from pydantic import ValidationError

from plimsoll.api.errors import problems_of
from plimsoll.api.model import Model
from plimsoll.conductor.attempt import Moment
from plimsoll.conductor.phases import Arming, Running, Staging
from plimsoll.conductor.published import run_state
from plimsoll.conductor.roster import Client
from plimsoll.conductor.session import Session
from plimsoll.metrics.exposition import serving
from plimsoll.metrics.live import LiveView, live_snapshot
from plimsoll.net.listener import AddressError
from plimsoll.protocol import messages
from plimsoll.protocol.assignment import client_of

_BODY_SECONDS = 10.0  # time limit of a small body
_SMALL_BYTES = 128 * 2**10  # size up to which a body is read without a turn
_LARGE_AT_ONCE = 4
_PACE_BYTES = 2**20  # minimum rate of a large body, per second
_PACE_GRACE_SECONDS = 2.0  # a large body may fall behind by this time; longer than other documents keep the loop busy

Know = Callable[[web.RequestHandler, int], None]  # called with a connection and the client authenticated on it
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_STATUS_OF_REFUSAL: dict[messages.RefusalCode, int] = {
    "BadToken": 401,
    "BadProtocol": 426,
    "BadRequest": 400,
    "UnknownClient": 404,
    "Superseded": 410,
    "StaleEpoch": 409,
    "TooLarge": 413,
}

_CLIENT = web.RequestKey("client", int)  # the client whose token a request carries
_REMEDIES = {"/v1/clients": "send fewer facts", "/v1/results": "reduce runtimeSeconds"}

_log = logging.getLogger(__name__)


async def _message(request: web.Request) -> bytes:
    """Return any body but a result's; RefusedError if it is too large, HTTPServiceUnavailable if it is too late."""
    content = bytearray()
    async with _in_time(_BODY_SECONDS):
        await _read(request, content, messages.MAX_MESSAGE_BYTES)
    return bytes(content)


async def _read(
    request: web.Request,
    content: bytearray,
    limit: int,
    *,
    enough: int | None = None,
    deadline: asyncio.Timeout | None = None,
) -> None:
    """Read until the body is complete or exceeds `enough` bytes; data that arrives extends the deadline."""
    begun, before, size = deadline.when() if deadline else None, len(content), request.content_length or 0
    while True:
        if size > limit:
            most = f"{limit // 2**20} MiB" if limit >= 2**20 else f"{limit // 2**10} KiB"
            remedy = _REMEDIES.get(request.path, "send a shorter message")
            raise messages.RefusedError("TooLarge", f"{request.path}: the body is larger than {most}; {remedy}")
        if request.content.at_eof() or (enough is not None and len(content) > enough):
            return
        content += await request.content.readany()
        size = len(content)
        if deadline is not None and begun is not None:
            deadline.reschedule(begun + (size - before) / _PACE_BYTES)


@asynccontextmanager
async def _in_time(seconds: float | None) -> AsyncIterator[asyncio.Timeout]:
    """Answer with 503 if the context takes too long or the client disconnects: it may have died while sending."""
    try:
        async with asyncio.timeout(seconds) as deadline:
            yield deadline
    except (TimeoutError, ConnectionError) as error:
        raise web.HTTPServiceUnavailable(text="the body did not arrive in time; send it again") from error


def moment() -> Moment:
    return Moment(seconds=time.monotonic(), wall=time.time_ns())


class Rendezvous:
    """Passes requests to a session and returns its orders. `on_input` is called after each change."""

    def __init__(self, session: Session, *, token_key: bytes, on_input: Callable[[], None], know: Know) -> None:
        self._session = session
        self._token_key = token_key
        self._on_input = on_input
        self._know = know
        self._turns = asyncio.Semaphore(_LARGE_AT_ONCE)
        self._posting: dict[int, asyncio.Timeout] = {}
        self._changed: dict[int, asyncio.Event] = {}
        self._sequences: dict[int, tuple[str, int]] = {}

    def application(self) -> web.Application:
        application = web.Application(middlewares=[self._guard])
        for path, handler in (("/v1/clock", self._clock), ("/v1/orders", self._orders)):
            application.router.add_get(path, handler)
        posts = {"/v1/clients": self._register, "/v1/reports": self._report, "/v1/results": self._result}
        for path, handler in posts.items():
            application.router.add_post(path, handler)
        return application

    def wake(self) -> None:
        """Answer the held requests of clients whose order has changed."""
        for client in self._session.roster:
            latest = (client.instance, client.sequence)
            if self._sequences.get(client.number) != latest:
                self._sequences[client.number] = latest
                self._event(client).set()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Admit requests with a client's token, and turn errors into refusals."""
        try:
            scheme, _, token = request.headers.get("Authorization", "").partition(" ")
            client = client_of(token, self._token_key) if scheme == "Bearer" else None
            if client is None:
                return _refusal("BadToken", "the token is not one of this run's session secret")
            request[_CLIENT] = client
            self._know(request.protocol, request[_CLIENT])
            return await handler(request)
        except messages.RefusedError as refused:
            return _refusal(refused.code, str(refused))
        except ValidationError as error:
            return _refusal("BadRequest", "; ".join(map(str, problems_of(error)[:3])))

    async def _clock(self, _: web.Request) -> web.Response:
        received_at = time.time_ns()
        return _answer(messages.ClockReading(received_at=received_at, sent_at=time.time_ns()))

    async def _register(self, request: web.Request) -> web.Response:
        registration = messages.Registration.model_validate_json(await _message(request))
        _check_speaker(request, registration.client)
        if registration.protocol != messages.PROTOCOL_VERSION:
            message = f"agent speaks protocol {registration.protocol}, this conductor {messages.PROTOCOL_VERSION}"
            raise messages.RefusedError("BadProtocol", f"{message}; use one image for both")
        self._session.register(registration, moment(), request.remote or "")
        self._on_input()
        timings = self._session.timings
        return _answer(
            messages.Registered(
                epoch=self._session.epoch,
                hold_seconds=timings.hold,
                silence_seconds=timings.silence,
                live_seconds=timings.live_seconds(self._session.plan.members),
            )
        )

    async def _orders(self, request: web.Request) -> web.Response:
        """Answer when the order is newer than `after`, or when the hold time is over."""
        query = request.query
        try:
            number, after = int(query["client"]), int(query["after"])
            instance, epoch = query["instance"], query["epoch"]
        except (KeyError, ValueError) as error:
            raise messages.RefusedError("BadRequest", f"query parameter {error}") from error
        _check_speaker(request, number)
        client = self._session.client(number, instance, epoch, moment())
        with suppress(TimeoutError):
            async with asyncio.timeout(self._session.timings.hold):
                while client.sequence <= after:
                    event = self._event(client)
                    event.clear()
                    await event.wait()
                    client = self._session.client(number, instance, epoch, moment())
        return _answer(messages.Ordered(epoch=self._session.epoch, sequence=client.sequence, order=client.order))

    async def _report(self, request: web.Request) -> web.Response:
        report = messages.Report.model_validate_json(await _message(request))
        _check_speaker(request, report.client)
        self._session.report(report, moment())
        if not report.rates:
            # Rates trigger no decision, and hundreds of clients send dozens of them every second.
            self._on_input()
        return web.Response(status=204)

    async def _result(self, request: web.Request) -> web.Response:
        content = await self._document(request, request[_CLIENT])
        # Before they are parsed: parts take many times the memory of their text.
        entries, fields = content.count(b","), sum(map(content.count, (b":", b"[", b"{")))
        if entries > messages.MAX_DOCUMENT_ENTRIES or fields > messages.MAX_DOCUMENT_FIELDS:
            most = f"{messages.MAX_DOCUMENT_ENTRIES} entries and {messages.MAX_DOCUMENT_FIELDS} fields"
            problem = f"the body has {entries} entries and {fields} fields, but at most {most} are allowed"
            raise messages.RefusedError("TooLarge", f"{request.path}: {problem}; {_REMEDIES[request.path]}")
        post = messages.ResultPost.model_validate_json(content)
        _check_speaker(request, post.client)
        kept = self._session.post(post, moment())
        self._on_input()
        return _answer(messages.Acknowledged(kept=kept))

    async def _document(self, request: web.Request, client: int) -> bytes:
        """Return a client's result; a new post ends the earlier one. See `_message` for errors."""
        async with _in_time(None) as mine:
            if (earlier := self._posting.get(client)) is not None:
                earlier.reschedule(asyncio.get_running_loop().time())
            self._posting[client] = mine
            content, limit = bytearray(), messages.MAX_DOCUMENT_BYTES
            try:
                async with _in_time(_BODY_SECONDS):
                    await _read(request, content, limit, enough=_SMALL_BYTES)
                if not request.content.at_eof():
                    async with self._turns, _in_time(_PACE_GRACE_SECONDS) as deadline:
                        await _read(request, content, limit, deadline=deadline)
                return bytes(content)
            finally:
                if self._posting.get(client) is mine:
                    del self._posting[client]

    def _event(self, client: Client) -> asyncio.Event:
        return self._changed.setdefault(client.number, asyncio.Event())


def _check_speaker(request: web.Request, client: int) -> None:
    if request[_CLIENT] != client:
        message = f"client: {client} is not client {request[_CLIENT]}, whose token was sent"
        raise messages.RefusedError("BadToken", message)


def _answer(model: Model) -> web.Response:
    return web.Response(text=model.model_dump_json(), content_type="application/json")


def _refusal(code: messages.RefusalCode, message: str) -> web.Response:
    text = messages.Refusal(code=code, message=message).model_dump_json()
    return web.Response(status=_STATUS_OF_REFUSAL[code], text=text, content_type="application/json")


@asynccontextmanager
async def exposing(session: Session, port: int | None) -> AsyncIterator[None]:
    """Serve metrics on a port, if there is one, within the context; an unavailable port is only logged."""
    async with AsyncExitStack() as stack:
        if port is not None:
            try:
                address = f"http://:{port}/metrics"
                await stack.enter_async_context(serving(address, lambda: live_snapshot(view_of(session, moment()))))
            except AddressError as error:
                # A measurement must not fail for lack of metrics, and a scrape shows it.
                _log.error("the run continues without metrics: %s", error)
        yield


def view_of(session: Session, now: Moment) -> LiveView:
    plan, ledger, gate, phase = session.plan, session.ledger, session.gate, session.phase
    attempt = phase.attempt if isinstance(phase, Staging | Arming | Running) else None
    return LiveView(
        namespace=plan.run.namespace,
        run=plan.run.name,
        now=now.wall / 1e9,
        state=run_state(session, now),
        planned=plan.members,
        armed=sum(client.is_in(messages.AgentState.ARMED) for client in session.roster),
        measuring=sum(client.is_in(messages.AgentState.RUNNING) for client in session.roster),
        attempts=dict(ledger.added),
        trial=(attempt.point, attempt.key) if attempt else None,
        is_running=isinstance(phase, Running),
        last=(plan.point(ledger.measured[0]), ledger.measured[1]) if ledger.measured else None,
        gate_open=not gate.problems(now.seconds) if gate.is_watched else None,
    )
