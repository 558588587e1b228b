"""Runs with kube-burner: who may, what their pods get, and that a run stays until what its helper made is gone."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from plimsoll.api.errors import SpecError
from plimsoll.api.reasons.reason import Reason
from plimsoll.api.run import decode_run
from plimsoll.api.storage import NamespacedName
from plimsoll.kube.port import Kind
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.decision import Fact, RunEnding
from plimsoll.lifecycle.provisioning import freeze, rejection
from plimsoll.lifecycle.render import client as render
from plimsoll.lifecycle.render import network
from plimsoll.lifecycle.run import Burning, Run, Settings, platform_of, run_of
from plimsoll.lifecycle.storage.claims import creates_claims
from plimsoll.plan.document import ControlPlane, Plan
from plimsoll.plan.expand import make_plan
from plimsoll.protocol.helpers import BURNER_CERTIFICATE, namespace_base
from support import pretend_world
from support.fake_kube import is_going
from support.pretend_cluster import Document, client_of, label
from support.pretend_world import CrashError, PretendWorld

HELPER = NamespacedName(namespace="plimsoll-kube-burner", name="plimsoll-kube-burner")
BURNING = Burning(service=HELPER, namespaces=("bench",), max_objects=200, max_qps=20, max_volume_size=2**30)
PUBLISHED: Document = {"data": {"tls.crt": "the certificate"}}
DISABLED = Settings(runner_image="runner:1")
ENABLED = replace(DISABLED, burning=BURNING)
STORAGE: dict[str, Any] = {"storageClass": {"name": "fast"}}
WORKLOADS = [{"name": "storm", "kubeBurner": {"objects": [10, 200]}, "runtimeSeconds": 4, "rampSeconds": 1}]
PVCS_IN_ROOK = {
    "rook": {"cluster": {"namespace": "rook-ceph", "name": "rook-ceph"}, "pool": {"replicated": {"size": 3}}},
    "volume": {"size": "1Gi", "mode": "Filesystem"},
}


def body(namespace: str = "bench", storage: Any = STORAGE, **burner: Any) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": namespace, "uid": "u", "creationTimestamp": "2026-01-01T12:00:00Z"}
    workloads = [{**WORKLOADS[0], "kubeBurner": burner}]
    spec = {"clients": {"count": 2}, "workloads": workloads} | ({} if storage is None else {"storage": storage})
    return {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BenchmarkRun", "metadata": metadata, "spec": spec}


def run_in(namespace: str = "bench", storage: Any = STORAGE, **burner: Any) -> Run:
    return run_of(body(namespace, storage, **burner), DISABLED)


def frozen(
    run: Run, settings: Settings = ENABLED, policy: str = "Delete", published: Document | None = PUBLISHED
) -> Plan | object:
    assert run.document is not None
    classes = [{"metadata": {"name": "fast"}, "provisioner": "p", "reclaimPolicy": policy}]
    platform = platform_of("v1.34.0", classes, burner=published)
    return freeze(run, run.document, platform, settings)


def plan_of(run: Run) -> Plan:
    plan = frozen(run)
    assert isinstance(plan, Plan)
    return plan


@pytest.mark.parametrize(
    ("settings", "namespace", "expected"),
    [
        (DISABLED, "bench", ("kubeBurner", "not enabled", "kubeBurner.enabled", "remove these workloads")),
        (ENABLED, "lab", ("namespace lab", "kubeBurner.namespaces", "remove these workloads")),
    ],
)
def test_run_that_may_not_use_it_is_refused(settings: Settings, namespace: str, expected: tuple[str, ...]) -> None:
    ending = rejection(run_in(namespace), settings)
    assert ending is not None
    assert ending.reason is Reason.KUBE_BURNER_NOT_ALLOWED
    assert all(words in ending.message for words in expected), ending.message


@pytest.mark.parametrize("allowed", [("bench",), ("*",)])
def test_run_that_may_use_it_is_not_refused(allowed: tuple[str, ...]) -> None:
    assert rejection(run_in(), replace(ENABLED, burning=BURNING.model_copy(update={"namespaces": allowed}))) is None


@pytest.mark.parametrize(
    ("burner", "message"),
    [
        (
            {"objects": [10, 201]},
            "workload storm: objects 201 exceeds the administrator's kubeBurner.maxObjects of 200",
        ),
        ({"qps": [5, 21]}, "qps 21 exceeds the administrator's kubeBurner.maxQps of 20"),
        ({"volumeSize": "1025Mi"}, "volumeSize 1025Mi exceeds the administrator's kubeBurner.maxVolumeSize of 1Gi"),
        ({"burst": 100}, "burst 100 exceeds the administrator's kubeBurner.maxQps of 20"),
    ],
)
def test_more_than_the_administrator_allows_is_refused(burner: dict[str, Any], message: str) -> None:
    ending = frozen(run_in(**burner))
    assert isinstance(ending, RunEnding)
    assert ending.reason is Reason.KUBE_BURNER_NOT_ALLOWED
    assert message in ending.message


def test_storage_class_that_retains_volumes_is_refused() -> None:
    ending = frozen(run_in(), policy="Retain")
    assert isinstance(ending, RunEnding)
    assert ending.reason is Reason.VOLUMES_RETAINED
    assert "StorageClass fast has reclaimPolicy Retain; name one with Delete" in ending.message


@pytest.mark.parametrize(
    "storage",
    [
        None,
        {k: v for k, v in PVCS_IN_ROOK.items() if k == "rook"},
        {**PVCS_IN_ROOK, "volume": {"size": "1Gi", "access": "LibRBD"}},
    ],
)
def test_run_without_a_storage_class_is_refused(storage: Any) -> None:
    with pytest.raises(SpecError, match="must have a StorageClass, because workload storm runs kubeBurner"):
        make_plan(decode_run(body(storage=storage)), seed=1)


def test_plan_names_helper_and_storage_class() -> None:
    plan = plan_of(run_in(objects=[10, 200]))
    assert plan.control_plane == ControlPlane(helper=HELPER, certificate="the certificate", storage_class="fast")
    assert [(point.clients, point.label) for point in plan.points] == [
        (1, "10 PVCs with pods, 20/s"),
        (1, "200 PVCs with pods, 20/s"),
    ]
    assert plan.volume is None


@pytest.mark.parametrize("published", [None, {}, {"data": None}, {"data": {"other": "x"}}])
def test_a_run_waits_until_the_helper_has_published_its_certificate(published: Document | None) -> None:
    fact = frozen(run_in(), published=published)
    assert isinstance(fact, Fact)
    assert (fact.holds, fact.reason) == (False, Reason.KUBE_BURNER_NOT_READY)
    assert "check its pod in namespace plimsoll-kube-burner" in fact.message


def pod_of(client: int) -> dict[str, Any]:
    run = run_in()
    return dict(render.job(run, plan_of(run), ENABLED, client=client, attempt=0)["spec"]["template"]["spec"])


def test_only_the_first_client_gets_a_token_that_only_the_helper_accepts() -> None:
    first, second = pod_of(0), pod_of(1)
    assert not first["automountServiceAccountToken"]
    assert "serviceAccountName" not in first
    (source,) = next(volume for volume in first["volumes"] if volume["name"] == "burner-token")["projected"]["sources"]
    assert source["serviceAccountToken"]["audience"] == "plimsoll-kube-burner"
    values = {entry["name"]: entry.get("value") for entry in first["containers"][0]["env"]}
    assert values["PLIMSOLL_BURN_CERTIFICATE"] == "the certificate"
    assert values["PLIMSOLL_BURN_HELPER"] == "https://plimsoll-kube-burner.plimsoll-kube-burner.svc:8080"
    assert values["PLIMSOLL_BURN_STORAGE_CLASS"] == "fast"
    assert values["PLIMSOLL_BURN_RUN_UID"] == "u"
    mounts = {mount["name"]: mount["mountPath"] for mount in first["containers"][0]["volumeMounts"]}
    assert values["PLIMSOLL_BURN_TOKEN"] == f"{mounts['burner-token']}/token"
    assert "burner-token" not in str(second)
    assert "PLIMSOLL_BURN" not in str(second)


def test_clients_may_reach_the_helper() -> None:
    run = run_in()
    clients, _ = network.policies(run, plan_of(run), ENABLED)
    peers = [peer for rule in clients["spec"]["egress"] for peer in rule.get("to", ())]
    assert {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "plimsoll-kube-burner"}},
        "podSelector": {"matchLabels": {"app.kubernetes.io/component": "kube-burner"}},
    } in peers


@pytest.mark.parametrize("workloads", [None, 7, [], [None], ["kubeBurner"], [{"fio": {}}]])
def test_specifications_that_nobody_understands_create_no_claims(workloads: Any) -> None:
    run = run_of({**body(), "spec": {"workloads": workloads}}, DISABLED)
    assert not creates_claims(run)


# -- the helper, and runs with it


@dataclass
class Helper:
    """A helper that makes a namespace while a client runs, and removes it and its volume step by step afterwards."""

    world: PretendWorld
    is_up: bool = True

    def step(self) -> None:
        kube = self.world.cluster.kube
        loading = {
            label(pod, naming.LABEL_RUN_UID)
            for pod in kube.objects("Pod")
            if client_of(pod) == 0 and pod["status"].get("phase") == "Running" and not is_going(pod)
        }
        for uid in loading if self.is_up else ():
            if not self.left(uid):
                self._put(uid)
        for namespace in kube.objects("Namespace") if self.is_up else ():
            uid = label(namespace, naming.LABEL_RUN_UID)
            if uid and uid not in loading:
                self.world.wait(self._delete(namespace))
                return
        for volume in kube.objects("PersistentVolume") if self.is_up else ():
            if kube_namespace(volume) not in {obj["metadata"]["name"] for obj in kube.objects("Namespace")}:
                self.world.wait(self._delete(volume))
                return

    def left(self, uid: str) -> set[str]:
        kube = self.world.cluster.kube
        found = [obj for obj in kube.objects("Namespace") if label(obj, naming.LABEL_RUN_UID) == uid]
        volumes = [
            obj
            for obj in kube.objects("PersistentVolume")
            if kube_namespace(obj).startswith(namespace_base("bench", uid))
        ]
        return {obj["metadata"]["name"] for obj in (*found, *volumes)}

    def _put(self, uid: str) -> None:
        name = f"{namespace_base('bench', uid)}0"
        labels = {naming.LABEL_RUN_UID: uid}
        kube = self.world.cluster.kube
        kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        spec = {"claimRef": {"namespace": name}, "persistentVolumeReclaimPolicy": "Delete", "storageClassName": "fast"}
        kube.put({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"pv-{name}"}, "spec": spec})

    async def _delete(self, obj: Document) -> None:
        kube = self.world.cluster.kube
        await type(kube).delete(kube, Kind.of(obj), obj["metadata"]["name"])


def kube_namespace(volume: Document) -> str:
    return str((volume["spec"].get("claimRef") or {}).get("namespace", ""))


@pytest.fixture
def helper(world: PretendWorld, monkeypatch: pytest.MonkeyPatch) -> Helper:
    monkeypatch.setattr(pretend_world, "SETTINGS", replace(pretend_world.SETTINGS, burning=BURNING))
    world.restart_operator()
    helper = Helper(world)
    metadata = {"name": BURNER_CERTIFICATE, "namespace": HELPER.namespace}
    world.cluster.kube.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **PUBLISHED})
    # There is no Rook in these tests: in its place, the helper does something in every round.
    monkeypatch.setattr(world.rook, "step", helper.step)
    return helper


def create(helper: Helper, **spec: Any) -> str:
    return helper.world.create("a", storage=STORAGE, workloads=WORKLOADS, **spec)


def test_run_is_measured_and_nothing_is_left(helper: Helper) -> None:
    world = helper.world
    uid = create(helper)
    world.until(lambda: helper.left(uid))
    world.until_settled(uid)
    assert world.conditions(uid)["Succeeded"]["status"] == "True"
    assert world.conditions(uid)["CleanedUp"]["reason"] == "Removed"
    assert helper.left(uid) == set()
    deleted = [request.split()[1] for request in world.cluster.kube.requests if request.startswith("delete ")]
    assert "PersistentVolumeClaim" not in deleted


def test_deleted_run_stays_until_namespaces_and_volumes_are_gone(helper: Helper) -> None:
    world = helper.world
    uid = create(helper)
    world.until(lambda: world.conductors.loads and helper.left(uid))
    helper.is_up = False
    run = world.run(uid)
    assert run is not None
    world.cluster.delete(run)
    for _ in range(20):
        world.round()
    cleaned_up = world.conditions(uid)["CleanedUp"]
    assert cleaned_up["reason"] == "InProgress"
    assert "the helper plimsoll-kube-burner/plimsoll-kube-burner is deleting 1 namespace" in cleaned_up["message"]
    assert helper.left(uid)
    helper.is_up = True
    world.until(lambda: world.run(uid) is None)
    assert helper.left(uid) == set()


def test_volume_whose_provisioner_hangs_is_named(helper: Helper) -> None:
    world = helper.world
    uid = create(helper)
    world.until(lambda: world.conductors.loads and helper.left(uid))
    helper.is_up = False
    namespace = next(name for name in helper.left(uid) if not name.startswith("pv-"))
    found = world.cluster.find("Namespace", namespace)
    assert found is not None
    world.wait(helper._delete(found))
    world.until(lambda: "PersistentVolume of deleted PVCs left: pv-" in str(world.conditions(uid).get("CleanedUp")))
    helper.is_up = True
    world.until_settled(uid)
    assert world.conditions(uid)["CleanedUp"]["reason"] == "Removed"


def test_operator_that_dies_at_every_request_comes_to_the_same_end(helper: Helper) -> None:
    world = helper.world
    uid = create(helper, timeouts={"provisionSeconds": 3600})
    for number in range(200):
        world.operator.watch_all()
        world.look_with(uid, 1 + number % 29, CrashError)
        world.cluster.step()
        world.rook.step()
        world.conductors.step()
        world.cluster.pass_time(1.0)
    world.until_settled(uid)
    assert world.conditions(uid)["Succeeded"]["status"] == "True"
    assert helper.left(uid) == set()


@pytest.mark.parametrize("owner", ["", "lab"])
def test_namespaces_of_others_do_not_hold_a_run(helper: Helper, owner: str) -> None:
    """Not even if another tenant has sent the helper an order with the UID of this run."""
    world = helper.world
    uid = create(helper)
    name = f"{namespace_base(owner, uid)}0" if owner else "other"
    labels = {naming.LABEL_RUN_UID: uid}
    world.cluster.kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    helper.is_up = False
    world.until_settled(uid)
    assert world.conditions(uid)["CleanedUp"]["reason"] == "Removed"


def test_run_that_is_not_allowed_creates_nothing(world: PretendWorld) -> None:
    uid = world.create("a", storage=STORAGE, workloads=WORKLOADS)
    ended = world.until_ended(uid)
    assert ended["reason"] == "KubeBurnerNotAllowed"
    assert not world.cluster.of_run("Job", uid)
