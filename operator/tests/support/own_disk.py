"""A disk that nothing else writes to, for tests that measure while other suites keep the machine's disk busy."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DISK_BYTES = 96 * 2**20


@contextmanager
def mounted_disk(directory: Path, place: Path) -> Iterator[Path]:
    """Mount an empty ext4 on a disk in memory, whose backing file is below a directory; both end with the context."""
    memory = directory / "memory"
    memory.mkdir()
    place.mkdir(exist_ok=True)
    _call("mount", "-t", "tmpfs", "-o", f"size={2 * DISK_BYTES}", "tmpfs", str(memory))
    try:
        image = memory / "disk"
        image.touch()
        os.truncate(image, DISK_BYTES)
        _call("mkfs.ext4", "-q", str(image))
        _call("mount", "-o", "loop", str(image), str(place))
        try:
            (place / "lost+found").rmdir()
            yield place
        finally:
            _call("umount", "--lazy", str(place))
    finally:
        _call("umount", "--lazy", str(memory))


@contextmanager
def mounted_image(image: Path, place: Path) -> Iterator[Path]:
    """Mount an empty ext4 in an image, a file of another file system, until the context ends."""
    place.mkdir(exist_ok=True)
    image.touch()
    os.truncate(image, DISK_BYTES // 2)
    _call("mkfs.ext4", "-q", str(image))
    _call("mount", "-o", "loop", str(image), str(place))
    try:
        (place / "lost+found").rmdir()
        yield place
    finally:
        _call("umount", "--lazy", str(place))


def _call(*command: str) -> None:
    subprocess.run(command, check=True)
