"""Evaluating rounds in the operator: one at a time, and without keeping more than the next attempt needs."""

import asyncio
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import pytest

from plimsoll.kube.port import ApiError, TransientError
from plimsoll.suite.evaluation import evaluate_round
from support.fake_kube import FakeKube
from support.played_suites import Mortal, PlayedSuite
from support.specs import suite_document

ACCEPTED = {"name": "upgrade", "baseline": {"rounds": "Accepted"}}
LIST = "list BenchmarkResult default"


@pytest.fixture
def kube() -> FakeKube:
    return FakeKube()


@pytest.fixture
def played(kube: FakeKube) -> PlayedSuite:
    return PlayedSuite(kube=kube, operator=Mortal(kube), namespace="default")


def failing_at(number: int) -> Callable[[str], None]:
    """Return an interference that fails one list of results, counted from 1."""
    count = 0

    def interfere(asked: str) -> None:
        nonlocal count
        count += asked == LIST
        if count == number and asked == LIST:
            raise TransientError(asked, "status 503")

    return interfere


def kept(played: PlayedSuite) -> int:
    """Return the number of accepted rounds whose values are in memory."""
    return len(played.reconciler.records[played.document["metadata"]["uid"]].rounds)


async def begin_round(played: PlayedSuite, number: int) -> None:
    await played.annotate("request-round", str(number))
    played.pass_time(minutes=5)


async def measure(played: PlayedSuite) -> None:
    """Have all runs end; the round remains to be evaluated."""
    for _ in range(2):
        await played.settle()
        await played.finish({"small": 1000, "large": 1000})


async def test_values_of_accepted_rounds_are_kept_until_the_round_has_ended(
    played: PlayedSuite, kube: FakeKube
) -> None:
    await played.create(suite_document(comparisons=[ACCEPTED], repeat=1))
    lists, before = [], 0
    for number in range(3):
        await begin_round(played, number)
        await played.measure_round(small=1000, large=1000)
        lists.append(kube.requests.count(LIST) - before)
        before = kube.requests.count(LIST)
        assert kept(played) == 0
    assert lists == [2, 4, 6]


async def test_a_request_that_fails_discards_no_round_that_was_read(played: PlayedSuite, kube: FakeKube) -> None:
    await played.create(suite_document(comparisons=[ACCEPTED], repeat=1))
    for number in range(3):
        await begin_round(played, number)
        await played.measure_round(small=1000, large=1000)
    await begin_round(played, 3)
    await measure(played)
    kube.requests.clear()
    for failed, values in ((4, 1), (5, 3)):
        kube.interfere = failing_at(failed)
        with pytest.raises(ApiError):
            await played.settle()
        assert kept(played) == values
    kube.interfere = lambda _: None
    await played.settle()
    # 3 accepted rounds and the new one with 2 runs each; one run of the second and of the new one is read twice.
    assert kube.requests.count(LIST) == 4 + 5 + 2
    assert (await played.status())["rounds"][0]["verdict"] == "NoRegression"
    assert kept(played) == 0


async def test_one_round_is_evaluated_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = FakeKube(namespaces=("a", "b", "c"))

    def noting(*arguments: Any, **options: Any) -> Any:
        found = evaluate_round(*arguments, **options)
        kube.requests.append("evaluated")
        return found

    monkeypatch.setattr("plimsoll.operator.suites.evaluate_round", noting)
    suites = [PlayedSuite(kube=kube, operator=Mortal(kube), namespace=namespace) for namespace in ("a", "b", "c")]
    for one in suites:
        one.reconciler = suites[0].reconciler
        await one.create(suite_document(repeat=1))
        await measure(one)
    kube.requests.clear()
    await asyncio.gather(*(one.settle() for one in suites))
    assert [one for one, _ in groupby(evaluations(kube))] == [
        "list BenchmarkResult a",
        "evaluated",
        "list BenchmarkResult b",
        "evaluated",
        "list BenchmarkResult c",
        "evaluated",
    ]
    assert {(await one.status())["rounds"][0]["verdict"] for one in suites} == {"NoRegression"}


def evaluations(kube: FakeKube) -> Iterator[str]:
    return (one for one in kube.requests if one.startswith("list BenchmarkResult") or one == "evaluated")


@pytest.mark.parametrize(("rate", "verdict"), [(1000, "Inconclusive"), (500, "Regressed")])
async def test_an_invalid_point_leaves_the_verdict_on_the_others(
    played: PlayedSuite, rate: float, verdict: str
) -> None:
    await played.create(suite_document(comparisons=[ACCEPTED], repeat=1))
    for number in range(4):
        await begin_round(played, number)
        await played.measure_round(small=1000, large=1000)
    played.has_invalid_point = True
    await begin_round(played, 4)
    ended = await played.measure_round(small=1000, large=rate)
    assert (ended["verdict"], ended["complete"]) == (verdict, True)
