"""Retries of requests."""

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_before_delay,
    wait_exponential,
)

from plimsoll.kube.errors import ConflictError, TransientError

T = TypeVar("T")

_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 5.0

_log = logging.getLogger(__name__)


async def persist(ask: Callable[[], Awaitable[T]], *, seconds: float) -> T:
    """Retry an idempotent request with growing pauses, and return its answer.

    Raises:
        ApiError: one that a retry cannot fix, or the last one when another pause would exceed `seconds`.

    """
    retrying = AsyncRetrying(
        retry=retry_if_exception_type((TransientError, ConflictError)),
        wait=_pause,
        stop=stop_before_delay(seconds),
        before_sleep=_log_failure,
        reraise=True,
    )

    async def answer() -> T:  # the library awaits only what is declared a coroutine function
        return await ask()

    return await retrying(answer)


def _pause(state: RetryCallState) -> float:
    """Return the seconds until the next request: at least as many as the API server asked for."""
    growing = wait_exponential(multiplier=_FIRST_PAUSE_SECONDS, max=_LONGEST_PAUSE_SECONDS)(state)
    error = state.outcome.exception() if state.outcome else None
    return max(growing, error.retry_after) if isinstance(error, TransientError) else growing


def _log_failure(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    _log.warning("%s; retrying in %.1f s", error, state.upcoming_sleep)
