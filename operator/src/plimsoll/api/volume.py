"""The volumes of a run's clients."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from plimsoll.api.errors import Problem, SpecError
from plimsoll.api.model import Flag, Model
from plimsoll.api.quantity import Size
from plimsoll.api.schema import Rule

_BLOCK_ONLY = "must be Block, because access is LibRBD, which does not support file systems; remove the field"
_CACHE_OF_LIBRBD = "has no effect unless access is LibRBD; remove the field"
_SHARED_FILES_ONLY = (
    "must be Filesystem, because sharing is Shared, and clients can share only files; set it to Filesystem, or remove "
    "sharing"
)
_SHARED_PVC_ONLY = (
    "must be PerClient, because access is LibRBD, and only one client can open an image; remove the field, or use "
    "access PVC"
)
_MIN_VOLUME_BYTES, _MAX_VOLUME_BYTES = 2**20, 2**50

Mode = Literal["Block", "Filesystem"]
Sharing = Literal["PerClient", "Shared"]


def _default_mode(known: Mapping[str, Any]) -> Mode:
    return "Filesystem" if known.get("sharing") == "Shared" else "Block"


class Volume(Model):
    """The volume of each client. Required for workloads that use a volume, such as fio and rbdBench.

    Attributes:
        size: Size of each client's volume, from 1Mi to 1Pi, a whole number of bytes. Choose it larger than the caches,
            unless you want to measure them. With sharing Shared, each client's part of the one volume, which is as
            large as all parts together.
        sharing: PerClient for a volume of each client's own; Shared for one volume that all clients mount
            (ReadWriteMany), as file systems such as CephFS and NFS allow. Shared needs mode Filesystem and access PVC.
        mode: Block for a raw device, Filesystem for files in a mounted file system. If absent, Filesystem on a file
            system of Rook and with sharing Shared, and Block otherwise.
        access: PVC for a PersistentVolumeClaim that the node maps or mounts, LibRBD for an RBD image that the client
            accesses in user space, without a driver of the node.
        rbd_cache: Whether librbd caches writes in the client's memory. Only with access LibRBD. With true, the numbers
            include the speed of that cache.

    """

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="self.access == 'PVC' || self.?mode.orValue('Block') == 'Block'",
            message=_BLOCK_ONLY,
            field_path=".mode",
        ),
        Rule(
            rule="self.access == 'LibRBD' || !self.rbdCache",
            message=_CACHE_OF_LIBRBD,
            field_path=".rbdCache",
        ),
        Rule(
            rule="self.sharing == 'PerClient' || self.access == 'PVC'",
            message=_SHARED_PVC_ONLY,
            field_path=".sharing",
        ),
        Rule(
            rule="self.sharing == 'PerClient' || self.?mode.orValue('Filesystem') == 'Filesystem'",
            message=_SHARED_FILES_ONLY,
            field_path=".mode",
        ),
    )

    size: Annotated[Size, Field(ge=_MIN_VOLUME_BYTES, le=_MAX_VOLUME_BYTES)]
    # Before `mode`, whose default depends on it.
    sharing: Sharing = "PerClient"
    mode: Mode = Field(default_factory=_default_mode)
    access: Literal["PVC", "LibRBD"] = "PVC"
    rbd_cache: Flag = False

    @property
    def is_shared(self) -> bool:
        """Whether all clients mount the same volume."""
        return self.sharing == "Shared"

    def claimed_bytes(self, clients: int) -> int:
        """Return the size of one PVC: that of a client's own volume, or of the one volume for all clients."""
        return self.size * clients if self.is_shared else self.size

    @model_validator(mode="after")
    def _check_access(self) -> Self:
        if self.is_shared and self.access != "PVC":
            raise SpecError([Problem(field="sharing", value=self.sharing, remedy=_SHARED_PVC_ONLY)])
        if self.is_shared and self.mode != "Filesystem":
            raise SpecError([Problem(field="mode", value=self.mode, remedy=_SHARED_FILES_ONLY)])
        if self.access == "LibRBD" and self.mode != "Block":
            raise SpecError([Problem(field="mode", value=self.mode, remedy=_BLOCK_ONLY)])
        if self.access == "PVC" and self.rbd_cache:
            raise SpecError([Problem(field="rbdCache", value="true", remedy=_CACHE_OF_LIBRBD)])
        return self
