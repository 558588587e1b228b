"""The look at the objects of a run on Ceph in the operator's namespace: its record and its teardown Job."""

from collections.abc import Iterable, Sequence

from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import Object
from plimsoll.lifecycle.storage.ceph.facts import ExternalObjects, external_objects_of
from plimsoll.lifecycle.storage.look import Look, Query
from plimsoll.plan.document import RunIdentity

JOB = "Job"


def look_at_ceph(namespace: str, run: RunIdentity) -> Look[ExternalObjects]:
    """Find the objects outside its namespace of a run on a Ceph cluster without Rook."""
    objects = yield from look_at_teardown(namespace, run.uid)
    events = yield from look_for_events(namespace, objects, (JOB,))
    return external_objects_of(objects, run=run, events=events)


def look_at_teardown(namespace: str, uid: str) -> Look[Sequence[Object]]:
    """Find the record, the keyring, and the teardown Jobs with their pods and their NetworkPolicy."""
    own, name = {naming.LABEL_RUN_UID: uid}, naming.teardown(uid)
    # Jobs first: a pod that is read after its Job is at least as new.
    (jobs,) = yield [Query(api_version="batch/v1", kind=JOB, namespace=namespace, labels=own)]
    rest = yield [
        Query(api_version="v1", kind="Pod", namespace=namespace, labels=own),
        Query(api_version="v1", kind="ConfigMap", namespace=namespace, name=name),
        Query(api_version="v1", kind="Secret", namespace=namespace, name=name),
        Query(api_version="networking.k8s.io/v1", kind="NetworkPolicy", namespace=namespace, name=name),
    ]
    return [*jobs, *(obj for found in rest for obj in found)]


def look_for_events(namespace: str, objects: Sequence[Object], kinds: Iterable[str]) -> Look[Sequence[Object]]:
    """Find the events about objects of these kinds, if one of them waits for something."""
    waiting = [kind for kind in kinds if any(obj["kind"] == kind and not _is_at_rest(obj) for obj in objects)]
    if not waiting:
        return ()
    events = yield [
        Query(api_version="v1", kind="Event", namespace=namespace, fields={"involvedObject.kind": kind})
        for kind in waiting
    ]
    return [event for found in events for event in found]


def _is_at_rest(obj: Object) -> bool:
    ready = obj.get("status", {}).get("phase") == "Ready"
    return ready and "deletionTimestamp" not in obj["metadata"]
