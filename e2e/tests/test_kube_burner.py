"""Load on the control plane by the real kube-burner, which leaves nothing behind, even after a crash."""

from collections.abc import Iterator
from typing import Any

import pytest

from ceph import Ceph, rook_run
from runs import STORAGE_CLASS, run
from support import OPERATOR_NAMESPACE, Cluster

pytestmark = pytest.mark.burner

HELPER = "plimsoll-kube-burner"
ALLOWED = "e2e-burner"
"""The namespace that e2e/operator/kube-burner.yaml lists in `kubeBurner.namespaces`."""

PREFIX = "plimsoll-burn-"
ABSENT = "e2e-no-provisioner"


@pytest.fixture
def allowed(cluster: Cluster) -> Iterator[str]:
    """Return the namespace whose runs may use kube-burner, which is deleted after the test."""
    with cluster.with_namespace(ALLOWED):
        yield ALLOWED


def burning(**burner: Any) -> dict[str, Any]:
    """Return a workload of kube-burner."""
    return {"name": "storm", "kubeBurner": burner, "runtimeSeconds": 60, "rampSeconds": 0}


def storm(name: str, namespace: str, *, storage_class: str = STORAGE_CLASS, **burner: Any) -> dict[str, Any]:
    """Return a run whose only workload is kube-burner."""
    storage = {"storageClass": {"name": storage_class}}
    return run(name, namespace, storage=storage, workloads=[burning(**burner)], repetitions=1)


def left(cluster: Cluster) -> set[str]:
    """Return the namespaces that kube-burner created, and the volumes of claims in them."""
    namespaces = [obj["metadata"]["name"] for obj in cluster.api.objects("namespaces")]
    volumes = cluster.api.objects("persistentvolumes")
    claimed = {obj["metadata"]["name"]: (obj["spec"].get("claimRef") or {}).get("namespace", "") for obj in volumes}
    return {
        *(name for name in namespaces if name.startswith(PREFIX)),
        *(name for name, namespace in claimed.items() if namespace.startswith(PREFIX)),
    }


def until_burning(cluster: Cluster) -> set[str]:
    """Return what kube-burner has created, once it has created a namespace."""
    return cluster.until(lambda: left(cluster), seconds=180, what="kube-burner has created a namespace")


def timed(cluster: Cluster, manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the results of a run in which all pods were timed, which leaves nothing."""
    name, namespace = manifest["metadata"]["name"], manifest["metadata"]["namespace"]
    cluster.apply(manifest)
    ended = cluster.until_over(name, namespace, seconds=600)
    assert not left(cluster)
    # Fewer than a thousand PVCs: their 99th percentile is not known.
    findings = [one for trial in cluster.trials(name, namespace) for one in trial["findings"]]
    assert (ended["status"], ended["reason"]) == ("True", "Suspect"), (ended["message"], findings)
    return cluster.results(name, namespace)


def assert_timed(result: dict[str, Any], objects: int) -> None:
    """Check that PVCs and pods were timed, each of them once."""
    assert result["status"]["environment"]["tools"]["kubeBurner"]
    operations = {one["operation"]: one for one in result["status"]["summary"]["operations"]}
    assert operations.keys() == {"bindClaim", "startPod"}
    for operation in operations.values():
        assert operation["latency"]["kind"] == "full"
        assert operation["latency"]["count"] == objects
        assert operation["latency"]["maxNanoseconds"] > 0
    bound, started = operations["bindClaim"]["latency"], operations["startPod"]["latency"]
    # A pod starts after its claim is bound; its time begins up to a second early.
    assert bound["minNanoseconds"] <= started["maxNanoseconds"]


def test_claims_and_pods_are_timed_and_nothing_is_left(cluster: Cluster, allowed: str) -> None:
    results = timed(cluster, storm("storm", allowed, objects=[2, 4], qps=[10]))
    assert len(results) == 2
    for result, objects in zip(results, (2, 4), strict=True):
        assert_timed(result, objects)


@pytest.mark.ceph
@pytest.mark.tertiary
def test_claims_on_a_pool_that_rook_creates_are_timed(cluster: Cluster, clean: Ceph, allowed: str) -> None:
    manifest = rook_run("images", allowed, workloads=[burning(objects=[3], qps=[10])])
    manifest["spec"]["storage"]["volume"]["access"] = "PVC"
    (result,) = timed(cluster, manifest)
    assert_timed(result, 3)
    assert clean.pools() == []


@pytest.mark.thorough
def test_churned_claims_are_timed_too(cluster: Cluster, allowed: str) -> None:
    churn = {"percent": 50, "cycles": 1}
    (result,) = timed(cluster, storm("churn", allowed, objects=[2], qps=[10], churn=churn))
    counts = {one["operation"]: one["latency"]["count"] for one in result["status"]["summary"]["operations"]}
    # kube-burner may not have timed the pod that it deletes first.
    assert counts in ({"bindClaim": 3, "startPod": 3}, {"bindClaim": 3, "startPod": 2})


@pytest.mark.thorough
def test_claims_that_are_never_bound_are_invalid_with_the_reason(cluster: Cluster, allowed: str) -> None:
    cluster.apply(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": ABSENT},
            "provisioner": "absent.example.com/none",
        }
    )
    try:
        cluster.apply(storm("stuck", allowed, storage_class=ABSENT, objects=[3], qps=[10], readySeconds=15, pods=False))
        ended = cluster.until_over("stuck", allowed, seconds=600)
        assert (ended["status"], ended["reason"]) == ("False", "InvalidResults")
        findings = [finding for trial in cluster.trials("stuck", allowed) for finding in trial["findings"]]
        (said, *_) = [finding["message"] for finding in findings if finding["reason"] == "ToolFailed"]
        assert "0 of 3 PVCs were bound within 15 s" in said
        assert "is Pending: " in said
        assert not left(cluster)
    finally:
        cluster.kubectl("delete", "storageclass", ABSENT, "--ignore-not-found")


def test_a_run_in_another_namespace_is_refused(cluster: Cluster, namespace: str) -> None:
    cluster.apply(storm("refused", namespace))
    ended = cluster.until_over("refused", namespace, seconds=60)
    assert (ended["status"], ended["reason"]) == ("False", "KubeBurnerNotAllowed")
    assert f"namespace {namespace} may not use kube-burner" in ended["message"]
    assert "kubeBurner.namespaces" in ended["message"]


@pytest.mark.parametrize(
    ("burner", "says"),
    [({"objects": [21]}, "objects 21 exceeds the administrator's kubeBurner.maxObjects of 20"),
     ({"qps": [11]}, "qps 11 exceeds the administrator's kubeBurner.maxQps of 10")],
)  # fmt: skip
def test_more_than_the_administrator_allows_is_refused(
    cluster: Cluster, allowed: str, burner: dict[str, Any], says: str
) -> None:
    cluster.apply(storm("greedy", allowed, **burner))
    ended = cluster.until_over("greedy", allowed, seconds=60)
    assert (ended["status"], ended["reason"]) == ("False", "KubeBurnerNotAllowed")
    assert says in ended["message"]


def test_nothing_is_left_by_processes_that_are_killed(cluster: Cluster, allowed: str) -> None:
    cluster.apply(storm("killed", allowed, objects=[4], qps=[1]))
    first = until_burning(cluster)
    cluster.kill_pod(cluster.client_pod("killed", allowed, 0)["metadata"]["name"], allowed)
    cluster.until(lambda: not first & left(cluster), seconds=180, what="everything of the first attempt is gone")
    second = until_burning(cluster)
    (pod,) = cluster.api.objects("pods", HELPER, "app.kubernetes.io/component=kube-burner")
    cluster.kill_pod(pod["metadata"]["name"], HELPER)
    cluster.until(lambda: not second & left(cluster), seconds=180, what="everything of the second attempt is gone")
    cluster.until_over("killed", allowed, seconds=900)
    cluster.until(lambda: not left(cluster), seconds=180, what="everything of kube-burner is gone")


def test_a_run_that_is_deleted_in_mid_run_leaves_nothing(cluster: Cluster, allowed: str) -> None:
    cluster.apply(storm("doomed", allowed, objects=[4], qps=[1]))
    until_burning(cluster)
    cluster.kubectl("delete", "benchmarkrun", "doomed", "-n", allowed, "--timeout=180s")
    # The finalizer has waited for it.
    assert not left(cluster)
    cluster.until(lambda: not cluster.leftovers(allowed), seconds=60, what="the garbage collector is done")


def test_the_helper_may_change_only_its_own_namespaces(cluster: Cluster, allowed: str) -> None:
    account = f"--as=system:serviceaccount:{HELPER}:{HELPER}"
    refused = cluster.kubectl("delete", "namespace", allowed, account, "--dry-run=server", check=False)
    assert "may only change its own namespaces" in refused
    assert cluster.exists("namespaces", allowed)
    operator = f"--as=system:serviceaccount:{OPERATOR_NAMESPACE}:plimsoll"
    certificate = "plimsoll-kube-burner-certificate"
    for who, what, where in (
        (account, "secrets", "-A"),
        (account, "pods", "-A"),
        (operator, f"secrets/{certificate}", f"--namespace={HELPER}"),
    ):
        assert cluster.kubectl("auth", "can-i", "get", what, where, who, check=False).strip() != "yes"
    assert (
        cluster.kubectl("auth", "can-i", "get", f"configmaps/{certificate}", f"-n={HELPER}", operator).strip() == "yes"
    )


def test_the_helper_keeps_its_certificate_when_its_pod_is_replaced(cluster: Cluster) -> None:
    certificate = ("configmaps", "plimsoll-kube-burner-certificate", HELPER)
    before = cluster.object(*certificate)["data"]
    cluster.kubectl("rollout", "restart", f"deployment/{HELPER}", "-n", HELPER)
    cluster.kubectl("rollout", "status", f"deployment/{HELPER}", "-n", HELPER, "--timeout=240s")
    assert cluster.object(*certificate)["data"] == before
