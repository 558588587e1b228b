"""The parameters of bonnie++."""

from enum import StrEnum
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from plimsoll.api.errors import Problem, SpecError
from plimsoll.api.model import Flag, Integer
from plimsoll.api.quantity import BlockSize, Size, format_quantity, parse_quantity
from plimsoll.api.schema import Rule, ServerOnly
from plimsoll.tools.base import ToolParameters
from plimsoll.tools.volume_rules import IS_BLOCK, NO_VOLUME

MEBIBYTE = 2**20
FILES_UNIT = 1024
"""bonnie++ counts files in multiples of this."""

_MAX_BYTES = 2**44
_CHARACTERS_BYTES = 3 * MEBIBYTE
"""The default of bonnie++ 2.00a, as observed; its manual says 20 MB."""

_SIZE_PATTERN = r"^([1-9][0-9]{0,3}(Mi|Gi)|([1-9]|1[0-6])Ti)$"

_NO_DIRECT_CHARACTERS = (
    "must be false with directIo, because direct I/O cannot transfer single bytes; set characters to false"
)
_NEEDS_FILES = "has no effect with files 0; remove it, or raise files"
_NEEDS_MAX = "must be absent without maxFileSize; remove it, or set maxFileSize too"

ON_FILES = (
    "must be Filesystem, because bonnie works on files and directories; set it to Filesystem, with access PVC, or "
    "leave out the workloads with bonnie"
)


class ChunkSize(StrEnum):
    """Bytes of every operation on the large file: a power of two."""

    KI_1 = "1Ki"
    KI_2 = "2Ki"
    KI_4 = "4Ki"
    KI_8 = "8Ki"
    KI_16 = "16Ki"
    KI_32 = "32Ki"
    KI_64 = "64Ki"
    KI_128 = "128Ki"
    KI_256 = "256Ki"
    KI_512 = "512Ki"
    MI_1 = "1Mi"

    @property
    def bytes(self) -> int:
        """The size in bytes."""
        return parse_quantity(self.value)


FileSize = Annotated[BlockSize, Field(ge=1, le=64 * MEBIBYTE)]


class BonnieParameters(ToolParameters):
    """bonnie++ in a directory of each client's file system: one phase after the other.

    They are writing, rewriting and reading a large file, random seeks in it, and creating, reading and deleting many
    small files. runtimeSeconds is how long you expect all of that to take; a trial that takes far longer is ended.
    Needs a volume of mode Filesystem. The clients begin at the same time, but not each phase.

    Attributes:
        size: Bytes of the large file, whole Mi, from 1Mi to 16Ti, not more than the data set. If absent, the whole data
            set. With less than twice the memory that may hold it, the result is Suspect.
        chunk_size: Axis: bytes of every operation on the large file.
        seeks: Number of random seeks; each reads one chunk, and every tenth also writes it.
        seek_processes: Processes that seek at the same time.
        characters: Whether to write and read the first 3Mi also one byte at a time, which measures the client's CPU.
        direct_io: Whether to write the large file with direct I/O; bonnie++ rewrites and reads it through the page
            cache all the same. Requires characters false.
        sync: Whether to call fsync after every created file, and after every write of the seeks.
        files: Number of small files, in multiples of 1024; 0 leaves out all their phases.
        max_file_size: Maximum size of a small file, up to 64Mi. If absent, they are empty.
        min_file_size: Minimum size of a small file. If absent, 0.
        directories: Number of directories that contain the small files.

    """

    axes: ClassVar[frozenset[str]] = frozenset({"chunkSize"})
    size_axis: ClassVar[str] = "chunkSize"
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(rule="!self.directIo || !self.characters", message=_NO_DIRECT_CHARACTERS, field_path=".characters"),
        Rule(
            rule="self.files > 0 || !has(self.maxFileSize)",
            message=_NEEDS_FILES,
            field_path=".maxFileSize",
        ),
        Rule(
            rule="has(self.maxFileSize) || !has(self.minFileSize)",
            message=_NEEDS_MAX,
            field_path=".minFileSize",
        ),
    )
    run_rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule=f"{NO_VOLUME} || !{IS_BLOCK} || !self.workloads.exists(w, has(w.bonnie))",
            message=ON_FILES,
            field_path=".storage.volume.mode",
        ),
    )

    size: (
        Annotated[
            Size,
            Field(
                ge=MEBIBYTE,
                le=_MAX_BYTES,
                multiple_of=MEBIBYTE,
                description="A number of bytes such as 1048576, or a quantity such as 64Mi or 32Gi.",
            ),
            ServerOnly(pattern=_SIZE_PATTERN),
        ]
        | None
    ) = None
    chunk_size: Annotated[ChunkSize, Field(description="A power of two.")] = ChunkSize.KI_8
    seeks: Annotated[Integer, Field(ge=1, le=10_000_000)] = 8192
    seek_processes: Annotated[Integer, Field(ge=1, le=64)] = 5
    characters: Flag = True
    direct_io: Flag = False
    sync: Flag = False
    files: Annotated[Integer, Field(ge=0, le=1024)] = 16
    max_file_size: FileSize | None = None
    min_file_size: FileSize | None = None
    directories: Annotated[Integer, Field(ge=1, le=1024)] = 1

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        if self.direct_io and self.characters:
            raise SpecError([Problem(field="characters", value="true", remedy=_NO_DIRECT_CHARACTERS)])
        if self.max_file_size is not None and not self.files:
            raise SpecError([Problem(field="maxFileSize", remedy=_NEEDS_FILES)])
        if self.min_file_size is not None:
            self._check_least(self.min_file_size)
        return self

    def _check_least(self, least: int) -> None:
        if self.max_file_size is None:
            raise SpecError([Problem(field="minFileSize", value=format_quantity(least), remedy=_NEEDS_MAX)])
        if least > self.max_file_size:
            remedy = f"exceeds maxFileSize {format_quantity(self.max_file_size)}; lower it"
            raise SpecError([Problem(field="minFileSize", value=format_quantity(least), remedy=remedy)])

    def character_bytes(self, size: int) -> int:
        """Return how many bytes of a large file are also transferred one at a time."""
        return min(size, _CHARACTERS_BYTES) if self.characters else 0

    @property
    def file_count(self) -> int:
        """The number of small files."""
        return self.files * FILES_UNIT

    def label(self) -> str:
        """Return a short description: `bonnie++ 32Gi by 8Ki, 16384 files`."""
        size = f" {format_quantity(self.size)}" if self.size else ""
        files = f"{self.file_count} files" if self.files else "no files"
        return f"bonnie++{size} by {self.chunk_size}, {files}"
