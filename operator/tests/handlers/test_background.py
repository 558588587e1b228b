"""A background task that ends, ends the operator: nothing else would tell that its metrics are frozen."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import click
import kopf
import pytest
from click.testing import CliRunner

from plimsoll.cli import main as plimsoll
from plimsoll.metrics.exposition import Instruments
from plimsoll.operator import main
from plimsoll.operator.watches import KnownResults
from support.fake_kube import FakeKube

TASKS = {
    "loop lag": (Instruments, "watch_loop"),
    "results": (KnownResults, "follow"),
    "objects of runs": (main, "follow_children"),
}

configure: Any = main.configure
close: Any = main.close


@asynccontextmanager
async def configured() -> AsyncIterator[kopf.Memo]:
    settings = main.settings_of({"PLIMSOLL_RUNNER_IMAGE": "runner:1"})
    memo = kopf.Memo(metrics="on", namespaces=(), stop=asyncio.Event(), settings=settings, guard=None)
    await configure(settings=kopf.OperatorSettings(), memo=memo)
    try:
        yield memo
    finally:
        await close(memo=memo)


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def connected(**_: Any) -> AsyncIterator[FakeKube]:
        kube: Any = FakeKube()
        kube.clock = kube
        kube.now = None
        yield kube

    monkeypatch.setattr(main, "AioKube", connected)
    monkeypatch.setenv("PLIMSOLL_RUNNER_IMAGE", "runner:1")


async def test_these_are_all_background_tasks_and_they_last(monkeypatch: pytest.MonkeyPatch) -> None:
    before = asyncio.all_tasks()
    async with configured() as memo:
        tasks = {task.get_name() for task in asyncio.all_tasks() - before}
        assert {name for name in tasks if not name.startswith("Task-")} == set(TASKS)
        await asyncio.sleep(0.05)
        assert not memo.stop.is_set()
        assert "failure" not in memo
    assert "failure" not in memo, "the operator ends its own tasks"


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("error", [KeyError("verdict"), None])
async def test_a_background_task_that_ends_stops_the_operator_and_its_liveness(
    name: str, error: Exception | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(*_: object, **__: object) -> None:
        if error is not None:
            raise error

    monkeypatch.setattr(*TASKS[name], work)
    async with configured() as memo:
        async with asyncio.timeout(10):
            await memo.stop.wait()
            assert f"background task '{name}' ended" in memo.failure
    assert f"background task '{name}' ended" in caplog.text
    assert (repr(error) in memo.failure) == (error is not None)


def test_the_program_fails_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    async def operator(*, memo: kopf.Memo, stop_flag: asyncio.Event, **_: object) -> None:
        assert stop_flag is memo.stop
        memo.failure = "background task 'results' ended"

    monkeypatch.setattr(kopf, "operator", operator)
    monkeypatch.setattr(kopf, "configure", lambda **_: None)
    result = CliRunner().invoke(plimsoll, ["operator", "--liveness", "http://127.0.0.1:0/healthz"])
    assert result.exit_code == click.ClickException.exit_code
    assert "background task 'results' ended" in result.output
