"""What is there of a run outside its namespace: in Rook's, in the operator's, and where there are no namespaces.

Only runs that measure a Ceph cluster have anything there, and not before they are admitted, which is said first.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from plimsoll.api.errors import SpecError
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import Child, JobFact, Object, PodFact, child_of, job_fact, pod_fact, warnings_on
from plimsoll.lifecycle.ownership import is_of_run, is_of_run_elsewhere
from plimsoll.lifecycle.render.teardown import TeardownRecord, read_record
from plimsoll.lifecycle.rook.facts import RookFact, rook_fact
from plimsoll.lifecycle.rook.feasibility import operator_namespace
from plimsoll.lifecycle.rook.render import BLOCK_POOL, CEPH_CLIENT
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.settings import Settings
from plimsoll.plan.document import RunIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Where to look for it.

    Attributes:
        rook_namespace: where the CephCluster is; empty without Rook. Likewise `rook_cluster`.
        by_claims: the volumes are claims of a StorageClass of the run's own.

    """

    operator_namespace: str
    rook_namespace: str = ""
    rook_cluster: str = ""
    by_claims: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """It, and what Rook says of its cluster.

    Attributes:
        kinds_problem: why Rook's objects cannot be looked at, with the remedy: its kinds are unknown, or the operator
            may not see them; empty if they can be.
        cluster: the CephCluster; None if there is none, and without Rook.
        monitors: field `data` of Rook's ConfigMap that has their addresses; empty without Rook.
        rook_operator: namespace of Rook's operator; known only while a StorageClass is to be made.
        pools: the run's CephBlockPools.
        users: the run's CephClients.
        all_users: every CephClient of Rook's namespace, whoever made it.
        storage_class: the run's own; None if there is none.
        volumes: PersistentVolumes of that StorageClass that are to go with their claims: names, and whose claims have
            them yet.
        claimed_by_others: those of them that are bound to claims which are not the run's: anybody may claim one of a
            StorageClass.
        record: ConfigMap with what the run may leave behind in Ceph; None if it is not written yet.
        recorded: what stands in it; None if it cannot be read.
        keyring: the Secret with which that can be taken away; None if it is not there yet.
        network_policy: what those may talk to that take it away; None if it is not there yet.
        jobs: those that take it away, and their pods.
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
    claimed_by_others: tuple[str, ...] = ()
    record: Child | None = None
    recorded: TeardownRecord | None = None
    keyring: Child | None = None
    network_policy: Child | None = None
    jobs: tuple[JobFact, ...] = ()
    pods: tuple[PodFact, ...] = ()
    warnings: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing of the run is there."""
        return not (self.kept or self.jobs or self.pods or self.network_policy)

    @property
    def kept(self) -> tuple[str, ...]:
        """Return the names of what holds storage: pools, users, StorageClass, and what it is taken away with."""
        rook = [fact.child for fact in (*self.pools, *self.users)]
        held = [child for child in (self.storage_class, self.keyring, self.record) if child is not None]
        return tuple(f"{child.kind} {child.name}" for child in (*rook, *held))


def scope_of(run: Run, settings: Settings) -> Scope | None:
    """Return where to look for what a run has outside its namespace; None if there can be nothing.

    Read from the specification as it is written: what was begun is taken away also by a version that understands less.
    """
    storage = run.written.get("storage") or {}
    if run.start_time is None or not (storage.get("rook") or storage.get("ceph")):
        return None
    rook, volume = storage.get("rook") or {}, storage.get("volume") or {}
    cluster = rook.get("cluster") or {}
    return Scope(
        operator_namespace=settings.namespace,
        rook_namespace=str(cluster.get("namespace", "")),
        rook_cluster=str(cluster.get("name", "")),
        by_claims=bool(rook and volume) and volume.get("access", "PVC") == "PVC",
    )


def elsewhere_of(
    objects: Iterable[Object],
    *,
    run: RunIdentity,
    cluster: Object | None = None,
    monitors: str = "",
    events: Sequence[Object] = (),
    kinds_problem: str = "",
) -> Elsewhere:
    """Read the facts out of objects of any kind and whoever's; those of strangers are left out."""
    everything = list(objects)
    own = [obj for obj in everything if is_of_run_elsewhere(obj, run.name, run.uid)]
    pods = [obj for obj in everything if obj["kind"] == "Pod" and is_of_run(obj, run.uid)]
    jobs = [obj for obj in own if obj["kind"] == "Job"]
    warnings = warnings_on(own, events)
    storage_class = _child(own, "StorageClass", naming.storage_class(run.name, run.uid))
    volumes = [obj for obj in everything if storage_class and _goes(obj, storage_class.name)]
    records = [obj for obj in own if obj["kind"] == "ConfigMap"]
    deployments = [obj for obj in everything if obj["kind"] == "Deployment"]
    return Elsewhere(
        kinds_problem=kinds_problem,
        cluster=cluster,
        monitors=monitors,
        rook_operator=operator_namespace(deployments, "") if deployments else "",
        pools=tuple(rook_fact(obj, warnings) for obj in own if obj["kind"] == BLOCK_POOL),
        users=tuple(rook_fact(obj, warnings) for obj in own if obj["kind"] == CEPH_CLIENT),
        all_users=tuple(obj for obj in everything if obj["kind"] == CEPH_CLIENT),
        storage_class=storage_class,
        volumes=tuple(map(_claimed, volumes)),
        claimed_by_others=tuple(_claimed(obj) for obj in volumes if _is_claimed_by_others(obj, run)),
        record=next(map(child_of, records), None),
        recorded=_recorded(records, run),
        keyring=_child(own, "Secret", naming.teardown(run.uid)),
        network_policy=_child(own, "NetworkPolicy", naming.teardown(run.uid)),
        jobs=tuple(map(job_fact, jobs)),
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


def _goes(obj: Object, storage_class: str) -> bool:
    """Tell whether an object is a PersistentVolume of that StorageClass, and goes when nobody claims it any more."""
    spec = obj.get("spec", {})
    of_class = obj["kind"] == "PersistentVolume" and spec.get("storageClassName") == storage_class
    return bool(of_class and spec.get("persistentVolumeReclaimPolicy") != "Retain")


def _is_claimed_by_others(volume: Object, run: RunIdentity) -> bool:
    """Tell whether a PersistentVolume is bound to a claim that is none of the run's clients', by its name."""
    claim = volume.get("spec", {}).get("claimRef") or {}
    if volume.get("status", {}).get("phase") != "Bound" or not claim:
        return False
    name = str(claim.get("name", ""))
    client = name.rpartition("-")[2]
    own = client.isdecimal() and name == naming.client_claim(run.name, int(client))
    return not (own and claim.get("namespace") == run.namespace)


def _claimed(volume: Object) -> str:
    """Return the name of a PersistentVolume, and who claims it; once its claim is gone it is not bound any more."""
    name, claim = str(volume["metadata"]["name"]), volume.get("spec", {}).get("claimRef") or {}
    bound = volume.get("status", {}).get("phase") == "Bound"
    return f"{name} (claimed by {claim.get('namespace')}/{claim.get('name')})" if bound and claim else name
