"""Volumes by PersistentVolumeClaims on pools that Rook creates. Rook and ceph-csi are stand-ins, Ceph is real."""

import base64
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ceph import NAMESPACE, OSDS, OURS, PLACEMENT_GROUPS, Ceph, erasure_coded, rook_run
from runs import workload
from support import Cluster

pytestmark = [pytest.mark.ceph, pytest.mark.tertiary]

CLIENTS = 2
SIZE = 64 * 2**20
SHORT = {"provisionSeconds": 90, "readySeconds": 60, "totalSeconds": 600}
"""Long enough for a busy machine to create pools and users, which comes before the claims."""
READS = workload(
    fio={"pattern": "read", "blockSize": ["64Ki"], "ioDepth": [4], "rateIops": 100, "until": "DataSetDone"},
    rampSeconds=0,
    runtimeSeconds=120,
)
WRITES = workload(name="write", fio={"pattern": "randwrite", "ioDepth": [4], "rateIops": 50}, runtimeSeconds=10)

# POOL: watch an image, as a node does that uses it. Prints the process and the image.
_WATCH = """
image=$(rbd ls "$1" | head -n 1)
sleep 300 2> /dev/null |
    sh -c 'echo $$ > /tmp/watcher; exec rbd watch "$1"' watch "$1/$image" > /tmp/watch 2> /dev/null &
for attempt in $(seq 100); do
    ! grep --quiet 'press enter' /tmp/watch || break
    sleep 0.2
done
grep --quiet 'press enter' /tmp/watch
echo "$(cat /tmp/watcher) $image"
"""


def claimed(name: str, namespace: str, **changes: Any) -> dict[str, Any]:
    """Return a run of two clients, each with a PVC with a file system in a pool that Rook creates."""
    manifest = rook_run(name, namespace, changes.pop("pool", None), **changes)
    manifest["spec"]["storage"]["volume"] = {"size": "64Mi"}
    return manifest


class Counters:
    """The bytes that clients have read from and written to the pools of runs, by the reports of the OSDs.

    The highest reports count: when a pool is scrubbed, as it may be after a run, Ceph corrects the statistics of its
    objects, and forgets what it has counted meanwhile. Reports come every five seconds.
    """

    SECONDS = 2
    """Between two looks, each of which starts a program."""

    def __init__(self, ceph: Ceph) -> None:
        self._ceph = ceph
        self.read: dict[str, int] = {}
        self.written: dict[str, int] = {}
        self._changed = time.monotonic()
        self._looked = 0.0

    def look(self) -> None:
        """Read the counters, unless that was just done."""
        if time.monotonic() - self._looked < self.SECONDS:
            return
        self._looked = time.monotonic()
        pools = self._ceph.json("rados", "df")["pools"]
        for found in (pool for pool in pools if pool["name"].startswith(OURS)):
            for highest, key in ((self.read, "read_bytes"), (self.written, "write_bytes")):
                if found[key] > highest.get(found["name"], 0):
                    highest[found["name"]] = found[key]
                    self._changed = time.monotonic()

    def are_final(self) -> bool:
        """Read them, and return whether they have not risen for two reports."""
        self.look()
        return time.monotonic() - self._changed > 11


def drop_page_cache(cluster: Cluster, node: str) -> None:
    """Drop the page cache, which holds what has been written to the images. All nodes share that of the machine."""
    cluster.docker("exec", node, "sh", "-c", "sync && echo 3 > /proc/sys/vm/drop_caches")


def until_phase(
    cluster: Cluster, name: str, namespace: str, *phases: str, each_time: Callable[[], None] | None = None
) -> None:
    """Return once a run's conductor is in one of these phases."""

    def there() -> bool:
        if each_time is not None:
            each_time()
        return cluster.state(name, namespace).get("phase") in phases

    cluster.until(there, seconds=400, what=f"{name} is {' or '.join(phases)}")


def volumes(cluster: Cluster, namespace: str) -> list[dict[str, Any]]:
    """Return the PersistentVolumes of a namespace's PVCs, also after these are gone."""
    found = cluster.api.objects("persistentvolumes")
    return [each for each in found if (each["spec"].get("claimRef") or {}).get("namespace") == namespace]


def test_all_bytes_of_block_volumes_reach_a_replicated_pool(cluster: Cluster, clean: Ceph, namespace: str) -> None:
    created = claimed("block", namespace, workloads=[READS], prepare={"settleSeconds": 40}, cleanup="Never")
    created["spec"]["storage"]["volume"]["mode"] = "Block"
    cluster.allow_root(namespace)
    cluster.apply(created)
    until_phase(cluster, "block", namespace, "Settling")
    drop_page_cache(cluster, cluster.client_pod("block", namespace, 0)["spec"]["nodeName"])
    counters = Counters(clean)
    cluster.until(counters.are_final, seconds=60, what="the prefill is counted")
    (pool,) = clean.pools()
    assert counters.written[pool] == pytest.approx(CLIENTS * SIZE, rel=0.05), "the prefill"
    assert counters.read.get(pool, 0) < 0.01 * SIZE
    assert cluster.state("block", namespace)["phase"] == "Settling"
    until_phase(cluster, "block", namespace, "Complete", each_time=counters.look)
    cluster.until(counters.are_final, seconds=60, what="the reads are counted")
    cluster.until_measured("block", namespace)
    # A further attempt reads data that has left the page cache.
    attempts = len(cluster.trials("block", namespace))
    # Ceph 20.2 was seen to report only 90 % of the reads; why is not known.
    assert 0.75 * CLIENTS * SIZE <= counters.read[pool] <= 1.05 * CLIENTS * SIZE * attempts
    assert counters.written[pool] == pytest.approx(CLIENTS * SIZE, rel=0.05)
    (result,) = cluster.results("block", namespace)
    environment = result["status"]["environment"]
    assert [each["name"] for each in environment["ceph"]["pools"]] == [pool]
    assert environment["pool"].items() >= {"type": "replicated", "size": OSDS, "pgNum": PLACEMENT_GROUPS}.items()
    bound = volumes(cluster, namespace)
    assert len(clean.json("rbd", "ls", pool)) == len(bound) == CLIENTS
    remove_kept(cluster, "block", namespace)
    assert volumes(cluster, namespace) == []


@pytest.mark.kills
def test_an_operator_that_dies_between_the_steps_of_a_teardown_leaves_nothing(
    cluster: Cluster, clean: Ceph, namespace: str
) -> None:
    """On an erasure-coded pool with file systems, which has the most steps; with the optimizations of Ceph 20."""
    pool = erasure_coded(stripeUnit="16Ki", optimizations=True)
    manifest = claimed("coded", namespace, pool=pool, workloads=[WRITES], cleanup="Never")
    cluster.apply(manifest)
    cluster.until_measuring("coded", namespace)
    nodes = {cluster.client_pod("coded", namespace, client)["spec"]["nodeName"] for client in range(CLIENTS)}
    assert len(nodes) == CLIENTS
    cluster.until_measured("coded", namespace)
    (data,) = (name for name in clean.pools() if name.endswith("-data"))
    (stored,) = (pool["stats"]["stored"] for pool in clean.json("ceph", "df")["pools"] if pool["name"] == data)
    assert stored >= cluster.state("coded", namespace)["prefill"]["totalBytes"] > CLIENTS * SIZE / 2
    (result,) = cluster.results("coded", namespace)
    environment = result["status"]["environment"]
    assert {each["name"] for each in environment["ceph"]["pools"]} == set(clean.pools())
    assert environment["pool"].items() >= {"stripeUnit": 16384, "ecOptimizations": True}.items()
    steps = remove_kept(cluster, "coded", namespace, kill=True)
    # How many more of the steps a look at the condition sees depends on when the next operator leads.
    assert len(steps) >= 3, steps
    assert volumes(cluster, namespace) == []


def remove_kept(cluster: Cluster, name: str, namespace: str, *, kill: bool = False) -> list[str]:
    """Remove what a run keeps, and return the messages of the removal; kill the operator after each of them."""
    kept = cluster.condition(name, namespace, "CleanedUp")
    assert kept is not None
    assert kept["reason"] == "StorageKept"
    patch = json.dumps({"spec": {"cleanup": "Always"}})
    cluster.kubectl("patch", "benchmarkrun", name, "-n", namespace, "--type=merge", "-p", patch)
    steps: list[str] = []

    def removed() -> bool:
        now = cluster.condition(name, namespace, "CleanedUp")
        assert now is not None
        if now["reason"] not in {"StorageKept", "Removed"} and now["message"] not in steps:
            steps.append(now["message"])
            if kill:
                cluster.kill_operator()
        return now["reason"] == "Removed"

    cluster.until(removed, seconds=300, what="everything is removed")
    return steps


@pytest.mark.thorough
def test_a_run_that_is_deleted_with_its_namespace_leaves_no_volume(
    cluster: Cluster, clean: Ceph, namespace: str
) -> None:
    """operator/tests/deletion deletes such runs in other phases, without a Ceph."""
    cluster.apply(claimed("doomed", namespace, workloads=[WRITES]))
    cluster.until_measuring("doomed", namespace)
    cluster.kubectl("delete", "namespace", namespace, "--timeout=240s")
    assert volumes(cluster, namespace) == []
    assert clean.leftovers() == []


@pytest.mark.fault(
    "Storage",
    "A volume's image is still in use",
    "while cleaning up",
    ends="`CleanedUp=False` names the image; it is removed when it is released",
    within="as soon as it is released",
)
@pytest.mark.thorough
def test_an_image_in_use_delays_its_removal_and_is_named(cluster: Cluster, clean: Ceph, namespace: str) -> None:
    cluster.apply(claimed("watched", namespace, workloads=[workload(runtimeSeconds=60)]))
    cluster.until_measuring("watched", namespace)
    (pool,) = clean.pools()
    process, image = clean.admin("sh", "-ec", _WATCH, "watch", pool).split()
    cluster.kubectl("delete", "benchmarkrun", "watched", "-n", namespace, "--wait=false")

    def is_named() -> bool:
        cleaned = cluster.condition("watched", namespace, "CleanedUp") or {"message": ""}
        return f"rbd {image} is still being used" in cleaned["message"]

    try:
        cluster.until(is_named, seconds=120, what="the image is named as the obstacle")
        assert clean.pools() == [pool]
    finally:
        # A node that loses its power does not say goodbye: Ceph forgets such a watcher after 30 seconds.
        clean.admin("sh", "-ec", 'kill -KILL "$1"', "kill", process)
    cluster.kubectl("wait", "--for=delete", "benchmarkrun/watched", "-n", namespace, "--timeout=240s")
    assert volumes(cluster, namespace) == []


@pytest.mark.fault(
    "Storage",
    "The provisioner does not run",
    "while provisioning",
    ends="`Succeeded=False`, `ClaimsNotBound`: the message names the provisioner",
    within="`timeouts.provisionSeconds`",
)
@pytest.mark.thorough
def test_a_provisioner_that_does_not_run_ends_the_run_within_its_deadline(
    cluster: Cluster, clean: Ceph, namespace: str
) -> None:
    with provisioner_down(cluster):
        cluster.apply(claimed("unserved", namespace, timeouts=SHORT))
        ended = cluster.until_over("unserved", namespace, seconds=240)
    assert (ended["status"], ended["reason"]) == ("False", "ClaimsNotBound"), cluster.diagnosis("unserved", namespace)
    assert f"{NAMESPACE}.rbd.csi.ceph.com" in ended["message"], "Kubernetes names the provisioner it waits for"
    assert clean.leftovers() == []
    assert cluster.leftovers(namespace) == []


@pytest.mark.thorough
def test_a_wrong_key_of_the_provisioner_is_reported(cluster: Cluster, clean: Ceph, namespace: str) -> None:
    with wrong_key(cluster, clean):
        cluster.apply(claimed("locked-out", namespace, timeouts=SHORT))
        ended = cluster.until_over("locked-out", namespace, seconds=240)
    assert (ended["status"], ended["reason"]) == ("False", "ClaimsNotBound"), cluster.diagnosis("locked-out", namespace)
    assert "failed to get connection" in ended["message"]
    assert cluster.leftovers(namespace) == []


@contextmanager
def provisioner_down(cluster: Cluster) -> Iterator[None]:
    """Stop the provisioner of the volumes."""
    scale = ("scale", "deployment/csi-provisioner", "-n", NAMESPACE)
    cluster.kubectl(*scale, "--replicas=0")
    cluster.kubectl("wait", "--for=delete", "pod", "-l", "app=csi-provisioner", "-n", NAMESPACE, "--timeout=240s")
    try:
        yield
    finally:
        cluster.kubectl(*scale, "--replicas=1")
        cluster.kubectl("rollout", "status", "deployment/csi-provisioner", "-n", NAMESPACE, "--timeout=240s")


@contextmanager
def wrong_key(cluster: Cluster, ceph: Ceph) -> Iterator[None]:
    """Give the provisioner the key of another user."""
    name = "rook-csi-rbd-provisioner"
    right = cluster.object("secrets", name, NAMESPACE)["data"]["userKey"]
    wrong = base64.b64encode(ceph.admin("ceph", "auth", "get-key", "client.csi-rbd-node").strip().encode()).decode()

    def write(key: str) -> None:
        patch = json.dumps({"data": {"userKey": key}})
        cluster.kubectl("patch", "secret", name, "-n", NAMESPACE, "--type=merge", "-p", patch)

    write(wrong)
    try:
        yield
    finally:
        write(right)
