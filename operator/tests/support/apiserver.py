"""A real kube-apiserver with an etcd of its own, as much of a client as tests need, and what runs beside it."""

import http.client
import json
import os
import secrets
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec


def read_yaml(text: str) -> Any:
    return yaml.load(text, yaml.CSafeLoader)


def read_yamls(text: str) -> list[Any]:
    """Return the documents of a text, without empty ones."""
    return [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]


Document = dict[str, Any]

CRDS = Path(__file__).parents[3] / "crds"

_DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")
_START_SECONDS = 180.0
_STOP_SECONDS = 20
_IDLE_SECONDS = 30


def kube_program(name: str) -> str:
    """Return the path of a program in the directory that PLIMSOLL_KUBE_BINARIES names; the test fails without it."""
    directory = os.environ.get("PLIMSOLL_KUBE_BINARIES", "")
    path = Path(directory).absolute() / name
    if not directory or not os.access(path, os.X_OK):
        pytest.fail(
            f"PLIMSOLL_KUBE_BINARIES={directory} has no {name}; "
            "run `make test-all`, or PLIMSOLL_KUBE_BINARIES=$(e2e/cluster/cluster binaries) pytest",
            pytrace=False,
        )
    return str(path)


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
        assert self.code == code, f"{self.code}, not {code}: {self.message or self.body}"
        return self.body


class ApiServer:
    """A client of one API server: an administrator, or another user, whom the administrator impersonates."""

    def __init__(self, port: int, token: str, certificate: Path, *, user: str = "") -> None:
        self.port = port
        self._token = token
        self._certificate = certificate
        self._user = user
        context = ssl.create_default_context(cafile=str(certificate))
        self._connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=120)
        self._used = time.monotonic()

    def close(self) -> None:
        self._connection.close()

    def as_user(self, user: str) -> "ApiServer":
        """Return a client of another user; a ServiceAccount is system:serviceaccount:NAMESPACE:NAME."""
        return ApiServer(self.port, self._token, self._certificate, user=user)

    def request(
        self,
        method: str,
        path: str,
        document: Document | None = None,
        *,
        content: str = "application/json",
        accept: str = "application/json",
    ) -> Answer:
        if time.monotonic() - self._used > _IDLE_SECONDS:
            self._connection.close()  # the server may have closed it already; the request reconnects
        self._used = time.monotonic()
        headers = {"Authorization": f"Bearer {self._token}", "Accept": accept, "Content-Type": content}
        if self._user:
            headers["Impersonate-User"] = self._user
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
def running_apiserver(directory: Path, *options: str) -> Iterator[ApiServer]:
    """Run a server on loopback ports nobody else uses, with all its files in a directory that exists.

    PLIMSOLL_KUBE_APISERVER names the kube-apiserver of another version.
    """
    token, etcd_port, peer_port, port = secrets.token_hex(16), *_free_ports(3)
    (directory / "tokens").write_text(f'{token},test,test,"system:masters"\n')
    certificate, key = directory / "certificates" / "apiserver.crt", directory / "service-account.key"
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL
    key.write_bytes(ec.generate_private_key(ec.SECP256R1()).private_bytes(encoding, form, serialization.NoEncryption()))
    store, peer = f"http://127.0.0.1:{etcd_port}", f"http://127.0.0.1:{peer_port}"
    etcd_command = [
        kube_program("etcd"),
        f"--data-dir={directory / 'etcd'}",
        f"--listen-client-urls={store}",
        f"--advertise-client-urls={store}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=error",
    ]
    server_command = [
        kube_program(os.environ.get("PLIMSOLL_KUBE_APISERVER", "kube-apiserver")),
        f"--etcd-servers={store}",
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
        *options,
    ]
    with ExitStack() as stack:
        etcd = stack.enter_context(running_program(etcd_command, directory / "etcd.log"))
        server = stack.enter_context(running_program(server_command, directory / "kube-apiserver.log"))

        def is_ready() -> bool:
            for process, log in ((etcd, "etcd.log"), (server, "kube-apiserver.log")):
                if process.poll() is not None:
                    raise RuntimeError(f"ended with {process.returncode}:\n{(directory / log).read_text()[-3000:]}")
            if not certificate.exists():
                return False
            try:
                with closing(ApiServer(port, token, certificate)) as client:
                    return client.request("GET", "/readyz").accepted
            except (OSError, http.client.HTTPException):
                return False

        wait_until(is_ready, "the API server is ready")
        yield stack.enter_context(closing(ApiServer(port, token, certificate)))


@contextmanager
def apiserver_with_kinds(directory: Path) -> Iterator[ApiServer]:
    """Run a server that knows Plimsoll's kinds, for a fixture."""
    with running_apiserver(directory) as server:
        for path in sorted(CRDS.glob("*.yaml")):
            server.define(read_yaml(path.read_text()))
        yield server


def wait_until(condition: Callable[[], bool], what: str, seconds: float = _START_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds} s: {what}")
        time.sleep(0.05)


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


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


_MANIFEST = Path(__file__).parents[3] / "manifests" / "install.yaml"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_EVERYWHERE = {"storageclasses", "persistentvolumes", "namespaces", "customresourcedefinitions"}


def operator_config(apiserver: ApiServer, directory: Path, namespace: str) -> str:
    """Return the path of a configuration with the rights of an operator that looks after that namespace only."""
    subjects = [{"kind": "ServiceAccount", "name": "operator", "namespace": namespace}]
    roles = [document for document in read_yamls(_MANIFEST.read_text()) if document["kind"] == "ClusterRole"]
    (rules,) = [role["rules"] for role in roles if role["metadata"]["name"] == "plimsoll"]
    for name, everywhere, place in (
        (f"{namespace}-cluster", True, "clusterrolebindings"),
        (f"{namespace}-runs", False, f"namespaces/{namespace}/rolebindings"),
    ):
        chosen = [rule for rule in rules if ({*rule.get("resources", ())} <= _EVERYWHERE) == everywhere]
        role = {"metadata": {"name": name}, "rules": chosen}
        apiserver.request("POST", f"{_RBAC}/clusterroles", role).expect(201)
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects}
        apiserver.request("POST", f"{_RBAC}/{place}", binding).expect(201)
    return account_config(apiserver, directory, namespace, "operator")


def account_config(apiserver: ApiServer, directory: Path, namespace: str, name: str) -> str:
    """Return the path of a configuration with the rights of a service account, which is made if it is not there."""
    config = apiserver.kubeconfig()
    config["users"][0]["user"] = {"token": token_of(apiserver, namespace, account=name)}
    path = directory / f"account-{name}"
    path.write_text(yaml.safe_dump(config))
    return str(path)


ACCOUNT = "plimsoll-demo-conductor"


def token_of(server: ApiServer, namespace: str, *audiences: str, account: str = ACCOUNT) -> str:
    """Return a token of a ServiceAccount, which is created if missing, for these audiences or the API server."""
    collection = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    if server.request("GET", f"{collection}/{account}").code == 404:
        document = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}}
        server.request("POST", collection, document).expect(201)
    spec = {"expirationSeconds": 3600, "audiences": [*audiences]}
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    made = server.request("POST", f"{collection}/{account}/token", request).expect(201)
    return str(made["status"]["token"])


_NAMESPACE = "/apis/plimsoll.dev/v1alpha1/namespaces/default"
RUNS = f"{_NAMESPACE}/benchmarkruns"
RESULTS = f"{_NAMESPACE}/benchmarkresults"
SUITES = f"{_NAMESPACE}/benchmarksuites"


def create(api: ApiServer, collection: str, document: Document, *, keep: bool = False) -> Answer:
    """Create an object, or only see whether it could be; unknown fields are refused as `kubectl apply` refuses them."""
    dry_run = "" if keep else "&dryRun=All"
    return api.request("POST", f"{collection}?fieldValidation=Strict{dry_run}", document)


def patch(api: ApiServer, path: str, change: Document) -> Answer:
    return api.request("PATCH", f"{path}?fieldValidation=Strict", change, content="application/merge-patch+json")


def apply(api: ApiServer, path: str, document: Document, *, manager: str = "test") -> Answer:
    query = f"fieldManager={manager}&fieldValidation=Strict"
    return api.request("PATCH", f"{path}?{query}", document, content="application/apply-patch+yaml")


def delete(api: ApiServer, path: str) -> None:
    api.request("DELETE", path).expect(200)


def rows(api: ApiServer, path: str) -> tuple[list[Document], list[list[Any]]]:
    """Return the columns and cells that `kubectl get` shows."""
    table = api.request("GET", path, accept="application/json;as=Table;v=v1;g=meta.k8s.io").expect(200)
    return table["columnDefinitions"], [row["cells"] for row in table["rows"]]


@contextmanager
def operator_process(kubeconfig: str, log: Path, *options: str, **environment: str) -> Iterator[int]:
    """Run one, give the port of its metrics, and expect that it ends well when it is told to end."""
    port, liveness = _free_ports(2)
    addresses = ["--liveness", f"http://127.0.0.1:{liveness}/healthz", "--metrics", f"http://127.0.0.1:{port}/metrics"]
    # The operator is that of the tests, also where another one is installed.
    caller = {"PYTHONPATH": path} if (path := os.environ.get("PYTHONPATH")) else {}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "plimsoll", "operator", *addresses, *options],
            env={**caller, "KUBECONFIG": kubeconfig, "PLIMSOLL_RUNNER_IMAGE": "runner:1", **environment},
            stdout=output,
            stderr=output,
        )
    try:
        yield port
        process.terminate()
        assert process.wait(60) == 0, log.read_text()[-2000:]
    finally:
        process.kill()
        process.wait()
