"""What tools do their I/O against."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar


class TargetKind(StrEnum):
    """The target of a tool's I/O."""

    VOLUME = "volume"  # the client's data set: a file, a block device or an RBD image
    IMAGE = "image"  # the same, but only an RBD image
    POOL = "pool"
    PEER = "peer"  # the clients that serve this one
    OSDS = "osds"
    API = "api"  # the Kubernetes API

    @property
    def is_data_set(self) -> bool:
        """Whether it is each client's own data set, which is empty until the prefill."""
        return self in (TargetKind.VOLUME, TargetKind.IMAGE)

    @property
    def is_of_ceph(self) -> bool:
        """Whether clients talk to a Ceph cluster directly."""
        return self in (TargetKind.IMAGE, TargetKind.POOL, TargetKind.OSDS)


class VolumeKind(StrEnum):
    """How a volume appears to a client."""

    FILE = "file"
    DEVICE = "device"


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeTarget:
    """A client's data set: `size` bytes from `offset` of a file or block device, both multiples of 1 MiB."""

    kind: VolumeKind
    path: str
    size: int
    offset: int = 0
    shared: bool = False  # whether it is part of a volume that all clients mount

    @property
    def name(self) -> str:
        return self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageTarget:
    """The client's RBD image, accessed through librbd."""

    pool: str
    image: str
    user: str  # CephX user, without `client.`
    size: int  # a multiple of 1 MiB
    cache: bool = False  # whether librbd's writeback cache is on

    @property
    def name(self) -> str:
        return f"{self.pool}/{self.image}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTarget:
    """The client's own part of a RADOS pool; the namespace is also the run name of its objects."""

    pool: str
    namespace: str
    user: str

    @property
    def name(self) -> str:
        return f"{self.pool}/{self.namespace}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OsdsTarget:
    """All OSDs of a cluster; `keyring` is the path of an administrator's keyring."""

    name: ClassVar[str] = "all OSDs"
    keyring: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerTarget:
    """The addresses of the clients that serve this one, or that it serves."""

    addresses: Mapping[int, str]

    @property
    def name(self) -> str:
        return ", ".join(f"client {number}" for number in self.addresses)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiTarget:
    """The Kubernetes API, with the rights of the pod's ServiceAccount."""

    name: ClassVar[str] = "the Kubernetes API"


DataSet = VolumeTarget | ImageTarget  # what the prefill writes and a measurement reads or writes
Target = VolumeTarget | ImageTarget | PoolTarget | OsdsTarget | PeerTarget | ApiTarget

NO_VOLUME = "!has(self.storage) || !has(self.storage.volume)"
# Of a run that has a volume.
IS_BLOCK = "(self.storage.volume.?mode.orValue('') == 'Block' || self.storage.volume.access == 'LibRBD')"
