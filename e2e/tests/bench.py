"""Measures the operator in the cluster of e2e/cluster, and prints the results.

It asserts nothing, because machines differ. With PLIMSOLL_KUBESTR, the path of a kubestr, it is compared with that too.
"""

import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from recorder import Recorder
from runs import STORAGE_CLASS, run, workload
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
PATTERN = "randread"
KUBESTR_TURNS = 5
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


def against_kubestr(cluster: Cluster, program: str) -> None:
    """Time one fio of 10 s by Plimsoll and by kubestr in turn; kubestr's fio lays out the file itself."""
    say("\n== one fio of 10 s in turn: kubectl apply to Measured, and kubestr from start to exit; s")
    options = ("bs=4k", "iodepth=16", "ioengine=libaio", "direct=1", "size=48M", "time_based=1", "runtime=10")
    load = workload(runtimeSeconds=10, rampSeconds=0, fio={"pattern": PATTERN, "ioDepth": [16]})
    ratios = []
    with tempfile.NamedTemporaryFile("w", suffix=".fio") as file:
        file.write("\n".join(["[read]", f"rw={PATTERN}", *options, ""]))
        file.flush()
        arguments = ("-s", STORAGE_CLASS, "-z", "64Mi", "-f", file.name, "-i", "plimsoll-runner:e2e", "-n", NAMESPACE)
        for turn in range(KUBESTR_TURNS):
            manifest = run(f"turn-{turn}", NAMESPACE, clients={"count": 1}, repetitions=1, workloads=[load])
            ours = {stage: seconds for stage, seconds, _ in reach(cluster, manifest, clients=1)}["Measured"]
            time.sleep(5)  # the volumes of the one are removed before the other starts
            begun = time.monotonic()
            subprocess.run([program, "fio", *arguments], check=True, stdout=subprocess.DEVNULL)
            theirs = time.monotonic() - begun
            time.sleep(5)
            ratios.append(ours / theirs)
            say(f"   plimsoll {ours:5.1f}   kubestr {theirs:5.1f}   ratio {ratios[-1]:.3f}")
    say(f"   median ratio {statistics.median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}, n {len(ratios)}")


def reach(cluster: Cluster, manifest: dict[str, Any], *, clients: int) -> list[tuple[str, float, float]]:
    """Apply a run, wait for its end, and return when it reached each stage, as `rows` does."""
    name = manifest["metadata"]["name"]
    recorder = Recorder(cluster.api, NAMESPACE)
    with recorder.recording():
        begun = time.time()
        cluster.apply(manifest)
        cluster.until_over(name, NAMESPACE)
        # The watch may lag behind the last request.
        time.sleep(1)
        changes = recorder.changes()
    return [*rows(stages(changes, cluster.trials(name, NAMESPACE), run=name, clients=clients), begun)]


def time_stages(cluster: Cluster, manifest: dict[str, Any], *, clients: int) -> None:
    """Apply a run, wait for its end, and print when it reached each stage."""
    reached = reach(cluster, manifest, clients=clients)
    trials = cluster.trials(manifest["metadata"]["name"], NAMESPACE)
    say(f"   {'stage':30} {'at':>7}   {'since the previous stages':>26}")
    for stage, seconds, since in reached:
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
        if program := os.environ.get("PLIMSOLL_KUBESTR"):
            against_kubestr(cluster, program)
    finally:
        cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


if __name__ == "__main__":
    main()
