"""Observing a run: everything that carries its UID, and what else decides about it.

The lists are not of one moment. Jobs come first: a Job that is complete, or gone, says something of pods and results,
and what is read of those afterwards is at least as new.
"""

import asyncio
from collections.abc import Sequence
from itertools import chain

from plimsoll.api.names import API_VERSION, RESULT_KIND
from plimsoll.kube.port import Kind, Kube, Object
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.observed import Observed, observe

_JOB = Kind(api_version="batch/v1", kind="Job")
_CONFIG_MAP = Kind(api_version="v1", kind="ConfigMap")
_CHILDREN = (
    _CONFIG_MAP,
    Kind(api_version="v1", kind="ServiceAccount"),
    Kind(api_version="v1", kind="Service"),
    Kind(api_version="v1", kind="Pod"),
    Kind(api_version="v1", kind="PersistentVolumeClaim"),
    Kind(api_version="networking.k8s.io/v1", kind="NetworkPolicy"),
    Kind(api_version="rbac.authorization.k8s.io/v1", kind="Role"),
    Kind(api_version="rbac.authorization.k8s.io/v1", kind="RoleBinding"),
)
_RESULT = Kind(api_version=API_VERSION, kind=RESULT_KIND)
_EVENT = Kind(api_version="v1", kind="Event")


async def gather(kube: Kube, *, namespace: str, name: str, uid: str) -> Observed:
    """Return what is there of a run. The queue is not looked at: whoever decides does so at that moment."""
    own = {naming.LABEL_RUN_UID: uid}
    jobs = await kube.list(_JOB, namespace=namespace, labels=own)
    lists = await asyncio.gather(
        *(kube.list(kind, namespace=namespace, labels=own) for kind in _CHILDREN),
        # By name: results of an earlier run of this name are in the way of this one's.
        kube.list(_RESULT, namespace=namespace, labels={naming.LABEL_RUN: naming.label_value(name)}),
    )
    objects = [*jobs, *chain.from_iterable(lists)]
    objects += await _in_the_plans_place(kube, namespace, name, objects)
    events = await _claim_events(kube, namespace, objects)
    return observe(objects, run_uid=uid, events=events)


async def _in_the_plans_place(kube: Kube, namespace: str, name: str, objects: Sequence[Object]) -> Sequence[Object]:
    """Return the ConfigMap that stands where the plan has to, if the run has no ConfigMap yet."""
    if any(obj["kind"] == _CONFIG_MAP.kind for obj in objects):
        return ()
    found = await kube.get(_CONFIG_MAP, naming.plan_config_map(name), namespace)
    return () if found is None else (found,)


async def _claim_events(kube: Kube, namespace: str, objects: Sequence[Object]) -> Sequence[Object]:
    """Return the events of claims, if there is one that waits."""
    unbound = any(
        obj["kind"] == "PersistentVolumeClaim" and obj.get("status", {}).get("phase") != "Bound" for obj in objects
    )
    if not unbound:
        return ()
    return await kube.list(_EVENT, namespace=namespace, fields={"involvedObject.kind": "PersistentVolumeClaim"})
