"""Locks that allow one local run at a time per directory or device: two runs would share its throughput."""

import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from plimsoll.cli.place import PlaceError

LOCK_FILE = ".plimsoll.lock"
_UNKNOWN_HOLDER = "which one is unknown"
_HOLDER_BYTES = 200
_PROBE_SECONDS = 3.0
"""udev locks a device briefly after a program has closed it."""
_POLL_SECONDS = 0.1


@contextmanager
def claimed_directory(directory: Path, name: str) -> Iterator[None]:
    """Lock a directory for a run. The kernel releases the lock when the process ends.

    Raises:
        PlaceError: if another run holds the lock, or the lock file cannot be created.

    """
    path = directory / LOCK_FILE
    try:
        descriptor = _locked_file(path)
    except BlockingIOError as error:
        message = (
            f"--directory {directory} is being measured by another run ({_holder(path)}); "
            "wait until it has ended: two runs would share the throughput"
        )
        raise PlaceError(message) from error
    except OSError as error:
        message = f"--directory {directory} cannot be locked: {path}: {error.strerror}"
        raise PlaceError(message) from error
    try:
        with suppress(OSError):
            os.truncate(descriptor, 0)
            os.write(descriptor, f"run {name}, process {os.getpid()}\n".encode())
        yield
    finally:
        # `_locked_file` notices that the file was removed.
        path.unlink(missing_ok=True)
        os.close(descriptor)


@contextmanager
def claimed_devices(devices: Sequence[Path]) -> Iterator[None]:
    """Lock devices as other programs that write to whole devices do; udev respects this lock.

    Raises:
        PlaceError: if another program holds one of them.

    """
    with ExitStack() as stack:
        for device in devices:
            try:
                descriptor = os.open(device, os.O_RDONLY)
                stack.callback(os.close, descriptor)
                _lock_in_time(descriptor)
            except BlockingIOError as error:
                message = (
                    f"--device {device} is locked by another program, possibly another run; wait until it has ended"
                )
                raise PlaceError(message) from error
            except OSError as error:
                message = f"--device {device}: {error.strerror}"
                raise PlaceError(message) from error
        yield


def _locked_file(path: Path) -> int:
    """Return a descriptor that locks the file that currently has this name.

    Raises:
        BlockingIOError: if another process holds the lock.
        OSError: if the file cannot be opened or locked.

    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_named(descriptor, path):
                return descriptor
        except OSError:
            os.close(descriptor)
            raise
        # A run that just ended removed the file between the two calls.
        os.close(descriptor)


def _lock_in_time(descriptor: int) -> None:
    """Lock a file that another process may hold briefly.

    Raises:
        BlockingIOError: if it is held for longer.

    """
    deadline = time.monotonic() + _PROBE_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
        else:
            return
        time.sleep(_POLL_SECONDS)


def _is_named(descriptor: int, path: Path) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False


def _holder(path: Path) -> str:
    with suppress(OSError), path.open("rb") as file:
        return file.read(_HOLDER_BYTES).decode(errors="replace").strip() or _UNKNOWN_HOLDER
    return _UNKNOWN_HOLDER
