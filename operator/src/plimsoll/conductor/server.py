"""The rendezvous: what agents ask the conductor for, over HTTPS. Decides nothing."""

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable

from aiohttp import web
from pydantic import ValidationError

from plimsoll.api.model import Model
from plimsoll.conductor.roster import Client, RefusedError
from plimsoll.conductor.session import Session
from plimsoll.conductor.timings import Moment
from plimsoll.protocol.messages import (
    MAX_DOCUMENT_BYTES,
    PROTOCOL_VERSION,
    Acknowledged,
    ClockReading,
    Ordered,
    Refusal,
    Registered,
    Registration,
    Report,
    ResultPost,
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_STATUS_OF_REFUSAL = {
    "BadToken": 401,
    "BadProtocol": 426,
    "BadRequest": 400,
    "UnknownClient": 404,
    "Superseded": 410,
    "StaleEpoch": 409,
    "TooLarge": 413,
}

_DOCUMENTS_AT_ONCE = 4
"""All clients post at the same moment; what is not read yet waits with them and takes no memory here."""

_BODY_SECONDS = 10.0


def moment() -> Moment:
    """Return now."""
    return Moment(seconds=time.monotonic(), wall=time.time_ns())


class Rendezvous:
    """Carries requests to a session and its orders back. `on_input` is called after each change."""

    def __init__(self, session: Session, *, token: str, on_input: Callable[[], None]) -> None:
        """Serve a session to whoever knows the token."""
        self._session = session
        self._token = token.encode()
        self._on_input = on_input
        self._changed: dict[int, asyncio.Event] = {}
        self._sequences: dict[int, tuple[str, int]] = {}
        self._reading = asyncio.Semaphore(_DOCUMENTS_AT_ONCE)

    def application(self) -> web.Application:
        """Return the routes."""
        application = web.Application(middlewares=[self._guard], client_max_size=MAX_DOCUMENT_BYTES)
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
        """Answer the held requests of those clients whose order has changed."""
        for client in self._session.roster:
            latest = (client.instance, client.sequence)
            if self._sequences.get(client.number) != latest:
                self._sequences[client.number] = latest
                self._event(client).set()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let in whoever has the token, and turn refusals into answers."""
        try:
            self._check_token(request)
            return await handler(request)
        except RefusedError as refused:
            return _refusal(refused.code, str(refused))
        except web.HTTPRequestEntityTooLarge:
            limit = MAX_DOCUMENT_BYTES // 2**20
            return _refusal(
                "TooLarge", f"{request.path}: the body is larger than {limit} MiB; runtimeSeconds is too long"
            )
        except ValidationError as error:
            return _refusal("BadRequest", str(error.errors(include_url=False, include_input=False)[:3]))

    def _check_token(self, request: web.Request) -> None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or not hmac.compare_digest(token.encode(errors="surrogateescape"), self._token):
            raise RefusedError("BadToken", "this is not the token of this run's session secret")

    async def _clock(self, _: web.Request) -> web.Response:
        received_at = time.time_ns()
        return _answer(ClockReading(received_at=received_at, sent_at=time.time_ns()))

    async def _register(self, request: web.Request) -> web.Response:
        registration = Registration.model_validate_json(await request.read())
        if registration.protocol != PROTOCOL_VERSION:
            message = f"agent speaks protocol {registration.protocol}, this conductor {PROTOCOL_VERSION}"
            raise RefusedError("BadProtocol", f"{message}; use one image for both")
        self._session.register(registration, moment())
        self._on_input()
        timings = self._session.timings
        return _answer(
            Registered(
                epoch=self._session.epoch,
                hold_seconds=timings.hold,
                silence_seconds=timings.silence,
                live_seconds=timings.live_seconds(self._session.plan.clients),
            )
        )

    async def _orders(self, request: web.Request) -> web.Response:
        """Answer at once if the order is newer than `after`, else hold the request until it is or time is up."""
        query = request.query
        try:
            number, after = int(query["client"]), int(query["after"])
            instance, epoch = query["instance"], query["epoch"]
        except (KeyError, ValueError) as error:
            raise RefusedError("BadRequest", f"query parameter {error}") from error
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
        report = Report.model_validate_json(await request.read())
        self._session.report(report, moment())
        if not report.rates:
            # Rates decide nothing, and of hundreds of clients there come dozens every second.
            self._on_input()
        return web.Response(status=204)

    async def _result(self, request: web.Request) -> web.Response:
        async with self._reading:
            post = ResultPost.model_validate_json(await _body_in_time(request))
        kept = self._session.post(post, moment())
        self._on_input()
        return _answer(Acknowledged(kept=kept))

    def _event(self, client: Client) -> asyncio.Event:
        return self._changed.setdefault(client.number, asyncio.Event())


async def _body_in_time(request: web.Request) -> bytes:
    """Read a body, but not from somebody who has died while sending it: others wait for their turn."""
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            return await request.read()
    except TimeoutError as error:
        raise web.HTTPServiceUnavailable(text=f"the body did not arrive within {_BODY_SECONDS:g} s") from error


def _answer(model: Model) -> web.Response:
    return web.Response(text=model.model_dump_json(), content_type="application/json")


def _refusal(code: str, message: str) -> web.Response:
    refusal = Refusal.model_validate({"code": code, "message": message})
    return web.Response(
        status=_STATUS_OF_REFUSAL[code], text=refusal.model_dump_json(), content_type="application/json"
    )
