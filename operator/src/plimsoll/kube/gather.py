"""Observing a run: everything that carries its UID, and what else decides about it."""

import asyncio
from collections.abc import Sequence
from itertools import chain

from plimsoll.api.names import API_VERSION, RESULT_KIND
from plimsoll.kube.port import Kind, Kube, Object
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.observed import Observed, observe

_CHILDREN = (
    Kind(api_version="v1", kind="ConfigMap"),
    Kind(api_version="v1", kind="ServiceAccount"),
    Kind(api_version="v1", kind="Service"),
    Kind(api_version="v1", kind="Pod"),
    Kind(api_version="v1", kind="PersistentVolumeClaim"),
    Kind(api_version="batch/v1", kind="Job"),
    Kind(api_version="networking.k8s.io/v1", kind="NetworkPolicy"),
    Kind(api_version="rbac.authorization.k8s.io/v1", kind="Role"),
    Kind(api_version="rbac.authorization.k8s.io/v1", kind="RoleBinding"),
)
_RESULT = Kind(api_version=API_VERSION, kind=RESULT_KIND)
_EVENT = Kind(api_version="v1", kind="Event")


async def gather(kube: Kube, *, namespace: str, name: str, uid: str, ahead: Sequence[str] = ()) -> Observed:
    """Return what is there of a run; `ahead` are the runs before it in the queue."""
    own = {naming.LABEL_RUN_UID: uid}
    lists = await asyncio.gather(
        *(kube.list(kind, namespace=namespace, labels=own) for kind in _CHILDREN),
        # By name: results of an earlier run of this name are in the way of this one's.
        kube.list(_RESULT, namespace=namespace, labels={naming.LABEL_RUN: naming.label_value(name)}),
    )
    objects = list(chain.from_iterable(lists))
    events = await _claim_events(kube, namespace, objects)
    return observe(objects, run_uid=uid, events=events, ahead=ahead)


async def _claim_events(kube: Kube, namespace: str, objects: Sequence[Object]) -> Sequence[Object]:
    """Return the events of claims, if there is one that waits."""
    unbound = any(
        obj["kind"] == "PersistentVolumeClaim" and obj.get("status", {}).get("phase") != "Bound" for obj in objects
    )
    if not unbound:
        return ()
    return await kube.list(_EVENT, namespace=namespace, fields={"involvedObject.kind": "PersistentVolumeClaim"})
