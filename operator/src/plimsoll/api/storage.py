"""The measured storage: a pool or file system of a Rook cluster, a pool of any Ceph cluster, or a StorageClass."""

from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from plimsoll.api.ceph_options import SET_ONCE, CephOptions
from plimsoll.api.errors import Problem, SpecError
from plimsoll.api.file_system import ExistingFileSystem, FileSystem
from plimsoll.api.model import Model
from plimsoll.api.names import DATA_KEY_PATTERN, MONITOR_PATTERN
from plimsoll.api.pools import CephName, DnsLabel, ExistingPool, Pool
from plimsoll.api.schema import Rule
from plimsoll.api.volume import Volume

_USER_TYPE = "client."
_WITHOUT_TYPE = f"must not start with {_USER_TYPE}; write the name after it"
_ONE_POOL = "must have exactly one of pool, existingPool, fileSystem and existingFileSystem"
_ONE_SOURCE = "must have exactly one of rook, ceph and storageClass"
_LIBRBD_ONLY = "must be LibRBD, because a Ceph cluster without Rook has no StorageClass; set it to LibRBD"
_FILES_ONLY = "must be Filesystem, because spec.storage.rook has a file system; remove the field"
_NO_IMAGES = "must be PVC, because spec.storage.rook has a file system, which has no RBD images; remove the field"
_NOT_SHARED = (
    "must be PerClient, because pods cannot share an RBD image; remove the field, or use a file system or another "
    "StorageClass that supports ReadWriteMany"
)
_ON_FILES = "has(self.rook) && (has(self.rook.fileSystem) || has(self.rook.existingFileSystem))"
_PVC_ONLY = "must be PVC, because a StorageClass provides volumes by PVCs only; remove the field"


def _without_type(user: str) -> str:
    if user.startswith(_USER_TYPE):
        raise ValueError(_WITHOUT_TYPE)
    return user


CephUser = Annotated[
    CephName,
    AfterValidator(_without_type),
    Rule(
        rule=f"!self.startsWith('{_USER_TYPE}')",
        message=_WITHOUT_TYPE,
    ),
]
Monitor = Annotated[str, Field(pattern=MONITOR_PATTERN, max_length=253, description="Address of one monitor.")]


class NamespacedName(Model):
    """A reference to an object in a namespace.

    Attributes:
        namespace: Namespace of the CephCluster.
        name: Name of the CephCluster.

    """

    namespace: DnsLabel
    name: DnsLabel


class SecretReference(Model):
    """A Secret in the namespace of the run.

    Attributes:
        name: Name of the Secret.

    """

    name: DnsLabel


class RookStorage(Model):
    """A Rook-Ceph cluster, and exactly one of pool, existingPool, fileSystem and existingFileSystem.

    A StorageClass is created for this run, and removed afterwards according to cleanup.

    Attributes:
        cluster: The CephCluster object. The administrator decides which namespaces may use which cluster.
        pool: The pool that is created for this run, and removed afterwards according to cleanup: exactly one of
            replicated and erasureCoded. With erasureCoded, a replicated pool for the metadata is created as well.
        existing_pool: An existing pool, which is never removed. Its CephBlockPool needs the annotation
            plimsoll.dev/allow-benchmarks.
        file_system: The CephFS file system that is created for this run, and removed with its pools afterwards
            according to cleanup. Volumes are directories in it.
        existing_file_system: An existing CephFS file system, which is never removed. Its CephFilesystem needs the
            annotation plimsoll.dev/allow-benchmarks.
        config: Options of the OSDs that are set in the cluster's configuration database while the run measures, and
            restored afterwards. They affect everybody who uses the cluster.

    """

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule=(
                "[has(self.pool), has(self.existingPool), has(self.fileSystem), has(self.existingFileSystem)]"
                ".filter(present, present).size() == 1"
            ),
            message=_ONE_POOL,
        ),
        Rule(
            rule=(
                "!has(self.config) || self.config.all(one, self.config.exists_one(other, other.who == one.who && "
                "other.name == one.name))"
            ),
            message=f"must not have an option twice; {SET_ONCE}",
            field_path=".config",
        ),
    )
    one_of: ClassVar[tuple[str, ...]] = ("pool", "existing_pool", "file_system", "existing_file_system")

    cluster: NamespacedName
    pool: Pool | None = None
    existing_pool: ExistingPool | None = None
    file_system: FileSystem | None = None
    existing_file_system: ExistingFileSystem | None = None
    config: CephOptions = ()

    @property
    def has_file_system(self) -> bool:
        """Whether volumes are directories of a CephFS file system."""
        return self.file_system is not None or self.existing_file_system is not None

    @model_validator(mode="after")
    def _one_pool(self) -> Self:
        if not self.has_one_choice:
            raise ValueError(_ONE_POOL)
        return self


class KeyringReference(Model):
    """A Secret in the namespace of the run with a Ceph keyring file.

    Attributes:
        name: Name of the Secret.
        key: Key of the Ceph keyring file in the Secret.

    """

    name: DnsLabel
    key: Annotated[str, Field(pattern=DATA_KEY_PATTERN, max_length=253)] = "keyring"


class CephStorage(Model):
    """Any Ceph cluster, without Rook.

    Attributes:
        monitors: Addresses of the monitors, such as 192.0.2.1:6789 or [v2:192.0.2.1:3300].
        user: Name of the CephX user of clients and conductor, without "client.". The documentation lists the
            capabilities that it needs.
        keyring_secret: Secret in the namespace of the run with the keyring of that user.
        pool: The existing pool for images and objects. It is never removed.

    """

    monitors: Annotated[tuple[Monitor, ...], Field(min_length=1, max_length=15)]
    user: CephUser
    keyring_secret: KeyringReference
    pool: ExistingPool


class StorageClassStorage(Model):
    """Any StorageClass: NFS, iSCSI, local disks, a cloud's block storage.

    Attributes:
        name: Name of the StorageClass.

    """

    name: Annotated[str, Field(min_length=1, max_length=253)]


class Storage(Model):
    """The measured storage: exactly one of rook, ceph and storageClass, and the volumes on it.

    Required for all current tools.
    """

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="[has(self.rook), has(self.ceph), has(self.storageClass)].filter(present, present).size() == 1",
            message=_ONE_SOURCE,
        ),
        Rule(
            rule="!has(self.ceph) || !has(self.volume) || self.volume.access == 'LibRBD'",
            message=_LIBRBD_ONLY,
            field_path=".volume.access",
        ),
        Rule(
            rule="!has(self.storageClass) || !has(self.volume) || self.volume.access == 'PVC'",
            message=_PVC_ONLY,
            field_path=".volume.access",
        ),
        Rule(
            rule=f"!({_ON_FILES}) || !has(self.volume) || self.volume.access == 'PVC'",
            message=_NO_IMAGES,
            field_path=".volume.access",
        ),
        Rule(
            rule=(f"!({_ON_FILES}) || !has(self.volume) || self.volume.?mode.orValue('Filesystem') == 'Filesystem'"),
            message=_FILES_ONLY,
            field_path=".volume.mode",
        ),
        Rule(
            rule=f"!has(self.rook) || {_ON_FILES} || !has(self.volume) || self.volume.sharing == 'PerClient'",
            message=_NOT_SHARED,
            field_path=".volume.sharing",
        ),
    )
    one_of: ClassVar[tuple[str, ...]] = ("rook", "ceph", "storage_class")

    rook: RookStorage | None = None
    ceph: CephStorage | None = None
    storage_class: StorageClassStorage | None = None
    volume: Volume | None = None

    @field_validator("volume")
    @classmethod
    def _complete_mode(cls, volume: Volume | None, info: ValidationInfo) -> Volume | None:
        rook = info.data.get("rook")
        if volume is None or rook is None or not rook.has_file_system or "mode" in volume.model_fields_set:
            return volume
        return volume.model_copy(update={"mode": "Filesystem"})

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if not self.has_one_choice:
            raise ValueError(_ONE_SOURCE)
        return self

    @model_validator(mode="after")
    def _check_volume(self) -> Self:
        if self.volume is None:
            return self
        if self.ceph is not None and self.volume.access != "LibRBD":
            raise SpecError([Problem(field="volume.access", value=self.volume.access, remedy=_LIBRBD_ONLY)])
        if self.storage_class is not None and self.volume.access != "PVC":
            raise SpecError([Problem(field="volume.access", value=self.volume.access, remedy=_PVC_ONLY)])
        if self.rook is not None:
            _check_volume_of_rook(self.rook, self.volume)
        return self


def _check_volume_of_rook(rook: RookStorage, volume: Volume) -> None:
    if rook.has_file_system and volume.access != "PVC":
        raise SpecError([Problem(field="volume.access", value=volume.access, remedy=_NO_IMAGES)])
    if rook.has_file_system and volume.mode != "Filesystem":
        raise SpecError([Problem(field="volume.mode", value=volume.mode, remedy=_FILES_ONLY)])
    if not rook.has_file_system and volume.is_shared:
        raise SpecError([Problem(field="volume.sharing", value=volume.sharing, remedy=_NOT_SHARED)])
