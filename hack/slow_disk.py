"""Run a command on a disk of a known speed: `python hack/slow_disk.py COMMAND...`; DISK in it is the device.

The disk answers four operations at a time: reads in 1 to 3 ms and writes in twice that, at random. So it completes
about 2,000 reads or 1,000 writes per second; more operations in flight only wait longer. It has 256 MiB, in memory.
Needs root: it is a loop device on a file whose reads and writes the kernel passes to this program (FUSE).
"""

# ruff: noqa: INP001 - a script, run by path
import ctypes
import mmap
import os
import random
import subprocess
import sys
import time
from errno import ENODEV, ENOENT, ENOSYS
from pathlib import Path
from struct import Struct
from tempfile import TemporaryDirectory

SIZE = 256 * 2**20
AT_A_TIME = 4

# From the kernel's <linux/fuse.h>: operations, flags, and the layouts of messages, by their fields.
FORGET, GETATTR, SETATTR, OPEN, READ, WRITE, RELEASE, FSYNC, FLUSH, INIT, INTERRUPT = (
    *(2, 3, 4, 14, 15, 16, 18, 20, 25, 26, 36),
)
ASYNC_READ, BIG_WRITES, ASYNC_DIO = 1 << 0, 1 << 5, 1 << 15
DIRECT_IO, PARALLEL_DIRECT_WRITES = 1 << 0, 1 << 6
LARGEST = 128 * 2**10
REQUEST = Struct("<IIQ 24x 8x QI 20x")  # length, operation, number; offset and size of a read or write
ANSWER = Struct("<IiQ")  # length, error, number
ATTRIBUTES = Struct("<Q8x QQQ 36x II 12x I4x")  # seconds of validity; inode, size, blocks; mode, links; block size

MEAN_SECONDS = {READ: 0.002, WRITE: 0.004}
BODIES = {
    INIT: Struct("<IIIIHHI40x").pack(7, 31, 0, ASYNC_READ | BIG_WRITES | ASYNC_DIO, 256, 256, LARGEST),
    OPEN: Struct("<8xI4x").pack(DIRECT_IO | PARALLEL_DIRECT_WRITES),
    GETATTR: ATTRIBUTES.pack(3600, 1, SIZE, SIZE // 512, 0o100600, 1, 4096),
}
BODIES |= {SETATTR: BODIES[GETATTR], **dict.fromkeys((RELEASE, FSYNC, FLUSH), b"")}


def main() -> None:
    """Mount the file, run the command, and exit with its code."""
    requests = os.open("/dev/fuse", os.O_RDWR)
    with TemporaryDirectory() as directory:
        place = Path(directory) / "disk"
        place.touch()
        options = f"fd={requests},rootmode=100600,user_id=0,group_id=0"
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"slow-disk", str(place).encode(), b"fuse", 0, options.encode()):
            sys.exit(f"cannot mount FUSE: {os.strerror(ctypes.get_errno())}")
        content = mmap.mmap(-1, SIZE)
        for _ in range(AT_A_TIME):
            if not os.fork():
                serve(requests, content)
        os.close(requests)
        try:
            sys.exit(run_on_device(place, sys.argv[1:]))
        finally:
            subprocess.run(["umount", "--lazy", str(place)], check=True)


def run_on_device(place: Path, command: list[str]) -> int:
    """Return the exit code of the command."""
    attach = ["losetup", "--direct-io=on", "--find", "--show", str(place)]
    device = subprocess.run(attach, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    try:
        return subprocess.run([device if word == "DISK" else word for word in command], check=False).returncode
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


def serve(requests: int, content: mmap.mmap) -> None:
    """Answer one request at a time until the file is unmounted."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))  # a disk does not wait for a processor
    request = memoryview(bytearray(LARGEST + 2**12))
    while True:
        try:
            os.readv(requests, [request])
        except OSError as error:
            if error.errno == ENODEV:  # unmounted
                os._exit(0)
            if error.errno == ENOENT:  # the request was withdrawn
                continue
            raise
        _, operation, number, offset, size = REQUEST.unpack_from(request)
        if operation in (FORGET, INTERRUPT):  # have no answer
            continue
        body, failure = BODIES.get(operation, b""), 0
        if operation in MEAN_SECONDS:
            time.sleep(MEAN_SECONDS[operation] * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
        if operation == READ:
            body = content[offset : offset + size]
        elif operation == WRITE:
            content[offset : offset + size] = bytes(request[REQUEST.size : REQUEST.size + size])
            body = Struct("<I4x").pack(size)
        elif operation not in BODIES:
            failure = -ENOSYS
        os.writev(requests, [ANSWER.pack(ANSWER.size + len(body), failure, number), body])


if __name__ == "__main__":
    main()
