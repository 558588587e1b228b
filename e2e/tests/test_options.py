"""Runs that set options of a real Ceph's OSDs while they measure."""

from collections.abc import Iterator
from typing import Any

import pytest

from ceph import OSDS, Ceph, replicated, rook_run
from runs import workload
from support import Cluster

pytestmark = pytest.mark.ceph

PROFILE = "osd_mclock_profile"
RUNS, ADMINISTRATORS = "high_client_ops", "high_recovery_ops"
SETTING = [{"who": "osd", "name": PROFILE, "value": RUNS}, {"who": "osd.1", "name": PROFILE, "value": "balanced"}]
WHILE_MEASURING = {"osd": RUNS, "osd.1": "balanced"}
BEFORE = {"osd": ADMINISTRATORS}


def options_run(name: str, namespace: str, *options: dict[str, str], **changes: Any) -> dict[str, Any]:
    """Return a run that sets options, in a pool whose CRUSH root it names."""
    manifest = rook_run(name, namespace, replicated() | {"crushRoot": "default"}, **changes)
    manifest["spec"]["storage"]["rook"]["config"] = list(options)
    return manifest


@pytest.fixture
def configured(clean: Ceph) -> Iterator[Ceph]:
    """Return the Ceph with an option that an administrator set, and check that it is unchanged afterwards."""
    clean.set_option("osd", PROFILE, ADMINISTRATORS)
    try:
        yield clean
        assert clean.options(PROFILE) == BEFORE
    finally:
        clean.remove_option("osd", PROFILE)
        clean.remove_option("osd.1", PROFILE)


@pytest.mark.tertiary
def test_options_are_used_during_trials_and_restored_although_the_conductor_was_killed(
    cluster: Cluster, configured: Ceph, namespace: str
) -> None:
    cluster.apply(options_run("tuned", namespace, *SETTING, workloads=[workload(runtimeSeconds=20)]))
    cluster.until_measuring("tuned", namespace)
    assert configured.options(PROFILE) == WHILE_MEASURING
    assert [configured.used_option(osd, PROFILE) for osd in range(OSDS)] == [RUNS, "balanced", RUNS]
    cluster.kill_pod(cluster.conductor_pod("tuned", namespace), namespace)
    cluster.until_succeeded("tuned", namespace)
    (result,) = cluster.results("tuned", namespace)
    assert result["status"]["environment"]["ceph"]["options"] == {
        "osd": {PROFILE: RUNS},
        "osd.1": {PROFILE: "balanced"},
    }
    assert result["status"]["fingerprint"]["identity"]["cephOptions"]["osd"] == {PROFILE: RUNS}
    assert "crushRoot" not in result["status"]["environment"]["pool"], "it is the usual one"
    assert configured.options(PROFILE) == BEFORE
    cluster.until(
        lambda: configured.used_option(1, PROFILE) == ADMINISTRATORS, seconds=30, what="the OSD uses the former value"
    )
    assert cluster.leftovers(namespace) == []


@pytest.mark.secondary
@pytest.mark.thorough
def test_options_of_a_deleted_run_whose_conductor_was_killed_are_restored(
    cluster: Cluster, configured: Ceph, namespace: str
) -> None:
    cluster.apply(options_run("doomed", namespace, *SETTING, workloads=[workload(runtimeSeconds=60)]))
    cluster.until_measuring("doomed", namespace)
    assert configured.options(PROFILE) == WHILE_MEASURING
    cluster.kubectl("delete", "benchmarkrun", "doomed", "-n", namespace, "--wait=false")
    pods = cluster.items("pods", namespace, run="doomed")
    for pod in pods:
        cluster.kubectl(
            "delete",
            "pod",
            pod["metadata"]["name"],
            "-n",
            namespace,
            "--grace-period=0",
            "--force",
            "--ignore-not-found",
        )
    cluster.kubectl("delete", "benchmarkrun", "doomed", "-n", namespace, "--ignore-not-found", "--timeout=240s")
    assert configured.options(PROFILE) == BEFORE


@pytest.mark.tertiary
@pytest.mark.thorough
def test_an_option_that_another_user_changes_during_a_trial_makes_it_invalid_and_stays(
    cluster: Cluster, configured: Ceph, namespace: str
) -> None:
    timeouts = {"provisionSeconds": 120, "readySeconds": 30, "totalSeconds": 1200}
    spec = {"workloads": [workload(runtimeSeconds=20)], "timeouts": timeouts}
    cluster.apply(options_run("disturbed", namespace, *SETTING, **spec))
    cluster.until_measuring("disturbed", namespace)
    configured.set_option("osd.1", PROFILE, ADMINISTRATORS)
    ended = cluster.until_over("disturbed", namespace)
    assert ended["status"] == "False"
    assert ended["reason"] == "GateClosed"
    measured = [trial for trial in cluster.trials("disturbed", namespace) if trial["outcome"] == "Measured"]
    findings = [finding for finding in measured[0]["findings"] if finding["reason"] == "CephOptionsDiffer"]
    assert [finding["verdict"] for finding in findings] == ["Invalid"]
    assert f"{PROFILE} {ADMINISTRATORS} instead of balanced" in findings[0]["message"]
    cluster.until_condition("disturbed", namespace, "CleanedUp", reason="Removed")
    assert configured.options(PROFILE) == BEFORE | {"osd.1": ADMINISTRATORS}
    configured.remove_option("osd.1", PROFILE)


@pytest.mark.secondary
@pytest.mark.parametrize(
    ("name", "value", "reason", "words"),
    [
        ("osd_memory_target", "4Gi", "CephOptionNotAllowed", "rook.options"),
        ("osd_op_queue", "wpq", "CephOptionRefused", "only after a restart of the OSDs"),
        (PROFILE, "fast", "CephOptionRefused", "choose one of"),
    ],
)
@pytest.mark.thorough
def test_an_option_that_cannot_be_set_is_refused(
    cluster: Cluster, configured: Ceph, namespace: str, name: str, value: str, reason: str, words: str
) -> None:
    run = name.replace("_", "-") + f"-{value.lower()}"
    cluster.apply(options_run(run, namespace, {"who": "osd", "name": name, "value": value}))
    ended = cluster.until_over(run, namespace, seconds=180)
    assert (ended["status"], ended["reason"]) == ("False", reason)
    assert name in ended["message"]
    assert words in ended["message"]
    assert configured.options("osd_op_queue") == configured.options("osd_memory_target") == {}
