"""Runs are deleted at any time and in any way, and leave nothing.

Here each phase is deleted in one way, and a measuring run in all; most of these tests run by name only.
operator/tests/deletion has the other combinations, with a real operator and real controllers, but without nodes.
"""

import pytest

from runs import STORAGE_CLASS, run, workload
from support import Cluster

CASES = [("Measuring", "background")]
THOROUGH_CASES = [
    ("Measuring", "namespace"),
    ("CleaningUp", "foreground"),
    ("Waiting", "background"),
    ("Provisioning", "foreground"),
    ("Measuring", "foreground"),
    ("Suspended", "namespace"),
    ("Finished", "background"),
]


def reach(cluster: Cluster, name: str, namespace: str, phase: str) -> None:
    """Bring a run into a phase."""
    if phase == "Waiting":
        cluster.apply(run("before", namespace, workloads=[workload(runtimeSeconds=60)]))
        cluster.until_condition("before", namespace, "Admitted", status="True")
    cluster.apply(run(name, namespace))
    match phase:
        case "Waiting":
            cluster.until_condition(name, namespace, "Reconciling", reason="WaitingForTurn", seconds=30)
        case "Provisioning":
            cluster.until(lambda: cluster.items("jobs", namespace, run=name), seconds=60, what="there are Jobs")
        case "Measuring":
            cluster.until_measuring(name, namespace)
        case "Suspended":
            cluster.until_measuring(name, namespace)
            cluster.suspend(name, namespace, suspend=True)
            cluster.until_condition(name, namespace, "Suspended", status="True", seconds=60)
        case "CleaningUp":
            cluster.until_condition(name, namespace, "Succeeded", status="True")
        case _:
            cluster.until_over(name, namespace)


@pytest.mark.parametrize(
    ("phase", "way"), [*CASES, *(pytest.param(*case, marks=pytest.mark.thorough) for case in THOROUGH_CASES)]
)
def test_a_deleted_run_leaves_nothing(cluster: Cluster, namespace: str, phase: str, way: str) -> None:
    reach(cluster, "doomed", namespace, phase)
    if way == "namespace":
        cluster.kubectl("delete", "namespace", namespace, "--timeout=180s")
    else:
        if phase == "Waiting":
            cluster.kubectl("delete", "benchmarkrun", "before", "-n", namespace, "--timeout=240s")
        cluster.kubectl("delete", "benchmarkrun", "doomed", "-n", namespace, f"--cascade={way}", "--timeout=240s")
        cluster.until(lambda: not cluster.leftovers(namespace), seconds=60, what="the garbage collector is done")
        cluster.until(lambda: not cluster.results("doomed", namespace), seconds=60, what="the results are gone")
    volumes = cluster.api.objects("persistentvolumes")
    bound = [volume for volume in volumes if (volume["spec"].get("claimRef") or {}).get("namespace") == namespace]
    cluster.until(
        lambda: (
            not [
                volume
                for volume in bound
                if volume["spec"]["storageClassName"] == STORAGE_CLASS
                and cluster.exists("persistentvolumes", volume["metadata"]["name"])
            ]
        ),
        seconds=60,
        what="the volumes are gone",
    )
