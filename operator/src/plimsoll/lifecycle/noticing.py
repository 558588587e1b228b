"""What a look at a run can notice of one of its objects: changes of anything else need no look.

A Job and its pods change several times a second while they start, and the conductor reports progress every few seconds;
most of it is in no decision and in no status. The parts that are compared here are those that a look reads, in the same
form. An estimate that depends on the progress of a prefill is brought up to date by the looks at regular intervals.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from plimsoll.api.state import RunState
from plimsoll.lifecycle.children import Object, claim_fact, job_fact, pod_fact
from plimsoll.lifecycle.members import member
from plimsoll.lifecycle.ownership import is_of_run
from plimsoll.lifecycle.render.common import STATE_FILE

_UNSHOWN = {"elapsed_seconds", "live", "prefill", "registered"}
"""Fields of the conductor's state that no status shows; conductors and `kubectl plimsoll watch` read them."""

_FACTS: Mapping[str, Callable[[Object], object]] = {
    "Job": job_fact,
    "Pod": pod_fact,
    "PersistentVolumeClaim": claim_fact,
}


def noticeable(obj: Object, run_uid: str) -> object:
    """Return a value that differs whenever a look at the run could notice a change of an object that carries its UID.

    `obj` is a Job, a pod, a PVC or a ConfigMap.
    """
    kind = obj["kind"]
    if kind in _FACTS:
        return member(_FACTS[kind], run_uid, obj)
    files = dict(obj.get("data") or {})
    state = _shown(files.pop(STATE_FILE, ""))
    metadata = obj["metadata"]
    return metadata["uid"], "deletionTimestamp" in metadata, is_of_run(obj, run_uid), obj.get("immutable"), files, state


def _shown(text: str) -> dict[str, Any] | str:
    """Return what a status shows of a conductor's state; the text if it cannot be read."""
    try:
        return RunState.model_validate_json(text).model_dump(exclude=_UNSHOWN)
    except ValidationError:
        return text
