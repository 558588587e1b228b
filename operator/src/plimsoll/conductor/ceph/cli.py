"""Running `ceph`, `rbd` and `rados`. None of these commands may take for ever: they hang where others would fail."""

import asyncio
import os
import re
import signal
from contextlib import suppress

_LIMIT_SECONDS = 30.0
_KILLED_SECONDS = 5.0

_REFUSED_EXIT_CODES = {13}
_REFUSED = re.compile(r"\((1|13)\) |EACCES|EPERM|Operation not permitted|permission denied", re.IGNORECASE)
_MISSING = re.compile(r"\(2\) No such file or directory|ENOENT")
_PRESENT = re.compile(r"\(17\) File exists|EEXIST")
_LOG_LINE = re.compile(r"^\d{4}-\d\d-\d\dT\S+ \S+ +-?\d+ ")
"""What the libraries log on standard error, between what the command itself says."""

_SHOWN_CHARACTERS = 300


class CommandError(Exception):
    """A command failed; the message names it and says why."""

    def __init__(self, command: str, words: str) -> None:
        """Keep the command and what it said."""
        self.words = words
        super().__init__(f"`{command}` {words}")

    @property
    def is_missing(self) -> bool:
        """Whether the pool, image or object is not there."""
        return _MISSING.search(self.words) is not None

    @property
    def is_present(self) -> bool:
        """Whether what was to be made is there already."""
        return _PRESENT.search(self.words) is not None


class RefusedError(CommandError):
    """The user has no right to it: trying again does not help."""


class SilentError(CommandError):
    """It did not answer in time: as a rule the next command does not either."""


class Commands:
    """Ceph's commands as one CephX user; where the cluster is, `CEPH_CONF` says."""

    def __init__(self, user: str, *, limit_seconds: float = _LIMIT_SECONDS) -> None:
        """Act as that user (without `client.`), and give each command that long."""
        self._user = user
        self._limit = limit_seconds

    async def ceph(self, *arguments: str, limit_seconds: float | None = None) -> str:
        """Run `ceph` and return what it prints, as JSON where it can.

        Raises:
            CommandError: it failed, did not answer in time, or could not be started.

        """
        return await self._run("ceph", (*arguments, "--format", "json"), limit_seconds=limit_seconds)

    async def rbd(self, *arguments: str, limit_seconds: float | None = None) -> str:
        """Run `rbd` and return what it prints; see `ceph` for errors."""
        return await self._run("rbd", arguments, limit_seconds=limit_seconds)

    async def rados(self, *arguments: str, standard_input: str | None = None) -> str:
        """Run `rados` and return what it prints; see `ceph` for errors.

        Names of objects may be any bytes: what is no UTF-8 is given back as such when it is an argument again.
        """
        return await self._run("rados", arguments, standard_input=standard_input, undecodable="surrogateescape")

    async def _run(
        self,
        program: str,
        arguments: tuple[str, ...],
        *,
        standard_input: str | None = None,
        limit_seconds: float | None = None,
        undecodable: str = "replace",
    ) -> str:
        command = f"{program} {' '.join(arguments)}"[:_SHOWN_CHARACTERS].encode(errors="replace").decode()
        limit = self._limit if limit_seconds is None else limit_seconds
        try:
            process = await _start((program, "--id", self._user, *arguments), has_input=standard_input is not None)
        except OSError as error:
            raise CommandError(command, f"cannot be started: {error}") from error
        try:
            async with asyncio.timeout(limit):
                stdout, stderr = await process.communicate(standard_input.encode() if standard_input else None)
        except TimeoutError:
            raise SilentError(command, _why_silent(limit)) from None
        finally:
            await _end(process)
        if process.returncode:
            raise _failure(command, process.returncode, stderr.decode(errors="replace"))
        return stdout.decode(errors=undecodable)


async def _start(argv: tuple[str, ...], *, has_input: bool) -> asyncio.subprocess.Process:
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE if has_input else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        # Else a command that is just being started would outlive whoever wants it no more.
        await _end(await starting)
        raise


def _why_silent(limit: float) -> str:
    return f"did not answer in {limit:g} s; missing capabilities or inactive placement groups make commands hang"


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill a command that still runs, with its children, and let go of its output, also if nobody wants that any more.

    A cancellation that comes meanwhile waits for it: it is short, and a process that is left alone stays a zombie.
    """
    ending = asyncio.ensure_future(_kill(process))
    try:
        await asyncio.shield(ending)
    except asyncio.CancelledError:
        await ending
        raise


async def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    # A process in an uninterruptible wait does not die of it; nobody waits for that one.
    with suppress(TimeoutError):
        async with asyncio.timeout(_KILLED_SECONDS):
            await process.communicate()


def _failure(command: str, exit_code: int, stderr: str) -> CommandError:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    own = [line for line in lines if not _LOG_LINE.match(line)]
    said = "; ".join(own[:2] or lines[-1:]) or f"exit code {exit_code}"
    words = f"failed: {said[:_SHOWN_CHARACTERS]}"
    if exit_code in _REFUSED_EXIT_CODES or _REFUSED.search(words):
        return RefusedError(command, f"{words}; the user's capabilities do not allow it")
    return CommandError(command, words)
