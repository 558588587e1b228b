"""A real operator process that looks after one namespace, with rights there only."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from support.accounts import account_config
from support.apiserver import ApiServer, wait_until
from support.operator_process import operator_process
from support.run_documents import document

pytestmark = [pytest.mark.crd, pytest.mark.timeout(180)]

MANIFEST = Path(__file__).parents[3] / "manifests" / "install.yaml"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
EVERYWHERE = {"storageclasses", "persistentvolumes", "namespaces", "customresourcedefinitions"}


def role(name: str, *, everywhere: bool) -> dict[str, Any]:
    """Return that part of the operator's ClusterRole which it has in all namespaces, or the rest."""
    (rules,) = [
        one["rules"]
        for one in yaml.safe_load_all(MANIFEST.read_text())
        if one and one["kind"] == "ClusterRole" and one["metadata"]["name"] == "plimsoll"
    ]
    chosen = [rule for rule in rules if ({*rule.get("resources", ())} <= EVERYWHERE) == everywhere]
    return {"metadata": {"name": name}, "rules": chosen}


def make_run(apiserver: ApiServer, namespace: str) -> str:
    path = f"/apis/plimsoll.dev/v1alpha1/namespaces/{namespace}/benchmarkruns"
    apiserver.request("POST", path, document(suspend=True) | {"metadata": {"name": "rests"}}).expect(201)
    return f"{path}/rests"


def test_it_sees_the_runs_of_its_namespaces_and_no_others(apiserver: ApiServer, namespace: str, tmp_path: Path) -> None:
    other = f"{namespace}-other"
    for name in (namespace, other):
        obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        apiserver.request("POST", "/api/v1/namespaces", obj).expect(201)
    account = account_config(apiserver, tmp_path, namespace, "operator")
    subjects = [{"kind": "ServiceAccount", "name": "operator", "namespace": namespace}]
    for name, everywhere, place in (
        (f"{namespace}-cluster", True, "clusterrolebindings"),
        (f"{namespace}-runs", False, f"namespaces/{namespace}/rolebindings"),
    ):
        apiserver.request("POST", f"{RBAC}/clusterroles", role(name, everywhere=everywhere)).expect(201)
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects}
        apiserver.request("POST", f"{RBAC}/{place}", binding).expect(201)

    seen, unseen = make_run(apiserver, namespace), make_run(apiserver, other)
    with operator_process(account, tmp_path / "log", "--namespace", namespace):
        wait_until(lambda: "conditions" in apiserver.request("GET", seen).body.get("status", {}), "the run is seen")
        apiserver.request("DELETE", seen).expect(200)
        wait_until(lambda: apiserver.request("GET", seen).code == 404, "the run is let go")
        assert "conditions" not in apiserver.request("GET", unseen).body.get("status", {})
        assert "finalizers" not in apiserver.request("GET", unseen).body["metadata"]
    assert "Forbidden" not in (tmp_path / "log").read_text()
