"""Has the OSDs of a Ceph cluster drop their caches, with an administrator's key that only the helper has."""

import json
from collections.abc import Mapping
from typing import Any

from plimsoll.api.surroundings import MAX_LISTED, OsdCaches
from plimsoll.conductor.ceph.commands import CommandError, Commands

_ANSWER_SECONDS = 30.0
"""An OSD writes dirty metadata before it drops its caches."""


class OsdsError(Exception):
    """An OSD did not drop its caches, or the cluster did not answer; the message has the reason."""


async def drop_osd_caches(commands: Commands | None, fsid: str) -> OsdCaches:
    """Have every OSD that is up drop its caches; without a key for that cluster, return why not.

    Raises:
        OsdsError: Ceph did not answer, or an OSD failed.

    """
    if commands is None:
        return OsdCaches(count=0, reason="the helper has no key of a Ceph administrator (caches.ceph of the chart)")
    try:
        dump = _parsed(await commands.ceph("osd", "dump"))
        if dump.get("fsid") != fsid:
            return OsdCaches(count=0, reason="the helper's key is for another Ceph cluster")
        numbers = osds_up(dump)
        for number in numbers:
            await commands.ceph("tell", f"osd.{number}", "cache", "drop", limit_seconds=_ANSWER_SECONDS)
    except (CommandError, ValueError) as error:
        message = f"the OSDs did not drop their caches: {error}"
        raise OsdsError(message) from error
    finally:
        await commands.close()
    return OsdCaches(count=len(numbers), osds=numbers[:MAX_LISTED])


def osds_up(dump: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the numbers of the OSDs that are up in the output of `ceph osd dump`; ValueError if it has none."""
    try:
        numbers = tuple(sorted(int(osd["osd"]) for osd in dump["osds"] if osd["up"]))
    except (LookupError, TypeError) as error:
        message = f"`ceph osd dump` has an unknown format: {error!r}"
        raise ValueError(message) from error
    if not numbers:
        raise ValueError("no OSD is up")
    return numbers


def _parsed(text: str) -> Mapping[str, Any]:
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("`ceph osd dump` printed no JSON object")  # noqa: TRY004 - of the data, not of the caller
    return document
