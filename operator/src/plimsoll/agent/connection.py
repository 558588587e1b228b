"""The agent's connection to its conductor: HTTPS with the run's certificate and the client's token."""

import asyncio
import io
import ssl
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
from pydantic import ValidationError

from plimsoll.api.model import Model
from plimsoll.measure.sample import Clock
from plimsoll.protocol.assignment import CERTIFICATE_FILE, TOKEN_FILE
from plimsoll.protocol.messages import (
    SERVER_NAME,
    Acknowledged,
    ClockReading,
    Ordered,
    Refusal,
    RefusedError,
    Registered,
    Registration,
    Report,
    ResultPost,
)

RETRY_SECONDS = 0.25

_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 10.0
_POST_SECONDS = 30.0
"""Hundreds of clients post at once, and the document of a long trial has several MiB."""

_HTTP_ERROR = 400
_HTTP_SERVER_ERROR = 500
_NANOSECONDS = 10**9

M = TypeVar("M", bound=Model)
T = TypeVar("T")


class UnreachableError(Exception):
    """The conductor did not answer, or not with a message of the protocol. A retry may help."""


class Connection:
    """Requests to one conductor.

    `last_answer` is the monotonic time of its last answer, and `last_error` what it has answered since, instead of one:
    an HTTP status; empty if the last request was answered, or reached nobody.
    """

    def __init__(self, url: str, secret: Path) -> None:
        context = ssl.create_default_context(cafile=str(secret / CERTIFICATE_FILE))
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        self._session = aiohttp.ClientSession(
            url,
            connector=aiohttp.TCPConnector(ssl=context, limit=4),
            headers={"Authorization": f"Bearer {(secret / TOKEN_FILE).read_text().strip()}"},
        )
        self.last_answer = time.monotonic()
        self.last_error = ""

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    async def register(self, registration: Registration) -> Registered:
        """Register the agent."""
        return _parsed(Registered, await self._send("POST", "/v1/clients", body=registration))

    async def orders(self, *, client: int, instance: str, epoch: str, after: int, hold: float) -> Ordered:
        """Wait for an order newer than `after`, for about `hold` seconds at most."""
        query = {"client": str(client), "instance": instance, "epoch": epoch, "after": str(after)}
        return _parsed(Ordered, await self._send("GET", "/v1/orders", query=query, seconds=hold + _ANSWER_SECONDS))

    async def report(self, report: Report) -> None:
        """Report the agent's progress with its order."""
        await self._send("POST", "/v1/reports", body=report)

    async def post(self, post: ResultPost) -> bool:
        """Post a document; false if the conductor discards it."""
        return _parsed(Acknowledged, await self._send("POST", "/v1/results", body=post, seconds=_POST_SECONDS)).kept

    async def clock(self, probes: int) -> Clock:
        """Compare clocks as NTP does (RFC 5905 section 8): the probe with the shortest round trip counts."""
        readings = []
        for _ in range(probes):
            t0 = time.time_ns()
            reading = _parsed(ClockReading, await self._send("GET", "/v1/clock"))
            t3 = time.time_ns()
            offset = ((reading.received_at - t0) + (reading.sent_at - t3)) / 2
            round_trip = (t3 - t0) - (reading.sent_at - reading.received_at)
            readings.append(Clock(offset=offset / _NANOSECONDS, error=max(0, round_trip) / 2 / _NANOSECONDS))
        return min(readings, key=lambda clock: clock.error)

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: Model | None = None,
        seconds: float = _ANSWER_SECONDS,
    ) -> str:
        options: dict[str, Any] = {"params": query} if query else {}
        if body is not None:
            # As a stream: aiohttp warns about large bodies in one piece.
            options["data"] = io.BytesIO(body.model_dump_json().encode())
            options["headers"] = {"Content-Type": "application/json"}
        timeout = aiohttp.ClientTimeout(total=seconds, connect=_CONNECT_SECONDS)
        try:
            async with self._session.request(
                method, path, timeout=timeout, server_hostname=SERVER_NAME, **options
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
            refusal = Refusal.model_validate_json(text)
        except ValidationError:
            if response.status < _HTTP_SERVER_ERROR:
                raise RefusedError("BadRequest", message) from None
            self.last_error = message
            raise UnreachableError(message) from None
        raise RefusedError(refusal.code, refusal.message)


def _parsed(answer: type[M], text: str) -> M:
    try:
        return answer.model_validate_json(text)
    except ValidationError as error:
        raise UnreachableError(f"the answer is not a valid {answer.__name__}") from error


async def until_answered(ask: Callable[[], Awaitable[T]]) -> T:
    """Retry until there is an answer; the agent's watchdog limits the time."""
    while True:
        try:
            return await ask()
        except UnreachableError:
            await asyncio.sleep(RETRY_SECONDS)
