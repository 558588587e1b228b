"""A real kube-apiserver with an etcd of its own, and as much of a client as tests need."""

import http.client
import json
import os
import secrets
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from support.yaml_documents import read_yaml

Document = dict[str, Any]

CRDS = Path(__file__).parents[3] / "crds"

_DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")
_START_SECONDS = 60
_STOP_SECONDS = 20
_IDLE_SECONDS = 30


class BinariesMissingError(Exception):
    """The programs are not there; the message says how to get them."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """The programs, as `e2e/cluster/cluster binaries` provides them."""

    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path

    @classmethod
    def find(cls, environment: Mapping[str, str]) -> "Binaries":
        """Take them from the directory that PLIMSOLL_KUBE_BINARIES names.

        Raises:
            BinariesMissingError: if it does not name one, or they are not there.

        """
        named = environment.get("PLIMSOLL_KUBE_BINARIES", "")
        directory = Path(named).absolute()
        paths = [directory / name for name in ("etcd", "kube-apiserver", "kube-controller-manager")]
        missing = [path.name for path in paths if not os.access(path, os.X_OK)]
        if missing or not named:
            raise BinariesMissingError(
                f"PLIMSOLL_KUBE_BINARIES={named} has no {' and no '.join(missing)}; "
                "run `make test`, or PLIMSOLL_KUBE_BINARIES=$(e2e/cluster/cluster binaries) pytest"
            )
        return cls(*paths)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API server answered."""

    code: int
    body: Document

    @property
    def accepted(self) -> bool:
        return self.code < 400

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))

    @property
    def causes(self) -> dict[str, str]:
        """Return field -> message of everything that was refused."""
        causes = self.body.get("details", {}).get("causes", [])
        return {cause.get("field", ""): cause.get("message", "") for cause in causes}

    def expect(self, code: int) -> Document:
        """Return the body of an answer with that code; fail the test otherwise."""
        assert self.code == code, f"{self.code}, not {code}: {self.message or self.body}"
        return self.body


class ApiServer:
    """A client of one API server. Every caller is an administrator."""

    def __init__(self, port: int, token: str, certificate: Path) -> None:
        """Trust the server's own certificate."""
        self.port = port
        self._token = token
        self._certificate = certificate
        context = ssl.create_default_context(cafile=str(certificate))
        self._connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=30)
        self._used = time.monotonic()

    def close(self) -> None:
        self._connection.close()

    def request(
        self,
        method: str,
        path: str,
        document: Document | None = None,
        *,
        content: str = "application/json",
        accept: str = "application/json",
    ) -> Answer:
        """Send a document and return the answer, whatever it is."""
        if time.monotonic() - self._used > _IDLE_SECONDS:
            self._connection.close()  # the server may have closed it already; the request reconnects
        self._used = time.monotonic()
        headers = {"Authorization": f"Bearer {self._token}", "Accept": accept, "Content-Type": content}
        try:
            self._connection.request(method, path, None if document is None else json.dumps(document), headers)
            response = self._connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()  # the next request connects anew
            raise
        try:
            body = json.loads(text)
        except ValueError:
            body = {"message": text.decode()}
        return Answer(response.status, body)

    def define(self, definition: Document) -> None:
        """Create a CustomResourceDefinition and wait until its objects are served."""
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        self.request("POST", f"{path}?fieldValidation=Strict", definition).expect(201)
        spec = definition["spec"]
        served = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
        wait_until(lambda: self.request("GET", served).accepted, f"{served} is served")

    def kubeconfig(self) -> Document:
        """Return a configuration for clients that want one."""
        server = {"server": f"https://127.0.0.1:{self.port}", "certificate-authority": str(self._certificate)}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": server}],
            "users": [{"name": "test", "user": {"token": self._token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "current-context": "test",
        }


@contextmanager
def running_apiserver(binaries: Binaries, directory: Path) -> Iterator[ApiServer]:
    """Run a server on loopback ports nobody else uses, with all its files in a directory that exists and is empty."""
    token, etcd_port, peer_port, port = secrets.token_hex(16), *_free_ports(3)
    (directory / "tokens").write_text(f'{token},test,test,"system:masters"\n')
    _make_key(directory / "service-account.key")
    with ExitStack() as stack:
        etcd_arguments = _etcd(binaries, directory, etcd_port, peer_port)
        etcd = stack.enter_context(running_program(etcd_arguments, directory / "etcd.log"))
        arguments = _kube_apiserver(binaries, directory, etcd_port, port)
        server = stack.enter_context(running_program(arguments, directory / "kube-apiserver.log"))

        def ready() -> bool:
            for process, log in ((etcd, "etcd.log"), (server, "kube-apiserver.log")):
                if process.poll() is not None:
                    raise RuntimeError(f"ended with {process.returncode}:\n{(directory / log).read_text()[-3000:]}")
            return _is_ready(directory, port, token)

        wait_until(ready, "the API server is ready")
        yield stack.enter_context(closing(ApiServer(port, token, directory / "certificates" / "apiserver.crt")))


@contextmanager
def apiserver_with_kinds(directory: Path) -> Iterator[ApiServer]:
    """Run a server that knows Plimsoll's kinds, for a fixture."""
    try:
        binaries = Binaries.find(os.environ)
    except BinariesMissingError as error:
        pytest.fail(str(error), pytrace=False)
    with running_apiserver(binaries, directory) as server:
        for path in sorted(CRDS.glob("*.yaml")):
            server.define(read_yaml(path.read_text()))
        yield server


def wait_until(condition: Callable[[], bool], what: str, seconds: float = _START_SECONDS) -> None:
    """Wait for a condition with a deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds} s: {what}")
        time.sleep(0.05)


def _etcd(binaries: Binaries, directory: Path, port: int, peer_port: int) -> list[str]:
    peer = f"http://127.0.0.1:{peer_port}"
    return [
        str(binaries.etcd),
        f"--data-dir={directory / 'etcd'}",
        f"--listen-client-urls=http://127.0.0.1:{port}",
        f"--advertise-client-urls=http://127.0.0.1:{port}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=error",
    ]


def _kube_apiserver(binaries: Binaries, directory: Path, etcd_port: int, port: int) -> list[str]:
    key = directory / "service-account.key"
    return [
        str(binaries.kube_apiserver),
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={directory / 'certificates'}",
        f"--token-auth-file={directory / 'tokens'}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://plimsoll.test",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        # As clusters have it: the helpers that drop caches are privileged.
        "--allow-privileged=true",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--endpoint-reconciler-type=none",
        # Nobody makes service accounts here.
        "--disable-admission-plugins=ServiceAccount",
    ]


@contextmanager
def running_program(arguments: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program that ends with the test process, even if that is killed."""
    # Most of a server's work is its start: it collects garbage less often.
    environment = {**os.environ, "GOGC": "400"}
    with log.open("wb") as output:
        process = subprocess.Popen([*_DIE_WITH_PARENT, *arguments], stdout=output, stderr=output, env=environment)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _is_ready(directory: Path, port: int, token: str) -> bool:
    certificate = directory / "certificates" / "apiserver.crt"
    if not certificate.exists():
        return False
    try:
        with closing(ApiServer(port, token, certificate)) as server:
            return server.request("GET", "/readyz").accepted
    except (OSError, http.client.HTTPException):
        return False


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _make_key(path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL
    path.write_bytes(key.private_bytes(encoding, form, serialization.NoEncryption()))
