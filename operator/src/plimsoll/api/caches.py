"""The caches that were dropped before a trial; parts of a `BenchmarkResult`.

Agents and helpers send some of these as they are, so every field is bounded.
"""

from typing import Annotated

from pydantic import Field

from plimsoll.api.model import Model

MAX_LISTED = 64
"""Nodes and OSDs that a result lists; of more it has the number."""

MAX_REASON = 512

_Number = Annotated[int, Field(ge=0, lt=2**63)]
_Osd = Annotated[int, Field(ge=0, lt=2**31, description="Number of an OSD.")]


class NodeCaches(Model):
    """The caches of one node, which were dropped: page cache, dentries and inodes.

    Attributes:
        node: Name of the node.
        dropped_at: When they were dropped, by the clock of the node.
        before_bytes: Bytes of page cache, buffers and reclaimable kernel memory before.
        after_bytes: The same afterwards; memory file systems and mapped programs remain.

    """

    node: Annotated[str, Field(max_length=253)]
    dropped_at: Annotated[str, Field(max_length=64)]
    before_bytes: _Number
    after_bytes: _Number


class OsdCaches(Model):
    """The caches of the OSDs.

    Attributes:
        count: Number of OSDs that dropped their caches.
        osds: Numbers of the first 64 of them.
        reason: Why they were not dropped; absent if they were.

    """

    count: _Number
    osds: Annotated[tuple[_Osd, ...], Field(max_length=MAX_LISTED)] = ()
    reason: Annotated[str, Field(max_length=MAX_REASON)] | None = None


class DroppedCaches(Model):
    """The caches that were dropped before a trial.

    Attributes:
        node_count: Number of nodes whose caches were dropped.
        nodes: The first 64 of them; empty for an attempt that was repeated.
        osds: Caches of the OSDs; absent if the storage is not known to be Ceph.

    """

    node_count: _Number
    nodes: Annotated[tuple[NodeCaches, ...], Field(max_length=MAX_LISTED)] = ()
    osds: OsdCaches | None = None
