"""Observes a run: everything that carries its UID, and whatever else decisions depend on.

A run may have thousands of Jobs, pods and PVCs, and large results: each look reads only those that have changed. What
only the operator changes is read once it has acted.

The lists are not a consistent snapshot. Jobs come first: conclusions from a Job that is complete or gone hold for pods
and results that are read later.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import TypeVar

from plimsoll.kube.errors import ForbiddenError, UnknownKindError
from plimsoll.kube.port import Kind, Kube, Object
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import Member, Members, claim_fact, job_fact, member, pod_fact, result_fact
from plimsoll.lifecycle.observed import Observed, observe
from plimsoll.lifecycle.run import Platform, platform_of
from plimsoll.lifecycle.storage.seam import Found, Look, Query, UnansweredError
from plimsoll.plan.document import RunIdentity
from plimsoll.reconcile.digests import RESULT, RESULTS_PAGE_SIZE, Digests
from plimsoll.reconcile.kept import Kept

_JOB = Kind(api_version="batch/v1", kind="Job")
_POD = Kind(api_version="v1", kind="Pod")
_CLAIM = Kind(api_version="v1", kind="PersistentVolumeClaim")
_NAMESPACE = Kind(api_version="v1", kind="Namespace")
_CONFIG_MAP = Kind(api_version="v1", kind="ConfigMap")
_STORAGE_CLASS = Kind(api_version="storage.k8s.io/v1", kind="StorageClass")
_FIXED = (
    Kind(api_version="v1", kind="ServiceAccount"),
    Kind(api_version="v1", kind="Service"),
    Kind(api_version="networking.k8s.io/v1", kind="NetworkPolicy"),
    Kind(api_version="rbac.authorization.k8s.io/v1", kind="Role"),
    Kind(api_version="rbac.authorization.k8s.io/v1", kind="RoleBinding"),
)
_EVENT = Kind(api_version="v1", kind="Event")

F = TypeVar("F")

_PAGE_SIZE = 100
"""Jobs, pods or PVCs in memory at once, of some 8 KiB each."""

_WORTHWHILE = 100
"""Number of Jobs, pods or PVCs from which on a look reads their metadata, and then only the changed objects."""


class Known:
    """Digests of a run's objects, so that the next look reads only what has changed."""

    def __init__(self, uid: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """Start without digests for the run with that UID; `now` returns the time."""

        def members(kind: Kind, fact: Callable[[Object], F]) -> Digests[Member[F]]:
            digest = partial(member, fact, uid)
            return Digests(kind, digest, page_size=_PAGE_SIZE, worthwhile=_WORTHWHILE)

        self.jobs = members(_JOB, job_fact)
        self.pods = members(_POD, pod_fact)
        self.claims = members(_CLAIM, claim_fact)
        self.results = Digests(RESULT, result_fact, page_size=RESULTS_PAGE_SIZE)
        self.fixed = tuple(Kept(kind, uid, now) for kind in _FIXED)

    def forget_members(self) -> None:
        """Drop everything but the digests of results after a failed look.

        The API server may have been restored to an earlier state, with other objects under the same versions. Results
        stay: rereading all of them is expensive, and they do not decide what is deleted.
        """
        self.forget_fixed()
        for digests in (self.jobs, self.pods, self.claims):
            digests.forget()

    def forget_fixed(self) -> None:
        """Have the next look read what only the operator changes."""
        for kept in self.fixed:
            kept.forget()


async def gather(
    kube: Kube,
    *,
    namespace: str,
    name: str,
    uid: str,
    look: Callable[[Observed], Look[object] | None] | None = None,
    known: Known | None = None,
    for_removal: bool = False,
) -> Observed:
    """Return what is observed of a run, except for the queue, which is read at the moment of the decision.

    `look`: returns the look outside the run's namespace, given what is observed in it. `known`: digests of the last
    look; without them everything is read. `for_removal`: observe only what has to be removed, so that nothing else,
    such as results whose CRD is gone, blocks the removal.
    """
    identity = RunIdentity(name=name, namespace=namespace, uid=uid)
    known = known or Known(uid)
    if for_removal:
        known.forget_fixed()
    try:
        seen = await _gather(kube, identity, known, for_removal=for_removal)
    except BaseException:
        known.forget_members()
        raise
    outside = look(seen) if look is not None else None
    return seen if outside is None else replace(seen, external=await answer_look(outside, kube))


async def _gather(kube: Kube, run: RunIdentity, known: Known, *, for_removal: bool) -> Observed:
    own, namespace = {naming.LABEL_RUN_UID: run.uid}, run.namespace
    # By name: results of an earlier run with this name conflict with this run's.
    by_name = {naming.LABEL_RUN: naming.label_value(run.name)}
    async with _in_parallel() as group:
        jobs = await known.jobs.look(kube, namespace=namespace, labels=own)
        pods = group.create_task(known.pods.look(kube, namespace=namespace, labels=own))
        claims = group.create_task(known.claims.look(kube, namespace=namespace, labels=own))
        maps = group.create_task(kube.list(_CONFIG_MAP, namespace=namespace, labels=own))
        fixed = [group.create_task(kept.look(kube, namespace=namespace, labels=own)) for kept in known.fixed]
        if not for_removal:
            results = group.create_task(known.results.look(kube, namespace=namespace, labels=by_name))
    members = Members(jobs=jobs, pods=pods.result(), claims=claims.result())
    objects, others = [*maps.result()], [*chain.from_iterable(found.result() for found in fixed)]
    if for_removal:
        return observe(objects, run=run, members=members, fixed=others)
    objects += await _foreign_plan(kube, namespace, run.name, objects)
    events = await asyncio.gather(
        *(kube.list(_EVENT, namespace=namespace, fields={"involvedObject.kind": kind}) for kind in _waiting(members))
    )
    return observe(
        objects,
        run=run,
        members=members,
        fixed=others,
        results=results.result(),
        events=[*chain.from_iterable(events)],
    )


@asynccontextmanager
async def _in_parallel() -> AsyncIterator[asyncio.TaskGroup]:
    """Run requests concurrently; if one fails, cancel the others, so that they do not change the digests."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None


async def gather_platform(kube: Kube, namespace: str, survey: Look[object] | None = None) -> Platform:
    """Return the facts about the cluster, the run's storage and its namespace that freezing a plan needs."""
    version, storage_classes = await asyncio.gather(kube.version(), kube.list(_STORAGE_CLASS))
    found = await answer_look(survey, kube) if survey is not None else None
    return platform_of(version, storage_classes, found, await _namespace(kube, namespace))


async def _namespace(kube: Kube, name: str) -> Object | None:
    """Return a namespace; None if the operator may not read it: then its restrictions show later."""
    with suppress(ForbiddenError):
        return next(iter(await kube.list(_NAMESPACE, fields={"metadata.name": name})), None)
    return None


async def _foreign_plan(kube: Kube, namespace: str, name: str, objects: Sequence[Object]) -> Sequence[Object]:
    """Return the ConfigMap with the plan's name if it is not among the run's objects."""
    plan = naming.plan_config_map(name)
    if any(obj["kind"] == _CONFIG_MAP.kind and obj["metadata"]["name"] == plan for obj in objects):
        return ()
    found = await kube.get(_CONFIG_MAP, plan, namespace)
    return () if found is None else (found,)


def _waiting(members: Members) -> Iterator[str]:
    """Yield the kinds whose events explain the wait: unbound PVCs, Jobs without a pod, pods without a container."""
    if members.has_unbound_claim:
        yield _CLAIM.kind
    if members.has_job_without_pod:
        yield _JOB.kind
    if members.has_pod_without_container:
        yield _POD.kind


async def answer_look(look: Look[Found], kube: Kube) -> Found:
    """Answer a look's queries, and return what it finds.

    Raises:
        ForbiddenError: if the operator lacks a permission that the look needs.
        UnknownKindError: likewise, if the API server does not know a kind.

    """
    try:
        batch = next(look)
        while True:
            try:
                answers = await asyncio.gather(*(_answer(kube, query) for query in batch))
            except (ForbiddenError, UnknownKindError) as error:
                batch = _refuse(look, error)
            else:
                batch = look.send(answers)
    except StopIteration as end:
        found: Found = end.value
        return found


def _refuse(look: Look[Found], error: ForbiddenError | UnknownKindError) -> Sequence[Query]:
    """Return the next queries of a look after one was refused."""
    try:
        return look.throw(UnansweredError(error.reason, is_forbidden=isinstance(error, ForbiddenError)))
    except UnansweredError as unanswered:
        raise type(error)(error.asked, unanswered.reason) from error


async def _answer(kube: Kube, query: Query) -> Sequence[Object]:
    kind, namespace = Kind(api_version=query.api_version, kind=query.kind), query.namespace or None
    if query.name:
        found = await kube.get(kind, query.name, namespace)
        return () if found is None else (found,)
    return await kube.list(kind, namespace=namespace, labels=query.labels or None, fields=query.fields or None)
