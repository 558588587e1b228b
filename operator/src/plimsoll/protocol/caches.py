"""The messages between an agent and the helper that drops the caches of its node; docs/protocol.md describes them."""

from typing import Annotated

from pydantic import Field

from plimsoll.api.model import Model
from plimsoll.api.surroundings import NodeCaches, OsdCaches

AUDIENCE = "plimsoll-caches"
"""The audience of the conductor's token: neither the API server nor another program accepts it."""

PORT = 8080
PATH = "/drop"

MAX_REQUEST_BYTES = 1024
MAX_ANSWER_BYTES = 64 * 2**10
MAX_TOKEN_CHARACTERS = 4096
"""A token of a ServiceAccount has about 1000."""

_MAX_FSID = 64


class DropRequest(Model):
    """The one order that a helper accepts: drop the caches of the node.

    Attributes:
        fsid: identity of the Ceph cluster whose OSDs also drop their caches; absent to leave the OSDs alone.

    """

    fsid: Annotated[str, Field(max_length=_MAX_FSID)] | None = None


class CacheDrop(Model):
    """The answer: what was dropped.

    Attributes:
        osds: absent if the request contains no cluster.

    """

    node: NodeCaches
    osds: OsdCaches | None = None


class DropRefusal(Model):
    """Why a helper did not drop the caches."""

    message: str


def helper_url(service: str, namespace: str) -> str:
    """Return the URL of the helper's Service, which passes a request to the helper on the sender's node."""
    return f"http://{service}.{namespace}.svc:{PORT}"
