"""Rook's reconciliation of a CephClient."""

import itertools
import json

import keys
from cluster import ceph_version, replacing
from controller import Controller
from worker import ReconcileError

from kube import CONFLICT, ApiError, Object

import ceph


class Clients(Controller):
    """The controller of CephClients."""

    kind = "CephClient"
    component = "rook-ceph-client-controller"

    def _completed(self, spec: Object) -> Object:
        return spec | {"security": {"cephx": {}} | spec.get("security", {})}

    def _first_status(self, spec: Object) -> Object:  # noqa: ARG002 - the same for all
        return {"cephx": keys.UNINITIALIZED}

    def _make(self, found: Object) -> Object:
        """Create the user and the Secret, with another key if its rotation was asked for."""
        user, secret, reported = _User(found), _secret_name(found), found["status"]["cephx"]
        # Rook 1.18 knows no types of keys, and no Ceph before 19.2.3 rotates them.
        wanted = found["spec"]["security"]["cephx"] if self.release.is_new else {}
        key_type: tuple[str, ...] = ("--key-type", wanted["keyType"]) if "keyType" in wanted else ()
        key, rotates = user.make(key_type), keys.is_due(wanted, reported)
        if rotates:
            key = user.rotate(key_type)
        self._write_secret(found, secret, key)
        cephx = keys.report(wanted, reported, version=ceph_version(self._api), rotated=rotates)
        return {"info": {"secretName": secret}, "cephx": replacing(reported, cephx)}

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


class _User:
    """The user of a CephClient in Ceph."""

    def __init__(self, found: Object) -> None:
        self._name, self._entity = found["metadata"]["name"], f"client.{_user(found)}"
        self._caps: dict[str, str] = found["spec"]["caps"]

    def make(self, key_type: tuple[str, ...]) -> str:
        """Create or update the user with its capabilities, and return its key.

        Only a new key gets the type: Ceph refuses another one than that of an existing key.
        """
        if not self._caps or not all(self._caps.values()):
            message = f'failed to validate client "{self._name}" arguments: no caps specified'
            raise ReconcileError(message)
        entity, words = self._entity, tuple(itertools.chain.from_iterable(sorted(self._caps.items())))
        try:
            key = str(ceph.read("ceph", "auth", "get-key", entity)["key"])
        except ceph.CommandError:
            why = f'failed to create client "{self._name}": failed get-or-create-key {entity}'
            created = json.loads(self._run(why, "get-or-create-key", entity, *words, *key_type))
            return str(created["key"])
        why = f'client "{entity}" exists, failed to update client caps: failed to update caps for {entity}'
        self._run(why, "caps", entity, *words)
        return key

    def rotate(self, key_type: tuple[str, ...]) -> str:
        """Have Ceph replace the key, and return the new one. Connections that were made with the old one continue."""
        why = f'failed to rotate cephx key for client "{self._entity}": failed auth rotate {self._entity}'
        (rotated,) = json.loads(self._run(why, "rotate", self._entity, *key_type))
        return str(rotated["key"])

    def _run(self, why: str, *command: str) -> str:
        try:
            return ceph.run("ceph", "auth", *command, "--format", "json")
        except ceph.CommandError as error:
            message = f'failed to create or update client "{self._name}": {why}: {error.ending}'
            raise ReconcileError(message, phase="Failure") from error
