"""Runs on pools that Rook creates for them. Rook is a stand-in, Ceph is real."""

from typing import Any

import pytest

from ceph import ADMINISTRATOR, ADMINISTRATOR_KEYRING, OSDS, PLACEMENT_GROUPS, Ceph, erasure_coded, replicated, rook_run
from runs import LATE, RATE, workload
from support import Cluster

pytestmark = pytest.mark.ceph

FIO = workload(fio={"pattern": "randread", "ioDepth": [1, 4], "rateIops": RATE}, clients=[1, 3], runtimeSeconds=10)
WRITES = workload(name="write", fio={"pattern": "randwrite", "ioDepth": [4], "rateIops": 50}, runtimeSeconds=12)
EXISTING = "e2e-another-users"
SHORT = {"runtimeSeconds": 5, "rampSeconds": 1, "clients": [1]}
OBJECTS = {"objectSize": ["64Ki"], "concurrency": [2]}
LAYERS = [
    {
        "name": "osd",
        "osdBench": {
            "blockSize": ["64Ki"],
            "totalSize": "4Mi",
            "user": ADMINISTRATOR,
            "keyringSecret": {"name": ADMINISTRATOR_KEYRING},
        },
        **SHORT,
    },
    {"name": "rados-write", "radosBench": {"operation": "write", **OBJECTS}, **SHORT},
    {
        # One operation at a time, so that reading does not run out of objects.
        "name": "rados-seq",
        "radosBench": {"operation": "seq", **OBJECTS, "concurrency": [1], "writeSeconds": 30},
        **SHORT,
    },
    {"name": "rados-rand", "radosBench": {"operation": "rand", **OBJECTS}, **SHORT},
    {"name": "rbd", "rbdBench": {"operation": "write", "concurrency": [2]}, **SHORT},
]


def rate(result: dict[str, Any]) -> tuple[float, float]:
    """Return operations and bytes per second of the first operation in a result's last measurement.

    A busy machine may have made the point Invalid, which then has no summary.
    """
    measured = [trial for trial in result["status"]["trials"] if trial["outcome"] == "Measured"]
    rates = measured[-1]["operations"][0]["rates"]
    return float(rates["iops"]), float(rates["bytesPerSecond"])


def test_only_the_operator_can_claim_from_the_storage_class_of_a_run(cluster: Cluster, namespace: str) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "mine", "namespace": namespace},
        "spec": spec | {"storageClassName": "plimsoll-layers-0123abcd"},
    }
    assert "belongs to one BenchmarkRun" in cluster.refusal(claim)


@pytest.mark.secondary
def test_an_erasure_coded_pool_is_measured_and_removed_before_the_next_run_starts(
    cluster: Cluster, clean: Ceph, namespace: str
) -> None:
    cluster.apply(rook_run("coded", namespace, erasure_coded(), workloads=[WRITES]))
    cluster.until_condition("coded", namespace, "Admitted", status="True")
    cluster.apply(rook_run("second", namespace))
    waiting = cluster.until_condition("second", namespace, "Reconciling", reason="WaitingForTurn", seconds=30)
    assert f"{namespace}/coded" in waiting["message"]
    cluster.until_measuring("coded", namespace)
    assert len(clean.pools()) == 2, "only those of the first run"
    (data,) = (name for name in clean.pools() if name.endswith("-data"))
    clean.check_rights(*clean.users(), pool=data)
    stored = clean.json("ceph", "df")["pools"]
    assert any(pool["name"] == data and pool["stats"]["stored"] > 0 for pool in stored)
    cluster.until_succeeded("coded", namespace)
    (result,) = cluster.results("coded", namespace)
    assert 0 < rate(result)[0] <= 110
    cluster.until_measured_in_turn("coded", "second", namespace)


@pytest.mark.secondary
def test_optimizations_that_an_older_ceph_lacks_are_refused_before_anything_is_created(
    cluster: Cluster, clean: Ceph, namespace: str
) -> None:
    cluster.apply(rook_run("fast", namespace, erasure_coded(stripeUnit="16Ki", optimizations=True)))
    ended = cluster.until_over("fast", namespace, seconds=60)
    assert (ended["status"], ended["reason"]) == ("False", "CephTooOld")
    assert "pool.erasureCoded.optimizations: " in ended["message"]
    assert "runs Ceph 18.2." in ended["message"]
    assert clean.pools() == []


@pytest.mark.secondary
@pytest.mark.thorough
def test_a_run_that_is_deleted_with_its_namespace_leaves_nothing(cluster: Cluster, clean: Ceph, namespace: str) -> None:
    """operator/tests/deletion deletes runs on Rook in other ways and earlier, without a Ceph."""
    cluster.apply(rook_run("doomed", namespace, workloads=[workload(runtimeSeconds=60)]))
    cluster.until_measuring("doomed", namespace)
    cluster.kubectl("delete", "namespace", namespace, "--timeout=240s")
    assert clean.leftovers() == []


@pytest.mark.fault(
    "Ceph",
    "Placement groups of the run's pool are inactive",
    "while cleaning up",
    ends="`CleanedUp=False`, `PlacementGroupsInactive`, until they are active; Rook serves other pools meanwhile",
    within="as soon as they are active",
)
@pytest.mark.secondary
def test_a_pool_with_inactive_groups_is_kept_until_they_are_active_without_blocking_others(
    cluster: Cluster, clean: Ceph, namespace: str
) -> None:
    """Deleting the pool while its OSDs are down would block Rook for all users."""
    timeouts = {"provisionSeconds": 75, "readySeconds": 60, "totalSeconds": 600}
    clean.until_rook_is_healthy()
    try:
        # Rook is to meet the pool after its OSDs are down, not when it pleases: the run would measure.
        with clean.while_rook_is_stopped():
            cluster.apply(rook_run("broken", namespace, timeouts=timeouts))
            (pool,) = cluster.until(clean.rook_pools, seconds=60, what="the run creates its CephBlockPool")
            for osd in (0, 1):
                clean.stop_osd(osd)
            clean.until_osds_down(2)
        cleaned = cluster.until_condition("broken", namespace, "CleanedUp", reason="PlacementGroupsInactive")
        assert "PG_AVAILABILITY" in cleaned["message"]
        clean.make_rook_pool(EXISTING)
        cluster.until(lambda: clean.phase(EXISTING), seconds=90, what="Rook reconciles another user's pool")
        assert clean.rook_pools() == [pool]
        assert not clean.is_being_deleted(pool)
    finally:
        for osd in (0, 1):
            clean.start_osd(osd)
        clean.until_healthy()
        clean.remove_rook_pool(EXISTING)
    ended = cluster.until_over("broken", namespace)
    assert ended["status"] == "False"
    cleaned_up = cluster.condition("broken", namespace, "CleanedUp")
    assert cleaned_up is not None
    assert cleaned_up["reason"] == "Removed"


def test_an_infeasible_pool_is_refused_before_it_is_created(cluster: Cluster, clean: Ceph, namespace: str) -> None:
    cluster.apply(rook_run("wide", namespace, replicated(5)))
    ended = cluster.until_over("wide", namespace, seconds=60)
    assert (ended["status"], ended["reason"]) == ("False", "PoolNotFeasible")
    for host in range(OSDS):
        assert f"ceph-host-{host}" in ended["message"]
    assert clean.pools() == []


def test_a_cluster_that_is_not_allowed_is_refused(cluster: Cluster, clean: Ceph, namespace: str) -> None:
    manifest = rook_run("stranger", namespace)
    manifest["spec"]["storage"]["rook"]["cluster"]["name"] = "another"
    cluster.apply(manifest)
    ended = cluster.until_over("stranger", namespace, seconds=60)
    assert (ended["status"], ended["reason"]) == ("False", "RookClusterNotAllowed")
    assert namespace in ended["message"]
    assert clean.pools() == []


@pytest.mark.secondary
def test_an_existing_pool_of_an_external_cluster_is_measured_and_a_new_one_refused(
    cluster: Cluster, clean: Ceph, namespace: str
) -> None:
    """The stand-in has the administrator's key, without which Rook manages no pools of an external cluster."""
    clean.make_rook_pool(EXISTING)
    try:
        clean.until_rook_pool_is_ready(EXISTING)
        with clean.external():
            cluster.apply(rook_run("new", namespace))
            ended = cluster.until_over("new", namespace, seconds=60)
            assert (ended["status"], ended["reason"]) == ("False", "PoolNotFeasible")
            assert "rook-ceph is external" in ended["message"]
            assert "use existingPool instead" in ended["message"]
            manifest = rook_run("connected", namespace)
            del manifest["spec"]["storage"]["rook"]["pool"]
            manifest["spec"]["storage"]["rook"]["existingPool"] = {"name": EXISTING}
            cluster.apply(manifest)
            cluster.until_succeeded("connected", namespace)
        (result,) = cluster.results("connected", namespace)
        assert rate(result)[0] == pytest.approx(2 * RATE, rel=0.1)
        assert [pool["name"] for pool in result["status"]["environment"]["ceph"]["pools"]] == [EXISTING]
    finally:
        clean.remove_rook_pool(EXISTING)


def test_a_pool_with_two_copies_in_each_failure_domain_gets_its_rule_and_is_refused_where_it_does_not_fit(
    cluster: Cluster, clean: Ceph, namespace: str
) -> None:
    """Three OSDs cannot hold four copies: Rook creates such a pool all the same, and the operator refuses it."""
    copies = {"size": 4, "replicasPerFailureDomain": 2, "subFailureDomain": "osd"}
    pool = {"failureDomain": "host", "replicated": copies}
    cluster.apply(rook_run("stretched", namespace, pool | {"placementGroups": PLACEMENT_GROUPS}))
    ended = cluster.until_over("stretched", namespace, seconds=60)
    assert (ended["status"], ended["reason"]) == ("False", "PoolNotFeasible")
    assert "the pool needs 2 failure domains of type host" in ended["message"]
    assert "each with 2 of type osd, one for each copy, but there are 0" in ended["message"]
    assert clean.pools() == []
    try:
        clean.make_rook_pool(EXISTING, **pool)
        clean.until_rook_pool_is_ready(EXISTING)
        steps = clean.json("ceph", "osd", "crush", "rule", "dump", EXISTING)["steps"]
        chosen = [(step["op"], step["num"], step["type"]) for step in steps if step["op"].startswith("choose")]
        assert chosen == [("choose_firstn", 0, "host"), ("chooseleaf_firstn", 2, "osd")]
    finally:
        clean.remove_rook_pool(EXISTING)
        clean.until_healthy()
        clean.until_rook_is_healthy()


@pytest.mark.thorough
def test_data_that_does_not_fit_is_refused_with_the_numbers(cluster: Cluster, clean: Ceph, namespace: str) -> None:
    manifest = rook_run("greedy", namespace)
    manifest["spec"]["storage"]["volume"]["size"] = "4Gi"
    cluster.apply(manifest)
    ended = cluster.until_over("greedy", namespace)
    assert (ended["status"], ended["reason"]) == ("False", "ClusterTooFull")
    assert "spec.limits.fillPercent is 70, but the run's volumes (8Gi without copies, of " in ended["message"]
    assert cluster.trials("greedy", namespace) == []
    assert clean.leftovers() == []


@pytest.mark.fault(
    "Ceph",
    "A pool reaches its quota",
    "while measuring",
    ends="`Succeeded=False`, `QuotaReached`; the pool is removed",
    within="15 s after Ceph reports it",
)
@pytest.mark.thorough
def test_a_pool_at_its_quota_ends_the_run_and_is_removed(cluster: Cluster, clean: Ceph, namespace: str) -> None:
    """The quota of the run would take minutes to reach."""
    clean.until_rook_is_healthy()
    writes = {"name": "fill", "radosBench": {"operation": "write", **OBJECTS}, "runtimeSeconds": 120}
    manifest = rook_run("filler", namespace, workloads=[writes])
    del manifest["spec"]["storage"]["volume"]
    cluster.apply(manifest)
    cluster.until_measuring("filler", namespace)
    (pool,) = clean.pools()
    assert 2**30 < clean.quota(pool) < 8 * 2**30
    clean.admin("ceph", "osd", "pool", "set-quota", pool, "max_bytes", str(2**20))
    ended = cluster.until_over("filler", namespace)
    assert (ended["status"], ended["reason"]) == ("False", "QuotaReached")
    assert pool in ended["message"]
    assert [trial["abort"]["reason"] for trial in cluster.trials("filler", namespace)] == ["QuotaReached"]
    assert clean.leftovers() == []
    clean.until_healthy()


@pytest.mark.fault(
    "Ceph",
    "An OSD becomes nearly full",
    "while measuring",
    ends="`Succeeded=False`, `ClusterAtRisk`; the load stops",
    within="15 s after Ceph reports it",
)
def test_an_osd_that_becomes_nearfull_under_load_ends_the_run(cluster: Cluster, clean: Ceph, namespace: str) -> None:
    clean.until_rook_is_healthy()
    cluster.apply(rook_run("risky", namespace, workloads=[workload(runtimeSeconds=120)]))
    cluster.until_measuring("risky", namespace)
    try:
        clean.admin("ceph", "osd", "set-nearfull-ratio", "0.001")
        assert_ended_at_risk(cluster, "risky", namespace, "OSD_NEARFULL")
    finally:
        clean.admin("ceph", "osd", "set-nearfull-ratio", "0.85")
        clean.until_healthy()
        clean.until_rook_is_healthy()
    assert clean.leftovers() == []


@pytest.mark.fault(
    "Ceph",
    "A monitor leaves the quorum",
    "while measuring",
    ends="`Succeeded=False`, `ClusterAtRisk`; the load stops",
    within="15 s after Ceph reports it",
)
@pytest.mark.tertiary
def test_a_monitor_that_leaves_the_quorum_under_load_ends_the_run(
    cluster: Cluster, clean: Ceph, namespace: str
) -> None:
    with clean.three_monitors():
        clean.until_healthy()
        clean.until_rook_is_healthy()
        cluster.apply(rook_run("risky", namespace, workloads=[workload(runtimeSeconds=120)]))
        cluster.until_measuring("risky", namespace)
        clean.stop_monitor()
        assert_ended_at_risk(cluster, "risky", namespace, "MON_DOWN")
        assert clean.leftovers() == []
    clean.until_healthy()
    clean.until_rook_is_healthy()


def assert_ended_at_risk(cluster: Cluster, name: str, namespace: str, check: str) -> None:
    """Check that a health check ends a run with the trial in flight; earlier attempts may have started late."""
    ended = cluster.until_over(name, namespace)
    assert (ended["status"], ended["reason"]) == ("False", "ClusterAtRisk")
    assert f"{check} appeared while the run loaded the cluster" in ended["message"]
    *earlier, last = [trial["abort"]["reason"] for trial in cluster.trials(name, namespace)]
    assert last == "ClusterAtRisk"
    assert set(earlier) <= LATE


# Last, when few other tests run: at full speed, a busy machine looks like freezing storage.
def test_every_tool_measures_a_replicated_pool_without_leaks(cluster: Cluster, clean: Ceph, namespace: str) -> None:
    clean.give_administration(namespace)
    clean.until_rook_is_healthy()
    cluster.apply(rook_run("layers", namespace, clients={"count": 3}, workloads=[FIO, *LAYERS]))
    cluster.until_measuring("layers", namespace)
    (pool,) = clean.pools()
    assert clean.flags(pool) == {"noscrub", "nodeep-scrub"}
    clean.check_rights(*clean.users(), pool=pool)
    nodes = {cluster.client_pod("layers", namespace, client)["spec"]["nodeName"] for client in range(3)}
    assert len(nodes) == 2
    cluster.until_succeeded("layers", namespace, seconds=500)
    results = cluster.results("layers", namespace)
    assert len(results) == 4 + len(LAYERS)
    for result in results:
        iops, throughput = rate(result)
        assert iops > 0
        assert throughput > 0
        if result["spec"]["workload"] == "read":
            offered = RATE * result["spec"]["clients"]
            assert iops < 1.1 * offered
            reasons = {finding["reason"] for finding in result["status"].get("findings", ())}
            # A busy machine may serve less, which the verdict has to say.
            assert iops > 0.9 * offered or "NotAchieved" in reasons
        elif result["spec"]["workload"].startswith("rados"):
            assert throughput == pytest.approx(iops * 65536, rel=0.01)
    assert cluster.warnings("layers", namespace) == []
    assert_provenance(clean, results[0], pool)
    assert cluster.leftovers(namespace) == []
    assert clean.leftovers() == []


def assert_provenance(ceph: Ceph, result: dict[str, Any], pool: str) -> None:
    """Check that a result describes its Ceph, its pool and its OSDs."""
    environment = result["status"]["environment"]
    described = environment["ceph"]
    assert described["fsid"] == ceph.admin("ceph", "fsid").strip()
    assert described["versions"].split()[0] in ceph.admin("ceph", "version")
    assert [each["name"] for each in described["pools"]] == [pool]
    assert described["osds"]["count"] == described["osds"]["up"] == described["osds"]["in"] == OSDS
    assert described["settings"]["capacityIops"]["ssd"]["equal"]
    assert described["settings"]["mclockProfiles"]
    assert "unread" not in described
    layout = {"type": "replicated", "size": 3, "failureDomain": "host", "pgNum": PLACEMENT_GROUPS}
    assert environment["pool"].items() >= layout.items()
