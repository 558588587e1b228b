"""The operator's rights: what it asks for, and what it grants to conductors, and nothing else.

Everywhere by the ClusterRole, in the namespace of teardowns by a Role, and by others for Rook clusters.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.lifecycle.naming import LABEL_RUN_UID
from support.apiserver import read_yamls
from support.fake_kube import FakeKube
from support.played_suites import Mortal, PlayedSuite
from support.pretend_cluster import NAMESPACE
from support.pretend_rook import ROOK, ROOK_NAMESPACE, TEARDOWN_NAMESPACE
from support.pretend_world import PretendWorld
from support.specs import suite_document

MANIFESTS = Path(__file__).parents[3] / "manifests"
OPERATOR = MANIFESTS / "install.yaml"
ROOK_ROLE = MANIFESTS / "rook" / "rook.yaml"

Right = tuple[str, str]
"""A verb and a resource."""

RESOURCES = {
    "BenchmarkResult": "benchmarkresults",
    "BenchmarkRun": "benchmarkruns",
    "BenchmarkSuite": "benchmarksuites",
    "CephBlockPool": "cephblockpools",
    "CephClient": "cephclients",
    "CephCluster": "cephclusters",
    "CephFilesystem": "cephfilesystems",
    "ConfigMap": "configmaps",
    "Deployment": "deployments",
    "Event": "events",
    "Job": "jobs",
    "Namespace": "namespaces",
    "NetworkPolicy": "networkpolicies",
    "PersistentVolume": "persistentvolumes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Pod": "pods",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "Secret": "secrets",
    "Service": "services",
    "ServiceAccount": "serviceaccounts",
    "CSIDriver": "csidrivers",
    "StorageClass": "storageclasses",
}
KOPF: set[Right] = {
    *((verb, kind) for verb in ("list", "watch") for kind in ("benchmarkruns", "benchmarksuites", "namespaces")),
    *((verb, "customresourcedefinitions") for verb in ("list", "watch")),
    ("create", "events"),
}
PROTECTING: set[Right] = {("patch", "benchmarkruns")}  # the finalizer, which the pretended operator has from elsewhere
FOLLOWING: set[Right] = {
    *((verb, "benchmarkresults") for verb in ("list", "watch")),
    *(("watch", kind) for kind in ("jobs", "pods", "configmaps", "persistentvolumeclaims")),
}
OWNING: set[Right] = {("update", f"{kind}/finalizers") for kind in ("benchmarkruns", "benchmarksuites")}


def rights_of(rules: list[dict[str, Any]]) -> Iterator[Right]:
    for rule in rules:
        for resource in [*rule.get("resources", ()), *rule.get("nonResourceURLs", ())]:
            yield from ((verb, resource) for verb in rule["verbs"])


def granted(manifest: Path, kind: str) -> set[Right]:
    (rules,) = [one["rules"] for one in documents(manifest) if one["kind"] == kind and _is_own(one)]
    return set(rights_of(rules))


def documents(manifest: Path) -> list[dict[str, Any]]:
    return read_yamls(manifest.read_text())


def _is_own(role: dict[str, Any]) -> bool:
    """Whether a role is the operator's; those of users have another name."""
    return role["metadata"]["name"] in {"plimsoll", "plimsoll-rook", "plimsoll-teardown"}


def right(request: str) -> Right:
    """Return what a request of the pretended API needs."""
    if request == "get /version":
        return "get", "/version"
    verb, kind = request.replace("patch status of", "patch-status").split()[:2]
    if verb == "patch-status":
        return "patch", f"{RESOURCES[kind]}/status"
    return verb, RESOURCES[kind]


def rights(requests: Iterable[str]) -> set[Right]:
    """Return what requests need. A creation or deletion that meets a conflict looks whose object it met."""
    needed = {right(request) for request in requests}
    looked_at = {("get", resource) for verb, resource in needed if verb in {"create", "delete"}}
    return needed | (looked_at - {("get", "secrets")})


def place(request: str) -> str:
    """Return the namespace of a request: that of teardowns, Rook's, or nothing for all others."""
    where = request.rsplit(maxsplit=1)[-1].partition("/")[0]
    return where if where in {TEARDOWN_NAMESPACE, ROOK_NAMESPACE} else ""


def play(world: PretendWorld) -> None:
    """Have runs ask for everything: one with a pod without its Job that expires, and one without volumes."""
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
            "spec": {"containers": [{"name": "client"}], "volumes": []},
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
    world.cluster.faults.no_volumes = False


def play_on_rook(world: PretendWorld) -> None:
    pool = ROOK["pool"]
    file_system = {"cluster": ROOK["cluster"], "fileSystem": {"metadataPool": pool, "dataPools": [pool]}}
    for name, rook in (("a", ROOK), ("files", file_system)):
        uid = world.create(name, storage={"rook": rook, "volume": {"size": "1Gi"}})
        world.until_settled(uid)


@pytest.fixture(scope="module")
def asked() -> list[str]:
    """Return what runs ask for, on a StorageClass and on Rook."""
    with PretendWorld() as world:
        play(world)
        play_on_rook(world)
        return world.cluster.kube.requests


@pytest.fixture(scope="module")
def lent() -> set[Right]:
    """Return what the operator grants to a conductor, which it can only if it holds it."""
    with PretendWorld() as world:
        world.create("a")
        world.until(lambda: world.cluster.kube.objects("Role"))
        return set(rights_of(world.cluster.kube.objects("Role")[0]["rules"]))


async def play_suite() -> set[Right]:
    """Return what a suite needs that is changed during its round."""
    kube = FakeKube()
    operator = Mortal(kube)
    played = PlayedSuite(kube=kube, operator=operator, namespace="default")
    await played.create(suite_document(repeat=1))
    await played.settle()
    await played.change(repeat=2)
    await played.measure_round(small=1000, large=1000)
    return rights(operator.asked)


async def test_the_operator_holds_what_it_uses_and_lends_and_nothing_else(asked: list[str], lent: set[Right]) -> None:
    used = rights(request for request in asked if not place(request)) | await play_suite()
    needed = used | lent | KOPF | PROTECTING | FOLLOWING | OWNING
    held, for_rook = granted(OPERATOR, "ClusterRole"), granted(ROOK_ROLE, "ClusterRole")
    assert needed - held - for_rook == set(), "missing"
    assert held - needed == set(), "not used"
    assert for_rook - needed == set(), "not used"
    assert held & for_rook == set(), "held without Rook"
    assert not {verb for verb, resource in held if resource == "storageclasses"} - {"list"}


def test_in_the_namespace_of_teardowns_it_holds_all_that_it_uses_there_and_nothing_else(asked: list[str]) -> None:
    """With `watchNamespaces` the ClusterRole is not bound there."""
    needed = rights(request for request in asked if place(request) == TEARDOWN_NAMESPACE)
    assert granted(OPERATOR, "Role") == needed


def test_in_rooks_namespace_it_holds_what_it_uses_there_and_nothing_else(asked: list[str]) -> None:
    needed = rights(request for request in asked if place(request) == ROOK_NAMESPACE)
    held = granted(ROOK_ROLE, "Role")
    assert needed - granted(OPERATOR, "ClusterRole") - held == set(), "missing"
    assert held - needed == set(), "not used"


def test_of_secrets_and_config_maps_there_it_reads_only_those_that_are_named(asked: list[str]) -> None:
    (rules,) = [one["rules"] for one in documents(ROOK_ROLE) if one["kind"] == "Role"]
    for kind in ("Secret", "ConfigMap"):
        (rule,) = [rule for rule in rules if RESOURCES[kind] in rule["resources"]]
        read = [request.split()[-1] for request in asked if request.startswith(f"get {kind} {ROOK_NAMESPACE}/")]
        assert read
        assert {name.partition("/")[2] for name in read} <= set(rule["resourceNames"])
