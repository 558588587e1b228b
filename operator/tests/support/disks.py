"""Disks in memory: nothing else writes to them, and the kernel can limit their reads. They need root and loop devices.

The limit is that of blk-throttle (`Throttle` of `simulated_storage.py`), and applies to the processes of one cgroup.
"""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DISK_BYTES = 96 * 2**20

_CGROUPS = Path("/sys/fs/cgroup")
_V1 = _CGROUPS / "blkio"


@contextmanager
def _image_in_memory(directory: Path) -> Iterator[Path]:
    """Yield an empty file of `DISK_BYTES` in memory, mounted below a directory until the context ends."""
    memory = directory / "memory"
    memory.mkdir()
    _call("mount", "-t", "tmpfs", "-o", f"size={2 * DISK_BYTES}", "tmpfs", str(memory))
    try:
        image = memory / "disk"
        image.touch()
        os.truncate(image, DISK_BYTES)
        yield image
    finally:
        _call("umount", "--lazy", str(memory))


@contextmanager
def mounted_image(image: Path, place: Path, *, size: int = DISK_BYTES // 2) -> Iterator[Path]:
    """Mount a new ext4 in an image, a file of another file system, until the context ends."""
    image.touch()
    os.truncate(image, size)
    with mounted(image, place, "-o", "loop"):
        yield place


@contextmanager
def mounted(device: Path, place: Path, *options: str) -> Iterator[None]:
    """Mount a new ext4 on a device until the context ends."""
    place.mkdir(exist_ok=True)
    _call("mkfs.ext4", "-q", str(device))
    _call("mount", *options, str(device), str(place))
    try:
        (place / "lost+found").rmdir()
        yield
    finally:
        _call("umount", "--lazy", str(place))


@contextmanager
def mounted_disk(directory: Path, place: Path) -> Iterator[Path]:
    """Mount a new ext4 on a disk in memory, for tests that measure while others keep the machine's disk busy."""
    with _image_in_memory(directory) as image, mounted_image(image, place, size=DISK_BYTES):
        yield place


@contextmanager
def throttled_device(directory: Path, reads_per_second: int) -> Iterator[tuple[Path, Path]]:
    """Yield a device in memory, and the file of the processes that have that limit; nothing is left afterwards."""
    with _image_in_memory(directory) as image:
        device = Path(_call("losetup", "--find", "--show", str(image)).strip())
        number = device.stat().st_rdev
        name = f"{os.major(number)}:{os.minor(number)}"
        cgroup = (_V1 if _V1.is_dir() else _CGROUPS) / f"plimsoll-throttled-{os.getpid()}"
        try:
            cgroup.mkdir()
            try:
                if _V1.is_dir():
                    (cgroup / "blkio.throttle.read_iops_device").write_text(f"{name} {reads_per_second}")
                else:
                    (cgroup / "io.max").write_text(f"{name} riops={reads_per_second}")
                yield device, cgroup / "cgroup.procs"
            finally:
                # Its last process may not have been reaped yet.
                deadline = time.monotonic() + 10
                while (cgroup / "cgroup.procs").read_text() and time.monotonic() < deadline:
                    time.sleep(0.05)
                cgroup.rmdir()
        finally:
            _call("losetup", "--detach", str(device))


def _call(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
