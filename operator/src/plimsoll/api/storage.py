"""The measured storage: a pool or file system of a Rook cluster, a pool of any Ceph cluster, or a StorageClass."""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from plimsoll.api import names
from plimsoll.api.environment import CephOption
from plimsoll.api.model import BlockSize, Choice, Flag, Integer, Model, Rule, Size
from plimsoll.api.quantity import parse_quantity

DnsLabel = Annotated[str, Field(pattern=names.DNS_LABEL_PATTERN, max_length=63)]
ObjectName = Annotated[str, Field(pattern=names.OBJECT_NAME_PATTERN, max_length=63)]
CephName = Annotated[str, Field(pattern=names.CEPH_NAME_PATTERN, max_length=128)]


class Replicated(Model):
    """Replication: several complete copies of every object."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="!has(self.replicasPerFailureDomain) || self.size in [4, 6, 8, 10]",
            holds=lambda layout: layout.replicas_per_failure_domain is None or layout.size in {4, 6, 8, 10},
            message="must be 4, 6, 8 or 10, because replicasPerFailureDomain is 2; or remove replicasPerFailureDomain",
            field_path=".size",
        ),
        Rule(
            rule="!has(self.subFailureDomain) || has(self.replicasPerFailureDomain)",
            holds=lambda layout: layout.sub_failure_domain is None or layout.replicas_per_failure_domain is not None,
            message="has no effect without replicasPerFailureDomain; remove it, or set replicasPerFailureDomain to 2",
            field_path=".subFailureDomain",
        ),
    )

    size: Annotated[Integer, Field(ge=1, le=10)] = 3
    """Number of copies of every object, 3 if absent. 1 has no redundancy: use it for measuring only."""
    replicas_per_failure_domain: Annotated[Integer, Field(ge=2, le=2)] | None = None
    """Number of copies in each failure domain, such as two in each of two zones. One if absent. Must be 2, the only
    number that Rook's CRUSH rules support."""
    sub_failure_domain: DnsLabel | None = None
    """Bucket type over which the copies of a failure domain are spread; host if absent."""


class ErasureCoded(Model):
    """Erasure coding: data chunks of every object, and coding chunks computed from them."""

    data_chunks: Annotated[Integer, Field(ge=2, le=32)]
    """Number of data chunks per object (k)."""
    coding_chunks: Annotated[Integer, Field(ge=1, le=32)]
    """Number of coding chunks per object (m): as many chunks may be lost."""
    stripe_unit: Literal["4Ki", "16Ki", "64Ki", "256Ki", "1Mi"] | None = None
    """How much consecutive data each data chunk holds before the next one follows. Ceph's default, usually 4Ki, if
    absent. Needs a Rook whose CephBlockPool has the field."""
    optimizations: Flag | None = None
    """Whether writes and reads touch only the chunks that they need (allow_ec_optimizations), for which all daemons
    need Ceph 20 or later. The cluster's default, usually false, if absent."""

    @property
    def stripe_unit_bytes(self) -> int | None:
        return None if self.stripe_unit is None else parse_quantity(self.stripe_unit)


class Pool(Choice):
    """The Ceph pool that is created for a run."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="!has(self.replicated) || !has(self.replicated.replicasPerFailureDomain) || "
            "self.failureDomain != self.replicated.?subFailureDomain.orValue('host')",
            holds=lambda pool: (
                not (layout := pool.replicated)
                or not layout.replicas_per_failure_domain
                or pool.failure_domain != (layout.sub_failure_domain or "host")
            ),
            message="must differ from subFailureDomain (host if absent), over which the copies of each failure domain "
            "are spread; set it to zone, for example",
            field_path=".failureDomain",
        ),
    )
    one_of: ClassVar[tuple[str, ...]] = ("replicated", "erasure_coded")

    replicated: Replicated | None = None
    erasure_coded: ErasureCoded | None = None
    failure_domain: DnsLabel = "host"
    """Bucket type of the CRUSH map over which copies or chunks are spread, such as host, rack or osd."""
    device_class: DnsLabel | None = None
    """CRUSH device class of the OSDs, such as ssd, hdd or nvme. All OSDs if absent."""
    crush_root: CephName | None = None
    """Root of the CRUSH map whose OSDs the pool uses. If absent, the root of the CephCluster, usually default."""
    compression_mode: Literal["none", "passive", "aggressive", "force"] | None = None
    """BlueStore's compression mode, with Ceph's names. The cluster's default if absent."""
    placement_groups: Annotated[Integer, Field(ge=1, le=32768)] | None = None
    """Number of placement groups. It is fixed, with the autoscaler off, because numbers are not comparable while
    placement groups split. If absent, Plimsoll chooses about 100 replicas of placement groups per OSD, rounded down to
    a power of two."""


class ExistingPool(Model):
    """An existing pool."""

    name: CephName
    """Name of the pool in Ceph."""
    data_pool: CephName | None = None
    """Pool of the images' data, if the pool itself has only their metadata, as with erasure coding."""


class FileSystem(Model):
    """The CephFS file system that is created for a run."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="has(self.metadataPool.replicated)",
            holds=lambda files: files.metadata_pool.replicated is not None,
            message="must be replicated, because Ceph keeps no metadata in erasure-coded pools; set replicated",
            field_path=".metadataPool",
        ),
        Rule(
            rule="has(self.dataPools[0].replicated)",
            holds=lambda files: files.data_pools[0].replicated is not None,
            message="must have a replicated pool first, because the first one also keeps the location of every file; "
            "add one before the erasure-coded pool",
            field_path=".dataPools",
        ),
    )

    metadata_pool: Pool
    """The replicated pool for directories and the attributes of files."""
    data_pools: Annotated[tuple[Pool, ...], Field(min_length=1, max_length=2)]
    """One or two pools, of which the last one contains the content of the files. The first one must be replicated; of
    two, it keeps only the location of every file, and the second one may be erasure-coded."""
    metadata_servers: Annotated[Integer, Field(ge=1, le=16)] = 1
    """Number of active metadata servers."""


class ExistingFileSystem(Model):
    """An existing CephFS file system."""

    name: Annotated[DnsLabel, Field(max_length=40)]
    """Name of the CephFilesystem."""
    metadata_pool: CephName | None = None
    """Name of its metadata pool in Ceph, "<name>-metadata" if absent."""
    data_pool: CephName | None = None
    """Name in Ceph of the data pool to measure, "<name>-data0" if absent."""


_MAPS_DEVICE = "{0}.access == 'PVC' && {0}.?mode.orValue('Filesystem') == 'Block'"
"""`Volume.maps_device` in CEL, of the path of a volume."""


class Volume(Model):
    """The volume of each client. Required for workloads that use a volume, such as fio and rbdBench."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="self.access == 'PVC' || self.?mode.orValue('Block') == 'Block'",
            holds=lambda volume: volume.access == "PVC" or volume.mode == "Block",
            message="must be Block, because access is LibRBD, which does not support file systems; remove the field",
            field_path=".mode",
        ),
        Rule(
            rule="self.access == 'LibRBD' || !self.rbdCache",
            holds=lambda volume: volume.access == "LibRBD" or not volume.rbd_cache,
            message="has no effect unless access is LibRBD; remove the field",
            field_path=".rbdCache",
        ),
        Rule(
            rule="self.sharing == 'PerClient' || self.access == 'PVC' && self.?mode.orValue('Filesystem') != 'Block'",
            holds=lambda volume: not volume.is_shared or volume.mode == "Filesystem",
            message="must be PerClient, because clients can share only files; remove the field, or use access PVC and "
            "mode Filesystem",
            field_path=".sharing",
        ),
    )

    size: Annotated[Size, Field(ge=2**20, le=2**50)]
    """Size of each client's volume, from 1Mi to 1Pi, a whole number of bytes. Choose it larger than the caches, unless
    you want to measure them. With sharing Shared, each client's part of the one volume, which is as large as all parts
    together."""
    sharing: Literal["PerClient", "Shared"] = "PerClient"
    """PerClient for a separate volume for each client; Shared for one volume that all clients mount (ReadWriteMany), as
    file systems such as CephFS and NFS allow. Shared needs mode Filesystem and access PVC."""
    # Before `mode`, whose default depends on it.
    access: Literal["PVC", "LibRBD"] = "PVC"
    """PVC for a PersistentVolumeClaim that the node maps or mounts, LibRBD for an RBD image that the client accesses in
    user space, without a driver of the node."""
    mode: Literal["Block", "Filesystem"] = Field(
        default_factory=lambda validated: "Block" if validated.get("access") == "LibRBD" else "Filesystem"
    )
    """Filesystem for a file in a mounted file system; Block for a raw device, whose clients run as root, which the Pod
    Security profile restricted forbids. If absent, Filesystem; with access LibRBD, Block."""
    rbd_cache: Flag = False
    """Whether librbd caches writes in the client's memory, which numbers then include. Only with access LibRBD."""

    @property
    def is_shared(self) -> bool:
        return self.sharing == "Shared"

    @property
    def maps_device(self) -> bool:
        """Whether clients open the raw device of a PVC, which only root may."""
        return self.access == "PVC" and self.mode == "Block"


_WITHOUT_TYPE = "must not start with client.; write the name after it"
_ON_FILES = "has(self.rook) && (has(self.rook.fileSystem) || has(self.rook.existingFileSystem))"


def _without_type(user: str) -> str:
    if user.startswith("client."):
        raise ValueError(_WITHOUT_TYPE)
    return user


CephUser = Annotated[
    CephName, AfterValidator(_without_type), Rule(rule="!self.startsWith('client.')", message=_WITHOUT_TYPE)
]
Monitor = Annotated[str, Field(pattern=names.MONITOR_PATTERN, max_length=253)]


class NamespacedName(Model):
    """A reference to an object in a namespace."""

    namespace: DnsLabel
    """Namespace of the CephCluster."""
    name: DnsLabel
    """Name of the CephCluster."""


class SecretReference(Model):
    """A Secret in the namespace of the run."""

    name: DnsLabel
    """Name of the Secret."""


class RookStorage(Choice):
    """A Rook-Ceph cluster, and exactly one of pool, existingPool, fileSystem and existingFileSystem.

    A StorageClass is created for this run, and removed afterwards according to cleanup.
    """

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule=(
                "!has(self.config) || self.config.all(one, self.config.exists_one(other, other.who == one.who && "
                "other.name == one.name))"
            ),
            holds=lambda rook: len({option.key for option in rook.config}) == len(rook.config),
            message="must not have an option twice; set each option of the same OSDs once",
            field_path=".config",
        ),
    )
    one_of: ClassVar[tuple[str, ...]] = ("pool", "existing_pool", "file_system", "existing_file_system")

    cluster: NamespacedName | None = None
    """The CephCluster object. The administrator decides which namespaces may use which cluster. If absent, the only one
    that the namespace of the run may use."""
    pool: Pool | None = None
    """The pool that is created for this run, and removed afterwards according to cleanup: exactly one of replicated and
    erasureCoded. With erasureCoded, a replicated pool for the metadata is created as well."""
    existing_pool: ExistingPool | None = None
    """An existing pool, which is never removed. Its CephBlockPool needs the annotation
    plimsoll.dev/allow-benchmarks."""
    file_system: FileSystem | None = None
    """The CephFS file system that is created for this run, and removed with its pools afterwards according to cleanup.
    Volumes are directories in it."""
    existing_file_system: ExistingFileSystem | None = None
    """An existing CephFS file system, which is never removed. Its CephFilesystem needs the annotation
    plimsoll.dev/allow-benchmarks."""
    config: Annotated[tuple[CephOption, ...], Field(max_length=16)] = ()
    """Options of the OSDs that are set in the cluster's configuration database while the run measures, and restored
    afterwards. They affect all users of the cluster."""

    @property
    def has_file_system(self) -> bool:
        return self.file_system is not None or self.existing_file_system is not None

    @property
    def used_cluster(self) -> NamespacedName:
        """The CephCluster of a run that the operator has read and accepted: such a run has one."""
        if self.cluster is None:
            raise ValueError("the run names no CephCluster, and its namespace has no default")
        return self.cluster


class KeyringReference(Model):
    """A Secret in the namespace of the run with a Ceph keyring file."""

    name: DnsLabel
    """Name of the Secret."""
    key: Annotated[str, Field(pattern=names.DATA_KEY_PATTERN, max_length=253)] = "keyring"
    """Key of the Ceph keyring file in the Secret."""


class CephStorage(Model):
    """Any Ceph cluster, without Rook."""

    monitors: Annotated[tuple[Monitor, ...], Field(min_length=1, max_length=15)]
    """Addresses of the monitors, such as 192.0.2.1:6789 or [v2:192.0.2.1:3300]."""
    user: CephUser
    """CephX user of clients and conductor, without "client."; the documentation lists the capabilities it needs."""
    keyring_secret: KeyringReference
    """Secret in the namespace of the run with the keyring of that user."""
    pool: ExistingPool
    """The existing pool for images and objects. It is never removed."""


class StorageClassStorage(Model):
    """Any StorageClass: NFS, iSCSI, local disks, a cloud's block storage."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the StorageClass."""


class OsdsAway(Model):
    """How many OSDs were away, and how."""

    count: Annotated[Integer, Field(ge=1, le=64)]
    """Number of OSDs."""
    action: Literal["Out", "Down"]
    """Whether they were out or down."""

    @property
    def text(self) -> str:
        """What held meanwhile: `1 OSD out`."""
        return f"{self.count} OSD{'' if self.count == 1 else 's'} {self.action.lower()}"


class DisturbedOsds(OsdsAway):
    """How many OSDs a disturbance takes away, and how."""

    count: Annotated[Integer, Field(ge=1, le=64)] = 1
    """Number of OSDs with data of the run, in one failure domain unless the pools stay active without several."""
    action: Literal["Out", "Down"]
    """Down marks them down and prevents them from coming up, as if their processes had ended. Out marks them out, so
    that their data moves to the others."""


class Storage(Choice):
    """The measured storage: exactly one of rook, ceph and storageClass, and the volumes on it.

    Tools on volumes and in Ceph require it, network tools do not.
    """

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="!has(self.ceph) || !has(self.volume) || self.volume.access == 'LibRBD'",
            holds=lambda storage: not storage.ceph or not storage.volume or storage.volume.access == "LibRBD",
            message="must be LibRBD, because a Ceph cluster without Rook has no StorageClass; set it to LibRBD",
            field_path=".volume.access",
        ),
        Rule(
            rule=f"!(has(self.storageClass) || {_ON_FILES}) || !has(self.volume) || self.volume.access == 'PVC'",
            holds=lambda it: not (it.storage_class or it.on_files) or not it.volume or it.volume.access == "PVC",
            message="must be PVC, because a StorageClass and a file system provide volumes by PVCs only; remove the "
            "field",
            field_path=".volume.access",
        ),
        Rule(
            rule=f"!({_ON_FILES}) || !has(self.volume) || !({_MAPS_DEVICE.format('self.volume')})",
            holds=lambda storage: not storage.on_files or not storage.volume or not storage.volume.maps_device,
            message="must be Filesystem, because spec.storage.rook has a file system; remove the field",
            field_path=".volume.mode",
        ),
        Rule(
            rule=f"!has(self.rook) || {_ON_FILES} || !has(self.volume) || self.volume.sharing == 'PerClient'",
            holds=lambda it: not it.rook or it.on_files or not it.volume or not it.volume.is_shared,
            message="must be PerClient, because pods cannot share an RBD image; remove the field, or use a file system "
            "or another StorageClass that supports ReadWriteMany",
            field_path=".volume.sharing",
        ),
    )
    one_of: ClassVar[tuple[str, ...]] = ("rook", "ceph", "storage_class")

    rook: RookStorage | None = None
    ceph: CephStorage | None = None
    storage_class: StorageClassStorage | None = None
    volume: Volume | None = None

    @property
    def on_files(self) -> bool:
        return self.rook is not None and self.rook.has_file_system


class DataContent(Model):
    """How far the data that clients write can be compressed and deduplicated. Random data, by default: not at all."""

    compress_percent: int = 0  # part of each 512 bytes that is constant
    dedupe_percent: int = 0  # part of the writes that repeat an earlier one


RANDOM_DATA = DataContent()


class Precondition(Model):
    """Random overwrites of the prefilled data set, so that the storage is measured in a used state."""

    block_size: Annotated[BlockSize, Field(ge=512, le=64 * 2**20, multiple_of=512)] = 65536
    """Size of each write, from 512 to 64Mi, a multiple of 512. Write bytes, whole Ki (at most 9999Ki) or whole Mi."""
    seconds: Annotated[Integer, Field(ge=1, le=24 * 3600)] = 600
    """Duration of the overwriting by each client."""


class Prepare(Model):
    """Preparation of every volume before the first trial, in this order: discard, prefill, precondition, settle."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="self.prefill || !has(self.precondition)",
            holds=lambda prepare: prepare.prefill or prepare.precondition is None,
            message="must be true, because precondition overwrites prefilled data; set it to true, or remove "
            "precondition",
            field_path=".prefill",
        ),
        Rule(
            rule="!has(self.perTrial) || self.prefill || self.discard",
            holds=lambda prepare: prepare.per_trial is None or prepare.prefill or prepare.discard,
            message="must be absent unless prefill or discard is true, because nothing else renews the data set; set "
            "one of them to true, or remove perTrial",
            field_path=".perTrial",
        ),
    )

    prefill: Flag = True
    """Write the whole data set once, because storage answers reads of unwritten extents without any I/O."""
    precondition: Precondition | None = None
    """Overwrite the data set at random after the prefill, to measure storage in a used state. Not done if absent."""
    discard: Flag = True
    """Discard the volume before it is written, if it supports that."""
    drop_caches: Flag = False
    """Drop the page caches, dentries and inodes of the clients' nodes before every trial. Requires the administrator's
    permission; in local mode, root."""
    settle_seconds: Annotated[Integer, Field(ge=0, le=24 * 3600)] = 10
    """Time to wait after that, until background work of the storage is done."""
    fill_percent: Annotated[Integer, Field(ge=1, le=100)] = 80
    """Part of a file system that the data set uses; the file system needs some space itself."""
    per_trial: Literal["NewDataSet"] | None = None
    """With NewDataSet, every attempt begins with this whole preparation, so that no trial depends on what earlier ones
    wrote. Requires prefill or discard; without prefill, the storage has to support discard. Done once, before the first
    trial, if absent."""
