"""The helpers end when they are asked to, also before they have read their credentials."""

import asyncio
import os
import signal
from collections.abc import Iterator
from typing import NoReturn

import pytest
from click.testing import CliRunner

from plimsoll.cli import main
from plimsoll.helpers.server import TokenReviews
from plimsoll.programs import helpers
from plimsoll.programs.termination import run_until_stopped

OPTIONS = {
    "caches": ["--node=n", "--allow=bench"],
    "burner": [
        "--namespace=plimsoll-kube-burner",
        "--allow=bench",
        "--max-objects=1",
        "--max-qps=1",
        "--max-volume-size=1Gi",
        "--pod-image=runner:1",
    ],
}


@pytest.fixture(autouse=True)
def unhandled() -> Iterator[None]:
    """Make a signal fail the test, not end it, if the program does not handle it."""

    def fail(*_: object) -> NoReturn:
        raise AssertionError("the program does not handle the signal yet")

    before = {number: signal.signal(number, fail) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("program", OPTIONS)
def test_a_helper_that_is_reading_its_credentials_can_be_ended(
    program: str, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(_: TokenReviews) -> NoReturn:
        os.kill(os.getpid(), number)
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(helpers, "may_drop_caches", lambda: True)
    monkeypatch.setattr(TokenReviews, "__aenter__", never)
    result = CliRunner().invoke(main, [program, *OPTIONS[program]])
    assert result.exit_code == 0, result.exception


def test_what_was_opened_is_closed() -> None:
    closed = []

    async def work() -> NoReturn:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            closed.append(True)
        raise AssertionError

    assert run_until_stopped(work()) is None
    assert closed


def test_work_that_is_not_stopped_returns_its_result_or_raises_its_error() -> None:
    async def work(value: int) -> int:
        return 1 // value

    assert run_until_stopped(work(1)) == 1
    with pytest.raises(ZeroDivisionError):
        run_until_stopped(work(0))
