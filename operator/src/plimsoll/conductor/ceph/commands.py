"""Runs commands of `ceph`, `rbd` and `rados` with time limits: they hang where others fail."""

import asyncio
import errno
import json
import os
import re
import signal
import sys
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Self

from plimsoll.api.names import FailureReason
from plimsoll.ceph.document import AES256K, key_type, without_keys
from plimsoll.ceph.rights import request_of
from plimsoll.ceph.versions import cannot_read

FORCE_FULL = "--force-full"  # has `rados rm` remove objects from a full pool, where it would wait for space
_PROGRAM = Path(__file__).with_name("monitor_program.py")
# The distribution's interpreter, which sees Ceph's modules; a virtual environment on top of it does not.
_INTERPRETER = Path(sys.base_prefix) / "bin" / "python3"
_KILLED_SECONDS = 5.0
_LIMIT_SECONDS = 30.0

_REFUSED = re.compile(r"\((1|13)\) |EACCES|EPERM|Operation not permitted|permission denied", re.IGNORECASE)
_MISSING = re.compile(r"\(2\) No such file or directory|ENOENT")
_PRESENT = re.compile(r"\(17\) File exists|EEXIST")
_LOG_LINE = re.compile(r"^\d{4}-\d\d-\d\dT\S+ \S+ +-?\d+ ")  # of the libraries, on standard error like messages
_NOT_CONNECTED = "error connecting to the cluster"
_KEYRING = re.compile(r"^\s*keyring\s*=\s*(\S+)", re.MULTILINE)
_SHOWN_CHARACTERS = 300


async def start(argv: tuple[str, ...], *, has_input: bool, logs_errors: bool = False) -> asyncio.subprocess.Process:
    """Start a command in its own session, with pipes, or its errors logged without keys; OSError if it cannot start."""
    errors = _pipe_to_log() if logs_errors else asyncio.subprocess.PIPE
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE if has_input else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
    )
    if logs_errors:
        starting.add_done_callback(lambda _: os.close(errors))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        # Otherwise a command that is just starting would outlive its caller.
        with suppress(OSError):
            await end(await starting)
        raise


def _pipe_to_log() -> int:
    """Return the writing end of a pipe; its lines are logged, except lines with a key."""
    reader, writer = os.pipe()

    def copy() -> None:
        with os.fdopen(reader, "rb") as errors:
            for line in errors:
                os.write(2, without_keys(line.decode(errors="replace")).encode())

    # In a thread of its own: the last words of a program that crashes would be lost in its own process.
    Thread(target=copy, daemon=True).start()
    return writer


async def end(process: asyncio.subprocess.Process) -> None:
    """Kill a command that still runs, with its children, and close its output, which a cancellation waits for."""

    async def kill() -> None:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        # A process in an uninterruptible wait survives the signal; do not wait for it.
        with suppress(TimeoutError):
            async with asyncio.timeout(_KILLED_SECONDS):
                await process.communicate()

    ending = asyncio.ensure_future(kill())
    try:
        await asyncio.shield(ending)
    except asyncio.CancelledError:
        await ending
        raise


class CommandError(Exception):
    """A command failed; the message contains the command and the reason."""

    def __init__(self, command: str, reason: str) -> None:
        self.reason = reason
        self.is_present = _PRESENT.search(reason) is not None  # whether the object to create already exists
        super().__init__(f"`{command}` {reason}")


async def if_present(answer: Awaitable[str]) -> str | None:
    """Return a command's answer; None if its subject does not exist. CommandError for any other failure."""
    try:
        return await answer
    except CommandError as error:
        if _MISSING.search(error.reason):
            return None
        raise


class NotPermittedError(CommandError):
    """The user lacks a capability: a retry does not help."""


class ClientTooOldError(NotPermittedError):
    """The installed client cannot read the type of the user's key."""

    refusal = FailureReason.CEPH_CLIENT_TOO_OLD


class UnresponsiveError(CommandError):
    """The command did not answer in time; usually the next command does not either."""


class Commands:
    """Ceph's commands as one CephX user, on the cluster that `CEPH_CONF` names.

    Those of `ceph`, which is slow to start, share a connection of librados, in a process that it may hang or end.
    """

    def __init__(self, user: str, *, limit_seconds: float = _LIMIT_SECONDS) -> None:
        """Act as `user` (without `client.`), with a time limit for each command."""
        self._user = user
        self._limit = limit_seconds
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection to the monitors, if there is one; the next command makes another."""
        async with self._turn:
            await self._end()

    async def ceph(self, *arguments: str, limit_seconds: float | None = None) -> str:
        """Run a command of `plimsoll.ceph.rights` as `ceph` would, and return its output, as JSON where possible.

        CommandError: it failed, did not answer in time, or could not be started. ValueError: the command is unknown.
        """
        return await self._ask(_shown("ceph", arguments), request_of(arguments), limit_seconds=limit_seconds)

    async def drop_cache(self, osd: int, *, limit_seconds: float) -> None:
        """Have an OSD drop its caches, for which its user needs all rights on OSDs; see `ceph` for errors."""
        command, request = f"ceph tell osd.{osd} cache drop", {"prefix": "cache drop", "format": "json"}
        await self._ask(command, request, osd=osd, limit_seconds=limit_seconds)

    async def _ask(
        self, command: str, request: Mapping[str, object], *, osd: int | None = None, limit_seconds: float | None
    ) -> str:
        limit = self._limit if limit_seconds is None else limit_seconds
        try:
            async with asyncio.timeout(limit), self._turn:
                code, message, output = await self._exchange({"osd": osd, "request": request})
        except TimeoutError:
            raise _unresponsive(command, limit) from None
        except (ConnectionError, EOFError, asyncio.LimitOverrunError, ValueError, LookupError, TypeError) as error:
            raise CommandError(command, "failed: the process with the connection to the monitors ended") from error
        except OSError as error:
            raise CommandError(command, f"cannot be started: {error}") from error
        if code:
            failure = _failure(command, code, message)
            if _NOT_CONNECTED in failure.reason and (problem := await self._key_problem()):
                raise ClientTooOldError(command, f"failed: {problem}")
            raise failure
        return output.decode(errors="replace")

    async def _exchange(self, question: Mapping[str, object]) -> tuple[int, str, bytes]:
        """Return exit code, message and output of a command of the monitors, or of an OSD."""
        if self._process is not None and self._process.returncode is not None:
            await self._end()
        process = self._process = self._process or await start(
            (str(_INTERPRETER), "-P", str(_PROGRAM), self._user), has_input=True, logs_errors=True
        )
        code = -1
        try:
            if process.stdin is None or process.stdout is None:
                raise EOFError
            process.stdin.write(json.dumps(question).encode() + b"\n")
            await process.stdin.drain()
            header = json.loads(await process.stdout.readuntil())
            output = await process.stdout.readexactly(header["bytes"])
            code = header["code"]
            return code, header["message"], output
        finally:
            # A monitor knows the capabilities that a user had when it connected: the next command connects again.
            if code not in {0, errno.ENOENT}:
                await self._end()

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await end(process)

    async def rbd(self, *arguments: str, limit_seconds: float | None = None) -> str:
        """Run `rbd` and return its output; see `ceph` for errors."""
        return await self._run("rbd", arguments, limit_seconds=limit_seconds)

    async def rados(self, *arguments: str, standard_input: str | None = None) -> str:
        """Run `rados` and return its output, in which names may be arbitrary bytes; see `ceph` for errors."""
        return await self._run("rados", arguments, standard_input=standard_input, undecodable="surrogateescape")

    async def _key_problem(self) -> str:
        """Return why the client cannot read the user's key, with the remedy; empty if it can, or if this is unknown."""
        try:
            configuration = await asyncio.to_thread(Path(os.environ["CEPH_CONF"]).read_text)
            path = _KEYRING.search(configuration)
            keyring = await asyncio.to_thread(Path(path[1]).read_text) if path else ""
            if key_type(keyring, self._user) != AES256K:
                return ""
            version = await self._run("rados", ("--version",))
        except (OSError, LookupError, ValueError, CommandError):
            return ""
        if not cannot_read(version, AES256K):
            return ""
        return (
            f"the key of client.{self._user} is of type {AES256K}, which this client cannot read "
            f"({' '.join(version.split()[:3])}); use a runner image with Ceph 20.2.4 or later (19.2.6 of Ceph 19), or "
            "have the key replaced by one of type aes"
        )

    async def _run(
        self,
        program: str,
        arguments: tuple[str, ...],
        *,
        standard_input: str | None = None,
        limit_seconds: float | None = None,
        undecodable: str = "replace",
    ) -> str:
        command = _shown(program, arguments)
        limit = self._limit if limit_seconds is None else limit_seconds
        try:
            process = await start((program, "--id", self._user, *arguments), has_input=standard_input is not None)
        except OSError as error:
            raise CommandError(command, f"cannot be started: {error}") from error
        try:
            async with asyncio.timeout(limit):
                stdout, stderr = await process.communicate(standard_input.encode() if standard_input else None)
        except TimeoutError:
            raise _unresponsive(command, limit) from None
        finally:
            await end(process)
        if process.returncode:
            raise _failure(command, process.returncode, stderr.decode(errors="replace"))
        return stdout.decode(errors=undecodable)


def _shown(program: str, arguments: tuple[str, ...]) -> str:
    return f"{program} {' '.join(arguments)}"[:_SHOWN_CHARACTERS].encode(errors="replace").decode()


def _unresponsive(command: str, limit: float) -> UnresponsiveError:
    reason = f"did not answer in {limit:g} s; missing capabilities or inactive placement groups make commands hang"
    return UnresponsiveError(command, reason)


def _failure(command: str, exit_code: int, stderr: str) -> CommandError:
    lines = [line.strip() for line in without_keys(stderr).splitlines() if line.strip()]
    messages = [line for line in lines if not _LOG_LINE.match(line)]
    message = "; ".join(messages[:2] or lines[-1:]) or f"exit code {exit_code}"
    reason = f"failed: {message[:_SHOWN_CHARACTERS]}"
    if exit_code == errno.EACCES or _REFUSED.search(reason):
        return NotPermittedError(command, f"{reason}; the user's capabilities do not allow it")
    return CommandError(command, reason)
