"""The specification of a pool as Rook reads it, in a CephBlockPool and in a CephFilesystem."""

from plimsoll.api.pools import Pool
from plimsoll.lifecycle.render.common import Json


def pool_spec(pool: Pool, layout: Json | None = None) -> Json:
    """Return the specification of a pool; `layout` replaces its own."""
    spec: Json = {"failureDomain": pool.failure_domain, **(layout or _layout(pool))}
    if pool.device_class is not None:
        spec["deviceClass"] = pool.device_class
    if pool.crush_root is not None:
        spec["crushRoot"] = pool.crush_root
    if parameters := _parameters(pool):
        spec["parameters"] = parameters
    return spec


def replicated(size: int) -> Json:
    """Return the layout of a replicated pool."""
    # Rook rejects a single copy unless requireSafeReplicaSize is false.
    return {"replicated": {"size": size, **({"requireSafeReplicaSize": False} if size == 1 else {})}}


def _layout(pool: Pool) -> Json:
    if pool.erasure_coded is not None:
        chunks = pool.erasure_coded
        return {"erasureCoded": {"dataChunks": chunks.data_chunks, "codingChunks": chunks.coding_chunks}}
    return replicated(pool.replicated.size if pool.replicated else 1)


def _parameters(pool: Pool) -> dict[str, str]:
    """Return the pool's parameters, which Rook passes to Ceph unchanged."""
    found: dict[str, str] = {}
    if pool.placement_groups is not None:
        count = str(pool.placement_groups)
        found = {"pg_num": count, "pgp_num": count, "pg_autoscale_mode": "off"}
    if pool.compression_mode is not None:
        found["compression_mode"] = pool.compression_mode
    return found
