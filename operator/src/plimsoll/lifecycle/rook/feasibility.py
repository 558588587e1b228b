"""Whether Ceph can place a pool, checked before its creation from the labels of the OSD Deployments.

A pool that cannot be placed does not fail cleanly: deleting it blocks Rook's pool controller for all pools forever.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from plimsoll.api.pools import Pool
from plimsoll.lifecycle.children import Object, label
from plimsoll.lifecycle.wording import are, listed

OSD_LABELS: Mapping[str, str] = {"app": "rook-ceph-osd"}
"""Labels of the OSD Deployments in Rook's namespace."""

REPLICAS_PER_OSD = 100
"""Replicas of placement groups per OSD that Ceph's documentation recommends, used if a run sets no number."""

_MAX_PLACEMENT_GROUPS_LOG2 = 15
MAX_PLACEMENT_GROUPS = 1 << _MAX_PLACEMENT_GROUPS_LOG2
"""The most that a run can request."""

DEFAULT_ROOT = "default"
"""The root that Rook uses if neither the pool nor the CephCluster names one."""

_OPERATOR_NAMESPACE = "rook.io/operator-namespace"
_LOCATION = "topology-location-"
_ROOT = "root"
"""The type of bucket that contains all others, over which nothing can be spread."""

_ROOT_OF_POOLS = "the CRUSH root of pools that name none (the CephCluster's spec.storage.config.crushRoot, or default)"

_MAX_NAMES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Osd:
    """An OSD.

    Attributes:
        buckets: failure domain -> the OSD's: `{"host": "node1", "osd": "0"}`.
        available: whether its Deployment has an available pod.
        root: of the CRUSH map that contains it; empty if unknown.
        by_default: whether a pool that names no root uses it, as far as is known.

    """

    number: str
    device_class: str
    buckets: Mapping[str, str]
    available: bool
    root: str = ""
    by_default: bool = True


def root_of_pools(cluster: Object) -> str:
    """Return the root of the CRUSH map that Rook uses for a pool that names none."""
    storage = (cluster.get("spec") or {}).get("storage") or {}
    return str((storage.get("config") or {}).get("crushRoot") or DEFAULT_ROOT)


def osds_of(deployments: Iterable[Object], root: str = DEFAULT_ROOT) -> tuple[Osd, ...]:
    """Return the OSDs of these Deployments; `root` is that of pools that name none."""
    return tuple(_osd(deployment, root) for deployment in deployments)


def all_available(osds: Iterable[Osd]) -> tuple[Osd, ...]:
    """Return the same OSDs, all available."""
    return tuple(replace(osd, available=True) for osd in osds)


def operator_namespace(deployments: Iterable[Object], cluster_namespace: str) -> str:
    """Return the namespace of the Rook operator that created these Deployments; the cluster's if they have no label."""
    labels = (label(deployment, _OPERATOR_NAMESPACE) for deployment in deployments)
    return next(filter(None, labels), cluster_namespace)


def why_infeasible(pool: Pool, osds: Sequence[Osd], namespace: str) -> str:
    """Return why Ceph could not place a pool, and what to do about it; empty if it could."""
    if not osds:
        return (
            f"namespace {namespace} has no Deployment of an OSD, so the pool's placement is unknown; check "
            f"`kubectl -n {namespace} get deployments -l app=rook-ceph-osd` and spec.storage.rook.cluster"
        )
    inside = [osd for osd in osds if _is_in_root(osd, pool)]
    if not inside:
        where = f"CRUSH root {pool.crush_root}; use" if pool.crush_root else f"{_ROOT_OF_POOLS}; set crushRoot to"
        return f"no OSD is in {where} an existing one: {_listed({osd.root for osd in osds} - {''})}"
    root = pool.crush_root or _only_root(inside, osds)
    of_root = f" of CRUSH root {root}" if root else ""
    classes = {osd.device_class for osd in inside}
    if pool.device_class is not None and pool.device_class not in classes:
        return f"no OSD{of_root} has device class {pool.device_class}; use an existing one: {_listed(classes - {''})}"
    domains = {domain for osd in inside for domain in osd.buckets}
    if pool.failure_domain not in domains:
        return f"no OSD{of_root} is in a {pool.failure_domain}; use an existing failure domain: {_listed(domains)}"
    return _too_few(pool, inside, root)


def placement_groups(pool: Pool, osds: Sequence[Osd]) -> int:
    """Return the number of placement groups, a power of two, that gives each usable OSD at most 100 replicas."""
    log2 = (usable_osds(pool, osds) * REPLICAS_PER_OSD // width(pool)).bit_length() - 1
    return 1 << min(max(log2, 0), _MAX_PLACEMENT_GROUPS_LOG2)


def usable_osds(pool: Pool, osds: Sequence[Osd]) -> int:
    """Return how many available OSDs a pool can use."""
    return sum(1 for osd in osds if osd.available and _has_class(osd, pool) and _is_in_root(osd, pool))


def width(pool: Pool) -> int:
    """Return over how many failure domains a pool spreads every object."""
    if pool.erasure_coded is not None:
        return pool.erasure_coded.data_chunks + pool.erasure_coded.coding_chunks
    return pool.replicated.size if pool.replicated is not None else 1


def _only_root(inside: Sequence[Osd], osds: Sequence[Osd]) -> str:
    """Return the root of a pool that names none; empty if it is unknown, or all OSDs are in it."""
    return "" if len(inside) == len(osds) else next((osd.root for osd in inside if osd.root), "")


def _too_few(pool: Pool, osds: Sequence[Osd], root: str) -> str:
    domain, needed = pool.failure_domain, width(pool)
    fitting = [osd for osd in osds if domain in osd.buckets and _has_class(osd, pool)]
    usable = {osd.buckets[domain] for osd in fitting if osd.available}
    if len(usable) >= needed:
        return ""
    of_class = f" of device class {pool.device_class}" if pool.device_class else ""
    in_root = f" in CRUSH root {root}" if root else ""
    names = f" ({_listed(usable)})" if usable else ""
    down = {osd.buckets[domain] for osd in fitting} - usable
    remark = f"; no OSD is available in {_listed(down)}" if down else ""
    return (
        f"the pool needs {needed} failure domains of type {domain} with an available OSD{of_class}{in_root}, "
        f"{_needed_for(pool)}, but there {are(len(usable))} {len(usable)}{names}{remark}; {_remedy(pool, len(usable))}"
    )


def _needed_for(pool: Pool) -> str:
    if pool.erasure_coded is not None:
        chunks = pool.erasure_coded
        return f"one for each of {chunks.data_chunks} data and {chunks.coding_chunks} coding chunks"
    return "one for each copy"


def _remedy(pool: Pool, usable: int) -> str:
    smaller = "use fewer chunks" if pool.erasure_coded is not None else f"set size to at most {max(usable, 1)}"
    return f"{smaller}, choose another failureDomain, or add OSDs"


def _has_class(osd: Osd, pool: Pool) -> bool:
    return pool.device_class is None or osd.device_class == pool.device_class


def _is_in_root(osd: Osd, pool: Pool) -> bool:
    return osd.by_default if pool.crush_root is None else osd.root == pool.crush_root


def _listed(names: Iterable[str]) -> str:
    return listed(sorted(names), most=_MAX_NAMES) or "none"


def _osd(deployment: Object, root_of_pools: str) -> Osd:
    labels = deployment["metadata"].get("labels") or {}
    number = str(labels.get("ceph-osd-id", deployment["metadata"]["name"]))
    buckets = {key.removeprefix(_LOCATION): str(value) for key, value in labels.items() if key.startswith(_LOCATION)}
    root = buckets.pop(_ROOT, "")
    return Osd(
        number=number,
        device_class=str(labels.get("device-class", "")),
        buckets={**buckets, "osd": number},
        root=root,
        by_default=root in {"", root_of_pools},
        available=(deployment.get("status") or {}).get("availableReplicas", 0) > 0,
    )
