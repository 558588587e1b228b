"""Drops the caches of this node before a trial: through the node's helper, or in local mode as root."""

import asyncio
import time
from dataclasses import dataclass

import aiohttp
from pydantic import ValidationError

from plimsoll.agent.page_cache import SWITCH, drop_caches
from plimsoll.agent.process import PreparationError
from plimsoll.protocol.assignment import CacheDropping
from plimsoll.protocol.helpers import DROP_PATH, MAX_ANSWER_BYTES, CacheDrop, DropRefusal, DropRequest
from plimsoll.protocol.messages import DropCachesOrder

_OK = 200
_TOO_MANY_REQUESTS = 429
_TRANSIENT = frozenset({_TOO_MANY_REQUESTS, 502, 503})
"""An OSD or the API server does not answer just now, or it is another one's turn."""
_RETRY_SECONDS = 1.0
_LONGEST_RETRY_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """A helper's answer; `retry_seconds` is positive if the request may be repeated after that time."""

    text: str
    status: int
    retry_seconds: float = 0.0


class CacheDropper:
    """Drops the caches of one node as the assignment of its agent allows."""

    def __init__(self, assigned: CacheDropping | None, node: str) -> None:
        """Use the assigned helper; without an assignment, refuse every order."""
        self._assigned = assigned
        self._node = node

    async def drop(self, order: DropCachesOrder) -> CacheDrop:
        """Drop the caches within the order's time limit; PreparationError with the cause if they were not dropped."""
        if self._assigned is None:
            raise PreparationError("this agent's assignment has no caches, so it cannot drop them")
        if self._assigned.helper is None:
            return await self._drop_here(order.limit_seconds)
        async with aiohttp.ClientSession(self._assigned.helper) as session:
            return await _Request(session, order).send()

    async def _drop_here(self, limit_seconds: float) -> CacheDrop:
        try:
            async with asyncio.timeout(limit_seconds):
                return CacheDrop(node=await asyncio.to_thread(drop_caches, self._node))
        except TimeoutError:
            message = f"the caches were not dropped within {limit_seconds:g} s; check the storage for stalled I/O"
            raise PreparationError(message) from None
        except (OSError, ValueError) as error:
            message = f"cannot drop the caches: {error}; run as root, where /proc/{SWITCH} is writable"
            raise PreparationError(message) from error


class _Request:
    """A request to the helper of this node, repeated while it cannot drop the caches at present."""

    def __init__(self, session: aiohttp.ClientSession, order: DropCachesOrder) -> None:
        self._session = session
        self._order = order
        self._deadline = time.monotonic() + order.limit_seconds

    async def send(self) -> CacheDrop:
        while True:
            answer = await self._attempt()
            if not answer.retry_seconds:
                return _dropped(answer)
            if time.monotonic() + answer.retry_seconds >= self._deadline:
                message = f"the helper did not drop the caches within {self._order.limit_seconds:g} s: {answer.text}"
                raise PreparationError(message)
            await asyncio.sleep(answer.retry_seconds)

    async def _attempt(self) -> _Answer:
        body = DropRequest(fsid=self._order.fsid).model_dump_json(exclude_none=True)
        headers = {"Authorization": f"Bearer {self._order.token}", "Content-Type": "application/json"}
        timeout = aiohttp.ClientTimeout(total=max(_RETRY_SECONDS, self._deadline - time.monotonic()))
        try:
            async with self._session.post(DROP_PATH, data=body, headers=headers, timeout=timeout) as response:
                text = (await response.content.read(MAX_ANSWER_BYTES)).decode(errors="replace")
                again = response.status in _TRANSIENT
                if not again:
                    return _Answer(text=text, status=response.status, retry_seconds=0.0)
                header = response.headers.get("Retry-After", "")
                wanted = float(header) if header.isascii() and header.isdecimal() else 0.0
                retry = min(max(wanted, _RETRY_SECONDS), _LONGEST_RETRY_SECONDS)
                return _Answer(text=_message(text), status=response.status, retry_seconds=retry)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            # Its pod may be starting, or be replaced.
            problem = f"no answer from the helper of this node ({str(error) or type(error).__name__}); check its pod"
            return _Answer(text=problem, status=0, retry_seconds=_RETRY_SECONDS)


def _dropped(answer: _Answer) -> CacheDrop:
    if answer.status != _OK:
        message = f"the helper did not drop the caches (status {answer.status}): {_message(answer.text)}"
        raise PreparationError(message)
    try:
        return CacheDrop.model_validate_json(answer.text)
    except ValidationError as error:
        message = "the helper's answer is not valid; use the same version for the helper and the run"
        raise PreparationError(message) from error


def _message(text: str) -> str:
    """Return the message of a refusal, or the beginning of another text."""
    try:
        return DropRefusal.model_validate_json(text).message
    except ValidationError:
        return text[:200] or "no message"
