"""Observing a run: everything that carries its UID, and what else decides about it.

Of Jobs, pods and claims, of which a run may have thousands, and of results, only those are read that have changed since
the last look.

The lists are not of one moment. Jobs come first: a Job that is complete, or gone, says something of pods and results,
and what is read of those afterwards is at least as new.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TypeVar

from plimsoll.api.storage import NamespacedName
from plimsoll.kube.digests import RESULT, RESULTS_PAGE_SIZE, Digests
from plimsoll.kube.elsewhere import gather_elsewhere, gather_rook
from plimsoll.kube.errors import ForbiddenError
from plimsoll.kube.port import Kind, Kube, Object
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import claim_fact, job_fact, pod_fact
from plimsoll.lifecycle.elsewhere import Scope
from plimsoll.lifecycle.measured import result_fact
from plimsoll.lifecycle.members import Member, Members, member
from plimsoll.lifecycle.observed import Observed, observe
from plimsoll.lifecycle.platform import Platform, platform_of
from plimsoll.plan.document import RunIdentity

_JOB = Kind(api_version="batch/v1", kind="Job")
_POD = Kind(api_version="v1", kind="Pod")
_CLAIM = Kind(api_version="v1", kind="PersistentVolumeClaim")
_NAMESPACE = Kind(api_version="v1", kind="Namespace")
_CONFIG_MAP = Kind(api_version="v1", kind="ConfigMap")
_STORAGE_CLASS = Kind(api_version="storage.k8s.io/v1", kind="StorageClass")
_CHILDREN = (
    _CONFIG_MAP,
    Kind(api_version="v1", kind="ServiceAccount"),
    Kind(api_version="v1", kind="Service"),
    Kind(api_version="networking.k8s.io/v1", kind="NetworkPolicy"),
    Kind(api_version="rbac.authorization.k8s.io/v1", kind="Role"),
    Kind(api_version="rbac.authorization.k8s.io/v1", kind="RoleBinding"),
)
_EVENT = Kind(api_version="v1", kind="Event")


F = TypeVar("F")

_PAGE_SIZE = 100
"""Jobs, pods or claims that are in memory as a whole at once, of some 8 KiB each."""

_WORTHWHILE = 100
"""Jobs, pods or claims from which on a look reads their metadata instead, and then what has changed."""


class Known:
    """What looks at one run keep of its objects, so that the next one reads only what has changed."""

    def __init__(self, uid: str) -> None:
        """Know nothing yet of the run with that UID."""

        def members(kind: Kind, fact: Callable[[Object], F]) -> Digests[Member[F]]:
            digest = partial(member, fact, uid)
            return Digests(kind, digest, page_size=_PAGE_SIZE, worthwhile=_WORTHWHILE)

        self.jobs = members(_JOB, job_fact)
        self.pods = members(_POD, pod_fact)
        self.claims = members(_CLAIM, claim_fact)
        self.results = Digests(RESULT, result_fact, page_size=RESULTS_PAGE_SIZE)

    def forget_members(self) -> None:
        """Drop all Jobs, pods and claims.

        As after an outage: the API server may have been restored to an earlier state, with other objects under the same
        versions. Results stay, because to read all of them again is expensive, and they do not decide what is deleted.
        """
        for digests in (self.jobs, self.pods, self.claims):
            digests.forget()


async def gather(
    kube: Kube,
    *,
    namespace: str,
    name: str,
    uid: str,
    scope: Scope | None = None,
    known: Known | None = None,
    for_removal: bool = False,
) -> Observed:
    """Return what is there of a run. The queue is not looked at: whoever decides does so at that moment.

    `scope`: where to look outside its namespace. `known`: what the last look kept; without it everything is read.
    `for_removal`: only what has to be taken away, so that nothing else, such as results whose
    CRD is gone, hinders it.
    """
    identity = RunIdentity(name=name, namespace=namespace, uid=uid)
    known = known or Known(uid)
    try:
        seen = await _gather(kube, identity, known, for_removal=for_removal)
    except BaseException:
        known.forget_members()
        raise
    if scope is None:
        return seen
    return replace(seen, elsewhere=await gather_elsewhere(kube, scope, identity, has_claims=bool(seen.claims)))


async def _gather(kube: Kube, run: RunIdentity, known: Known, *, for_removal: bool) -> Observed:
    """Return what is there of a run in its namespace."""
    own, namespace = {naming.LABEL_RUN_UID: run.uid}, run.namespace
    # By name: results of an earlier run of this name are in the way of this one's.
    by_name = {naming.LABEL_RUN: naming.label_value(run.name)}
    async with _in_parallel() as group:
        jobs = await known.jobs.look(kube, namespace=namespace, labels=own)
        pods = group.create_task(known.pods.look(kube, namespace=namespace, labels=own))
        claims = group.create_task(known.claims.look(kube, namespace=namespace, labels=own))
        lists = [group.create_task(kube.list(kind, namespace=namespace, labels=own)) for kind in _CHILDREN]
        if not for_removal:
            results = group.create_task(known.results.look(kube, namespace=namespace, labels=by_name))
    members = Members(jobs=jobs, pods=pods.result(), claims=claims.result())
    objects = [*chain.from_iterable(found.result() for found in lists)]
    if for_removal:
        return observe(objects, run=run, members=members)
    objects += await _in_the_plans_place(kube, namespace, run.name, objects)
    events = await asyncio.gather(
        *(kube.list(_EVENT, namespace=namespace, fields={"involvedObject.kind": kind}) for kind in _waiting(members))
    )
    return observe(objects, run=run, members=members, results=results.result(), events=[*chain.from_iterable(events)])


@asynccontextmanager
async def _in_parallel() -> AsyncIterator[asyncio.TaskGroup]:
    """Ask for several things; if one fails, none goes on and changes what is known to the next look."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None


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


def _waiting(members: Members) -> Iterator[str]:
    """Yield the kinds of which an object waits, so that its events say why: an unbound claim, a Job without a pod."""
    if members.has_unbound_claim:
        yield _CLAIM.kind
    if members.has_job_without_pod:
        yield _JOB.kind
