"""Who owns an object. Anyone can set names and labels, so what is used or deleted must name its owner too."""

from typing import Any

from plimsoll.api.names import RESULT_KIND, RUN_KIND
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import Object, label
from plimsoll.plan.ceph import base_name, file_system_name

_JOB = "Job"


def is_of_run(obj: Object, uid: str) -> bool:
    """Whether an object belongs to the run with that UID: by its label, and by its owner or, for a pod, its Job.

    For results the specification decides: they may outlive the run, and users may change their labels.
    """
    if obj["kind"] == RESULT_KIND:
        return bool(obj.get("spec", {}).get("runUid") == uid)
    if label(obj, naming.LABEL_RUN_UID) != uid:
        return False
    if obj["kind"] == "Pod":
        return bool(jobs_of(obj))
    return any(owner["uid"] == uid for owner in _owners(obj))


def is_external_object_of(obj: Object, name: str, uid: str) -> bool:
    """Whether an object outside the run's namespace belongs to the run.

    Owner references do not cross namespaces, so its name, with a digest of the UID, and its label decide.
    """
    base = base_name(name, uid)
    pools = {base, f"{base}-data", file_system_name(name, uid)}
    names = {*pools, f"{base}-conductor", f"{base}-agent", naming.teardown(uid)}
    return label(obj, naming.LABEL_RUN_UID) == uid and obj["metadata"]["name"] in names


def belongs_to_same_run(found: Object, wanted: Object) -> bool:
    """Whether an existing object belongs to the same run as one that was to be created under its name."""
    uid = label(wanted, naming.LABEL_RUN_UID)
    if _owners(wanted) or wanted["kind"] == RESULT_KIND:
        return is_of_run(found, uid)
    return label(found, naming.LABEL_RUN_UID) == uid


def jobs_of(pod: Object) -> set[str]:
    """Return the UIDs of the Jobs that own a pod; the Jobs may be gone."""
    return {str(owner["uid"]) for owner in _owners(pod) if owner["kind"] == _JOB}


def is_departing(obj: Object) -> bool:
    """Whether another owner's object will disappear by itself: another run owns it, or it is being deleted."""
    owned = any(owner["kind"] == RUN_KIND for owner in _owners(obj))
    return owned or "deletionTimestamp" in obj["metadata"]


def _owners(obj: Object) -> list[Any]:
    return list(obj["metadata"].get("ownerReferences") or ())
