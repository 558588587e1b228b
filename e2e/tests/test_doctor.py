"""`plimsoll doctor` finds nothing wrong with this cluster, and names what is wrong with a namespace."""

import json
import subprocess
import sys

from runs import STORAGE_CLASS
from support import Cluster

Findings = dict[str, dict[str, str]]


def examine(cluster: Cluster, namespace: str) -> tuple[int, Findings]:
    """Return the exit code, and the findings by their checks."""
    options = ("--namespace", namespace, "--storage-class", STORAGE_CLASS, "--output", "json")
    done = subprocess.run(
        [sys.executable, "-m", "plimsoll", "doctor", *options],
        capture_output=True,
        text=True,
        check=False,
        env=cluster.environment,
    )
    assert done.returncode in {0, 1}, done
    return done.returncode, {finding["check"]: finding for finding in json.loads(done.stdout)}


def problems(findings: Findings) -> Findings:
    """Return what does not work; the Cephs may not be up yet, and belong to other tests."""
    bad = {check: each for check, each in findings.items() if each["state"] in {"problem", "unknown"}}
    return {check: each for check, each in bad.items() if not check.startswith("Rook")}


def test_all_is_well_until_a_quota_leaves_no_room(cluster: Cluster, namespace: str) -> None:
    def is_well() -> Findings | None:
        # Another test may have killed the leader just now.
        findings = examine(cluster, namespace)[1]
        return None if problems(findings) else findings

    findings = cluster.until(is_well, seconds=60, what=f"nothing is wrong: {problems(examine(cluster, namespace)[1])}")
    assert findings["Operator"]["text"].startswith("plimsoll-system/plimsoll: ")
    assert findings["Pod Security"]["text"].startswith("enforces restricted: ")
    assert findings["Watched"]["text"] == "all namespaces"
    assert findings["Nodes"]["text"].startswith("2 of 3 nodes for pods, ")
    assert findings[f"StorageClass {STORAGE_CLASS}"]["text"].startswith("plimsoll.dev/volumes, WaitForFirstConsumer")
    assert any(check.startswith("Rook rook-ceph") for check in findings)

    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "tight", "namespace": namespace}}
    cluster.apply({**quota, "spec": {"hard": {"pods": "0"}}})
    code, findings = examine(cluster, namespace)
    assert code == 1
    assert findings["New pod"]["state"] == "problem"
    assert "leaves no room for a run (pods: " in findings["Quota tight"]["text"]
    assert findings["Quota tight"]["fix"] == f"kubectl --namespace {namespace} edit resourcequota tight"
