"""Runs on CephFS file systems that Rook creates for them. Rook and its CSI driver are stand-ins, Ceph is real."""

from collections.abc import Iterator
from typing import Any

import pytest

from ceph import NAMESPACE, Ceph, files_run
from runs import LATE, RATE, workload
from support import Cluster

pytestmark = pytest.mark.ceph

FOREIGN = "e2e-files"
READ = workload(runtimeSeconds=10)
READ_BACK = workload(
    name="read-back",
    fio={"pattern": "read", "blockSize": ["64Ki"], "rateIops": RATE, "readBack": "NextClient"},
    runtimeSeconds=10,
)
LONG_NAME = "longer-than-its-file-system-may-be"
WRITE = workload(name="write", fio={"pattern": "randwrite", "ioDepth": [4], "rateIops": 50}, runtimeSeconds=12)


def one_file(chosen: dict[str, Any]) -> dict[str, Any]:
    """Return the same workload on one file of all clients."""
    return chosen | {"fio": chosen["fio"] | {"files": "SharedFile"}}


@pytest.mark.parametrize(
    "workloads",
    [
        pytest.param([READ, READ_BACK, WRITE], id="FilePerClient", marks=pytest.mark.thorough),
        pytest.param([one_file(READ), one_file(READ_BACK), one_file(WRITE)], id="SharedFile"),
    ],
)
def test_clients_on_two_nodes_measure_one_volume_and_nothing_is_left(
    cluster: Cluster, clean: Ceph, namespace: str, workloads: list[dict[str, Any]]
) -> None:
    cluster.apply(files_run(LONG_NAME, namespace, workloads=workloads))
    cluster.until_measuring(LONG_NAME, namespace)
    (claim,) = cluster.items("persistentvolumeclaims", namespace)
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "32Mi"
    (file_system,) = clean.file_systems()
    clean.check_rights(*clean.users(), pool=f"{file_system}-data0", file_system=file_system)
    prefilled = cluster.state(LONG_NAME, namespace)["prefill"]["totalBytes"]

    def is_stored() -> bool:
        stored = {each["name"]: each["stats"]["stored"] for each in clean.json("ceph", "df")["pools"]}
        return bool(stored[f"{file_system}-data0"] >= 0.95 * prefilled > 0)

    cluster.until(is_stored, seconds=40, what="the prefill of both clients is in the data pool")
    cluster.until_measured(LONG_NAME, namespace)
    results = {result["spec"]["workload"]: result for result in cluster.results(LONG_NAME, namespace)}
    assert results.keys() == {"read", "read-back", "write"}
    assert data_of(results["read"]) == data_of(results["write"])
    assert data_of(results["read-back"]) != data_of(results["read"]), "that of the next client"
    for result in results.values():
        environment = result["status"]["environment"]
        assert environment["ceph"]["fileSystem"] == {"name": file_system, "metadataServers": 1, "dataPools": 1}
        assert environment["ceph"]["clientPath"] == "CephFS"
        assert [pool["name"] for pool in environment["ceph"]["pools"]] == [
            f"{file_system}-metadata",
            f"{file_system}-data0",
        ]
        assert environment["pool"]["size"] == environment["pool"]["metadata"]["size"] == 3
        assert len(environment["nodes"]) == 2
    cluster.until_condition(LONG_NAME, namespace, "CleanedUp", reason="Removed")
    assert clean.leftovers() == []


def data_of(result: dict[str, Any]) -> set[str]:
    """Return the options with which the first client's fio was given its data set."""
    (*_, trial) = (trial for trial in result["status"]["trials"] if trial["outcome"] == "Measured")
    return {option for option in trial["tool"]["argv"] if option.startswith(("--filename=", "--offset="))}


@pytest.fixture
def foreign(cluster: Cluster, clean: Ceph) -> Iterator[str]:
    """Return a file system that does not belong to a run, which is also the name of its StorageClass."""
    clean.make_file_system(FOREIGN)
    secrets = {
        f"csi.storage.k8s.io/{purpose}-secret-{part}": value
        for purpose, name in (("provisioner", "rook-csi-cephfs-provisioner"), ("node-stage", "rook-csi-cephfs-node"))
        for part, value in (("name", name), ("namespace", NAMESPACE))
    }
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": FOREIGN},
        "provisioner": f"{NAMESPACE}.cephfs.csi.ceph.com",
        "parameters": {"clusterID": NAMESPACE, "fsName": FOREIGN, **secrets},
    }
    cluster.apply(storage_class)
    yield FOREIGN
    cluster.kubectl("delete", "storageclass", FOREIGN)
    clean.remove_file_system(FOREIGN)


def test_an_existing_file_system_is_measured_by_name_and_by_storage_class_and_stays(
    cluster: Cluster, clean: Ceph, namespace: str, foreign: str
) -> None:
    by_name = files_run("by-name", namespace, workloads=[READ_BACK])
    rook = by_name["spec"]["storage"]["rook"]
    rook["existingFileSystem"] = {"name": foreign}
    del rook["fileSystem"]
    cluster.apply(by_name)
    by_class = files_run("by-class", namespace, workloads=[READ_BACK])
    by_class["spec"]["storage"] = {"storageClass": {"name": foreign}, "volume": {"size": "16Mi", "sharing": "Shared"}}
    cluster.until_measured("by-name", namespace)
    (result,) = cluster.results("by-name", namespace)
    pools = [pool["name"] for pool in result["status"]["environment"]["ceph"]["pools"]]
    assert pools == [f"{foreign}-metadata", f"{foreign}-data0"]
    cluster.apply(by_class)
    cluster.until_measured("by-class", namespace)
    (result,) = cluster.results("by-class", namespace)
    assert "ceph" not in result["status"]["environment"], "nothing is known about what is behind a StorageClass"
    cluster.until(lambda: not clean.subvolumes(foreign), seconds=60, what="the volumes are removed")
    assert clean.json("ceph", "fs", "ls")[0]["name"] == foreign


@pytest.mark.fault(
    "Ceph",
    "A metadata server is replaced",
    "while measuring",
    ends="the trial is Invalid (`MetadataServersChanged`) and repeated",
    within="the end of the trial",
)
@pytest.mark.thorough
def test_a_trial_in_which_a_metadata_server_is_replaced_does_not_count(
    cluster: Cluster, clean: Ceph, namespace: str
) -> None:
    cluster.apply(files_run("failing", namespace, workloads=[workload(runtimeSeconds=30)]))
    trial = attempt_without_server(cluster, clean, namespace)
    while trial.get("abort", {}).get("reason") in LATE:
        trial = attempt_without_server(cluster, clean, namespace)
    assert (trial["outcome"], trial["verdict"]) == ("Measured", "Invalid")
    assert "MetadataServersChanged" in {finding["reason"] for finding in trial["findings"]}
    cluster.kubectl("delete", "benchmarkrun", "failing", "-n", namespace, "--timeout=240s")
    assert clean.leftovers() == []


def attempt_without_server(cluster: Cluster, ceph: Ceph, namespace: str) -> dict[str, Any]:
    """Have a standby take over from the metadata server during the current attempt, and return that attempt."""
    attempt = cluster.until_measuring("failing", namespace)["key"]["attempt"]
    (file_system,) = ceph.file_systems()
    active = cluster.until(
        lambda: ceph.active_metadata_server(file_system), seconds=60, what="a metadata server is active"
    )
    ceph.fail_metadata_server(active)

    def recorded() -> dict[str, Any] | None:
        trials = cluster.trials("failing", namespace)
        return next((trial for trial in trials if trial["attempt"] == attempt), None)

    return cluster.until(recorded, seconds=180, what="the attempt is recorded")


def test_a_deleted_run_leaves_no_file_system_although_its_key_was_rotated(
    cluster: Cluster, clean: Ceph, namespace: str
) -> None:
    """With the copy of the old key, the teardown Job could not connect."""
    cluster.apply(files_run("doomed", namespace, workloads=[workload(runtimeSeconds=60)]))
    cluster.until_measuring("doomed", namespace)
    clean.rotate_key()
    cluster.kubectl("delete", "benchmarkrun", "doomed", "-n", namespace, "--timeout=240s")
    assert clean.leftovers() == []
