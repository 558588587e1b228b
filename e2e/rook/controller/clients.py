"""Rook's reconciliation of a CephClient."""

import itertools

from cluster import ceph_version, is_usable
from worker import ReconcileError, Recorder

from kube import CONFLICT, Api, ApiError, Object

import ceph

_FINALIZER = "cephclient.ceph.rook.io"
_WAIT_SECONDS = 10.0


class Clients:
    """The controller of CephClients."""

    kind = "CephClient"
    component = "rook-ceph-client-controller"

    def __init__(self, api: Api) -> None:
        self._api = api
        self._events = Recorder(api, self.component)

    def reconcile(self, found: Object) -> float | None:
        """Create or remove the user and the Secret."""
        metadata = found["metadata"]
        if "deletionTimestamp" in metadata:
            self._remove(found)
            return None
        if _FINALIZER not in metadata.get("finalizers", []):
            self._api.replace(self.kind, _adopted(found))
            return 0
        if not is_usable(self._api):
            return _WAIT_SECONDS
        name, secret = metadata["name"], _secret_name(found)
        if not found.get("status", {}).get("phase"):
            self._api.patch_status(
                self.kind, name, {"phase": "Progressing", "cephx": {"keyCephVersion": "Uninitialized"}}
            )
        key = _make_user(name, _user(found), found["spec"]["caps"])
        self._write_secret(found, secret, key)
        ready = {
            "phase": "Ready",
            "observedGeneration": metadata["generation"],
            "info": {"secretName": secret},
            "cephx": {"keyCephVersion": ceph_version(self._api), "keyGeneration": 1},
        }
        self._api.patch_status(self.kind, name, ready)
        return None

    def _write_secret(self, found: Object, name: str, key: str) -> None:
        metadata = found["metadata"]
        owner = {
            "apiVersion": found["apiVersion"],
            "kind": found["kind"],
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        # As in Rook, `userID` is the name of the object even if the user has another name.
        content = {_user(found): key, "userID": metadata["name"], "userKey": key}
        manifest = {
            "metadata": {"name": name, "annotations": {"cephx-keyring": ""}, "ownerReferences": [owner]},
            "type": "kubernetes.io/rook",
            "stringData": content,
        }
        try:
            self._api.create("Secret", manifest)
        except ApiError as error:
            if error.code != CONFLICT:
                raise
            self._api.patch("Secret", name, manifest)

    def _remove(self, found: Object) -> None:
        name = found["metadata"]["name"]
        finalizers = found["metadata"].get("finalizers", [])
        if _FINALIZER not in finalizers:
            return
        self._events.inform(found, "ReconcileStarted", f'deleting CephClient "{name}"')
        ceph.run("ceph", "auth", "del", f"client.{_user(found)}")
        self._api.delete("Secret", _secret_name(found))
        left = [each for each in finalizers if each != _FINALIZER]
        self._api.patch(self.kind, name, {"metadata": {"finalizers": left}})
        self._events.inform(found, "ReconcileSucceeded", "successfully removed finalizer")


def _adopted(found: Object) -> Object:
    metadata = found["metadata"]
    return found | {
        "metadata": metadata | {"finalizers": [*metadata.get("finalizers", []), _FINALIZER]},
        "spec": {"security": {"cephx": {}}} | found["spec"],
    }


def _user(found: Object) -> str:
    return str(found["spec"].get("name") or found["metadata"]["name"])


def _secret_name(found: Object) -> str:
    return str(found["spec"].get("secretName") or f"rook-ceph-client-{found['metadata']['name']}")


def _make_user(name: str, user: str, caps: dict[str, str]) -> str:
    """Create or update a user with these capabilities, and return its key."""
    if not caps or not all(caps.values()):
        message = f'failed to validate client "{name}" arguments: no caps specified'
        raise ReconcileError(message)
    words = tuple(itertools.chain.from_iterable(sorted(caps.items())))
    entity = f"client.{user}"
    try:
        if entity in {each["entity"] for each in ceph.read("ceph", "auth", "ls")["auth_dump"]}:
            ceph.run("ceph", "auth", "caps", entity, *words)
        return str(ceph.read("ceph", "auth", "get-or-create-key", entity, *words)["key"])
    except ceph.CommandError as error:
        why = f'failed to create client "{name}": failed get-or-create-key {entity}: {error.ending}'
        message = f'failed to create or update client "{name}": {why}'
        raise ReconcileError(message, phase="Failure") from error
