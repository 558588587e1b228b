"""What `plimsoll doctor` concludes: for each rule a cluster or machine with which all is well, and what is not."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.cli.diagnosis import (
    OLDEST_KUBERNETES,
    RIGHTS,
    TESTED_KUBERNETES,
    Facts,
    Finding,
    Hidden,
    State,
    client_pod,
    conclusion,
    diagnose,
)
from plimsoll.cli.doctor import check_machine, judge_engine, judge_fio, judge_host
from plimsoll.cli.local_storage import LOCK_FILE, Target
from plimsoll.lifecycle.run import PodDefaults, Settings
from plimsoll.tools.fio.parameters import Engine

ROOT = Path(__file__).parents[3]
Document = dict[str, Any]
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
VERSION = yaml.safe_load((ROOT / "charts" / "plimsoll" / "Chart.yaml").read_text())["appVersion"]
INSTALLED = [*yaml.load_all((ROOT / "manifests" / "install.yaml").read_text(), yaml.CSafeLoader)]
OPERATOR = next(obj for obj in INSTALLED if obj["kind"] == "Deployment") | {"status": {"readyReplicas": 2}}
ROOK = "rook-ceph/rook-ceph"
SETTINGS = Settings(runner_image="runner", rook_clusters={ROOK: ("bench",)})
RIGHTS_OF_ALL = {right: True for rights in RIGHTS.values() for right in rights}
SETTINGS_OF_OTHERS = replace(SETTINGS, rook_clusters={ROOK: ("other",), "rook-ceph/typo": ("bench",)})


def named(name: str, namespace: str | None = None, labels: Document | None = None, **content: Any) -> Document:
    place = {"namespace": namespace} if namespace else {}
    return {"metadata": {"name": name, "labels": labels or {}, **place}, **content}


def watching(*namespaces: str) -> Document:
    container = OPERATOR["spec"]["template"]["spec"]["containers"][0]
    options = [f"--namespace={each}" for each in namespaces]
    spec = {"template": {"spec": {"containers": [container | {"args": [*container["args"], *options]}]}}}
    return {**OPERATOR, "spec": OPERATOR["spec"] | spec}


def ceph(health: str = "HEALTH_OK", version: str = "20.2.4") -> Document:
    status = {
        "phase": "Ready",
        "conditions": [{"type": "Ready", "status": "True"}],
        "ceph": {
            "health": health,
            "versions": {"osd": {f"ceph version {version} (x) y (stable)": 3}},
            "capacity": {"bytesAvailable": 3 << 40, "bytesTotal": 4 << 40, "bytesUsed": 1 << 40},
        },
        "version": {"version": f"{version}-0"},
    }
    return named("rook-ceph", "rook-ceph", spec={}, status=status)


def storage_class(name: str = "fast", provisioner: str = "rook-ceph.rbd.csi.ceph.com", **fields: Any) -> Document:
    return named(name, provisioner=provisioner, volumeBindingMode="Immediate", allowVolumeExpansion=True, **fields)


def node(name: str = "worker", **spec: Any) -> Document:
    labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    status = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "7910m"}}
    return named(name, labels=labels, spec=spec, status=status)


def node_lease(renewed: str, written: str) -> Document:
    lease = named("worker", "kube-node-lease", spec={"renewTime": f"2026-03-01T{renewed}.300000Z"})
    lease["metadata"]["managedFields"] = [{"manager": "kubelet", "time": f"2026-03-01T{written}Z"}]
    return lease


def lease(renewed: str = "11:59:50", holder: str = "plimsoll-0_a") -> Document:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": f"2026-03-01T{renewed}.000000Z"}
    return named("plimsoll", "plimsoll-system", spec=spec)


def run(created: str, status: Document | None = None) -> Document:
    obj = named("nightly", "bench", **({"status": status} if status else {}))
    obj["metadata"]["creationTimestamp"] = f"2026-03-01T{created}Z"
    return obj


def quota(hard: Document, used: Document | None = None, **spec: Any) -> Document:
    return named("tight", "bench", spec={"hard": hard, **spec}, status={"hard": hard, "used": used or {}})


DRIVER = named("rook-ceph.rbd.csi.ceph.com")
HEALTHY = Facts(
    version=VERSION,
    kubernetes="v1.35.4",
    namespace="bench",
    user="jane",
    storage_class=None,
    now=NOW,
    ahead_seconds=0.3,
    unserved=(),
    refusal="",
    rights=RIGHTS_OF_ALL,
    namespaces=[named("bench", labels={"pod-security.kubernetes.io/enforce": "restricted"})],
    definitions=[named("benchmarkruns.plimsoll.dev", labels={"app.kubernetes.io/version": VERSION})],
    operators=[OPERATOR],
    settings=SETTINGS,
    lease=[lease()],
    runs=[run("11:00:00", {"observedGeneration": 1})],
    ceph_clusters=[ceph()],
    osds=[named("rook-ceph-osd-0", "rook-ceph", {"rook-version": "v1.18.11", "topology-location-host": "worker"})],
    classes=[storage_class()],
    drivers=[DRIVER],
    csi_nodes=[named("worker", spec={"drivers": [{"name": "rook-ceph.rbd.csi.ceph.com"}]})],
    volumes=[],
    quotas=[quota({"pods": "40", "requests.storage": "10Gi"}, {"pods": "2", "requests.storage": "5Gi"})],
    nodes=[node()],
    node_leases=[node_lease("11:59:59", "11:59:59")],
)


def test_all_is_well() -> None:
    findings = {finding.check: finding for finding in diagnose(HEALTHY)}
    assert {finding.state for finding in findings.values()} == {State.OK}, findings
    assert not any(finding.fix for finding in findings.values())
    assert {check: findings[check].text for check in (f"Rook {ROOK}", "Quota tight", "StorageClass fast", "Nodes")} == {
        f"Rook {ROOK}": "Ceph 20.2.4-0, Rook v1.18.11, HEALTH_OK, 1 OSD on 1 host, 3 TiB of 4 TiB free, "
        "runs that name no cluster use it",
        "Quota tight": "pods: 2 of 40 used, requests.storage: 5Gi of 10Gi used",
        "StorageClass fast": ("rook-ceph.rbd.csi.ceph.com, Immediate, expandable, CSI driver on 1 of 1 node"),
        "Nodes": "1 of 1 node for pods, 7.91 CPUs, amd64",
    }


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, f"Ready to measure Rook {ROOK} and StorageClass fast."),
        (
            {"classes": [storage_class("fast"), storage_class("slow", "x.csi.y")]},
            f"Ready to measure Rook {ROOK} and StorageClass fast; not ready: StorageClass slow.",
        ),
        ({"ceph_clusters": [], "classes": []}, f"Not ready: Rook {ROOK} and StorageClass."),
        ({"operators": [], "namespaces": []}, "Not ready: Operator and Namespace."),
        (
            {"rights": RIGHTS_OF_ALL | {("create", "benchmarksuites"): False}},
            f"Ready to measure Rook {ROOK} and StorageClass fast; but see Rights to edit.",
        ),
        ({"rights": RIGHTS_OF_ALL | {("create", "benchmarkruns"): False}}, "Not ready: Rights to edit."),
        ({"pod_refusal": "a webhook said Suspect"}, "Not ready: New pod."),
        ({"ahead_seconds": -5.0}, f"Ready to measure Rook {ROOK} and StorageClass fast; but see Clocks here."),
        (
            {"operators": Hidden("needs list deployments"), "pod_refusal": Hidden("needs create pods")},
            f"Ready to measure Rook {ROOK} and StorageClass fast; not checked: Operator, Leader, Watched and New pod.",
        ),
        ({"settings": SETTINGS_OF_OTHERS, "classes": []}, "Not ready: Rook rook-ceph/typo and StorageClass."),
    ],
)
def test_the_last_line_says_what_a_run_can_measure(changes: Document, expected: str) -> None:
    assert conclusion([*diagnose(replace(HEALTHY, **changes))]) == expected


def test_a_cluster_of_another_kubernetes_is_no_problem_beside_one_that_exists() -> None:
    settings = replace(SETTINGS, rook_clusters={ROOK: ("bench",), "other/ceph": ("bench",)})
    findings = {finding.check: finding for finding in diagnose(replace(HEALTHY, settings=settings))}
    assert findings["Rook other/ceph"].state is State.UNUSED
    assert findings[f"Rook {ROOK}"].state is State.OK


@pytest.mark.parametrize("home", ["plimsoll-system", "ops"])
def test_commands_are_for_the_operator_that_an_administrator_installed_not_for_one_of_a_tenant(home: str) -> None:
    real = OPERATOR | {"metadata": OPERATOR["metadata"] | {"namespace": home}}
    fake = OPERATOR | {"metadata": OPERATOR["metadata"] | {"namespace": "a-tenant", "name": "evil"}}
    crd = named("benchmarkruns.plimsoll.dev", labels=OLD)
    if home != "plimsoll-system":
        crd["metadata"]["annotations"] = {"meta.helm.sh/release-namespace": home}
    rights = {right: False for rights in RIGHTS.values() for right in rights}
    facts = replace(HEALTHY, operators=[fake, real], definitions=[crd], rights=rights)
    fixes = "\n".join(finding.fix for finding in diagnose(facts))
    assert f"--namespace {home}" in fixes
    assert "a-tenant" not in fixes
    assert "evil" not in fixes


SET = "helm upgrade plimsoll charts/plimsoll --namespace plimsoll-system --reset-then-reuse-values"
UPGRADE = f"{SET} --values values.yaml"
INSTALL = (
    "make images REGISTRY=REGISTRY PUSH=1 > values.yaml && echo 'watchNamespaces: [bench]' >> values.yaml && "
    "helm upgrade --install plimsoll charts/plimsoll --namespace plimsoll-system --create-namespace "
    "--values values.yaml"
)
OLD = {"app.kubernetes.io/version": "0.0.9"}
PROBLEMS: list[tuple[str, Document, str, str]] = [
    ("Kubernetes", {"kubernetes": "v1.30.9+k3s1"}, "v1.30.9+k3s1 is older than 1.31", "upgrade Kubernetes to 1.31"),
    ("CRDs", {"unserved": ["BenchmarkRun"]}, "does not serve BenchmarkRun", UPGRADE),
    ("CRDs", {"unserved": ["BenchmarkRun"], "operators": Hidden("?")}, "does not serve BenchmarkRun", INSTALL),
    ("CRDs", {"definitions": [named("b", labels=OLD)]}, f"version 0.0.9, this program {VERSION}", UPGRADE),
    ("Operator", {"operators": []}, "no Deployment of Plimsoll's operator", INSTALL),
    (
        "Operator",
        {"operators": [OPERATOR | {"status": {}}]},
        "none of 2 replicas",
        "kubectl --namespace plimsoll-system",
    ),
    ("Operator", {"operators": [OPERATOR, OPERATOR]}, "all serve this namespace", "give each its watchNamespaces"),
    ("Operator", {"settings": "PLIMSOLL_LIMITS: bad"}, "invalid settings: PLIMSOLL_LIMITS: bad", UPGRADE),
    (
        "Operator",
        {"operators": [OPERATOR | {"metadata": OPERATOR["metadata"] | {"labels": OLD}}], "settings": "?"},
        "has version 0.0.9",
        UPGRADE,
    ),
    ("Leader", {"lease": [lease("11:59:00")]}, "has not renewed the Lease for 60 s", "deployment/plimsoll"),
    ("Leader", {"lease": [lease(holder="")]}, "no operator holds the Lease", "kubectl logs"),
    ("Leader", {"lease": []}, "no operator holds the Lease", "kubectl logs"),
    ("Namespace", {"namespaces": []}, "namespace bench does not exist", "kubectl create namespace bench"),
    (
        "Watched",
        {"operators": [watching("plimsoll-system", "other")]},
        "runs in bench never start",
        f"{SET} --set 'watchNamespaces={{other,bench}}'",
    ),
    (
        "Watched",
        {"operators": [watching("'; rm '")]},
        "never start",
        """--set 'watchNamespaces={'"'"'; rm '"'"',bench}'""",
    ),
    ("Runs", {"runs": [run("11:59:00")]}, "no operator has observed nightly", "watchNamespaces has bench"),
    (
        "Rights to edit",
        {"rights": dict(HEALTHY.rights) | {("create", "benchmarkruns"): False}},  # type: ignore[arg-type]
        "jane may not create benchmarkruns in namespace bench",
        "create rolebinding plimsoll-edit-jane --clusterrole=plimsoll-edit --user=jane",
    ),
    (
        "Rights to edit",
        {"rights": dict.fromkeys(HEALTHY.rights, False), "user": "jane; rm"},  # type: ignore[arg-type]
        "may not create benchmarkruns, create benchmarksuites, patch benchmarksuites, delete benchmarkruns",
        "--user='jane; rm'",
    ),
    ("New run", {"refusal": 'unknown field "spec.new"'}, 'refused: unknown field "spec.new"', UPGRADE),
    (
        "New pod",
        {"pod_refusal": "failed quota: tight: must specify limits.cpu"},
        "refused: failed quota: tight: must specify limits.cpu",
        "the chart's podDefaults.resources",
    ),
    (
        "Quota tight",
        {"quotas": [quota({"pods": "3"}, {"pods": "3"})]},
        "leaves no room for a run (pods: 3 of 3 used)",
        "kubectl --namespace bench edit resourcequota tight",
    ),
    (f"Rook {ROOK}", {"ceph_clusters": []}, "does not exist", "install Rook"),
    (f"Rook {ROOK}", {"ceph_clusters": [ceph("HEALTH_ERR")]}, "is HEALTH_ERR", "describe cephcluster rook-ceph"),
    (f"Rook {ROOK}", {"ceph_clusters": [ceph(version="17.2.7")]}, "Plimsoll measures Ceph 18.2 and later", "kubectl"),
    ("StorageClass", {"classes": []}, "there is none", "install a CSI driver"),
    (
        "StorageClass fast",
        {"drivers": [], "csi_nodes": []},
        "CSIDriver rook-ceph.rbd.csi.ceph.com does not",
        "csinodes",
    ),
    ("StorageClass fast", {"csi_nodes": [named("worker", spec={})]}, "is on no node", "kubectl get csidrivers"),
    ("StorageClass slow", {"storage_class": "slow"}, "StorageClass slow does not exist", "kubectl get storageclasses"),
    (
        "StorageClass fast",
        {"classes": [storage_class(provisioner="kubernetes.io/no-provisioner")]},
        "no PersistentVolume of this static StorageClass is Available",
        "kubectl get persistentvolumes",
    ),
    ("Nodes", {"nodes": [node(unschedulable=True)]}, "none of 1 node is ready, untainted", "kubectl get nodes"),
    ("Nodes", {"nodes": [node(taints=[{"key": "k", "effect": "NoSchedule"}])]}, "none of 1 node", "kubectl get nodes"),
    (
        "Nodes",
        {"settings": replace(SETTINGS, pod_defaults=PodDefaults(node_selector={"pool": "bench"}))},
        "has kubernetes.io/os=linux,pool=bench",
        "kubectl get nodes",
    ),
    ("Clocks here", {"ahead_seconds": -61.0}, "61 s behind the API server's", "timedatectl"),
    ("Clocks of nodes", {"node_leases": [node_lease("11:59:09", "11:59:04")]}, "worker by 5 s", "timedatectl"),
]


@pytest.mark.parametrize(("check", "changes", "text", "fix"), PROBLEMS)
def test_a_problem_is_named_with_its_fix(check: str, changes: Document, text: str, fix: str) -> None:
    findings = {finding.check: finding for finding in diagnose(replace(HEALTHY, **changes))}
    assert findings[check].state is State.PROBLEM, findings
    assert text in findings[check].text
    assert fix in findings[check].fix


UNUSED: list[tuple[str, Document, str, str]] = [
    ("Runs", {"runs": []}, "there is none in namespace bench", ""),
    (
        f"Rook {ROOK}",
        {"settings": replace(SETTINGS, rook_clusters={ROOK: ("other",)})},
        f"runs in namespace bench may not use CephCluster {ROOK}",
        f"""{SET} --set-json 'rook.clusters={{"{ROOK}": ["other", "bench"]}}'""",
    ),
    ("Rook", {"settings": Settings(runner_image="r"), "ceph_clusters": []}, "none is allowed", ""),
]


@pytest.mark.parametrize(("check", "changes", "text", "fix"), UNUSED)
def test_what_is_not_used_is_no_problem(check: str, changes: Document, text: str, fix: str) -> None:
    findings = {finding.check: finding for finding in diagnose(replace(HEALTHY, **changes))}
    assert findings[check].state is State.UNUSED, findings
    assert text in findings[check].text
    assert findings[check].fix == fix


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"namespaces": [named("bench")]}, "no profile is enforced by a label"),
        (
            {},
            "enforces restricted: clients of a Block volume run as root, which Pod Security in namespace bench forbids",
        ),
        (
            {"namespaces": [named("bench", labels={"pod-security.kubernetes.io/enforce": "baseline"})]},
            "enforces baseline: clients of Block volumes need baseline",
        ),
    ],
)
def test_pod_security_names_the_profile(changes: Document, text: str) -> None:
    (finding,) = (each for each in diagnose(replace(HEALTHY, **changes)) if each.check == "Pod Security")
    assert finding.state is State.OK
    assert finding.text.startswith(text)


def test_the_pod_that_is_tried_has_no_labels_that_only_the_operator_may_set() -> None:
    defaults = PodDefaults(labels={"team": "storage"})
    pod = client_pod(replace(HEALTHY, settings=replace(SETTINGS, pod_defaults=defaults)))
    assert pod is not None
    assert pod["metadata"]["labels"] == {"sidecar.istio.io/inject": "false", "team": "storage"}
    assert not any(key.startswith("plimsoll.dev/") for key in pod["metadata"]["annotations"])


def test_a_static_class_counts_its_volumes() -> None:
    volume = named("pv", spec={"storageClassName": "fast", "volumeMode": "Block"})
    static = storage_class(provisioner="kubernetes.io/no-provisioner")
    facts = replace(HEALTHY, classes=[static], volumes=[volume], storage_class="fast")
    (finding,) = (each for each in diagnose(facts) if each.check.startswith("StorageClass"))
    assert finding.state is State.OK
    assert finding.text.endswith("1 PersistentVolume Available")


def test_what_is_not_visible_is_unknown_and_names_the_right() -> None:
    rights = ("namespaces", "operators", "settings", "ceph_clusters", "classes", "quotas", "nodes")
    hidden = {field: Hidden(f"needs list {field}") for field in (*rights, "definitions", "runs", "node_leases")}
    facts = replace(HEALTHY, lease=None, **hidden)  # type: ignore[arg-type]
    states = {finding.check: (finding.state, finding.text) for finding in diagnose(facts)}
    unknown = {check: text for check, (state, text) in states.items() if state is State.UNKNOWN}
    assert unknown["Operator"] == unknown["Watched"] == "needs list operators"
    assert unknown["Rook"] == "needs list settings"
    assert set(states) - set(unknown) == {
        "Kubernetes",
        "Rights to view",
        "Rights to edit",
        "New run",
        "New pod",
        "Clocks here",
    }
    assert State.PROBLEM not in {state for state, _ in states.values()}
    assert conclusion([*diagnose(facts)]).startswith(
        "It is unknown what a run can measure; not checked: CRDs, Operator"
    )


def test_without_an_operator_no_one_knows_which_rook_clusters_are_allowed() -> None:
    facts = replace(HEALTHY, operators=[], settings="there is no operator", lease=None)
    findings = {finding.check: finding for finding in diagnose(facts)}
    assert findings["Rook"].state is State.UNKNOWN
    assert findings["Rook"].text.endswith(": there is no operator")
    assert "Watched" not in findings


def test_versions_are_those_of_the_chart_and_the_support_table() -> None:
    chart = yaml.safe_load((ROOT / "charts" / "plimsoll" / "Chart.yaml").read_text())
    assert chart["kubeVersion"] == f">={'.'.join(map(str, OLDEST_KUBERNETES))}.0-0"
    row = next(
        line
        for line in (ROOT / "docs" / "reference" / "limits.md").read_text().splitlines()
        if line.startswith("| Kubernetes |")
    )
    tested = row.split("|")[2]
    assert all(version in tested for version in TESTED_KUBERNETES)
    assert tested.count("1.") == len(TESTED_KUBERNETES)


# This machine


def outcome(finding: Finding) -> tuple[State, str]:
    return finding.state, finding.text


@pytest.mark.parametrize(
    ("printed", "state", "text"),
    [
        ("fio-3.39", State.OK, "fio-3.39"),
        ("fio-3.36-dirty", State.OK, "fio-3.36"),
        ("fio-3.35", State.PROBLEM, "ToolTooOld"),
        ("cannot execute", State.PROBLEM, "fio cannot be run: cannot execute"),
        (None, State.PROBLEM, "fio cannot be run"),
    ],
)
def test_fio(printed: str | None, state: State, text: str) -> None:
    finding = judge_fio("fio", printed)
    assert finding.state is state
    assert text in finding.text
    assert bool(finding.fix) is (state is State.PROBLEM)


@pytest.mark.parametrize(
    ("facts", "busy", "expected"),
    [
        ({"cpuGovernor": "performance", "clockSource": "tsc"}, 0.2, {}),
        ({"clockSource": "tsc"}, 0.95, {"Load": "results would be Suspect (NodeCpuSaturated)"}),
    ],
)
def test_host(facts: Document, busy: float, expected: dict[str, str]) -> None:
    findings = [*judge_host({"processors": 4, "architecture": "x86_64", **facts}, busy=busy, load=1.0)]
    problems = {finding.check: finding.text for finding in findings if finding.state is State.PROBLEM}
    assert problems.keys() == expected.keys()
    assert all(expected[check] in text for check, text in problems.items())


def test_a_governor_that_saves_power_is_a_hint() -> None:
    cpus, *_ = judge_host({"cpuGovernor": "powersave"}, busy=0.1, load=0.1)
    assert (cpus.state, "cpupower" in cpus.fix) == (State.OK, True)


@pytest.mark.parametrize(
    ("engine", "problem", "state"),
    [
        (Engine.LIBAIO, "", State.OK),
        (Engine.LIBAIO, "Invalid argument", State.PROBLEM),
        (Engine.IO_URING, "Operation not permitted", State.UNUSED),
    ],
)
def test_engine(engine: Engine, problem: str, state: State) -> None:
    assert judge_engine(engine, problem).state is state


def test_a_directory_is_checked_without_fio_and_nothing_is_left(tmp_path: Path) -> None:
    findings = {finding.check: finding for finding in check_machine(Target(directory=tmp_path), "no-such-fio")}
    assert findings["fio"].text == "no-such-fio cannot be run"
    assert re.fullmatch(rf"{tmp_path}: .*, [0-9.,]+ [KMGT]iB free", findings["Directory"].text)
    assert findings["Direct I/O"].state is State.OK
    assert [*tmp_path.iterdir()] == []


def test_a_directory_that_is_measured_is_refused(tmp_path: Path) -> None:
    with Target(directory=tmp_path).claimed("nightly"):
        findings = {finding.check: finding for finding in check_machine(Target(directory=tmp_path), "no-such-fio")}
    assert "is being measured by another run (run nightly" in findings["Target"].text
    assert findings["Target"].fix.startswith("wait until it has ended")
    assert not (tmp_path / LOCK_FILE).exists()


@pytest.mark.fio
def test_fio_reads_with_each_engine(tmp_path: Path, fio: str) -> None:
    findings = {finding.check: finding for finding in check_machine(Target(directory=tmp_path), fio)}
    assert outcome(findings["Engine libaio"]) == (State.OK, "direct reads work")
    assert findings["fio"].state is State.OK
    assert "Engine io_uring" in findings
