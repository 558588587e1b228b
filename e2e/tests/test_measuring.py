"""Runs that measure: their results and evidence."""

import re
import subprocess
import sys
from typing import Any

import pytest

from runs import MEASURED, RATE, STORAGE_CLASS, assert_measured_once, run, workload
from support import Cluster


def test_three_clients_on_two_workers_measure_a_file_system(cluster: Cluster, namespace: str) -> None:
    cluster.apply(run("files", namespace, clients={"count": 3}, workloads=[workload(clients=[1, 3])]))
    ended = cluster.until_succeeded("files", namespace)
    assert ended["reason"] in {"Valid", "Suspect"}
    status = cluster.run("files", namespace)["status"]
    assert status["points"] == {"total": 2, "completed": 2, "invalid": 0}
    assert [entry["workload"] for entry in status["headline"]] == ["read", "read"]
    for result in cluster.results("files", namespace):
        clients = result["spec"]["clients"]
        assert result["status"]["final"]
        assert result["status"]["summary"]["operations"][0]["iops"]["mean"] == pytest.approx(RATE * clients, rel=0.1)
        assert len(result["status"]["environment"]["nodes"]) == 2
        for trial in result["status"]["trials"]:
            if trial["outcome"] == "Measured" and trial["verdict"] != "Invalid":
                assert_evidence(trial["tool"])
    assert cluster.leftovers(namespace) == []
    assert cluster.warnings("files", namespace) == []
    table = cluster.kubectl("get", "brun", "files", "-n", namespace)
    assert "4/4" in table


def test_one_command_measures_a_storage_class_and_leaves_nothing(cluster: Cluster, namespace: str) -> None:
    load = ("--pattern=randread", "--block-size=256Ki", "--depth=1", "--size=64Mi", "--runtime=5s")
    options = ("--storage-class", STORAGE_CLASS, "--namespace", namespace, "--yes", "--rm", "--timeout", "5m")
    done = subprocess.run(
        [sys.executable, "-m", "plimsoll", "run", *options, *load],
        capture_output=True,
        text=True,
        check=False,
        env=cluster.environment,
    )
    assert done.returncode in {0, 5}, done
    assert f"Target     storageClass/{STORAGE_CLASS}" in done.stdout
    (ending,) = re.findall(r"^Run \S+ (?:ended|did not succeed): (\w+): ", done.stdout, re.MULTILINE)
    assert ending in MEASURED
    # The width decides where the label is. Where every trial is Invalid, there are no numbers to show.
    row = re.search(r"^randread +(?:randread 256Ki qd1 +)?1 +read ", done.stdout, re.MULTILINE)
    assert row or ending == "InvalidResults", done.stdout
    assert cluster.api.objects("benchmarkruns,benchmarkresults", namespace) == []
    assert cluster.leftovers(namespace) == []


def assert_evidence(tool: dict[str, Any]) -> None:
    """Check that a trial contains the tool's version, its arguments and the digest of its output."""
    (version,) = tool["versions"]
    assert re.fullmatch(r"fio \d+\.\d+.*", version)
    assert "--rw=randread" in tool["argv"]
    assert re.fullmatch(r"[0-9a-f]{64}", tool["rawSha256"])


def test_two_clients_measure_block_volumes(cluster: Cluster, namespace: str) -> None:
    cluster.recycle()
    storage = {"storageClass": {"name": "block"}, "volume": {"size": "512Mi", "mode": "Block"}}
    cluster.apply(run("refused", namespace, storage=storage))
    ended = cluster.until_over("refused", namespace, seconds=60)
    assert (ended["status"], ended["reason"]) == ("False", "PodSecurityTooStrict")
    cluster.allow_root(namespace)
    cluster.apply(run("blocks", namespace, storage=storage, repetitions=1))
    cluster.until_measuring("blocks", namespace)
    pod = cluster.client_pod("blocks", namespace, 0)
    assert pod["spec"]["securityContext"]["runAsUser"] == 0
    security = pod["spec"]["containers"][0]["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert security["allowPrivilegeEscalation"] is False
    cluster.until_succeeded("blocks", namespace)
    (result,) = cluster.results("blocks", namespace)
    assert result["status"]["environment"]["dataSetBytes"]["min"] >= 512 * 2**20
    assert cluster.leftovers(namespace) == []


def test_retained_results_block_a_run_of_the_same_name(cluster: Cluster, namespace: str) -> None:
    cluster.apply(run("kept", namespace, results="Retain", repetitions=1))
    cluster.until_over("kept", namespace)
    cluster.kubectl("delete", "benchmarkrun", "kept", "-n", namespace, "--timeout=240s")
    (result,) = cluster.results("kept", namespace)
    assert result["status"]["final"]
    cluster.apply(run("kept", namespace))
    ended = cluster.until_over("kept", namespace, seconds=60)
    assert (ended["status"], ended["reason"]) == ("False", "ResultsExist")
    assert "kept-read-000" in ended["message"]


def test_results_are_deleted_with_their_run_by_default(cluster: Cluster, namespace: str) -> None:
    cluster.apply(run("gone", namespace, repetitions=1, ttlSecondsAfterFinished=1))
    cluster.until(lambda: cluster.results("gone", namespace), seconds=60, what="the results exist")
    cluster.until(
        lambda: not cluster.exists("benchmarkruns", "gone", namespace), seconds=240, what="the TTL deletes it"
    )
    cluster.until(lambda: not cluster.results("gone", namespace), seconds=60, what="its results are deleted")


def test_runs_on_the_same_target_take_turns(cluster: Cluster, namespace: str) -> None:
    cluster.apply(run("first", namespace, repetitions=1))
    cluster.until_condition("first", namespace, "Admitted", status="True")
    cluster.apply(run("second", namespace, repetitions=1))
    waiting = cluster.until_condition("second", namespace, "Reconciling", reason="WaitingForTurn", seconds=30)
    assert f"{namespace}/first" in waiting["message"]
    assert "position 1" in waiting["message"]
    assert not cluster.items("pods", namespace, run="second")
    cluster.until_measured_in_turn("first", "second", namespace)


def test_suspend_keeps_the_volumes_and_resume_continues(cluster: Cluster, namespace: str) -> None:
    cluster.apply(run("paused", namespace, repetitions=3))
    cluster.until(lambda: len(cluster.trials("paused", namespace)) == 1, seconds=180, what="one trial is recorded")
    cluster.until_measuring("paused", namespace)
    cluster.suspend("paused", namespace, suspend=True)
    cluster.until_condition("paused", namespace, "Suspended", status="True", seconds=60)
    cluster.until(lambda: not cluster.items("pods", namespace, run="paused"), seconds=60, what="the pods are gone")
    assert len(cluster.items("persistentvolumeclaims", namespace, run="paused")) == 2
    cluster.suspend("paused", namespace, suspend=False)
    cluster.until_succeeded("paused", namespace)
    trials = cluster.trials("paused", namespace)
    assert_measured_once(trials, 3)
    assert any(trial["outcome"] == "Aborted" for trial in trials)


def test_a_run_that_is_created_suspended_creates_nothing(cluster: Cluster, namespace: str) -> None:
    cluster.apply(run("idle", namespace, suspend=True))
    cluster.until_condition("idle", namespace, "Suspended", status="True", seconds=30)
    assert cluster.items("configmaps,pods,persistentvolumeclaims", namespace, run="idle") == []
    cluster.kubectl("delete", "benchmarkrun", "idle", "-n", namespace, "--timeout=240s")


def test_cleanup_never_keeps_the_volumes_until_the_run_is_deleted(cluster: Cluster, namespace: str) -> None:
    cluster.apply(run("keeps", namespace, cleanup="Never", repetitions=1))
    cluster.until_over("keeps", namespace)
    cleaned = cluster.condition("keeps", namespace, "CleanedUp")
    assert cleaned is not None
    assert cleaned["reason"] == "StorageKept"
    assert not cluster.items("pods", namespace, run="keeps")
    assert len(cluster.items("persistentvolumeclaims", namespace, run="keeps")) == 2
    cluster.kubectl("delete", "benchmarkrun", "keeps", "-n", namespace, "--timeout=240s")
    assert cluster.leftovers(namespace) == []


def test_an_invalid_spec_is_refused_with_a_clear_message(cluster: Cluster, namespace: str) -> None:
    assert "blokSize" in cluster.refusal(run("typo", namespace, workloads=[workload(fio={"blokSize": ["4Ki"]})]))
    words = cluster.refusal(run("many", namespace, workloads=[workload(clients=[9])]))
    assert "clients.count" in words
