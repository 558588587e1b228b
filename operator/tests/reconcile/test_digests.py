"""A look at a run reads only those of many objects that have changed since the last one."""

from copy import deepcopy
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.kube.port import Kube, TransientError
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import ResultFact, result_fact
from plimsoll.operator.gather import FEW, RESULT, RESULTS_PAGE_SIZE, Digests
from support.fake_kube import FakeKube, failing
from support.goldens import RESULTS

MANY = 5 * RESULTS_PAGE_SIZE
LABELS = {naming.LABEL_RUN: "r"}
fact_of = partial(result_fact, "u")


def result(number: int, namespace: str = "default", **metadata: Any) -> dict[str, Any]:
    """Return a result of a real run, under another name."""
    obj = deepcopy(RESULTS[number % len(RESULTS)])
    labels = {**LABELS, **metadata.pop("labels", {})}
    obj["metadata"] = {"name": f"r-w-{number:03}", "namespace": namespace, "labels": labels, **metadata}
    obj["spec"] |= {"run": "r", "runUid": "u", "point": f"w-{number:03}"}
    return obj


def kube_with(count: int) -> FakeKube:
    kube = FakeKube()
    for number in range(count):
        kube.put(result(number))
    return kube


def new_digests() -> Digests[ResultFact]:
    return Digests(RESULT, fact_of, page_size=RESULTS_PAGE_SIZE)


async def look(kube: FakeKube, digests: Digests[ResultFact]) -> list[str]:
    """Read the digests, check that they are of what is there, and return what was asked for that."""
    kube.requests.clear()
    found = await digests.look(kube, namespace="default", labels=LABELS)
    asked = list(kube.requests)
    there = [fact_of(obj) for obj in kube.objects("BenchmarkResult")]
    assert sorted(found, key=str) == sorted(there, key=str)
    return asked


async def after_a_failed_look() -> tuple[FakeKube, Digests[ResultFact]]:
    """Return digests that could not read the one object that had changed."""
    kube, digests = kube_with(MANY), new_digests()
    await look(kube, digests)
    await kube.patch_status(RESULT, "r-w-003", "default", {"verdict": "Invalid"})
    kube.interfere = failing(lambda asked: TransientError(asked, "no answer"), times=1, request="get ")
    with pytest.raises(TransientError):
        await digests.look(kube, namespace="default", labels=LABELS)
    return kube, digests


async def test_results_that_have_not_changed_are_not_read_again() -> None:
    kube, digests = kube_with(MANY), new_digests()
    await look(kube, digests)
    assert await look(kube, digests) == ["list BenchmarkResult default"]


async def test_as_long_as_there_are_few_all_are_read_at_once() -> None:
    kube, digests = kube_with(3), Digests(RESULT, fact_of, page_size=RESULTS_PAGE_SIZE, worthwhile=4)
    await look(kube, digests)
    for verdict in ("Valid", "Suspect"):
        await kube.patch_status(RESULT, "r-w-001", "default", {"verdict": verdict})
        assert await look(kube, digests) == ["list BenchmarkResult default"]
    kube.put(result(3))
    assert await look(kube, digests) == ["list BenchmarkResult default"]
    await kube.patch_status(RESULT, "r-w-001", "default", {"verdict": "Valid"})
    assert await look(kube, digests) == ["list BenchmarkResult default", "get BenchmarkResult default/r-w-001"]


async def test_if_many_have_changed_all_are_read_in_pages() -> None:
    kube, digests = kube_with(MANY), new_digests()
    await look(kube, digests)
    for number in range(FEW + 1):
        await kube.patch_status(RESULT, f"r-w-{number:03}", "default", {"verdict": "Invalid"})
    assert await look(kube, digests) == ["list BenchmarkResult default"] * 2


async def test_digests_have_the_order_of_the_list() -> None:
    kube, digests = kube_with(MANY), new_digests()
    for number in (9, 3):
        await look(kube, digests)
        await kube.patch_status(RESULT, f"r-w-{number:03}", "default", {"final": False})
    found = await digests.look(kube, namespace="default", labels=LABELS)
    assert [fact.name for fact in found] == [obj["metadata"]["name"] for obj in kube.objects("BenchmarkResult")]


async def test_what_could_not_be_read_is_read_by_the_next_look() -> None:
    kube, digests = await after_a_failed_look()
    asked = await look(kube, digests)
    assert asked == ["list BenchmarkResult default", "get BenchmarkResult default/r-w-003"]


async def test_what_vanishes_while_something_cannot_be_read_is_not_known() -> None:
    kube, digests = await after_a_failed_look()
    for name in ("r-w-003", "r-w-004"):
        await kube.delete(RESULT, name, "default")
    assert await look(kube, digests) == ["list BenchmarkResult default"]


async def test_what_was_forgotten_is_read_again() -> None:
    kube, digests = kube_with(FEW), new_digests()
    await look(kube, digests)
    digests.forget()
    assert len(await look(kube, digests)) == 1 + FEW


@pytest.mark.parametrize(("labels", "there"), [(LABELS, True), ({}, False)])
async def test_one_that_is_replaced_between_list_and_reading_is_there_if_it_has_the_labels(
    labels: dict[str, str], *, there: bool
) -> None:
    kube, digests = kube_with(2), new_digests()
    await look(kube, digests)
    await kube.patch_status(RESULT, "r-w-001", "default", {"verdict": "Invalid"})

    def interfere(request: str) -> None:
        if request == "get BenchmarkResult default/r-w-001":
            new = result(1)
            new["metadata"]["labels"] = labels
            new["spec"]["runUid"] = "another"
            kube.put(new)

    kube.interfere = interfere
    found = await digests.look(kube, namespace="default", labels=LABELS)
    assert [fact.run_uid for fact in found] == ["u", *(["another"] if there else [])]


async def test_of_those_that_have_changed_each_is_read_by_itself() -> None:
    kube, digests = kube_with(MANY), new_digests()
    await look(kube, digests)
    for number in (3, 9):
        await kube.patch_status(RESULT, f"r-w-{number:03}", "default", {"verdict": "Invalid", "final": False})
    await kube.delete(RESULT, "r-w-005", "default")
    asked = await look(kube, digests)
    assert asked == [
        "list BenchmarkResult default",
        "get BenchmarkResult default/r-w-003",
        "get BenchmarkResult default/r-w-009",
    ]


async def test_a_result_that_was_made_anew_is_another_one() -> None:
    kube, digests = kube_with(1), new_digests()
    await look(kube, digests)
    await kube.delete(RESULT, "r-w-000", "default")
    kube.put(result(0) | {"status": {}})
    assert len(await look(kube, digests)) == 2


async def test_one_that_goes_between_list_and_reading_is_not_there() -> None:
    kube, digests = kube_with(2), new_digests()

    def interfere(request: str) -> None:
        if request == "get BenchmarkResult default/r-w-001":
            kube._objects.pop(kube._key(RESULT, "default", "r-w-001"), None)

    kube.interfere = interfere
    assert [fact.name for fact in await digests.look(kube, namespace="default", labels=LABELS)] == ["r-w-000"]


_change = st.tuples(st.integers(0, MANY - 1), st.sampled_from(["", "Valid", "Suspect", "Unheard"]))


@settings(max_examples=15)
@given(rounds=st.lists(st.lists(_change, max_size=2 * RESULTS_PAGE_SIZE), max_size=6))
async def test_what_is_known_is_what_is_there_whatever_changes(rounds: list[list[tuple[int, str]]]) -> None:
    kube, digests = kube_with(MANY), new_digests()
    for changes in rounds:
        for number, verdict in changes:
            name = f"r-w-{number:03}"
            if await kube.get(RESULT, name, "default") is None:
                kube.put(result(number))
            elif verdict:
                await kube.patch_status(RESULT, name, "default", {"verdict": verdict})
            else:
                await kube.delete(RESULT, name, "default")
        await look(kube, digests)


async def test_of_an_api_only_changed_results_are_read(kube: Kube, namespace: str) -> None:
    digests = new_digests()
    for number in range(MANY):
        await kube.create(result(number, namespace))
        await kube.patch_status(RESULT, f"r-w-{number:03}", namespace, RESULTS[0]["status"])
    before = await digests.look(kube, namespace=namespace, labels=LABELS)
    assert len(before) == MANY
    assert all(fact.measured and fact.measured.final and fact.measured.trials for fact in before)
    await kube.patch_status(RESULT, "r-w-003", namespace, {"final": False})
    after = {fact.name: fact for fact in await digests.look(kube, namespace=namespace, labels=LABELS)}
    changed = [fact for fact in before if after[fact.name] is not fact]
    assert [fact.name for fact in changed] == ["r-w-003"]
    measured = after["r-w-003"].measured
    assert measured is not None
    assert not measured.final
