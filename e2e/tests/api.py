"""Reads from the API server over one connection; starting kubectl for each read would cost more than the read."""

import json
from collections.abc import Iterator
from typing import Any

from kubernetes.client import ApiClient, Configuration
from kubernetes.config import load_kube_config
from urllib3 import PoolManager

_ROOTS = {
    **dict.fromkeys(
        (
            "configmaps",
            "events",
            "namespaces",
            "nodes",
            "persistentvolumeclaims",
            "persistentvolumes",
            "pods",
            "secrets",
            "serviceaccounts",
            "services",
        ),
        "api/v1",
    ),
    "benchmarkruns": "apis/plimsoll.dev/v1alpha1",
    "benchmarkresults": "apis/plimsoll.dev/v1alpha1",
    "benchmarksuites": "apis/plimsoll.dev/v1alpha1",
    "customresourcedefinitions": "apis/apiextensions.k8s.io/v1",
    "cephblockpools": "apis/ceph.rook.io/v1",
    "cephfilesystems": "apis/ceph.rook.io/v1",
    "cephclients": "apis/ceph.rook.io/v1",
    "cephclusters": "apis/ceph.rook.io/v1",
    "gitrepositories": "apis/source.toolkit.fluxcd.io/v1",
    "kustomizations": "apis/kustomize.toolkit.fluxcd.io/v1",
    "jobs": "apis/batch/v1",
    "networkpolicies": "apis/networking.k8s.io/v1",
    "leases": "apis/coordination.k8s.io/v1",
    "roles": "apis/rbac.authorization.k8s.io/v1",
    "rolebindings": "apis/rbac.authorization.k8s.io/v1",
    "storageclasses": "apis/storage.k8s.io/v1",
}
_OK, _NOT_FOUND = 200, 404
_SECONDS = 60
_WATCH_SECONDS = 900


class Api:
    """One API server, as the administrator of a kubeconfig."""

    def __init__(self, kubeconfig: str) -> None:
        configuration = Configuration()
        load_kube_config(kubeconfig, client_configuration=configuration)  # type: ignore[no-untyped-call]
        configuration.proxy = None  # the server is on this machine
        client = ApiClient(configuration)
        self._host: str = client.configuration.host
        self._pool: PoolManager = client.rest_client.pool_manager

    def read(self, path: str, **query: str) -> Any:
        """Return the document at a path; None if it does not exist."""
        answer = self._pool.request(
            "GET",
            f"{self._host}/{path.lstrip('/')}",
            fields=query,
            headers={"Accept": "application/json"},
            timeout=_SECONDS,
        )
        if answer.status == _NOT_FOUND:
            return None
        assert answer.status == _OK, f"GET {path}: {answer.status} {answer.data.decode()}"
        return json.loads(answer.data)

    def object(self, kind: str, name: str, namespace: str | None = None) -> dict[str, Any] | None:
        """Return an object, or None; `kind` is a plural, as for kubectl."""
        found: dict[str, Any] | None = self.read(f"{_collection(kind, namespace)}/{name}")
        return found

    def objects(self, kinds: str, namespace: str | None = None, selector: str = "") -> list[dict[str, Any]]:
        """Return the objects that match a label selector; `kinds` are separated by commas."""
        query = {"labelSelector": selector} if selector else {}
        found = []
        for kind in kinds.split(","):
            listed = self.read(_collection(kind, namespace), **query)
            assert listed is not None, f"the API server does not know {kind}"
            found += listed["items"]
        return found

    def watch(self, kind: str, namespace: str) -> Iterator[dict[str, Any]]:
        """Yield the watch events of a namespace's objects of a kind, starting with the existing objects."""
        answer = self._pool.request(
            "GET",
            f"{self._host}/{_collection(kind, namespace)}",
            fields={"watch": "1", "timeoutSeconds": str(_WATCH_SECONDS)},
            headers={"Accept": "application/json"},
            timeout=_WATCH_SECONDS + _SECONDS,
            preload_content=False,
        )
        assert answer.status == _OK, f"watch {kind}: {answer.status}"
        rest = b""
        for part in answer.stream(None):
            *lines, rest = (rest + part).split(b"\n")
            yield from map(json.loads, filter(None, lines))


def _collection(kind: str, namespace: str | None) -> str:
    return f"{_ROOTS[kind]}/{f'namespaces/{namespace}/' if namespace else ''}{kind}"
