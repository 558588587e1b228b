"""Searches for the line: runs that measure at one load after another."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from runs import run, workload
from support import Cluster

pytestmark = pytest.mark.quiet

THROTTLED = 200
"""Reads per second of the only client's volume."""

SEARCH = {
    "vary": "Rate",
    "start": 50,
    "limit": 1600,
    "precisionPercent": 30,
    "objectives": [{"percentile": "90", "latency": "200ms"}],
}


@contextmanager
def throttled(cluster: Cluster, name: str, namespace: str) -> Iterator[None]:
    """Limit the reads of the only client's pod until it is gone; fail if that could not be done."""
    pod = cluster.client_pod(name, namespace, 0)
    with ThreadPoolExecutor(1) as pool:
        limiting = pool.submit(cluster.throttle, pod, THROTTLED)
        yield
        limiting.result()


def test_the_line_of_a_throttled_volume_is_found_although_the_conductor_is_killed(
    cluster: Cluster, namespace: str
) -> None:
    line = workload(
        name="line",
        fio={"pattern": "randread", "ioDepth": [32]},
        line=SEARCH,
        runtimeSeconds=3,
        rampSeconds=1,
    )
    cluster.apply(run("carried", namespace, clients={"count": 1}, workloads=[line]))
    cluster.until_measuring("carried", namespace)
    with throttled(cluster, "carried", namespace):
        cluster.until(
            lambda: len(cluster.trials("carried", namespace)) >= 3, seconds=180, what="three loads were tried"
        )
        before = offered(cluster, namespace)
        cluster.kill_pod(cluster.conductor_pod("carried", namespace), namespace)
        cluster.until_measured("carried", namespace, seconds=600)
    (result,) = cluster.results("carried", namespace)
    status = result["status"]
    assert status["final"]
    assert "summary" not in status
    assert offered(cluster, namespace)[: len(before)] == before, "nothing is tried again"
    assert {trial["attempt"] for trial in status["trials"] if trial["outcome"] == "Aborted"} <= {0, 1, 2}
    found = status["line"]
    assert found["ending"] in {"Precise", "ProbesUsedUp", "NotMonotone", "Drifting"}, found
    assert found["low"] < found["estimate"] < found["high"]
    # The first trial may be over before the limit holds. What a busy machine carries may be far below it.
    assert found["low"] < 1.1 * THROTTLED
    (headline,) = cluster.run("carried", namespace)["status"]["headline"]
    assert headline["line"]["text"].startswith("carries ")
    assert [headline["line"][end] for end in ("low", "high")] == [found["low"], found["high"]]


def offered(cluster: Cluster, namespace: str) -> list[float]:
    """Return the loads in the order of the probes, each once."""
    (result,) = cluster.results("carried", namespace)
    loads: dict[int, float] = {}
    for trial in result["status"].get("trials", []):
        loads[trial["passNumber"]] = trial["probe"]["offered"]
    return [load for _, load in sorted(loads.items())]
