"""Pausing scrubs on the run's pools, so that it can be undone whatever dies: it is written down first."""

import json
from collections.abc import Mapping, Sequence

from plimsoll.ceph.pools import PoolDetail
from plimsoll.conductor.ceph.cli import CommandError, Commands

FLAGS = ("noscrub", "nodeep-scrub")

Noted = Mapping[str, Sequence[str]]
"""Pool -> the flags that the run sets on it, because nobody had."""


async def pause_scrubs(commands: Commands, *, note: str, pools: Sequence[PoolDetail]) -> None:
    """Set the flags that keep Ceph from scrubbing the pools, after noting in the object `note` of the first of them.

    A note that is there already is kept: it was written when the flags were not set yet. See `Commands.ceph` for
    errors.
    """
    at = pools[0].name
    noted = await read_note(commands, at, note)
    if noted is None:
        noted = {pool.name: [flag for flag in FLAGS if flag not in pool.flags] for pool in pools}
        await commands.rados("--pool", at, "put", note, "-", standard_input=json.dumps(noted))
    for pool in pools:
        for flag in FLAGS:
            if flag not in pool.flags:
                await commands.ceph("osd", "pool", "set", pool.name, flag, "1")


async def restore_scrubs(commands: Commands, *, note: str, pools: Sequence[PoolDetail]) -> None:
    """Take back the flags that the note names, on those pools that are still there, and then remove the note.

    See `Commands.ceph` for errors.
    """
    at = pools[0].name
    noted = await read_note(commands, at, note)
    if noted is None:
        return
    for pool in pools:
        for flag in noted.get(pool.name, ()):
            # Also one that is not there: a command that was just ended may set it yet.
            await commands.ceph("osd", "pool", "set", pool.name, flag, "0")
    await commands.rados("--pool", at, "rm", note)


async def read_note(commands: Commands, pool: str, note: str) -> Noted | None:
    """Return what is noted; None if nothing is.

    Raises:
        CommandError: it cannot be read, or is no such note.

    """
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
        words = f"gave {text[:40]!r}, which is no note of flags; remove the object and look after the flags by hand"
        raise CommandError(command, words) from error
