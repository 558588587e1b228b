"""The operator's ClusterRole: what the operator asks for, and what it grants to conductors, and nothing else."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.lifecycle.naming import LABEL_RUN_UID
from support.pretend_cluster import NAMESPACE
from support.pretend_world import PretendWorld

MANIFEST = Path(__file__).parents[3] / "manifests" / "operator" / "operator.yaml"

Right = tuple[str, str]
"""A verb and a resource."""

RESOURCES = {
    "BenchmarkResult": "benchmarkresults",
    "BenchmarkRun": "benchmarkruns",
    "ConfigMap": "configmaps",
    "Event": "events",
    "Job": "jobs",
    "NetworkPolicy": "networkpolicies",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Pod": "pods",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "Secret": "secrets",
    "Service": "services",
    "ServiceAccount": "serviceaccounts",
    "StorageClass": "storageclasses",
}
KOPF: set[Right] = {
    *((verb, kind) for verb in ("list", "watch") for kind in ("benchmarkruns", "jobs", "pods", "configmaps")),
    *((verb, kind) for verb in ("list", "watch") for kind in ("persistentvolumeclaims", "namespaces")),
    *((verb, "customresourcedefinitions") for verb in ("list", "watch")),
    ("patch", "benchmarkruns"),  # finalizers, annotations
    ("create", "events"),
}
OWNING: set[Right] = {("update", "benchmarkruns/finalizers")}


def rights_of(rules: list[dict[str, Any]]) -> Iterator[Right]:
    for rule in rules:
        for resource in [*rule.get("resources", ()), *rule.get("nonResourceURLs", ())]:
            yield from ((verb, resource) for verb in rule["verbs"])


def granted() -> set[Right]:
    documents = yaml.safe_load_all(MANIFEST.read_text())
    return set(rights_of(next(one["rules"] for one in documents if one["kind"] == "ClusterRole")))


def right(request: str) -> Right:
    """Return what a request of the pretended API needs."""
    if request == "get /version":
        return "get", "/version"
    verb, kind = request.replace("patch status of", "patch-status").split()[:2]
    if verb == "patch-status":
        return "patch", f"{RESOURCES[kind]}/status"
    return verb, RESOURCES[kind]


@pytest.fixture(scope="module")
def used() -> set[Right]:
    """Return what two runs ask for: one that has a pod without its Job and expires, and one without volumes."""
    with PretendWorld() as world:
        uid = world.create("a", ttlSecondsAfterFinished=30, clients={"count": 1})
        world.until(lambda: world.conductors.loads)
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "gone", "uid": "gone"}
        metadata = {
            "name": "left-over", "namespace": NAMESPACE, "labels": {LABEL_RUN_UID: uid}, "ownerReferences": [owner]
        }  # fmt: skip
        world.cluster.kube.put(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": metadata,
                "spec": {"volumes": []},
                "status": {"phase": "Pending"},
            }
        )
        world.until(lambda: world.run(uid) is None)
        world.cluster.faults.no_volumes = True
        second = world.create("b")
        for _ in range(4):
            world.round()
        run = world.run(second)
        assert run is not None
        world.cluster.delete(run)
        world.until(lambda: world.run(second) is None)
        return {right(request) for request in world.cluster.kube.requests}


@pytest.fixture(scope="module")
def lent() -> set[Right]:
    """Return what the operator grants to a conductor, which it can only if it holds it."""
    with PretendWorld() as world:
        world.create("a")
        world.until(lambda: world.cluster.kube.objects("Role"))
        return set(rights_of(world.cluster.kube.objects("Role")[0]["rules"]))


def test_the_operator_holds_what_it_uses_and_lends_and_nothing_else(used: set[Right], lent: set[Right]) -> None:
    # A creation or deletion that meets a conflict looks whose object it met; Secrets are never looked at.
    looked_at = {("get", resource) for verb, resource in used if verb in {"create", "delete"}} - {("get", "secrets")}
    needed = used | looked_at | lent | KOPF | OWNING
    assert needed - granted() == set(), "missing"
    assert granted() - needed == set(), "not used"
