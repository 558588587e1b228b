"""Service accounts of a real API server, for what must work with few rights."""

from pathlib import Path

import yaml

from support.apiserver import ApiServer


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
