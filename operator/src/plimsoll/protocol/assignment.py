"""The assignment of one agent process: a document in a file or on standard input.

The operator writes it for a pod, `plimsoll run` for a process. It contains no secrets, and names no program, no file of
a token and no helper: options do, which an admission policy fixes. A new field must be optional and absent by default:
a run keeps the runner image that it started with.
"""

import hmac
from base64 import urlsafe_b64encode
from typing import Annotated, Literal

from pydantic import Field

from plimsoll.api.model import Model
from plimsoll.api.run import MAX_CLIENTS
from plimsoll.api.storage import CephName
from plimsoll.protocol.messages import MAX_ATTEMPT, ByteCount, ClientNumber

# PEM files. Agents trust the conductor's self-signed certificate and nothing else; only the conductor gets its key.
CERTIFICATE_FILE = "tls.crt"
KEY_FILE = "tls.key"

# The key from which all clients' tokens are derived, which only the conductor gets, and the token of one client, which
# its agent sends as bearer token with every request.
TOKEN_KEY_FILE = "token.key"  # noqa: S105 - the name of a file
TOKEN_FILE = "token"  # noqa: S105 - the name of a file


class DataFile(Model):
    """A file in a file system."""

    kind: Literal["File"] = "File"
    path: str
    capacity: ByteCount | None = None  # bytes that the client may use; absent for all free space
    mounted: bool = False  # whether to refuse a directory that is not a mount point


class SharedDirectory(Model):
    """A file system that all clients mount, in which each has a part."""

    kind: Literal["SharedDirectory"] = "SharedDirectory"
    path: str
    part: ByteCount  # bytes of each client's part
    clients: Annotated[int, Field(ge=1, le=MAX_CLIENTS)]  # number of the run's clients
    one_file: bool = False  # whether the clients' data sets are regions of one file, not files of their own
    mounted: bool = False  # whether to refuse a directory that is not a mount point


class BlockDevice(Model):
    """A block device, or this client's part of one. Its content is destroyed."""

    kind: Literal["Device"] = "Device"
    path: str
    offset: ByteCount = 0
    size: ByteCount | None = None  # absent for everything after `offset`


class RbdImage(Model):
    """An RBD image, accessed through librbd. Its content is destroyed."""

    kind: Literal["Image"] = "Image"
    pool: CephName
    image: CephName
    user: CephName  # CephX user, without `client.`; the configuration that CEPH_CONF names locates its key
    size: ByteCount
    cache: bool = False  # whether to use librbd's writeback cache


class RadosNamespace(Model):
    """This client's part of a pool, for tools that write RADOS objects; they use the namespace as run name."""

    pool: CephName
    namespace: CephName
    user: CephName


AssignedVolume = Annotated[DataFile | SharedDirectory | BlockDevice | RbdImage, Field(discriminator="kind")]


class Assignment(Model):
    """What one agent process needs to know."""

    conductor: str  # the conductor's URL
    client: ClientNumber
    attempt: Annotated[int, Field(ge=0, le=MAX_ATTEMPT)] = 0  # number of earlier processes of this client
    work: str  # directory for the tools' output
    silence_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 60.0  # it exits after so long without answer
    tools: tuple[str, ...] = ()  # keys of the tools that the run uses; their programs must be installed
    volume: AssignedVolume | None = None  # absent if no tool needs one
    rados: RadosNamespace | None = None  # absent if no tool needs a pool
    osd_keyring: str | None = None  # file with an administrator's key, for tools that measure OSDs
    caches: Literal[True] | None = None  # whether to drop the caches of the node when asked to; absent if not
    raw_output: str | None = None  # directory in which to keep the tools' raw output
    termination_log: str | None = None  # file for the reason of a failure


def token_name(client: int) -> str:
    """Return the key of a client's token in the session secret."""
    return f"token-{client}"


def client_token(key: bytes, client: int) -> str:
    """Return the token that all processes of a client share: its number and an HMAC of it."""
    proof = hmac.digest(key, f"plimsoll client {client}".encode(), "sha256")
    return f"{client}.{urlsafe_b64encode(proof).rstrip(b'=').decode()}"


def client_of(token: str, key: bytes) -> int | None:
    """Return the client that a token belongs to; None if it is not valid."""
    number = token.partition(".")[0]
    if not (number.isascii() and number.isdecimal() and len(number) < 10):  # noqa: PLR2004 - far more than clients
        return None
    client = int(number)
    expected = client_token(key, client).encode()
    return client if hmac.compare_digest(token.encode(errors="surrogateescape"), expected) else None
