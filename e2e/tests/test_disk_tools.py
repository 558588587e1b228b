"""dd and ioping on the volumes of clients."""

import re
from typing import Any

from runs import invalid_for_load, run
from support import Cluster

CLIENTS = 2
INTERVAL_MILLISECONDS = 5
DD = {
    "name": "copies",
    "dd": {"operation": ["Read", "Write", "Copy"], "blockSize": ["64Ki"]},
    "runtimeSeconds": 120,
}
PINGS = {
    "name": "pings",
    "ioping": {"operation": ["Read", "Write"], "intervalMilliseconds": INTERVAL_MILLISECONDS},
    "runtimeSeconds": 5,
    "rampSeconds": 1,
}


def test_dd_and_ioping_measure_the_volumes_of_two_clients(cluster: Cluster, namespace: str) -> None:
    manifest = run("disks", namespace, clients={"count": CLIENTS}, workloads=[DD, PINGS], repetitions=1)
    cluster.apply(manifest)
    cluster.until_over("disks", namespace, seconds=600)
    results = {result["spec"]["label"]: result for result in cluster.results("disks", namespace)}
    pings = [f"ioping {operation} 4Ki every {INTERVAL_MILLISECONDS} ms" for operation in ("read", "write")]
    copies = [f"dd {operation} 64Ki" for operation in ("read", "write", "copy")]
    assert set(results) == {*pings, *copies}
    done = [assert_done_once(results[label]) for label in copies]
    assert done[0] == done[1] == 2 * done[2], "a copy reads one half and writes the other"
    for label in pings:
        assert_pinged(results[label])
    assert cluster.leftovers(namespace) == []


def measured(result: dict[str, Any]) -> dict[str, Any]:
    """Return the last trial, which was measured."""
    trial: dict[str, Any] = result["status"]["trials"][-1]
    assert trial["outcome"] == "Measured", trial
    return trial


def assert_done_once(result: dict[str, Any]) -> int:
    """Check that every client worked through its data set, and return the bytes of all of them."""
    trial = measured(result)
    label = result["spec"]["label"]
    expected = {"dd read 64Ki": ["read"], "dd write 64Ki": ["write"], "dd copy 64Ki": ["read", "write"]}[label]
    assert [operation["operation"] for operation in trial["operations"]] == expected
    (size,) = {operation["bytes"] for operation in trial["operations"]}
    assert size == 64 * 2**10 * trial["operations"][0]["ios"]
    reasons = {finding["reason"] for finding in trial["findings"]}
    assert not reasons & {"ToolFailed", "OutputUnreadable", "DataSetUnfinished", "ShortIo", "WrongDevice"}, trial
    assert re.fullmatch(r"dd \(coreutils\) \d+\.\d+", trial["tool"]["versions"][0])
    return int(size)


def assert_pinged(result: dict[str, Any]) -> None:
    trial = measured(result)
    if invalid_for_load(result["status"]["trials"]):
        return
    assert trial["verdict"] != "Invalid", trial["findings"]
    (operation,) = trial["operations"]
    assert operation["operation"] == result["spec"]["parameters"]["operation"].lower()
    assert 0 < operation["rates"]["iops"] <= 1.05 * CLIENTS * 1000 / INTERVAL_MILLISECONDS
    assert operation["latency"]["percentiles"]["50"] > 0
    reasons = {finding["reason"] for finding in trial["findings"]}
    assert not reasons & {"SeriesIncomplete", "HistogramMismatch", "WrongDevice"}, trial
    # While ioping waits for a processor, its first line is late, and its start is estimated.
    assert "ToolTooOld" not in reasons or "NodeCpuSaturated" in reasons, trial
    assert re.fullmatch(r"ioping \d+\.\d+", trial["tool"]["versions"][0])
