"""Drops the caches of this node before a trial: through its helper, or as root in local mode (`proc_sys_vm(5)`)."""

import asyncio
import os
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import aiohttp
from pydantic import ValidationError

from plimsoll.agent.process import PreparationError, Programs
from plimsoll.api.json_reader import printable
from plimsoll.api.status import format_time
from plimsoll.api.surroundings import NodeCaches
from plimsoll.protocol.helpers import DROP_PATH, MAX_ANSWER_BYTES, CacheDrop, DropRequest, HelperRefusal
from plimsoll.protocol.messages import DropCachesOrder

SWITCH = Path("/proc/sys/vm/drop_caches")  # root may write it, without any capability
MEMINFO = Path("/proc/meminfo")
_DROPPED_FIELDS = frozenset({"Buffers", "Cached", "SReclaimable"})
_KIBIBYTE = 1024
_OK = 200
# An OSD or the API server does not answer just now, or it is another one's turn.
_TRANSIENT = frozenset({429, 502, 503})
_RETRY_SECONDS = 1.0


class CacheDropper:
    """Drops the caches of one node, if the assignment of its agent allows that."""

    def __init__(self, node: str, *, allowed: bool = True, helper: str | None = None) -> None:
        """Ask the helper with that URL; without one, the agent does it itself, which requires root."""
        self._node = node
        self._allowed = allowed
        self._helper = helper

    async def drop(self, order: DropCachesOrder, programs: Programs) -> CacheDrop:
        """Drop the caches within the order's time limit; PreparationError with the cause if they were not dropped."""
        if not self._allowed:
            raise PreparationError("this agent's assignment has no caches, so it cannot drop them")
        if self._helper is not None:
            return await _drop_by_helper(self._helper, order)
        try:
            drop = partial(drop_caches, self._node)
            return CacheDrop(node=await programs.in_thread("the dropping of the caches", drop, order.limit_seconds))
        except (OSError, ValueError) as error:
            remedy = f"run as root, where {SWITCH} is writable"
            raise PreparationError(f"cannot drop the caches: {error}; {remedy}") from error


async def _drop_by_helper(url: str, order: DropCachesOrder) -> CacheDrop:
    """Ask the helper of this node, again while it cannot drop the caches at present."""
    deadline = time.monotonic() + order.limit_seconds
    body = DropRequest(fsid=order.fsid).model_dump_json(exclude_none=True)
    headers = {"Authorization": f"Bearer {order.token}", "Content-Type": "application/json"}
    async with aiohttp.ClientSession(url) as session:
        while True:
            timeout = aiohttp.ClientTimeout(total=max(_RETRY_SECONDS, deadline - time.monotonic()))
            try:
                async with session.post(DROP_PATH, data=body, headers=headers, timeout=timeout) as response:
                    text = (await response.content.read(MAX_ANSWER_BYTES)).decode(errors="replace")
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                # Its pod may be starting, or be replaced.
                what = str(error) or type(error).__name__
                problem = f"no answer from the helper of this node ({what}); check its pod"
            else:
                if response.status == _OK:
                    try:
                        return CacheDrop.model_validate_json(text)
                    except ValidationError as error:
                        message = "the helper's answer is not valid; use the same version for the helper and the run"
                        raise PreparationError(message) from error
                try:
                    problem = printable(HelperRefusal.model_validate_json(text).message)
                except ValidationError:
                    problem = printable(text) or "no message"
                if response.status not in _TRANSIENT:
                    raise PreparationError(f"the helper did not drop the caches (status {response.status}): {problem}")
            if time.monotonic() + _RETRY_SECONDS >= deadline:
                limit = f"{order.limit_seconds:g} s"
                raise PreparationError(f"the helper did not drop the caches within {limit}: {problem}")
            await asyncio.sleep(_RETRY_SECONDS)


def drop_caches(node: str, switch: Path = SWITCH, meminfo: Path = MEMINFO) -> NodeCaches:
    """Write all dirty data, however long it takes, drop the caches, and return their sizes; OSError if not allowed."""
    os.sync()
    before = cached_bytes(meminfo.read_text())
    # The page cache, dentries and inodes.
    switch.write_text("3\n")
    after = cached_bytes(meminfo.read_text())
    now = format_time(datetime.now(UTC))
    return NodeCaches(node=node, dropped_at=now, before_bytes=before, after_bytes=after)


def may_drop_caches(switch: Path = SWITCH) -> bool:
    return os.access(switch, os.W_OK)


def cached_bytes(meminfo: str) -> int:
    """Return the bytes of page cache, buffers and reclaimable kernel memory; ValueError for a missing field."""
    fields = dict(line.split(":", 1) for line in meminfo.splitlines() if ":" in line)
    missing = sorted(_DROPPED_FIELDS - fields.keys())
    if missing:
        raise ValueError(f"/proc/meminfo has no {', '.join(missing)}")
    return sum(int(fields[name].removesuffix("kB")) for name in _DROPPED_FIELDS) * _KIBIBYTE
