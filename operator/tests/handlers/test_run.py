"""The task that looks at a run, from its creation to its removal, against an API in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from copy import deepcopy
from datetime import timedelta
from typing import Any, cast

import kopf
import pytest

from plimsoll.conductor.sink import ReplacedError
from plimsoll.kube import port
from plimsoll.kube.port import ApiError, ConflictError, Followed, ForbiddenError, TransientError
from plimsoll.lifecycle.decision import Fact
from plimsoll.lifecycle.naming import FINALIZER, LABEL_RUN_UID
from plimsoll.lifecycle.queue import entry_of
from plimsoll.metrics.exposition import STEP_ERRORS, UNEXPECTED
from plimsoll.operator import runs as steps
from plimsoll.operator import watches
from plimsoll.operator.runs import RUN, RunMemory
from plimsoll.operator.watches import ChildWatch
from support.fake_kube import failing
from support.pretend_cluster import Document, PretendCluster
from support.pretend_conductor import PretendConductors
from support.pretend_rook import ROOK, PretendRook
from support.pretend_world import LIBRBD, context_of, make_run
from support.specs import SETTINGS

# As functions of any arguments: kopf hands over more than these take.
run_changed: Any = watches.run_changed
queue_changed: Any = watches.queue_changed

STEPS = ("observe", "decide", "say", "act")


class Daemon:
    """One run, its daemon, and the cluster around it."""

    def __init__(self) -> None:
        self.cluster = PretendCluster()
        self.conductors = PretendConductors(self.cluster)
        self.context = context_of(self.cluster, retry_seconds=0.01, removal_look_seconds=0.01)
        self.records = self.context.runs.records
        self.memo: Any = kopf.Memo(context=self.context)
        self.document: Document = self.cluster.kube.put(make_run("a"))
        self.uid: str = self.document["metadata"]["uid"]

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

    @property
    def exists(self) -> bool:
        return self.cluster.find("BenchmarkRun", self.document["metadata"]["name"]) is not None

    @property
    def finalizers(self) -> list[str]:
        run = self.cluster.find("BenchmarkRun", self.document["metadata"]["name"]) or {"metadata": {}}
        return list(run["metadata"].get("finalizers", ()))

    @property
    def pods(self) -> set[str]:
        return {pod["metadata"]["name"] for pod in self.cluster.kube.objects("Pod")}

    def counted(self, name: str, **labels: str) -> float:
        """Return a sample of the operator's instruments; 0 if there is none."""
        registry = self.context.runs.instruments.registry
        return registry.get_sample_value(f"plimsoll_operator_{name}", labels) or 0.0

    @property
    def looks(self) -> float:
        """How often the daemon has looked at the run."""
        return self.counted("step_duration_seconds_count", step="observe")

    async def tell(self) -> None:
        """Tell of the run as it is, or that it is gone."""
        event = {"type": "MODIFIED" if self.exists else "DELETED", "object": dict(self.body)}
        await run_changed(event=event, **event, uid=self.uid, memo=self.memo)

    async def drive(self) -> None:
        """Have the run looked at from now on."""
        self.context.runs.stopping.clear()
        await self.tell()

    async def stop(self) -> None:
        await self.context.runs.stop()
        assert not self.records

    async def turn(self, times: int) -> None:
        """Let the task have its turns, and everybody else."""
        for _ in range(times):
            await self.tell()
            self.records.wake(self.uid)
            for _ in range(60):
                await asyncio.sleep(0)
            self.cluster.step()
            self.conductors.step()
            self.cluster.now += timedelta(seconds=1)


def enqueue(daemon: Daemon, run: Mapping[str, Any]) -> None:
    daemon.context.queue[run["metadata"]["uid"]] = entry_of(run, daemon.context.runs.settings)


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
    await daemon.drive()
    await daemon.turn(80)
    assert daemon.succeeded == "True"
    await daemon.stop()
    assert quick.count("Succeeded") == 1
    assert len(quick) == len(set(quick))


async def test_looks_at_a_run_and_its_end_are_counted(daemon: Daemon) -> None:
    await daemon.drive()
    await daemon.turn(80)
    looks = {step: daemon.counted("step_duration_seconds_count", step=step) for step in STEPS}
    assert looks["observe"] == looks["decide"] == looks["act"] == looks["say"] > 1
    assert daemon.counted("runs_ended_total", reason=daemon.reasons["Succeeded"]) == 1
    assert daemon.counted("step_duration_seconds_count", step="remove") == 0
    await daemon.turn(5)
    assert daemon.counted("runs_ended_total", reason=daemon.reasons["Succeeded"]) == 1
    await daemon.stop()


async def test_a_run_that_had_ended_before_this_operator_began_is_not_counted(daemon: Daemon) -> None:
    await daemon.drive()
    await daemon.turn(80)
    await daemon.stop()
    before = daemon.counted("runs_ended_total", reason=daemon.reasons["Succeeded"])
    await daemon.drive()
    await daemon.turn(5)
    assert daemon.counted("runs_ended_total", reason=daemon.reasons["Succeeded"]) == before == 1
    await daemon.stop()


async def test_looks_that_fail_are_counted_by_reason_and_repeated(daemon: Daemon) -> None:
    daemon.cluster.kube.interfere = failing(lambda asked: ForbiddenError(asked, "no"), times=1, request="create Job")
    await daemon.drive()
    for _ in range(10):
        await asyncio.sleep(0.02)
        await daemon.turn(1)
    assert daemon.counted("step_errors_total", reason="Forbidden") == 1
    daemon.context.runs.error_seconds = 0.01
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(steps, "step", lambda *_: 1 / 0)
        await until(lambda: daemon.counted("step_errors_total", reason="Unexpected"), daemon)
    await until(lambda: daemon.succeeded == "True", daemon)
    await daemon.stop()


def test_every_error_of_the_api_has_a_series_from_the_start() -> None:
    public = {error for error in _descendants(ApiError) if not error.__name__.startswith("_")} - {ReplacedError}
    assert {error.__name__.removesuffix("Error") for error in public} == {*STEP_ERRORS} - {UNEXPECTED}


def _descendants(error: type[ApiError]) -> set[type[ApiError]]:
    """Return the error and all that are special cases of it."""
    return {error}.union(*map(_descendants, error.__subclasses__()))


async def test_a_run_that_is_over_loses_its_finalizer_and_is_looked_at_again_when_it_is_changed(daemon: Daemon) -> None:
    await daemon.drive()
    await daemon.turn(5)
    assert daemon.finalizers == [FINALIZER]
    await until(lambda: not daemon.records, daemon)
    assert daemon.succeeded == "True"
    assert not daemon.finalizers
    daemon.cluster.edit(dict(daemon.body), lambda run: run["spec"].update(cleanup="Never"))
    looks = daemon.looks
    await until(lambda: daemon.looks > looks and not daemon.records, daemon)


async def test_nothing_is_remembered_of_a_run_that_needs_no_attention(daemon: Daemon) -> None:
    await daemon.drive()
    await daemon.turn(5)
    assert daemon.records[daemon.uid].status
    await daemon.stop()
    for uid in (daemon.uid, "of somebody else"):
        ChildWatch(daemon.records).notice(pod_of(uid))
    assert not daemon.records


async def test_a_status_that_does_not_change_is_not_written_again(daemon: Daemon) -> None:
    daemon.cluster.faults.no_volumes = True
    await daemon.drive()
    await daemon.turn(10)
    requests = daemon.cluster.kube.requests
    before = len([request for request in requests if request.startswith("patch status")])
    daemon.records.wake(daemon.uid)
    await asyncio.sleep(0.05)
    assert len([request for request in requests if request.startswith("patch status")]) == before
    await daemon.stop()


async def test_the_daemon_goes_on_when_the_api_refuses_or_is_away(daemon: Daemon) -> None:
    interfere = failing(lambda asked: ForbiddenError(asked, "exceeded quota"), times=3, request="create Job")
    daemon.cluster.kube.interfere = interfere
    await daemon.drive()
    for _ in range(10):
        await asyncio.sleep(0.02)
        await daemon.turn(1)
    assert daemon.cluster.kube.objects("Job")
    await daemon.stop()


async def test_what_the_api_refuses_is_said_and_told_until_it_is_done(daemon: Daemon, quick: list[str]) -> None:
    interfere = failing(lambda asked: ForbiddenError(asked, "exceeded quota: few"), times=10**6, request="create Job")
    daemon.cluster.kube.interfere = interfere
    await daemon.drive()
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
    await daemon.stop()


async def test_events_after_a_look_without_actions_lead_to_one_look(daemon: Daemon) -> None:
    daemon.cluster.faults.no_volumes = True
    await daemon.drive()
    await daemon.turn(10)
    daemon.context.runs.rest_seconds = 0.2
    loop, looks = asyncio.get_running_loop(), daemon.looks
    began = loop.time()
    while daemon.looks < looks + 2:
        daemon.records.wake(daemon.uid)
        await asyncio.sleep(0.001)
    assert loop.time() - began > 0.19
    await daemon.stop()


async def test_a_look_that_acted_is_followed_at_once(daemon: Daemon) -> None:
    daemon.context.runs.rest_seconds = 60.0
    await daemon.drive()
    await daemon.turn(6)
    assert daemon.cluster.kube.objects("Pod")
    await daemon.stop()


async def test_a_look_that_acted_and_changed_the_status_is_verified_without_an_event(daemon: Daemon) -> None:
    daemon.context.runs.verify_seconds = 0.001
    await daemon.drive()
    while not daemon.cluster.kube.objects("Job"):
        await asyncio.sleep(0.001)
        daemon.cluster.step()
    await daemon.stop()


async def test_changes_wake_the_daemon(daemon: Daemon) -> None:
    wake = daemon.records[daemon.uid].wakeup
    ChildWatch(daemon.records).notice(pod_of(daemon.uid))
    assert wake.is_set()
    wake.clear()
    await queue_changed(body=daemon.body, uid=daemon.uid, type="MODIFIED", memo=daemon.memo)
    assert wake.is_set()


async def test_the_queue_knows_a_run_by_its_uid(daemon: Daemon) -> None:
    await daemon.stop()
    await daemon.tell()
    assert daemon.context.queue[daemon.uid].targets == frozenset({"storageClass/fast"})


async def test_no_run_is_looked_at_before_the_watch_has_shown_all_of_them(daemon: Daemon) -> None:
    """A run that is looked at first would otherwise overtake those that wait for the same storage for longer."""
    runs, second = daemon.context.runs, daemon.cluster.kube.put(make_run("b"))
    runs.is_queue_complete, runs.queue = False, daemon.context.queue.values
    await daemon.drive()
    await asyncio.sleep(0.3)
    assert daemon.looks == 0
    enqueue(daemon, second)
    async with asyncio.timeout(30):
        while not daemon.looks:
            await asyncio.sleep(0.01)
    await daemon.stop()


async def test_a_change_while_the_queue_is_filled_is_not_lost(daemon: Daemon) -> None:
    """A run that is suspended is not looked at again by itself."""
    runs, second = daemon.context.runs, daemon.cluster.kube.put(make_run("b"))
    runs.is_queue_complete, runs.queue = False, daemon.context.queue.values
    daemon.cluster.edit(dict(daemon.body), lambda run: run["spec"].update(suspend=True))
    enqueue(daemon, daemon.body)
    await daemon.drive()
    await asyncio.sleep(0.2)
    daemon.cluster.edit(dict(daemon.body), lambda run: run["spec"].update(suspend=False))
    for handler in (run_changed, queue_changed):
        event = {"type": "MODIFIED", "object": dict(daemon.body)}
        await handler(event=event, body=daemon.body, uid=daemon.uid, type="MODIFIED", memo=daemon.memo)
    enqueue(daemon, second)
    await until(lambda: daemon.cluster.find("ConfigMap", "a-plan"), daemon)
    assert daemon.reasons["Suspended"] != "Suspended"
    await daemon.stop()


@pytest.mark.parametrize(("admitted", "seconds"), [("False", 600.0), ("True", 0.4)])
async def test_when_the_operator_starts_a_new_run_is_looked_at_before_those_that_measure(
    daemon: Daemon, admitted: str, seconds: float
) -> None:
    runs = daemon.context.runs
    runs.is_queue_complete, runs.queue = False, daemon.context.queue.values
    runs.spread_seconds = runs.most_spread_seconds = seconds
    status = {"conditions": [{"type": "Admitted", "status": admitted, "reason": "R"}]}
    await daemon.cluster.kube.patch_status(RUN, "a", daemon.document["metadata"]["namespace"], status)
    enqueue(daemon, daemon.body)
    runs.records[daemon.uid].body = dict(daemon.body)
    await runs.spread(RunMemory())  # the first waits for nobody
    begun = asyncio.get_running_loop().time()
    async with asyncio.timeout(60):
        await runs.look(dict(daemon.body))
    assert admitted == "False" or asyncio.get_running_loop().time() - begun >= seconds


async def test_a_run_that_is_gone_before_the_watch_shows_it_is_not_waited_for(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "_QUEUE_POLLS", 2)
    runs, second = daemon.context.runs, daemon.cluster.kube.put(make_run("b"))
    runs.is_queue_complete, runs.queue = False, daemon.context.queue.values
    await daemon.drive()
    await asyncio.sleep(0.1)
    daemon.cluster.delete(second)
    async with asyncio.timeout(30):
        while not daemon.looks:
            await asyncio.sleep(0.01)
    await daemon.stop()


async def test_runs_that_are_created_meanwhile_do_not_hide_one_that_is_gone(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "_QUEUE_POLLS", 3)
    runs, gone = daemon.context.runs, daemon.cluster.kube.put(make_run("gone"))
    runs.is_queue_complete, runs.queue = False, daemon.context.queue.values
    enqueue(daemon, daemon.body)
    completing = asyncio.create_task(runs.complete_queue())
    await asyncio.sleep(0.05)
    daemon.cluster.delete(gone)
    async with asyncio.timeout(5):
        for number in range(100):
            if completing.done():
                break
            enqueue(daemon, daemon.cluster.kube.put(make_run(f"new-{number}")))
            await asyncio.sleep(0.1)
    assert runs.is_queue_complete


async def test_a_finished_run_costs_no_look_and_no_request(daemon: Daemon) -> None:
    """However many there are when the operator starts."""
    runs = daemon.context.runs
    reasons = {"Succeeded": "Measured", "CleanedUp": "Removed"}
    conditions = [{"type": kind, "status": "True", "reason": reason} for kind, reason in reasons.items()]
    status = {"conditions": conditions, "observedGeneration": daemon.document["metadata"]["generation"]}
    finished = {**dict(daemon.body), "status": status}
    event = {"type": None, "object": finished}
    asked = len(daemon.cluster.kube.requests)
    runs.is_queue_complete = False
    for handler in (run_changed, queue_changed):
        await handler(event=event, body=finished, uid=daemon.uid, type=None, memo=daemon.memo)
    assert (len(runs.records), len(daemon.cluster.kube.requests)) == (0, asked)


# -- deletion


@pytest.fixture
async def made(daemon: Daemon) -> AsyncIterator[Daemon]:
    """Return a run whose removal has begun while its clients were running."""
    await daemon.drive()
    await daemon.turn(6)
    assert daemon.cluster.kube.objects("Pod")
    daemon.cluster.delete(dict(daemon.body))
    await look_for_a_while(daemon)
    yield daemon
    await daemon.stop()


async def until(holds: Callable[[], object], daemon: Daemon) -> None:
    """Let everybody work until something holds."""
    async with asyncio.timeout(30):
        while not holds():
            await daemon.turn(1)
            await asyncio.sleep(0.001)


async def look_for_a_while(daemon: Daemon) -> None:
    """Have the run looked at while nobody else does anything."""
    for _ in range(5):
        await daemon.tell()
        daemon.records.wake(daemon.uid)
        await asyncio.sleep(0.02)


async def test_a_run_is_let_go_when_all_is_gone_that_costs_anything(made: Daemon) -> None:
    left: set[str] = set()

    def interfere(asked: str) -> None:
        if asked.startswith("patch BenchmarkRun"):
            objects = made.cluster.kube.objects()
            left.update(obj["kind"] for obj in objects if made.uid in obj["metadata"].get("labels", {}).values())

    made.cluster.kube.interfere = interfere
    await until(lambda: not made.exists, made)
    assert made.counted("step_duration_seconds_count", step="remove") > 1
    assert left == {"BenchmarkResult", "ConfigMap", "Secret"}
    await until(lambda: not made.records, made)


async def test_a_removal_says_once_what_it_waits_for(made: Daemon) -> None:
    statuses = [request for request in made.cluster.kube.requests if request.startswith("patch status")]
    assert made.reasons["CleanedUp"] == "InProgress"
    await look_for_a_while(made)
    again = [request for request in made.cluster.kube.requests if request.startswith("patch status")]
    assert again == statuses
    assert made.finalizers == [FINALIZER]


async def test_a_removal_reads_no_changes_while_it_waits_and_keeps_the_last_one(made: Daemon) -> None:
    """kopf would collect them, and nobody limits how many there are."""
    looking = asyncio.Event()

    async def hang(_body: object) -> Fact:
        looking.set()
        await asyncio.Event().wait()
        raise AssertionError

    made.context.runs.stop_seconds = 0.0
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(type(made.context.runs), "look_at_removal", lambda _, body: hang(body))
        await made.tell()
        made.records.wake(made.uid)
        async with asyncio.timeout(30):
            await looking.wait()
        for number in range(100):
            metadata = {**made.body["metadata"], "resourceVersion": str(number)}
            event = {"type": "MODIFIED", "object": {**made.body, "metadata": metadata}}
            told = run_changed(event=event, **event, uid=made.uid, memo=made.memo)
            with pytest.raises(StopIteration):  # it returns without waiting for anything
                told.send(None)
        assert made.records[made.uid].body["metadata"]["resourceVersion"] == "99"
        await made.stop()


async def test_a_run_that_goes_while_its_removal_is_told_is_no_failure(
    made: Daemon, caplog: pytest.LogCaptureFixture
) -> None:
    made.cluster.let_go(dict(made.body), FINALIZER)
    await made.tell()
    await until(lambda: not made.records, made)
    assert caplog.text == ""


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
        return kopf.Body(self.shown)

    async def turn(self, times: int) -> None:
        for _ in range(times):
            await super().turn(1)
            self.rook.step()

    async def has_pool(self) -> None:
        """Let the task work until Rook has created the run's pool, and delete the run."""
        await self.drive()
        while not self.rook_objects():
            await self.turn(1)
        self.shown["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:30Z"
        self.cluster.delete(self.cluster.find("BenchmarkRun", "r") or {})

    def rook_objects(self) -> list[Document]:
        return list(self.cluster.of_run("CephBlockPool", self.uid))


@pytest.mark.parametrize("remembers", [True, False])
async def test_a_deletion_removes_a_pool_that_the_watch_does_not_account_for_yet(*, remembers: bool) -> None:
    rook = RookDaemon()
    await rook.has_pool()
    if not remembers:
        await rook.stop()
        await rook.drive()
    await until(lambda: not rook.exists, rook)
    assert not rook.rook_objects()
    await until(lambda: not rook.records, rook)


async def test_a_deleted_run_occupies_its_target_until_its_removal_ends() -> None:
    rook = RookDaemon()
    await rook.has_pool()
    await rook.tell()
    rook.context.runs.queue = lambda: [entry_of(rook.body, SETTINGS)]
    assert [entry.admitted for entry in rook.context.runs._entries()] == [True]
    await rook.stop()


async def test_a_removal_survives_an_api_that_does_not_answer(made: Daemon) -> None:
    def interfere(asked: str) -> None:
        raise TransientError(asked, "status 503")

    made.cluster.kube.interfere = interfere
    await look_for_a_while(made)
    assert made.counted("step_errors_total", reason="Transient") > 1
    made.cluster.kube.interfere = failing(lambda asked: ForbiddenError(asked, "no"), times=3, request="list")
    await until(lambda: not made.exists, made)


async def test_a_removal_that_fails_for_no_fault_of_the_api_is_counted_and_continues(
    made: Daemon,
) -> None:
    made.context.runs.error_seconds = 0.01
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(steps, "teardown", lambda *_, **__: 1 / 0)
        await look_for_a_while(made)
    assert made.counted("step_errors_total", reason=UNEXPECTED) > 0
    await until(lambda: not made.exists, made)


async def test_a_deletion_does_not_need_the_results_whose_kind_is_gone(made: Daemon) -> None:
    kinds = made.cluster.kube.kinds
    kinds.pop(next(kind for kind in kinds if kind.kind == "BenchmarkResult"))
    await until(lambda: not made.exists, made)


async def test_a_deletion_that_may_not_look_says_so(made: Daemon) -> None:
    def interfere(asked: str) -> None:
        if asked.startswith("list Job"):
            raise ForbiddenError(asked, "jobs are none of your business")

    made.cluster.kube.interfere = interfere
    await look_for_a_while(made)
    assert made.reasons["CleanedUp"] == "ApiRefused"


async def test_a_deleted_run_that_another_finalizer_keeps_says_that_it_is_cleaned_up(daemon: Daemon) -> None:
    daemon.cluster.edit(daemon.document, lambda run: run["metadata"].update(finalizers=["example.com/mine"]))
    await daemon.drive()
    await daemon.turn(6)
    assert daemon.finalizers == ["example.com/mine", FINALIZER]
    daemon.cluster.delete(dict(daemon.body))
    await until(lambda: daemon.finalizers == ["example.com/mine"], daemon)
    assert daemon.reasons["CleanedUp"] == "Removed"
    assert entry_of(daemon.body, SETTINGS).over
    await daemon.stop()


# -- the finalizer


async def test_nothing_is_created_before_the_finalizer_is_stored(daemon: Daemon) -> None:
    """Whoever keeps changing a run makes each of the operator's patches late."""
    conflict = failing(lambda asked: ConflictError(asked, "it was changed"), times=10**6, request="patch BenchmarkRun")
    daemon.cluster.kube.interfere = conflict
    daemon.context.runs.write_seconds = 0.0
    await daemon.drive()
    await daemon.turn(10)
    requests = daemon.cluster.kube.requests
    assert not [request for request in requests if request.startswith("create")]
    assert daemon.reasons["Reconciling"] == "FinalizerMissing"
    assert entry_of(daemon.body, SETTINGS).over, "other runs overtake it"
    daemon.cluster.kube.interfere = lambda _: None
    await until(lambda: daemon.cluster.kube.objects("Job"), daemon)
    assert daemon.finalizers == [FINALIZER]
    await daemon.stop()


async def test_a_run_that_lost_its_finalizer_gets_it_again_and_nothing_new_before(daemon: Daemon) -> None:
    await daemon.drive()
    await daemon.turn(6)
    daemon.cluster.edit(dict(daemon.body), lambda run: run["metadata"].update(finalizers=[]))
    daemon.context.runs.write_seconds = 0.0
    refused = failing(lambda asked: ForbiddenError(asked, "no"), times=10**6, request="patch BenchmarkRun")
    daemon.cluster.kube.interfere = refused
    (job, *_) = daemon.cluster.kube.objects("Job")
    pods = {name for name in daemon.pods if not name.startswith(job["metadata"]["name"])}
    requests = len(daemon.cluster.kube.requests)
    daemon.cluster.delete(job)
    await daemon.turn(5)
    assert not [request for request in daemon.cluster.kube.requests[requests:] if request.startswith("create")]
    assert pods
    assert pods <= daemon.pods, "what runs continues"
    assert daemon.reasons["Reconciling"] == "FinalizerMissing"
    daemon.cluster.kube.interfere = lambda _: None
    await until(lambda: daemon.finalizers == [FINALIZER], daemon)
    await daemon.stop()
