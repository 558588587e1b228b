"""Reading results: which versions of them are there, and of each only that status which has changed.

So what it takes to know them all does not grow with what was measured before.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Generic, TypeVar

from plimsoll.api.names import API_VERSION, RESULT_KIND
from plimsoll.kube.port import Changed, Gone, Kind, Kube, Listed, Object, Version

RESULT = Kind(api_version=API_VERSION, kind=RESULT_KIND)

PAGE_SIZE = 8
"""Results that are in memory as a whole at once, each at most 256 KiB as JSON and five times that as objects."""

T = TypeVar("T")


class Digests(Generic[T]):
    """A digest of each result, kept until the API server has another version of it."""

    def __init__(self, digest: Callable[[Object], T]) -> None:
        """Know nothing yet; `digest` is called with each result that is read, which is dropped then."""
        self._digest = digest
        self._known: dict[str, tuple[str, T]] = {}

    def __iter__(self) -> Iterator[T]:
        """Return all digests."""
        return (digest for _, digest in self._known.values())

    async def look(self, kube: Kube, *, namespace: str, labels: Mapping[str, str]) -> Sequence[T]:
        """Return the digests of all results with these labels, which are the same at every look."""
        there = await kube.versions(RESULT, namespace=namespace, labels=labels)
        await self._know(there, kube, namespace=namespace, labels=labels)
        return tuple(self)

    async def follow(self, kube: Kube, *, namespace: str | None = None) -> None:
        """Keep up with the results of a namespace, or of all, until the API server ends that."""
        async with aclosing(kube.changes(RESULT, namespace=namespace)) as changes:
            async for change in changes:
                match change:
                    case Listed(versions):
                        await self._know(versions, kube, namespace=namespace, labels={})
                    case Changed(version):
                        await self._read(version, kube)
                    case Gone(version):
                        self._known.pop(version.uid, None)

    async def _know(
        self, there: Sequence[Version], kube: Kube, *, namespace: str | None, labels: Mapping[str, str]
    ) -> None:
        """Know what is there, and nothing else: by reading what has changed, or all of it if that is much."""
        uids = {version.uid for version in there}
        self._known = {uid: known for uid, known in self._known.items() if uid in uids}
        changed = [version for version in there if not self._has(version.uid, version.version)]
        if len(changed) > PAGE_SIZE:
            read: set[str] = set()
            async for page in kube.pages(RESULT, size=PAGE_SIZE, namespace=namespace, labels=labels):
                for obj in page:
                    self._keep(obj)
                    read.add(obj["metadata"]["uid"])
                    # Others get their turn: to read one result takes milliseconds.
                    await asyncio.sleep(0)
            changed = [version for version in changed if version.uid not in read]
        for version in changed:
            await self._read(version, kube)

    async def _read(self, version: Version, kube: Kube) -> None:
        if self._has(version.uid, version.version):
            return
        obj = await kube.get(RESULT, version.name, version.namespace)
        if obj is None or obj["metadata"]["uid"] != version.uid:
            self._known.pop(version.uid, None)
        if obj is not None:
            self._keep(obj)

    def _has(self, uid: str, version: str) -> bool:
        return uid in self._known and self._known[uid][0] == version

    def _keep(self, obj: Object) -> None:
        uid, version = obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]
        if not self._has(uid, version):
            self._known[uid] = version, self._digest(obj)
