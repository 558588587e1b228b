"""The rendezvous: passes the agents' HTTPS requests to the session, which decides."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from aiohttp import web
from pydantic import ValidationError

from plimsoll.api.errors import problems_of
from plimsoll.api.model import Model
from plimsoll.conductor.bodies import Bodies, TooLargeError
from plimsoll.conductor.roster import Client
from plimsoll.conductor.session import Session
from plimsoll.conductor.timings import Moment
from plimsoll.protocol.messages import (
    PROTOCOL_VERSION,
    Acknowledged,
    ClockReading,
    Ordered,
    Refusal,
    RefusalCode,
    RefusedError,
    Registered,
    Registration,
    Report,
    ResultPost,
)
from plimsoll.protocol.secret import client_of

Know = Callable[[web.RequestHandler, int], None]
"""Called with a connection and the number of the client that has authenticated on it."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_STATUS_OF_REFUSAL: dict[RefusalCode, int] = {
    "BadToken": 401,
    "BadProtocol": 426,
    "BadRequest": 400,
    "UnknownClient": 404,
    "Superseded": 410,
    "StaleEpoch": 409,
    "TooLarge": 413,
}

_CLIENT = web.RequestKey("client", int)
"""The client whose token a request carries."""

_REMEDIES = {"/v1/clients": "send fewer facts", "/v1/results": "reduce runtimeSeconds"}

_SHOWN_PROBLEMS = 3


def moment() -> Moment:
    """Return the current time."""
    return Moment(seconds=time.monotonic(), wall=time.time_ns())


class Rendezvous:
    """Passes requests to a session and returns its orders. `on_input` is called after each change."""

    def __init__(self, session: Session, *, token_key: bytes, on_input: Callable[[], None], know: Know) -> None:
        self._session = session
        self._token_key = token_key
        self._on_input = on_input
        self._know = know
        self._bodies = Bodies()
        self._changed: dict[int, asyncio.Event] = {}
        self._sequences: dict[int, tuple[str, int]] = {}

    def application(self) -> web.Application:
        """Return the application with its routes."""
        application = web.Application(middlewares=[self._guard])
        application.add_routes(
            [
                web.get("/v1/clock", self._clock),
                web.post("/v1/clients", self._register),
                web.get("/v1/orders", self._orders),
                web.post("/v1/reports", self._report),
                web.post("/v1/results", self._result),
            ]
        )
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
            request[_CLIENT] = self._client_of(request)
            self._know(request.protocol, request[_CLIENT])
            return await handler(request)
        except RefusedError as refused:
            return _refusal(refused.code, str(refused))
        except TooLargeError as error:
            remedy = _REMEDIES.get(request.path, "send a shorter message")
            return _refusal("TooLarge", f"{request.path}: {error}; {remedy}")
        except ValidationError as error:
            problems = problems_of(error)
            return _refusal("BadRequest", "; ".join(map(str, problems[:_SHOWN_PROBLEMS])))

    def _client_of(self, request: web.Request) -> int:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        client = client_of(token, self._token_key) if scheme == "Bearer" else None
        if client is None:
            raise RefusedError("BadToken", "the token is not one of this run's session secret")
        return client

    async def _clock(self, _: web.Request) -> web.Response:
        received_at = time.time_ns()
        return _answer(ClockReading(received_at=received_at, sent_at=time.time_ns()))

    async def _register(self, request: web.Request) -> web.Response:
        registration = Registration.model_validate_json(await self._bodies.message(request))
        _check_speaker(request, registration.client)
        if registration.protocol != PROTOCOL_VERSION:
            message = f"agent speaks protocol {registration.protocol}, this conductor {PROTOCOL_VERSION}"
            raise RefusedError("BadProtocol", f"{message}; use one image for both")
        self._session.register(registration, moment(), request.remote or "")
        self._on_input()
        timings = self._session.timings
        return _answer(
            Registered(
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
            raise RefusedError("BadRequest", f"query parameter {error}") from error
        _check_speaker(request, number)
        client = self._session.client(number, instance, epoch, moment())
        try:
            async with asyncio.timeout(self._session.timings.hold):
                while client.sequence <= after:
                    event = self._event(client)
                    event.clear()
                    await event.wait()
                    client = self._session.client(number, instance, epoch, moment())
        except TimeoutError:
            pass
        return _answer(Ordered(epoch=self._session.epoch, sequence=client.sequence, order=client.order))

    async def _report(self, request: web.Request) -> web.Response:
        report = Report.model_validate_json(await self._bodies.message(request))
        _check_speaker(request, report.client)
        self._session.report(report, moment())
        if not report.rates:
            # Rates trigger no decision, and hundreds of clients send dozens of them every second.
            self._on_input()
        return web.Response(status=204)

    async def _result(self, request: web.Request) -> web.Response:
        post = ResultPost.model_validate_json(await self._bodies.document(request, request[_CLIENT]))
        _check_speaker(request, post.client)
        kept = self._session.post(post, moment())
        self._on_input()
        return _answer(Acknowledged(kept=kept))

    def _event(self, client: Client) -> asyncio.Event:
        return self._changed.setdefault(client.number, asyncio.Event())


def _check_speaker(request: web.Request, client: int) -> None:
    """Refuse a message on behalf of another client."""
    if request[_CLIENT] != client:
        raise RefusedError("BadToken", f"client: {client} is not client {request[_CLIENT]}, whose token was sent")


def _answer(model: Model) -> web.Response:
    return web.Response(text=model.model_dump_json(), content_type="application/json")


def _refusal(code: RefusalCode, message: str) -> web.Response:
    text = Refusal(code=code, message=message).model_dump_json()
    return web.Response(status=_STATUS_OF_REFUSAL[code], text=text, content_type="application/json")
