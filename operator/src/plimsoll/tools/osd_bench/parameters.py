"""What can be asked of `ceph tell osd.* bench`."""

from typing import Annotated, ClassVar

from pydantic import Field, ValidationInfo, field_validator

from plimsoll.api.quantity import Size, format_quantity
from plimsoll.api.storage import KeyringReference
from plimsoll.tools.base import ToolParameters

MIN_BLOCK_BYTES = 4096
MAX_BLOCK_BYTES = 64 * 2**20
"""Ceph's own limit (`osd_bench_max_block_size`)."""
MAX_TOTAL_BYTES = 16 * 2**30
DEFAULT_TOTAL_BYTES = 2**30

SMALL_BLOCK_BYTES = 2**20
"""Blocks below it are small to Ceph."""

_SMALL_BLOCKS = 100 * 30
"""Ceph's own limit for blocks below 1 MiB: `osd_bench_small_size_max_iops` times `osd_bench_duration`."""


class OsdBenchParameters(ToolParameters):
    """One point of an `osdBench` workload.

    Attributes:
        block_size: bytes of every write.
        total_size: bytes that each OSD writes, rounded down to whole blocks. If absent, 1 GiB, and for blocks below
            1 MiB no more than Ceph allows unless its configuration was changed: 3000 blocks.
        user: CephX user of the keyring that an administrator provides, without `client.`.
        keyring_secret: where that keyring is; the same for all workloads of a run.

    """

    axes: ClassVar[frozenset[str]] = frozenset({"blockSize"})
    credentials: ClassVar[frozenset[str]] = frozenset({"user", "keyringSecret"})

    block_size: Annotated[Size, Field(ge=MIN_BLOCK_BYTES, le=MAX_BLOCK_BYTES, multiple_of=512)] = 4 * 2**20
    total_size: Annotated[Size, Field(ge=MIN_BLOCK_BYTES, le=MAX_TOTAL_BYTES)] | None = None
    user: Annotated[str, Field(pattern=r"^[A-Za-z0-9][-._A-Za-z0-9]*$", max_length=253)] = "admin"
    keyring_secret: KeyringReference

    @field_validator("total_size")
    @classmethod
    def _at_least_one_block(cls, value: int | None, info: ValidationInfo) -> int | None:
        block = info.data.get("block_size")
        if value is not None and block is not None and value < block:
            raise ValueError(f"is less than one block of {format_quantity(block)}; use more, or a smaller blockSize")
        return value

    @property
    def total_bytes(self) -> int:
        """Bytes that each OSD writes: a whole number of blocks."""
        allowed = _SMALL_BLOCKS * self.block_size if self.is_small else DEFAULT_TOTAL_BYTES
        return (self.total_size or min(allowed, DEFAULT_TOTAL_BYTES)) // self.block_size * self.block_size

    @property
    def is_small(self) -> bool:
        """Whether Ceph counts the blocks as small."""
        return self.block_size < SMALL_BLOCK_BYTES

    def label(self) -> str:
        """Return the parameters as people say them: `osd write 4Mi, 1Gi each`."""
        return f"osd write {format_quantity(self.block_size)}, {format_quantity(self.total_bytes)} each"
