"""A second kind that the reconciler drives as it drives runs: a shelf, which is to hold so many books (ConfigMaps)."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from plimsoll.api.reasons.reason import Reason, Severity
from plimsoll.kube.errors import ForbiddenError
from plimsoll.kube.port import Kind, Object
from plimsoll.lifecycle.decision import Action, Create, Decision, Delete, Event, Fact, Refusal, Removal
from plimsoll.metrics.exposition import Instruments
from plimsoll.operator.execute import execute
from plimsoll.operator.loop import Record, Records, RemovalSteps, RemovingReconciler
from support.fake_kube import FakeKube, Traits, failing
from support.pretend_operator import Stopper

SHELF = Kind(api_version="example.com/v1", kind="Shelf")
BOOK = Kind(api_version="v1", kind="ConfigMap")
LOG = logging.getLogger("test")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """A shelf as decisions read it."""

    name: str
    namespace: str
    uid: str
    books: int
    status: Mapping[str, Any]


@dataclass(slots=True)
class Memory:
    """What is remembered of a shelf in particular."""

    looks: int = 0


class ShelfSteps(RemovalSteps[Shelf, Sequence[Object], Memory]):
    """The steps of a shelf."""

    kind = SHELF

    def __init__(self, kube: FakeKube) -> None:
        self.kube = kube
        self.records = Records(Memory)
        self.observed: list[str] = []
        self.pause_seconds: float | None = 0.001

    def read(self, body: Mapping[str, Any]) -> Shelf:
        metadata = body["metadata"]
        return Shelf(
            name=metadata["name"],
            namespace=metadata["namespace"],
            uid=metadata["uid"],
            books=body["spec"]["books"],
            status=body.get("status", {}),
        )

    async def observe(self, subject: Shelf, record: Record[Memory]) -> Sequence[Object]:
        record.memory.looks += 1
        return await self._books(subject, "begin look", "end look")

    def decide(self, subject: Shelf, seen: Sequence[Object], record: Record[Memory]) -> Decision:
        there = {obj["metadata"]["name"]: obj for obj in seen}
        wanted = [f"{subject.name}-{number}" for number in range(subject.books)]
        creations = [Create(obj=book(subject, name)) for name in wanted if name not in there]
        deletions = [deletion(obj) for name, obj in there.items() if name not in wanted]
        status = {"books": len(seen), "problem": record.refusal.reason if record.refusal else ""}
        full = not creations and not deletions
        events = [Event(kind=Severity.NORMAL, reason="Full", message="it is full")] if full and seen else []
        return Decision(
            actions=(*deletions, *creations),
            status=status,
            events=tuple(events),
            requeue_seconds=None if full else self.pause_seconds,
        )

    async def act(self, subject: Shelf, actions: Sequence[Action], record: Record[Memory]) -> None:
        await execute(actions, self.kube, make_secret=lambda _: {})

    def decide_unseen(self, subject: Shelf, refusal: Refusal) -> Decision | None:
        return Decision(status={**subject.status, "problem": f"unseen: {refusal.reason}"})

    async def observe_removal(self, subject: Shelf, record: Record[Memory]) -> Sequence[Object]:
        return await self._books(subject, "begin removal", "end removal")

    def decide_removal(self, subject: Shelf, seen: Sequence[Object], record: Record[Memory]) -> Removal:
        return Removal(
            actions=tuple(map(deletion, seen)),
            status={"books": len(seen)},
            cleaned_up=Fact(holds=not seen, reason=Reason.REMOVED, message=f"books left: {len(seen)}"),
        )

    def status_of_unseen_removal(self, subject: Shelf, refusal: Refusal) -> Mapping[str, Any]:
        return {"problem": f"unseen at the end: {refusal.reason}"}

    async def _books(self, shelf: Shelf, begin: str, end: str) -> Sequence[Object]:
        self.observed.append(begin)
        for _ in range(5):
            await asyncio.sleep(0)
        found = await self.kube.list(BOOK, namespace=shelf.namespace, labels={"shelf": shelf.uid})
        self.observed.append(end)
        return found


def book(shelf: Shelf, name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": shelf.namespace, "labels": {"shelf": shelf.uid}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def deletion(obj: Object) -> Delete:
    metadata = obj["metadata"]
    return Delete(
        api_version="v1",
        kind="ConfigMap",
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
    )


class Library:
    """Shelves, and what drives them."""

    def __init__(self) -> None:
        self.kube = FakeKube()
        self.kube.kinds[SHELF] = Traits()
        self.posted: list[str] = []
        self.steps = ShelfSteps(self.kube)
        self.reconciler = RemovingReconciler(
            steps=self.steps,
            kube=self.kube,
            instruments=Instruments(),
            post=lambda body, event: self.posted.append(f"{body['metadata']['name']} {event.reason}"),
            retry_seconds=0.001,
            rest_seconds=0.0,
            removal_look_seconds=0.001,
            removal_seconds=0.02,
        )
        self.stopped = Stopper()

    def shelf(self, name: str, books: int) -> dict[str, Any]:
        """Create a shelf, and return it as a watch shows it, which never shows what the operator writes."""
        document = {"apiVersion": "example.com/v1", "kind": "Shelf", "spec": {"books": books}}
        return self.kube.put({**document, "metadata": {"name": name, "namespace": "default"}})

    def drive(self, body: dict[str, Any]) -> asyncio.Task[None]:
        return asyncio.create_task(self.reconciler.drive(body, self.stopped, LOG))

    def status(self, name: str) -> dict[str, Any]:
        return next(obj.get("status", {}) for obj in self.kube.objects("Shelf") if obj["metadata"]["name"] == name)

    def books(self) -> list[str]:
        return sorted(obj["metadata"]["name"] for obj in self.kube.objects("ConfigMap"))

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not holds():
                await asyncio.sleep(0.001)

    async def stop(self, *tasks: asyncio.Task[None]) -> None:
        self.stopped.stop()
        await asyncio.gather(*tasks)


@pytest.fixture
async def library() -> Library:
    return Library()


async def test_it_reaches_its_goal_says_so_once_and_rests(library: Library) -> None:
    shelf = library.shelf("a", 3)
    task = library.drive(shelf)
    await library.until(lambda: library.posted == ["a Full"])
    assert library.books() == ["a-0", "a-1", "a-2"]
    assert library.status("a") == {"books": 3, "problem": ""}
    record = library.reconciler.records[shelf["metadata"]["uid"]]
    looks = record.memory.looks
    await asyncio.sleep(0.02)
    assert record.memory.looks == looks
    assert library.kube.requests.count("patch status of Shelf default/a") == 2
    await library.stop(task)
    assert not library.reconciler.records


async def test_a_change_wakes_it(library: Library) -> None:
    shelf = library.shelf("a", 3)
    task = library.drive(shelf)
    await library.until(lambda: library.posted == ["a Full"])
    shelf["spec"]["books"] = 1
    library.reconciler.records.wake(shelf["metadata"]["uid"])
    await library.until(lambda: library.status("a") == {"books": 1, "problem": ""})
    assert library.books() == ["a-0"]
    await library.stop(task)


async def test_events_that_follow_a_look_without_actions_are_served_by_one(library: Library) -> None:
    shelf = library.shelf("a", 3)
    task = library.drive(shelf)
    await library.until(lambda: library.posted == ["a Full"])
    record = library.reconciler.records[shelf["metadata"]["uid"]]
    library.reconciler.rest_seconds = 0.2
    loop, looks = asyncio.get_running_loop(), record.memory.looks
    began = loop.time()
    record.wakeup.set()
    await library.until(lambda: record.memory.looks == looks + 1)
    while record.memory.looks == looks + 1:
        record.wakeup.set()
        await asyncio.sleep(0.001)
    assert loop.time() - began > 0.19
    await library.stop(task)


async def test_a_look_that_acted_is_followed_at_once(library: Library) -> None:
    shelf = library.shelf("a", 3)
    library.reconciler.rest_seconds = 60.0
    task = library.drive(shelf)
    await library.until(lambda: library.posted == ["a Full"])
    assert library.books() == ["a-0", "a-1", "a-2"]
    await library.stop(task)


async def test_a_look_that_acted_and_changed_the_status_is_verified_without_an_event(library: Library) -> None:
    library.reconciler.verify_seconds = 0.001
    shelf = library.shelf("a", 1)
    library.steps.pause_seconds = None
    task = library.drive(shelf)
    await library.until(lambda: library.status("a") == {"books": 1, "problem": ""})
    await library.stop(task)


async def test_each_object_has_a_record_of_its_own(library: Library) -> None:
    first, second = library.shelf("a", 1), library.shelf("b", 2)
    tasks = library.drive(first), library.drive(second)
    await library.until(lambda: sorted(library.posted) == ["a Full", "b Full"])
    records = library.reconciler.records
    looks = {uid: record.memory.looks for uid, record in records.items()}
    assert set(looks) == {first["metadata"]["uid"], second["metadata"]["uid"]}
    records.wake(first["metadata"]["uid"])
    records.wake("of another kind")
    await library.until(lambda: records[first["metadata"]["uid"]].memory.looks > looks[first["metadata"]["uid"]])
    assert records[second["metadata"]["uid"]].memory.looks == looks[second["metadata"]["uid"]]
    records.wake_all()
    await library.until(lambda: records[second["metadata"]["uid"]].memory.looks > looks[second["metadata"]["uid"]])
    assert len(records) == 2
    await library.stop(*tasks)


async def test_what_is_refused_is_said_until_it_is_done(library: Library) -> None:
    refused = failing(lambda asked: ForbiddenError(asked, "exceeded quota"), times=10**6, request="create ConfigMap")
    library.kube.interfere = refused
    task = library.drive(library.shelf("a", 2))
    await library.until(lambda: library.status("a") == {"books": 0, "problem": "QuotaExceeded"})
    library.kube.interfere = lambda _: None
    await library.until(lambda: library.status("a") == {"books": 2, "problem": ""})
    assert library.posted[-1] == "a Full"
    await library.stop(task)
    errors = library.reconciler.instruments.registry.get_sample_value(
        "plimsoll_operator_step_errors_total", {"reason": "Forbidden"}
    )
    assert errors is not None
    assert errors >= 1


async def test_what_may_not_be_observed_is_said(library: Library) -> None:
    library.kube.interfere = failing(lambda asked: ForbiddenError(asked, "no"), times=10**6, request="list ConfigMap")
    shelf = library.shelf("a", 2)
    task = library.drive(shelf)
    await library.until(lambda: library.status("a").get("problem") == "unseen: ApiRefused")
    assert library.books() == []
    await library.stop(task)
    assert await library.reconciler.remove(shelf, LOG) == "the API server does not respond"
    assert library.status("a")["problem"] == "unseen at the end: ApiRefused"


async def test_a_removal_waits_for_a_look_and_ends_when_all_is_gone(library: Library) -> None:
    shelf = library.shelf("a", 3)
    task = library.drive(shelf)
    await library.until(lambda: library.posted == ["a Full"])
    observed = library.steps.observed
    observed.clear()
    library.reconciler.records.wake(shelf["metadata"]["uid"])
    while not observed:
        await asyncio.sleep(0)
    removal = asyncio.create_task(library.reconciler.remove(shelf, LOG))
    await library.stop(task)
    assert await removal is None
    assert observed == ["begin look", "end look", *["begin removal", "end removal"] * 2]
    assert library.books() == []
    assert not library.reconciler.records


async def test_a_removal_that_is_not_done_in_time_returns_what_it_waits_for(library: Library) -> None:
    shelf = library.shelf("a", 3)
    task = library.drive(shelf)
    await library.until(lambda: library.posted == ["a Full"])
    await library.stop(task)
    library.kube.interfere = failing(lambda asked: ForbiddenError(asked, "no"), times=10**6, request="delete ConfigMap")
    assert await library.reconciler.remove(shelf, LOG) == "the API server does not respond"
    library.kube.interfere = lambda _: None
    held = library.kube.objects("ConfigMap")[0]
    held["metadata"]["finalizers"] = ["example.com/mine"]
    library.kube.put(held)
    assert await library.reconciler.remove(shelf, LOG) == "books left: 1"
    assert library.books() == [held["metadata"]["name"]]
