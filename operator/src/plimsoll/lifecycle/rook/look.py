"""The looks at a Rook cluster: before anything is created there, and at a run's objects there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plimsoll.api.storage import RookStorage
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import Object
from plimsoll.lifecycle.ownership import is_external_object_of
from plimsoll.lifecycle.rook.cluster import cluster_fact
from plimsoll.lifecycle.rook.facts import POOL_KINDS
from plimsoll.lifecycle.rook.feasibility import OSD_LABELS
from plimsoll.lifecycle.rook.file_system import FILE_SYSTEM
from plimsoll.lifecycle.rook.render import API_VERSION, BLOCK_POOL, CEPH_CLIENT, CEPH_CLUSTER
from plimsoll.lifecycle.rook.survey import RookPlatform
from plimsoll.lifecycle.storage.ceph.facts import ExternalObjects, external_objects_of
from plimsoll.lifecycle.storage.ceph.look import JOB, look_at_teardown, look_for_events
from plimsoll.lifecycle.storage.look import Look, Query, UnansweredError
from plimsoll.plan.document import RunIdentity

VOLUME = "PersistentVolume"
CLUSTER_SCOPED_EVENTS = "default"
"""Namespace of the events about objects without a namespace. Source: Kubernetes."""

MONITORS = "rook-ceph-mon-endpoints"
"""ConfigMap in Rook's namespace. Source: Rook 1.18."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Where a run on Rook has objects.

    Attributes:
        operator_namespace: of the Plimsoll operator.
        rook_namespace: of the CephCluster.
        by_claims: whether the volumes are PVCs of the run's own StorageClass.
        has_file_system: whether the run measures a file system. Other runs need no right to read CephFilesystems.

    """

    operator_namespace: str
    rook_namespace: str
    rook_cluster: str
    by_claims: bool = False
    has_file_system: bool = False


def look_at_rook(scope: Scope, run: RunIdentity, *, has_claims: bool, has_ended: bool = False) -> Look[ExternalObjects]:
    """Find a run's objects outside its namespace.

    `has_claims`: as long as the run has PVCs, the PersistentVolumes, which may be many, do not matter.
    `has_ended`: whether the run has ended or is being deleted.
    """
    teardown = yield from look_at_teardown(scope.operator_namespace, run.uid)
    own = {naming.LABEL_RUN_UID: run.uid}
    (classes,) = yield [Query(api_version="storage.k8s.io/v1", kind="StorageClass", labels=own)]
    here = [*teardown, *classes]
    try:
        in_rook, cluster, monitors = yield from _look_at_cluster(scope, own)
        if scope.by_claims and not classes:
            (osds,) = yield [_osds(scope.rook_namespace)]
            in_rook = [*in_rook, *osds]
    except UnansweredError as error:
        # Whatever permissions the operator lost there, it has to stop the run's load here.
        problem = _missing_permission(error, scope.rook_namespace) if error.is_forbidden else error.reason
        remedy = "" if error.is_forbidden else "; reinstall Rook's CRDs"
        return external_objects_of(here, run=run, kinds_problem=f"{problem}{remedy}")
    volumes: Sequence[Object] = ()
    # Somebody may have deleted the StorageClass. Without the users there are no volumes any more.
    lost_class = scope.by_claims and has_ended and any(_is_user(obj, run) for obj in in_rook)
    if (classes or lost_class) and not has_claims:
        volumes = yield from _look_for_volumes(naming.storage_class(run.name, run.uid))
    events = [
        *(yield from _look_for_volume_events(volumes)),
        *(yield from look_for_events(scope.rook_namespace, in_rook, (*POOL_KINDS, CEPH_CLIENT))),
        *(yield from look_for_events(scope.operator_namespace, teardown, (JOB,))),
    ]
    everything = [*here, *volumes, *in_rook]
    return external_objects_of(everything, run=run, cluster=cluster, monitors=monitors, events=events)


def survey_rook(rook: RookStorage) -> Look[RookPlatform]:
    """Inspect a Rook cluster before anything is created in it."""
    cluster = rook.cluster
    file_systems: Sequence[Object] = ()
    try:
        if rook.has_file_system:
            (file_systems,) = yield [_file_systems(cluster.namespace)]
        clusters, pools, osds = yield [
            _cluster(cluster.namespace, cluster.name),
            Query(api_version=API_VERSION, kind=BLOCK_POOL, namespace=cluster.namespace),
            _osds(cluster.namespace),
        ]
    except UnansweredError as error:
        if error.is_forbidden:
            raise UnansweredError(_missing_permission(error, cluster.namespace), is_forbidden=True) from error
        return RookPlatform(problem=error.reason)
    return RookPlatform(
        cluster=next(iter(clusters), None), pools=tuple(pools), file_systems=tuple(file_systems), osds=tuple(osds)
    )


def version_of_rook(namespace: str, name: str) -> Look[str]:
    """Find the version of Ceph of a CephCluster; empty if it is unknown, or while daemons have several."""
    try:
        (clusters,) = yield [_cluster(namespace, name)]
    except UnansweredError:
        return ""
    found = next((cluster_fact(obj) for obj in clusters), None)
    return found.version if found is not None and len(found.versions) == 1 else ""


def _is_user(obj: Object, run: RunIdentity) -> bool:
    return obj["kind"] == CEPH_CLIENT and is_external_object_of(obj, run.name, run.uid)


def _look_for_volumes(storage_class: str) -> Look[Sequence[Object]]:
    """Find the PersistentVolumes of a StorageClass: the API server selects none by it."""
    (everything,) = yield [Query(api_version="v1", kind=VOLUME)]
    return [obj for obj in everything if obj.get("spec", {}).get("storageClassName") == storage_class]


def _look_for_volume_events(volumes: Sequence[Object]) -> Look[Sequence[Object]]:
    """Find why PersistentVolumes are not deleted. An operator that watches some namespaces only may not list them."""
    try:
        return (yield from look_for_events(CLUSTER_SCOPED_EVENTS, volumes, (VOLUME,)))
    except UnansweredError:
        return ()


def _look_at_cluster(scope: Scope, own: Mapping[str, str]) -> Look[tuple[Sequence[Object], Object | None, str]]:
    namespace = scope.rook_namespace
    pools, users, clusters, monitors = yield [
        Query(api_version=API_VERSION, kind=BLOCK_POOL, namespace=namespace, labels=own),
        # All of them, because the Secrets of other CephClients are taken.
        Query(api_version=API_VERSION, kind=CEPH_CLIENT, namespace=namespace),
        _cluster(namespace, scope.rook_cluster),
        Query(api_version="v1", kind="ConfigMap", namespace=namespace, name=MONITORS),
    ]
    file_systems: Sequence[Object] = ()
    if scope.has_file_system:
        (file_systems,) = yield [_file_systems(namespace, own)]
    endpoints = next((str(found.get("data", {}).get("data", "")) for found in monitors), "")
    return [*pools, *file_systems, *users], next(iter(clusters), None), endpoints


def _cluster(namespace: str, name: str) -> Query:
    return Query(api_version=API_VERSION, kind=CEPH_CLUSTER, namespace=namespace, name=name)


def _file_systems(namespace: str, labels: Mapping[str, str] | None = None) -> Query:
    return Query(api_version=API_VERSION, kind=FILE_SYSTEM, namespace=namespace, labels=labels or {})


def _osds(namespace: str) -> Query:
    return Query(api_version="apps/v1", kind="Deployment", namespace=namespace, labels=OSD_LABELS)


def _missing_permission(error: UnansweredError, namespace: str) -> str:
    """Return the refusal, and which permission to grant."""
    return (
        f"{error.reason}; bind the Role of manifests/rook to the operator's ServiceAccount in namespace {namespace}, "
        "or name the cluster in the chart's value rook.clusters"
    )
