"""Why runs on a Ceph cluster are refused, wait or fail: every reason, who is named, and what to do about it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from plimsoll.kube.port import ApiError, ForbiddenError, InvalidError
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.naming import ALLOW_BENCHMARKS
from support.pretend_cluster import NAMESPACE, label
from support.pretend_rook import ROOK, ROOK_API, ROOK_NAMESPACE
from support.pretend_world import PretendWorld
from support.tooling import kstatus

Arrange = Callable[[PretendWorld], None]
Spec = Mapping[str, Any]

LIBRBD: Spec = {"size": "1Gi", "access": "LibRBD"}
ON_ROOK: Spec = {"storage": {"rook": ROOK, "volume": LIBRBD}}
OF_CEPH: Spec = {
    "storage": {
        "ceph": {
            "monitors": ["192.0.2.1:6789"],
            "user": "bench",
            "keyringSecret": {"name": "keyring"},
            "pool": {"name": "given"},
        },
        "volume": LIBRBD,
    }
}
CODED = {"dataChunks": 2, "codingChunks": 1}
UNKNOWN = 'strict decoding error: unknown field "spec.erasureCoded.stripeUnit" (status 400)'
OUT = {"osds": {"action": "Out"}}
OSD_BENCH: Spec = {**ON_ROOK, "workloads": [{"name": "w", "osdBench": {}}]}


def nothing(_: PretendWorld) -> None:
    """Do nothing."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A way to fail. `made` is whether something was made by then."""

    reason: str
    says: tuple[str, ...]
    name: str = ""
    spec: Spec = field(default_factory=lambda: ON_ROOK)
    before: Arrange = nothing
    made: bool = False


def rook(**changes: Any) -> Spec:
    return {"storage": {"rook": {**ROOK, **changes}, "volume": LIBRBD}}


def existing() -> Spec:
    return {"storage": {"rook": {"cluster": ROOK["cluster"], "existingPool": {"name": "given"}}, "volume": LIBRBD}}


def give_pool(phase: str = "Ready", **annotations: str) -> Arrange:
    def arrange(world: PretendWorld) -> None:
        metadata = {"name": "given", "namespace": ROOK_NAMESPACE, "annotations": annotations}
        world.rook.knobs.down = True
        world.cluster.kube.put(
            {"apiVersion": ROOK_API, "kind": "CephBlockPool", "metadata": metadata, "status": {"phase": phase}}
        )

    return arrange


def give_keyring(world: PretendWorld) -> None:
    metadata = {"name": "keyring", "namespace": NAMESPACE, "annotations": {ALLOW_BENCHMARKS: "true"}}
    data = {"keyring": "W2NsaWVudC5vdGhlcl0Ka2V5ID0gc2VjcmV0Cg=="}
    world.cluster.kube.put({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})


def give_keyring_to_nobody(world: PretendWorld) -> None:
    give_keyring(world)
    secret = world.cluster.find("Secret", "keyring")
    assert secret is not None
    world.cluster.edit(secret, lambda new: new["metadata"].pop("annotations"))


def uninstall_rook(world: PretendWorld) -> None:
    for kind in [kind for kind in world.cluster.kube.kinds if kind.api_version == ROOK_API]:
        del world.cluster.kube.kinds[kind]


def set_health(health: str, **status: Any) -> Arrange:
    def arrange(world: PretendWorld) -> None:
        cluster = world.cluster.find("CephCluster", "rook-ceph")
        assert cluster is not None
        details = {"OSD_DOWN": {"message": "1 osds down", "severity": "HEALTH_WARN"}}
        world.cluster.set_status(cluster, ceph={"health": health, "details": details}, **status)

    return arrange


def connect_externally(world: PretendWorld) -> None:
    cluster = world.cluster.find("CephCluster", "rook-ceph")
    assert cluster is not None
    world.cluster.edit(cluster, lambda new: new["spec"].update(external={"enable": True}))
    connected = {"type": "Connected", "status": "True", "reason": "ClusterConnected"}
    cluster = world.cluster.find("CephCluster", "rook-ceph")
    assert cluster is not None
    world.cluster.set_status(cluster, conditions=[connected], phase="Connected")
    for osd in world.cluster.kube.objects("Deployment"):
        world.cluster.delete(osd)


def stretch(world: PretendWorld) -> None:
    cluster = world.cluster.find("CephCluster", "rook-ceph")
    assert cluster is not None
    zones = [{"name": "a", "arbiter": True}, {"name": "b"}, {"name": "c"}]
    world.cluster.edit(cluster, lambda new: new["spec"].update(mon={"stretchCluster": {"zones": zones}}))


def forbid_disturbances(world: PretendWorld) -> None:
    runs = world.operator.runs
    runs.settings = replace(runs.settings, disturb={})


def unregister_drivers(world: PretendWorld) -> None:
    for driver in world.cluster.kube.objects("CSIDriver"):
        world.cluster.delete(driver)


def set_versions(*versions: str) -> Arrange:
    def arrange(world: PretendWorld) -> None:
        cluster = world.cluster.find("CephCluster", "rook-ceph")
        assert cluster is not None
        ceph = {"health": "HEALTH_OK", "versions": {"osd": dict.fromkeys(versions, 3)}}
        world.cluster.set_status(cluster, ceph=ceph)

    return arrange


def set_pools(story: str) -> Arrange:
    def arrange(world: PretendWorld) -> None:
        world.rook.knobs.pools = story

    return arrange


def take_osds(world: PretendWorld) -> None:
    for osd in world.cluster.kube.objects("Deployment")[1:]:
        world.cluster.set_status(osd, availableReplicas=0)


def refuse(request: str, error: Callable[[str], ApiError]) -> Arrange:
    """Have the API server refuse every request that begins like this."""

    def interfere(asked: str) -> None:
        if asked.startswith(request):
            raise error(asked)

    def arrange(world: PretendWorld) -> None:
        world.cluster.kube.interfere = interfere

    return arrange


CASES = [
    Case(
        reason="RookClusterNotAllowed",
        spec=rook(cluster={"namespace": "other", "name": "c"}),
        says=("spec.storage.rook.cluster", "namespace bench may not use", "other/c", "rook.clusters"),
    ),
    Case(
        reason="CephOptionNotAllowed",
        spec=rook(config=[{"who": "osd", "name": "osd_memory_target", "value": "4Gi"}]),
        says=("spec.storage.rook.config[0].name", "osd_memory_target of", "rook-ceph/rook-ceph", "rook.options"),
    ),
    *(
        Case(
            reason="DisturbanceNotAllowed",
            name=name,
            spec={**storage, "workloads": [{"name": "w", "fio": {}, "runtimeSeconds": 200, "disturb": OUT}]},
            says=("spec.workloads[0].disturb", "chart's disturb"),
            before=forbid_disturbances,
        )
        for name, storage in (("Rook", ON_ROOK), ("Ceph", OF_CEPH))
    ),
    Case(reason="OsdBenchNotAllowed", spec=OSD_BENCH, says=("all OSDs", "osdBench.enabled")),
    Case(
        reason="CacheDroppingNotAllowed",
        spec={**ON_ROOK, "prepare": {"dropCaches": True}},
        says=("spec.prepare.dropCaches", "caches.enabled", "set it to false"),
    ),
    Case(reason="RookNotFound", before=uninstall_rook, says=("rook-ceph/rook-ceph", "install Rook")),
    Case(
        reason="RookNotFound",
        name="no such CephCluster",
        before=lambda world: world.cluster.delete(world.cluster.kube.objects("CephCluster")[0]),
        says=("rook-ceph/rook-ceph not found", "name another"),
    ),
    Case(
        reason="CephClusterNotReady",
        before=set_health("HEALTH_ERR"),
        says=("provisionSeconds (60 s)", "HEALTH_ERR", "OSD_DOWN", "1 osds down"),
    ),
    Case(
        reason="CephClusterNotReady",
        name="a warning that is not accepted",
        before=set_health("HEALTH_WARN"),
        says=("HEALTH_WARN", "gates.acceptedHealthChecks"),
    ),
    Case(
        reason="CephTooOld",
        before=set_versions("ceph version 17.2.9 (0) quincy (stable)"),
        says=("spec.storage.rook.cluster", "rook-ceph/rook-ceph runs Ceph 17.2.9", "Ceph 18.2 and later; upgrade Ceph"),
    ),
    Case(
        reason="CephTooOld",
        name="a Ceph without optimizations of erasure coding",
        spec=rook(pool={"erasureCoded": {**CODED, "optimizations": True}}),
        says=("spec.storage.rook.pool.erasureCoded.optimizations", "runs Ceph 18.2.7", "need Ceph 20", "remove the f"),
    ),
    Case(
        reason="RookTooOld",
        spec=rook(pool={"erasureCoded": {**CODED, "stripeUnit": "16Ki"}}),
        before=refuse("dry run of CephBlockPool rook-ceph/plimsoll-a-", lambda asked: InvalidError(asked, UNKNOWN)),
        says=("pool.erasureCoded.stripeUnit", "Rook v1.18.11 of CephCluster rook-ceph/rook-ceph", UNKNOWN, "upgrade R"),
    ),
    Case(
        reason="CephClusterNotReady",
        name="an upgrade that does not end",
        spec=rook(pool={"erasureCoded": {**CODED, "optimizations": True}}),
        before=set_versions("ceph version 18.2.7 (0) reef (stable)", "ceph version 20.2.4 (0) tentacle (stable)"),
        says=("provisionSeconds (60 s)", "different versions of Ceph", "18.2.7", "20.2.4", "wait for its upgrade"),
    ),
    Case(
        reason="PoolNotFeasible",
        spec=rook(pool={"erasureCoded": {"dataChunks": 4, "codingChunks": 2}}),
        says=("spec.storage.rook.pool", "needs 6", "there are 3", "fewer chunks"),
    ),
    Case(
        reason="PoolNotFeasible",
        name="more placement groups than Ceph allows",
        spec=rook(pool={"replicated": {"size": 3}, "placementGroups": 1024}),
        says=("spec.storage.rook.pool", "mon_max_pg_per_osd", "set placementGroups to at most 128"),
    ),
    Case(reason="PoolNotFeasible", name="OSDs that are down", before=take_osds, says=("needs 3", "there is 1")),
    Case(
        reason="PoolNotFeasible",
        name="a new pool in an external cluster",
        before=connect_externally,
        says=(
            "spec.storage.rook.pool: CephCluster rook-ceph/rook-ceph is external",
            "use existingPool",
            "storage.ceph",
        ),
    ),
    Case(
        reason="PoolNotFeasible",
        name="a pool that Rook refuses in a stretch cluster",
        before=stretch,
        says=("spec.storage.rook.pool", "stretch cluster", "replicated.size 4"),
    ),
    Case(
        reason="PoolNotFound",
        name="a pool of an external cluster without a CephBlockPool",
        spec=existing(),
        before=connect_externally,
        says=("spec.storage.rook.existingPool", "given does not exist", "Secret rook-ceph-mon", "spec.storage.ceph"),
    ),
    Case(
        reason="CSIDriverNotFound",
        spec={"storage": {"rook": ROOK, "volume": {"size": "1Gi"}}},
        before=unregister_drivers,
        made=True,
        says=("provisionSeconds (60 s)", "CSIDriver rook-ceph.rbd.csi.ceph.com does not exist", "enable Rook's CSI"),
    ),
    Case(reason="PoolNotFound", spec=existing(), says=("spec.storage.rook.existingPool", "given does not exist")),
    Case(
        reason="PoolNotAllowed",
        spec=existing(),
        before=give_pool(),
        says=("given does not allow benchmarks", "kubectl annotate", naming.ALLOW_BENCHMARKS),
    ),
    Case(
        reason="PoolNotReady",
        spec=existing(),
        before=give_pool("Progressing", **{naming.ALLOW_BENCHMARKS: "true"}),
        says=("provisionSeconds (60 s)", "given is Progressing"),
    ),
    Case(
        reason="PoolNotReady",
        name="a pool that stays Progressing",
        before=set_pools("CephBlockPool stuck"),
        says=("provisionSeconds (60 s)", "ReconcileFailed", "failed to initialize pool", "log of Rook's operator"),
        made=True,
    ),
    Case(
        reason="PoolFailed",
        before=set_pools("CephBlockPool failed"),
        says=("provisionSeconds (60 s)", "failed to reconcile CephBlockPool", "signal: interrupt", "can place"),
        made=True,
    ),
    Case(
        reason="KeyringNotFound",
        spec=OF_CEPH,
        says=("provisionSeconds (60 s)", "Secret bench/keyring", "the Secret does not exist", "create that Secret"),
        made=True,
    ),
    Case(
        reason="KeyringNotFound",
        name="a keyring of another user",
        spec=OF_CEPH,
        before=give_keyring,
        says=("field keyring", "not a keyring file with a section [client.bench]"),
        made=True,
    ),
    Case(
        reason="KeyringNotAllowed",
        spec=OF_CEPH,
        before=give_keyring_to_nobody,
        says=("Secret bench/keyring", "plimsoll.dev/allow-benchmarks", "kubectl annotate secret"),
        made=True,
    ),
    Case(
        reason="ApiRefused",
        name="the keyring may not be read",
        spec=OF_CEPH,
        before=refuse("get Secret bench/", lambda asked: ForbiddenError(asked, "cannot get resource secrets")),
        says=("Secret bench/keyring", "cannot get resource secrets", "bind a Role"),
        made=True,
    ),
    Case(
        reason="ApiRefused",
        name="Rook may not be looked at",
        before=refuse("list CephBlockPool", lambda asked: ForbiddenError(asked, "cannot list resource")),
        says=("list CephBlockPool", "cannot list resource", "Role of manifests/rook", "namespace rook-ceph"),
    ),
]


def test_conditions_have_only_printable_characters(world: PretendWorld) -> None:
    """What the API server and its webhooks say may quote what somebody else wrote."""
    refuse("get Secret bench/", lambda asked: ForbiddenError(asked, "\x1b[2J\u202eno\nway"))(world)
    ended = world.until_ended(world.create("a", **OF_CEPH))
    assert "?[2J?no\nway" in ended["message"]
    assert ended["message"].replace("\n", "").isprintable()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name or case.reason)
def test_a_run_on_ceph_fails_with_its_reason_in_time_and_is_taken_away(world: PretendWorld, case: Case) -> None:
    case.before(world)
    uid = world.create("a", **case.spec)
    ended = world.until_ended(uid)
    assert (ended["status"], ended["reason"]) == ("False", case.reason)
    for words in case.says:
        assert words in ended["message"]
    assert len(ended["message"]) < 1000
    assert "secret\n" not in ended["message"]
    run = world.until_settled(uid)
    assert run is not None
    assert kstatus(run) == "Failed"
    left = [obj for obj in world.cluster.kube.objects() if label(obj, naming.LABEL_RUN_UID) == uid]
    assert {obj["kind"] for obj in left} <= {"BenchmarkResult", "ConfigMap", "Secret"}
    assert {obj["metadata"]["namespace"] for obj in left} <= {NAMESPACE}
    assert world.conditions(uid)["CleanedUp"]["reason"] == ("Removed" if case.made else "NothingCreated")


def test_what_even_a_healthy_cluster_could_not_place_is_refused_while_it_is_not_healthy(world: PretendWorld) -> None:
    set_health("HEALTH_WARN")(world)
    take_osds(world)
    uid = world.create("a", **rook(pool={"replicated": {"size": 5}}))
    world.until(lambda: world.conditions(uid).get("Succeeded", {}).get("status") == "False", rounds=3)
    assert world.conditions(uid)["Succeeded"]["reason"] == "PoolNotFeasible"
    assert "needs 5" in world.conditions(uid)["Succeeded"]["message"]
    assert "there are 3" in world.conditions(uid)["Succeeded"]["message"]


def test_osds_that_may_come_back_are_waited_for_while_the_cluster_is_not_healthy(world: PretendWorld) -> None:
    set_health("HEALTH_WARN")(world)
    take_osds(world)
    uid = world.create("a", **ON_ROOK)
    world.until(lambda: world.conditions(uid).get("StorageReady", {}).get("reason") == "CephClusterNotReady")
    for osd in world.cluster.kube.objects("Deployment"):
        world.cluster.set_status(osd, availableReplicas=1)
    set_health("HEALTH_OK")(world)
    assert world.until_ended(uid)["status"] == "True"


def test_a_run_waits_for_a_cluster_that_gets_well_and_lets_nobody_wait_for_it(world: PretendWorld) -> None:
    set_health("HEALTH_ERR")(world)
    uid = world.create("a", **ON_ROOK)
    world.until(lambda: world.conditions(uid).get("StorageReady", {}).get("reason") == "CephClusterNotReady")
    assert world.conditions(uid)["Succeeded"]["status"] == "Unknown"
    set_health("HEALTH_OK")(world)
    assert world.until_ended(uid)["status"] == "True"


def test_a_stripe_unit_that_rook_knows_is_that_of_the_pool(world: PretendWorld) -> None:
    world.rook.knobs.haste = 4
    uid = world.create("a", **rook(pool={"erasureCoded": {**CODED, "stripeUnit": "16Ki"}}))
    world.until(lambda: world.conductors.loads)
    requests = world.cluster.kube.requests
    assert [asked for asked in requests if asked.startswith("dry run of CephBlockPool")]
    pools = {pool["metadata"]["name"]: pool for pool in world.cluster.of_run("CephBlockPool", uid)}
    data = pools[max(pools)]
    assert data["spec"]["erasureCoded"] == {**CODED, "stripeUnit": "16Ki"}
    assert world.until_ended(uid)["status"] == "True"


def test_a_dry_run_that_is_not_permitted_leaves_the_check_to_the_conductor(world: PretendWorld) -> None:
    world.rook.knobs.haste = 4
    refuse("dry run of", lambda asked: ForbiddenError(asked, "denied by a policy"))(world)
    uid = world.create("a", **rook(pool={"erasureCoded": {**CODED, "stripeUnit": "16Ki"}}))
    assert world.until_ended(uid)["status"] == "True"


def test_without_a_stripe_unit_nothing_is_rehearsed(world: PretendWorld) -> None:
    world.rook.knobs.haste = 4
    uid = world.create("a", **rook(pool={"erasureCoded": CODED}))
    world.until(lambda: world.conductors.loads)
    assert not [asked for asked in world.cluster.kube.requests if asked.startswith("dry run")]
    world.until_ended(uid)


def test_a_run_that_may_not_use_a_cluster_learns_nothing_of_it(world: PretendWorld) -> None:
    uid = world.create("a", **rook(cluster={"namespace": "other", "name": "c"}))
    world.until_settled(uid)
    assert not [asked for asked in world.cluster.kube.requests if "Ceph" in asked or "other" in asked]
