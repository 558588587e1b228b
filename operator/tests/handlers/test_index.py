"""Which change of a run and its objects wakes whom, and what is kept for Prometheus."""

import copy
from types import SimpleNamespace
from typing import Any

import kopf
import pytest

from plimsoll.api.names import FailureReason, RunPhase
from plimsoll.api.status import Failure, Live, Prefill, RunState, TrialKey
from plimsoll.kube.port import Followed
from plimsoll.operator import watches
from plimsoll.operator.watches import CHILDREN, ChildWatch
from support.fake_kube import shaped
from support.pretend_cluster import Document, PretendCluster
from support.pretend_world import context_of, make_run

SHAPES = {kind.kind: shape for kind, shape in CHILDREN.items()}
queue_changed: Any = watches.queue_changed
run_changed: Any = watches.run_changed


class Watched:
    """A run, and two daemons: its own and that of another run."""

    def __init__(self) -> None:
        cluster = PretendCluster()
        self.run: Document = cluster.kube.put(make_run("a"))
        self.context = context_of(cluster)
        self.own = self.context.runs.records[self.run["metadata"]["uid"]].wakeup
        self.other = self.context.runs.records["another"].wakeup
        # As kopf does it for every object.
        self.memo: Any = copy.copy(kopf.Memo(context=self.context))

    async def change(self, kind: str | None = "MODIFIED", **status: Any) -> tuple[bool, bool]:
        """Tell of a change, and return who is awake now: the run itself, the other one."""
        self.own.clear()
        self.other.clear()
        body = {**self.run, "status": status}
        await queue_changed(body=body, uid=self.run["metadata"]["uid"], type=kind, memo=self.memo)
        return self.own.is_set(), self.other.is_set()

    async def change_specification(self) -> tuple[bool, bool]:
        """Change something that the queue does not depend on."""
        self.run["metadata"]["generation"] += 1
        self.run["spec"]["cleanup"] = "Never"
        return await self.change()


def condition(kind: str, status: str, reason: str) -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason}


@pytest.fixture
async def watched() -> Watched:
    return Watched()


async def test_a_new_run_wakes_everybody(watched: Watched) -> None:
    # None is what kopf says of those that it lists first.
    assert await watched.change(None) == (True, True)


async def test_a_status_that_says_nothing_of_the_queue_wakes_nobody(watched: Watched) -> None:
    await watched.change("ADDED")
    assert await watched.change(display={"progress": "3/12"}) == (False, False)


async def test_a_specification_that_says_nothing_of_the_queue_wakes_only_its_run(watched: Watched) -> None:
    await watched.change("ADDED")
    assert await watched.change_specification() == (True, False)
    assert await watched.change(display={"progress": "3/12"}) == (False, False)


async def test_a_run_that_takes_or_leaves_its_place_wakes_everybody(watched: Watched) -> None:
    await watched.change("ADDED")
    admitted = condition("Admitted", "True", "Admitted")
    assert await watched.change(conditions=[admitted]) == (True, True)
    assert await watched.change(conditions=[admitted]) == (False, False)
    assert await watched.change(conditions=[admitted, condition("CleanedUp", "True", "Removed")]) == (True, True)


async def test_a_run_that_disappears_wakes_everybody(watched: Watched) -> None:
    await watched.change("ADDED")
    assert await watched.change("DELETED") == (True, True)


class Child:
    """An object of a run, of which a watch tells."""

    def __init__(self, obj: Document) -> None:
        self.obj = obj
        self.records = context_of(PretendCluster()).runs.records
        self.wakeup = self.records["u"].wakeup
        self.children = ChildWatch(self.records)

    async def wakes(self, kind: str | None = "MODIFIED", *, metadata: Any = None, **parts: Any) -> bool:
        """Tell of a change, and return whether it wakes the run."""
        self.wakeup.clear()
        self.obj |= {**parts, "metadata": self.obj["metadata"] | (metadata or {})}
        seen = shaped(self.obj, SHAPES[self.obj["kind"]])
        self.children.notice(Followed(seen, is_gone=kind == "DELETED"))
        return self.wakeup.is_set()


def child(api_version: str, kind: str, owner: str = "BenchmarkRun", **parts: Any) -> Child:
    metadata = {
        "name": "r-state",
        "namespace": "bench",
        "uid": "c",
        "creationTimestamp": "2026-01-01T12:00:00Z",
        "labels": {"plimsoll.dev/run-uid": "u"},
        "ownerReferences": [{"kind": owner, "name": "r", "uid": "u"}],
    }
    return Child({"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts})


async def test_a_pod_wakes_its_run_when_it_gets_a_node_starts_ends_or_cannot() -> None:
    pod = child("v1", "Pod", owner="Job", spec={}, status={"phase": "Pending"})

    def status(phase: str, **state: Any) -> dict[str, Any]:
        return {"phase": phase, "containerStatuses": [{"name": "client", "state": state}]}

    waiting = status("Pending", waiting={"reason": "ContainerCreating"})
    unpulled = status("Pending", waiting={"reason": "ErrImagePull"})
    running = status("Running", running={})
    assert await pod.wakes("ADDED")
    assert await pod.wakes(spec={"nodeName": "n"})
    assert not await pod.wakes(status=waiting)
    assert not await pod.wakes(status=waiting | {"hostIP": "192.0.2.1", "conditions": []})
    assert await pod.wakes(status=unpulled)
    assert await pod.wakes(status=running)
    assert not await pod.wakes(status=running | {"podIP": "10.0.0.1"})
    assert await pod.wakes(metadata={"deletionTimestamp": "2026-01-01T12:01:00Z"})
    assert await pod.wakes("DELETED")


async def test_a_job_wakes_its_run_when_it_is_concluded_or_goes() -> None:
    job = child("batch/v1", "Job", status={})
    assert await job.wakes("ADDED")
    assert not await job.wakes(status={"active": 1})
    assert not await job.wakes(status={"active": 1, "ready": 1})
    assert await job.wakes(status={"conditions": [{"type": "Complete", "status": "True"}]})
    assert await job.wakes(metadata={"deletionTimestamp": "2026-01-01T12:01:00Z"})
    assert await job.wakes("DELETED")


async def test_a_claim_wakes_its_run_when_it_is_bound_or_goes() -> None:
    claim = child("v1", "PersistentVolumeClaim", spec={}, status={"phase": "Pending"})
    assert await claim.wakes(None)
    assert not await claim.wakes(metadata={"annotations": {"volume.kubernetes.io/selected-node": "n"}})
    assert await claim.wakes(status={"phase": "Bound"})
    going = {"deletionTimestamp": "2026-01-01T12:01:00Z", "finalizers": ["kubernetes.io/pvc-protection"]}
    assert await claim.wakes(metadata=going)
    assert await claim.wakes(metadata={"finalizers": []})
    assert await claim.wakes("DELETED")


async def test_an_object_that_changes_hands_wakes_the_run() -> None:
    claim = child("v1", "PersistentVolumeClaim", spec={}, status={"phase": "Pending"})
    await claim.wakes("ADDED")
    assert await claim.wakes(metadata={"ownerReferences": []})
    pod = child("v1", "Pod", owner="Job", spec={}, status={"phase": "Running"})
    await pod.wakes("ADDED")
    assert await pod.wakes(metadata={"ownerReferences": [{"kind": "Job", "name": "j", "uid": "another"}]})


async def test_a_state_wakes_its_run_unless_only_rates_and_progress_in_bytes_change() -> None:
    state = RunState(epoch="e", phase=RunPhase.PREPARING, missing=(1,), registered=(0,))
    config_map = child("v1", "ConfigMap", data=state_data(state))

    async def wakes(**changes: Any) -> bool:
        nonlocal state
        state = state.model_copy(update=changes)
        return await config_map.wakes(data=state_data(state))

    assert await config_map.wakes("ADDED")
    assert not await wakes(elapsed_seconds=3.0)
    assert not await wakes(elapsed_seconds=6.0, prefill=Prefill(done_bytes=1, total_bytes=2))
    assert not await wakes(live=Live(clients=1, rates=()))
    assert await wakes(missing=())
    for changes in (
        {"epoch": "f"},
        {"phase": RunPhase.MEASURING},
        {"message": "waiting for the cluster"},
        {"gathered": "job"},
        {"in_flight": TrialKey(point="w-000", pass_number=0, attempt=0)},
        {"trials_done": 1},
        {"trials_total": 2},
        {"failure": Failure(reason=FailureReason.CLIENTS_NOT_READY, message="lost")},
    ):
        assert await wakes(**changes), changes
    assert await config_map.wakes(data={"state.json": "{"})
    assert not await config_map.wakes(metadata={"annotations": {"somebody": "else"}})
    assert await config_map.wakes(data={"state.json": "["})
    assert await config_map.wakes(metadata={"ownerReferences": []})


async def test_another_document_wakes_its_run_when_it_changes() -> None:
    config_map = child("v1", "ConfigMap", data={"plan.json": "{}"}, immutable=True)
    assert await config_map.wakes("ADDED")
    assert not await config_map.wakes()
    assert await config_map.wakes(data={"plan.json": "[]"})
    assert await config_map.wakes(immutable=False)


def state_data(state: RunState) -> dict[str, str]:
    return {"state.json": state.model_dump_json()}


async def test_the_queue_and_prometheus_know_a_run_by_its_uid_until_it_is_deleted(watched: Watched) -> None:
    context, event = watched.context, {"object": watched.run}
    await context.runs.stop()
    await run_changed(event=event, uid="r", type="ADDED", memo=watched.memo)
    assert context.queue["r"].name == "a"
    assert (context.exposed_runs["r"].labels, context.exposed_runs["r"].status) == (("bench", "a"), "")
    await run_changed(event=event, uid="r", type="DELETED", memo=watched.memo)
    assert (context.queue, context.exposed_runs) == ({}, {})


async def test_a_run_is_in_the_queue_when_it_is_looked_at(watched: Watched) -> None:
    looked_at: list[bool] = []
    watched.memo.context = SimpleNamespace(
        queue={}, exposed_runs={}, runs=SimpleNamespace(settings=watched.context.runs.settings, notice=None)
    )
    watched.memo.context.runs.notice = lambda *_, **__: looked_at.append("r" in watched.memo.context.queue)
    await run_changed(event={"object": watched.run}, uid="r", type="ADDED", memo=watched.memo)
    assert looked_at == [True]


@pytest.mark.parametrize("handler", ["run_changed", "suite_changed"])
async def test_managed_fields_are_dropped_before_anything_is_kept(watched: Watched, handler: str) -> None:
    managers = [{"manager": str(number), "fieldsV1": {"f:metadata": {}}} for number in range(1000)]
    raw = {**watched.run, "metadata": {**watched.run["metadata"], "managedFields": managers}}
    await watched.context.runs.stop()
    await watched.context.suites.stop()
    await getattr(watches, handler)(event={"object": raw}, uid="u", type=None, memo=watched.memo)
    assert raw["metadata"] == watched.run["metadata"]
