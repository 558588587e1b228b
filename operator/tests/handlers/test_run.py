"""The daemon and the deletion handler of a run, called as kopf calls them, against an API in memory."""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from copy import deepcopy
from datetime import timedelta
from typing import Any, cast

import kopf
import pytest

from plimsoll.api.reasons.reason import Reason
from plimsoll.kube import port
from plimsoll.kube.port import ApiError, Followed, ForbiddenError, TransientError
from plimsoll.lifecycle.decision import Fact
from plimsoll.lifecycle.naming import LABEL_RUN_UID
from plimsoll.lifecycle.queue import entry_of
from plimsoll.metrics.exposition import STEP_ERRORS, UNEXPECTED
from plimsoll.operator import runs as steps
from plimsoll.operator import watches
from plimsoll.operator import watches as handlers
from plimsoll.operator.watches import ChildWatch
from support.fake_kube import failing
from support.pretend_cluster import Document, PretendCluster
from support.pretend_conductor import PretendConductors
from support.pretend_rook import ROOK, PretendRook
from support.pretend_world import LIBRBD, Stopper, context_of, make_run

# As functions of any arguments: kopf hands over more than these take.
drive: Any = handlers.drive
remove: Any = handlers.remove
queue_changed: Any = watches.queue_changed
queue: Any = watches.queue

STEPS = ("observe", "decide", "say", "act")


class Daemon:
    """One run, its daemon, and the cluster around it."""

    def __init__(self) -> None:
        self.cluster = PretendCluster()
        self.conductors = PretendConductors(self.cluster)
        self.context = context_of(self.cluster, retry_seconds=0.01, removal_look_seconds=0.01, removal_seconds=0.1)
        self.records = self.context.runs.records
        self.memo: Any = kopf.Memo(context=self.context)
        self.stopped = Stopper()
        self.document: Document = self.cluster.kube.put(make_run("a"))
        self.uid: str = self.document["metadata"]["uid"]

    @property
    def arguments(self) -> dict[str, Any]:
        return {"uid": self.uid, "memo": self.memo, "logger": logging.getLogger("test"), "body": self.body}

    @property
    def body(self) -> Any:
        digests = self.cluster.find("BenchmarkRun", "a") or self.document
        return kopf.Body(cast("Any", digests))

    @property
    def reasons(self) -> dict[str, str]:
        return {c["type"]: c["reason"] for c in self.body.get("status", {}).get("conditions", [])}

    @property
    def succeeded(self) -> str:
        status: Mapping[str, Any] = self.body.get("status", {})
        return next((c["status"] for c in status.get("conditions", []) if c["type"] == "Succeeded"), "")

    def counted(self, name: str, **labels: str) -> float:
        """Return a sample of the operator's instruments; 0 if there is none."""
        registry = self.context.instruments.registry
        return registry.get_sample_value(f"plimsoll_operator_{name}", labels) or 0.0

    @property
    def looks(self) -> float:
        """How often the daemon has looked at the run."""
        return self.counted("step_duration_seconds_count", step="observe")

    def drive(self) -> asyncio.Task[None]:
        return asyncio.create_task(drive(**self.arguments, stopped=self.stopped))

    async def turn(self, times: int) -> None:
        """Let the daemon have its turns, and everybody else."""
        for _ in range(times):
            self.records.wake(self.uid)
            for _ in range(60):
                await asyncio.sleep(0)
            self.cluster.step()
            self.conductors.step()
            self.cluster.now += timedelta(seconds=1)


def pod_of(uid: str) -> Followed:
    """Return what a watch tells of a new pod of a run."""
    labels = {LABEL_RUN_UID: uid}
    metadata = {"name": "p", "uid": f"pod of {uid}", "labels": labels, "creationTimestamp": "2026-01-01T12:00:00Z"}
    return Followed({"apiVersion": "v1", "kind": "Pod", "metadata": metadata}, is_gone=False)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Remove all pauses, and return the posted events."""
    posted: list[str] = []
    monkeypatch.setattr(port, "_FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(kopf, "event", lambda _, **event: posted.append(event["reason"]))
    return posted


@pytest.fixture
async def daemon() -> Daemon:
    return Daemon()


async def test_the_daemon_brings_a_run_to_its_end_and_tells_of_every_transition_once(
    daemon: Daemon, quick: list[str]
) -> None:
    task = daemon.drive()
    await daemon.turn(80)
    assert daemon.succeeded == "True"
    daemon.stopped.stop()
    await task
    assert quick.count("Succeeded") == 1
    assert len(quick) == len(set(quick))


async def test_looks_at_a_run_and_its_end_are_counted(daemon: Daemon) -> None:
    task = daemon.drive()
    await daemon.turn(80)
    looks = {step: daemon.counted("step_duration_seconds_count", step=step) for step in STEPS}
    assert looks["observe"] == looks["decide"] == looks["act"] == looks["say"] > 1
    assert daemon.counted("runs_ended_total", reason=daemon.reasons["Succeeded"]) == 1
    assert daemon.counted("step_duration_seconds_count", step="remove") == 0
    await daemon.turn(5)
    assert daemon.counted("runs_ended_total", reason=daemon.reasons["Succeeded"]) == 1
    daemon.stopped.stop()
    await task


async def test_a_run_that_had_ended_before_this_operator_began_is_not_counted(daemon: Daemon) -> None:
    task = daemon.drive()
    await daemon.turn(80)
    daemon.stopped.stop()
    await task
    before = daemon.counted("runs_ended_total", reason=daemon.reasons["Succeeded"])
    daemon.stopped = Stopper()
    task = daemon.drive()
    await daemon.turn(5)
    assert daemon.counted("runs_ended_total", reason=daemon.reasons["Succeeded"]) == before == 1
    daemon.stopped.stop()
    await task


async def test_looks_that_fail_are_counted_by_reason(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    daemon.cluster.kube.interfere = failing(lambda asked: ForbiddenError(asked, "no"), times=1, request="create Job")
    task = daemon.drive()
    for _ in range(10):
        await asyncio.sleep(0.02)
        await daemon.turn(1)
    assert daemon.counted("step_errors_total", reason="Forbidden") == 1
    monkeypatch.setattr(steps, "step", lambda *_: 1 / 0)
    daemon.records.wake(daemon.uid)
    with pytest.raises(ZeroDivisionError):
        await task
    assert daemon.counted("step_errors_total", reason="Unexpected") == 1


def test_every_error_of_the_api_has_a_series_from_the_start() -> None:
    public = {error for error in _descendants(ApiError) if not error.__name__.startswith("_")}
    assert {error.__name__.removesuffix("Error") for error in public} == {*STEP_ERRORS} - {UNEXPECTED}


def _descendants(error: type[ApiError]) -> set[type[ApiError]]:
    """Return the error and all that are special cases of it."""
    return {error}.union(*map(_descendants, error.__subclasses__()))


async def test_the_daemon_stays_after_the_end_for_what_may_be_changed_later(daemon: Daemon) -> None:
    """kopf never starts a daemon again that returned by itself."""
    task = daemon.drive()
    await daemon.turn(80)
    assert daemon.succeeded == "True"
    assert not task.done()
    daemon.stopped.stop()
    await task


async def test_nothing_is_remembered_of_a_run_that_needs_no_attention(daemon: Daemon) -> None:
    task = daemon.drive()
    await daemon.turn(5)
    assert daemon.records[daemon.uid].status
    daemon.stopped.stop()
    await task
    for uid in (daemon.uid, "of somebody else"):
        ChildWatch(daemon.records).notice(pod_of(uid))
    assert not daemon.records


async def test_a_status_that_does_not_change_is_not_written_again(daemon: Daemon) -> None:
    daemon.cluster.faults.no_volumes = True
    task = daemon.drive()
    await daemon.turn(10)
    requests = daemon.cluster.kube.requests
    before = len([request for request in requests if request.startswith("patch status")])
    daemon.records.wake(daemon.uid)
    await asyncio.sleep(0.05)
    assert len([request for request in requests if request.startswith("patch status")]) == before
    daemon.stopped.stop()
    await task


async def test_the_daemon_goes_on_when_the_api_refuses_or_is_away(daemon: Daemon) -> None:
    interfere = failing(lambda asked: ForbiddenError(asked, "exceeded quota"), times=3, request="create Job")
    daemon.cluster.kube.interfere = interfere
    task = daemon.drive()
    for _ in range(10):
        await asyncio.sleep(0.02)
        await daemon.turn(1)
    assert daemon.cluster.kube.objects("Job")
    daemon.stopped.stop()
    await task


async def test_what_the_api_refuses_is_said_and_told_until_it_is_done(daemon: Daemon, quick: list[str]) -> None:
    interfere = failing(lambda asked: ForbiddenError(asked, "exceeded quota: few"), times=10**6, request="create Job")
    daemon.cluster.kube.interfere = interfere
    task = daemon.drive()
    for _ in range(6):
        await asyncio.sleep(0.02)
        await daemon.turn(1)
    assert daemon.reasons["Reconciling"] == "QuotaExceeded"
    assert quick.count("QuotaExceeded") == 1
    daemon.cluster.kube.interfere = lambda _: None
    for _ in range(6):
        await asyncio.sleep(0.02)
        await daemon.turn(1)
    assert daemon.reasons["Reconciling"] != "QuotaExceeded"
    assert daemon.records[daemon.uid].refusal is None
    daemon.stopped.stop()
    await task


async def test_events_after_a_look_without_actions_lead_to_one_look(daemon: Daemon) -> None:
    daemon.cluster.faults.no_volumes = True
    task = daemon.drive()
    await daemon.turn(10)
    daemon.context.runs.rest_seconds = 0.2
    loop, looks = asyncio.get_running_loop(), daemon.looks
    began = loop.time()
    while daemon.looks < looks + 2:
        daemon.records.wake(daemon.uid)
        await asyncio.sleep(0.001)
    assert loop.time() - began > 0.19
    daemon.stopped.stop()
    await task


async def test_a_look_that_acted_is_followed_at_once(daemon: Daemon) -> None:
    daemon.context.runs.rest_seconds = 60.0
    task = daemon.drive()
    await daemon.turn(6)
    assert daemon.cluster.kube.objects("Pod")
    daemon.stopped.stop()
    await task


async def test_a_look_that_acted_and_changed_the_status_is_verified_without_an_event(daemon: Daemon) -> None:
    daemon.context.runs.verify_seconds = 0.001
    task = daemon.drive()
    while not daemon.cluster.kube.objects("Job"):
        await asyncio.sleep(0.001)
        daemon.cluster.step()
    daemon.stopped.stop()
    await task


async def test_changes_wake_the_daemon(daemon: Daemon) -> None:
    wake = daemon.records[daemon.uid].wakeup
    ChildWatch(daemon.records).notice(pod_of(daemon.uid))
    assert wake.is_set()
    wake.clear()
    await queue_changed(body=daemon.body, uid=daemon.uid, type="MODIFIED", memo=daemon.memo)
    assert wake.is_set()


async def test_the_queue_knows_a_run_by_its_uid(daemon: Daemon) -> None:
    (found,) = (await queue(body=daemon.body, uid=daemon.uid)).items()
    assert found[0] == daemon.uid
    assert found[1].targets == frozenset({"storageClass/fast"})


# -- deletion


@pytest.fixture
async def made(daemon: Daemon) -> Daemon:
    """Return a run whose clients run, that is being deleted."""
    task = daemon.drive()
    await daemon.turn(6)
    assert daemon.cluster.kube.objects("Pod")
    daemon.stopped.stop()
    await task
    return daemon


@pytest.fixture
def working() -> Iterator[list[asyncio.Task[None]]]:
    tasks: list[asyncio.Task[None]] = []
    yield tasks
    for task in tasks:
        task.cancel()


def work(daemon: Daemon, working: list[asyncio.Task[None]]) -> None:
    """Let the cluster work in the background, and the removal take its time."""
    daemon.context.runs.removal_seconds = 30.0

    async def forever() -> None:
        while True:
            daemon.cluster.step()
            daemon.conductors.step()
            await asyncio.sleep(0.001)

    working.append(asyncio.create_task(forever()))


async def test_a_deletion_returns_when_all_is_gone_that_costs_anything(
    made: Daemon, working: list[asyncio.Task[None]]
) -> None:
    work(made, working)
    await remove(**made.arguments)
    assert made.counted("step_duration_seconds_count", step="remove") > 1
    left = {
        obj["kind"] for obj in made.cluster.kube.objects() if made.uid in obj["metadata"].get("labels", {}).values()
    }
    assert left == {"BenchmarkResult", "ConfigMap", "Secret"}
    assert not made.records


async def test_a_deletion_waits_for_the_look_under_way(made: Daemon, working: list[asyncio.Task[None]]) -> None:
    requests = list(made.cluster.kube.requests)
    made.context.runs.removal_seconds = 30.0  # from its start on, which is before the cluster works
    async with made.records[made.uid].lock:
        deletion = asyncio.create_task(remove(**made.arguments))
        await asyncio.sleep(0.02)
        assert made.cluster.kube.requests == requests
    work(made, working)
    await deletion
    assert made.cluster.kube.requests != requests


async def test_a_deletion_that_is_not_done_in_time_says_what_it_waits_for_and_goes_on(made: Daemon) -> None:
    with pytest.raises(kopf.TemporaryError, match="are stopping"):
        await remove(**made.arguments)
    assert made.reasons["CleanedUp"] == "InProgress"
    assert made.records[made.uid].digests is None
    statuses = [request for request in made.cluster.kube.requests if request.startswith("patch status")]
    with pytest.raises(kopf.TemporaryError, match="are stopping"):
        await remove(**made.arguments)
    again = [request for request in made.cluster.kube.requests if request.startswith("patch status")]
    assert again == statuses, "said once, whoever deletes"


async def test_a_run_that_goes_while_its_removal_is_told_is_no_failure(made: Daemon) -> None:
    arguments = made.arguments
    made.cluster.delete(made.cluster.find("BenchmarkRun", "a") or {})
    made.cluster.step()
    with pytest.raises(kopf.TemporaryError, match="are stopping"):
        await remove(**arguments)


class RookDaemon(Daemon):
    """A run with its own pool in a Rook cluster, of which the watch has shown nothing since its creation."""

    def __init__(self) -> None:
        super().__init__()
        self.rook = PretendRook(self.cluster)
        self.rook.install()
        self.cluster.delete(self.document)
        self.cluster.step()
        storage = {"rook": ROOK, "volume": LIBRBD}
        self.document = self.cluster.kube.put(make_run("r", storage=storage))
        self.uid = self.document["metadata"]["uid"]
        self.shown: Any = deepcopy(dict(self.document))

    @property
    def body(self) -> Any:
        """Live, like the body that kopf hands to a daemon."""
        return kopf.Body(self.shown)

    async def turn(self, times: int) -> None:
        for _ in range(times):
            await super().turn(1)
            self.rook.step()

    async def has_pool(self) -> None:
        """Let the daemon work until Rook has created the run's pool, and end it as kopf does for a deletion."""
        task = self.drive()
        while not self.rook_objects():
            await self.turn(1)
        self.shown["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:30Z"
        self.stopped.stop()
        await task

    def rook_objects(self) -> list[Document]:
        return list(self.cluster.of_run("CephBlockPool", self.uid))


@pytest.mark.parametrize("remembers", [True, False])
async def test_a_deletion_removes_a_pool_that_the_watch_does_not_account_for_yet(
    working: list[asyncio.Task[None]], *, remembers: bool
) -> None:
    rook = RookDaemon()
    await rook.has_pool()
    if not remembers:
        rook.records.clear()

    async def forever() -> None:
        while True:
            rook.cluster.step()
            rook.rook.step()
            rook.conductors.step()
            rook.cluster.now += timedelta(seconds=1)
            await asyncio.sleep(0.001)

    working.append(asyncio.create_task(forever()))
    rook.context.runs.removal_seconds = 30.0
    await remove(**rook.arguments)
    assert not rook.rook_objects()
    assert not rook.records


async def test_a_deleted_run_occupies_its_target_until_its_removal_ends() -> None:
    rook = RookDaemon()
    await rook.has_pool()
    rook.context.runs.queue = lambda: [entry_of(rook.body)]
    assert [entry.admitted for entry in rook.context.runs._entries()] == [True]


@pytest.mark.parametrize("kind", ["benchmarkruns", "benchmarksuites"])
async def test_a_record_is_dropped_once_its_object_is_gone_and_nothing_uses_it(daemon: Daemon, kind: str) -> None:
    changed: Any = watches.queue_changed if kind == "benchmarkruns" else watches.suite_changed
    records = daemon.context.runs.records if kind == "benchmarkruns" else daemon.context.suites.records
    async with records[daemon.uid].lock:
        await changed(body=daemon.body, uid=daemon.uid, type="DELETED", memo=daemon.memo)
        assert daemon.uid in records
    await changed(body=daemon.body, uid=daemon.uid, type="DELETED", memo=daemon.memo)
    assert daemon.uid not in records


async def test_a_removal_ends_after_its_time_however_slow_the_api_is(
    made: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    async def slow(_body: object) -> Fact:
        nonlocal looks
        looks += 1
        await asyncio.sleep(0.06)
        return Fact.false(Reason.IN_PROGRESS, "waiting")

    monkeypatch.setattr(type(made.context.runs), "look_at_removal", lambda _, body: slow(body))
    with pytest.raises(kopf.TemporaryError, match="waiting"):
        await remove(**made.arguments)
    assert looks <= 2, "removal_seconds are 0.1"


async def test_a_deletion_survives_an_api_that_never_answers(made: Daemon) -> None:
    def interfere(asked: str) -> None:
        raise TransientError(asked, "status 503")

    made.cluster.kube.interfere = interfere
    with pytest.raises(kopf.TemporaryError, match="the API server does not respond"):
        await remove(**made.arguments)
    assert made.counted("step_errors_total", reason="Transient") > 1


async def test_a_deletion_that_fails_for_no_fault_of_the_api_is_counted(
    made: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "step_deletion", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        await remove(**made.arguments)
    assert made.counted("step_errors_total", reason=UNEXPECTED) == 1


async def test_a_deletion_goes_on_after_refusals(made: Daemon, working: list[asyncio.Task[None]]) -> None:
    made.cluster.kube.interfere = failing(lambda asked: ForbiddenError(asked, "no"), times=3, request="list")
    work(made, working)
    await remove(**made.arguments)
    assert not made.cluster.kube.objects("Job")


async def test_a_deletion_does_not_need_the_results_whose_kind_is_gone(
    made: Daemon, working: list[asyncio.Task[None]]
) -> None:
    kinds = made.cluster.kube.kinds
    kinds.pop(next(kind for kind in kinds if kind.kind == "BenchmarkResult"))
    work(made, working)
    await remove(**made.arguments)
    assert not made.cluster.kube.objects("Job")


async def test_a_deletion_that_may_not_look_says_so(made: Daemon) -> None:
    def interfere(asked: str) -> None:
        if asked.startswith("list Job"):
            raise ForbiddenError(asked, "jobs are none of your business")

    made.cluster.kube.interfere = interfere
    with pytest.raises(kopf.TemporaryError):
        await remove(**made.arguments)
    assert made.reasons["CleanedUp"] == "ApiRefused"


async def test_a_deleted_run_that_another_finalizer_keeps_says_that_it_is_cleaned_up(
    made: Daemon, working: list[asyncio.Task[None]]
) -> None:
    run = made.cluster.find("BenchmarkRun", "a") or {}
    made.cluster.edit(run, lambda new: new["metadata"].update(finalizers=["example.com/mine"]))
    made.cluster.delete(run)
    work(made, working)
    await remove(**made.arguments)
    assert made.reasons["CleanedUp"] == "Removed"
    assert entry_of(made.cluster.find("BenchmarkRun", "a") or {}).over
