"""Runs on a pool of a Ceph cluster without Rook, healthy and unhealthy."""

from typing import Any

import pytest

from ceph import ALLOW_BENCHMARKS, KEYRING, USER, Ceph
from runs import RATE, workload
from support import Cluster

pytestmark = [pytest.mark.ceph, pytest.mark.secondary]

# PATTERN PROGRAM: kill the processes of a program in the matching control groups.
KILL = """
for process in $(pgrep --full "$2"); do
    if grep -q "$1" "/proc/$process/cgroup"; then
        kill -KILL "$process" && echo "$process"
    fi
done
"""


def measured(cluster: Cluster, name: str, namespace: str) -> list[dict[str, Any]]:
    return [trial for trial in cluster.trials(name, namespace) if trial["outcome"] == "Measured"]


def kill_processes(cluster: Cluster, namespace: str, pod: str, program: str) -> None:
    """Kill a pod's program with SIGKILL, so that it cannot clean up; other pods of the node are not affected."""
    found = cluster.object("pods", pod, namespace)
    group = f"pod{found['metadata']['uid']}".replace("-", "[-_]")
    killed = cluster.docker("exec", found["spec"]["nodeName"], "sh", "-c", KILL, "kill", group, program)
    assert killed, f"no process of {pod} runs {program}"


@pytest.mark.fault(
    "Ceph",
    "An OSD stops",
    "while measuring",
    ends="the trial is Invalid (`OsdsChanged`), and repeated once the OSD is back",
    within="the end of the trial",
)
def test_an_existing_pool_is_measured_and_a_trial_with_a_stopped_osd_is_repeated(
    cluster: Cluster, existing: Ceph, namespace: str
) -> None:
    existing.give_keyring(namespace)
    # Where much else runs, an attempt of 20 s may have stalled for more than a tenth of it without a fault.
    cluster.apply(existing.run("shaken", namespace, workloads=[workload(runtimeSeconds=40)]))
    cluster.until_measuring("shaken", namespace)
    assert existing.flags() == {"noscrub", "nodeep-scrub"}
    existing.check_rights(USER)
    existing.stop_osd(1)
    try:
        (first,) = cluster.until(
            lambda: measured(cluster, "shaken", namespace), seconds=120, what="the trial is recorded"
        )
    finally:
        existing.start_osd(1)
    assert first["verdict"] == "Invalid"
    reasons = {finding["reason"] for finding in first["findings"] if finding["verdict"] == "Invalid"}
    assert "OsdsChanged" in reasons
    cluster.until_succeeded("shaken", namespace)
    last = measured(cluster, "shaken", namespace)[-1]
    assert last["attempt"] > 0
    assert last["verdict"] != "Invalid"
    (result,) = cluster.results("shaken", namespace)
    assert result["status"]["summary"]["operations"][0]["iops"]["mean"] == pytest.approx(2 * RATE, rel=0.1)
    assert existing.flags() == {"noscrub"}
    assert cluster.leftovers(namespace) == []


@pytest.mark.fault(
    "Ceph",
    "Conductor and operator are killed, and the run is deleted",
    "while scrubs are paused",
    ends="the teardown unsets exactly the flags that the run set, and removes its objects",
    within="240 s",
)
@pytest.mark.kills
def test_flags_are_restored_although_conductor_and_operator_were_killed(
    cluster: Cluster, existing: Ceph, namespace: str
) -> None:
    existing.give_keyring(namespace)
    cluster.apply(existing.run("killed", namespace, workloads=[workload(runtimeSeconds=60)]))
    cluster.until_measuring("killed", namespace)
    assert existing.flags() == {"noscrub", "nodeep-scrub"}
    existing.leave_objects(cluster.object("benchmarkruns", "killed", namespace)["metadata"]["uid"])
    kill_processes(cluster, namespace, cluster.conductor_pod("killed", namespace), "plimsoll conductor")
    cluster.kill_operator()
    cluster.kubectl("delete", "benchmarkrun", "killed", "-n", namespace, "--timeout=240s")
    assert existing.flags() == {"noscrub"}
    assert existing.leftovers() == []


def test_a_missing_keyring_is_reported(cluster: Cluster, existing: Ceph, namespace: str) -> None:
    existing.give_rights(namespace)
    timeouts = {"provisionSeconds": 20, "readySeconds": 30, "totalSeconds": 600}
    cluster.apply(existing.run("keyless", namespace, timeouts=timeouts))
    waiting = cluster.until_condition("keyless", namespace, "Reconciling", reason="KeyringNotFound", seconds=60)
    assert "plimsoll-keyring" in waiting["message"]
    ended = cluster.until_over("keyless", namespace, seconds=120)
    assert ended["status"] == "False"
    assert cluster.leftovers(namespace) == []


@pytest.mark.thorough
def test_a_keyring_without_the_annotation_is_not_used(cluster: Cluster, existing: Ceph, namespace: str) -> None:
    existing.give_keyring(namespace)
    cluster.kubectl("annotate", "secret", KEYRING, "-n", namespace, f"{ALLOW_BENCHMARKS}-")
    cluster.apply(existing.run("uninvited", namespace))
    waiting = cluster.until_condition("uninvited", namespace, "Reconciling", reason="KeyringNotAllowed", seconds=60)
    assert ALLOW_BENCHMARKS in waiting["message"]
    cluster.kubectl("annotate", "secret", KEYRING, "-n", namespace, f"{ALLOW_BENCHMARKS}=true")
    cluster.until_succeeded("uninvited", namespace, seconds=240)
    assert cluster.leftovers(namespace) == []
