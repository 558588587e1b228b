"""The two APIs that must behave alike, and a real API server behind a line that tests can cut."""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import yaml

from plimsoll.kube.client import AioKube
from plimsoll.kube.port import Kube
from support.apiserver import ApiServer, Binaries, BinariesMissingError, running_apiserver
from support.fake_kube import FakeKube

CRDS = Path(__file__).parents[3] / "crds"


@pytest.fixture(scope="session")
def apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Return an API server that knows Plimsoll's kinds."""
    try:
        binaries = Binaries.find(os.environ)
    except BinariesMissingError as error:
        pytest.fail(str(error))
    with running_apiserver(binaries, tmp_path_factory.mktemp("apiserver")) as server:
        for path in sorted(CRDS.glob("*.yaml")):
            server.define(yaml.safe_load(path.read_text()))
        yield server


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


class Line:
    """A TCP line to a port of this machine. `cut` ends all connections and refuses new ones until `mend`."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def mend(self) -> None:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers |= {writer, far_writer}
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer), return_exceptions=True)
        for end in (writer, far_writer):
            end.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(2**16):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


@pytest.fixture
async def line(apiserver: ApiServer) -> AsyncIterator[Line]:
    line = Line(apiserver.port)
    await line.mend()
    yield line
    await line.cut()


@pytest.fixture
def line_config(apiserver: ApiServer, line: Line, tmp_path: Path) -> str:
    """Return the path of an administrator's configuration that goes over the line."""
    config = apiserver.kubeconfig()
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{line.port}"
    path = tmp_path / "line"
    path.write_text(yaml.safe_dump(config))
    return str(path)
