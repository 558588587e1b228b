"""Removing what a run made in a cluster, and nothing else. Needs no plan, and no conductor that ended well."""

import asyncio
import logging
import os
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from tempfile import NamedTemporaryFile

from plimsoll.ceph.document import Node
from plimsoll.ceph.pools import PoolDetail, parse_pools
from plimsoll.conductor.ceph.cli import CommandError, Commands, RefusedError, SilentError
from plimsoll.conductor.ceph.flags import restore_scrubs
from plimsoll.plan.ceph import flags_object, image_prefix, rados_namespace

_LIMIT_SECONDS = 120.0
"""What is wrong is read in a status only when the program ends; it is started again, for hours if need be."""

_REMOVAL_SECONDS = 600.0
"""An image has many objects, and one whose client died is free only when its watch has expired."""

_PAUSE_SECONDS = 5.0
_OBJECTS_AT_ONCE = 200
_AT_ONCE = 4
_USAGE = frozenset({"-h", "--help"})
"""Wherever one of these stands `rados` prints its usage, does nothing, and succeeds. Source: Ceph, ceph_argparse.cc."""

_OUT_OF_REACH = (
    "object %r in namespace %s of pool %s is left: its locator %r has a NUL, which no command of Ceph's takes; it goes "
    "with its pool, or a program that uses librados' C++ API removes it"
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftovers:
    """What a run may have left: `pool` is where its images' names and its objects are."""

    uid: str
    clients: int
    pool: str
    data_pool: str | None = None


async def tear_down(
    commands: Commands, left: Leftovers, *, limit_seconds: float = _LIMIT_SECONDS, pause_seconds: float = _PAUSE_SECONDS
) -> tuple[str, ...]:
    """Clean up, trying again until the limit; return what could not be done, in words, empty if all is clean.

    A pool that is gone is clean. What is refused for lack of rights is not tried again.
    """
    deadline = time.monotonic() + limit_seconds
    while True:
        problems = await _Pass(commands, left).run()
        if not problems or time.monotonic() > deadline or any(isinstance(one, RefusedError) for one in problems):
            return tuple(dict.fromkeys(map(str, problems)))
        for problem in problems:
            _log.warning("%s; it is tried again", problem)
        await asyncio.sleep(pause_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Object:
    """An object in a pool. `locator` decides on its placement group in place of its name; empty as a rule."""

    name: str
    locator: str

    @property
    def is_plain(self) -> bool:
        """Tell whether its name alone, as an argument, leads to it."""
        return not self.locator and self.name not in _USAGE and "\0" not in self.name

    @property
    def is_out_of_reach(self) -> bool:
        """Whether no command leads to it: as an argument, and in librados' C API, a locator ends at its first NUL."""
        return "\0" in self.locator


def _object(entry: Node) -> _Object:
    locator = entry.get("locator")
    return _Object(name=entry["name"].text(), locator=locator.text() if locator else "")


class _Pass:
    """One attempt at everything: what fails does not keep it from the rest, unless Ceph does not answer at all."""

    def __init__(self, commands: Commands, left: Leftovers) -> None:
        self._commands = commands
        self._left = left
        self._problems: list[Exception] = []

    async def run(self) -> Sequence[Exception]:
        try:
            pools = await self._pools()
        except (CommandError, ValueError) as error:
            return [error]
        if not pools or pools[0].name != self._left.pool:
            _log.info("there is no pool %s any more", self._left.pool)
            return []
        # Scrubs first: that is what others may suffer from.
        await self._try(restore_scrubs(self._commands, note=flags_object(self._left.uid), pools=pools))
        await self._try(self._remove_images())
        await self._try(self._empty_trash())
        namespaces = [rados_namespace(self._left.uid, client) for client in range(self._left.clients)]
        turn = asyncio.Semaphore(_AT_ONCE)
        await asyncio.gather(
            *(self._try(self._remove_objects(pool.name, name, turn)) for pool in pools for name in namespaces)
        )
        return self._problems

    async def _pools(self) -> list[PoolDetail]:
        found = parse_pools(await self._commands.ceph("osd", "pool", "ls", "detail"))
        return [found[name] for name in (self._left.pool, self._left.data_pool) if name in found]

    async def _remove_images(self) -> None:
        document = Node.parse(await self._commands.rbd("ls", "--pool", self._left.pool, "--format", "json"))
        for image in document.elements():
            if image.text().startswith(image_prefix(self._left.uid)):
                await self._try(self._remove("rm", f"{self._left.pool}/{image.text()}"))

    async def _empty_trash(self) -> None:
        listed = await self._commands.rbd("trash", "ls", "--all", "--pool", self._left.pool, "--format", "json")
        for image in Node.parse(listed).elements():
            if image["name"].text().startswith(image_prefix(self._left.uid)):
                await self._try(self._remove("trash", "rm", f"{self._left.pool}/{image['id'].text()}"))

    async def _remove(self, *arguments: str) -> None:
        await self._commands.rbd(*arguments, "--no-progress", limit_seconds=_REMOVAL_SECONDS)
        _log.info("removed image %s", arguments[-1])

    async def _remove_objects(self, pool: str, namespace: str, turn: asyncio.Semaphore) -> None:
        place = ("--pool", pool, "--namespace", namespace)
        async with turn:
            if self._is_silent:
                return
            listed = Node.parse(await self._commands.rados(*place, "ls", "--format", "json"))
            objects = [_object(entry) for entry in listed.elements()]
            plain = [one.name for one in objects if one.is_plain]
            # What cannot be removed does not keep the others.
            for first in range(0, len(plain), _OBJECTS_AT_ONCE):
                await self._try(self._remove_plain(place, plain[first : first + _OBJECTS_AT_ONCE]))
            for one in objects:
                if one.is_out_of_reach:
                    _log.warning(_OUT_OF_REACH, one.name, namespace, pool, one.locator)
                elif not one.is_plain:
                    await self._try(self._remove_object(place, one))
        if objects:
            _log.info("went through %d objects of namespace %s of pool %s", len(objects), namespace, pool)

    async def _remove_plain(self, place: tuple[str, ...], names: list[str]) -> None:
        """Remove objects in one command. What a client calls an object must not be read as an option."""
        await self._commands.rados(*place, "rm", "--", *names)

    async def _remove_object(self, place: tuple[str, ...], one: "_Object") -> None:
        """Remove an object by a file that holds its name."""
        locator = (f"--object-locator={one.locator}",) if one.locator else ()
        with NamedTemporaryFile() as file:
            file.write(os.fsencode(one.name))
            file.flush()
            await self._commands.rados(*place, *locator, "--obj-name-file", file.name, "rm")

    @property
    def _is_silent(self) -> bool:
        """Whether Ceph left a command without an answer: with many clients, trying all the others would take hours."""
        return any(isinstance(problem, SilentError) for problem in self._problems)

    async def _try(self, step: Coroutine[object, object, None]) -> None:
        if self._is_silent:
            step.close()
            return
        try:
            await step
        except (CommandError, ValueError) as error:
            # Also what somebody else removed first: the next pass does not find it any more.
            self._problems.append(error)
