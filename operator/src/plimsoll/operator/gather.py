"""Observes a run: everything with its UID, and all else that decisions depend on.

A run may have thousands of Jobs, pods and PVCs, and large results: each look reads only those that have changed, and of
them only the parts in `plimsoll.lifecycle.shapes`. What only the operator changes is read once it has acted. Jobs come
first: conclusions from a Job that is complete or gone hold for pods and results that are read later.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Generic, TypeVar

from plimsoll.api.names import API_VERSION, RESULT_KIND, RunPhase
from plimsoll.api.storage import NamespacedName
from plimsoll.kube import port
from plimsoll.kube.port import Kind, Kube, Object, Shape, Version
from plimsoll.lifecycle import children, naming, shapes
from plimsoll.lifecycle.children import Child, Members, Warnings, child_of, is_of_run
from plimsoll.lifecycle.observed import Observed, observe
from plimsoll.lifecycle.run import Platform, platform_of
from plimsoll.lifecycle.storage.seam import Found, Look, Query, Rehearsal, UnansweredError
from plimsoll.plan.document import RunIdentity
from plimsoll.protocol.helpers import BURNER_CERTIFICATE

RESULT = Kind(api_version=API_VERSION, kind=RESULT_KIND)

RESULTS_PAGE_SIZE = 8  # results in memory at once, each at most 256 KiB as JSON and five times that as objects
FEW = 8  # up to this many changed objects are read one by one; if more have changed, all objects are listed
REREAD_SECONDS = 120.0
"""After which objects that are not watched are read again, although the operator did nothing: somebody else may have
deleted one."""
LIST_SECONDS = 30.0  # after which Jobs, pods and PVCs are listed again: a watch may have missed a change
_CONFIG_MAP = Kind(api_version="v1", kind="ConfigMap")
_STORAGE_CLASS = Kind(api_version="storage.k8s.io/v1", kind="StorageClass")
_EVENT = Kind(api_version="v1", kind="Event")

_EVENTS_PAGE_SIZE = 500
_EVENT_PAGES = 20  # so many events are searched for warnings: any user of the namespace can create more of them
_PAGE_SIZE = 100  # Jobs, pods or PVCs in memory at once, of some 8 KiB each
_UNDER_WAY = {RunPhase.PREPARING, RunPhase.SETTLING, RunPhase.MEASURING}
_WORTHWHILE = 100  # Jobs, pods or PVCs from which on a look reads metadata, and then only the changed objects
T = TypeVar("T")


@dataclass(slots=True)
class Digests(Generic[T]):
    """A digest of each object of a kind, kept until its version changes; fewer than `worthwhile` are listed at once."""

    _kind: Kind
    _digest: Callable[[Object], T]
    _: KW_ONLY
    page_size: int
    worthwhile: int = 0
    shape: Shape | None = None
    _by_uid: dict[str, tuple[str, T]] = field(default_factory=dict, init=False)

    def __iter__(self) -> Iterator[T]:
        return (digest for _, digest in self._by_uid.values())

    def forget(self) -> None:
        """Drop all digests, so that the next look reads every object."""
        self._by_uid = {}

    async def look(self, kube: Kube, *, namespace: str, labels: Mapping[str, str]) -> Sequence[T]:
        if 0 < len(self._by_uid) < self.worthwhile:
            objects = await kube.list(self._kind, namespace=namespace, labels=labels, shape=self.shape)
            self.forget()
            for obj in objects:
                self._keep(obj)
        else:
            versions = await kube.versions(self._kind, namespace=namespace, labels=labels)
            await self._update(versions, kube, namespace=namespace, labels=labels)
        return tuple(self)

    async def follow(self, kube: Kube, *, namespace: str | None = None) -> None:
        async with aclosing(kube.changes(self._kind, namespace=namespace)) as changes:
            async for change in changes:
                match change:
                    case port.Listed(versions):
                        await self._update(versions, kube, namespace=namespace, labels={})
                    case port.Changed(version, is_gone=False):
                        await self._read(version, kube, {})
                    case port.Changed(version):
                        self._by_uid.pop(version.uid, None)

    async def _update(
        self, versions: Sequence[Version], kube: Kube, *, namespace: str | None, labels: Mapping[str, str]
    ) -> None:
        """Keep digests of the existing objects only; read the changed ones, or all if many have changed."""
        places = {version.uid: place for place, version in enumerate(versions)}
        self._by_uid = {uid: entry for uid, entry in self._by_uid.items() if uid in places}
        changed = [version for version in versions if not self._has(version.uid, version.version)]
        if not changed:
            return
        if len(changed) > FEW:
            read: set[str] = set()
            pages = kube.pages(self._kind, size=self.page_size, namespace=namespace, labels=labels, shape=self.shape)
            async for page in pages:
                for obj in page:
                    self._keep(obj)
                    read.add(obj["metadata"]["uid"])
                    # Let other tasks run: a large object takes milliseconds.
                    await asyncio.sleep(0)
            changed = [version for version in changed if version.uid not in read]
        for version in changed:
            await self._read(version, kube, labels)
        # In list order, in which messages name objects.
        self._by_uid = dict(sorted(self._by_uid.items(), key=lambda entry: places.get(entry[0], len(places))))

    async def _read(self, version: Version, kube: Kube, labels: Mapping[str, str]) -> None:
        """Read one object by its name; keep a successor with the same name if it has the labels."""
        if self._has(version.uid, version.version):
            return
        obj = await kube.get(self._kind, version.name, version.namespace, shape=self.shape)
        self._by_uid.pop(version.uid, None)
        if obj is not None and labels.items() <= (obj["metadata"].get("labels") or {}).items():
            self._keep(obj)

    def _has(self, uid: str, version: str) -> bool:
        return uid in self._by_uid and self._by_uid[uid][0] == version

    def _keep(self, obj: Object) -> None:
        uid, version = obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]
        if not self._has(uid, version):
            self._by_uid[uid] = version, self._digest(obj)


@dataclass(slots=True)
class FixedObjects:
    """The objects of these kinds and names that only the operator changes, as the last look that read them."""

    _names: Mapping[Kind, Sequence[str]]
    _run: RunIdentity
    _now: Callable[[], datetime]
    _children: tuple[Child, ...] = ()
    _read_at: datetime | None = None

    def forget(self) -> None:
        self._read_at = None

    async def look(self, kube: Kube) -> Sequence[Child]:
        now = self._now()
        is_stale = self._read_at is None or abs(now - self._read_at) >= timedelta(seconds=REREAD_SECONDS)
        if is_stale or any(child.deleting for child in self._children):
            self.forget()
            get = partial(kube.get, namespace=self._run.namespace, shape=shapes.Identity)
            objects = await asyncio.gather(*(get(kind, name) for kind, names in self._names.items() for name in names))
            self._children = tuple(child_of(obj) for obj in objects if obj and is_of_run(obj, self._run.uid))
            self._read_at = now
        return self._children


class RunDigests:
    """Digests of a run's objects, so that the next look reads only what has changed."""

    def __init__(self, run: RunIdentity, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        def members(kind: Kind, fact: Callable[[str, Object], T], shape: Shape) -> Digests[T]:
            return Digests(kind, partial(fact, run.uid), page_size=_PAGE_SIZE, worthwhile=_WORTHWHILE, shape=shape)

        self.jobs = members(Kind(api_version="batch/v1", kind="Job"), children.job_fact, shapes.Job)
        self.pods = members(Kind(api_version="v1", kind="Pod"), children.pod_fact, shapes.Pod)
        self.claims = members(Kind(api_version="v1", kind="PersistentVolumeClaim"), children.claim_fact, shapes.Claim)
        self.results = Digests(RESULT, partial(children.result_fact, run.uid), page_size=RESULTS_PAGE_SIZE)
        account = naming.conductor_account(run.name)
        policies = [naming.network_policy(run.name, component) for component in (naming.CLIENT, naming.CONDUCTOR)]
        fixed: Mapping[Kind, Sequence[str]] = {
            _CONFIG_MAP: [naming.ceph_config_map(run.name)],
            Kind(api_version="v1", kind="ServiceAccount"): [account],
            Kind(api_version="v1", kind="Service"): [naming.conductor(run.name)],
            Kind(api_version="networking.k8s.io/v1", kind="NetworkPolicy"): policies,
            Kind(api_version="rbac.authorization.k8s.io/v1", kind="Role"): [account],
            Kind(api_version="rbac.authorization.k8s.io/v1", kind="RoleBinding"): [account],
        }
        self.fixed = FixedObjects(fixed, run, now)
        self.external: object | None = None  # what the last look outside the run's namespace found
        self.now = now
        self.listed_at: datetime | None = None  # when Jobs, pods and PVCs were last listed; None if they changed since

    @property
    def lasts_seconds(self) -> float:
        """For how long Jobs, pods, PVCs and external objects are as the last look found them; 0 if they changed."""
        age = LIST_SECONDS if self.listed_at is None else abs((self.now() - self.listed_at).total_seconds())
        return max(0.0, LIST_SECONDS - age)

    def forget_members(self) -> None:
        """Drop all but results, which decide no deletion: a restored API server may have reused versions."""
        self.forget_fixed()
        for members in (self.jobs, self.pods, self.claims):
            members.forget()

    def forget_fixed(self) -> None:
        """Have the next look read everything, also what only the operator changes."""
        self.listed_at = None
        self.fixed.forget()


async def gather(
    kube: Kube,
    run: RunIdentity,
    *,
    look: Callable[[Observed], Look[object] | None] | None = None,
    digests: RunDigests | None = None,
    for_removal: bool = False,
    after_event: bool = False,
) -> Observed:
    """Return what is observed of a run, except for the queue, which is read at the moment of the decision.

    `look`: returns the look outside the run's namespace, given the observation in it. `digests`: from the last look;
    without them everything is read. `for_removal`: observe only what has to be removed, so that nothing else, such as
    results whose CRD is gone, blocks the removal. `after_event`: a watch has shown a change. If none was of a Job, pod
    or PVC since the last look, and the run still measures, only the conductor's state and the results are read.
    """
    digests = digests or RunDigests(run)
    if for_removal:
        digests.forget_fixed()
    try:
        if after_event and digests.lasts_seconds:
            seen = await _gather(kube, run, digests, for_removal=False, lists=False)
            if seen.all_registered and seen.state and seen.state.phase in _UNDER_WAY:
                return replace(seen, external=digests.external)
        seen = await _gather(kube, run, digests, for_removal=for_removal)
    except BaseException as error:
        digests.forget_members()
        if isinstance(error, ExceptionGroup):
            raise error.exceptions[0] from None
        raise
    digests.external = None
    if look is not None and (outside := look(seen)) is not None:
        try:
            digests.external = await answer_look(outside, kube)
        except BaseException:
            digests.listed_at = None
            raise
    return replace(seen, external=digests.external)


async def _gather(
    kube: Kube, run: RunIdentity, digests: RunDigests, *, for_removal: bool, lists: bool = True
) -> Observed:
    of_run, namespace = {naming.LABEL_RUN_UID: run.uid}, run.namespace
    # By name: results of an earlier run with this name conflict with this run's.
    by_name = {naming.LABEL_RUN: naming.label_value(run.name)}
    # If a request fails, the others are cancelled, so that they do not change the digests.
    async with asyncio.TaskGroup() as group:
        if lists:
            digests.listed_at = digests.now()
            await digests.jobs.look(kube, namespace=namespace, labels=of_run)
            group.create_task(digests.pods.look(kube, namespace=namespace, labels=of_run))
            group.create_task(digests.claims.look(kube, namespace=namespace, labels=of_run))
        # By name: another owner's ConfigMap may have the plan's.
        maps = [
            group.create_task(kube.get(_CONFIG_MAP, name, namespace, shape=shapes.ConfigMap))
            for name in (naming.plan_config_map(run.name), naming.state_config_map(run.name))
        ]
        fixed = group.create_task(digests.fixed.look(kube))
        if not for_removal:
            results = group.create_task(digests.results.look(kube, namespace=namespace, labels=by_name))
    members = Members(jobs=[*digests.jobs], pods=[*digests.pods], claims=[*digests.claims])
    config_maps = [config_map for task in maps if (config_map := task.result()) is not None]
    if for_removal:
        return observe(config_maps, run=run, members=members, fixed=fixed.result())
    uids = members.uids

    async def warnings_of(kind: str) -> Warnings:
        found: Warnings = {}
        fields, left = {"involvedObject.kind": kind}, _EVENT_PAGES
        pages = kube.pages(_EVENT, size=_EVENTS_PAGE_SIZE, namespace=namespace, fields=fields, shape=shapes.Event)
        async for page in pages:
            found, left = children.newest_warnings(uids, page, found), left - 1
            if not left:
                break
        return found

    warnings = await asyncio.gather(*map(warnings_of, members.waiting_kinds))
    return observe(
        config_maps,
        run=run,
        members=members,
        fixed=fixed.result(),
        results=results.result(),
        warnings={uid: message for found in warnings for uid, (*_, message) in found.items()},
    )


async def gather_platform(
    kube: Kube, namespace: str, survey: Look[object] | None = None, burner: NamespacedName | None = None
) -> Platform:
    """Return the facts that freezing a plan needs; `burner`: the Service of the helper with kube-burner, if used."""
    version, storage_classes = await asyncio.gather(kube.version(), kube.list(_STORAGE_CLASS))
    findings = await answer_look(survey, kube) if survey is not None else None
    namespaces: Sequence[Object] = ()
    # If the operator may not read the namespace, its restrictions show later.
    with suppress(port.ForbiddenError):
        namespaces = await kube.list(Kind(api_version="v1", kind="Namespace"), fields={"metadata.name": namespace})
    published = await kube.get(_CONFIG_MAP, BURNER_CERTIFICATE, burner.namespace) if burner is not None else None
    return platform_of(version, storage_classes, findings, next(iter(namespaces), None), published)


async def answer_look(look: Look[Found], kube: Kube) -> Found:
    """Return what a look finds. ForbiddenError, UnknownKindError: it cannot do without one of its queries."""

    async def answer(query: Query | Rehearsal) -> Sequence[Object]:
        if isinstance(query, Rehearsal):
            try:
                await kube.create(query.obj, dry_run=True)
            except (port.InvalidError, port.NotFoundError) as error:
                return ({"message": error.reason},)
            return ()
        kind, namespace = Kind(api_version=query.api_version, kind=query.kind), query.namespace or None
        if query.name:
            obj = await kube.get(kind, query.name, namespace)
            return () if obj is None else (obj,)
        labels, fields = query.labels or None, query.fields or None
        return await kube.list(kind, namespace=namespace, labels=labels, fields=fields, keep=query.keep)

    try:
        batch = next(look)
        while True:
            try:
                answers = await asyncio.gather(*map(answer, batch))
            except (port.ForbiddenError, port.UnknownKindError) as error:
                is_forbidden = isinstance(error, port.ForbiddenError)
                try:
                    batch = look.throw(UnansweredError(error.reason, is_forbidden=is_forbidden))
                except UnansweredError as unanswered:
                    raise type(error)(error.asked, unanswered.reason) from error
            else:
                batch = look.send(answers)
    except StopIteration as end:
        result: Found = end.value
        return result
