"""Rook's reconciliation of a CephClient."""

import itertools

from cluster import ceph_version
from controller import Controller
from worker import ReconcileError

from kube import CONFLICT, ApiError, Object

import ceph


class Clients(Controller):
    """The controller of CephClients."""

    kind = "CephClient"
    component = "rook-ceph-client-controller"

    def _completed(self, spec: Object) -> Object:
        return {"security": {"cephx": {}}} | spec

    def _first_status(self, spec: Object) -> Object:  # noqa: ARG002 - the same for all
        return {"cephx": {"keyCephVersion": "Uninitialized"}}

    def _make(self, found: Object) -> Object:
        """Create the user and the Secret."""
        secret = _secret_name(found)
        key = _make_user(found["metadata"]["name"], _user(found), found["spec"]["caps"])
        self._write_secret(found, secret, key)
        keys = {"keyCephVersion": ceph_version(self._api), "keyGeneration": 1}
        return {"info": {"secretName": secret}, "cephx": keys}

    def _remove(self, found: Object) -> None:
        self._events.inform(found, "ReconcileStarted", f'deleting CephClient "{found["metadata"]["name"]}"')
        ceph.run("ceph", "auth", "del", f"client.{_user(found)}")
        self._api.delete("Secret", _secret_name(found))

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
