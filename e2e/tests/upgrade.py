"""What becomes of an installation of an earlier version when it is upgraded; `e2e/upgrade.sh` runs each step in turn.

`prepare TREE` creates objects with the API of the earlier version, whose tree it gets, and returns while a run measures
and a suite is between two rounds. `dropped` prints the field that the earlier version has and this one lacks.
`refused MESSAGE` checks why Helm refused to drop it, and removes the reason. `upgraded` checks everything after the
upgrade.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from runs import MEASURED, STANDARD, assert_measured_once, run
from suites import Suite, suite
from support import ROOT, TEARDOWN_NAMESPACE, Cluster

NAMESPACE = "upgrade"
BEFORE = ROOT / "build" / "upgrade" / "before.json"
PASSES = 7
"""Of the run that measures: more than an upgrade lasts."""

ROUNDS = 3
"""Before the upgrade: a comparison needs so many accepted ones."""

DROPPED = "latencyMicroseconds"
FIO = {"pattern": "randread", "ioDepth": [4], "rateIops": 50}
LINE = {"vary": "Rate", "start": 40, "limit": 80, "objectives": [{"percentile": "99", DROPPED: 100_000}]}
KINDS = (
    "jobs,pods,persistentvolumeclaims,services,networkpolicies,roles,rolebindings,serviceaccounts,configmaps,secrets"
)


def workload(**changes: Any) -> dict[str, Any]:
    """Return a short workload that every version accepts."""
    return {"name": "read", "fio": FIO, "runtimeSeconds": 6, "rampSeconds": 2} | changes


def specification(name: str, **changes: Any) -> dict[str, Any]:
    """Return the specification of a run on a StorageClass of that name: only runs on the same one take turns."""
    storage = {"storageClass": {"name": f"upgrade-{name}"}, "volume": {"size": "64Mi", "mode": "Filesystem"}}
    settings = {"storage": storage, "workloads": [workload()], "repetitions": 1}
    spec: dict[str, Any] = run(name, NAMESPACE, **(settings | changes))["spec"]
    return spec


def measured_suite(name: str, **changes: Any) -> dict[str, Any]:
    comparisons = [{"name": "rounds", "baseline": {"rounds": "Accepted"}}]
    return suite(name, NAMESPACE, run=specification("suite", **changes), comparisons=comparisons)


def prepare(cluster: Cluster, tree: Path) -> None:
    for name in ("run", "suite"):
        standard = cluster.object("storageclasses", STANDARD)
        kept = ("apiVersion", "kind", "provisioner", "volumeBindingMode", "reclaimPolicy")
        fields = {key: standard[key] for key in kept}
        cluster.apply(fields | {"metadata": {"name": f"upgrade-{name}"}})
    has_dropped = DROPPED in (tree / "crds" / "benchmarkruns.plimsoll.dev.yaml").read_text()
    if has_dropped:
        search = [workload(line=LINE, fio={"pattern": "randread", "ioDepth": [16]}, runtimeSeconds=25)]
        cluster.apply(run("search", NAMESPACE, **specification("run", workloads=search), suspend=True))
        asleep = measured_suite("search", workloads=search)
        cluster.apply(asleep | {"spec": asleep["spec"] | {"suspend": True}})
    cluster.apply(measured_suite("rounds"))
    cluster.apply(run("ended", NAMESPACE, **specification("run")))
    measured = Suite(cluster, "rounds", NAMESPACE)
    measured.until_rounds(1)
    while len(measured.rounds) < ROUNDS:
        measured.request(f"round {len(measured.rounds)} before the upgrade")
    cluster.until_measured("ended", NAMESPACE)
    cluster.apply(run("measuring", NAMESPACE, **specification("run", repetitions=PASSES)))
    cluster.until_measuring("measuring", NAMESPACE)
    cluster.until(lambda: cluster.trials("measuring", NAMESPACE), seconds=90, what="a trial is recorded")
    runs = {found["metadata"]["name"]: found["metadata"]["uid"] for found in cluster.items("benchmarkruns", NAMESPACE)}
    results = {name: cluster.results(name, NAMESPACE) for name in runs if name not in {"measuring", "search"}}
    conductor = cluster.conductor_pod("measuring", NAMESPACE)
    before = {"dropped": has_dropped, "rounds": measured.rounds, "runs": runs, "results": results}
    BEFORE.write_text(json.dumps(before | {"conductor": conductor}))


def refused(cluster: Cluster, message: str) -> None:
    """Check the refusal of the upgrade: it names the run; the suite is suspended, and thus no obstacle."""
    field = f"workloads[0].line.objectives[0].{DROPPED}"
    assert f"BenchmarkRun {NAMESPACE}/search: spec.{field}" in message, message
    assert "1 in all" in message, message
    cluster.kubectl("delete", "benchmarkrun", "search", "-n", NAMESPACE, "--timeout=60s")


def upgraded(cluster: Cluster, before: dict[str, Any]) -> None:
    measured = Suite(cluster, "rounds", NAMESPACE)
    check_results(cluster, before)
    measured.annotate("request-round", "after the upgrade")
    check_measuring(cluster, before)
    check_rounds(measured, before)
    if before["dropped"]:
        check_invalid_suite(cluster)
    check_leftovers(cluster)


def check_results(cluster: Cluster, before: dict[str, Any]) -> None:
    """Check that finished runs have the numbers that they had, and that the command line reads them."""
    for name, results in before["results"].items():
        for earlier, now in zip(results, cluster.results(name, NAMESPACE), strict=True):
            for field in ("verdict", "trials", "operations", "summary"):
                known = earlier["status"].get(field)
                assert_kept(known, now["status"].get(field), f"{name}: {field}")
        shown = command("results", f"{NAMESPACE}/{name}")
        assert shown.returncode == 0, shown.stderr
        say(f"results of {name} are what they were, and plimsoll results reads them")


def assert_kept(earlier: Any, now: Any, place: str) -> None:
    """Check that a document has all that it had, except fields that this version lacks; those are printed."""
    if isinstance(earlier, dict):
        assert isinstance(now, dict), f"{place} was {earlier}, and is {now}"
        for key, value in earlier.items():
            if key in now:
                assert_kept(value, now[key], f"{place}.{key}")
            else:
                say(f"{place}.{key} is gone: {value}")
    elif isinstance(earlier, list):
        assert isinstance(now, list), f"{place} was {earlier}, and is {now}"
        assert len(now) == len(earlier), f"{place} was {earlier}, and is {now}"
        for number, value in enumerate(earlier):
            assert_kept(value, now[number], f"{place}[{number}]")
    else:
        assert earlier == now, f"{place} was {earlier}, and is {now}"


def check_measuring(cluster: Cluster, before: dict[str, Any]) -> None:
    """Check that the run was measured to its end by the same conductor, or says why not and can be measured again."""

    def ended() -> dict[str, str] | None:
        found = cluster.condition("measuring", NAMESPACE, "Succeeded")
        return None if found is None or found["status"] == "Unknown" else found

    ending = cluster.until(ended, seconds=300, what="the run that measured has ended")
    say(f"the run that measured: Succeeded={ending['status']} {ending['reason']}: {ending['message']}")
    if ending["reason"] not in MEASURED:
        assert ending["reason"] == "PlanDamaged", ending
        assert "create it again" in ending["message"], ending
        remove_by_hand(cluster)
        cluster.kubectl("delete", "benchmarkrun", "measuring", "-n", NAMESPACE, "--timeout=120s")
        cluster.apply(run("measuring", NAMESPACE, **specification("run", repetitions=2)))
        cluster.until_measured("measuring", NAMESPACE)
        assert_measured_once(cluster.trials("measuring", NAMESPACE), 2)
        return
    cluster.until_over("measuring", NAMESPACE)
    assert_measured_once(cluster.trials("measuring", NAMESPACE), PASSES)
    assert cluster.interruptions("measuring", NAMESPACE) == []
    events = cluster.api.objects("events", NAMESPACE)
    created = {event["involvedObject"]["name"] for event in events if event["involvedObject"]["kind"] == "Pod"}
    conductors = {name for name in created if name.startswith("measuring-conductor")}
    assert conductors == {before["conductor"]}, conductors


def remove_by_hand(cluster: Cluster) -> None:
    """Return once the run is clean. Objects whose deletion is refused are deleted by hand, as the message says."""
    done = set()

    def is_clean() -> bool:
        condition = cluster.condition("measuring", NAMESPACE, "CleanedUp") or {}
        message = condition.get("message", "")
        if condition.get("reason") == "ApiRefused" and message not in done:
            say(f"the run that measured: {message}")
            assert "delete it yourself" in message, message
            kind, name = message.removeprefix("could not delete ").partition(":")[0].split()
            done.add(message)
            name = name.partition("/")[2]
            cluster.kubectl("delete", kind, name, "-n", NAMESPACE, "--ignore-not-found", "--timeout=60s")
        return condition.get("status") == "True"

    cluster.until(is_clean, seconds=180, what="the run is cleaned up")


def check_rounds(measured: Suite, before: dict[str, Any]) -> None:
    """Check that the requested round, and no other, started once, and that it was compared or says why not."""
    newest = measured.until_rounds(len(before["rounds"]) + 1)
    earlier = measured.rounds[1:]
    assert newest["cause"] == "Requested", newest
    for field in ("minute", "digest", "verdict", "accepted"):
        assert [one[field] for one in earlier] == [one[field] for one in before["rounds"]], earlier
    assert newest["digest"] == earlier[0]["digest"], newest
    children = {child["metadata"]["name"] for child in measured.children()}
    assert len(children) == len(measured.rounds), children
    (created,) = children - before["runs"].keys()
    assert f"-{newest['minute']}-" in created, created
    (outcome,) = measured.status["comparisons"]
    say(f"the round after the upgrade: {newest['verdict']}, accepted: {newest['accepted']}: {outcome['message']}")
    assert outcome["message"], outcome


def check_invalid_suite(cluster: Cluster) -> None:
    """Check that a suite that lacks a field now says so, and is valid once it has the new one."""
    search = Suite(cluster, "search", NAMESPACE)
    stalled = cluster.until(lambda: search.condition("Stalled"), seconds=60, what="the suite is Stalled")
    say(f"the suite with a dropped field: Stalled {stalled['reason']}: {stalled['message']}")
    assert stalled["reason"] == "InvalidSpec", stalled
    assert "spec.run.workloads[0].line.objectives[0].latency" in stalled["message"], stalled
    line = LINE | {"objectives": [{"percentile": "99", "latency": "100ms"}]}
    spec = search.object["spec"]["run"]
    search.change(run=spec | {"workloads": [spec["workloads"][0] | {"line": line}]})
    search.until_seen()
    assert not search.condition("Stalled"), search.status


def check_leftovers(cluster: Cluster) -> None:
    """Check that all is gone once the suites and runs are deleted.

    This version does not remove the finalizers that a version from before the first release set on suites.
    """
    for found in cluster.items("benchmarksuites", NAMESPACE):
        if found["metadata"].get("finalizers"):
            name = found["metadata"]["name"]
            say(f"the suite {name} has the finalizers {found['metadata']['finalizers']}, which are removed by hand")
            patch = json.dumps({"metadata": {"finalizers": None}})
            cluster.kubectl("patch", "benchmarksuite", name, "-n", NAMESPACE, "--type=merge", "-p", patch)
    cluster.kubectl("delete", "benchmarksuites,benchmarkruns", "--all", "-n", NAMESPACE, "--timeout=180s")

    def leftovers() -> list[str]:
        selector = "app.kubernetes.io/managed-by=plimsoll"
        objects = cluster.api.objects(KINDS, NAMESPACE, selector)
        objects += cluster.api.objects(KINDS, TEARDOWN_NAMESPACE, selector)
        objects += cluster.api.objects("benchmarkruns,benchmarkresults", NAMESPACE)
        volumes = cluster.api.objects("persistentvolumes")
        objects += [one for one in volumes if one["spec"].get("claimRef", {}).get("namespace") == NAMESPACE]
        return [f"{found.get('kind')} {found['metadata']['name']}" for found in objects]

    try:
        cluster.until(lambda: not leftovers(), seconds=120, what="nothing is left")
    except AssertionError as error:
        raise AssertionError(f"{error}: {leftovers()}") from None
    say("nothing is left of the runs")


def command(*arguments: str) -> "subprocess.CompletedProcess[str]":
    program = [sys.executable, "-m", "plimsoll", *arguments]
    return subprocess.run(program, capture_output=True, text=True, check=False)


def say(text: str) -> None:
    sys.stderr.write(f"upgrade.py: {text}\n")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["prepare", tree]:
            prepare(Cluster(), Path(tree))
        case ["dropped"]:
            sys.stdout.write(DROPPED if json.loads(BEFORE.read_text())["dropped"] else "")
        case ["refused", message]:
            refused(Cluster(), message)
        case ["upgraded"]:
            upgraded(Cluster(), json.loads(BEFORE.read_text()))
        case _:
            sys.exit(__doc__)
