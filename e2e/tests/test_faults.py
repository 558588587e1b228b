"""Processes and nodes fail. No trial is lost or repeated, each reason is reported in time, and nothing is left."""

import json

import pytest

from runs import assert_measured_once, run, workload
from support import Cluster


def assert_every_trial_is_measured_once(cluster: Cluster, name: str, namespace: str, passes: int) -> None:
    for result in cluster.results(name, namespace):
        assert_measured_once(result["status"]["trials"], passes)


@pytest.mark.fault(
    "Conductor and clients",
    "A client's pod is killed",
    "while measuring",
    ends="the trial is aborted (`ClientLost`) and repeated; a new pod replaces the client",
    within="20 s",
)
def test_a_client_pod_killed_mid_trial_is_replaced_and_the_trial_repeated(cluster: Cluster, namespace: str) -> None:
    cluster.apply(run("lost", namespace))
    cluster.until_measuring("lost", namespace)
    pod = cluster.client_pod("lost", namespace, 1)["metadata"]["name"]
    cluster.kill_pod(pod, namespace)
    cluster.until_succeeded("lost", namespace)
    assert cluster.interruptions("lost", namespace) == ["ClientLost"]
    assert_every_trial_is_measured_once(cluster, "lost", namespace, 2)
    assert cluster.leftovers(namespace) == []


@pytest.mark.fault(
    "Conductor and clients",
    "The conductor's pod is deleted",
    "while measuring",
    ends="the clients' pods are kept; the trial is aborted (`Interrupted` or `ConductorRestarted`) and repeated",
    within="as soon as the next conductor runs",
)
def test_a_killed_conductor_loses_and_repeats_no_recorded_trial(cluster: Cluster, namespace: str) -> None:
    cluster.apply(run("headless", namespace, repetitions=3))
    cluster.until(lambda: len(cluster.trials("headless", namespace)) == 1, seconds=180, what="one trial is recorded")
    cluster.until_measuring("headless", namespace)
    cluster.kill_pod(cluster.conductor_pod("headless", namespace), namespace)
    cluster.until_measuring("headless", namespace)
    clients = cluster.items("pods", namespace, run="headless", client="0")
    cluster.until_succeeded("headless", namespace)
    # A deleted pod gets SIGTERM first, so its conductor may still record the trial as interrupted.
    assert cluster.interruptions("headless", namespace) in (["ConductorRestarted"], ["Interrupted"])
    attempts = {pod["metadata"]["labels"]["plimsoll.dev/attempt"] for pod in clients}
    assert attempts == {"0"}, "the clients were not replaced"
    assert_every_trial_is_measured_once(cluster, "headless", namespace, 3)
    assert len({trial["epoch"] for trial in cluster.trials("headless", namespace)}) == 2


@pytest.mark.fault(
    "Operator",
    "The operator is killed",
    "while a run provisions, measures or cleans up",
    ends="`Succeeded=True`; no trial is interrupted, and nothing is left",
    within="16 s",
)
@pytest.mark.kills
@pytest.mark.parametrize(
    "phase",
    [
        pytest.param("Provisioning", marks=pytest.mark.thorough),
        "Measuring",
        pytest.param("CleaningUp", marks=pytest.mark.thorough),
    ],
)
def test_the_operator_may_die_at_any_time(cluster: Cluster, namespace: str, phase: str) -> None:
    cluster.apply(run("orphan", namespace))
    if phase == "Provisioning":
        cluster.until(lambda: cluster.items("jobs", namespace, run="orphan"), seconds=60, what="the Jobs exist")
    elif phase == "Measuring":
        cluster.until_measuring("orphan", namespace)
    else:
        cluster.until_condition("orphan", namespace, "Succeeded", status="True")
    cluster.kill_operator()
    cluster.until_succeeded("orphan", namespace)
    assert cluster.interruptions("orphan", namespace) == []
    assert_every_trial_is_measured_once(cluster, "orphan", namespace, 2)
    assert cluster.leftovers(namespace) == []


@pytest.mark.fault(
    "Operator",
    "The operator is killed",
    "while a run waits for its turn",
    ends="the runs are measured one after the other",
    within="16 s",
)
@pytest.mark.kills
@pytest.mark.thorough
def test_the_operator_may_die_while_a_run_waits(cluster: Cluster, namespace: str) -> None:
    cluster.apply(run("first", namespace, repetitions=1, workloads=[workload(runtimeSeconds=20)]))
    cluster.until_condition("first", namespace, "Admitted", status="True")
    cluster.apply(run("second", namespace, repetitions=1))
    cluster.until_condition("second", namespace, "Reconciling", reason="WaitingForTurn", seconds=30)
    cluster.kill_operator()
    cluster.until_measured_in_turn("first", "second", namespace)
    assert cluster.leftovers(namespace) == []


@pytest.mark.fault(
    "Operator",
    "The operator is killed",
    "while a run is suspended",
    ends="the run resumes, and each trial is measured once",
    within="16 s",
)
@pytest.mark.kills
@pytest.mark.thorough
def test_the_operator_may_die_while_a_run_is_suspended(cluster: Cluster, namespace: str) -> None:
    cluster.apply(run("paused", namespace))
    cluster.until_measuring("paused", namespace)
    cluster.suspend("paused", namespace, suspend=True)
    cluster.until_condition("paused", namespace, "Suspended", status="True", seconds=60)
    cluster.kill_operator()
    cluster.until(lambda: not cluster.items("pods", namespace, run="paused"), seconds=120, what="the pods are gone")
    cluster.suspend("paused", namespace, suspend=False)
    cluster.until_succeeded("paused", namespace)
    assert_every_trial_is_measured_once(cluster, "paused", namespace, 2)
    assert cluster.leftovers(namespace) == []


@pytest.mark.fault(
    "Conductor and clients",
    "The conductor's pod is killed and no node takes its successor",
    "while measuring",
    ends="`Succeeded=False`, `ConductorNotReady` with the scheduler's words",
    within="`timeouts.readySeconds`",
)
@pytest.mark.nodes
def test_a_conductor_that_cannot_restart_is_reported(cluster: Cluster, namespace: str) -> None:
    timeouts = {"provisionSeconds": 120, "readySeconds": 20, "totalSeconds": 1200}
    cluster.apply(run("beheaded", namespace, timeouts=timeouts, workloads=[workload(runtimeSeconds=20)]))
    cluster.until_measuring("beheaded", namespace)
    workers = [node["metadata"]["name"] for node in cluster.api.objects("nodes")]
    cluster.kubectl("cordon", *workers)
    try:
        cluster.kill_pod(cluster.conductor_pod("beheaded", namespace), namespace)
        ended = cluster.until_over("beheaded", namespace, seconds=180)
    finally:
        cluster.kubectl("uncordon", *workers)
    assert (ended["status"], ended["reason"]) == ("False", "ConductorNotReady"), cluster.diagnosis(
        "beheaded", namespace
    )
    assert "unschedulable" in ended["message"].lower()
    assert cluster.leftovers(namespace) == []


SHORT = {"provisionSeconds": 30, "readySeconds": 30, "totalSeconds": 600}


@pytest.mark.fault(
    "Storage",
    "No volume fits a PVC",
    "while provisioning",
    ends="`Succeeded=False`, `Unschedulable` with the scheduler's words",
    within="`timeouts.provisionSeconds`",
)
def test_a_claim_that_cannot_bind_is_reported(cluster: Cluster, namespace: str) -> None:
    storage = {"storageClass": {"name": "block"}, "volume": {"size": "900Gi", "mode": "Block"}}
    cluster.allow_root(namespace)
    cluster.apply(run("unbound", namespace, storage=storage, timeouts=SHORT))
    ended = cluster.until_over("unbound", namespace, seconds=120)
    assert (ended["status"], ended["reason"]) == ("False", "Unschedulable"), cluster.diagnosis("unbound", namespace)
    assert "persistent volumes" in ended["message"]
    assert cluster.leftovers(namespace) == []


def test_a_missing_storage_class_is_refused_immediately(cluster: Cluster, namespace: str) -> None:
    storage = {"storageClass": {"name": "absent"}, "volume": {"size": "64Mi"}}
    cluster.apply(run("nowhere", namespace, storage=storage))
    ended = cluster.until_over("nowhere", namespace, seconds=30)
    assert (ended["status"], ended["reason"]) == ("False", "StorageClassNotFound")
    assert "spec.storage.storageClass.name" in ended["message"]
    assert "standard" in ended["message"], "the message lists the existing ones"
    assert cluster.leftovers(namespace) == []


@pytest.mark.fault(
    "API server",
    "A ResourceQuota is used up",
    "while provisioning",
    ends="the run waits with `QuotaExceeded`, then ends with it",
    within="`timeouts.provisionSeconds`",
)
@pytest.mark.parametrize("what", ["persistentvolumeclaims", pytest.param("pods", marks=pytest.mark.thorough)])
def test_an_exhausted_quota_is_reported(cluster: Cluster, namespace: str, what: str) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small", "namespace": namespace},
        "spec": {"hard": {what: "1"}},
    }
    cluster.apply(quota)
    cluster.apply(run("poor", namespace, timeouts=SHORT))
    waiting = cluster.until_condition("poor", namespace, "Reconciling", reason="QuotaExceeded", seconds=30)
    assert "exceeded quota: small" in waiting["message"]
    ended = cluster.until_over("poor", namespace, seconds=120)
    assert (ended["status"], ended["reason"]) == ("False", "QuotaExceeded"), cluster.diagnosis("poor", namespace)
    assert cluster.leftovers(namespace) == []


def test_what_limits_pods_is_named_until_it_is_raised(cluster: Cluster, namespace: str) -> None:
    """A LimitRange with a ratio, then a quota on limits; both refuse pods of Jobs, and LimitRanges come first."""

    def limit(kind: str, spec: dict[str, object]) -> None:
        metadata = {"name": "tight", "namespace": namespace}
        cluster.apply({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec})

    def until_named(words: str) -> str:
        def message() -> str:
            condition = cluster.condition("limited", namespace, "Reconciling") or {}
            is_named = condition.get("reason") == "QuotaExceeded" and words in condition["message"]
            return condition["message"] if is_named else ""

        return cluster.until(message, seconds=120, what=f"the run says {words}")

    limit("LimitRange", {"limits": [{"type": "Container", "maxLimitRequestRatio": {"memory": "2"}}]})
    limit("ResourceQuota", {"hard": {"limits.memory": "64Mi"}})
    resources = {"requests": {"memory": "64Mi"}, "limits": {"memory": "512Mi"}}
    timeouts = {"provisionSeconds": 600, "readySeconds": 300, "totalSeconds": 600}
    cluster.apply(run("limited", namespace, clients={"count": 2, "resources": resources}, timeouts=timeouts))
    message = until_named("memory max limit to request ratio per Container is 2, but provided ratio is 8")
    assert "client 0 (Job limited-client-0-0) has no pod" in message
    limit("LimitRange", {"limits": [{"type": "Container", "maxLimitRequestRatio": {"memory": "16"}}]})
    until_named("exceeded quota: tight, requested: limits.memory=512Mi")
    limit("ResourceQuota", {"hard": {"limits.memory": "8Gi"}})
    cluster.until_succeeded("limited", namespace)
    assert cluster.leftovers(namespace) == []


@pytest.mark.fault(
    "Nodes",
    "No node has room for a client",
    "while provisioning",
    ends="the run waits with `Unschedulable`, then ends with it",
    within="`timeouts.provisionSeconds`",
)
def test_an_unschedulable_client_is_reported(cluster: Cluster, namespace: str) -> None:
    clients = {"count": 2, "resources": {"requests": {"memory": "4Ti"}}}
    cluster.apply(run("huge", namespace, clients=clients, timeouts=SHORT))
    waiting = cluster.until_condition("huge", namespace, "ClientsReady", reason="Unschedulable", seconds=30)
    assert "Insufficient memory" in waiting["message"]
    ended = cluster.until_over("huge", namespace, seconds=120)
    assert (ended["status"], ended["reason"]) == ("False", "Unschedulable")
    assert "Insufficient memory" in ended["message"]
    assert cluster.leftovers(namespace) == []


@pytest.mark.fault(
    "Nodes",
    "The node of a client stops and does not return",
    "while measuring",
    ends=(
        "the trial is aborted (`ClientLost`) after 20 s, then `Succeeded=False`, `ClientsNotReady`; it is cleaned up "
        "when the node returns"
    ),
    within="`timeouts.readySeconds` after its pod is evicted",
)
@pytest.mark.nodes
def test_a_worker_that_stops_during_a_trial_ends_the_run_within_its_deadline(cluster: Cluster, namespace: str) -> None:
    timeouts = {"provisionSeconds": 120, "readySeconds": 25, "totalSeconds": 1200}
    cluster.apply(run("dark", namespace, timeouts=timeouts, workloads=[workload(runtimeSeconds=20)]))
    cluster.until_measuring("dark", namespace)
    conductor = cluster.object("pods", cluster.conductor_pod("dark", namespace), namespace)
    nodes = {cluster.client_pod("dark", namespace, client)["spec"]["nodeName"] for client in range(2)}
    (victim,) = nodes - {conductor["spec"]["nodeName"]}
    cluster.docker("stop", "--time", "1", victim)
    try:
        cluster.until(
            lambda: "ClientLost" in cluster.interruptions("dark", namespace), seconds=90, what="the trial is aborted"
        )
        ended = cluster.until_condition("dark", namespace, "Succeeded", status="False", seconds=240)
    finally:
        cluster.docker("start", victim)
        cluster.kubectl("wait", "--for=condition=Ready", f"node/{victim}", "--timeout=180s")
        cluster.repair()
    assert ended["reason"] in {"ClientsNotReady", "ClientsFailed"}
    assert "client" in ended["message"]
    cluster.until_over("dark", namespace, seconds=180)
    assert cluster.leftovers(namespace) == []


def test_a_run_ends_although_a_second_container_keeps_its_conductors_pod_running(
    cluster: Cluster, namespace: str
) -> None:
    """A quota keeps the Job controller from creating the conductor's pod, so that this test creates it instead."""
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "pods", "namespace": namespace}}
    clients = run("meshed", namespace)["spec"]["clients"]["count"]
    cluster.apply({**quota, "spec": {"hard": {"pods": str(clients)}}})
    cluster.apply(run("meshed", namespace))

    def refused_often() -> bool:
        events = cluster.api.objects("events", namespace, "")
        refusals = [event for event in events if event["involvedObject"]["name"] == "meshed-conductor"]
        return sum(event.get("count") or 1 for event in refusals if event["reason"] == "FailedCreate") >= 5

    cluster.until(refused_often, seconds=180, what="the Job controller pauses for seconds between its attempts")
    job = cluster.object("jobs", "meshed-conductor", namespace)
    template, identity = job["spec"]["template"], {"name": job["metadata"]["name"], "uid": job["metadata"]["uid"]}
    owner = {"apiVersion": "batch/v1", "kind": "Job", **identity, "controller": True, "blockOwnerDeletion": True}
    (container,) = template["spec"]["containers"]
    sidecar = {"name": "sidecar", "command": ["sleep", "infinity"]}
    sidecar |= {key: container[key] for key in ("image", "imagePullPolicy", "securityContext")}
    metadata = {**template["metadata"], "name": "meshed-conductor-sidecar", "namespace": namespace}
    metadata |= {"ownerReferences": [owner], "finalizers": ["batch.kubernetes.io/job-tracking"]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    pod["spec"] = {**template["spec"], "containers": [container, sidecar]}
    cluster.kubectl("delete", "resourcequota", "pods", "--namespace", namespace)
    as_controller = "--as=system:serviceaccount:kube-system:job-controller"
    cluster.kubectl("create", as_controller, "--filename=-", text=json.dumps(pod))
    cluster.until_succeeded("meshed", namespace)
    assert cluster.leftovers(namespace) == []
