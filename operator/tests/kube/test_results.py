"""A look at a run reads the statuses of those results only that have changed since the last one."""

from copy import deepcopy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.kube.port import Kube
from plimsoll.kube.results import PAGE_SIZE, RESULT, Digests
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.measured import ResultFact, result_fact
from support.fake_kube import FakeKube
from support.scrapes import RESULTS

MANY = 5 * PAGE_SIZE
LABELS = {naming.LABEL_RUN: "r"}


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


async def look(kube: FakeKube, digests: Digests[ResultFact]) -> list[str]:
    """Read the digests, check that they are of what is there, and return what was asked for that."""
    kube.requests.clear()
    found = await digests.look(kube, namespace="default", labels=LABELS)
    asked = list(kube.requests)
    there = [result_fact(obj) for obj in kube.objects("BenchmarkResult")]
    assert sorted(found, key=str) == sorted(there, key=str)
    return asked


async def test_results_that_have_not_changed_are_not_read_again() -> None:
    kube, digests = kube_with(MANY), Digests(result_fact)
    await look(kube, digests)
    assert await look(kube, digests) == ["list BenchmarkResult default"]


async def test_of_those_that_have_changed_each_is_read_by_itself() -> None:
    kube, digests = kube_with(MANY), Digests(result_fact)
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
    kube, digests = kube_with(1), Digests(result_fact)
    await look(kube, digests)
    await kube.delete(RESULT, "r-w-000", "default")
    kube.put(result(0) | {"status": {}})
    assert len(await look(kube, digests)) == 2


async def test_one_that_goes_between_list_and_reading_is_not_there() -> None:
    kube, digests = kube_with(2), Digests(result_fact)

    def interfere(request: str) -> None:
        if request == "get BenchmarkResult default/r-w-001":
            kube._objects.pop(kube._key(RESULT, "default", "r-w-001"), None)

    kube.interfere = interfere
    assert [fact.name for fact in await digests.look(kube, namespace="default", labels=LABELS)] == ["r-w-000"]


_change = st.tuples(st.integers(0, MANY - 1), st.sampled_from(["", "Valid", "Suspect", "Unheard"]))


@settings(max_examples=15)
@given(rounds=st.lists(st.lists(_change, max_size=2 * PAGE_SIZE), max_size=6))
async def test_what_is_known_is_what_is_there_whatever_changes(rounds: list[list[tuple[int, str]]]) -> None:
    kube, digests = kube_with(MANY), Digests(result_fact)
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
    digests = Digests(result_fact)
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
