"""Waits until Ceph has purged the deleted volumes of a file system that is about to be removed.

A file system that is removed meanwhile leaves one of the manager's threads waiting for metadata servers for ever, with
a lock without which no subvolume of the cluster can be deleted (seen in Ceph 18.2).
"""

import asyncio
import logging
import time

from plimsoll.ceph.document import Node
from plimsoll.ceph.file_systems import has_servers
from plimsoll.conductor.ceph.cli import CommandError, Commands, NotPermittedError, UnresponsiveError

_log = logging.getLogger(__name__)


class PurgeError(Exception):
    """Ceph has not purged what was deleted, or does not say so."""


async def await_purge(
    commands: Commands, file_system: str, *, limit_seconds: float, problem_seconds: float, pause_seconds: float
) -> None:
    """Wait until nothing that was deleted is left to be purged, or nothing can be purged.

    Raises:
        PurgeError: something is left after `limit_seconds`.
        CommandError: a command fails, after `problem_seconds` of retries unless the user lacks a capability.
        ValueError: the same for an answer that cannot be read.

    """
    start, said = time.monotonic(), ""
    while True:
        try:
            return await _check_purge(commands, file_system)
        except (PurgeError, CommandError, ValueError) as error:
            limit = limit_seconds if isinstance(error, PurgeError) else problem_seconds
            if time.monotonic() - start > limit or isinstance(error, NotPermittedError):
                raise
            if said != str(error):
                said = str(error)
                _log.warning("%s; waiting", said)
        await asyncio.sleep(pause_seconds)


async def _check_purge(commands: Commands, file_system: str) -> None:
    try:
        answer = await commands.ceph("fs", "volume", "info", file_system)
    except UnresponsiveError as error:
        await _check_servers(commands, file_system, error)
        return
    except CommandError as error:
        if error.is_missing:
            return
        raise
    # Absent if the file system has never had a subvolume.
    pending = Node.parse(answer).get("pending_subvolume_deletions")
    if pending is not None and (count := pending.count()):
        volumes = "1 deleted volume" if count == 1 else f"{count} deleted volumes"
        raise PurgeError(f"Ceph has yet to purge {volumes} of file system {file_system}")


async def _check_servers(commands: Commands, file_system: str, unanswered: UnresponsiveError) -> None:
    """Ask the monitors, which answer without the manager, whether anything can be purged."""
    try:
        can_purge = has_servers(await commands.ceph("fs", "get", file_system))
    except CommandError as error:
        if error.is_missing:
            return
        raise
    if can_purge:
        raise PurgeError(
            f"Ceph's manager does not say how many deleted volumes of file system {file_system} it has yet to purge: "
            f"{unanswered}; check that one is active (`ceph mgr stat`)"
        )
    _log.warning("file system %s has no metadata server, so nothing in it can be purged", file_system)
