"""Asking again what may succeed next time."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from plimsoll.kube.errors import ApiError, ConflictError, TransientError

T = TypeVar("T")

_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 5.0

_log = logging.getLogger(__name__)


async def persist(ask: Callable[[], Awaitable[T]], *, seconds: float) -> T:
    """Ask until there is an answer, with pauses that grow; what is asked must bear being done twice.

    Raises:
        ApiError: one that asking again does not mend, or the last one when another pause would go beyond `seconds`.

    """
    deadline = time.monotonic() + seconds
    pause = _FIRST_PAUSE_SECONDS
    while True:
        try:
            return await ask()
        except (TransientError, ConflictError) as error:
            wait = max(pause, _retry_after(error))
            if time.monotonic() + wait > deadline:
                raise
            _log.warning("%s; asking again in %.1f s", error, wait)
        await asyncio.sleep(wait)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


def _retry_after(error: ApiError) -> float:
    return error.retry_after if isinstance(error, TransientError) else 0.0
