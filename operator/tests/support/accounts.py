"""Service accounts of a real API server, for what must work with few rights."""

from pathlib import Path
from typing import Any

import yaml

from support.apiserver import ApiServer
from support.yaml_documents import read_yamls

_MANIFEST = Path(__file__).parents[3] / "manifests" / "install.yaml"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_EVERYWHERE = {"storageclasses", "persistentvolumes", "namespaces", "customresourcedefinitions"}


def operator_config(apiserver: ApiServer, directory: Path, namespace: str) -> str:
    """Return the path of a configuration with the rights of an operator that looks after that namespace only."""
    subjects = [{"kind": "ServiceAccount", "name": "operator", "namespace": namespace}]
    for name, everywhere, place in (
        (f"{namespace}-cluster", True, "clusterrolebindings"),
        (f"{namespace}-runs", False, f"namespaces/{namespace}/rolebindings"),
    ):
        apiserver.request("POST", f"{_RBAC}/clusterroles", _role(name, everywhere=everywhere)).expect(201)
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects}
        apiserver.request("POST", f"{_RBAC}/{place}", binding).expect(201)
    return account_config(apiserver, directory, namespace, "operator")


def _role(name: str, *, everywhere: bool) -> dict[str, Any]:
    """Return that part of the operator's ClusterRole which it has in all namespaces, or the rest."""
    (rules,) = [
        one["rules"]
        for one in read_yamls(_MANIFEST.read_text())
        if one["kind"] == "ClusterRole" and one["metadata"]["name"] == "plimsoll"
    ]
    chosen = [rule for rule in rules if ({*rule.get("resources", ())} <= _EVERYWHERE) == everywhere]
    return {"metadata": {"name": name}, "rules": chosen}


def account_config(apiserver: ApiServer, directory: Path, namespace: str, name: str) -> str:
    """Return the path of a configuration with the rights of a service account, which is made if it is not there."""
    collection = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    apiserver.request("POST", collection, account)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = apiserver.request("POST", f"{collection}/{name}/token", request).expect(201)["status"]["token"]
    config = apiserver.kubeconfig()
    config["users"][0]["user"] = {"token": token}
    path = directory / f"account-{name}"
    path.write_text(yaml.safe_dump(config))
    return str(path)
