"""Measures the operator in the cluster of e2e/cluster, and prints the results.

It asserts nothing, because machines differ.
"""

import itertools
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from recorder import Recorder
from runs import run, workload
from support import Cluster
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


def main() -> None:
    cluster = Cluster()
    cluster.kubectl("create", "namespace", NAMESPACE)
    try:
        first_io(cluster)
        one_trial(cluster)
    finally:
        cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


if __name__ == "__main__":
    main()
