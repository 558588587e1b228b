"""Whether a run can use a Rook cluster, checked before anything is created; and how many placement groups it gets."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from plimsoll.api.reasons.reason import Reason
from plimsoll.api.run import Gates
from plimsoll.api.storage import FileSystem, Pool, RookStorage
from plimsoll.ceph.versions import age_problem, optimizations_problem
from plimsoll.lifecycle.ceph.rook_facts import READY, ClusterFact, cluster_fact, cluster_name, why_unusable
from plimsoll.lifecycle.ceph.rook_render import BLOCK_POOL, FILE_SYSTEM, metadata_size, pool_spec, pools_of
from plimsoll.lifecycle.children import Object, belongs_to_a_run, label
from plimsoll.lifecycle.decision import Fact, RunEnding
from plimsoll.lifecycle.naming import ALLOW_BENCHMARKS
from plimsoll.measure.text import are, first_few
from plimsoll.plan.document import CephTarget, Plan

REPLICAS_PER_OSD = 100  # of placement groups, as Ceph's documentation recommends; if a run sets no number
_MAX_PLACEMENT_GROUPS_LOG2 = 15
MAX_PLACEMENT_GROUPS = 1 << _MAX_PLACEMENT_GROUPS_LOG2  # the most that a run can request
DEFAULT_ROOT = "default"  # the root that Rook uses if neither the pool nor the CephCluster names one
_LOCATION = "topology-location-"
_ROOT = "root"  # the type of bucket that contains all others, over which nothing can be spread
_ROOT_OF_POOLS = "the CRUSH root of pools that name none (the CephCluster's spec.storage.config.crushRoot, or default)"

SETTING = "mon_max_pg_per_osd"
_DEFAULT_PER_OSD = 250  # Ceph's default (global.yaml.in). Only settings made through Rook are known.
_SECTIONS = ("mon", "global")
_STRETCH_COPIES = 4  # Source: Rook 1.18, `ValidatePoolSpec`
_SMALL_POOL_GROUPS = 16  # what Ceph's autoscaler gives a metadata pool at least
_LEAST_OSDS = 3  # Ceph counts at least this many OSDs
_FIELD = "spec.storage.rook"
_EXISTING = {
    BLOCK_POOL: ("existingPool", Reason.POOL_NOT_FOUND, Reason.POOL_NOT_ALLOWED, Reason.POOL_NOT_READY),
    FILE_SYSTEM: (
        "existingFileSystem",
        Reason.FILE_SYSTEM_NOT_FOUND,
        Reason.FILE_SYSTEM_NOT_ALLOWED,
        Reason.FILE_SYSTEM_NOT_READY,
    ),
}
"""Kind -> the field that names an existing one, and the reasons why it is unusable."""

EXTERNAL_REMEDY = (
    "on an external cluster, Rook manages pools and users only with the administrator's key (Secret rook-ceph-mon); "
    "without it, measure the pool with spec.storage.ceph, or a StorageClass with spec.storage.storageClass"
)
_MAX_NAMES = 10
_MAX_REFUSAL_CHARACTERS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Osd:
    """An OSD."""

    number: str
    device_class: str
    buckets: Mapping[str, str]  # failure domain -> the OSD's: `{"host": "node1", "osd": "0"}`
    available: bool  # whether its Deployment has an available pod
    root: str = ""  # of the CRUSH map that contains it; empty if unknown
    by_default: bool = True  # whether a pool that names no root uses it, as far as is known


@dataclass(frozen=True, slots=True, kw_only=True)
class RookPlatform:
    """The Rook cluster that a run names."""

    problem: str = ""  # why it cannot be inspected: the API server does not know Rook's kinds; empty if it can be
    cluster: Object | None = None  # the CephCluster; None if it does not exist
    pools: tuple[Object, ...] = ()  # all CephBlockPools in its namespace
    file_systems: tuple[Object, ...] = ()  # all CephFilesystems in its namespace; empty if the run measures none
    osds: tuple[Osd, ...] = ()
    rook_version: str = ""  # such as `v1.18.11`; empty if unknown
    refusal: str = ""  # why its resource definitions do not accept the run's pools; empty if they do

    @property
    def pool_specifications(self) -> list[Object]:
        """All pools, also of CephFilesystems, in the form of CephBlockPools, to count their placement groups."""
        file_system_pools = (pool for file_system in self.file_systems for pool in pools_of(file_system).values())
        return [*self.pools, *({"spec": pool} for pool in file_system_pools)]


def why_not_usable(rook: RookStorage, target: CephTarget, gates: Gates, platform: RookPlatform) -> Fact | None:
    if platform.problem or platform.cluster is None:
        why = f": {platform.problem}" if platform.problem else ""
        message = f"{cluster_name(rook.used_cluster)} not found{why}; install Rook, or name another cluster"
        return RunEnding.false(Reason.ROOK_NOT_FOUND, f"{_FIELD}.cluster: {message}")
    cluster = cluster_fact(platform.cluster, file_system=target.file_system is not None)
    unusable: Fact | None = None
    if cluster.external and target.made is not None:
        field, existing = ("fileSystem", "existingFileSystem") if rook.file_system else ("pool", "existingPool")
        why = f"{cluster_name(cluster)} is external, so Plimsoll cannot check whether Ceph could place a new pool"
        unusable = RunEnding.false(Reason.POOL_NOT_FEASIBLE, f"{_FIELD}.{field}: {why}; use {existing} instead")
    elif rook.existing_pool is not None:
        unusable = unusable_objects(BLOCK_POOL, target.pools, platform.pools)
    elif rook.existing_file_system is not None:
        unusable = unusable_file_system(target, platform.file_systems)
    if unusable is not None:
        return replace(unusable, message=f"{unusable.message}; {EXTERNAL_REMEDY}") if cluster.external else unusable
    if cluster.ready and len(cluster.versions) <= 1 and (ending := _too_old(rook, cluster, platform)):
        return ending
    # A pool that does not fit even with all OSDs available is not worth waiting for; a new cluster may get more OSDs.
    all_available = [replace(osd, available=True) for osd in platform.osds]
    if cluster.ready and all_available and (infeasible := _infeasible(rook, target, all_available, platform)):
        return infeasible
    if why := why_unusable(cluster, gates):
        return Fact.false(Reason.CEPH_CLUSTER_NOT_READY, why)
    return _infeasible(rook, target, platform.osds, platform)


def complete_plan(plan: Plan, platform: RookPlatform) -> Plan:
    """Return the plan with a fixed number of placement groups, or with all pools of an existing file system."""
    target, cluster, osds, others = plan.ceph, platform.cluster, platform.osds, platform.pool_specifications
    if target is None or cluster is None:
        return plan
    changed: dict[str, object] = {}
    if target.file_system is not None and target.file_system.made is not None:
        fitted = fitting_file_system(target.file_system.made, osds, others, cluster)
        file_system = target.file_system.model_copy(update={"made": fitted})
        changed = {"made": fitted.data_pools[-1], "file_system": file_system}
    elif target.made is not None:
        changed = {"made": fitting_placement_groups(target.made, osds, others, cluster)}
    elif target.file_system is not None:
        by_name = {obj["metadata"]["name"]: obj for obj in platform.file_systems}
        if target.file_system.name in by_name:
            _, *data_pools = pools_of(by_name[target.file_system.name])
            if data_pools and data_pools[0] != target.data_pool:
                changed = {"default_data_pool": data_pools[0]}
    return plan.model_copy(update={"ceph": target.model_copy(update=changed)})


def unusable_file_system(target: CephTarget, file_systems: Sequence[Object]) -> Fact | None:
    """Return why a run may not use the file system it names, given all CephFilesystems; None if it may."""
    name = target.file_system.name if target.file_system else ""
    unusable = unusable_objects(FILE_SYSTEM, [name], file_systems)
    if isinstance(unusable, RunEnding):
        return unusable
    metadata, *data = pools_of(next(obj for obj in file_systems if obj["metadata"]["name"] == name))
    problem = ""
    if target.pool != metadata:
        problem = f"metadataPool: {FILE_SYSTEM} {name} has no metadata pool {target.pool}; name its own: {metadata}"
    elif target.data_pool not in data:
        names = first_few(data, _MAX_NAMES) or "none"
        problem = f"dataPool: {FILE_SYSTEM} {name} has no data pool {target.data_pool}; name one of its own: {names}"
    if problem:
        return RunEnding.false(Reason.FILE_SYSTEM_NOT_FOUND, f"{_FIELD}.existingFileSystem.{problem}")
    return unusable


def unusable_objects(kind: str, names: Sequence[str], objects: Iterable[Object]) -> Fact | None:
    field, not_found, not_allowed, not_ready = _EXISTING[kind]
    existing = {obj["metadata"]["name"]: obj for obj in objects if not belongs_to_a_run(obj)}
    annotations = {name: obj["metadata"].get("annotations") or {} for name, obj in existing.items()}
    allowed = {name for name, found in annotations.items() if found.get(ALLOW_BENCHMARKS) == "true"}
    for name in names:
        if name not in existing:
            why = f"{kind} {name} does not exist, or belongs to another run"
            message = f"{_FIELD}.{field}: {why}; name one that allows benchmarks: {_listed(allowed)}"
            return RunEnding.false(not_found, message)
    for name in names:
        if name not in allowed:
            how = f'with `kubectl annotate {kind.lower()} {name} {ALLOW_BENCHMARKS}="true"` in its namespace'
            message = f"{kind} {name} does not allow benchmarks; its owner can allow them {how}"
            return RunEnding.false(not_allowed, f"{_FIELD}.{field}: {message}")
    for name in names:
        phase = (existing[name].get("status") or {}).get("phase")
        if phase != READY or "deletionTimestamp" in existing[name]["metadata"]:
            state = phase or "not reconciled by Rook yet"
            return Fact.false(not_ready, f"{kind} {name} is {state}; wait until it is Ready")
    return None


def why_infeasible(pool: Pool, osds: Sequence[Osd], namespace: str) -> str:
    """Return why Ceph could not place a pool, and what to do about it; empty if it could."""
    if not osds:
        check = f"`kubectl -n {namespace} get deployments -l app=rook-ceph-osd` and spec.storage.rook.cluster"
        return f"namespace {namespace} has no Deployment of an OSD, so the pool's placement is unknown; check {check}"
    inside = [osd for osd in osds if _is_in_root(osd, pool)]
    if not inside:
        where = f"CRUSH root {pool.crush_root}; use" if pool.crush_root else f"{_ROOT_OF_POOLS}; set crushRoot to"
        return f"no OSD is in {where} an existing one: {_listed({osd.root for osd in osds} - {''})}"
    # The root of a pool that names none is shown if there are others.
    root = pool.crush_root or (inside[0].root if len(inside) < len(osds) else "")
    of_root = f" of CRUSH root {root}" if root else ""
    classes = {osd.device_class for osd in inside}
    if pool.device_class is not None and pool.device_class not in classes:
        return f"no OSD{of_root} has device class {pool.device_class}; use an existing one: {_listed(classes - {''})}"
    domains = {domain for osd in inside for domain in osd.buckets}
    if pool.failure_domain not in domains:
        return f"no OSD{of_root} is in a {pool.failure_domain}; use an existing failure domain: {_listed(domains)}"
    domain, layout, chunks = pool.failure_domain, pool.replicated, pool.erasure_coded
    copies, within = 1, domain
    if layout is not None and layout.replicas_per_failure_domain is not None:
        copies, within = layout.replicas_per_failure_domain, layout.sub_failure_domain or "host"
    needed = width(pool) // copies
    fitting = [osd for osd in inside if domain in osd.buckets and _has_class(osd, pool)]
    # Those with enough available buckets for all of their copies.
    buckets = {(osd.buckets[domain], osd.buckets.get(within, "")) for osd in fitting if osd.available}
    counts = Counter(name for name, bucket in buckets if bucket)
    usable = {name for name, count in counts.items() if count >= copies}
    if len(usable) >= needed:
        return ""
    purpose, remedy = "one for each copy", f"set size to at most {max(len(usable), 1)}"
    if copies > 1:
        purpose = f"each with {copies} of type {within}, one for each copy"
        remedy = "use fewer copies, or remove replicasPerFailureDomain"
    if chunks is not None:
        purpose = f"one for each of {chunks.data_chunks} data and {chunks.coding_chunks} coding chunks"
        remedy = "use fewer chunks"
    of_class = f" of device class {pool.device_class}" if pool.device_class else ""
    in_root = f" in CRUSH root {root}" if root else ""
    names = f" ({_listed(usable)})" if usable else ""
    down = {osd.buckets[domain] for osd in fitting} - {*counts}
    remark = f"; no OSD is available in {_listed(down)}" if down else ""
    return (
        f"the pool needs {needed} failure domains of type {domain} with an available OSD{of_class}{in_root}, "
        f"{purpose}, but there {are(len(usable))} {len(usable)}{names}{remark}; {remedy}, choose another "
        "failureDomain, or add OSDs"
    )


def why_over_budget(
    pool: Pool, osds: Sequence[Osd], others: Iterable[Object], cluster: Object, *, headers: bool = True
) -> str:
    """Return why Ceph would refuse a pool's placement groups, and what to do about it; empty if it would not.

    `others` are all existing CephBlockPools. Only their specifications count: autoscaled pools, and pools that Rook
    does not know, are ignored. `headers`: whether an erasure-coded pool has one more for the headers of images.
    """
    limit, used = _limit(cluster), _per_osd(sum(map(_replicas, others)), sum(osd.available for osd in osds))
    wanted = pool.placement_groups or 1
    needed = _per_osd(wanted * _copies(pool, headers=headers), usable_osds(pool, osds))
    if needed + used <= limit:
        return ""
    fits = _fitting(pool, osds, limit - used, headers=headers)
    remedy = f"set placementGroups to at most {fits}, or add OSDs" if fits else "delete pools, or add OSDs"
    added = f"{wanted} placement groups would add {needed:.0f} replicas to each OSD that the pool can use"
    return f"{added}, in addition to {used:.0f} of other pools; the limit is {limit} ({SETTING}); {remedy}"


def fitting_placement_groups(
    pool: Pool, osds: Sequence[Osd], others: Iterable[Object], cluster: Object, *, headers: bool = True
) -> Pool:
    """Return the pool with a fixed number of placement groups: the user's, or the usual number if that fits."""
    if pool.placement_groups is not None:
        return pool
    left = _limit(cluster) - _per_osd(sum(map(_replicas, others)), sum(osd.available for osd in osds))
    count = min(placement_groups(pool, osds), max(_fitting(pool, osds, left, headers=headers), 1))
    return pool.model_copy(update={"placement_groups": count})


def fitting_file_system(made: FileSystem, osds: Sequence[Osd], others: Iterable[Object], cluster: Object) -> FileSystem:
    """Return the file system with a number of placement groups for each pool: a small one for all but the last."""
    chosen = [pool for pool in (made.metadata_pool, *made.data_pools) if pool.placement_groups is not None]
    taken = [*others, *({"spec": pool_spec(pool)} for pool in chosen)]

    def fitted(pool: Pool, most: int) -> Pool:
        if pool.placement_groups is not None:
            return pool
        pool = fitting_placement_groups(pool, osds, taken, cluster, headers=False)
        pool = pool.model_copy(update={"placement_groups": min(pool.placement_groups or 0, most)})
        taken.append({"spec": pool_spec(pool)})
        return pool

    metadata = fitted(made.metadata_pool, _SMALL_POOL_GROUPS)
    *small, last = made.data_pools
    data = (*(fitted(pool, _SMALL_POOL_GROUPS) for pool in small), fitted(last, MAX_PLACEMENT_GROUPS))
    return made.model_copy(update={"metadata_pool": metadata, "data_pools": data})


def placement_groups(pool: Pool, osds: Sequence[Osd]) -> int:
    """Return the number of placement groups, a power of two, that gives each usable OSD at most 100 replicas."""
    log2 = (usable_osds(pool, osds) * REPLICAS_PER_OSD // width(pool)).bit_length() - 1
    return 1 << min(max(log2, 0), _MAX_PLACEMENT_GROUPS_LOG2)


def usable_osds(pool: Pool, osds: Sequence[Osd]) -> int:
    return sum(1 for osd in osds if osd.available and _has_class(osd, pool) and _is_in_root(osd, pool))


def width(pool: Pool) -> int:
    """Return over how many failure domains a pool spreads every object."""
    if pool.erasure_coded is not None:
        return pool.erasure_coded.data_chunks + pool.erasure_coded.coding_chunks
    return pool.replicated.size if pool.replicated is not None else 1


def osds_of(deployments: Iterable[Object], root: str = DEFAULT_ROOT) -> tuple[Osd, ...]:
    """Return the OSDs of these Deployments; `root` is the root of pools that name none."""

    def osd(deployment: Object) -> Osd:
        labels = deployment["metadata"].get("labels") or {}
        number = str(labels.get("ceph-osd-id", deployment["metadata"]["name"]))
        buckets = {key.removeprefix(_LOCATION): str(labels[key]) for key in labels if key.startswith(_LOCATION)}
        crush_root = buckets.pop(_ROOT, "")
        return Osd(
            number=number,
            device_class=str(labels.get("device-class", "")),
            buckets={**buckets, "osd": number},
            root=crush_root,
            by_default=crush_root in {"", root},
            available=(deployment.get("status") or {}).get("availableReplicas", 0) > 0,
        )

    return tuple(map(osd, deployments))


def root_of_pools(cluster: Object) -> str:
    """Return the root of the CRUSH map that Rook uses for a pool that names none."""
    storage = (cluster.get("spec") or {}).get("storage") or {}
    return str((storage.get("config") or {}).get("crushRoot") or DEFAULT_ROOT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provisioner:
    """The CSI driver for a run's StorageClass."""

    name: str = ""  # empty if there is none
    problem: str = ""  # why there is none, with the search; empty if there is one


def provisioner_of(
    namespace: str,
    *,
    driver: str,
    osds: Iterable[Object],
    drivers: Iterable[Object],
    classes: Iterable[Object],
) -> Provisioner:
    """Return a CephCluster's CSI driver: that of its Rook operator (by `osds`), the one in use, or the only one."""
    suffix = f".{driver}.csi.ceph.com"
    registered = {obj["metadata"]["name"] for obj in drivers if obj["metadata"]["name"].endswith(suffix)}
    labels = (label(osd, "rook.io/operator-namespace") for osd in osds)
    usual = f"{next(filter(None, labels), namespace)}{suffix}"
    in_use = {
        str(obj.get("provisioner")) for obj in classes if (obj.get("parameters") or {}).get("clusterID") == namespace
    }
    for candidates in ({usual} & registered, in_use & registered, registered):
        if len(candidates) == 1:
            return Provisioner(name=candidates.pop())
    if not registered:
        problem = f"no other *{suffix} is registered; enable Rook's CSI drivers or the ceph-csi-operator's"
    else:
        problem = f"no StorageClass with clusterID {namespace} says which of {_listed(registered)} serves the cluster"
        problem = f"{problem}; create one that names it as provisioner"
    return Provisioner(problem=f"CSIDriver {usual} does not exist, and {problem}")


def rook_version(deployments: Iterable[Object]) -> str:
    """Return the version of the Rook that last wrote these Deployments, such as `v1.18.11`; empty if unknown."""
    return next(filter(None, (label(deployment, "rook-version") for deployment in deployments)), "")


def _too_old(rook: RookStorage, cluster: ClusterFact, platform: RookPlatform) -> RunEnding | None:
    name, version = cluster_name(cluster), cluster.ceph_version
    if why := age_problem(name, version):
        return RunEnding.false(Reason.CEPH_TOO_OLD, f"{_FIELD}.cluster: {why}")
    for place, pool in _new_pools(rook).items():
        coded, field = pool.erasure_coded, f"{_FIELD}.{place}.erasureCoded"
        if coded is None:
            continue
        if coded.optimizations and (why := optimizations_problem(name, version)):
            return RunEnding.false(Reason.CEPH_TOO_OLD, f"{field}.optimizations: {why}")
        # A webhook may refuse every dry run, or the pool for a reason of its own: its creation will say so.
        if coded.stripe_unit is not None and "stripeUnit" in platform.refusal:
            rooks = f"Rook{f' {platform.rook_version}' if platform.rook_version else ''} of {name}"
            why = f"the resource definitions of {rooks} do not accept it ({platform.refusal[:_MAX_REFUSAL_CHARACTERS]})"
            message = f"{field}.stripeUnit: {why}; upgrade Rook, or remove the field"
            return RunEnding.false(Reason.ROOK_TOO_OLD, message)
    return None


def _new_pools(rook: RookStorage) -> dict[str, Pool]:
    """Return the pools that are created for a run: field of `spec.storage.rook` -> pool, the content's pool last."""
    pools = {"pool": rook.pool} if rook.pool is not None else {}
    if rook.file_system is not None:
        pools["fileSystem.metadataPool"] = rook.file_system.metadata_pool
        pools |= {f"fileSystem.dataPools[{number}]": pool for number, pool in enumerate(rook.file_system.data_pools)}
    return pools


def _infeasible(rook: RookStorage, target: CephTarget, osds: Sequence[Osd], platform: RookPlatform) -> RunEnding | None:
    if target.made is None or platform.cluster is None:
        return None
    pools = _new_pools(rook)
    stretch = ((platform.cluster.get("spec") or {}).get("mon") or {}).get("stretchCluster") or {}
    for field, pool in pools.items():
        if stretch.get("zones") and (pool.replicated is None or pool.replicated.size != _STRETCH_COPIES):
            why = "Rook creates only replicated pools with size 4 in a stretch cluster; use replicated.size 4"
            return RunEnding.false(Reason.POOL_NOT_FEASIBLE, f"{_FIELD}.{field}: {why}")
        if why := why_infeasible(pool, osds, rook.used_cluster.namespace):
            return RunEnding.false(Reason.POOL_NOT_FEASIBLE, f"{_FIELD}.{field}: {why}")
    # Without a number, a pool gets what the others leave, but one placement group at least.
    specs = {
        field: {"spec": pool_spec(pool.model_copy(update={"placement_groups": pool.placement_groups or 1}))}
        for field, pool in pools.items()
    }
    # The content's pool has most placement groups.
    for field, pool in reversed(pools.items()):
        taken = [*platform.pool_specifications, *(spec for other, spec in specs.items() if other != field)]
        if why := why_over_budget(pool, osds, taken, platform.cluster, headers=rook.file_system is None):
            return RunEnding.false(Reason.POOL_NOT_FEASIBLE, f"{_FIELD}.{field}: {why}")
    return None


def _has_class(osd: Osd, pool: Pool) -> bool:
    return pool.device_class is None or osd.device_class == pool.device_class


def _is_in_root(osd: Osd, pool: Pool) -> bool:
    return osd.by_default if pool.crush_root is None else osd.root == pool.crush_root


def _listed(names: Iterable[str]) -> str:
    return first_few(sorted(names), _MAX_NAMES) or "none"


def _fitting(pool: Pool, osds: Sequence[Osd], per_osd: float, *, headers: bool) -> int:
    """Return the most placement groups, a power of two, within the budget per OSD; 0 if not even one fits."""
    most = int(max(per_osd, 0) * max(usable_osds(pool, osds), _LEAST_OSDS)) // _copies(pool, headers=headers)
    return 1 << (most.bit_length() - 1) if most else 0


def _per_osd(replicas: int, osds: int) -> float:
    return replicas / max(osds, _LEAST_OSDS)


def _copies(pool: Pool, *, headers: bool) -> int:
    """Return the number of OSDs per placement group, if wanted including the pool with the images' headers."""
    chunks = pool.erasure_coded
    return width(pool) + (metadata_size(chunks.coding_chunks) if headers and chunks is not None else 0)


def _replicas(pool: Object) -> int:
    spec = pool.get("spec") or {}
    chunks = spec.get("erasureCoded") or {}
    size = _count((spec.get("replicated") or {}).get("size"))
    copies = size or _count(chunks.get("dataChunks")) + _count(chunks.get("codingChunks"))
    return _count((spec.get("parameters") or {}).get("pg_num")) * copies


def _limit(cluster: Object) -> int:
    config = (cluster.get("spec") or {}).get("cephConfig") or {}
    limits = (_count((config.get(section) or {}).get(SETTING)) for section in _SECTIONS)
    return next(filter(None, limits), _DEFAULT_PER_OSD)


def _count(value: object) -> int:
    """Return a count, which may be a string; 0 if it is invalid."""
    text = str(value)
    return int(text) if text.isdecimal() else 0
