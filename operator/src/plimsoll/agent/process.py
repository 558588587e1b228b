"""Running one command so that it cannot outlive its agent."""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

STDOUT_FILE = "stdout"
STDERR_FILE = "stderr"
_MAX_FILE_BYTES = 64 * 2**20
_POLL_SECONDS = 1.0
_DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")
"""The kernel kills the tool when the agent dies, however it dies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What a command left behind; `exit_code` is negative for a signal, `files` are those in its directory."""

    exit_code: int
    stdout: str
    stderr: str
    files: Mapping[str, str]


async def run(
    argv: tuple[str, ...],
    *,
    directory: Path,
    environment: Mapping[str, str] | None = None,
    watch: Callable[[int], None] | None = None,
) -> Finished:
    """Run a command in a directory and return what it left there. Cancelling kills it and all its children.

    `watch` is called with the process id as soon as the command has been started, and then about every second.
    A command that cannot be started ends with exit code 127, as in a shell.
    """
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
            return Finished(exit_code=127, stdout="", stderr=f"{_DIE_WITH_PARENT[0]}: {error}", files={})
        try:
            exit_code = await _wait(process, watch)
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
    files = _files(directory)
    return Finished(exit_code=exit_code, stdout=files.pop(STDOUT_FILE), stderr=files.pop(STDERR_FILE), files=files)


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


def _open(path: Path) -> BinaryIO:
    return path.open("wb")


def _files(directory: Path) -> dict[str, str]:
    return {path.name: _read(path) for path in sorted(directory.iterdir()) if path.is_file()}


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_MAX_FILE_BYTES).decode(errors="replace")
