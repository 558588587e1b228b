"""One local run at a time in a directory or on a device: two of them would each measure what the other leaves over."""

import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from plimsoll.cli.place import PlaceError

LOCK_FILE = ".plimsoll.lock"
_WORDS_BYTES = 200
_PROBE_SECONDS = 3.0
"""udev holds the lock of a device for a moment after somebody has closed it."""
_POLL_SECONDS = 0.1


@contextmanager
def claimed_directory(directory: Path, name: str) -> Iterator[None]:
    """Claim a directory for the run of that name, however it ends: the kernel keeps the lock only as long as it lives.

    Raises:
        PlaceError: another run has it, or no lock can be made in it.

    """
    path = directory / LOCK_FILE
    try:
        descriptor = _locked_file(path)
    except BlockingIOError as error:
        message = (
            f"--directory {directory} is being measured by another run ({_holder(path)}); "
            "wait for its end: each would measure what the other leaves over"
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
        # Whoever waits for it while it is removed finds out: see `_locked_file`.
        path.unlink(missing_ok=True)
        os.close(descriptor)


@contextmanager
def claimed_devices(devices: Sequence[Path]) -> Iterator[None]:
    """Claim devices in the way that all programs do which write to whole devices, and that udev respects.

    Raises:
        PlaceError: another program has one of them.

    """
    with ExitStack() as stack:
        for device in devices:
            try:
                descriptor = os.open(device, os.O_RDONLY)
                stack.callback(os.close, descriptor)
                _lock_in_time(descriptor)
            except BlockingIOError as error:
                message = (
                    f"--device {device} is locked by another program, perhaps by a run that measures it; wait for it"
                )
                raise PlaceError(message) from error
            except OSError as error:
                message = f"--device {device}: {error.strerror}"
                raise PlaceError(message) from error
        yield


def _locked_file(path: Path) -> int:
    """Return a descriptor that holds the lock of the file that has this name now.

    Raises:
        BlockingIOError: somebody else holds it.
        OSError: the file cannot be opened or locked.

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
        # A run that just ended has removed the file between the two calls.
        os.close(descriptor)


def _lock_in_time(descriptor: int) -> None:
    """Lock a file that somebody may hold for a moment.

    Raises:
        BlockingIOError: somebody holds it for longer.

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
        return file.read(_WORDS_BYTES).decode(errors="replace").strip() or "it does not say which"
    return "it does not say which"
