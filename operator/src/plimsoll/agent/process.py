"""Runs one command so that it cannot outlive its agent."""

import asyncio
import os
import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from plimsoll.tools.base import DIE_WITH_PARENT, Output

STDOUT_FILE = "stdout"
STDERR_FILE = "stderr"
_IS_OUTPUT = re.compile(rf"(?:{STDOUT_FILE}|{STDERR_FILE})(?:-\d+)?")
_TAIL_BYTES = 4096
_STALE_SECONDS = 5.0
_OVERWRITTEN = re.compile(r"^[^\n]*\r(?!\n)", re.MULTILINE)
"""Overwritten terminal lines. Anchored at the start of a line: unanchored, a line of a megabyte would take hours."""
_MAX_FILE_BYTES = 64 * 2**20
_POLL_SECONDS = 1.0
_LAST_WORDS = 1000
_TERM_SECONDS = 2.0
"""Time for a tool to end after SIGTERM; fio closes its image within 0.2 s."""
_CANNOT_START = 127

Watch = Callable[[int], None]
"""Called with the process id of a running command about every second; an exception kills the command."""


class OverdueError(Exception):
    """A command exceeded its time limit and was killed; the message contains the limit and its last output."""


async def run(
    argv: tuple[str, ...],
    *,
    directory: Path,
    environment: Mapping[str, str] | None = None,
    watches: Sequence[Watch] = (),
    limit_seconds: float | None = None,
    stdin: str = os.devnull,
    metered_seconds: int = 0,
    number: int = 0,
) -> Output:
    """Run a command in a directory and return its output. Cancellation ends it with all its children.

    `number` tells commands apart that run in one directory at the same time; for `metered_seconds` see `Command`.

    Overwritten terminal lines are dropped; `recent_output` returns them while the command runs. A command that cannot
    be started ends with exit code 127, as in a shell.

    Raises:
        OverdueError: it did not end within `limit_seconds`.

    """
    launched_at = time.time_ns()
    stdout_path, stderr_path = _output(directory, STDOUT_FILE, number), _output(directory, STDERR_FILE, number)
    with stdout_path.open("wb") as stdout, stderr_path.open("wb") as stderr:
        printed = asyncio.subprocess.DEVNULL if metered_seconds else stdout
        try:
            process = await _start(argv, directory, environment or {}, stdin=Path(stdin), stdout=printed, stderr=stderr)
        except OSError as error:
            stderr.write(f"{DIE_WITH_PARENT[0]}: {error}".encode())
            exit_code = _CANNOT_START
        else:
            meter = [_Meter(stdout, metered_seconds).look] if metered_seconds else []
            exit_code = await _wait(process, [*meter, *watches], limit_seconds, stderr_path)
    finished_at = time.time_ns()
    return Output(
        exit_code=exit_code,
        stdout=_OVERWRITTEN.sub("", _read(stdout_path)),
        stderr=_read(stderr_path),
        files=_read_files(directory),
        launched_at=launched_at,
        finished_at=finished_at,
    )


def recent_output(directory: Path, number: int = 0) -> str:
    """Return the last 4 KiB that a command in a directory has printed so far, from within a line on.

    Of a command that prints nothing on standard output, such as dd, that is its standard error. Empty if it has printed
    nothing in the last 5 s: older output does not describe the present.
    """
    return _recent(_output(directory, STDOUT_FILE, number)) or _recent(_output(directory, STDERR_FILE, number))


def written_bytes(pid: int) -> int:
    """Return the bytes that a process has written to storage (`proc_pid_io(5)`); 0 if it has exited."""
    return _counted_bytes(pid, "write_bytes:") or 0


def _counted_bytes(pid: int, name: str) -> int | None:
    try:
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith(name)), None)


class _MeteredEndError(Exception):
    """A metered command has run for its time."""


class _Meter:
    """Prints the bytes that a command has read so far, and ends it after its time."""

    def __init__(self, lines: BinaryIO, seconds: int) -> None:
        self._lines = lines
        self._end = time.monotonic() + seconds

    def look(self, pid: int) -> None:
        """Print a line; _MeteredEndError if the time is over."""
        read = _counted_bytes(pid, "rchar:")
        if read is not None:
            self._lines.write(f"{time.time_ns()} {read}\n".encode())
            self._lines.flush()
        if time.monotonic() >= self._end:
            raise _MeteredEndError


def _recent(path: Path) -> str:
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if time.time() - status.st_mtime > _STALE_SECONDS:
                return ""
            file.seek(max(0, status.st_size - _TAIL_BYTES))
            return file.read(_TAIL_BYTES).decode(errors="replace")
    except OSError:
        return ""


async def _start(
    argv: tuple[str, ...],
    directory: Path,
    environment: Mapping[str, str],
    *,
    stdin: Path,
    stdout: BinaryIO | int,
    stderr: BinaryIO,
) -> asyncio.subprocess.Process:
    with stdin.open("rb") as source:
        return await asyncio.create_subprocess_exec(
            *DIE_WITH_PARENT,
            *argv,
            cwd=directory,
            env={**os.environ, **environment},
            stdin=source,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )


async def _wait(
    process: asyncio.subprocess.Process, watches: Sequence[Watch], limit_seconds: float | None, stderr: Path
) -> int:
    try:
        async with asyncio.timeout(limit_seconds):
            while True:
                for watch in watches:
                    watch(process.pid)
                with suppress(TimeoutError):
                    async with asyncio.timeout(_POLL_SECONDS if watches else None):
                        return await process.wait()
    except _MeteredEndError:
        return 0
    except TimeoutError as error:
        words = _read(stderr).strip()[-_LAST_WORDS:]
        message = f"did not end within {limit_seconds} s, and was killed{words and f'; its last output: {words}'}"
        raise OverdueError(message) from error
    finally:
        if process.returncode is None:
            await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a command and all its children, by force if SIGTERM does not.

    An RBD client that is killed while it writes leaves its exclusive lock behind; the next client waits up to 30 s.
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


def _output(directory: Path, name: str, number: int) -> Path:
    """Return the file with an output of the command with that number in a directory."""
    return directory / (f"{name}-{number}" if number else name)


def _read_files(directory: Path) -> dict[str, str]:
    """Return the text of all files in a directory, except the outputs of its commands."""
    paths = (path for path in sorted(directory.iterdir()) if path.is_file())
    return {path.name: _read(path) for path in paths if not _IS_OUTPUT.fullmatch(path.name)}


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_MAX_FILE_BYTES).decode(errors="replace")
