"""The Ceph cluster of a run, and the names of the run's objects in it."""

from hashlib import sha256

from plimsoll.api.run import BenchmarkRun
from plimsoll.api.storage import CephStorage, ExistingFileSystem, FileSystem, RookStorage
from plimsoll.plan.document import CephTarget, FileSystemTarget

_PREFIX = "plimsoll"
_MAX_RUN_CHARACTERS = 30
_MAX_RUN_CHARACTERS_OF_FILE_SYSTEM = 22
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
    return _unique_name(name[:_MAX_RUN_CHARACTERS], uid)


def file_system_name(name: str, uid: str) -> str:
    """Return the same in at most 40 characters, the limit of Rook for the name of a CephFilesystem."""
    return _unique_name(name[:_MAX_RUN_CHARACTERS_OF_FILE_SYSTEM], uid)


def _unique_name(name: str, uid: str) -> str:
    return f"{_PREFIX}-{name.rstrip('-')}-{sha256(uid.encode()).hexdigest()[:_DIGEST]}"


def metadata_pool_name(file_system: str) -> str:
    """Return the name of a file system's metadata pool in Ceph, as Rook derives it."""
    return f"{file_system}-metadata"


def data_pool_name(file_system: str, number: int) -> str:
    """Return the name of a file system's data pool in Ceph, as Rook derives it from `data<number>`."""
    return f"{file_system}-data{number}"


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


def options_key(uid: str) -> str:
    """Return the key, in the monitors' store, under which the conductor records the options that it sets."""
    return f"{_PREFIX}/{uid}/options"


def owner_of_options(key: str) -> str | None:
    """Return the UID of the run whose options are recorded under a key; None if it is no such key."""
    uid = key.removeprefix(f"{_PREFIX}/").removesuffix("/options")
    return uid if key == options_key(uid) else None


def _of_rook(run: BenchmarkRun, rook: RookStorage) -> CephTarget:
    if rook.file_system is not None:
        return _of_new_file_system(run, rook, rook.file_system)
    if rook.existing_file_system is not None:
        return _of_existing_file_system(run, rook, rook.existing_file_system)
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
        options=rook.config,
    )


def _of_new_file_system(run: BenchmarkRun, rook: RookStorage, made: FileSystem) -> CephTarget:
    base, name = base_name(run.metadata.name, run.metadata.uid), file_system_name(run.metadata.name, run.metadata.uid)
    *others, data = (data_pool_name(name, number) for number in range(len(made.data_pools)))
    return CephTarget(
        rook=rook.cluster,
        pool=metadata_pool_name(name),
        default_data_pool=others[0] if others else None,
        data_pool=data,
        made=made.data_pools[-1],
        file_system=FileSystemTarget(name=name, made=made),
        conductor_user=f"{base}-conductor",
        agent_user=f"{base}-agent",
        options=rook.config,
    )


def _of_existing_file_system(run: BenchmarkRun, rook: RookStorage, existing: ExistingFileSystem) -> CephTarget:
    base, name = base_name(run.metadata.name, run.metadata.uid), existing.name
    return CephTarget(
        rook=rook.cluster,
        pool=existing.metadata_pool or metadata_pool_name(name),
        data_pool=existing.data_pool or data_pool_name(name, 0),
        file_system=FileSystemTarget(name=name),
        conductor_user=f"{base}-conductor",
        agent_user=f"{base}-agent",
        options=rook.config,
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
