"""The measured storage: a pool of a Rook cluster or of any Ceph cluster, or a StorageClass; and its volumes."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from plimsoll.api.errors import Problem, SpecError
from plimsoll.api.model import Integer, Model
from plimsoll.api.names import CEPH_NAME_PATTERN, DATA_KEY_PATTERN, DNS_LABEL_PATTERN, MONITOR_PATTERN
from plimsoll.api.schema import Rule
from plimsoll.api.volume import Volume

_USER_TYPE = "client."
_WITHOUT_TYPE = f"must not start with {_USER_TYPE}; write the name after it"
_ONE_LAYOUT = "must have exactly one of replicated and erasureCoded"
_ONE_POOL = "must have exactly one of pool and existingPool"
_ONE_SOURCE = "must have exactly one of rook, ceph and storageClass"
_LIBRBD_ONLY = "must be LibRBD, because a Ceph cluster without Rook has no StorageClass; set it to LibRBD"
_PVC_ONLY = "must be PVC, because a StorageClass provides volumes by PVCs only; remove the field"


def _without_type(user: str) -> str:
    if user.startswith(_USER_TYPE):
        raise ValueError(_WITHOUT_TYPE)
    return user


DnsLabel = Annotated[str, Field(pattern=DNS_LABEL_PATTERN, max_length=63)]
CephName = Annotated[str, Field(pattern=CEPH_NAME_PATTERN, max_length=128)]
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


class Replicated(Model):
    """Replication: several complete copies of every object.

    Attributes:
        size: Number of copies of every object. 1 is not redundant and for measuring only.

    """

    size: Annotated[Integer, Field(ge=1, le=10)]


class ErasureCoded(Model):
    """Erasure coding: data chunks of every object, and coding chunks computed from them.

    Attributes:
        data_chunks: Number of data chunks per object (k).
        coding_chunks: Number of coding chunks per object, so many chunks may be lost (m).

    """

    data_chunks: Annotated[Integer, Field(ge=2, le=32)]
    coding_chunks: Annotated[Integer, Field(ge=1, le=32)]


class Pool(Model):
    """The Ceph pool that is created for a run.

    Attributes:
        failure_domain: Bucket type of the CRUSH map over which copies or chunks are spread, such as host, rack or osd.
        device_class: CRUSH device class of the OSDs, such as ssd, hdd or nvme. All OSDs if absent.
        compression_mode: BlueStore's compression mode, with Ceph's names. The cluster's default if absent.
        placement_groups: Number of placement groups. It is fixed, with the autoscaler off, because numbers are not
            comparable while placement groups split. If absent, Plimsoll chooses about 100 replicas of placement groups
            per OSD, rounded down to a power of two.

    """

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="has(self.replicated) != has(self.erasureCoded)",
            message=_ONE_LAYOUT,
        ),
    )

    replicated: Replicated | None = None
    erasure_coded: ErasureCoded | None = None
    failure_domain: DnsLabel = "host"
    device_class: DnsLabel | None = None
    compression_mode: Literal["none", "passive", "aggressive", "force"] | None = None
    placement_groups: Annotated[Integer, Field(ge=1, le=32768)] | None = None

    @model_validator(mode="after")
    def _one_layout(self) -> Self:
        if (self.replicated is None) == (self.erasure_coded is None):
            raise ValueError(_ONE_LAYOUT)
        return self


class SecretReference(Model):
    """A Secret in the namespace of the run.

    Attributes:
        name: Name of the Secret.

    """

    name: DnsLabel


class ExistingPool(Model):
    """An existing pool.

    Attributes:
        name: Name of the pool in Ceph.
        data_pool: Pool of the images' data, if the pool itself has only their metadata, as with erasure coding.

    """

    name: CephName
    data_pool: CephName | None = None


class RookStorage(Model):
    """A Rook-Ceph cluster, and exactly one of pool and existingPool.

    A StorageClass is created for this run, and removed afterwards according to cleanup.

    Attributes:
        cluster: The CephCluster object. The administrator decides which namespaces may use which cluster.
        pool: The pool that is created for this run, and removed afterwards according to cleanup: exactly one of
            replicated and erasureCoded. With erasureCoded, a replicated pool for the metadata is created as well.
        existing_pool: An existing pool, which is never removed. Its CephBlockPool needs the annotation
            plimsoll.dev/allow-benchmarks.

    """

    rules: ClassVar[tuple[Rule, ...]] = (Rule(rule="has(self.pool) != has(self.existingPool)", message=_ONE_POOL),)

    cluster: NamespacedName
    pool: Pool | None = None
    existing_pool: ExistingPool | None = None

    @model_validator(mode="after")
    def _one_pool(self) -> Self:
        if (self.pool is None) == (self.existing_pool is None):
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
    )

    rook: RookStorage | None = None
    ceph: CephStorage | None = None
    storage_class: StorageClassStorage | None = None
    volume: Volume | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if sum(source is not None for source in (self.rook, self.ceph, self.storage_class)) != 1:
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
        return self
