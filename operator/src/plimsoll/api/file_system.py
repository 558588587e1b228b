"""CephFS file systems: those that are created for a run, and existing ones."""

from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from plimsoll.api.errors import Problem, SpecError
from plimsoll.api.model import Integer, Model
from plimsoll.api.pools import CephName, DnsLabel, Pool
from plimsoll.api.schema import Rule

_REPLICATED_METADATA = "must be replicated, because Ceph keeps no metadata in erasure-coded pools; set replicated"
_REPLICATED_DEFAULT = (
    "must have a replicated pool first, because the first one also keeps the location of every file; add one before "
    "the erasure-coded pool"
)
_MAX_FILE_SYSTEM_NAME = 40


class FileSystem(Model):
    """The CephFS file system that is created for a run.

    Attributes:
        metadata_pool: The replicated pool for directories and the attributes of files.
        data_pools: One or two pools, of which the last one contains the content of the files. The first one must be
            replicated; of two, it keeps only the location of every file, and the second one may be erasure-coded.
        metadata_servers: Number of active metadata servers.

    """

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="has(self.metadataPool.replicated)",
            message=_REPLICATED_METADATA,
            field_path=".metadataPool",
        ),
        Rule(
            rule="has(self.dataPools[0].replicated)",
            message=_REPLICATED_DEFAULT,
            field_path=".dataPools",
        ),
    )

    metadata_pool: Pool
    data_pools: Annotated[tuple[Pool, ...], Field(min_length=1, max_length=2)]
    metadata_servers: Annotated[Integer, Field(ge=1, le=16)] = 1

    @model_validator(mode="after")
    def _check_replicated(self) -> Self:
        if self.metadata_pool.replicated is None:
            raise SpecError([Problem(field="metadataPool", remedy=_REPLICATED_METADATA)])
        if self.data_pools[0].replicated is None:
            raise SpecError([Problem(field="dataPools", remedy=_REPLICATED_DEFAULT)])
        return self


class ExistingFileSystem(Model):
    """An existing CephFS file system.

    Attributes:
        name: Name of the CephFilesystem.
        metadata_pool: Name of its metadata pool in Ceph, "<name>-metadata" if absent.
        data_pool: Name in Ceph of the data pool to measure, "<name>-data0" if absent.

    """

    name: Annotated[DnsLabel, Field(max_length=_MAX_FILE_SYSTEM_NAME)]
    metadata_pool: CephName | None = None
    data_pool: CephName | None = None
