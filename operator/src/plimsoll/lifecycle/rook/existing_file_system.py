"""Whether a run may use an existing CephFilesystem, and with which pools."""

from collections.abc import Sequence

from plimsoll.api.reasons.reason import Reason
from plimsoll.lifecycle.children import Object
from plimsoll.lifecycle.decision import Ending, Fact
from plimsoll.lifecycle.naming import ALLOW_BENCHMARKS
from plimsoll.lifecycle.rook.file_system import FILE_SYSTEM, pools_of
from plimsoll.lifecycle.wording import listed
from plimsoll.plan.document import CephTarget, Plan

_FIELD = "spec.storage.rook.existingFileSystem"
_READY = "Ready"
_MAX_NAMES = 10


def unusable_file_system(target: CephTarget, found: Sequence[Object]) -> Ending | Fact | None:
    """Return why a run may not use the file system it names, given all CephFilesystems; None if it may."""
    obj = _named(target, found)
    if obj is None:
        existing = listed(sorted(one["metadata"]["name"] for one in found), most=_MAX_NAMES) or "none"
        message = f"{_FIELD}: {_name(target)} does not exist; name an existing one: {existing}"
        return Ending.failure(Reason.FILE_SYSTEM_NOT_FOUND, message)
    if (obj["metadata"].get("annotations") or {}).get(ALLOW_BENCHMARKS) != "true":
        message = (
            f"{_FIELD}: {_name(target)} is not annotated as being for benchmarks; its owner can allow them with "
            f'`kubectl annotate cephfilesystem {obj["metadata"]["name"]} {ALLOW_BENCHMARKS}="true"` in its namespace'
        )
        return Ending.failure(Reason.FILE_SYSTEM_NOT_ALLOWED, message)
    if problem := _wrong_pool(target, obj):
        return Ending.failure(Reason.FILE_SYSTEM_NOT_FOUND, f"{_FIELD}.{problem}")
    phase = (obj.get("status") or {}).get("phase")
    if phase != _READY or "deletionTimestamp" in obj["metadata"]:
        message = f"{_name(target)} is {phase or 'not reconciled by Rook yet'}; wait until it is Ready"
        return Fact.false(Reason.FILE_SYSTEM_NOT_READY, message)
    return None


def with_all_pools(plan: Plan, found: Sequence[Object]) -> Plan:
    """Return the plan with the default data pool of an existing file system, if the run measures another one."""
    target = plan.ceph
    if target is None or target.file_system is None or target.file_system.made is not None:
        return plan
    obj = _named(target, found)
    _, *data = pools_of(obj) if obj is not None else ("",)
    if not data or data[0] == target.data_pool:
        return plan
    return plan.model_copy(update={"ceph": target.model_copy(update={"default_data_pool": data[0]})})


def _wrong_pool(target: CephTarget, obj: Object) -> str:
    """Return which pool the file system does not have, with its field; empty if it has both."""
    metadata, *data = pools_of(obj)
    if target.pool != metadata:
        return f"metadataPool: {_name(target)} has no metadata pool {target.pool}; name its own: {metadata}"
    if target.data_pool not in data:
        names = listed(data, most=_MAX_NAMES) or "none"
        return f"dataPool: {_name(target)} has no data pool {target.data_pool}; name one of its own: {names}"
    return ""


def _named(target: CephTarget, found: Sequence[Object]) -> Object | None:
    name = target.file_system.name if target.file_system else ""
    return next((obj for obj in found if obj["metadata"]["name"] == name), None)


def _name(target: CephTarget) -> str:
    return f"{FILE_SYSTEM} {target.file_system.name if target.file_system else ''}"
