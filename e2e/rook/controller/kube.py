"""The Kubernetes API with only the standard library: the image of Ceph has no other."""

import json
import os
import ssl
from datetime import UTC, datetime
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from threading import local
from typing import Any

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_ROOK = "/apis/ceph.rook.io/v1"
_PATHS = {
    "CephCluster": (_ROOK, "cephclusters"),
    "CephBlockPool": (_ROOK, "cephblockpools"),
    "CephClient": (_ROOK, "cephclients"),
    "CephFilesystem": (_ROOK, "cephfilesystems"),
    "Secret": ("/api/v1", "secrets"),
    "Event": ("/api/v1", "events"),
}
_MERGE_PATCH = "application/merge-patch+json"
_FIRST_ERROR, NOT_FOUND, CONFLICT = 400, 404, 409

Object = dict[str, Any]


class ApiError(Exception):
    """The API server answered with this HTTP status; 0 if it is unreachable."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


def now() -> str:
    """Return the time as Kubernetes writes it."""
    return datetime.now(tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def now_exactly() -> str:
    """Return the time as Kubernetes writes it in events, with microseconds."""
    return datetime.now(tz=UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Api:
    """The objects of one namespace, with one connection per thread."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self._tls = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))
        self._mine = local()

    def list(self, kind: str) -> list[Object]:
        """Return all objects of a kind."""
        found: list[Object] = self._call("GET", self._path(kind))["items"]
        return found

    def get(self, kind: str, name: str) -> Object | None:
        """Return an object; None if it does not exist."""
        try:
            return self._call("GET", self._path(kind, name))
        except ApiError as error:
            if error.code == NOT_FOUND:
                return None
            raise

    def create(self, kind: str, manifest: Object) -> Object:
        """Create an object."""
        return self._call("POST", self._path(kind), manifest)

    def replace(self, kind: str, manifest: Object) -> Object:
        """Replace an object; ApiError 409 if it was changed since it was read."""
        return self._call("PUT", self._path(kind, manifest["metadata"]["name"]), manifest)

    def patch(self, kind: str, name: str, patch: Object) -> Object:
        """Merge a patch into an object."""
        return self._call("PATCH", self._path(kind, name), patch, _MERGE_PATCH)

    def patch_status(self, kind: str, name: str, status: Object) -> Object:
        """Merge a patch into the status of an object."""
        return self._call("PATCH", f"{self._path(kind, name)}/status", {"status": status}, _MERGE_PATCH)

    def delete(self, kind: str, name: str) -> None:
        """Delete an object, if it exists."""
        try:
            self._call("DELETE", self._path(kind, name))
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise

    def _path(self, kind: str, name: str = "") -> str:
        root, plural = _PATHS[kind]
        path = f"{root}/namespaces/{self.namespace}/{plural}"
        return f"{path}/{name}" if name else path

    def _call(self, verb: str, path: str, body: Object | None = None, media: str = "application/json") -> Object:
        headers = {
            "Authorization": f"Bearer {(_ACCOUNT / 'token').read_text()}",
            "Content-Type": media,
            "Accept": "application/json",
        }
        try:
            connection = self._connection()
            connection.request(verb, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            document: Object = json.loads(answer.read())
        except (OSError, HTTPException, ValueError) as error:
            self._mine.connection = None
            raise ApiError(0, repr(error)) from error
        if answer.status >= _FIRST_ERROR:
            raise ApiError(answer.status, str(document.get("message")))
        return document

    def _connection(self) -> HTTPSConnection:
        found: HTTPSConnection | None = getattr(self._mine, "connection", None)
        if found is None:
            host, port = os.environ["KUBERNETES_SERVICE_HOST"], int(os.environ["KUBERNETES_SERVICE_PORT"])
            found = HTTPSConnection(host, port, timeout=30, context=self._tls)
            self._mine.connection = found
        return found
