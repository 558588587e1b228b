"""What lists and watches are asked with, and what they answer."""

from collections.abc import AsyncGenerator, Mapping, Sequence

import aiohttp
import msgspec

from plimsoll.kube.errors import TransientError
from plimsoll.kube.port import Changed, Gone, Kind, Object, Version

Query = Sequence[tuple[str, str]]

_CHANGES: Mapping[str, type[Changed] | type[Gone]] = {"ADDED": Changed, "MODIFIED": Changed, "DELETED": Gone}


async def changes(stream: aiohttp.ClientResponse, asked: str) -> AsyncGenerator[Changed | Gone]:
    """Yield the changes that a watch of metadata tells of, until the API server ends it.

    Raises:
        TransientError: if the connection breaks.

    """
    try:
        async for line in stream.content:
            event = msgspec.json.decode(line)
            if event["type"] not in _CHANGES:
                # The version from which to go on is not known any more: whoever watches has to list again.
                return
            yield _CHANGES[event["type"]](version_of(event["object"]))
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        raise TransientError(asked, str(error) or type(error).__name__) from error
    finally:
        stream.close()


def selectors(labels: Mapping[str, str] | None, fields: Mapping[str, str] | None) -> Query:
    """Return what selects objects with these labels and fields."""
    both = (("labelSelector", labels), ("fieldSelector", fields))
    return [(name, ",".join(f"{key}={value}" for key, value in wanted.items())) for name, wanted in both if wanted]


def version_of(item: Object) -> Version:
    """Return which version of which object this is."""
    metadata = item["metadata"]
    namespace = metadata.get("namespace", "")
    return Version(uid=metadata["uid"], namespace=namespace, name=metadata["name"], version=metadata["resourceVersion"])


def named(kind: Kind, item: Object) -> Object:
    """Return an entry of a list with its kind, which the list leaves out."""
    return {"apiVersion": kind.api_version, "kind": kind.kind, **item}
