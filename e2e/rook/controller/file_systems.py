"""Rook's reconciliation of a CephFilesystem. The metadata servers are those of e2e/ceph: it creates none."""

import string
import time

import keys
from cluster import ceph_version
from controller import Controller
from pools import completed, condition, create, forget_pool, validate
from release import Release
from worker import ReconcileError

from kube import Api, Object

import ceph

_BLOCKED_SECONDS = 10.0
_GROUP = "csi"
"""The subvolume group of Rook's CSI driver, which Rook creates in every file system."""

_SERVERS_KEY_TYPE = "aes256k"
"""Ceph's default, since no specification of the stand-in's CephCluster changes it."""


class FileSystems(Controller):
    """The controller of CephFilesystems. `pause_seconds` is the additional time that Rook needs for one."""

    kind = "CephFilesystem"
    component = "rook-ceph-file-controller"

    def __init__(self, api: Api, release: Release, pause_seconds: float) -> None:
        super().__init__(api, release)
        self._pause_seconds = pause_seconds

    def _completed(self, spec: Object) -> Object:
        pools = [completed({"name": f"data{number}"} | pool) for number, pool in enumerate(spec["dataPools"])]
        written: Object = {"statusCheck": {"mirror": {}}} | _without_flags_that_are_off(spec)
        servers: Object = {"placement": {}, "resources": {}} | _without_flags_that_are_off(spec["metadataServer"])
        return written | {
            "metadataPool": completed(spec["metadataPool"]),
            "dataPools": pools,
            "metadataServer": servers,
        }

    def _first_status(self, spec: Object) -> Object:  # noqa: ARG002 - the same for all
        return {"cephx": {"daemon": keys.UNINITIALIZED}}

    def _make(self, found: Object) -> Object:
        name, spec, reported = found["metadata"]["name"], found["spec"], found["status"]["cephx"]["daemon"]
        _make(name, spec)
        if self.release.is_new:
            _assign_servers(name, spec["metadataServer"])
        time.sleep(self._pause_seconds)
        # Rook reports the type that the servers' keys have.
        wanted = {"keyType": _SERVERS_KEY_TYPE} if self.release.is_new else {}
        return {"cephx": {"daemon": keys.report(wanted, reported, version=ceph_version(self._api), rotated=False)}}

    def _remove(self, found: Object) -> None:
        name = found["metadata"]["name"]
        where = f'{self.kind} "{self._api.namespace}/{name}"'
        if groups := _groups_with_subvolumes(name):
            message = (
                f"{where} will not be deleted until all dependents are removed: filesystem subvolume groups that "
                f"contain subvolumes (could be from CephFilesystem PVCs or CephNFS exports): [{' '.join(groups)}]"
            )
            self._report_blocked(found, "True", "ObjectHasDependents", message)
            raise ReconcileError(message, again_seconds=_BLOCKED_SECONDS)
        no_dependents = f"{where} has no dependent custom resources blocking deletion"
        self._report_blocked(found, "False", "ObjectHasNoDependents", no_dependents)
        if not found["spec"].get("preserveFilesystemOnDelete"):
            _destroy(name, found["spec"], self.release)

    def _report_blocked(self, found: Object, status: str, reason: str, message: str) -> None:
        old = {each["type"]: each for each in found.get("status", {}).get("conditions", [])}
        blocked = condition(old, "DeletionIsBlocked", status, reason, message)
        self._api.patch_status(self.kind, found["metadata"]["name"], {"conditions": [blocked]})


def _without_flags_that_are_off(spec: Object) -> Object:
    """Return a specification as Rook's types serialize it."""
    return {name: value for name, value in spec.items() if value is not False}


def _pools(name: str, spec: Object) -> dict[str, Object]:
    """Return the pools by their names in Ceph, the metadata pool first."""
    data = {f"{name}-{pool['name']}": pool for pool in spec["dataPools"]}
    return {f"{name}-metadata": spec["metadataPool"]} | data


def _make(name: str, spec: Object) -> None:
    """Create the pools and the file system; every command can be repeated."""
    pools = _pools(name, spec)
    for pool, layout in pools.items():
        validate(pool, layout)
        create(pool, layout, "cephfs")
    metadata, default, *others = pools
    try:
        if name not in _names():
            ceph.run("ceph", "fs", "new", name, metadata, default)
        for pool in others:
            ceph.run("ceph", "fs", "add_data_pool", name, pool)
        ceph.run("ceph", "fs", "set", name, "max_mds", str(spec["metadataServer"]["activeCount"]))
        ceph.run("ceph", "fs", "subvolumegroup", "create", name, _GROUP)
    except ceph.CommandError as error:
        message = f'failed to create filesystem "{name}": {error}'
        raise ReconcileError(message, phase="Failure") from error


def _assign_servers(name: str, servers: Object) -> None:
    """Set the option that ties metadata servers to the file system, which Rook leaves behind when it deletes that.

    Here it ties none: the servers of e2e/ceph have other names.
    """
    count = servers["activeCount"] * (2 if servers.get("activeStandby") else 1)
    for letter in string.ascii_lowercase[:count]:
        ceph.run("ceph", "config", "set", f"mds.{name}-{letter}", "mds_join_fs", name)


def _names() -> set[str]:
    return {each["name"] for each in ceph.read("ceph", "fs", "ls")}


def _groups_with_subvolumes(name: str) -> list[str]:
    if name not in _names():
        return []
    groups = [each["name"] for each in ceph.read("ceph", "fs", "subvolumegroup", "ls", name)]
    return [group for group in groups if ceph.read("ceph", "fs", "subvolume", "ls", name, group)]


def _destroy(name: str, spec: Object, release: Release) -> None:
    if name in _names():
        ceph.run("ceph", "fs", "fail", name)
        ceph.run("ceph", "fs", "rm", name, "--yes-i-really-mean-it")
    there = set(ceph.read("ceph", "osd", "pool", "ls"))
    for pool in _pools(name, spec):
        if pool in there:
            ceph.run("ceph", "osd", "pool", "rm", pool, pool, "--yes-i-really-really-mean-it")
        forget_pool(pool, release)
