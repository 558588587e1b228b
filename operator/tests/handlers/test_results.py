"""The metrics of results always cover the existing ones, whatever happens to watches."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest

from plimsoll.kube.port import TransientError
from plimsoll.operator import watches
from plimsoll.operator.gather import RESULT, RESULTS_PAGE_SIZE
from plimsoll.operator.watches import KnownResults
from support.fake_kube import FakeKube, failing
from support.goldens import RESULTS


def result(number: int, namespace: str = "bench", **more: Any) -> dict[str, Any]:
    """Return a result of a real run, under another name."""
    obj = deepcopy(RESULTS[number % len(RESULTS)])
    obj["metadata"] = {"name": f"r-{number:03}", "namespace": namespace}
    obj["spec"]["point"] = f"w-{number:03}"
    return obj | more


class Followed:
    """Results, and who keeps up with them."""

    def __init__(self, *namespaces: str) -> None:
        self.kube = FakeKube(namespaces=["bench", "other", "third"])
        self.known = KnownResults(namespaces)

    @property
    def points(self) -> list[str]:
        return sorted(result.labels[-1] if result else "unreadable" for result in self.known.metrics())

    async def until(self, *points: str) -> None:
        async with asyncio.timeout(60):
            while self.points != [*points]:
                await asyncio.sleep(0.001)


@pytest.fixture
async def followed(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[[], Followed]]:
    """Return what begins to follow results, until the test ends."""
    monkeypatch.setattr(watches, "_PAUSE_AFTER_ERROR_SECONDS", 0.01)
    tasks = []

    def begin(followed: Followed | None = None) -> Followed:
        followed = followed or Followed()
        tasks.append(asyncio.create_task(followed.known.follow(followed.kube, pause=0.01)))
        return followed

    yield begin
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


Begin = Callable[..., Followed]


async def test_a_result_is_known_as_long_as_it_is_there(followed: Begin) -> None:
    one = followed()
    one.kube.put(result(0))
    await one.until("w-000")
    one.kube.put(result(1, "other"))
    await one.until("w-000", "w-001")
    await one.kube.delete(RESULT, "r-000", "bench")
    await one.until("w-001")


async def test_results_are_read_when_the_queue_of_runs_is_filled() -> None:
    """When the operator starts, a run that waits for its admission would otherwise wait until all results are read."""
    one, filled = Followed(), asyncio.Event()
    one.kube.put(result(0))

    async def runs_known() -> None:
        await filled.wait()

    following = asyncio.create_task(one.known.follow(one.kube, runs_known=runs_known, pause=0.01))
    await asyncio.sleep(0.1)
    assert not one.kube.requests
    filled.set()
    await one.until("w-000")
    following.cancel()
    with suppress(asyncio.CancelledError):
        await following


async def test_results_of_some_namespaces_are_known_where_others_may_not_be_listed(followed: Begin) -> None:
    one = followed(Followed("bench", "other"))
    one.kube.put(result(0, "third"))
    one.kube.put(result(1, "other"))
    await one.until("w-001")
    one.kube.put(result(2))
    await one.until("w-001", "w-002")


async def test_of_a_result_without_a_verdict_nothing_is_known(followed: Begin) -> None:
    one = followed()
    one.kube.put(result(0, status={}))
    one.kube.put(result(1))
    await one.until("w-001")
    await one.kube.patch_status(RESULT, "r-000", "bench", RESULTS[0]["status"])
    await one.until("w-000", "w-001")
    await one.kube.patch_status(RESULT, "r-000", "bench", {"verdict": None})
    await one.until("w-001")


async def test_a_result_that_cannot_be_read_is_logged_and_counted(
    followed: Begin, caplog: pytest.LogCaptureFixture
) -> None:
    one = followed()
    one.kube.put(result(0, status={"verdict": "Excellent"}))
    await one.until("unreadable")
    assert "bench/r-000" in caplog.text
    assert "status.verdict: Input should be 'Valid', 'Suspect' or 'Invalid'" in caplog.text


async def test_many_are_read_in_pages_and_changes_one_by_one(followed: Begin) -> None:
    one = Followed()
    many = 4 * RESULTS_PAGE_SIZE
    for number in range(many):
        one.kube.put(result(number))
    followed(one)
    await one.until(*(f"w-{number:03}" for number in range(many)))
    assert not any(request.startswith("get") for request in one.kube.requests)
    one.kube.requests.clear()
    await one.kube.patch_status(RESULT, "r-001", "bench", {"verdict": None})
    await one.until(*(f"w-{number:03}" for number in range(many) if number != 1))
    assert [request for request in one.kube.requests if "patch" not in request] == ["get BenchmarkResult bench/r-001"]


async def test_what_was_missed_while_the_api_did_not_answer_is_found(followed: Begin) -> None:
    one = Followed()
    one.kube.put(result(0))
    one.kube.put(result(1))
    one.kube.interfere = failing(lambda asked: TransientError(asked, "away"), times=5)
    followed(one)
    await one.until("w-000", "w-001")
    refused: list[str] = []

    def interfere(asked: str) -> None:
        if len(refused) < 3 and asked.startswith(("get", "list")):
            refused.append(asked)
            raise TransientError(asked, "away")

    one.kube.interfere = interfere
    one.kube.put(result(2))
    await one.kube.delete(RESULT, "r-000", "bench")
    await one.until("w-001", "w-002")
    assert len(refused) == 3
