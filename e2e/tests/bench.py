"""Measures the operator in the cluster of e2e/cluster, and prints the results: python bench.py [RUNS].

It asserts nothing, because machines differ. RUNS is the number of finished runs for the operator's memory (2000); 0
skips that measurement.
"""

import itertools
import json
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from recorder import Recorder
from runs import run, workload
from support import OPERATOR_NAMESPACE, Cluster
from timeline import rows, stages

NAMESPACE = f"plimsoll-bench-{os.getpid()}"
OURS = (
    "benchmarkruns",
    "benchmarkresults",
    "configmaps",
    "jobs",
    "persistentvolumeclaims",
    "secrets",
    "services",
    "serviceaccounts",
    "roles",
    "rolebindings",
    "networkpolicies",
    "events",
)
WRITES = ("POST", "PUT", "PATCH", "APPLY", "DELETE")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def memory_mib(cluster: Cluster) -> float:
    """Return the resident memory of the operator that leads."""
    leader = cluster.until(cluster.leader, seconds=60, what="an operator leads")["metadata"]["name"]
    status = cluster.kubectl("exec", "-n", OPERATOR_NAMESPACE, leader, "--", "cat", "/proc/1/status")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def writes(cluster: Cluster) -> Counter[str]:
    """Return the API server's count of writes to the kinds of a run's objects."""
    found: Counter[str] = Counter()
    for line in cluster.kubectl("get", "--raw", "/metrics").splitlines():
        if not line.startswith("apiserver_request_total{"):
            continue
        labels, _, value = line.removeprefix("apiserver_request_total{").partition("} ")
        known = dict(part.split("=", 1) for part in labels.replace('"', "").split(",") if "=" in part)
        if known.get("resource") in OURS and known.get("verb") in WRITES and known.get("code", "").startswith("2"):
            name = known["resource"] + ("/" + known["subresource"] if known.get("subresource") else "")
            found[f"{known['verb'].lower():6} {name}"] += int(float(value))
    return found


def first_io(cluster: Cluster) -> None:
    """Time a run from apply to the first I/O, count its writes, and the time between its trials."""
    name = "timed"
    quiet = settled_writes(cluster)
    say("\n== kubectl apply to first I/O: 3 clients on 2 workers, images present, 64 MiB volumes, 4 trials of 7 s")
    say("   target: first T0 within 6 s")
    manifest = run(name, NAMESPACE, clients={"count": 3}, repetitions=4, workloads=[workload()])
    time_stages(cluster, manifest, clients=3)
    gaps = list(idle_gaps(cluster, name))
    spread = f"{min(gaps):.2f} to {max(gaps):.2f}, n {len(gaps)}" if gaps else "no two trials were measured"
    say(f"\n== idle between trials: median {statistics.median(gaps or [0.0]):.2f} s, {spread}")
    say("\n== API writes during that run, by all clients")
    for what, count in sorted((settled_writes(cluster) - quiet).items()):
        say(f"   {count:5d} {what}")


def one_trial(cluster: Cluster) -> None:
    """Time a run of one client and one trial from apply to Measured."""
    say("\n== kubectl apply to Measured: 1 client, 64 MiB volume with prefill, one fio of 10 s without a ramp")
    say("   target: Measured within 19 s")
    load = workload(runtimeSeconds=10, rampSeconds=0)
    time_stages(cluster, run("single", NAMESPACE, clients={"count": 1}, repetitions=1, workloads=[load]), clients=1)


def time_stages(cluster: Cluster, manifest: dict[str, Any], *, clients: int) -> None:
    """Apply a run, wait for its end, and print when it reached each stage."""
    name = manifest["metadata"]["name"]
    recorder = Recorder(cluster.api, NAMESPACE)
    with recorder.recording():
        begun = time.time()
        cluster.apply(manifest)
        cluster.until_over(name, NAMESPACE)
        # The watch may lag behind the last request.
        time.sleep(1)
        changes = recorder.changes()
    trials = cluster.trials(name, NAMESPACE)
    say(f"   {'stage':30} {'at':>7}   {'since the previous stages':>26}")
    for stage, seconds, since in rows(stages(changes, trials, run=name, clients=clients), begun):
        say(f"   {stage:30} {seconds:6.1f} s {since:26.1f} s")
    aborted = Counter(trial["abort"]["reason"] for trial in trials if "abort" in trial)
    if aborted:
        say(f"   aborted attempts: {', '.join(f'{count} {reason}' for reason, count in sorted(aborted.items()))}")


def idle_gaps(cluster: Cluster, name: str) -> Iterator[float]:
    """Yield the seconds from the end of a trial's window to the start of the next one, minus the ramp."""
    trials = sorted(cluster.trials(name, NAMESPACE), key=lambda trial: str(trial["startedAt"]))
    for before, after in itertools.pairwise(trials):
        if "window" in before and "window" in after:
            yield (after["window"]["startNanoseconds"] - before["window"]["endNanoseconds"]) / 1e9 - 2


def settled_writes(cluster: Cluster) -> Counter[str]:
    time.sleep(3)
    return writes(cluster)


def with_finished_runs(cluster: Cluster, count: int) -> None:
    """Measure memory and start-up with many runs that need no attention."""
    say(f"\n== operator: memory with no run {memory_mib(cluster):.0f} MiB")
    cluster.kubectl("scale", "deployment/plimsoll", "-n", OPERATOR_NAMESPACE, "--replicas=0")
    template = cluster.run("timed", NAMESPACE)
    for batch in batches(count, 250):
        items = [run(f"finished-{number:05d}", NAMESPACE) for number in batch]
        cluster.kubectl("create", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        for item in items:
            item["status"] = template["status"]
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        cluster.kubectl("apply", "--server-side", "--subresource=status", "-f", "-", text=text)
    cluster.kubectl("scale", "deployment/plimsoll", "-n", OPERATOR_NAMESPACE, "--replicas=1")
    cluster.kubectl("rollout", "status", "deployment/plimsoll", "-n", OPERATOR_NAMESPACE, "--timeout=180s")
    time.sleep(20)
    say(f"   memory with {count} finished runs {memory_mib(cluster):.0f} MiB")
    begun = time.monotonic()
    cluster.kill_operator()
    cluster.kubectl("rollout", "status", "deployment/plimsoll", "-n", OPERATOR_NAMESPACE, "--timeout=180s")
    say(f"   restart to ready {time.monotonic() - begun:.1f} s")
    begun = time.monotonic()
    cluster.apply(run("after", NAMESPACE, repetitions=1))
    cluster.until_condition("after", NAMESPACE, "Admitted", status="True")
    say(f"   a new run is admitted {time.monotonic() - begun:.1f} s later")


def batches(count: int, size: int) -> Iterator[range]:
    for first in range(0, count, size):
        yield range(first, min(first + size, count))


def main() -> None:
    cluster = Cluster()
    cluster.kubectl("create", "namespace", NAMESPACE)
    try:
        first_io(cluster)
        one_trial(cluster)
        if finished := int(sys.argv[1]) if len(sys.argv) > 1 else 2000:
            with_finished_runs(cluster, finished)
    finally:
        cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


if __name__ == "__main__":
    main()
