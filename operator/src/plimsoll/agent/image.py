"""The client's RBD image, which its tools reach through librbd: no device and no file of this host."""

import errno
import json
import os
from dataclasses import dataclass

from plimsoll.agent.volume import VolumeError, aligned
from plimsoll.tools.base import Command, ImageTarget

LOOK_UP_SECONDS = 60.0
"""librados asks for a monitor for 300 s before it gives up; one that is there answers within a second."""

_DISCARD_SECONDS = 600.0
_DISCARD_BYTES_PER_SECOND = 64 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageVolume:
    """An RBD image of one client's own.

    Attributes:
        user: whose key is used, without `client.`.
        size: bytes of the image as they were planned.
        cache: whether librbd's writeback cache is on.

    """

    pool: str
    image: str
    user: str
    size: int
    cache: bool = False

    @property
    def name(self) -> str:
        """Return what people call it."""
        return f"{self.pool}/{self.image}"

    def target(self) -> ImageTarget:
        """Return the data set: every whole MiB of the image.

        Raises:
            VolumeError: there is none.

        """
        size = aligned(self.size)
        if size <= 0:
            message = f"image {self.name} is to have {self.size} bytes, less than a data set of one MiB needs"
            raise VolumeError(message)
        return ImageTarget(pool=self.pool, image=self.image, user=self.user, size=size, cache=self.cache)

    def look_up_command(self) -> Command:
        """Return the command that asks the cluster for the image."""
        image = ("--pool", self.pool, "--image", self.image)
        # Its words are read, so they must not be translated.
        return Command(argv=("rbd", "--id", self.user, "info", "--format", "json", *image), environment={"LC_ALL": "C"})

    def check_found(self, exit_code: int, stdout: str, stderr: str) -> None:
        """Check what `look_up_command` left behind.

        Raises:
            VolumeError: the image is not there, not for this user, too small, or the cluster is out of reach.

        """
        if exit_code != 0:
            message = f"{self._problem(stderr)} (rbd ended with exit code {exit_code}: {stderr.strip()})"
            raise VolumeError(message)
        size = _size(stdout)
        if size is None:
            message = f"rbd does not tell the size of image {self.name}: {stdout.strip() or 'it said nothing'}"
            raise VolumeError(message)
        if size < aligned(self.size):
            message = f"image {self.name} has {size} bytes, {self.size} were planned; make it larger or anew"
            raise VolumeError(message)

    @property
    def unreachable(self) -> str:
        """What to say of a cluster that does not answer, and what to look at."""
        return (
            f"cannot reach image {self.name} as client.{self.user}. {self._connection} that this host reaches the "
            f"monitors and OSDs (NetworkPolicies, firewalls), and that the placement groups of pool {self.pool} are "
            "active"
        )

    @property
    def stuck(self) -> str:
        """What to look at if I/O goes wrong on an image that was found."""
        return (
            f"it was done as client.{self.user}. Check in `ceph status` that the placement groups of pool {self.pool} "
            f"are active and nothing is full, and in `ceph auth get client.{self.user}` that its caps cover the "
            "image's data pool too"
        )

    @property
    def discard_seconds(self) -> float:
        """Return how long a discard may take: it sends too little to be watched for a stall."""
        return _DISCARD_SECONDS + self.size / _DISCARD_BYTES_PER_SECOND

    @property
    def _connection(self) -> str:
        return f"Check that {_configuration()} names monitors and a keyring with the key of client.{self.user},"

    def _problem(self, stderr: str) -> str:
        if "couldn't connect" in stderr:
            return self.unreachable
        if os.strerror(errno.EPERM) in stderr or os.strerror(errno.EACCES) in stderr:
            return (
                f"client.{self.user} may not use image {self.name}. Check that its caps are "
                "mon 'profile simple-rados-client' and "
                f"osd 'profile rbd pool={self.pool}', with one more for a data pool"
            )
        if "error opening pool" in stderr:
            return f"pool {self.pool} is not there for client.{self.user}. Check its name and who removed it"
        if os.strerror(errno.ENOENT) in stderr:
            return f"image {self.name} is not there. It is made before agents prepare: check who removed it"
        return f"image {self.name} cannot be opened as client.{self.user}"


def _configuration() -> str:
    return os.environ.get("CEPH_CONF", "/etc/ceph/ceph.conf")


def _size(text: str) -> int | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    size = found.get("size") if isinstance(found, dict) else None
    return size if isinstance(size, int) else None
