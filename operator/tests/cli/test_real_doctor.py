"""`plimsoll doctor` against a real kube-apiserver: as an administrator, and with the rights of a user."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.cli import Exit
from support.apiserver import ApiServer
from support.command_line import Bench

pytestmark = pytest.mark.crd

INSTALLED = Path(__file__).parents[3] / "manifests" / "install.yaml"
MERGE = "application/merge-patch+json"


@pytest.fixture
def bench(apiserver: ApiServer, tmp_path: Path) -> Bench:
    namespace = f"doctor-{uuid.uuid4().hex[:8]}"
    apiserver.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}).expect(201)
    return Bench(apiserver=apiserver, namespace=namespace, directory=tmp_path, uid="")


@pytest.fixture
def installed(bench: Bench) -> Iterator[Bench]:
    """Return a namespace with the operator's objects, which nothing runs, and with a node and a StorageClass."""
    name, api = bench.namespace, bench.apiserver
    documents = yaml.load_all(INSTALLED.read_text().replace("plimsoll-system", name), yaml.CSafeLoader)
    (deployment,) = (each for each in documents if each["kind"] == "Deployment")
    labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    objects = {
        bench.path("deployments", root="/apis/apps/v1"): deployment,
        bench.path("serviceaccounts", root="/api/v1"): {"metadata": {"name": "default"}},
        "/api/v1/nodes": {"metadata": {"name": name, "labels": labels}},
        "/apis/storage.k8s.io/v1/storageclasses": {"metadata": {"name": name}, "provisioner": "fast.csi.example.com"},
    }
    paths = {path: f"{path}/{document['metadata']['name']}" for path, document in objects.items()}
    for path, document in objects.items():
        api.request("POST", path, document).expect(201)
    deployed, _, node, _ = paths.values()
    ready = {"replicas": 2, "readyReplicas": 2}
    api.request("PATCH", f"{deployed}/status", {"status": ready}, content=MERGE).expect(200)
    # New nodes have a taint until the node controller, which does not run, removes it.
    api.request("PATCH", node, {"spec": {"taints": None}}, content=MERGE).expect(200)
    status = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "4"}}
    api.request("PATCH", f"{node}/status", {"status": status}, content=MERGE).expect(200)
    yield bench
    for path in paths.values():
        api.request("DELETE", path).expect(200)


def limit(bench: Bench, **hard: str) -> None:
    """Create a quota, with the status that the quota controller, which does not run, would write."""
    quotas, body = bench.path("resourcequotas", root="/api/v1"), {"metadata": {"name": "tight"}, "spec": {"hard": hard}}
    bench.apiserver.request("POST", quotas, body).expect(201)
    status = {"hard": hard, "used": dict.fromkeys(hard, "0")}
    bench.apiserver.request("PATCH", f"{quotas}/tight/status", {"status": status}, content=MERGE).expect(200)


def examine(bench: Bench, *options: str, config: str, code: int) -> dict[str, dict[str, Any]]:
    done = bench.kubectl("doctor", "-n", bench.namespace, "-o", "json", *options, config=config)
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stdout, done.stderr
    return {finding["check"]: finding for finding in json.loads(done.stdout)}


def test_an_administrator_sees_what_is_installed_and_what_is_wrong(installed: Bench) -> None:
    limit(installed, pods="0")
    findings = examine(installed, config=installed.config(), code=Exit.ERROR)
    good = ("Kubernetes", "CRDs", "Operator", "Namespace", "Watched", "New run", "Pod Security")
    others = ("Rights to view", "Rights to edit", "Nodes", "Clocks here")
    assert {check: findings[check]["state"] for check in (*good, *others)} == dict.fromkeys((*good, *others), "ok")
    assert findings["Operator"]["text"].startswith(f"{installed.namespace}/plimsoll: 2 of 2 ready, ")
    problems = {check: finding["text"] for check, finding in findings.items() if finding["state"] == "problem"}
    assert "exceeded quota: tight" in problems["New pod"]
    assert problems["Quota tight"].startswith("leaves no room for a run (pods: ")
    storage_class = f"StorageClass {installed.namespace}"
    assert problems[storage_class] == "CSIDriver fast.csi.example.com does not exist"
    assert findings["Runs"]["state"] == "unused"


def test_a_user_sees_a_line_for_each_missing_right_and_it_is_no_failure(installed: Bench) -> None:
    verbs = ["get", "list", "watch", "create", "patch", "delete"]
    resources = ["benchmarkruns", "benchmarksuites", "benchmarkresults"]
    config = installed.may({"apiGroups": ["plimsoll.dev"], "resources": resources, "verbs": verbs})
    findings = examine(installed, config=config, code=Exit.DONE)
    assert {check for check, finding in findings.items() if finding["state"] == "ok"} == {
        "Kubernetes",
        "Rights to view",
        "Rights to edit",
        "New run",
        "Clocks here",
    }
    unknown = {check: finding["text"] for check, finding in findings.items() if finding["state"] == "unknown"}
    assert unknown["Rook"] == unknown["Operator"] == "needs list deployments"
    assert unknown["New pod"] == f"needs create pods in namespace {installed.namespace}"
    assert unknown["Quota"] == f"needs list resourcequotas in namespace {installed.namespace}"
    assert not any("plimsoll-operator" in json.dumps(finding) for finding in findings.values())


def test_missing_rights_on_runs_are_a_problem_with_the_binding_to_create(bench: Bench) -> None:
    done = bench.kubectl("doctor", "-n", bench.namespace, config=bench.may())
    assert done.returncode == Exit.ERROR
    account = f"{bench.namespace}:viewer"
    binding = f"create rolebinding plimsoll-edit-{bench.namespace}-viewer --clusterrole=plimsoll-edit"
    assert f"  kubectl --namespace {bench.namespace} {binding} --serviceaccount={account}\n" in done.stdout


@pytest.mark.parametrize(
    ("hard", "refusal"),
    [({}, ""), ({"cpu": "9"}, ""), ({"limits.cpu": "9"}, "failed quota: tight: must specify limits.cpu")],
)
def test_whether_a_client_fits_is_asked_of_the_api_server(installed: Bench, hard: dict[str, str], refusal: str) -> None:
    if hard:
        limit(installed, **hard)
    finding = examine(installed, config=installed.config(), code=Exit.ERROR)["New pod"]
    assert finding["state"] == ("problem" if refusal else "ok"), finding
    assert refusal in finding["text"]


def test_a_webhook_that_does_not_answer_refuses_pods(installed: Bench) -> None:
    webhooks, namespace = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", installed.namespace
    webhook = {
        "name": "absent.example.org",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": "https://127.0.0.1:9/"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
    }
    body = {"metadata": {"name": namespace}, "webhooks": [webhook]}
    installed.apiserver.request("POST", webhooks, body).expect(201)
    try:
        # The API server takes a moment to observe it.
        for _ in range(20):
            finding = examine(installed, config=installed.config(), code=Exit.ERROR)["New pod"]
            if finding["state"] != "ok":
                break
        assert finding["state"] == "problem", finding
        assert 'failed calling webhook "absent.example.org"' in finding["text"]
    finally:
        installed.apiserver.request("DELETE", f"{webhooks}/{namespace}").expect(200)


def test_what_the_api_server_cannot_answer_is_unknown_and_no_refusal(installed: Bench) -> None:
    findings = examine(replace(installed, namespace="absent"), config=installed.config(), code=Exit.ERROR)
    for check in ("New run", "New pod"):
        assert findings[check]["state"] == "unknown", findings
        assert '"absent" not found' in findings[check]["text"]


def test_a_storage_class_that_does_not_exist_is_named(installed: Bench) -> None:
    findings = examine(installed, "--storage-class", "fats", config=installed.config(), code=Exit.ERROR)
    assert "StorageClass fats does not exist" in findings["StorageClass fats"]["text"]
    assert installed.namespace in findings["StorageClass fats"]["text"]


def test_an_api_server_that_is_away_is_an_error(bench: Bench) -> None:
    path = Path(bench.config())
    path.write_text(path.read_text().replace(f":{bench.apiserver.port}", ":9"))
    done = bench.kubectl("doctor", "-n", bench.namespace, config=str(path))
    assert done.returncode == Exit.ERROR
    assert "is the API server of context test up, and reachable from here?" in done.stderr
