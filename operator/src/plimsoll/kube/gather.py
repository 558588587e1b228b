"""Observing a run: everything that carries its UID, and what else decides about it.

The lists are not of one moment. Jobs come first: a Job that is complete, or gone, says something of pods and results,
and what is read of those afterwards is at least as new.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain

from plimsoll.api.storage import NamespacedName
from plimsoll.kube.elsewhere import gather_elsewhere, gather_rook
from plimsoll.kube.errors import ForbiddenError
from plimsoll.kube.port import Kind, Kube, Object
from plimsoll.kube.results import Digests
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.elsewhere import Scope
from plimsoll.lifecycle.measured import ResultFact, result_fact
from plimsoll.lifecycle.observed import Observed, observe
from plimsoll.lifecycle.platform import Platform, platform_of
from plimsoll.plan.document import RunIdentity

_JOB = Kind(api_version="batch/v1", kind="Job")
_NAMESPACE = Kind(api_version="v1", kind="Namespace")
_CONFIG_MAP = Kind(api_version="v1", kind="ConfigMap")
_STORAGE_CLASS = Kind(api_version="storage.k8s.io/v1", kind="StorageClass")
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
_EVENT = Kind(api_version="v1", kind="Event")


async def gather(
    kube: Kube,
    *,
    namespace: str,
    name: str,
    uid: str,
    scope: Scope | None = None,
    results: Digests[ResultFact] | None = None,
    for_removal: bool = False,
) -> Observed:
    """Return what is there of a run. The queue is not looked at: whoever decides does so at that moment.

    `scope`: where to look outside its namespace. `results`: what the last look read of its results; without it all of
    them are read. `for_removal`: only what has to be taken away, so that nothing else, such as results whose
    CRD is gone, hinders it.
    """
    identity = RunIdentity(name=name, namespace=namespace, uid=uid)
    seen = await _gather(kube, identity, results or Digests(result_fact), for_removal=for_removal)
    if scope is None:
        return seen
    return replace(seen, elsewhere=await gather_elsewhere(kube, scope, identity, has_claims=bool(seen.claims)))


async def _gather(kube: Kube, run: RunIdentity, digests: Digests[ResultFact], *, for_removal: bool) -> Observed:
    """Return what is there of a run in its namespace."""
    own, namespace = {naming.LABEL_RUN_UID: run.uid}, run.namespace
    jobs = await kube.list(_JOB, namespace=namespace, labels=own)
    lists = [kube.list(kind, namespace=namespace, labels=own) for kind in _CHILDREN]
    if for_removal:
        return observe([*jobs, *chain.from_iterable(await asyncio.gather(*lists))], run=run)
    # By name: results of an earlier run of this name are in the way of this one's.
    by_name = {naming.LABEL_RUN: naming.label_value(run.name)}
    results, children = await asyncio.gather(
        digests.look(kube, namespace=namespace, labels=by_name), asyncio.gather(*lists)
    )
    objects = [*jobs, *chain.from_iterable(children)]
    objects += await _in_the_plans_place(kube, namespace, run.name, objects)
    events = await asyncio.gather(
        *(kube.list(_EVENT, namespace=namespace, fields={"involvedObject.kind": kind}) for kind in _waiting(objects))
    )
    return observe(objects, run=run, results=results, events=[*chain.from_iterable(events)])


async def gather_platform(kube: Kube, namespace: str, rook: NamespacedName | None = None) -> Platform:
    """Return what a plan is to say of the cluster, and of the Rook cluster that it names; and the run's namespace."""
    version, storage_classes = await asyncio.gather(kube.version(), kube.list(_STORAGE_CLASS))
    found = await gather_rook(kube, rook) if rook else None
    return platform_of(version, storage_classes, found, await _namespace(kube, namespace))


async def _namespace(kube: Kube, name: str) -> Object | None:
    """Return a namespace; None if it may not be looked at: what it forbids is found out later then."""
    with suppress(ForbiddenError):
        return next(iter(await kube.list(_NAMESPACE, fields={"metadata.name": name})), None)
    return None


async def _in_the_plans_place(kube: Kube, namespace: str, name: str, objects: Sequence[Object]) -> Sequence[Object]:
    """Return the ConfigMap that stands where the plan has to, if it is not among the run's."""
    place = naming.plan_config_map(name)
    if any(obj["kind"] == _CONFIG_MAP.kind and obj["metadata"]["name"] == place for obj in objects):
        return ()
    found = await kube.get(_CONFIG_MAP, place, namespace)
    return () if found is None else (found,)


def _waiting(objects: Sequence[Object]) -> Iterator[str]:
    """Yield the kinds of which an object waits, so that its events say why: an unbound claim, a Job without a pod."""
    claims = [obj for obj in objects if obj["kind"] == "PersistentVolumeClaim"]
    if any(claim.get("status", {}).get("phase") != "Bound" for claim in claims):
        yield "PersistentVolumeClaim"
    pods = [obj for obj in objects if obj["kind"] == "Pod" and _phase(obj) in {"Pending", "Running"}]
    owners = {owner["uid"] for pod in pods for owner in pod["metadata"].get("ownerReferences", ())}
    jobs = [obj for obj in objects if obj["kind"] == _JOB.kind and not _has_concluded(obj)]
    if any(job["metadata"]["uid"] not in owners for job in jobs):
        yield _JOB.kind


def _phase(pod: Object) -> str:
    return str(pod.get("status", {}).get("phase", "Pending"))


def _has_concluded(job: Object) -> bool:
    """Tell whether a Job makes no pod any more."""
    conditions = job.get("status", {}).get("conditions", ())
    ended = any(entry["type"] in {"Complete", "Failed"} and entry["status"] == "True" for entry in conditions)
    return ended or "deletionTimestamp" in job["metadata"]
