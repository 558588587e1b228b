"""A helper on a real port, with a pretended kube-burner and cluster."""

import asyncio
import shutil
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from plimsoll.helpers.authority import Limits
from plimsoll.helpers.burner import Helper, Means, identity, knower
from plimsoll.kube.port import Kind, TransientError
from plimsoll.net.listener import Listener, ListenerLimits, serving_requests
from plimsoll.protocol.assignment import CERTIFICATE_FILE
from plimsoll.protocol.helpers import BURN_PATH, BURNER_CERTIFICATE, LABEL_HELPER, BurnOrder
from plimsoll.protocol.messages import SERVER_NAME
from plimsoll.tools.kube_burner import KubeBurnerParameters
from support.fake_kube import NAMESPACE, FakeKube

GOLDEN = Path(__file__).parents[1] / "golden" / "kube-burner-2.7.3"
VOLUME = Kind(api_version="v1", kind="PersistentVolume")
CLASS = Kind(api_version="storage.k8s.io/v1", kind="StorageClass")
USERS = {
    "ours": "system:serviceaccount:bench:default",
    "neighbours": "system:serviceaccount:office:default",
    "theirs": "system:serviceaccount:lab:default",
    "human": "admin",
}
HELPER = "plimsoll-kube-burner"


async def username(token: str) -> str | None:
    if token == "unreviewed":
        raise TransientError("create TokenReview", "connection refused")
    return USERS.get(token)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A helper, its cluster, and the directory that it shares with the pretended kube-burner."""

    url: str
    certificate: str  # of the helper, as it is published
    kube: FakeKube
    directory: Path
    helper: Helper

    @property
    def tls(self) -> ssl.SSLContext:
        """A context that trusts the helper; it is known as `SERVER_NAME`."""
        return ssl.create_default_context(cadata=self.certificate)

    def token(self, name: str = "ours") -> Path:
        path = self.directory / f"token-{name}"
        path.write_text(f"{name}\n")
        return path

    def may_end(self, exit_code: int = 0) -> None:
        (self.directory / "may-end").write_text(str(exit_code))

    def put_leftovers(self, *, policy: str = "Delete") -> None:
        put_leftovers(self.kube, policy=policy)

    async def runs(self) -> None:
        await until((self.directory / "runs").exists)

    async def namespaces(self) -> set[str]:
        return {obj["metadata"]["name"] for obj in await self.kube.list(NAMESPACE)}


def put_leftovers(kube: FakeKube, *, policy: str = "Delete", name: str = "plimsoll-burn-x") -> None:
    labels = {LABEL_HELPER: HELPER, "plimsoll.dev/run-uid": "u", "plimsoll.dev/run-namespace": "bench"}
    kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    spec = {"claimRef": {"namespace": name, "name": "pvc-0-1"}, "persistentVolumeReclaimPolicy": policy}
    kube.put({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv-1"}, "spec": spec})


def put_class(kube: FakeKube, name: str, *, policy: str = "Delete", **labels: str) -> None:
    named = {f"plimsoll.dev/{label.replace('_', '-')}": value for label, value in labels.items()}
    kube.put(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name, "labels": named},
            "provisioner": "p",
            "reclaimPolicy": policy,
        }
    )


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def serving(directory: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setenv("PRETEND", str(directory))
    (directory / "files").mkdir()
    for path in GOLDEN.glob("*.json"):
        shutil.copy(path, directory / "files")
    (directory / "work").mkdir()
    kube = FakeKube(namespaces=("default", "bench"))
    put_class(kube, "fast")
    tls = await identity(kube, "default", directory / "identity")
    published = await kube.get(Kind(api_version="v1", kind="ConfigMap"), BURNER_CERTIFICATE, "default")
    assert published is not None
    listener = Listener(ListenerLimits(strangers=8, stranger_seconds=10.0), tls=tls)
    means = Means(
        namespace=HELPER,
        program=str(Path(__file__).with_name("pretend_kube_burner")),
        pod_image="runner:1",
        directory=directory / "work",
        username=username,
        api=kube,
        beat_seconds=0.05,
        poll_seconds=0.02,
        clean_seconds=0.5,
        send_seconds=0.5,
    )
    limits = Limits(allowed=["bench", "office"], max_objects=200, max_qps=20, max_volume_size=2**30)
    helper = Helper(means, limits, know=knower(listener))
    async with serving_requests(helper.application(), listener, "127.0.0.1", 0, idle_seconds=5.0) as port:
        certificate = published["data"][CERTIFICATE_FILE]
        url = f"https://127.0.0.1:{port}"
        yield World(url=url, certificate=certificate, kube=kube, directory=directory, helper=helper)


def order(**parameters: Any) -> BurnOrder:
    return BurnOrder(parameters=KubeBurnerParameters.model_validate(parameters), storage_class="fast", run_uid="u")


async def post(world: World, token: str | None, body: str, path: str = BURN_PATH) -> tuple[int, str]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{world.url}{path}", data=body, headers=headers, ssl=world.tls, server_hostname=SERVER_NAME
        ) as response,
    ):
        return response.status, await response.text()
