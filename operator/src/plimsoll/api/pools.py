"""Ceph pools: those that are created for a run, and existing ones."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from plimsoll.api.model import Integer, Model
from plimsoll.api.names import CEPH_NAME_PATTERN, DNS_LABEL_PATTERN
from plimsoll.api.schema import Rule

_ONE_LAYOUT = "must have exactly one of replicated and erasureCoded"

DnsLabel = Annotated[str, Field(pattern=DNS_LABEL_PATTERN, max_length=63)]
CephName = Annotated[str, Field(pattern=CEPH_NAME_PATTERN, max_length=128)]


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
        crush_root: Root of the CRUSH map whose OSDs the pool uses. If absent, the root of the CephCluster, usually
            default.
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
    one_of: ClassVar[tuple[str, ...]] = ("replicated", "erasure_coded")

    replicated: Replicated | None = None
    erasure_coded: ErasureCoded | None = None
    failure_domain: DnsLabel = "host"
    device_class: DnsLabel | None = None
    crush_root: CephName | None = None
    compression_mode: Literal["none", "passive", "aggressive", "force"] | None = None
    placement_groups: Annotated[Integer, Field(ge=1, le=32768)] | None = None

    @model_validator(mode="after")
    def _one_layout(self) -> Self:
        if not self.has_one_choice:
            raise ValueError(_ONE_LAYOUT)
        return self


class ExistingPool(Model):
    """An existing pool.

    Attributes:
        name: Name of the pool in Ceph.
        data_pool: Pool of the images' data, if the pool itself has only their metadata, as with erasure coding.

    """

    name: CephName
    data_pool: CephName | None = None
