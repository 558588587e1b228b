"""Drops the caches of this machine (`proc_sys_vm(5)`); local agents and the helper of a node use it."""

import os
from datetime import UTC, datetime
from pathlib import Path

from plimsoll.api.status import format_time
from plimsoll.api.surroundings import NodeCaches

SWITCH = Path("/proc/sys/vm/drop_caches")
"""Root may write it, without any capability."""

MEMINFO = Path("/proc/meminfo")
_DROPPED_FIELDS = frozenset({"Buffers", "Cached", "SReclaimable"})
_KIBIBYTE = 1024


def drop_caches(node: str, switch: Path = SWITCH, meminfo: Path = MEMINFO) -> NodeCaches:
    """Write all dirty data, drop the caches, and return their sizes; OSError if this process is not allowed to.

    Takes as long as the storage needs for the dirty data, which cannot be dropped.
    """
    os.sync()
    before = cached_bytes(meminfo.read_text())
    # The page cache, dentries and inodes.
    switch.write_text("3\n")
    after = cached_bytes(meminfo.read_text())
    now = format_time(datetime.now(UTC))
    return NodeCaches(node=node, dropped_at=now, before_bytes=before, after_bytes=after)


def may_drop_caches(switch: Path = SWITCH) -> bool:
    """Whether this process may drop the caches of its machine."""
    return os.access(switch, os.W_OK)


def cached_bytes(meminfo: str) -> int:
    """Return the bytes of page cache, buffers and reclaimable kernel memory in `/proc/meminfo`.

    ValueError: a field is missing or is not a number.
    """
    fields = dict(line.split(":", 1) for line in meminfo.splitlines() if ":" in line)
    missing = sorted(_DROPPED_FIELDS - fields.keys())
    if missing:
        message = f"/proc/meminfo has no {', '.join(missing)}"
        raise ValueError(message)
    return sum(int(fields[name].removesuffix("kB")) for name in _DROPPED_FIELDS) * _KIBIBYTE
