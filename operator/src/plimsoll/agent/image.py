"""The client's RBD image, which its tools access through librbd, without a device or file on this host."""

import errno
import os
from dataclasses import dataclass

from pydantic import BaseModel, StrictInt, ValidationError

from plimsoll.agent.volume import VolumeError, aligned
from plimsoll.tools.base import Command
from plimsoll.tools.target import ImageTarget

LOOK_UP_SECONDS = 60.0
"""librados tries for 300 s to reach a monitor; a reachable one answers within a second."""

_DISCARD_SECONDS = 600.0
_DISCARD_BYTES_PER_SECOND = 64 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageVolume:
    """One client's RBD image.

    Attributes:
        user: CephX user, without `client.`.
        size: planned size in bytes.
        cache: whether librbd's writeback cache is on.

    """

    pool: str
    image: str
    user: str
    size: int
    cache: bool = False

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"{self.pool}/{self.image}"

    def target(self) -> ImageTarget:
        """Return the data set: every whole MiB of the image. VolumeError if there is none."""
        size = aligned(self.size)
        if size <= 0:
            message = f"image {self.name} has a planned size of {self.size} bytes; a data set needs at least 1 MiB"
            raise VolumeError(message)
        return ImageTarget(pool=self.pool, image=self.image, user=self.user, size=size, cache=self.cache)

    def look_up_command(self) -> Command:
        """Return the command that looks up the image in the cluster."""
        image = ("--pool", self.pool, "--image", self.image)
        # Untranslated, because its messages are parsed.
        return Command(argv=("rbd", "--id", self.user, "info", "--format", "json", *image), environment={"LC_ALL": "C"})

    def check_found(self, exit_code: int, stdout: str, stderr: str) -> None:
        """Check the result of `look_up_command`; VolumeError if the image cannot be used."""
        if exit_code != 0:
            raise VolumeError(f"{self._problem(stderr)} (rbd ended with exit code {exit_code}: {stderr.strip()})")
        try:
            size = _ImageInfo.model_validate_json(stdout).size
        except ValidationError as error:
            message = f"rbd info does not show the size of image {self.name}: {stdout.strip() or 'no output'}"
            raise VolumeError(message) from error
        if size < aligned(self.size):
            message = f"image {self.name} has {size} bytes, but {self.size} were planned; resize or recreate it"
            raise VolumeError(message)

    @property
    def unreachable(self) -> str:
        """The message for a cluster that does not answer."""
        return (
            f"cannot reach image {self.name} as client.{self.user}. Check that "
            f"{os.environ.get('CEPH_CONF', '/etc/ceph/ceph.conf')} names monitors and a keyring with the key of "
            f"client.{self.user}, that this host reaches the monitors and OSDs (NetworkPolicies, firewalls), and that "
            f"the placement groups of pool {self.pool} are active"
        )

    @property
    def stuck(self) -> str:
        """The remedy when I/O fails on an image that was found."""
        return (
            f"it ran as client.{self.user}. Check in `ceph status` that the placement groups of pool {self.pool} "
            f"are active and nothing is full, and in `ceph auth get client.{self.user}` that its caps cover the "
            "image's data pool too"
        )

    @property
    def discard_seconds(self) -> float:
        """Time limit of a discard, which sends too little for a stall watch."""
        return _DISCARD_SECONDS + self.size / _DISCARD_BYTES_PER_SECOND

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
            return f"client.{self.user} does not see pool {self.pool}. Check its name, and whether it was removed"
        if os.strerror(errno.ENOENT) in stderr:
            return f"image {self.name} does not exist. It is created before agents prepare: check who removed it"
        return f"image {self.name} cannot be opened as client.{self.user}"


class _ImageInfo(BaseModel):
    """The part of `rbd info` that matters here."""

    size: StrictInt
