"""Rook's reconciliation of a CephBlockPool."""

import time
from collections.abc import Iterator
from typing import Any

from controller import Controller
from release import Release
from worker import ReconcileError, say

from kube import Api, Object, now

import ceph

_DOMAINS = {"osd", "host", "chassis", "rack", "row", "pdu", "pod", "room", "datacenter", "zone", "region"}
_BLOCKED_SECONDS, _INIT_SECONDS = 10.0, 15.0
_MIN_DATA_CHUNKS = 2
_UNITS = {"Ki": 2**10, "Mi": 2**20}

# NAME STEPS: add a rule to the CRUSH map, unless it has one of that name. No command of Ceph makes a rule of two steps.
_ADD_RULE = """
! ceph osd crush rule ls | grep -qxF "$1" || exit 0
directory=$(mktemp -d)
trap 'rm -r "$directory"' EXIT
cd "$directory"
ceph osd getcrushmap --out-file old
crushtool --decompile old --outfn text
id=$(($(sed -n 's/^[[:space:]]*id \\([0-9]\\+\\)$/\\1/p' text | sort -n | tail -1) + 1))
printf 'rule %s {\\nid %s\\ntype replicated\\nmin_size 1\\nmax_size 10\\n%s\\n}\\n' "$1" "$id" "$2" >> text
crushtool --compile text --outfn new
ceph osd setcrushmap --in-file new
"""


class Pools(Controller):
    """The controller of CephBlockPools. `pause_seconds` is the additional time that Rook needs for a pool."""

    kind = "CephBlockPool"
    component = "rook-ceph-block-pool-controller"

    def __init__(self, api: Api, release: Release, pause_seconds: float) -> None:
        super().__init__(api, release)
        self._pause_seconds = pause_seconds

    def _completed(self, spec: Object) -> Object:
        return completed(spec)

    def _first_status(self, spec: Object) -> Object:
        kind = "Replicated" if spec["replicated"]["size"] else "Erasure Coded"
        return {"info": {"failureDomain": _domain(spec), "type": kind}, "cephx": {"peerToken": {}}}

    def _make(self, found: Object) -> Object:
        name, spec = found["metadata"]["name"], found["spec"]
        validate(name, spec)
        _make(name, spec)
        time.sleep(self._pause_seconds)
        reported: Object = {"poolID": _pool_id(name)}
        if self.release.is_new and spec["replicated"]["size"]:
            reported |= {"mirroringInfo": {}, "mirroringStatus": {}, "snapshotScheduleStatus": {}}
        return reported

    def _remove(self, found: Object) -> None:
        name = found["metadata"]["name"]
        there = _pool_id(name) is not None
        # No timeout, as in Rook: with inactive placement groups this never returns and blocks all other pools.
        full = there and _holds_images(ceph.read("rbd", "pool", "stats", name))
        self._report_deletion(found, there=there, full=full)
        if full:
            message = f'pool "{name}" cannot be deleted because it is not empty or has dependents'
            raise ReconcileError(message, again_seconds=_BLOCKED_SECONDS)
        self._events.inform(found, "ReconcileStarted", "starting blockpool deletion")
        if there:
            ceph.run("ceph", "osd", "pool", "rm", name, name, "--yes-i-really-really-mean-it")
        forget_pool(name, self.release)

    def _report_deletion(self, found: Object, *, there: bool, full: bool) -> None:
        name = found["metadata"]["name"]
        if full:
            blocked = ("True", "PoolNotEmpty", f'pool "{name}" contains images or snapshots and cannot be deleted')
        elif there:
            blocked = ("False", "PoolEmpty", f'pool "{name}" is empty and can be deleted')
        else:
            blocked = ("False", "PoolEmpty", f'pool "{name}" is not found in cluster')
        no_dependents = (
            f'CephBlockPool "{self._api.namespace}/{name}" has no dependent custom resources blocking deletion'
        )
        old = {each["type"]: each for each in found.get("status", {}).get("conditions", [])}
        conditions = [
            condition(old, "PoolDeletionIsBlocked", *blocked),
            condition(old, "DeletionIsBlocked", "False", "ObjectHasNoDependents", no_dependents),
        ]
        self._api.patch_status(self.kind, name, {"conditions": conditions})


def completed(given: Object) -> Object:
    """Return the specification of a pool as Rook's types serialize it."""
    spec = dict(given)
    replicated = {"size": 0} | spec.get("replicated", {})
    if not replicated.get("requireSafeReplicaSize", False):
        replicated.pop("requireSafeReplicaSize", None)
    erasure_coded = {"codingChunks": 0, "dataChunks": 0} | spec.get("erasureCoded", {})
    empty = {"application": "", "mirroring": {}, "quotas": {}, "statusCheck": {"mirror": {}}}
    return empty | spec | {"replicated": replicated, "erasureCoded": erasure_coded}


def validate(name: str, spec: Object) -> None:
    """Raise ReconcileError for a specification that Rook refuses."""
    for problem in _problems(spec):
        message = f'invalid pool CR "{name}" spec: {problem}'
        raise ReconcileError(message)


def _problems(spec: Object) -> Iterator[str]:
    replicated, erasure_coded = spec["replicated"], spec["erasureCoded"]
    coded = bool(erasure_coded["dataChunks"] or erasure_coded["codingChunks"])
    if replicated["size"] and coded:
        yield "invalid pool spec: both erasurecoded and replicated fields cannot be set at the same time"
    if not replicated["size"] and not coded:
        yield "invalid pool spec: either of erasurecoded or replicated fields should be set"
    if coded and erasure_coded["dataChunks"] < _MIN_DATA_CHUNKS:
        yield "invalid pool spec: erasurecoded.datachunks needs minimum value of 2"
    if replicated["size"] == 1 and replicated.get("requireSafeReplicaSize"):
        yield "error pool size is 1 and requireSafeReplicaSize is true, must be false"
    if _domain(spec) not in _DOMAINS:
        yield f"unrecognized failure domain {_domain(spec)}"
    together = replicated.get("replicasPerFailureDomain", 0)
    if _domain(spec) == replicated.get("subFailureDomain"):
        yield "failure and subfailure domain cannot be identical"
    if together and replicated["size"] <= together:
        size = replicated["size"]
        yield f"error pool size is {size} and replicasPerFailureDomain is {together}, size must be greater"


def _make(name: str, spec: Object) -> None:
    """Create and configure the pool for RBD; every command can be repeated."""
    create(name, spec, "rbd")
    try:
        ceph.run("rbd", "pool", "init", name, seconds=_INIT_SECONDS)
    except ceph.CommandError as error:
        problem = f'failed to initialize pool "{name}" for RBD use. {error}'
        raise ReconcileError(_failed(name, problem), phase="Failure") from error


def create(name: str, spec: Object, application: str) -> None:
    """Create and configure a pool for an application."""
    try:
        if spec["replicated"]["size"]:
            _make_replicated(name, spec)
        else:
            _make_erasure_coded(name, spec)
        ceph.run("ceph", "osd", "pool", "application", "enable", name, spec["application"] or application)
    except ceph.CommandError as error:
        raise ReconcileError(_failed(name, f'failed to configure pool "{name}": {error}'), phase="Failure") from error
    _set_parameters(name, spec)


def forget_pool(name: str, release: Release) -> None:
    """Remove the CRUSH rule of a pool that was removed, and its erasure-code profile, which Rook 1.18 leaves."""
    if release.is_new:
        ceph.run("ceph", "osd", "erasure-code-profile", "rm", f"{name}_ecprofile")
    if name in ceph.read("ceph", "osd", "crush", "rule", "ls"):
        ceph.run("ceph", "osd", "crush", "rule", "rm", name)


def _failed(name: str, why: str) -> str:
    return f'failed to create pool "{name}".: failed to configure pool "{name}".: {why}'


def _make_replicated(name: str, spec: Object) -> None:
    device_class = [spec["deviceClass"]] if spec.get("deviceClass") else []
    rule = ("ceph", "osd", "crush", "rule", "create-replicated", name, _root(spec), _domain(spec), *device_class)
    if spec["replicated"].get("replicasPerFailureDomain", 1) > 1:
        rule = ("sh", "-euc", _ADD_RULE, "add-rule", name, steps_within_domains(spec))
    try:
        ceph.run(*rule)
    except ceph.CommandError as error:
        problem = (
            f'failed to create replicated crush rule "{name}": failed to create crush rule {name}. . {error.complaint}'
        )
        raise ceph.CommandError(problem, error.ending) from error
    size = str(spec["replicated"]["size"])
    ceph.run("ceph", "osd", "pool", "create", name, "0", "replicated", name, "--size", size, "--yes-i-really-mean-it")
    ceph.run("ceph", "osd", "pool", "set", name, "size", size, "--yes-i-really-mean-it")


def steps_within_domains(spec: Object) -> str:
    """Return the steps of the CRUSH rule of a pool with several copies in each failure domain: always two, as Rook."""
    device_class = f" class {spec['deviceClass']}" if spec.get("deviceClass") else ""
    return (
        f"step take {_root(spec)}{device_class}\n"
        f"step choose firstn 0 type {_domain(spec)}\n"
        f"step chooseleaf firstn 2 type {spec['replicated'].get('subFailureDomain') or 'host'}\n"
        "step emit"
    )


def _make_erasure_coded(name: str, spec: Object) -> None:
    profile = f"{name}_ecprofile"
    default = ceph.read("ceph", "osd", "erasure-code-profile", "get", "default")
    pairs = (f"{key}={value}" for key, value in profile_of(spec, default).items())
    ceph.run("ceph", "osd", "erasure-code-profile", "set", profile, *pairs, "--force")
    ceph.run("ceph", "osd", "pool", "create", name, "0", "erasure", profile)
    ceph.run("ceph", "osd", "pool", "set", name, "allow_ec_overwrites", "true")


def profile_of(spec: Object, default: Object) -> dict[str, str]:
    """Return the erasure-code profile of a pool, given Ceph's default one: of that are plugin and technique.

    They are jerasure's in Ceph 18, and isa's in Ceph 20.
    """
    chunks = spec["erasureCoded"]
    profile = {
        "k": chunks["dataChunks"],
        "m": chunks["codingChunks"],
        "plugin": default["plugin"],
        "technique": default["technique"],
        "crush-root": _root(spec),
        "crush-failure-domain": _domain(spec),
        "crush-device-class": spec.get("deviceClass"),
        "crush-num-failure-domains": chunks.get("crushNumFailureDomains"),
        "crush-osds-per-failure-domain": chunks.get("crushOSDsPerFailureDomain"),
        "stripe_unit": _bytes_of(chunks["stripeUnit"]) if "stripeUnit" in chunks else None,
    }
    return {key: str(value) for key, value in profile.items() if value is not None}


def _bytes_of(size: str) -> int:
    return int(size[:-2]) * _UNITS[size[-2:]]


def _set_parameters(name: str, spec: Object) -> None:
    """Set `parameters`. If Ceph refuses one, Rook only logs it."""
    for key, value in sorted(spec.get("parameters", {}).items()):
        try:
            ceph.run("ceph", "osd", "pool", "set", name, key, value)
        except ceph.CommandError as error:
            say(f"pool {name}: failed to set {key} to {value}: {error}")


def _domain(spec: Object) -> str:
    return str(spec.get("failureDomain") or "host")


def _root(spec: Object) -> str:
    return str(spec.get("crushRoot") or "default")


def _pool_id(name: str) -> int | None:
    pools = ceph.read("ceph", "osd", "pool", "ls", "detail")
    return next((int(pool["pool_id"]) for pool in pools if pool["pool_name"] == name), None)


def _holds_images(stats: Any) -> bool:  # noqa: ANN401 - any JSON
    return bool(stats["images"]["count"] or stats["images"]["snap_count"])


def condition(old: dict[str, Object], kind: str, status: str, reason: str, message: str) -> Object:
    """Return a condition, with the time of its last transition."""
    before = old.get(kind, {})
    since = before["lastTransitionTime"] if before.get("status") == status else now()
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": now(),
        "lastTransitionTime": since,
    }
