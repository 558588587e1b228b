"""bonnie++ on the file systems of claims and of CephFS."""

from typing import Any

import pytest

from ceph import Ceph, files_run
from runs import run
from support import Cluster

SMALL: dict[str, Any] = {"size": "4Mi", "characters": False, "seeks": 256, "files": 1}
BONNIE = {"name": "phases", "bonnie": SMALL, "runtimeSeconds": 20, "rampSeconds": 0}
PHASES = {
    "write",
    "rewrite",
    "read",
    "seek",
    *(f"{phase}{order}" for phase in ("create", "stat", "delete") for order in ("Sequential", "Random")),
}


def untimed_phases(trial: dict[str, Any]) -> set[str]:
    """Return the phases that the trial's warnings call too fast to be timed."""
    lines = (warning.partition(": ")[2] for warning in trial.get("warnings", []))
    return {line.split()[0] for line in lines if "too fast to be timed" in line}


def assert_phases(result: dict[str, Any]) -> None:
    """Check that every phase has a rate of its own or was too fast, and that data in memory is not Valid."""
    assert result["spec"]["tool"] == "bonnie"
    measured = [trial for trial in result["status"]["trials"] if trial["outcome"] == "Measured"]
    assert measured
    for trial in measured:
        reasons = {finding["reason"] for finding in trial["findings"]}
        assert trial["verdict"] != "Valid"
        assert "ToolFailed" not in reasons
        if trial["verdict"] == "Invalid":
            continue
        assert "CacheSized" in reasons
        assert trial["tool"]["versions"] == ["bonnie 2.00a"]
        timed = {one["operation"] for one in trial["operations"]}
        assert timed | untimed_phases(trial) == PHASES
        for one in trial["operations"]:
            assert one["rates"]["iops"] > 0
            assert one["latency"]["kind"] in {"maxOnly", "none"}


def test_two_clients_measure_file_systems_and_leave_nothing(cluster: Cluster, namespace: str) -> None:
    cluster.apply(run("bonnie", namespace, workloads=[BONNIE], repetitions=2))
    cluster.until_over("bonnie", namespace)
    (result,) = cluster.results("bonnie", namespace)
    assert_phases(result)
    assert cluster.leftovers(namespace) == []


@pytest.mark.ceph
@pytest.mark.thorough
def test_two_clients_share_a_cephfs_volume(cluster: Cluster, clean: Ceph, namespace: str) -> None:
    created = files_run("bonnie", namespace, workloads=[{**BONNIE, "bonnie": {**SMALL, "size": "24Mi"}}])
    # Files and data sets together would exceed the quota, which CephFS does not enforce to the mebibyte.
    created["spec"]["storage"]["volume"]["size"] = "64Mi"
    cluster.apply(created)
    cluster.until_over("bonnie", namespace)
    (result,) = cluster.results("bonnie", namespace)
    assert_phases(result)
    cluster.until_condition("bonnie", namespace, "CleanedUp", reason="Removed")
    assert clean.leftovers() == []


def test_a_block_volume_is_refused(cluster: Cluster, namespace: str) -> None:
    storage = {"storageClass": {"name": "block"}, "volume": {"size": "64Mi", "mode": "Block"}}
    refused = cluster.refusal(run("blocks", namespace, workloads=[BONNIE], storage=storage))
    assert "must be Filesystem, because bonnie works on files and directories" in refused
