"""Whether Ceph can place a pool, judged before the pool is made: from the Deployments of Rook's OSDs, by their labels.

A pool that cannot be placed does not fail cleanly. Deleting it stops Rook's pool controller for everybody, for good.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from plimsoll.api.storage import Pool
from plimsoll.lifecycle.children import Object, label

OSD_LABELS: Mapping[str, str] = {"app": "rook-ceph-osd"}
"""By which the Deployments of OSDs are found in Rook's namespace."""

REPLICAS_PER_OSD = 100
"""Of placement groups, where a run does not say how many: what Ceph's documentation recommends."""

_MAX_PLACEMENT_GROUPS_LOG2 = 15
"""As many as a run may ask for."""

_OPERATOR_NAMESPACE = "rook.io/operator-namespace"
_LOCATION = "topology-location-"
_NO_FAILURE_DOMAIN = "root"
"""A bucket that an OSD is in like any other, but nothing can be spread below it over such buckets."""

_NAMED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Osd:
    """An OSD.

    Attributes:
        buckets: failure domain -> the one that the OSD is in: `{"host": "node1", "osd": "0"}`.
        available: whether its Deployment has its pod.

    """

    number: str
    device_class: str
    buckets: Mapping[str, str]
    available: bool


def osds_of(deployments: Iterable[Object]) -> tuple[Osd, ...]:
    """Return the OSDs that these Deployments run."""
    return tuple(_osd(deployment) for deployment in deployments)


def all_available(osds: Iterable[Osd]) -> tuple[Osd, ...]:
    """Return the same OSDs as they are when nothing is down."""
    return tuple(replace(osd, available=True) for osd in osds)


def operator_namespace(deployments: Iterable[Object], cluster_namespace: str) -> str:
    """Return the namespace of the Rook operator that made these Deployments; the cluster's where they do not say."""
    said = (label(deployment, _OPERATOR_NAMESPACE) for deployment in deployments)
    return next(filter(None, said), cluster_namespace)


def why_infeasible(pool: Pool, osds: Sequence[Osd], namespace: str) -> str:
    """Return why Ceph could not place a pool, and what to do about it; empty if it can."""
    if not osds:
        return (
            f"no Deployment of an OSD is in namespace {namespace}, so nobody knows where the pool could be; look with "
            f"`kubectl -n {namespace} get deployments -l app=rook-ceph-osd`, and at spec.storage.rook.cluster"
        )
    classes = {osd.device_class for osd in osds}
    if pool.device_class is not None and pool.device_class not in classes:
        return f"no OSD has the device class {pool.device_class}; {_there('device classes', classes - {''})}"
    domains = {domain for osd in osds for domain in osd.buckets}
    if pool.failure_domain not in domains:
        return f"no OSD is in a {pool.failure_domain}; {_there('failure domains', domains)}"
    return _too_few(pool, osds)


def placement_groups(pool: Pool, osds: Sequence[Osd]) -> int:
    """Return how many placement groups give each usable OSD about 100 replicas: a power of two, rounded down."""
    log2 = (usable_osds(pool, osds) * REPLICAS_PER_OSD // width(pool)).bit_length() - 1
    return 1 << min(max(log2, 0), _MAX_PLACEMENT_GROUPS_LOG2)


def usable_osds(pool: Pool, osds: Sequence[Osd]) -> int:
    """Return how many available OSDs a pool may be on."""
    return sum(1 for osd in osds if osd.available and _has_class(osd, pool))


def width(pool: Pool) -> int:
    """Return in how many failure domains every object of a pool is."""
    if pool.erasure_coded is not None:
        return pool.erasure_coded.data_chunks + pool.erasure_coded.coding_chunks
    return pool.replicated.size if pool.replicated is not None else 1


def _too_few(pool: Pool, osds: Sequence[Osd]) -> str:
    domain, needed = pool.failure_domain, width(pool)
    fitting = [osd for osd in osds if domain in osd.buckets and _has_class(osd, pool)]
    there = {osd.buckets[domain] for osd in fitting if osd.available}
    if len(there) >= needed:
        return ""
    of_class = f" of device class {pool.device_class}" if pool.device_class else ""
    names = f" ({_listed(there)})" if there else ""
    without = {osd.buckets[domain] for osd in fitting} - there
    down = f"; {_listed(without)} would count as well, but no OSD there is available" if without else ""
    return (
        f"the pool needs {needed} failure domains of type {domain} with an available OSD{of_class}, "
        f"{_needed_for(pool)}; there {'is' if len(there) == 1 else 'are'} {len(there)}{names}{down}; "
        f"{_remedy(pool, len(there))}"
    )


def _needed_for(pool: Pool) -> str:
    if pool.erasure_coded is not None:
        chunks = pool.erasure_coded
        return f"one for each of {chunks.data_chunks} data and {chunks.coding_chunks} coding chunks"
    return "one for each copy"


def _remedy(pool: Pool, there: int) -> str:
    smaller = "ask for fewer chunks" if pool.erasure_coded is not None else f"ask for a size of at most {max(there, 1)}"
    return f"{smaller}, choose another failureDomain, or add OSDs"


def _has_class(osd: Osd, pool: Pool) -> bool:
    return pool.device_class is None or osd.device_class == pool.device_class


def _there(what: str, names: Iterable[str]) -> str:
    return f"the {what} that are there: {_listed(names)}; choose one of them"


def _listed(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = f" and {len(ordered) - _NAMED} more" if len(ordered) > _NAMED else ""
    return f"{', '.join(ordered[:_NAMED])}{more}" if ordered else "none"


def _osd(deployment: Object) -> Osd:
    labels = deployment["metadata"].get("labels") or {}
    number = str(labels.get("ceph-osd-id", deployment["metadata"]["name"]))
    buckets = {key.removeprefix(_LOCATION): str(value) for key, value in labels.items() if key.startswith(_LOCATION)}
    buckets.pop(_NO_FAILURE_DOMAIN, None)
    return Osd(
        number=number,
        device_class=str(labels.get("device-class", "")),
        buckets={**buckets, "osd": number},
        available=(deployment.get("status") or {}).get("availableReplicas", 0) > 0,
    )
