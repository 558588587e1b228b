"""Looks at a suite, against an API in memory: what wakes it, what is read, and what is left alone."""

import asyncio
from typing import Any

import kopf
import pytest

from plimsoll.kube.port import TransientError
from plimsoll.operator import watches as handlers
from plimsoll.suite.rounds.observed import LONGEST_WAIT_SECONDS
from support.fake_kube import FakeKube, failing
from support.played_suites import RESULT, RUN, SUITE, Mortal, PlayedSuite
from support.pretend_cluster import NAMESPACE, PretendCluster
from support.pretend_rook import ROOK
from support.pretend_world import context_of
from support.specs import RUN as SPEC
from support.specs import suite_document

ACCEPTED = {"name": "upgrade", "baseline": {"rounds": "Accepted"}}
REEF, QUINCY = "ceph version 18.2.7 (6b) reef (stable)", "ceph version 17.2.7 (b1) quincy (stable)"

suite_changed: Any = handlers.suite_changed
run_changed: Any = handlers.run_changed


@pytest.fixture
def kube() -> FakeKube:
    return FakeKube()


@pytest.fixture
def played(kube: FakeKube) -> PlayedSuite:
    return PlayedSuite(kube=kube, operator=Mortal(kube), namespace="default")


async def test_nothing_is_left_of_a_deleted_suite(played: PlayedSuite, kube: FakeKube) -> None:
    await played.create(suite_document(repeat=1))
    await played.measure_round(small=1000, large=1000)
    await played.annotate("request-round", "again")
    await played.settle()
    assert (len(kube.objects(RUN.kind)), len(kube.objects(RESULT.kind))) == (3, 2)
    await kube.delete(SUITE, "sizes", "default")
    assert {obj["kind"] for obj in kube.objects()} == {"Namespace"}
    assert await played.look() == LONGEST_WAIT_SECONDS
    assert {obj["kind"] for obj in kube.objects()} == {"Namespace"}


async def test_runs_that_have_not_changed_are_not_read_again(played: PlayedSuite, kube: FakeKube) -> None:
    await played.create(suite_document(repeat=5))
    for _ in range(3):
        await played.settle()
        await played.finish({"small": 1000, "large": 1000})
    await played.settle()
    kube.requests.clear()
    await played.kube.patch(RUN, played.created[-1], "default", {"metadata": {"labels": {"x": "y"}}})
    await played.reconciler.look(played.document)
    assert [one for one in kube.requests if one.startswith("get BenchmarkRun")] == [
        f"get BenchmarkRun default/{played.created[-1]}"
    ]
    kube.interfere = failing(lambda asked: TransientError(asked, "status 503"), times=1, request="list BenchmarkRun")
    with pytest.raises(TransientError):
        await played.reconciler.look(played.document)
    await played.reconciler.look(played.document)
    assert len([one for one in kube.requests if one.startswith("get BenchmarkRun")]) == 1 + len(played.created)


async def test_run_that_expires_after_its_end_is_over_when_it_has_ended(played: PlayedSuite, kube: FakeKube) -> None:
    await played.create(suite_document(repeat=1))
    await played.settle()
    await played.finish({"small": 1000, "large": 1000})
    await played.kube.patch(RUN, played.created[0], "default", {"spec": {"ttlSecondsAfterFinished": 10**8}})
    assert (await played.measure_round(small=1000, large=1000))["verdict"] == "NoRegression"
    assert len(played.created) == 2


async def test_results_of_another_run_with_the_same_name_do_not_count(played: PlayedSuite, kube: FakeKube) -> None:
    await played.create(suite_document(repeat=1))
    await played.settle()
    (run,) = kube.objects(RUN.kind)
    stranger = {"apiVersion": RESULT.api_version, "kind": RESULT.kind, "spec": {"runUid": "another"}}
    metadata = {"name": "stranger", "namespace": "default", "labels": {"plimsoll.dev/run": run["metadata"]["name"]}}
    kube.put({**stranger, "metadata": metadata, "status": {"trials": "of no version"}})
    assert (await played.measure_round(small=1000, large=1000))["verdict"] == "NoRegression"


async def test_run_with_a_result_of_another_version_counts_as_missing(played: PlayedSuite, kube: FakeKube) -> None:
    between = {"name": "costs", "baseline": {"variant": "small"}, "candidate": {"variant": "large"}}
    await played.create(suite_document(repeat=1, comparisons=[between]))
    await played.settle()
    await played.finish({"small": 1000, "large": 1000})
    (result,) = kube.objects(RESULT.kind)
    kube.put({**result, "status": {"trials": [{"ofALaterVersion": True}]}})
    ended = await played.measure_round(small=1000, large=1000)
    assert (ended["verdict"], ended["accepted"]) == ("Inconclusive", False)


async def test_status_of_another_version_is_left_alone(
    played: PlayedSuite, kube: FakeKube, caplog: pytest.LogCaptureFixture
) -> None:
    await played.create(suite_document())
    status = {"observedGeneration": 1, "ofALaterVersion": True}
    kube.put({**await played.suite(), "status": status})
    assert await played.look() == LONGEST_WAIT_SECONDS
    assert await played.status() == status
    assert kube.objects(RUN.kind) == []
    assert "default/sizes has a status of another version" in caplog.text


async def test_lost_answer_is_no_refusal(played: PlayedSuite, kube: FakeKube) -> None:
    await played.create(suite_document(repeat=1))
    kube.interfere = failing(lambda asked: TransientError(asked, "status 503"), times=1, request="create BenchmarkRun")
    with pytest.raises(TransientError):
        await played.settle()
    assert not await played.condition("Stalled")
    assert (await played.measure_round(small=1000, large=1000))["verdict"] == "NoRegression"
    assert [event.partition(":")[0] for event in played.events] == ["RoundStarted", "RoundNoRegression"]


async def test_another_version_of_ceph_starts_a_round(played: PlayedSuite, kube: FakeKube) -> None:
    def cluster(*versions: str, version: str = "18.2.7-0") -> None:
        status = {"ceph": {"versions": {"osd": dict.fromkeys(versions, 3)}}, "version": {"version": version}}
        metadata = {"namespace": "rook-ceph", "name": "rook-ceph"}
        kube.put({"apiVersion": "ceph.rook.io/v1", "kind": "CephCluster", "metadata": metadata, "status": status})

    cluster(QUINCY, version="17.2.7-0")
    spec = {**SPEC, "storage": {"rook": ROOK, "volume": {"size": "1Gi"}}}
    await played.create(suite_document(variants=[{"name": "only"}], repeat=1, run=spec, triggers={"cephVersion": True}))
    await played.measure_round(only=1000)
    assert (await played.status())["cephVersion"] == "17.2.7-0"
    cluster(QUINCY, REEF)
    await played.settle()
    assert "round" not in await played.status()
    cluster(REEF)
    assert (await played.measure_round(only=1000))["cause"] == "CephVersion"
    assert (await played.status())["cephVersion"] == "18.2.7-0"


async def test_events_about_the_suite_and_its_runs_wake_it(played: PlayedSuite) -> None:
    cluster = PretendCluster()
    played.kube, played.namespace = cluster.kube, NAMESPACE
    context = context_of(cluster)
    memo = kopf.Memo(context=context)
    await played.create(suite_document(repeat=1, variants=[{"name": "only"}]))
    uid = played.document["metadata"]["uid"]
    posted: list[str] = []
    context.suites.post = lambda _, event: posted.append(event.reason)

    async def tell() -> None:
        event = {"type": "MODIFIED", "object": dict(played.document)}
        await suite_changed(event=event, **event, uid=uid, memo=memo)

    await tell()

    async def until(reason: str) -> None:
        async with asyncio.timeout(30):
            while (await played.status()).get("display", {}).get("status") != reason:
                await asyncio.sleep(0.01)

    async def run_exists() -> None:
        async with asyncio.timeout(30):
            while not await played.runs():
                await asyncio.sleep(0.01)

    await run_exists()
    (run,) = await played.runs()
    await played.finish({"only": 1000})
    await context.runs.stop()  # only the suite is looked at
    of_nobody = {**run, "metadata": {**run["metadata"], "ownerReferences": []}}
    for obj in (of_nobody, run):
        await run_changed(event={"object": obj}, uid=run["metadata"]["uid"], type="MODIFIED", memo=memo)
    await until("Idle")
    await played.change(suspend=True)
    await tell()
    await until("Suspended")
    assert posted == ["RoundStarted", "RoundNoRegression"]
    await context.suites.stop()
    assert not context.suites.records
