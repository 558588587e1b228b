"""The Ceph cluster of a run, and the names of the run's objects in it."""

from hashlib import sha256

from plimsoll.api.run import BenchmarkRun
from plimsoll.api.storage import CephStorage, RookStorage
from plimsoll.plan.document import CephTarget

_PREFIX = "plimsoll"
_MAX_RUN_CHARACTERS = 30
_DIGEST = 8


def ceph_target(run: BenchmarkRun) -> CephTarget | None:
    """Return the Ceph cluster that a run measures; None for other or unknown storage."""
    storage = run.spec.storage
    if storage is not None and storage.rook is not None:
        return _of_rook(run, storage.rook)
    if storage is not None and storage.ceph is not None:
        return _of_ceph(storage.ceph)
    return None


def base_name(name: str, uid: str) -> str:
    """Return `plimsoll-<run>-<digest of the UID>`, the name of a run's objects in Ceph and in Rook's namespace."""
    return f"{_PREFIX}-{name[:_MAX_RUN_CHARACTERS].rstrip('-')}-{sha256(uid.encode()).hexdigest()[:_DIGEST]}"


def image_name(uid: str, client: int) -> str:
    """Return the name of a client's RBD image."""
    return f"{image_prefix(uid)}{client}"


def image_prefix(uid: str) -> str:
    """Return the common prefix of the names of a run's RBD images, which no other run has."""
    return f"{_PREFIX}-{uid}-"


def rados_namespace(uid: str, client: int) -> str:
    """Return the RADOS namespace of a client's objects, which is also their run name."""
    return f"{_PREFIX}-{uid}-{client}"


def flags_object(uid: str) -> str:
    """Return the RADOS object in which the conductor records the flags that it sets on the pool."""
    return f"{_PREFIX}-{uid}.flags"


def _of_rook(run: BenchmarkRun, rook: RookStorage) -> CephTarget:
    base = base_name(run.metadata.name, run.metadata.uid)
    existing = rook.existing_pool
    erasure_coded = rook.pool is not None and rook.pool.erasure_coded is not None
    made_data_pool = f"{base}-data" if erasure_coded else None
    return CephTarget(
        rook=rook.cluster,
        pool=existing.name if existing else base,
        data_pool=existing.data_pool if existing else made_data_pool,
        made=rook.pool,
        conductor_user=f"{base}-conductor",
        agent_user=f"{base}-agent",
    )


def _of_ceph(ceph: CephStorage) -> CephTarget:
    return CephTarget(
        monitors=tuple(sorted(ceph.monitors)),
        pool=ceph.pool.name,
        data_pool=ceph.pool.data_pool,
        conductor_user=ceph.user,
        agent_user=ceph.user,
        keyring=ceph.keyring_secret,
    )
