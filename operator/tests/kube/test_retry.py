"""Retries: with the pauses that the API server asks for."""

import time

import pytest

from plimsoll.kube.port import TransientError, persist


async def test_the_pause_that_the_api_server_asks_for_is_kept() -> None:
    asked: list[float] = []

    async def ask(thing: str) -> str:
        asked.append(time.monotonic())
        if len(asked) == 1:
            raise TransientError("get it", "slow down", retry_after=0.2)
        return thing

    assert await persist(lambda: ask("it"), seconds=5) == "it"
    assert asked[1] - asked[0] >= 0.2
    asked.clear()
    with pytest.raises(TransientError):
        await persist(lambda: ask("it"), seconds=0.1)
