"""What is measured, as users name it: a pool of Rook's or of any Ceph cluster, or a StorageClass; and its volumes."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from plimsoll.api.errors import Problem, SpecError
from plimsoll.api.model import Flag, Integer, Model
from plimsoll.api.names import CEPH_NAME_PATTERN, DATA_KEY_PATTERN, DNS_LABEL_PATTERN, MONITOR_PATTERN
from plimsoll.api.quantity import Size

_USER_TYPE = "client."
_MIN_VOLUME_BYTES, _MAX_VOLUME_BYTES = 2**20, 2**50


def _without_type(user: str) -> str:
    if user.startswith(_USER_TYPE):
        raise ValueError(f"must be without {_USER_TYPE}, which is the same for all users; write what follows it")
    return user


DnsLabel = Annotated[str, Field(pattern=DNS_LABEL_PATTERN, max_length=63)]
CephName = Annotated[str, Field(pattern=CEPH_NAME_PATTERN, max_length=128)]
CephUser = Annotated[CephName, AfterValidator(_without_type)]
Monitor = Annotated[str, Field(pattern=MONITOR_PATTERN, max_length=253)]


class NamespacedName(Model):
    """A reference to an object in a namespace."""

    namespace: DnsLabel
    name: DnsLabel


class Replicated(Model):
    """A replicated pool."""

    size: Annotated[Integer, Field(ge=1, le=10)]


class ErasureCoded(Model):
    """An erasure-coded pool of k data and m coding chunks."""

    data_chunks: Annotated[Integer, Field(ge=2, le=32)]
    coding_chunks: Annotated[Integer, Field(ge=1, le=32)]


class Pool(Model):
    """The Ceph pool that is made for a run.

    Attributes:
        compression_mode: of BlueStore, by Ceph's own names; Ceph's default for the cluster if absent.
        placement_groups: fixed, with the autoscaler off; if absent, about 100 replicas of them per OSD, rounded down to
            a power of two.

    """

    replicated: Replicated | None = None
    erasure_coded: ErasureCoded | None = None
    failure_domain: DnsLabel = "host"
    device_class: DnsLabel | None = None
    compression_mode: Literal["none", "passive", "aggressive", "force"] | None = None
    placement_groups: Annotated[Integer, Field(ge=1, le=32768)] | None = None

    @model_validator(mode="after")
    def _one_layout(self) -> Self:
        if (self.replicated is None) == (self.erasure_coded is None):
            message = "needs exactly one of replicated and erasureCoded"
            raise ValueError(message)
        return self


class SecretReference(Model):
    """A Secret in the namespace of the run."""

    name: DnsLabel


class ExistingPool(Model):
    """A pool that is there already; `data_pool` is where the data goes if that pool holds the metadata only."""

    name: CephName
    data_pool: CephName | None = None


class RookStorage(Model):
    """A Rook-Ceph cluster: a pool made for this run and removed afterwards, or one that is there."""

    cluster: NamespacedName
    pool: Pool | None = None
    existing_pool: ExistingPool | None = None

    @model_validator(mode="after")
    def _one_pool(self) -> Self:
        if (self.pool is None) == (self.existing_pool is None):
            message = "needs exactly one of pool and existingPool"
            raise ValueError(message)
        return self


class KeyringReference(Model):
    """A Secret in the namespace of the run that holds a Ceph keyring file under `key`."""

    name: DnsLabel
    key: Annotated[str, Field(pattern=DATA_KEY_PATTERN, max_length=253)] = "keyring"


class CephStorage(Model):
    """Any Ceph cluster, without Rook."""

    monitors: Annotated[tuple[Monitor, ...], Field(min_length=1, max_length=15)]
    user: CephUser
    keyring_secret: KeyringReference
    pool: ExistingPool


class StorageClassStorage(Model):
    """Any StorageClass: NFS, iSCSI, local, cloud."""

    name: Annotated[str, Field(min_length=1, max_length=253)]


class Volume(Model):
    """The volume that each client gets.

    Attributes:
        access: through a PersistentVolumeClaim, or an RBD image per client through librbd.
        rbd_cache: with librbd, whether its writeback cache in the client is on.

    """

    size: Annotated[Size, Field(ge=_MIN_VOLUME_BYTES, le=_MAX_VOLUME_BYTES)]
    mode: Literal["Block", "Filesystem"] = "Block"
    access: Literal["PVC", "LibRBD"] = "PVC"
    rbd_cache: Flag = False

    @model_validator(mode="after")
    def _fits_its_access(self) -> Self:
        if self.access == "LibRBD" and self.mode != "Block":
            remedy = "must be Block, because access is LibRBD, which knows no file system; leave it out"
            raise SpecError([Problem(field="mode", value=self.mode, remedy=remedy)])
        if self.access == "PVC" and self.rbd_cache:
            remedy = "has an effect with access LibRBD only; leave it out"
            raise SpecError([Problem(field="rbdCache", value="true", remedy=remedy)])
        return self


class Storage(Model):
    """Where the storage comes from: exactly one of `rook`, `ceph` and `storageClass`.

    `volume` may be absent if no workload runs on one, as with `radosBench`.
    """

    rook: RookStorage | None = None
    ceph: CephStorage | None = None
    storage_class: StorageClassStorage | None = None
    volume: Volume | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if sum(source is not None for source in (self.rook, self.ceph, self.storage_class)) != 1:
            message = "needs exactly one of rook, ceph and storageClass"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _volume_fits_its_source(self) -> Self:
        if self.volume is None:
            return self
        if self.ceph is not None and self.volume.access != "LibRBD":
            remedy = "must be LibRBD, because no StorageClass is known of a Ceph cluster without Rook; set it to LibRBD"
            raise SpecError([Problem(field="volume.access", value=self.volume.access, remedy=remedy)])
        if self.storage_class is not None and self.volume.access != "PVC":
            remedy = "must be PVC, because a StorageClass gives volumes by claims only; leave it out"
            raise SpecError([Problem(field="volume.access", value=self.volume.access, remedy=remedy)])
        return self
