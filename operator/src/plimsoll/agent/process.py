"""Running one command so that it cannot outlive its agent."""

import asyncio
import os
import re
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

STDOUT_FILE = "stdout"
STDERR_FILE = "stderr"
_TAIL_BYTES = 4096
_STALE_SECONDS = 5.0
_OVERWRITTEN = re.compile(r"^[^\n]*\r(?!\n)", re.MULTILINE)
"""What a terminal would have shown only until the next words took its place. Sought from the beginnings of lines alone:
from everywhere else in a line of a megabyte it would take hours."""
_MAX_FILE_BYTES = 64 * 2**20
_POLL_SECONDS = 1.0
_LAST_WORDS = 1000
_TERM_SECONDS = 2.0
"""A tool that is told to end has so long for it. fio closed its image within 0.2 s."""
_DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")
"""The kernel kills the tool when the agent dies, however it dies."""


class OverdueError(Exception):
    """A command took too long and was killed; the message says how long it had, and its last words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What a command left behind.

    Attributes:
        exit_code: negative for a signal.
        files: those in its directory.
        launched_at: when it was started; Unix nanoseconds.
        finished_at: when it had ended; likewise.

    """

    exit_code: int
    stdout: str
    stderr: str
    files: Mapping[str, str]
    launched_at: int = field(default=0, compare=False)
    finished_at: int = field(default=0, compare=False)


async def run(
    argv: tuple[str, ...],
    *,
    directory: Path,
    environment: Mapping[str, str] | None = None,
    watch: Callable[[int], None] | None = None,
    limit_seconds: float | None = None,
) -> Finished:
    """Run a command in a directory and return what it left there. Cancelling ends it and all its children.

    Of what it prints on one line over the other only the last words are kept; `said_last` has the others meanwhile.

    `watch` is called with the process id as soon as the command has been started, and then about every second; what it
    raises kills the command too. A command that cannot be started ends with exit code 127, as in a shell.

    Raises:
        OverdueError: it did not end within `limit_seconds`.

    """
    launched_at = time.time_ns()
    with _open(directory / STDOUT_FILE) as stdout, _open(directory / STDERR_FILE) as stderr:
        try:
            process = await asyncio.create_subprocess_exec(
                *_DIE_WITH_PARENT,
                *argv,
                cwd=directory,
                env={**os.environ, **(environment or {})},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        except OSError as error:
            words, now = f"{_DIE_WITH_PARENT[0]}: {error}", time.time_ns()
            return Finished(exit_code=127, stdout="", stderr=words, files={}, launched_at=launched_at, finished_at=now)
        try:
            async with asyncio.timeout(limit_seconds):
                exit_code = await _wait(process, watch)
        except TimeoutError as error:
            words = _read(directory / STDERR_FILE).strip()[-_LAST_WORDS:]
            message = f"did not end within {limit_seconds} s, and was killed{words and f'; it had said: {words}'}"
            raise OverdueError(message) from error
        finally:
            if process.returncode is None:
                await _end(process)
    finished_at = time.time_ns()
    files = _files(directory)
    return Finished(
        exit_code=exit_code,
        stdout=_OVERWRITTEN.sub("", files.pop(STDOUT_FILE)),
        stderr=files.pop(STDERR_FILE),
        files=files,
        launched_at=launched_at,
        finished_at=finished_at,
    )


def said_last(directory: Path) -> str:
    """Return the end of what a command in a directory has printed until now: some lines, the first cut.

    Empty if it has printed nothing yet, or nothing for 5 s: what it said then is not how it is now.
    """
    try:
        with (directory / STDOUT_FILE).open("rb") as file:
            found = os.fstat(file.fileno())
            if time.time() - found.st_mtime > _STALE_SECONDS:
                return ""
            file.seek(max(0, found.st_size - _TAIL_BYTES))
            return file.read(_TAIL_BYTES).decode(errors="replace")
    except OSError:
        return ""


def written_bytes(pid: int) -> int:
    """Return what the kernel counted as written to storage by a process (`proc_pid_io(5)`); 0 if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("write_bytes:")), 0)


async def _wait(process: asyncio.subprocess.Process, watch: Callable[[int], None] | None) -> int:
    while True:
        if watch is not None:
            watch(process.pid)
        with suppress(TimeoutError):
            async with asyncio.timeout(_POLL_SECONDS if watch else None):
                return await process.wait()


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a command and all its children, by force if they do not end by themselves.

    A client of RBD that is killed while it writes leaves its exclusive lock behind: the next one was seen to wait 28 s.
    """
    try:
        _signal(process, signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(_TERM_SECONDS):
                await process.wait()
    finally:
        _signal(process, signal.SIGKILL)
        await process.wait()


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _open(path: Path) -> BinaryIO:
    return path.open("wb")


def _files(directory: Path) -> dict[str, str]:
    return {path.name: _read(path) for path in sorted(directory.iterdir()) if path.is_file()}


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_MAX_FILE_BYTES).decode(errors="replace")
