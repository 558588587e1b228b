"""A real API server behind a line that tests can cut, besides the two APIs that must behave alike."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import yaml

from support.apiserver import ApiServer, apiserver_with_kinds
from support.kube_apis import kube, kubeconfig, namespace, real

__all__ = ["kube", "kubeconfig", "namespace", "real"]


class Line:
    """A TCP proxy to a port of this machine. `cut` ends all connections and refuses new ones until `mend`."""

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


@pytest.fixture(scope="session")
def apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Return an API server of these tests alone: their operators would measure the suites that other tests leave."""
    with apiserver_with_kinds(tmp_path_factory.mktemp("apiserver")) as server:
        yield server


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
