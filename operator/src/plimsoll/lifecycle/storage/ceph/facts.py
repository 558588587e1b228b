"""A run's objects on Ceph outside its namespace: in Rook's, in the operator's, and cluster-scoped ones.

There are none before the run is admitted, which its status records first.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from plimsoll.api.errors import SpecError
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import Child, JobFact, Object, PodFact, child_of, job_fact, pod_fact, warnings_on
from plimsoll.lifecycle.ownership import is_external_object_of, is_of_run
from plimsoll.lifecycle.render.teardown import TeardownRecord, awaits_purge, read_record
from plimsoll.lifecycle.rook.cluster import ClusterFact, cluster_fact
from plimsoll.lifecycle.rook.facts import POOL_KINDS, RookFact, rook_fact
from plimsoll.lifecycle.rook.feasibility import operator_namespace
from plimsoll.lifecycle.rook.render import CEPH_CLIENT
from plimsoll.plan.document import RunIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalObjects:
    """The objects, and what Rook reports about its cluster.

    Attributes:
        kinds_problem: why Rook's objects cannot be read, with the remedy: unknown kinds, or missing permissions; empty
            if they can be read.
        cluster: the CephCluster; None if it does not exist, or without Rook.
        monitors: field `data` of Rook's ConfigMap with their addresses; empty without Rook.
        rook_operator: namespace of Rook's operator; known only while a StorageClass has to be created.
        pools: the run's CephBlockPools, or its CephFilesystem.
        users: the run's CephClients.
        all_users: every CephClient in Rook's namespace.
        storage_class: the run's own; None if there is none.
        volumes: PersistentVolumes of a StorageClass of that name, even if it is gone, that are deleted with their PVCs:
            names, and which PVC each is bound to.
        volume_warning: the newest warning about one of them; empty if there is none.
        claimed_by_others: those of them that are bound to PVCs of others: any user can create one for a StorageClass.
        record: ConfigMap with what the run may leave in Ceph; None if it does not exist.
        recorded: its content; None if it cannot be read.
        keyring: Secret of the teardown Job; None if it does not exist.
        network_policy: of the teardown Job; None if it does not exist.
        jobs: teardown Jobs.
        purge_awaited: whether they wait until Ceph has purged the volumes of the run's own file system, as those of
            earlier versions do not.
        pods: of these Jobs.
        warnings: UID of such a Job -> the newest warning about it.

    """

    kinds_problem: str = ""
    cluster: Object | None = None
    monitors: str = ""
    rook_operator: str = ""
    pools: tuple[RookFact, ...] = ()
    users: tuple[RookFact, ...] = ()
    all_users: tuple[Object, ...] = ()
    storage_class: Child | None = None
    volumes: tuple[str, ...] = ()
    volume_warning: str = ""
    claimed_by_others: tuple[str, ...] = ()
    record: Child | None = None
    recorded: TeardownRecord | None = None
    keyring: Child | None = None
    network_policy: Child | None = None
    jobs: tuple[JobFact, ...] = ()
    purge_awaited: bool = True
    pods: tuple[PodFact, ...] = ()
    warnings: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether the run has nothing there."""
        return not (self.kept or self.jobs or self.pods or self.network_policy)

    @property
    def cluster_fact(self) -> ClusterFact | None:
        """Return the facts about the CephCluster; None if it does not exist, or without Rook."""
        return None if self.cluster is None else cluster_fact(self.cluster)

    @property
    def kept(self) -> tuple[str, ...]:
        """Return the names of pools, users, StorageClass, and what their removal needs."""
        rook = [fact.child for fact in (*self.pools, *self.users)]
        held = [child for child in (self.storage_class, self.keyring, self.record) if child is not None]
        return tuple(f"{child.kind} {child.name}" for child in (*rook, *held))


def external_objects_of(
    objects: Iterable[Object],
    *,
    run: RunIdentity,
    cluster: Object | None = None,
    monitors: str = "",
    events: Sequence[Object] = (),
    kinds_problem: str = "",
) -> ExternalObjects:
    """Return the facts about the run's objects among objects of any kind and owner."""
    everything = list(objects)
    own = [obj for obj in everything if is_external_object_of(obj, run.name, run.uid)]
    pods = [obj for obj in everything if obj["kind"] == "Pod" and is_of_run(obj, run.uid)]
    jobs = [obj for obj in own if obj["kind"] == "Job"]
    warnings = warnings_on(own, events)
    storage_class = naming.storage_class(run.name, run.uid)
    volumes = [obj for obj in everything if _is_deleted_with_claim(obj, storage_class)]
    records = [obj for obj in own if obj["kind"] == "ConfigMap"]
    deployments = [obj for obj in everything if obj["kind"] == "Deployment"]
    return ExternalObjects(
        kinds_problem=kinds_problem,
        cluster=cluster,
        monitors=monitors,
        rook_operator=operator_namespace(deployments, "") if deployments else "",
        pools=tuple(rook_fact(obj, warnings) for obj in own if obj["kind"] in POOL_KINDS),
        users=tuple(rook_fact(obj, warnings) for obj in own if obj["kind"] == CEPH_CLIENT),
        all_users=tuple(obj for obj in everything if obj["kind"] == CEPH_CLIENT),
        storage_class=_child(own, "StorageClass", storage_class),
        volumes=tuple(map(_named, volumes)),
        volume_warning=next(iter(warnings_on(volumes, events).values()), ""),
        claimed_by_others=tuple(_named(obj) for obj in volumes if _is_claimed_by_others(obj, run)),
        record=next(map(child_of, records), None),
        recorded=_recorded(records, run),
        keyring=_child(own, "Secret", naming.teardown(run.uid)),
        network_policy=_child(own, "NetworkPolicy", naming.teardown(run.uid)),
        jobs=tuple(map(job_fact, jobs)),
        purge_awaited=all(map(awaits_purge, jobs)),
        pods=tuple(map(pod_fact, pods)),
        warnings=warnings,
    )


def _recorded(records: Sequence[Object], run: RunIdentity) -> TeardownRecord | None:
    for config_map in records:
        with suppress(SpecError):
            record = read_record(config_map)
            if record.run == run:
                return record
    return None


def _child(own: Iterable[Object], kind: str, name: str) -> Child | None:
    found = (obj for obj in own if obj["kind"] == kind and obj["metadata"]["name"] == name)
    return next(map(child_of, found), None)


def _is_deleted_with_claim(obj: Object, storage_class: str) -> bool:
    """Whether an object is a PersistentVolume of that StorageClass and is deleted with its PVC."""
    spec = obj.get("spec", {})
    of_class = obj["kind"] == "PersistentVolume" and spec.get("storageClassName") == storage_class
    return bool(of_class and spec.get("persistentVolumeReclaimPolicy") != "Retain")


def _is_claimed_by_others(volume: Object, run: RunIdentity) -> bool:
    """Whether a PersistentVolume is bound to a PVC that is, by its name, not one of the run's."""
    claim = volume.get("spec", {}).get("claimRef") or {}
    if volume.get("status", {}).get("phase") != "Bound" or not claim:
        return False
    name = str(claim.get("name", ""))
    client = name.rpartition("-")[2]
    own = name == naming.shared_claim(run.name) or (
        client.isdecimal() and name == naming.client_claim(run.name, int(client))
    )
    return not (own and claim.get("namespace") == run.namespace)


def _named(volume: Object) -> str:
    """Return the name of a PersistentVolume, and the PVC it is bound to; one whose PVC is gone is no longer bound."""
    name, claim = str(volume["metadata"]["name"]), volume.get("spec", {}).get("claimRef") or {}
    bound = volume.get("status", {}).get("phase") == "Bound"
    return f"{name} (claimed by {claim.get('namespace')}/{claim.get('name')})" if bound and claim else name
