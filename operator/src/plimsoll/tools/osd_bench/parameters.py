"""The parameters of `ceph tell osd.* bench`."""

from typing import Annotated, ClassVar

from pydantic import Field, ValidationInfo, field_validator

from plimsoll.api.quantity import Size, format_quantity
from plimsoll.api.schema import Rule, ServerOnly
from plimsoll.api.storage import KeyringReference
from plimsoll.tools.base import ToolParameters

MIN_BLOCK_BYTES = 4096
MAX_BLOCK_BYTES = 64 * 2**20
"""Ceph's own limit (`osd_bench_max_block_size`)."""
MAX_TOTAL_BYTES = 16 * 2**30
DEFAULT_TOTAL_BYTES = 2**30

SMALL_BLOCK_BYTES = 2**20
"""Ceph limits the number of smaller blocks."""

_SMALL_BLOCKS = 100 * 30
"""Ceph's own limit for blocks below 1 MiB: `osd_bench_small_size_max_iops` times `osd_bench_duration`."""

_BLOCK_PATTERN = r"^(([4-9]|[1-9][0-9]{1,3})Ki|([1-9]|[1-5][0-9]|6[0-4])Mi)$"
_TOTAL_PATTERN = r"^(([4-9]|[1-9][0-9]{1,3})Ki|[1-9][0-9]{0,3}Mi|([1-9]|1[0-6])Gi)$"
"""Quantities within the bounds, for the API server, which compares only numbers."""


class OsdBenchParameters(ToolParameters):
    """ceph tell osd.N bench, one OSD after the other: the speed of a disk with its OSD alone.

    Needs the key of an administrator of Ceph, and the operator's permission.

    Attributes:
        block_size: Axis: bytes of every write, from 4Ki to 64Mi, a multiple of 512. Write a number of bytes, or whole
            Ki (at most 9999Ki) or Mi.
        total_size: Bytes that each OSD writes, from 4Ki to 16Gi, at least one block. Write a number of bytes, or whole
            Ki or Mi (at most 9999) or Gi. If absent, 1Gi; for blocks below 1Mi at most 3000 blocks, which is Ceph's
            default limit.
        user: Name of the keyring's CephX user, without "client.".
        keyring_secret: Secret in the run's namespace with the keyring of that user, the same in all workloads of the
            run.

    """

    axes: ClassVar[frozenset[str]] = frozenset({"blockSize"})
    size_axis: ClassVar[str] = "blockSize"
    credentials: ClassVar[frozenset[str]] = frozenset({"user", "keyringSecret"})
    workload_rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="!has(self.osdBench) || !has(self.clients) || self.clients == [1]",
            message="does not apply to osdBench, which one client runs for all; leave it out",
            field_path=".clients",
        ),
    )
    run_rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule=(
                "self.workloads.all(w, !has(w.osdBench) || self.workloads.all(other, !has(other.osdBench) || "
                "other.osdBench.keyringSecret == w.osdBench.keyringSecret))"
            ),
            message="must name the same keyringSecret in every osdBench; split the run, or put one Secret in all",
            field_path=".workloads",
        ),
    )

    block_size: Annotated[
        Size,
        Field(
            ge=MIN_BLOCK_BYTES,
            le=MAX_BLOCK_BYTES,
            multiple_of=512,
            description="A number of bytes such as 4096, or a quantity such as 4Ki or 4Mi.",
        ),
        ServerOnly(pattern=_BLOCK_PATTERN),
    ] = 4 * 2**20
    total_size: (
        Annotated[Size, Field(ge=MIN_BLOCK_BYTES, le=MAX_TOTAL_BYTES), ServerOnly(pattern=_TOTAL_PATTERN)] | None
    ) = None
    user: Annotated[str, Field(pattern=r"^[A-Za-z0-9][-._A-Za-z0-9]*$", max_length=253)] = "admin"
    keyring_secret: KeyringReference

    @field_validator("total_size")
    @classmethod
    def _check_holds_one_block(cls, value: int | None, info: ValidationInfo) -> int | None:
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
    def administrator_keyring(self) -> KeyringReference:
        """The Secret with the administrator's key."""
        return self.keyring_secret

    @property
    def is_small(self) -> bool:
        """Whether Ceph limits the number of such blocks."""
        return self.block_size < SMALL_BLOCK_BYTES

    def label(self) -> str:
        """Return a short description: `osd write 4Mi, 1Gi each`."""
        return f"osd write {format_quantity(self.block_size)}, {format_quantity(self.total_bytes)} each"
