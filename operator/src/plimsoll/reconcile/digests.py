"""Reads many objects: their metadata, and in full only those that have changed.

So the cost of a look does not grow with earlier results, and little with the number of clients.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Generic, TypeVar

from plimsoll.api.names import API_VERSION, RESULT_KIND
from plimsoll.kube.port import Changed, Gone, Kind, Kube, Listed, Object, Version

RESULT = Kind(api_version=API_VERSION, kind=RESULT_KIND)

RESULTS_PAGE_SIZE = 8
"""Results in memory at once, each at most 256 KiB as JSON and five times that as objects."""

FEW = 8
"""Up to this many changed objects are read one by one; if more have changed, all objects are listed."""

T = TypeVar("T")


class Digests(Generic[T]):
    """A digest of each object of a kind, kept until the API server has another version of it."""

    def __init__(self, kind: Kind, digest: Callable[[Object], T], *, page_size: int, worthwhile: int = 0) -> None:
        """Start empty; `digest` is called with each object that is read, which is then dropped.

        With fewer than `worthwhile` objects, a look lists them in full: one request instead of several.
        """
        self._kind = kind
        self._digest = digest
        self._page_size = page_size
        self._worthwhile = worthwhile
        self._known: dict[str, tuple[str, T]] = {}

    def __iter__(self) -> Iterator[T]:
        """Return all digests."""
        return (digest for _, digest in self._known.values())

    def forget(self) -> None:
        """Drop all digests, so that the next look reads every object."""
        self._known = {}

    async def look(self, kube: Kube, *, namespace: str, labels: Mapping[str, str]) -> Sequence[T]:
        """Return the digests of all objects with these labels, in the order of the list."""
        if 0 < len(self._known) < self._worthwhile:
            found = await kube.list(self._kind, namespace=namespace, labels=labels)
            self._known = {}
            for obj in found:
                self._keep(obj)
        else:
            there = await kube.versions(self._kind, namespace=namespace, labels=labels)
            await self._update(there, kube, namespace=namespace, labels=labels)
        return tuple(self)

    async def follow(self, kube: Kube, *, namespace: str | None = None) -> None:
        """Watch the objects of a namespace, or of all, until the API server ends the watch."""
        async with aclosing(kube.changes(self._kind, namespace=namespace)) as changes:
            async for change in changes:
                match change:
                    case Listed(versions):
                        await self._update(versions, kube, namespace=namespace, labels={})
                    case Changed(version):
                        await self._read(version, kube, {})
                    case Gone(version):
                        self._known.pop(version.uid, None)

    async def _update(
        self, there: Sequence[Version], kube: Kube, *, namespace: str | None, labels: Mapping[str, str]
    ) -> None:
        """Keep digests of exactly the existing objects, by reading those that have changed, or all if they are many."""
        places = {version.uid: place for place, version in enumerate(there)}
        self._known = {uid: known for uid, known in self._known.items() if uid in places}
        changed = [version for version in there if not self._has(version.uid, version.version)]
        if not changed:
            return
        if len(changed) > FEW:
            read = await self._read_pages(kube, namespace=namespace, labels=labels)
            changed = [version for version in changed if version.uid not in read]
        for version in changed:
            await self._read(version, kube, labels)
        # In list order, in which messages name objects.
        self._known = dict(sorted(self._known.items(), key=lambda known: places.get(known[0], len(places))))

    async def _read_pages(self, kube: Kube, *, namespace: str | None, labels: Mapping[str, str]) -> set[str]:
        read: set[str] = set()
        pause = max(1, self._page_size // RESULTS_PAGE_SIZE)
        async for page in kube.pages(self._kind, size=self._page_size, namespace=namespace, labels=labels):
            for number, obj in enumerate(page):
                self._keep(obj)
                read.add(obj["metadata"]["uid"])
                if number % pause == 0:
                    # Let other tasks run: decoding one large object, or some small ones, takes milliseconds.
                    await asyncio.sleep(0)
        return read

    async def _read(self, version: Version, kube: Kube, labels: Mapping[str, str]) -> None:
        """Read one object by its name; keep a successor with the same name if it has the labels."""
        if self._has(version.uid, version.version):
            return
        obj = await kube.get(self._kind, version.name, version.namespace)
        if obj is not None and not labels.items() <= (obj["metadata"].get("labels") or {}).items():
            obj = None
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
