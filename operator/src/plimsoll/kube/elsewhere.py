"""Observing what a run has outside its namespace. Asked for only of runs that measure a Ceph cluster."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from plimsoll.api.storage import NamespacedName
from plimsoll.kube.errors import ForbiddenError, UnknownKindError
from plimsoll.kube.port import Kind, Kube, Object
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.elsewhere import Elsewhere, Scope, elsewhere_of
from plimsoll.lifecycle.platform import RookPlatform
from plimsoll.lifecycle.rook.feasibility import OSD_LABELS
from plimsoll.lifecycle.rook.render import API_VERSION, BLOCK_POOL, CEPH_CLIENT, CEPH_CLUSTER
from plimsoll.plan.document import RunIdentity

CLUSTER = Kind(api_version=API_VERSION, kind=CEPH_CLUSTER)
POOL = Kind(api_version=API_VERSION, kind=BLOCK_POOL)
CLIENT = Kind(api_version=API_VERSION, kind=CEPH_CLIENT)
MONITORS = "rook-ceph-mon-endpoints"
"""ConfigMap in Rook's namespace. Source: Rook 1.18."""

_CONFIG_MAP = Kind(api_version="v1", kind="ConfigMap")
_SECRET = Kind(api_version="v1", kind="Secret")
_JOB = Kind(api_version="batch/v1", kind="Job")
_POD = Kind(api_version="v1", kind="Pod")
DEPLOYMENT = Kind(api_version="apps/v1", kind="Deployment")
_POLICY = Kind(api_version="networking.k8s.io/v1", kind="NetworkPolicy")
_EVENT = Kind(api_version="v1", kind="Event")
_STORAGE_CLASS = Kind(api_version="storage.k8s.io/v1", kind="StorageClass")
_VOLUME = Kind(api_version="v1", kind="PersistentVolume")


async def gather_elsewhere(kube: Kube, scope: Scope, run: RunIdentity, *, has_claims: bool) -> Elsewhere:
    """Return what is there of a run outside its namespace.

    `has_claims`: as long as it has any, nobody waits for its PersistentVolumes, of which a cluster may have many.
    """
    near = await _in_operators_namespace(kube, scope.operator_namespace, run.uid)
    if not scope.rook_namespace:
        return elsewhere_of(near, run=run, events=await _events(kube, scope.operator_namespace, _waiting(near)))
    own = {naming.LABEL_RUN_UID: run.uid}
    classes = await kube.list(_STORAGE_CLASS, labels=own)
    volumes = await kube.list(_VOLUME) if classes and not has_claims else ()
    try:
        far, cluster, monitors = await _in_rooks_namespace(kube, scope, own)
        if scope.by_claims and not classes:
            far = [*far, *await kube.list(DEPLOYMENT, namespace=scope.rook_namespace, labels=OSD_LABELS)]
    except UnknownKindError as error:
        problem = f"{error.reason}; install Rook's CRDs again"
        return elsewhere_of([*near, *classes, *volumes], run=run, kinds_problem=problem)
    except ForbiddenError as error:
        # Whatever becomes of the operator's rights there, the run's load here is to end in time.
        problem = forbidden_in_rook(error, scope.rook_namespace).reason
        return elsewhere_of([*near, *classes, *volumes], run=run, kinds_problem=problem)
    events = await _events(kube, scope.rook_namespace, _waiting(far))
    events = [*events, *await _events(kube, scope.operator_namespace, _waiting(near))]
    return elsewhere_of([*near, *far, *classes, *volumes], run=run, cluster=cluster, monitors=monitors, events=events)


async def gather_rook(kube: Kube, cluster: NamespacedName) -> RookPlatform:
    """Return what is there of a Rook cluster before anything is made in it."""
    try:
        found, pools, osds = await asyncio.gather(
            kube.get(CLUSTER, cluster.name, cluster.namespace),
            kube.list(POOL, namespace=cluster.namespace),
            kube.list(DEPLOYMENT, namespace=cluster.namespace, labels=OSD_LABELS),
        )
    except UnknownKindError as error:
        return RookPlatform(problem=error.reason)
    except ForbiddenError as error:
        raise forbidden_in_rook(error, cluster.namespace) from error
    return RookPlatform(cluster=found, pools=tuple(pools), osds=tuple(osds))


def forbidden_in_rook(error: ForbiddenError, namespace: str) -> ForbiddenError:
    """Return the same, and what is missing."""
    words = (
        f"{error.reason}; bind the Role of manifests/rook to the operator's ServiceAccount in namespace {namespace}, "
        "or name the cluster in the chart's value rook.clusters"
    )
    return ForbiddenError(error.asked, words)


async def _in_operators_namespace(kube: Kube, namespace: str, uid: str) -> Sequence[Object]:
    """Return the record, the keyring, the Jobs that use them, with their pods, and what these may talk to."""
    own, name = {naming.LABEL_RUN_UID: uid}, naming.teardown(uid)
    # Jobs come first: a pod that is read after its Job is at least as new.
    jobs = await kube.list(_JOB, namespace=namespace, labels=own)
    pods, record, keyring, policy = await asyncio.gather(
        kube.list(_POD, namespace=namespace, labels=own),
        kube.get(_CONFIG_MAP, name, namespace),
        kube.get(_SECRET, name, namespace),
        kube.get(_POLICY, name, namespace),
    )
    return [*jobs, *pods, *(obj for obj in (record, keyring, policy) if obj is not None)]


async def _in_rooks_namespace(
    kube: Kube, scope: Scope, own: Mapping[str, str]
) -> tuple[Sequence[Object], Object | None, str]:
    """Return pools and users, the cluster, and where its monitors are."""
    pools, users, cluster, monitors = await asyncio.gather(
        kube.list(POOL, namespace=scope.rook_namespace, labels=own),
        # All of them: the Secrets that others have are taken.
        kube.list(CLIENT, namespace=scope.rook_namespace),
        kube.get(CLUSTER, scope.rook_cluster, scope.rook_namespace),
        kube.get(_CONFIG_MAP, MONITORS, scope.rook_namespace),
    )
    return [*pools, *users], cluster, str((monitors or {}).get("data", {}).get("data", ""))


def _waiting(objects: Sequence[Object]) -> Iterator[str]:
    """Yield the kinds of which an object may wait for something that its events tell."""
    for kind in (BLOCK_POOL, CEPH_CLIENT, _JOB.kind):
        if any(obj["kind"] == kind and not _is_at_rest(obj) for obj in objects):
            yield kind


def _is_at_rest(obj: Object) -> bool:
    ready = obj.get("status", {}).get("phase") == "Ready"
    return ready and "deletionTimestamp" not in obj["metadata"]


async def _events(kube: Kube, namespace: str, kinds: Iterator[str]) -> Sequence[Object]:
    lists = [kube.list(_EVENT, namespace=namespace, fields={"involvedObject.kind": kind}) for kind in kinds]
    return [*chain.from_iterable(await asyncio.gather(*lists))]
