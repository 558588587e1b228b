"""Whose is an object? Names and labels can be anybody's; what is deleted or used has to name its owner as well."""

from typing import Any

from plimsoll.api.names import RESULT_KIND, RUN_KIND
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import Object, label
from plimsoll.plan.ceph import base_name

_JOB = "Job"


def is_of_run(obj: Object, uid: str) -> bool:
    """Tell whether an object is the run's with that UID: by its label, and by its owner or, of a pod, by having a Job.

    Of results their specification says it: they may outlive the run, and their labels may be changed.
    """
    if obj["kind"] == RESULT_KIND:
        return bool(obj.get("spec", {}).get("runUid") == uid)
    if label(obj, naming.LABEL_RUN_UID) != uid:
        return False
    if obj["kind"] == "Pod":
        return bool(jobs_of(obj))
    return any(owner["uid"] == uid for owner in _owners(obj))


def is_of_run_elsewhere(obj: Object, name: str, uid: str) -> bool:
    """Tell whether an object outside the run's namespace is the run's: an owner has to be in the same namespace.

    So its name says it, which has a digest of the UID, and its label. A copy of one under another name is not.
    """
    base = base_name(name, uid)
    names = {base, f"{base}-data", f"{base}-conductor", f"{base}-agent", naming.teardown(uid)}
    return label(obj, naming.LABEL_RUN_UID) == uid and obj["metadata"]["name"] in names


def is_what_was_made(found: Object, made: Object) -> bool:
    """Tell whether what stands under the name of an object that was to be made is of the same run."""
    uid = label(made, naming.LABEL_RUN_UID)
    if _owners(made) or made["kind"] == RESULT_KIND:
        return is_of_run(found, uid)
    return label(found, naming.LABEL_RUN_UID) == uid


def jobs_of(pod: Object) -> set[str]:
    """Return the UIDs of the Jobs that a pod belongs to; the Jobs themselves may be gone."""
    return {str(owner["uid"]) for owner in _owners(pod) if owner["kind"] == _JOB}


def is_departing(obj: Object) -> bool:
    """Tell whether a stranger's object goes by itself: another run owns it, or it is being deleted."""
    owned = any(owner["kind"] == RUN_KIND for owner in _owners(obj))
    return owned or "deletionTimestamp" in obj["metadata"]


def _owners(obj: Object) -> list[Any]:
    return list(obj["metadata"].get("ownerReferences") or ())
