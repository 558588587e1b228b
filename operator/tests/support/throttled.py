"""A real block device that the kernel limits to a number of reads per second: needs root, loop devices, and cgroups.

The device is a loop device on a file in memory, so that the machine's disk has no part in it. The limit is that of
blk-throttle (`throttling.py`) and applies to the processes of one cgroup, which this module makes and removes.
"""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

IMAGE_BYTES = 96 * 2**20

_CGROUPS = Path("/sys/fs/cgroup")
_V1 = _CGROUPS / "blkio"


@dataclass(frozen=True, slots=True)
class Throttled:
    """A device and the cgroup whose reads from it are limited."""

    device: Path
    cgroup: Path

    def admit(self, pid: int) -> None:
        """Limit a process, and those that it starts from now on."""
        (self.cgroup / "cgroup.procs").write_text(str(pid))


@contextmanager
def throttled_device(directory: Path, reads_per_second: int) -> Iterator[Throttled]:
    """Yield such a device, of which the backing file is below a directory; nothing is left of it afterwards."""
    memory = directory / "memory"
    memory.mkdir()
    _call("mount", "-t", "tmpfs", "-o", f"size={2 * IMAGE_BYTES}", "tmpfs", str(memory))
    try:
        image = memory / "disk"
        image.touch()
        os.truncate(image, IMAGE_BYTES)
        device = _call("losetup", "--find", "--show", str(image)).strip()
        try:
            with _limited(Path(device), reads_per_second) as cgroup:
                yield Throttled(Path(device), cgroup)
        finally:
            _call("losetup", "--detach", device)
    finally:
        _call("umount", "--lazy", str(memory))


@contextmanager
def _limited(device: Path, reads_per_second: int) -> Iterator[Path]:
    number = device.stat().st_rdev
    name = f"{os.major(number)}:{os.minor(number)}"
    cgroup = (_V1 if _V1.is_dir() else _CGROUPS) / f"plimsoll-throttled-{os.getpid()}"
    cgroup.mkdir()
    try:
        if _V1.is_dir():
            (cgroup / "blkio.throttle.read_iops_device").write_text(f"{name} {reads_per_second}")
        else:
            (cgroup / "io.max").write_text(f"{name} riops={reads_per_second}")
        yield cgroup
    finally:
        _remove(cgroup)


def _remove(cgroup: Path) -> None:
    """Remove a cgroup as soon as its last process has been reaped."""
    deadline = time.monotonic() + 10
    while (cgroup / "cgroup.procs").read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    cgroup.rmdir()


def _call(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
