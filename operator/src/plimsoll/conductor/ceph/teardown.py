"""Removes only what a run created in a cluster. Needs no plan, even after a conductor's death."""

import asyncio
import logging
import os
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from tempfile import NamedTemporaryFile

from plimsoll.ceph.document import parse_answer
from plimsoll.ceph.pools import has_servers, parse_pools
from plimsoll.conductor.ceph.commands import (
    FORCE_FULL,
    CommandError,
    Commands,
    NotPermittedError,
    UnresponsiveError,
    if_present,
)
from plimsoll.conductor.ceph.options import RecordError, restore_options
from plimsoll.conductor.ceph.prepare import restore_scrubs
from plimsoll.plan.document import flags_object, image_prefix, options_key, rados_namespace

# Problems appear in the run's status only when the program ends; then it is restarted, for hours if necessary.
_LIMIT_SECONDS = 120.0
_PURGE_SECONDS = 300.0
_REMOVAL_SECONDS = 600.0  # an image has many objects, and a dead client's is in use until its watch expires
_PAUSE_SECONDS = 5.0
_OBJECTS_AT_ONCE = 200
_AT_ONCE = 4
# With one of these anywhere, `rados` prints its usage, does nothing, and succeeds (Ceph, ceph_argparse.cc).
_USAGE = frozenset({"-h", "--help"})
_OUT_OF_REACH = (
    "object %r in namespace %s of pool %s is left: its locator %r contains a NUL, which no Ceph command accepts; "
    "remove it with a program that uses librados' C++ API, or with its pool"
)

_log = logging.getLogger(__name__)


class PurgeError(Exception):
    """Ceph has not purged everything that was deleted, or does not report it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeardownTarget:
    """What to tear down."""

    uid: str
    clients: int
    pool: str  # contains the conductor's note, the images' names, and objects
    other_pools: tuple[str, ...] = ()  # of the run, too
    has_images: bool = True  # whether there may be RBD images
    file_system: str = ""  # of the run, which is removed next; empty if there is none
    has_options: bool = False  # whether the conductor may have set options of the OSDs, or taken OSDs away
    only_restores: bool = False  # whether only these are restored, and nothing is removed


@dataclass(frozen=True, slots=True)
class Remains:
    """What is left."""

    problems: tuple[str, ...] = ()  # why; empty if nothing is left
    # Whether everything is removed, but Ceph has not purged the deleted volumes of the file system.
    is_purging: bool = False


async def tear_down(
    commands: Commands,
    target: TeardownTarget,
    *,
    limit_seconds: float = _LIMIT_SECONDS,
    purge_seconds: float = _PURGE_SECONDS,
    pause_seconds: float = _PAUSE_SECONDS,
) -> Remains:
    """Clean up, with retries until the limit, and then wait for the purge until its own limit."""
    problems = await _removed(commands, target, limit_seconds=limit_seconds, pause_seconds=pause_seconds)
    if problems or target.only_restores or not target.file_system:
        return Remains(problems)
    # A file system that is removed during a purge leaves a thread of Ceph's manager waiting for ever, with a lock
    # without which no subvolume of the cluster can be deleted (seen in Ceph 18.2).
    start, logged = time.monotonic(), ""
    while True:
        try:
            await _check_purge(commands, target.file_system)
        except (PurgeError, CommandError, ValueError) as error:
            is_purging, problem = isinstance(error, PurgeError), str(error)
            limit = purge_seconds if is_purging else limit_seconds
            if time.monotonic() - start > limit or isinstance(error, NotPermittedError):
                return Remains((problem,), is_purging=is_purging)
        else:
            return Remains()
        if logged != problem:
            logged = problem
            _log.warning("%s; waiting", problem)
        await asyncio.sleep(pause_seconds)


async def _check_purge(commands: Commands, file_system: str) -> None:
    """Raise PurgeError while something that was deleted is left to be purged, unless nothing can be purged."""
    try:
        answer = await if_present(commands.ceph("fs", "volume", "info", file_system))
    except UnresponsiveError as error:
        # The monitors answer without the manager.
        answer = await if_present(commands.ceph("fs", "get", file_system))
        if answer is not None and has_servers(answer):
            raise PurgeError(
                f"Ceph's manager does not report how many deleted volumes of file system {file_system} it has yet to "
                f"purge: {error}; check that one is active (`ceph mgr stat`)"
            ) from error
        if answer is not None:
            _log.warning("file system %s has no metadata server, so nothing in it can be purged", file_system)
        return
    # The field is absent if the file system has never had a subvolume.
    pending = None if answer is None else parse_answer(answer).get("pending_subvolume_deletions")
    if pending is not None and (count := pending.count()):
        volumes = "1 deleted volume" if count == 1 else f"{count} deleted volumes"
        raise PurgeError(f"Ceph has yet to purge {volumes} of file system {file_system}")


async def _removed(
    commands: Commands, target: TeardownTarget, *, limit_seconds: float, pause_seconds: float
) -> tuple[str, ...]:
    deadline = time.monotonic() + limit_seconds
    while True:
        problems = await _Pass(commands, target).run()
        # A person has to do something before a retry can remove more.
        is_hopeless = any(isinstance(problem, NotPermittedError) for problem in problems) or all(
            isinstance(problem, RecordError) for problem in problems
        )
        if not problems or time.monotonic() > deadline or is_hopeless:
            return tuple(dict.fromkeys(map(str, problems)))
        for problem in problems:
            _log.warning("%s; retrying", problem)
        await asyncio.sleep(pause_seconds)


class _Pass:
    """One pass over everything; a failed step does not stop it, unless Ceph does not answer."""

    def __init__(self, commands: Commands, target: TeardownTarget) -> None:
        self._commands = commands
        self._target = target
        self._problems: list[Exception] = []

    async def run(self) -> Sequence[Exception]:
        # Options first: they affect everybody, and placement groups may be inactive because of them.
        if self._target.has_options:
            await self._try(restore_options(self._commands, key=options_key(self._target.uid)))
            if self._is_unresponsive:
                return self._problems
        if self._target.only_restores:
            return self._problems
        try:
            existing = parse_pools(await self._commands.ceph("osd", "pool", "ls", "detail"))
        except (CommandError, ValueError) as error:
            return [*self._problems, error]
        pools = [existing[name] for name in (self._target.pool, *self._target.other_pools) if name in existing]
        if not pools or pools[0].name != self._target.pool:
            _log.info("pool %s no longer exists", self._target.pool)
            return self._problems
        # Scrubs first: paused ones affect others.
        await self._try(restore_scrubs(self._commands, note=flags_object(self._target.uid), pools=pools))
        if self._target.has_images:
            await self._try(self._remove_images())
            await self._try(self._remove_images("trash"))
        namespaces = [rados_namespace(self._target.uid, client) for client in range(self._target.clients)]
        turn = asyncio.Semaphore(_AT_ONCE)
        await asyncio.gather(
            *(self._try(self._remove_objects(pool.name, name, turn)) for pool in pools for name in namespaces)
        )
        return self._problems

    async def _remove_images(self, *trash: str) -> None:
        """Remove the run's images: those in use, or those in the `trash`."""
        pool, everything = self._target.pool, ["--all"] if trash else []
        listed = await self._commands.rbd(*trash, "ls", *everything, "--pool", pool, "--format", "json")
        for image in parse_answer(listed).elements():
            name, place = (image["name"], image["id"]) if trash else (image, image)
            if name.text().startswith(image_prefix(self._target.uid)):
                await self._try(self._remove(*trash, "rm", f"{pool}/{place.text()}"))

    async def _remove(self, *arguments: str) -> None:
        await self._commands.rbd(*arguments, "--no-progress", limit_seconds=_REMOVAL_SECONDS)
        _log.info("removed image %s", arguments[-1])

    async def _remove_objects(self, pool: str, namespace: str, turn: asyncio.Semaphore) -> None:
        place = ("--pool", pool, "--namespace", namespace)
        async with turn:
            if self._is_unresponsive:
                return
            listed = parse_answer(await self._commands.rados(*place, "ls", "--format", "json"))
            # A locator, usually empty, determines an object's placement group instead of its name.
            objects = [
                (entry["name"].text(), node.text() if (node := entry.get("locator")) else "")
                for entry in listed.elements()
            ]
            # To remove these, their names as arguments are enough.
            plain = [name for name, locator in objects if not locator and name not in _USAGE and "\0" not in name]
            for first in range(0, len(plain), _OBJECTS_AT_ONCE):
                # `--`: no name is taken for an option.
                names = plain[first : first + _OBJECTS_AT_ONCE]
                await self._try(self._commands.rados(*place, FORCE_FULL, "rm", "--", *names))
            for name, locator in objects:
                # Arguments and librados' C API end a locator at its first NUL.
                if "\0" in locator:
                    _log.warning(_OUT_OF_REACH, name, namespace, pool, locator)
                elif locator or name in _USAGE or "\0" in name:
                    await self._try(self._remove_object(place, name, locator))
        if objects:
            _log.info("processed %d objects of namespace %s of pool %s", len(objects), namespace, pool)

    async def _remove_object(self, place: tuple[str, ...], name: str, locator: str) -> None:
        located = (f"--object-locator={locator}",) if locator else ()
        with NamedTemporaryFile() as file:
            file.write(os.fsencode(name))
            file.flush()
            await self._commands.rados(*place, *located, "--obj-name-file", file.name, FORCE_FULL, "rm")

    @property
    def _is_unresponsive(self) -> bool:
        """Whether a command timed out; with many clients, the timeouts of all others would take hours."""
        return any(isinstance(problem, UnresponsiveError) for problem in self._problems)

    async def _try(self, step: Coroutine[object, object, object]) -> None:
        if self._is_unresponsive:
            step.close()
            return
        try:
            await step
        except (CommandError, ValueError) as error:
            # Includes objects that others have removed; the next pass does not find them.
            self._problems.append(error)
