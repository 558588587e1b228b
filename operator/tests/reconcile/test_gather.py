"""What is asked of the API to observe a run, and what errors say in a status."""

import asyncio
from typing import Any

import pytest

from plimsoll.api.names import RunPhase
from plimsoll.api.status import STATE_FILE
from plimsoll.kube.port import (
    ApiError,
    ConflictError,
    Followed,
    ForbiddenError,
    InvalidError,
    Kind,
    NotFoundError,
    TransientError,
)
from plimsoll.lifecycle import naming
from plimsoll.operator import gather as gather_module
from plimsoll.operator.execute import refusal_of
from plimsoll.operator.gather import LIST_SECONDS, RunDigests, gather, gather_platform
from plimsoll.operator.watches import ChildWatch
from plimsoll.plan.document import RunIdentity
from support.fake_kube import FakeKube, failing
from support.pretend_cluster import NAMESPACE
from support.pretend_world import PretendWorld, until_trial

JOB = Kind(api_version="batch/v1", kind="Job")
RUN = RunIdentity(namespace="default", name="r", uid="u")
OWN = {naming.LABEL_RUN_UID: "u"}
OWNERS = [{"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BenchmarkRun", "name": "r", "uid": "u"}]
CREATED = "2026-01-01T12:00:00Z"


def job(*, status: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    named = {
        "name": "j",
        "namespace": "default",
        "uid": "job",
        "labels": OWN,
        "ownerReferences": OWNERS,
        "creationTimestamp": CREATED,
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": named | metadata, "status": status or {}}


def pod(phase: str) -> dict[str, Any]:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "job"}
    metadata = {"name": "p", "namespace": "default", "labels": OWN, "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": phase}}


def claim(phase: str) -> dict[str, Any]:
    metadata = {"name": "c", "namespace": "default", "uid": "claim", "labels": OWN, "ownerReferences": OWNERS}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "status": {"phase": phase}}


def warning(name: str, uid: str, kind: str, when: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "type": "Warning",
        "reason": "Failed",
        "message": name,
        "lastTimestamp": when,
        "involvedObject": {"kind": kind, "uid": uid},
    }


async def warnings(*objects: dict[str, Any]) -> dict[str, str]:
    kube = FakeKube()
    kube.put(warning("early", "job", "Job", "2026-01-01T12:00:00Z"))
    kube.put(warning("late", "job", "Job", "2026-01-01T12:00:09Z"))
    kube.put(warning("volume", "claim", "PersistentVolumeClaim", CREATED))
    kube.put(warning("stranger", "other", "Job", CREATED))
    for obj in objects:
        kube.put(obj)
    return dict((await gather(kube, RUN)).warnings)


CONCLUDED = {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}


@pytest.mark.parametrize(
    ("objects", "found"),
    [
        ((job(),), {"job": "Failed: late"}),
        ((job(), pod("Failed")), {"job": "Failed: late"}),
        ((job(), pod("Pending")), {}),
        ((job(), pod("Running")), {}),
        ((job(status=CONCLUDED),), {}),
        ((job(deletionTimestamp=CREATED),), {}),
        ((claim("Pending"),), {"claim": "Failed: volume"}),
        ((claim("Bound"),), {}),
        ((claim("Pending"), job()), {"claim": "Failed: volume", "job": "Failed: late"}),
    ],
)
async def test_the_newest_warning_about_what_waits_is_read(
    objects: tuple[dict[str, Any], ...], found: dict[str, str]
) -> None:
    assert await warnings(*objects) == found


@pytest.fixture
def every_version_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have looks read only what has changed, however few objects there are."""
    monkeypatch.setattr(gather_module, "_WORTHWHILE", 0)


@pytest.mark.usefixtures("every_version_known")
def test_what_is_kept_of_the_last_look_never_differs_from_what_is_there() -> None:
    with PretendWorld() as world:
        uid, lost = world.create("a", clients={"count": 12}), ""
        run = RunIdentity(namespace=NAMESPACE, name="a", uid=uid)
        digests = RunDigests(run)
        for _ in range(60):
            pods = world.client_pods(uid)
            if not lost and len(pods) == 12:
                lost = pods[3]["metadata"]["name"]
                world.cluster.delete(pods[3])
            world.round(3.0)
            # As a look does that acts: here, the operator has acted with digests of its own.
            digests.forget_fixed()
            looks = [world.wait(gather(world.cluster.kube, run, digests=kept)) for kept in (digests, None)]
            assert looks[0] == looks[1]
        assert lost


async def asked(kube: FakeKube, digests: RunDigests) -> list[str]:
    """Look at a run, and return what was asked of its Job, its pod and its claim."""
    kube.requests.clear()
    await gather(kube, RUN, digests=digests)
    kinds = {"Job", "Pod", "PersistentVolumeClaim"}
    return [request for request in kube.requests if request.split()[1] in kinds]


LISTS = ["list Job default", "list Pod default", "list PersistentVolumeClaim default"]


@pytest.mark.usefixtures("every_version_known")
async def test_jobs_pods_and_claims_are_read_again_when_they_have_changed() -> None:
    kube, digests = FakeKube(), RunDigests(RUN)
    for obj in (job(), pod("Running"), claim("Bound")):
        kube.put(obj)
    assert len(await asked(kube, digests)) == 6
    assert await asked(kube, digests) == LISTS
    await kube.patch_status(JOB, "j", "default", {"conditions": [{"type": "Complete", "status": "True"}]})
    assert sorted(await asked(kube, digests)) == sorted([*LISTS, "get Job default/j"])
    assert await asked(kube, digests) == LISTS


@pytest.mark.usefixtures("every_version_known")
@pytest.mark.parametrize("refused", ["list Job", "list Pod", "get ConfigMap"])
async def test_a_look_that_failed_leaves_nothing_known_and_nothing_going_on(refused: str) -> None:
    kube, digests = FakeKube(), RunDigests(RUN)
    for obj in (job(), pod("Running"), claim("Bound")):
        kube.put(obj)
    await asked(kube, digests)
    kube.interfere = failing(lambda request: TransientError(request, "no answer"), times=1, request=refused)
    with pytest.raises(TransientError, match=refused):
        await gather(kube, RUN, digests=digests)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert len(await asked(kube, digests)) == 6


STATE_ONLY = ["get ConfigMap", "get ConfigMap", "list BenchmarkResult"]


@pytest.mark.parametrize("change", ["nothing", "Pod", "an action", "30 s", "a failed look", "no event", "the end"])
def test_while_a_run_measures_an_event_of_its_conductor_costs_three_requests(change: str) -> None:
    with PretendWorld() as world:
        uid = world.create("a")
        runs, kube = world.operator.runs, world.cluster.kube
        world.conductors.knobs.stays = RunPhase.MEASURING
        until_trial(world)
        world.round(1.0)
        world.round(1.0)
        record = runs.records[uid]
        assert record.digests is not None
        record.was_woken = True
        match change:
            case "Pod":
                children = ChildWatch(runs.records)
                children.notice(Followed(world.client_pods(uid)[0], is_gone=False))
            case "an action":
                record.digests.forget_fixed()
            case "30 s":
                world.cluster.pass_time(LIST_SECONDS)
            case "a failed look":
                world.look_with(uid, 1, lambda asked: TransientError(asked, "no answer"))
            case "no event":
                record.was_woken = False
            case "the end":
                (state,) = kube.objects("ConfigMap", lambda obj: obj["metadata"]["name"] == "a-state")
                text = state["data"][STATE_FILE].replace('"phase":"Measuring"', '"phase":"Complete"')
                world.cluster.edit(state, lambda new: new["data"].update({STATE_FILE: text}))
        kube.requests.clear()
        decision = world.look(uid)
        assert decision is not None
        asked = sorted(" ".join(request.split()[:2]) for request in kube.requests if not request.startswith("patch"))
        assert (asked == STATE_ONLY) is (change == "nothing"), asked
        assert {"list Job", "list Pod", "list PersistentVolumeClaim"} <= {*asked} or change == "nothing"


@pytest.mark.parametrize(
    ("jobs", "counts"),
    [
        ([job()], True),
        ([job(ownerReferences=[{**OWNERS[0], "uid": "another"}])], False),  # somebody else's, with the run's label
        ([], False),
    ],
)
async def test_a_pod_decides_something_only_while_its_job_shows_that_it_is_the_runs(
    jobs: list[dict[str, Any]], *, counts: bool
) -> None:
    """Whoever may create pods can give one the labels of a conductor that has measured everything."""
    kube = FakeKube()
    for obj in (*jobs, pod("Succeeded")):
        kube.put(obj)
    seen = await gather(kube, RUN)
    assert [entry.child.name for entry in seen.conductor_pods] == (["p"] if counts else [])
    assert [entry.child.name for entry in seen.loading_pods] == ([] if jobs and not counts else ["p"])


async def test_the_platform_is_the_version_and_the_storage_classes() -> None:
    kube = FakeKube()
    kube.put({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}})
    platform = await gather_platform(kube, "bench")
    assert platform.kubernetes == await kube.version()
    assert set(platform.storage_classes) == {"fast"}
    assert platform.pod_security == ""


async def test_the_platform_has_what_the_runs_namespace_enforces() -> None:
    kube = FakeKube()
    for name, level in (("bench", "restricted"), ("other", "baseline")):
        labels = {"pod-security.kubernetes.io/enforce": level}
        kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    assert (await gather_platform(kube, "bench")).pod_security == "restricted"


async def test_a_namespace_that_may_not_be_looked_at_enforces_nothing_that_is_known() -> None:
    kube = FakeKube()

    def interfere(asked: str) -> None:
        if asked.startswith("list Namespace"):
            raise ForbiddenError(asked, "cannot list (status 403)")

    kube.interfere = interfere
    assert (await gather_platform(kube, "bench")).pod_security == ""


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ForbiddenError, "ApiRefused"),
        (InvalidError, "ApiRefused"),
        (NotFoundError, "ApiRefused"),
        (TransientError, "ApiUnavailable"),
        (ConflictError, "ApiUnavailable"),
    ],
)
def test_an_error_is_a_refusal_in_the_servers_words(error: type[ApiError], reason: str) -> None:
    refusal = refusal_of(error("create Job n/j", "as it said (status 4)"))
    assert refusal.reason == reason
    assert refusal.message.startswith("could not create Job n/j: as it said (status 4); ")


def test_a_quota_is_named_whoever_enforces_it() -> None:
    words = 'pods "p" is forbidden: exceeded quota: few, requested: pods=1 (status 403)'
    assert refusal_of(ForbiddenError("create Pod n/p", words)).reason == "QuotaExceeded"
    assert refusal_of(ConflictError("create Pod n/p", words)).reason == "QuotaExceeded"


@pytest.mark.parametrize(("asked", "hinders"), [("create Job n/delete", False), ("delete Job n/j", True)])
def test_a_refusal_knows_whether_it_keeps_something_from_going(asked: str, *, hinders: bool) -> None:
    refusal = refusal_of(ForbiddenError(asked, "no"))
    assert refusal.blocks_removal == hinders
    assert ("delete it yourself" in refusal.message) == hinders
