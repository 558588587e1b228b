"""Reading what the API server answers.

Of long lists of metadata Python objects are made only of what is needed: that is faster by an order of magnitude.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import aiohttp
import msgspec

from plimsoll.kube.lists import named
from plimsoll.kube.port import Kind, Object, Version

ACCEPT_JSON = {"Accept": "application/json"}
ACCEPT_TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
ACCEPT_METADATA = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
ACCEPT_METADATA_LIST = {
    "Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    # Compressing costs both sides more than the bytes do within a cluster.
    "Accept-Encoding": "identity",
}

T = TypeVar("T")


class _Metadata(msgspec.Struct, rename={"version": "resourceVersion"}):
    """What of an object's metadata says which version of which object it is."""

    uid: str
    name: str
    version: str
    namespace: str = ""


class _Entry(msgspec.Struct):
    metadata: _Metadata


class _MetadataList(msgspec.Struct):
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)
    items: list[_Entry] | None = None


_METADATA_LIST = msgspec.json.Decoder(_MetadataList)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some entries of a list, the token of the next ones (empty if there are none), and the version of the list."""

    entries: Sequence[T]
    token: str
    version: str

    @classmethod
    def of(cls, entries: Sequence[T], metadata: Mapping[str, Any]) -> Self:
        """Return a page with what its list says of itself."""
        return cls(entries, metadata.get("continue", ""), metadata.get("resourceVersion", ""))


def objects_page(kind: Kind, body: bytes) -> Page[Object]:
    """Read a page of whole objects."""
    answer = msgspec.json.decode(body)
    return Page.of([named(kind, item) for item in answer.get("items") or ()], answer.get("metadata", {}))


def versions_page(body: bytes) -> Page[Version]:
    """Read a page of metadata. The names of all fields that somebody wrote, most of its bytes, are skipped."""
    answer = _METADATA_LIST.decode(body)
    found = (entry.metadata for entry in answer.items or ())
    return Page.of(
        [Version(uid=m.uid, namespace=m.namespace, name=m.name, version=m.version) for m in found], answer.metadata
    )


def document(body: bytes) -> dict[str, Any]:
    """Read one object."""
    found: dict[str, Any] = msgspec.json.decode(body)
    return found


async def read(parse: Callable[[bytes], T], response: aiohttp.ClientResponse) -> T:
    """Return what the body of an answer holds.

    Raises:
        ValueError: if it is not what it has to be, as an answer of something between here and the API server.

    """
    body = await response.read()
    if "json" not in response.content_type:
        raise ValueError(f"the answer is {response.content_type or 'of no type'}, not JSON")
    return parse(body)


async def unread(response: aiohttp.ClientResponse) -> aiohttp.ClientResponse:
    """Return an answer that is read as it comes in."""
    return response
