"""Retries: with the pauses that the API server asks for, and a bounded number of attempts."""

import time
from typing import Any

import pytest

from plimsoll.kube import port
from plimsoll.kube.port import ConflictError, TransientError, persist


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


@pytest.mark.parametrize(
    ("limits", "attempts", "says"),
    [
        ({"seconds": 60, "attempts": 3}, 3, "write it: no; gave up after 3 attempts"),
        ({"seconds": 60}, 20, "write it: no; gave up after 20 attempts"),
        ({"seconds": 0}, 1, "write it: no"),
    ],
)
@pytest.mark.parametrize("error", [TransientError, ConflictError])
async def test_the_error_says_how_often_it_was_tried(
    monkeypatch: pytest.MonkeyPatch,
    limits: dict[str, Any],
    attempts: int,
    says: str,
    error: type[TransientError | ConflictError],
) -> None:
    monkeypatch.setattr(port, "_FIRST_PAUSE_SECONDS", 0.0)
    asked = 0

    async def ask() -> None:
        nonlocal asked
        asked += 1
        raise error("write it", "no")

    with pytest.raises(error) as raised:
        await persist(ask, **limits)
    assert (asked, str(raised.value)) == (attempts, says)
