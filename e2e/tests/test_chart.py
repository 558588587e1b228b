"""Upgrade, uninstallation and reinstallation of the chart with runs. Last, because the operator is removed.

Uninstalling with `deleteRunsOnUninstall.enabled` deletes all runs of the cluster, and without `crds.keep` all results.
"""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from runs import assert_measured_once, run, workload
from support import OPERATOR, OPERATOR_NAMESPACE, ROOT, Cluster

pytestmark = pytest.mark.release

RELEASE = "plimsoll"
DEFINITIONS = ["benchmarkruns.plimsoll.dev", "benchmarkresults.plimsoll.dev"]
HOLD = "plimsoll.test/hold"


class Helm:
    """The release of e2e/install.sh, with its values."""

    def __init__(self, cluster: Cluster, values: Path) -> None:
        self._environment = cluster.environment
        self._program = self._run(ROOT / "hack" / "tool.sh", "helm").stdout.strip()
        self._values = values
        values.write_text(self("get", "values", RELEASE, "--output", "yaml"))

    def __call__(self, *arguments: str) -> str:
        """Return Helm's output; fail with its error message."""
        done = self._helm(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def complaint(self, *arguments: str) -> str:
        """Return Helm's error message; fail if it succeeds."""
        done = self._helm(*arguments)
        assert done.returncode != 0, done.stdout
        return done.stdout + done.stderr

    def install(self, *settings: str) -> None:
        """Install or upgrade with other values than e2e/install.sh."""
        chosen = [f"--set={setting}" for setting in settings]
        chart = str(ROOT / "charts" / "plimsoll")
        self("upgrade", "--install", RELEASE, chart, f"--values={self._values}", *chosen, "--wait", "--timeout=180s")

    def _helm(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self._run(self._program, *arguments, "--namespace", OPERATOR_NAMESPACE)

    def _run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(arguments, capture_output=True, text=True, check=False, env=self._environment)


@pytest.fixture
def helm(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[Helm]:  # noqa: ARG001 - torn down before the namespace
    """Return Helm; afterwards, reinstall the original operator, which cleans up the namespace."""
    helm = Helm(cluster, tmp_path / "values.yaml")
    yield helm
    helm.install()


def operators(cluster: Cluster) -> set[str]:
    """Return the UIDs of the operators that are not being deleted."""
    pods = cluster.api.objects("pods", OPERATOR_NAMESPACE, OPERATOR)
    return {pod["metadata"]["uid"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}


def leads_without(cluster: Cluster, before: set[str]) -> bool:
    """Whether a new operator leads."""
    leader = cluster.leader()
    return leader is not None and leader["metadata"]["uid"] not in before


def installed(cluster: Cluster) -> list[str]:
    """Return the release's objects, except definitions and namespaces."""
    kinds = "deployments,pods,jobs,services,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings"
    return cluster.kubectl("get", kinds, "-A", "-l", f"app.kubernetes.io/instance={RELEASE}", "-o", "name").split()


def definitions(cluster: Cluster) -> list[str]:
    """Return Plimsoll's existing definitions."""
    return [name for name in DEFINITIONS if cluster.exists("customresourcedefinitions", name)]


def uninstall(cluster: Cluster, helm: Helm) -> None:
    """Uninstall the release; Helm waits for its own objects, but not for those that they created."""
    helm("uninstall", RELEASE, "--wait", "--timeout=240s")
    cluster.until(lambda: not installed(cluster), seconds=90, what="all objects of the release are gone")


def test_helm_test_passes_and_leaves_nothing(cluster: Cluster, helm: Helm) -> None:
    before = set(installed(cluster))
    assert "Phase:          Succeeded" in helm("test", RELEASE)
    assert set(installed(cluster)) == before


def test_an_image_that_cannot_be_pulled_is_reported(cluster: Cluster, namespace: str, helm: Helm) -> None:
    # The helpers that drop caches have the same image, and Helm would wait for them.
    without_helpers = "caches.nodeSelector.plimsoll\\.test/helper=none"
    helm.install("runner.image.repository=localhost:1/plimsoll-runner", "runner.image.tag=absent", without_helpers)
    timeouts = {"provisionSeconds": 20, "readySeconds": 20, "totalSeconds": 600}
    cluster.apply(run("pull", namespace, timeouts=timeouts))
    waiting = cluster.until_condition("pull", namespace, "ClientsReady", reason="ImagePullFailed", seconds=60)
    assert "localhost:1/plimsoll-runner:absent" in waiting["message"]
    ended = cluster.until_over("pull", namespace, seconds=120)
    assert (ended["status"], ended["reason"]) == ("False", "ImagePullFailed")
    assert cluster.leftovers(namespace) == []


@pytest.mark.thorough
def test_maintenance_windows_admit_delay_and_refuse_runs(cluster: Cluster, namespace: str, helm: Helm) -> None:
    """One window closes in a quarter of an hour, another one opens later, for an hour."""
    before, now = operators(cluster), datetime.now(UTC)
    opens = (now + timedelta(hours=3)).replace(second=0, microsecond=0)
    windows = [(now - timedelta(hours=1), now + timedelta(minutes=15)), (opens, opens + timedelta(hours=1))]
    helm.install(
        *(
            f"maintenanceWindows[{number}].from={begin:%H:%M},maintenanceWindows[{number}].to={end:%H:%M}"
            for number, (begin, end) in enumerate(windows)
        )
    )
    cluster.until(lambda: leads_without(cluster, before), seconds=60, what="an operator with the windows leads")
    long = {"repetitions": 1, "timeouts": {"totalSeconds": 10_000}}
    cluster.apply(run("refused", namespace, **long, workloads=[workload(runtimeSeconds=7200)]))
    ended = cluster.until_over("refused", namespace, seconds=30)
    assert (ended["status"], ended["reason"]) == ("False", "WindowsTooShort")
    assert "set longer ones in the chart's maintenanceWindows" in ended["message"]
    cluster.apply(run("delayed", namespace, **long, workloads=[workload(runtimeSeconds=1800)]))
    waiting = cluster.until_condition("delayed", namespace, "Admitted", reason="WaitingForWindow", seconds=30)
    assert f"waiting until {opens:%Y-%m-%dT%H:%M:%SZ} for the next maintenance window" in waiting["message"]
    assert cluster.leftovers(namespace) == [], "a run that waits has created nothing"
    # Until it is deleted, the next run on its StorageClass waits for its turn.
    cluster.kubectl("delete", "benchmarkrun", "delayed", "-n", namespace, "--timeout=240s")
    cluster.apply(run("admitted", namespace))
    cluster.until_measuring("admitted", namespace)


def test_upgrade_uninstall_and_reinstall_during_a_measurement(cluster: Cluster, namespace: str, helm: Helm) -> None:
    cluster.apply(run("kept", namespace, workloads=[workload(runtimeSeconds=20)]))
    cluster.until_measuring("kept", namespace)
    before = operators(cluster)
    helm.install("podAnnotations.upgraded=once")
    assert not operators(cluster) & before
    uninstall(cluster, helm)
    assert definitions(cluster) == DEFINITIONS
    assert cluster.exists("benchmarkruns", "kept", namespace)
    helm.install()
    cluster.until_succeeded("kept", namespace)
    assert cluster.interruptions("kept", namespace) == []
    assert_measured_once(cluster.trials("kept", namespace), 2)


@contextmanager
def held(cluster: Cluster, name: str, namespace: str) -> Iterator[None]:
    """Create a run whose deletion is blocked until the context ends."""
    manifest = run(name, namespace, suspend=True)
    manifest["metadata"]["finalizers"] = [HOLD]
    cluster.apply(manifest)
    try:
        yield
    finally:
        release = json.dumps({"metadata": {"finalizers": None}})
        cluster.kubectl("patch", "benchmarkrun", name, "-n", namespace, "--type=merge", "-p", release)


def test_with_the_hook_runs_are_deleted_before_the_release_or_not_at_all(
    cluster: Cluster, namespace: str, helm: Helm
) -> None:
    cluster.apply(run("measuring", namespace))
    cluster.until_measuring("measuring", namespace)
    with held(cluster, "held", namespace):
        helm.install("deleteRunsOnUninstall.enabled=true", "deleteRunsOnUninstall.timeoutSeconds=30")
        complaint = helm.complaint("uninstall", RELEASE, "--wait", "--timeout=240s")
        assert f"these suites and runs still exist; is the operator running? {namespace}/held" in complaint
        assert cluster.leftovers(namespace) == [], "the other one is gone"
        assert operators(cluster)
        helm("rollback", RELEASE, "--wait")
    helm.install("deleteRunsOnUninstall.enabled=true", "crds.keep=false")
    uninstall(cluster, helm)
    cluster.until(lambda: not definitions(cluster), seconds=60, what="the definitions are gone, and all runs with them")
