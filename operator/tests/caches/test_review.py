"""Tokens of ServiceAccounts, which a real API server issues and reviews."""

import pytest

from plimsoll.helpers.server import TokenReviews
from plimsoll.protocol.helpers import CACHES_AUDIENCE
from support.apiserver import ApiServer, token_of

pytestmark = [pytest.mark.crd, pytest.mark.usefixtures("real")]


async def test_only_a_token_for_the_helpers_names_its_service_account(
    apiserver: ApiServer, namespace: str, kubeconfig: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    ours, general = token_of(apiserver, namespace, CACHES_AUDIENCE), token_of(apiserver, namespace)
    async with TokenReviews() as reviews:
        assert await reviews.username(ours) == f"system:serviceaccount:{namespace}:plimsoll-demo-conductor"
        assert await reviews.username(general) is None, "a token for the API server"
        assert await reviews.username(ours[:-2]) is None
        assert await reviews.username("forged") is None
