"""Tokens of ServiceAccounts from a real API server."""

from support.apiserver import ApiServer

ACCOUNT = "demo-conductor"


def token_of(server: ApiServer, namespace: str, *audiences: str) -> str:
    """Return a token of a namespace's ServiceAccount for these audiences; by default, for the API server."""
    collection = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}}
    if server.request("GET", f"{collection}/{ACCOUNT}").code == 404:
        server.request("POST", collection, account).expect(201)
    spec = {"expirationSeconds": 3600, "audiences": [*audiences]}
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    made = server.request("POST", f"{collection}/{ACCOUNT}/token", request).expect(201)
    return str(made["status"]["token"])
