"""Trials take OSDs of a real Ceph away. What their results say agrees with what Ceph reported meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from ceph import DISTURBING, NAMESPACE, Ceph, Poll, replicated, rook_run
from runs import RATE, workload
from support import OPERATOR_NAMESPACE, ROOT, Cluster

pytestmark = [pytest.mark.ceph, pytest.mark.disturbance]

AFTER, FOR = 30, 30
INTERVAL = 5
"""Seconds between two polls of the conductor, and between two reports of an OSD to the manager."""
PLAIN = "e2e-disturbance"
"""The namespace whose keyring e2e/operator/values.yaml lists in `disturb`."""

COMMANDS = {"Out": {"osd reweight"}, "Down": DISTURBING.keys() - {"osd reweight"}}


def disturbed(action: str, *, count: int = 1, seconds: int = FOR) -> dict[str, Any]:
    """Return a workload that takes OSDs away for some seconds, and measures for a minute after that."""
    fio = {"pattern": "randwrite", "ioDepth": [4], "rateIops": RATE}
    disturb = {"afterSeconds": AFTER, "osds": {"count": count, "action": action}, "forSeconds": seconds}
    return workload(name="write", fio=fio, runtimeSeconds=AFTER + seconds + 60, disturb=disturb)


def disturbed_run(name: str, namespace: str, action: str, *, size: int = 3, seconds: int = FOR) -> dict[str, Any]:
    """Return a run with this workload in a pool of Rook."""
    return rook_run(name, namespace, replicated(size), workloads=[disturbed(action, seconds=seconds)])


def capabilities_of_the_guide() -> str:
    """Return the capabilities of the monitors that runs with `disturb` need besides those that every run needs."""
    guide = (ROOT / "docs" / "how-to" / "disturb.md").read_text()
    _, start, rest = guide.partition('allow command "osd reweight"')
    return start + rest.partition("```")[0].strip()


@pytest.fixture
def namespace_of_plain_runs(cluster: Cluster) -> Iterator[str]:
    """Return the namespace of runs without Rook that may take OSDs away, which is deleted after the test."""
    with cluster.with_namespace(PLAIN) as name:
        yield name


def first(polls: list[Poll], holds: Callable[[Poll], bool]) -> Poll:
    return next(poll for poll in polls if holds(poll))


# With two copies on three OSDs, the data of one that is out moves to the others.
@pytest.mark.parametrize(("action", "size"), [("Down", 3), ("Out", 2)])
def test_the_phases_of_a_trial_are_what_ceph_showed(
    cluster: Cluster, clean: Ceph, namespace: str, action: str, size: int
) -> None:
    before, name = clean.osds(), action.lower()
    with clean.polled() as polls:
        cluster.apply(disturbed_run(name, namespace, action, size=size))
        cluster.until_measuring(name, namespace)
        (conductor, *_) = clean.users()
        refused = {prefix: DISTURBING[prefix] for prefix in DISTURBING.keys() - COMMANDS[action]}
        assert clean.permitted(conductor, refused) == set()
        cluster.until_succeeded(name, namespace)
    assert clean.osds() == before
    trial = [trial for trial in cluster.trials(name, namespace) if trial["outcome"] == "Measured"][-1]
    assert "NotDisturbed" not in {finding["reason"] for finding in trial["findings"]}
    result = trial["disturbance"]
    assert (result["action"], result["osds"]) == (action, [0])
    start, end = (datetime.fromisoformat(trial[moment]).timestamp() for moment in ("startedAt", "finishedAt"))
    during = [poll for poll in polls if start <= poll.at <= end]
    away = first(during, lambda poll: poll.osds != before)
    back = first(during, lambda poll: poll.at > away.at and poll.is_given_back(before))
    unclean = max((poll.at for poll in during if poll.unclean), default=back.at)
    gap = max(later.at - earlier.at for earlier, later in pairwise(during))
    phases = {phase["name"]: phase for phase in trial["disturbance"]["phases"]}
    rates = {phase: phases[phase]["operations"][0]["iops"] for phase in phases}
    by_ceph = (back.writes - away.writes) / (back.at - away.at)
    print(  # noqa: T201 - for a person who reads the log
        f"{action}: {rates} IOPS, {by_ceph:.1f} during by Ceph; stalls "
        f"{[phases[phase].get('stallSeconds') for phase in phases]}; clean {result.get('cleanSeconds')} s, "
        f"{unclean - back.at:.1f} s by Ceph; away {result['endSeconds'] - result['startSeconds']:.1f} s, "
        f"{back.at - away.at:.1f} s by Ceph; polls at most {gap:.1f} s apart"
    )
    assert result["endSeconds"] - result["startSeconds"] == pytest.approx(back.at - away.at, abs=2 * gap)
    assert result["cleanSeconds"] == pytest.approx(max(0, unclean - back.at), abs=INTERVAL + 2 * gap)
    assert rates["During"] == pytest.approx(by_ceph, rel=2 * INTERVAL / FOR)


@pytest.mark.parametrize(("action", "count"), [("Down", 2), ("Out", 1)])
def test_without_rook_the_capabilities_of_the_guide_suffice(
    cluster: Cluster, existing: Ceph, namespace_of_plain_runs: str, action: str, count: int
) -> None:
    before, flags, namespace = existing.osds(), existing.flags(), namespace_of_plain_runs
    existing.allow(capabilities_of_the_guide())
    existing.give_keyring(namespace)
    name = f"plain-{action.lower()}"
    with existing.active_with(3 - count):
        cluster.apply(existing.run(name, namespace, workloads=[disturbed(action, count=count)]))
        cluster.until_succeeded(name, namespace)
    trial = [trial for trial in cluster.trials(name, namespace) if trial["outcome"] == "Measured"][-1]
    assert "NotDisturbed" not in {finding["reason"] for finding in trial["findings"]}
    assert (trial["disturbance"]["action"], trial["disturbance"]["osds"]) == (action, [*range(count)])
    assert {phase["name"] for phase in trial["disturbance"]["phases"]} == {"Before", "During", "After"}
    assert (existing.osds(), existing.flags()) == (before, flags)
    assert cluster.leftovers(namespace) == []


def test_a_run_finds_the_line_and_the_storm_line(cluster: Cluster, clean: Ceph, namespace: str) -> None:
    before = clean.osds()
    line = {"vary": "Depth", "start": 8, "limit": 64, "precisionPercent": 50, "objectives": [{"latency": "50ms"}]}
    disturb = {"afterSeconds": 10, "osds": {"count": 1, "action": "Out"}, "forSeconds": 10}
    fio = {"pattern": "randread", "blockSize": ["4Ki"]}
    searching = workload(name="line", fio=fio, line=line, disturb=disturb, runtimeSeconds=60, rampSeconds=2)
    timeouts = {"totalSeconds": 3600}
    cluster.apply(rook_run("storm", namespace, replicated(2), workloads=[searching], timeouts=timeouts))
    cluster.until_succeeded("storm", namespace, seconds=1800)
    assert clean.osds() == before
    calm, storm = sorted(cluster.results("storm", namespace), key=lambda result: result["spec"]["point"])
    assert [result["spec"]["point"] for result in (calm, storm)] == ["line-000", "line-000-storm"]
    lines = [result["status"]["line"] for result in (calm, storm)]
    assert [found.get("storm") for found in lines] == [None, {"count": 1, "action": "Out"}]
    # Of an attempt that was repeated, a result only says why.
    measured = [trial for trial in storm["status"]["trials"] if trial["verdict"] != "Invalid"]
    assert all({phase["name"] for phase in trial["disturbance"]["phases"]} >= {"Storm"} for trial in measured)
    assert not any("disturbance" in trial for trial in calm["status"]["trials"])
    assert measured[0]["startedAt"] > calm["status"]["trials"][-1]["startedAt"]
    print(lines)  # noqa: T201 - for a person who reads the log


@pytest.mark.fault(
    "Ceph",
    "Conductor and operator are killed",
    "while OSDs are taken away by `disturb`",
    ends="the OSDs come back",
    within="120 s",
)
@pytest.mark.kills
@pytest.mark.parametrize("by", ["successor", "teardown"])
@pytest.mark.parametrize("action", ["Down", "Out"])
def test_an_osd_comes_back_although_conductor_and_operator_are_killed_while_it_is_away(
    cluster: Cluster, clean: Ceph, namespace: str, action: str, by: str
) -> None:
    before = clean.osds()
    cluster.apply(disturbed_run("killed", namespace, action, seconds=600))
    cluster.until(lambda: clean.osds() != before, seconds=240, what="an OSD is away")
    if by == "teardown":
        cluster.kubectl("delete", "benchmarkrun", "killed", "-n", namespace, "--wait=false")
    cluster.kill_pod(cluster.conductor_pod("killed", namespace), namespace)
    cluster.kill_operator()
    cluster.until(lambda: clean.osds() == before, seconds=120, what="the OSD is back")
    cluster.kubectl("delete", "benchmarkrun", "killed", "-n", namespace, "--ignore-not-found", "--timeout=240s")
    assert cluster.leftovers(namespace) == []


HOSTNAME = "kubernetes.io/hostname"


def workers(cluster: Cluster) -> tuple[str, str]:
    """Return the worker with the monitor, and the other one."""
    (monitor,) = cluster.api.objects("pods", NAMESPACE, "app=rook-ceph-mon")
    nodes = cluster.api.objects("nodes", selector="!node-role.kubernetes.io/control-plane")
    (other,) = {node["metadata"]["name"] for node in nodes} - {monitor["spec"]["nodeName"]}
    return str(monitor["spec"]["nodeName"]), other


@contextmanager
def without_kubelet(cluster: Cluster, node: str) -> Iterator[None]:
    """Stop the kubelet of a worker, whose pods run on, after moving those that the test needs to the other worker."""
    needed = {"plimsoll": OPERATOR_NAMESPACE, "rook-ceph-operator": NAMESPACE, "rook-ceph-tools": NAMESPACE}
    cluster.kubectl("cordon", node)
    try:
        for deployment, namespace in needed.items():
            labels = cluster.api.read(f"apis/apps/v1/namespaces/{namespace}/deployments/{deployment}")["spec"][
                "selector"
            ]
            selector = ",".join(f"{name}={value}" for name, value in labels["matchLabels"].items())
            cluster.kubectl("delete", "pods", "-n", namespace, "-l", selector, f"--field-selector=spec.nodeName={node}")
            cluster.kubectl("rollout", "status", f"deployment/{deployment}", "-n", namespace, "--timeout=240s")
        cluster.docker("exec", node, "systemctl", "stop", "kubelet")
        yield
    finally:
        cluster.docker("exec", node, "systemctl", "start", "kubelet")
        cluster.kubectl("wait", "--for=condition=Ready", f"node/{node}", "--timeout=180s")
        cluster.kubectl("uncordon", node)


@pytest.mark.fault(
    "Ceph",
    "The conductor's node fails and does not return",
    "while OSDs are taken away by `disturb`",
    ends="a Job gives all OSDs back, whether the run is deleted, suspended, over or waits for its conductor",
    within="5 minutes after the conductor's pod should be gone",
)
@pytest.mark.parametrize(("conductor", "then"), [("killed", "deleted"), ("alive", "waiting")])
def test_an_osd_comes_back_although_the_conductors_node_does_not(
    cluster: Cluster, clean: Ceph, namespace: str, conductor: str, then: str
) -> None:
    before, (other, node) = clean.osds(), workers(cluster)
    dark = disturbed_run("dark", namespace, "Out", seconds=1200)
    dark["spec"]["clients"]["nodeSelector"] = {HOSTNAME: other}
    dark["spec"]["conductor"] = {"nodeSelector": {HOSTNAME: node}}
    # A run that waits does not end before the OSD should be back.
    dark["spec"]["timeouts"] = {"provisionSeconds": 300, "readySeconds": 1800, "totalSeconds": 3600}
    cluster.apply(dark)
    cluster.until(lambda: clean.osds() != before, seconds=240, what="an OSD is away")
    pod = cluster.object("pods", cluster.conductor_pod("dark", namespace), namespace)
    with without_kubelet(cluster, node):
        if conductor == "killed":
            cluster.signal_pod(pod, "KILL")
        if then == "deleted":
            cluster.kubectl("delete", "benchmarkrun", "dark", "-n", namespace, "--wait=false")
        # The conductor would give it back after 1200 s.
        cluster.until(lambda: clean.osds() == before, seconds=480, what="the OSD is back")
        assert cluster.exists("pods", pod["metadata"]["name"], namespace)
    clean.until_healthy()
    cluster.kubectl("delete", "benchmarkrun", "dark", "-n", namespace, "--ignore-not-found", "--timeout=240s")
    assert cluster.leftovers(namespace) == []
