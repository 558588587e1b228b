"""The objects of a run as they are sent to the API: golden files, and what must hold for their pods.

`PLIMSOLL_WRITE_GOLDEN=1 pytest tests/lifecycle/test_render.py` writes the files anew; read the difference.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.api.storage import NamespacedName
from plimsoll.conductor.main import EXIT_INTERRUPTED, EXIT_OF_FAILURE
from plimsoll.conductor.secret import make_secret
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render import client, common, conductor, network
from plimsoll.lifecycle.run import NetworkPolicies, Run, Settings, run_of
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import make_plan
from support.apiserver import read_yamls
from support.tooling import baseline, restricted, unsaid

GOLDEN = Path(__file__).parents[1] / "golden" / "render"
SETTINGS = Settings(runner_image="runner:1")

FILES: Mapping[str, Any] = {
    "storage": {"storageClass": {"name": "files"}, "volume": {"size": "1Gi", "mode": "Filesystem"}},
    "clients": {"count": 1},
    "workloads": [{"name": "w", "fio": {}, "runtimeSeconds": 4, "rampSeconds": 1}],
    "repetitions": 1,
}
AFFINITY = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd", "nvme"]}]}]
    }
}
BLOCKS: Mapping[str, Any] = {
    **FILES,
    "storage": {"storageClass": {"name": "blocks"}, "volume": {"size": "1Gi", "mode": "Block"}},
    "clients": {
        "count": 1,
        "spread": "Preferred",
        "resources": {"requests": {"cpu": "500m"}, "limits": {"memory": "1Gi"}},
        "nodeSelector": {"storage": "ceph"},
    },
    "conductor": {"resources": {"limits": {"memory": "2Gi"}}, "nodeSelector": {"storage": "none"}},
    "podTemplate": {
        "labels": {"team": "storage", "sidecar.istio.io/inject": "true"},
        "annotations": {"k8s.v1.cni.cncf.io/networks": "rook-ceph/public"},
        "tolerations": [{"key": "bench", "operator": "Exists"}],
        "affinity": {"nodeAffinity": AFFINITY},
        "priorityClassName": "low",
        "runtimeClassName": "kata",
        "imagePullSecrets": [{"name": "registry"}],
        "env": [{"name": "NO_PROXY", "value": ".svc"}],
    },
    "results": "Retain",
}
SHARED: Mapping[str, Any] = {
    **FILES,
    "storage": {"storageClass": {"name": "files"}, "volume": {"size": "1Gi", "sharing": "Shared"}},
    "clients": {"count": 2},
    "workloads": [{"name": "w", "fio": {"files": "SharedFile"}, "runtimeSeconds": 4, "rampSeconds": 1}],
}
STREAMS: Mapping[str, Any] = {
    "clients": {"count": 2},
    "workloads": [{"name": name, name: {}, "runtimeSeconds": 4, "rampSeconds": 1} for name in ("iperf3", "netcat")],
    "repetitions": 1,
}
PINGS: Mapping[str, Any] = {
    **STREAMS,
    "workloads": [*STREAMS["workloads"], {"name": "ping", "ping": {}, "runtimeSeconds": 4, "rampSeconds": 1}],
}
RUNS: Mapping[str, Mapping[str, Any]] = {
    "filesystem": FILES,
    "block": BLOCKS,
    "no-volume": STREAMS,
    "pings": PINGS,
    "shared": SHARED,
}


def run_named(name: str) -> tuple[Run, Plan]:
    metadata = {
        "name": name,
        "namespace": "bench",
        "uid": "d9428888-122b-11e1-b85c-61cd3cbb3210",
        "creationTimestamp": "2026-01-01T12:00:00Z",
    }
    document = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BenchmarkRun", "metadata": metadata, "spec": RUNS[name]}
    run = run_of(document, SETTINGS)
    assert run.document is not None
    plan = make_plan(run.document, seed=1, runner_image=SETTINGS.runner_image)
    return run, plan


def rendered(name: str, settings: Settings = SETTINGS) -> list[dict[str, Any]]:
    """Return every object of a run, without the second and later of a kind that there is one of per client or point."""
    run, plan = run_named(name)
    claims = list(client.claims(run, plan, "fast"))[:1]
    return [
        common.plan_config_map(run, plan),
        common.state_config_map(run),
        common.session_secret(run),
        *(common.result(run, plan, point) for point in plan.points),
        conductor.service_account(run),
        conductor.role(run, plan),
        conductor.role_binding(run),
        conductor.service(run, settings),
        *network.policies(run, plan, settings),
        *claims,
        client.job(run, plan, settings, client=0, attempt=0),
        conductor.job(run, plan, settings),
    ]


@pytest.mark.parametrize("name", RUNS)
def test_objects_are_what_the_golden_file_says(name: str) -> None:
    objects = rendered(name)
    path = GOLDEN / f"{name}.yaml"
    if os.environ.get("PLIMSOLL_WRITE_GOLDEN"):
        path.write_text(yaml.safe_dump_all(objects, sort_keys=False, width=120))
    assert read_yamls(path.read_text()) == objects


def pods(name: str, settings: Settings = SETTINGS) -> dict[str, Mapping[str, Any]]:
    jobs = [obj for obj in rendered(name, settings) if obj["kind"] == "Job"]
    return {job["metadata"]["labels"][naming.LABEL_COMPONENT]: job["spec"]["template"]["spec"] for job in jobs}


@pytest.mark.parametrize("name", ["filesystem", "no-volume", "pings"])
def test_pods_satisfy_the_restricted_profile(name: str) -> None:
    for spec in pods(name).values():
        assert list(restricted(spec)) == []


def test_pods_with_a_raw_device_satisfy_the_baseline_profile_and_break_the_restricted_one_by_their_uid_alone() -> None:
    spec = pods("block")["client"]
    assert list(baseline(spec)) == []
    assert list(restricted(spec)) == ["client: not runAsNonRoot", "client: uid 0"]
    assert list(restricted(pods("block")["conductor"])) == []


def restricted_v2(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield what OpenShift's SecurityContextConstraint restricted-v2 refuses: it assigns users and groups itself."""
    yield from restricted(spec)
    for part in (spec, *spec.get("initContainers", []), *spec["containers"]):
        yield from part["securityContext"].keys() & {
            *("runAsUser", "runAsGroup", "fsGroup", "supplementalGroups", "seLinuxOptions")
        }


@pytest.mark.parametrize("name", RUNS)
def test_where_the_platform_assigns_users_only_clients_of_raw_devices_have_one(name: str) -> None:
    assigned = replace(SETTINGS, platform_assigns_user=True)
    for component, spec in pods(name, assigned).items():
        is_root = (name, component) == ("block", "client")
        assert bool(list(restricted_v2(spec))) == is_root
        assert spec["securityContext"].get("runAsUser") == (0 if is_root else None)
        assert list(restricted_v2(pods(name)[component])) != []


def test_the_checker_finds_what_is_forbidden() -> None:
    spec: dict[str, Any] = {
        "hostNetwork": True,
        "volumes": [{"name": "v", "hostPath": {"path": "/"}}],
        "containers": [{"name": "c", "securityContext": {"privileged": True}, "ports": [{"hostPort": 1}]}],
    }
    assert list(baseline(spec)) == ["hostNetwork", "volume v of the host", "c: privileged", "c: port of the host"]
    assert len(list(restricted(spec))) == 9


@pytest.mark.parametrize("name", RUNS)
def test_pods_say_whether_they_have_a_token_and_limit_their_directories(name: str) -> None:
    for spec in pods(name).values():
        assert list(unsaid(spec)) == []
    assert list(unsaid({"volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory"}}]})) == [
        "automountServiceAccountToken",
        "size of tmp",
        "tmp in memory",
    ]


@pytest.mark.parametrize("name", RUNS)
def test_clients_have_neither_a_token_nor_the_conductors_key(name: str) -> None:
    spec = pods(name)["client"]
    assert spec["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in spec
    (session,) = [volume["secret"] for volume in spec["volumes"] if "secret" in volume]
    assert session["items"] == [{"key": "tls.crt", "path": "tls.crt"}, {"key": "token-0", "path": "token"}]


@pytest.mark.parametrize("name", RUNS)
def test_only_the_conductor_has_the_keys_and_no_clients_token(name: str) -> None:
    (session,) = [volume["secret"] for volume in pods(name)["conductor"]["volumes"] if "secret" in volume]
    assert [item["key"] for item in session["items"]] == ["tls.crt", "tls.key", "token.key"]


def test_every_process_of_a_client_has_the_token_of_its_number() -> None:
    run, plan = run_named("filesystem")

    def token(client_number: int, attempt: int) -> str:
        job = client.job(run, plan, SETTINGS, client=client_number, attempt=attempt)
        (session,) = [one["secret"] for one in job["spec"]["template"]["spec"]["volumes"] if "secret" in one]
        return str(session["items"][1]["key"])

    assert [token(0, 0), token(0, 3), token(2, 0)] == ["token-0", "token-0", "token-2"]


def test_all_that_pods_mount_of_the_session_secret_is_in_it() -> None:
    keys = make_secret(3).keys()
    for spec in pods("filesystem").values():
        (session,) = [volume["secret"] for volume in spec["volumes"] if "secret" in volume]
        assert {item["key"] for item in session["items"]} <= keys


def test_the_metrics_of_a_conductor_are_for_those_whom_the_administrator_names() -> None:
    def ports(settings: Settings) -> dict[int, Any]:
        run, plan = run_named("filesystem")
        policy = network.policies(run, plan, settings)[1]
        return {rule["ports"][0]["port"]: rule["from"] for rule in policy["spec"]["ingress"]}

    assert ports(SETTINGS).keys() == {SETTINGS.port}
    monitoring = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    named = ports(replace(SETTINGS, network_policies=NetworkPolicies(conductor_metrics_from=(monitoring,))))
    assert named.keys() == {SETTINGS.port, SETTINGS.metrics_port}
    assert named[SETTINGS.metrics_port] == [monitoring]


@pytest.mark.parametrize("name", RUNS)
def test_every_object_is_of_the_run_and_goes_with_it_unless_it_is_to_be_retained(name: str) -> None:
    for obj in rendered(name):
        metadata = obj["metadata"]
        assert metadata["namespace"] == "bench"
        assert metadata["labels"][naming.LABEL_RUN_UID] == "d9428888-122b-11e1-b85c-61cd3cbb3210"
        retained = obj["kind"] == "BenchmarkResult" and RUNS[name].get("results") == "Retain"
        assert ("ownerReferences" not in metadata) == retained


def client_policy(name: str) -> dict[str, Any]:
    run, plan = run_named(name)
    policy: dict[str, Any] = network.policies(run, plan, SETTINGS)[0]["spec"]
    return policy


def test_clients_reach_each_other_only_for_tools_between_them() -> None:
    """On all ports: no policy can name ICMP, and some network plugins ignore ranges."""
    policy = client_policy("filesystem")
    assert (policy["ingress"], len(policy["egress"])) == ([], 2)
    for name in ("no-volume", "pings"):
        run, _ = run_named(name)
        client_pods = network.peer(run, naming.CLIENT)
        policy = client_policy(name)
        assert policy["ingress"] == [{"from": [client_pods]}]
        assert policy["egress"][2:] == [{"to": [client_pods]}]


def test_the_ports_of_dns_are_the_clusters() -> None:
    ports = [{"port": port, "protocol": protocol} for port in (5353, 53) for protocol in ("UDP", "TCP")]
    run, plan = run_named("filesystem")
    policy, _ = network.policies(run, plan, replace(SETTINGS, network_policies=NetworkPolicies(dns_ports=(5353, 53))))
    assert policy["spec"]["egress"][0] == {"ports": ports}


def test_without_network_policies_there_are_none() -> None:
    run, plan = run_named("pings")
    assert network.policies(run, plan, replace(SETTINGS, network_policies=NetworkPolicies(enabled=False))) == ()


def test_only_pods_of_runs_with_ping_have_its_sysctl() -> None:
    found = {name: pods(name)["client"]["securityContext"].get("sysctls") for name in RUNS}
    assert found.pop("pings") == [{"name": "net.ipv4.ping_group_range", "value": "0 2147483647"}]
    assert set(found.values()) == {None}
    assert "sysctls" not in pods("pings")["conductor"]["securityContext"]


def test_runs_without_storage_have_pods_without_claims_and_assignments_without_fio() -> None:
    run, plan = run_named("no-volume")
    assert list(client.claims(run, plan, "fast")) == []
    assigned = client.assignment(run, plan, SETTINGS, client=0, attempt=0)
    assert (assigned.volume, assigned.tools) == (None, ("iperf3", "netcat"))


def test_the_conductors_job_knows_the_conductors_exit_codes() -> None:
    run, plan = run_named("filesystem")
    rules = conductor.job(run, plan, SETTINGS)["spec"]["podFailurePolicy"]["rules"]
    codes = {rule["action"]: rule["onExitCodes"]["values"] for rule in rules if "onExitCodes" in rule}
    assert codes == {"FailJob": sorted(EXIT_OF_FAILURE.values()), "Ignore": [EXIT_INTERRUPTED]}


def test_the_conductor_may_run_where_clients_may_but_not_only_there() -> None:
    both = pods("block")
    assert both["client"]["nodeSelector"] == {"storage": "ceph", "kubernetes.io/os": "linux"}
    assert both["conductor"]["nodeSelector"] == {"storage": "none", "kubernetes.io/os": "linux"}
    assert pods("filesystem")["conductor"]["nodeSelector"] == {"kubernetes.io/os": "linux"}
    for pod in both.values():
        assert {"key": "bench", "operator": "Exists"} in pod["tolerations"]
        assert (pod["priorityClassName"], pod["runtimeClassName"]) == ("low", "kata")
        assert (pod["imagePullSecrets"], pod["affinity"]) == ([{"name": "registry"}], {"nodeAffinity": AFFINITY})


def test_no_autoscaler_empties_the_node_of_a_pod() -> None:
    jobs = [obj for obj in rendered("filesystem") if obj["kind"] == "Job"]
    annotations = [dict(job["spec"]["template"]["metadata"]["annotations"]) for job in jobs]
    assert [one.pop(naming.ANNOTATION_ASSIGNMENT, None) is None for one in annotations] == [False, True]
    assert [one["cluster-autoscaler.kubernetes.io/safe-to-evict"] for one in annotations] == ["false"] * 2


def test_the_conductor_has_memory_for_the_longest_trial() -> None:
    def limit(clients: int, runtime: int) -> str:
        run, plan = run_named("filesystem")
        point = plan.points[0].model_copy(update={"clients": clients, "runtime_seconds": runtime})
        job = conductor.job(run, plan.model_copy(update={"points": (point,)}), SETTINGS)
        (container,) = job["spec"]["template"]["spec"]["containers"]
        return str(container["resources"]["limits"]["memory"])

    assert limit(3, 60) == "1024Mi"
    assert limit(100, 24 * 3600) == "5967Mi"


def test_a_client_requests_processor_time_unless_the_run_says_how_much() -> None:
    def resources(**wanted: Mapping[str, str]) -> object:
        run, plan = run_named("filesystem")
        assert run.document is not None
        clients = run.document.spec.clients.model_copy(update={"resources": wanted})
        spec = run.document.spec.model_copy(update={"clients": clients})
        changed = replace(run, document=run.document.model_copy(update={"spec": spec}))
        job = client.job(changed, plan, SETTINGS, client=0, attempt=0)
        return job["spec"]["template"]["spec"]["containers"][0]["resources"]

    assert resources() == {"requests": {"cpu": "100m"}}
    assert resources(requests={"memory": "1Gi"}) == {"requests": {"cpu": "100m", "memory": "1Gi"}}
    assert resources(requests={"cpu": "2"}) == {"requests": {"cpu": "2"}}
    assert resources(limits={"cpu": "2"}) == {"limits": {"cpu": "2"}}


def cold(plan: Plan) -> Plan:
    return plan.model_copy(update={"cache_helper": NamespacedName(namespace="plimsoll-caches", name="helpers")})


def test_only_a_run_that_drops_caches_has_a_token_for_the_helpers_and_a_way_to_them() -> None:
    run, plan = run_named("filesystem")
    for frozen, expected in ((plan, False), (cold(plan), True)):
        found = yaml.safe_dump(conductor.job(run, frozen, SETTINGS))
        assert ("audience: plimsoll-caches" in found) == expected
        assert ("PLIMSOLL_CACHES_TOKEN" in found) == expected
        client_policy, conductor_policy = network.policies(run, frozen, SETTINGS)
        assert ("plimsoll-caches" in yaml.safe_dump(client_policy)) == expected
        assert "plimsoll-caches" not in yaml.safe_dump(conductor_policy)


def test_clients_know_the_helper_and_have_no_token_for_it() -> None:
    run, plan = run_named("filesystem")
    assigned = client.assignment(run, cold(plan), SETTINGS, client=0, attempt=0)
    assert assigned.caches is True
    assert client.assignment(run, plan, SETTINGS, client=0, attempt=0).caches is None
    spec = client.job(run, cold(plan), SETTINGS, client=0, attempt=0)["spec"]["template"]["spec"]
    helper = {"name": "PLIMSOLL_CACHES_HELPER", "value": "http://helpers.plimsoll-caches.svc:8080"}
    assert helper in spec["containers"][0]["env"]
    assert spec["automountServiceAccountToken"] is False
    assert not [volume for volume in spec["volumes"] if "projected" in volume]


def test_pods_of_a_run_that_drops_caches_satisfy_the_restricted_profile() -> None:
    run, plan = run_named("filesystem")
    for job in (client.job(run, cold(plan), SETTINGS, client=0, attempt=0), conductor.job(run, cold(plan), SETTINGS)):
        assert list(restricted(job["spec"]["template"]["spec"])) == []
