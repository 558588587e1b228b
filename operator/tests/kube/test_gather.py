"""What is asked of the API to observe a run, and what errors say in a status."""

from typing import Any

import pytest

from plimsoll.kube.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    TransientError,
    refusal_of,
)
from plimsoll.kube.gather import gather, gather_platform
from plimsoll.lifecycle import naming
from support.fake_kube import FakeKube

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
    return dict((await gather(kube, namespace="default", name="r", uid="u")).warnings)


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
    assert refusal.message.startswith("the API server did not create Job n/j: as it said (status 4); ")


def test_a_quota_is_named_whoever_enforces_it() -> None:
    words = 'pods "p" is forbidden: exceeded quota: few, requested: pods=1 (status 403)'
    assert refusal_of(ForbiddenError("create Pod n/p", words)).reason == "QuotaExceeded"
    assert refusal_of(ConflictError("create Pod n/p", words)).reason == "QuotaExceeded"


@pytest.mark.parametrize(("asked", "hinders"), [("create Job n/delete", False), ("delete Job n/j", True)])
def test_a_refusal_knows_whether_it_keeps_something_from_going(asked: str, *, hinders: bool) -> None:
    assert refusal_of(ForbiddenError(asked, "no")).hinders_removal == hinders
