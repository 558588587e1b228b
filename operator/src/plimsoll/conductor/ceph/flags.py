"""Pauses scrubs on the run's pools, after storing a note with which any successor can resume them."""

import json
from collections.abc import Mapping, Sequence

from plimsoll.ceph.pools import PoolDetail
from plimsoll.conductor.ceph.cli import CommandError, Commands

FLAGS = ("noscrub", "nodeep-scrub")

Noted = Mapping[str, Sequence[str]]
"""The flags that the run sets, by pool: those that were not set before."""


async def pause_scrubs(commands: Commands, *, note: str, pools: Sequence[PoolDetail]) -> None:
    """Set the flags that pause scrubs, after noting them in the object `note` of the first pool.

    An existing note is kept: it was written before the flags were set. See `Commands.ceph` for errors.
    """
    noted_in = pools[0].name
    noted = await read_note(commands, noted_in, note)
    if noted is None:
        noted = {pool.name: [flag for flag in FLAGS if flag not in pool.flags] for pool in pools}
        await commands.rados("--pool", noted_in, "put", note, "-", standard_input=json.dumps(noted))
    for pool in pools:
        for flag in FLAGS:
            if flag not in pool.flags:
                await commands.ceph("osd", "pool", "set", pool.name, flag, "1")


async def restore_scrubs(commands: Commands, *, note: str, pools: Sequence[PoolDetail]) -> None:
    """Unset the noted flags on the pools that still exist, then remove the note; see `Commands.ceph` for errors."""
    noted_in = pools[0].name
    noted = await read_note(commands, noted_in, note)
    if noted is None:
        return
    for pool in pools:
        for flag in noted.get(pool.name, ()):
            # Even if it is not set: a command that was just killed may still set it.
            await commands.ceph("osd", "pool", "set", pool.name, flag, "0")
    await commands.rados("--pool", noted_in, "rm", note)


async def read_note(commands: Commands, pool: str, note: str) -> Noted | None:
    """Return the noted flags; None without a note. CommandError if it cannot be read or is malformed."""
    try:
        text = await commands.rados("--pool", pool, "get", note, "-")
    except CommandError as error:
        if error.is_missing:
            return None
        raise
    try:
        document = json.loads(text)
        return {str(name): [flag for flag in FLAGS if flag in flags] for name, flags in document.items()}
    except (ValueError, AttributeError, TypeError) as error:
        command = f"rados --pool {pool} get {note}"
        reason = f"printed {text[:40]!r}, which is no note of flags; remove the object, and check the pools' flags"
        raise CommandError(command, reason) from error
