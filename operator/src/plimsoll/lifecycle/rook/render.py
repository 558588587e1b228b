"""What a run makes in Rook's namespace: pools and CephX users. Each is written once and never applied again.

Rook rewrites a pool's specification with its first look at it; writing it again would only cost another reconcile.
"""

from collections.abc import Iterable, Iterator

from plimsoll.api.storage import NamespacedName, Pool
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import Object
from plimsoll.lifecycle.render.common import Json, foreign_metadata
from plimsoll.lifecycle.run import Run
from plimsoll.plan.document import CephTarget

API_VERSION = "ceph.rook.io/v1"
BLOCK_POOL = "CephBlockPool"
CEPH_CLIENT = "CephClient"
CEPH_CLUSTER = "CephCluster"

KEY_SECRETS = tuple(f"plimsoll-{number}" for number in range(16))
"""Secrets in Rook's namespace that the operator may read, all by name: that namespace holds the administrator's key."""

_MAX_METADATA_SIZE = 3


def pools(run: Run, target: CephTarget) -> Iterator[Json]:
    """Yield the pools that are made for a run, in the order of their making; none if it uses one that is there.

    They are taken away in the same order: the one that has the images' headers before the one that has their data.
    """
    made, cluster = target.made, target.rook
    if made is None or cluster is None:
        return
    if target.data_pool is None:
        yield _pool(run, cluster, target.pool, made, _layout(made))
        return
    yield _pool(run, cluster, target.pool, made.model_copy(update={"compression_mode": None}), _metadata_layout(made))
    yield _pool(run, cluster, target.data_pool, made, _layout(made))


def users(run: Run, target: CephTarget, secrets: tuple[str, str]) -> Iterator[Json]:
    """Yield the CephX users of the conductor and of the agents, whose keys Rook is to put into these Secrets."""
    if target.rook is None:
        return
    wanted = ((target.conductor_user, _conductor_caps(target)), (target.agent_user, _agent_caps(target)))
    for (name, caps), secret in zip(wanted, secrets, strict=True):
        yield {
            "apiVersion": API_VERSION,
            "kind": CEPH_CLIENT,
            "metadata": foreign_metadata(run, name, namespace=target.rook.namespace, component=naming.STORAGE),
            "spec": {"caps": caps, "secretName": secret},
        }


def key_secrets(target: CephTarget, found: Iterable[Object]) -> tuple[str, str] | None:
    """Return the Secrets for the keys of conductor and agents, given all CephClients of Rook's namespace.

    Those that a user of this run has are kept; otherwise the first free ones. None if there are not enough.
    """
    taken = {obj["metadata"]["name"]: str(obj.get("spec", {}).get("secretName", "")) for obj in found}
    free = (name for name in KEY_SECRETS if name not in taken.values())
    conductor = taken.get(target.conductor_user) or next(free, None)
    agent = taken.get(target.agent_user) or next(free, None)
    return None if conductor is None or agent is None else (conductor, agent)


def metadata_size(coding_chunks: int) -> int:
    """Return the copies that the metadata pool of an erasure-coded one has.

    One more than coding chunks: so it survives the loss of as many failure domains as the data does. At most three,
    Ceph's own default: what is measured is the data. With at least two data chunks there are always fewer copies than
    chunks, so where the data finds its failure domains the metadata does as well.
    """
    return min(coding_chunks + 1, _MAX_METADATA_SIZE)


def _pool(run: Run, cluster: NamespacedName, name: str, pool: Pool, layout: Json) -> Json:
    spec: Json = {"failureDomain": pool.failure_domain, **layout}
    if pool.device_class is not None:
        spec["deviceClass"] = pool.device_class
    if parameters := _parameters(pool):
        spec["parameters"] = parameters
    return {
        "apiVersion": API_VERSION,
        "kind": BLOCK_POOL,
        "metadata": foreign_metadata(run, name, namespace=cluster.namespace, component=naming.STORAGE),
        "spec": spec,
    }


def _layout(pool: Pool) -> Json:
    if pool.erasure_coded is not None:
        chunks = pool.erasure_coded
        return {"erasureCoded": {"dataChunks": chunks.data_chunks, "codingChunks": chunks.coding_chunks}}
    return _replicated(pool.replicated.size if pool.replicated else 1)


def _metadata_layout(pool: Pool) -> Json:
    return _replicated(metadata_size(pool.erasure_coded.coding_chunks if pool.erasure_coded else 1))


def _replicated(size: int) -> Json:
    # Rook takes a single copy for a mistake unless it is told otherwise.
    return {"replicated": {"size": size, **({"requireSafeReplicaSize": False} if size == 1 else {})}}


def _parameters(pool: Pool) -> dict[str, str]:
    """Return what is set on the pool itself, as texts: Rook hands them on to Ceph as they are."""
    found: dict[str, str] = {}
    if pool.placement_groups is not None:
        count = str(pool.placement_groups)
        found = {"pg_num": count, "pgp_num": count, "pg_autoscale_mode": "off"}
    if pool.compression_mode is not None:
        found["compression_mode"] = pool.compression_mode
    return found


def _agent_caps(target: CephTarget) -> dict[str, str]:
    """Return what images and objects in the run's pools take.

    Of the monitors it reads where things are. Their profile `rbd` could also have other clients shut out of the
    cluster, which librbd wants only before it breaks a dead client's lock: `ceph.conf` says not to.
    """
    return {"mon": "profile simple-rados-client", "osd": ", ".join(f"profile rbd pool={pool}" for pool in target.pools)}


def _conductor_caps(target: CephTarget) -> dict[str, str]:
    """Return the same, and looking at the whole cluster, and two flags of the run's pools."""
    agent = _agent_caps(target)
    flags = [
        f'allow command "osd pool set" with pool={pool} var={flag}'
        for pool in target.pools
        for flag in ("noscrub", "nodeep-scrub")
    ]
    return {"mon": ", ".join(("allow r", *flags)), "mgr": "allow r", "osd": agent["osd"]}
