"""Fixtures: the two APIs that must behave alike. A directory of tests that needs them imports them in its conftest."""

import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import yaml

from plimsoll.kube.client import AioKube
from plimsoll.kube.port import Kube
from support.apiserver import ApiServer
from support.fake_kube import FakeKube


@pytest.fixture
def kubeconfig(apiserver: ApiServer, tmp_path: Path) -> str:
    """Return the path of an administrator's configuration."""
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(apiserver.kubeconfig()))
    return str(path)


@pytest.fixture
def namespace() -> str:
    return f"test-{uuid.uuid4().hex[:8]}"


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.crd)])
async def kube(request: pytest.FixtureRequest, namespace: str) -> AsyncIterator[Kube]:
    """Return one API after the other, with an empty namespace."""
    async with AsyncExitStack() as stack:
        api: Kube = FakeKube()
        if request.param == "real":
            api = await stack.enter_async_context(AioKube(kubeconfig=request.getfixturevalue("kubeconfig")))
        await api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        yield api


@pytest.fixture
async def real(kubeconfig: str, namespace: str) -> AsyncIterator[AioKube]:
    """Return a client of the real API, with an empty namespace."""
    async with AioKube(kubeconfig=kubeconfig) as api:
        await api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        yield api
