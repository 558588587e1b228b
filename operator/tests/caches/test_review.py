"""Tokens of ServiceAccounts, which a real API server issues and reviews."""

import pytest

from plimsoll.caches.review import TokenReviews
from plimsoll.protocol.caches import AUDIENCE
from support.apiserver import ApiServer

pytestmark = [pytest.mark.crd, pytest.mark.usefixtures("real")]


def token(server: ApiServer, namespace: str, *audiences: str) -> str:
    collection = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "demo-conductor"}}
    if server.request("GET", f"{collection}/demo-conductor").code == 404:
        server.request("POST", collection, account).expect(201)
    spec = {"expirationSeconds": 3600, "audiences": [*audiences]}
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    made = server.request("POST", f"{collection}/demo-conductor/token", request).expect(201)
    return str(made["status"]["token"])


async def test_only_a_token_for_the_helpers_names_its_service_account(
    apiserver: ApiServer, namespace: str, kubeconfig: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    ours, general = token(apiserver, namespace, AUDIENCE), token(apiserver, namespace)
    async with TokenReviews() as reviews:
        assert await reviews.username(ours) == f"system:serviceaccount:{namespace}:demo-conductor"
        assert await reviews.username(general) is None, "a token for the API server"
        assert await reviews.username(ours[:-2]) is None
        assert await reviews.username("forged") is None
