"""Runs on CephFS file systems that Rook creates for them. Rook and its CSI driver are stand-ins, Ceph is real."""

from typing import Any

import pytest

from ceph import Ceph, files_run
from support import RATE, Cluster, workload

pytestmark = pytest.mark.ceph

READ = workload(runtimeSeconds=10)
READ_BACK = workload(
    name="read-back",
    fio={"pattern": "read", "blockSize": ["64Ki"], "rateIops": RATE, "readBack": "NextClient"},
    runtimeSeconds=10,
)
WRITE = workload(name="write", fio={"pattern": "randwrite", "ioDepth": [4], "rateIops": 50}, runtimeSeconds=12)


def one_file(chosen: dict[str, Any]) -> dict[str, Any]:
    """Return the same workload on one file of all clients."""
    return chosen | {"fio": chosen["fio"] | {"files": "SharedFile"}}


@pytest.mark.parametrize(
    "workloads",
    [[READ, READ_BACK, WRITE], [one_file(READ), one_file(READ_BACK), one_file(WRITE)]],
    ids=["FilePerClient", "SharedFile"],
)
def test_clients_on_two_nodes_measure_one_volume_and_nothing_is_left(
    cluster: Cluster, clean: Ceph, namespace: str, workloads: list[dict[str, Any]]
) -> None:
    cluster.apply(files_run("files", namespace, workloads=workloads))
    cluster.until_measuring("files", namespace)
    (claim,) = cluster.items("persistentvolumeclaims", namespace)
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "128Mi"
    (file_system,) = clean.file_systems()
    pools = {each["name"]: each["stats"]["stored"] for each in clean.json("ceph", "df")["pools"]}
    assert pools[f"{file_system}-data0"] > 0, "the prefill reached the data pool"
    cluster.until_measured("files", namespace)
    results = cluster.results("files", namespace)
    assert len(results) == len(workloads)
    for result in results:
        environment = result["status"]["environment"]
        assert environment["ceph"]["fileSystem"] == {"name": file_system, "metadataServers": 1, "dataPools": 1}
        assert environment["ceph"]["clientPath"] == "CephFS"
        assert [pool["name"] for pool in environment["ceph"]["pools"]] == [
            f"{file_system}-metadata",
            f"{file_system}-data0",
        ]
        assert environment["pool"]["size"] == environment["pool"]["metadata"]["size"] == 3
        assert len(environment["nodes"]) == 2
    cluster.until_condition("files", namespace, "CleanedUp", reason="Removed")
    assert clean.leftovers() == []


def test_a_trial_in_which_a_metadata_server_is_replaced_does_not_count(
    cluster: Cluster, clean: Ceph, namespace: str
) -> None:
    cluster.apply(files_run("failing", namespace, workloads=[workload(runtimeSeconds=60)]))
    cluster.until_measuring("failing", namespace)
    (file_system,) = clean.file_systems()
    active = clean.active_metadata_server(file_system)
    assert active
    clean.fail_metadata_server(active)
    trial = cluster.until(
        lambda: next(iter(cluster.trials("failing", namespace)), None), seconds=180, what="the trial is recorded"
    )
    assert trial["verdict"] == "Invalid"
    assert "MetadataServersChanged" in {finding["reason"] for finding in trial["findings"]}
    cluster.kubectl("delete", "benchmarkrun", "failing", "-n", namespace, "--timeout=240s")
    assert clean.leftovers() == []


def test_a_deleted_run_leaves_no_file_system(cluster: Cluster, clean: Ceph, namespace: str) -> None:
    cluster.apply(files_run("doomed", namespace, workloads=[workload(runtimeSeconds=60)]))
    cluster.until_measuring("doomed", namespace)
    cluster.kubectl("delete", "benchmarkrun", "doomed", "-n", namespace, "--timeout=240s")
    assert clean.leftovers() == []
