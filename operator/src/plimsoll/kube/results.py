"""Reading the results of a run: the metadata of all of them at every look, and the status of one when it has changed.

So what a look takes does not grow with what was measured before.
"""

import asyncio
from collections.abc import Mapping, Sequence

from plimsoll.api.names import API_VERSION, RESULT_KIND
from plimsoll.kube.port import Kind, Kube, Object
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.measured import ResultFact, result_fact

RESULT = Kind(api_version=API_VERSION, kind=RESULT_KIND)

PAGE_SIZE = 8
"""Results that are in memory as a whole at once, each at most 256 KiB as JSON and five times that as objects."""


class ResultDigests:
    """The digests of the results of one run's name, each kept until the API server has another version of it."""

    def __init__(self) -> None:
        self._known: dict[str, ResultFact] = {}

    async def read(self, kube: Kube, *, namespace: str, name: str) -> Sequence[ResultFact]:
        """Return the digests of all results that are there."""
        labels = {naming.LABEL_RUN: naming.label_value(name)}
        there = {entry["uid"]: entry for entry in await kube.list_metadata(RESULT, namespace=namespace, labels=labels)}
        self._known = {uid: fact for uid, fact in self._known.items() if uid in there}
        changed = [entry for uid, entry in there.items() if not self._has(uid, entry["resourceVersion"])]
        if len(changed) > PAGE_SIZE:
            await self._read_all(kube, namespace, labels)
        else:
            for entry in changed:
                await self._read_one(kube, entry)
        return tuple(self._known.values())

    async def _read_all(self, kube: Kube, namespace: str, labels: Mapping[str, str]) -> None:
        known: set[str] = set()
        async for page in kube.pages(RESULT, size=PAGE_SIZE, namespace=namespace, labels=labels):
            for obj in page:
                self._keep(obj)
                known.add(obj["metadata"]["uid"])
                # Others get their turn: to read one result takes milliseconds.
                await asyncio.sleep(0)
        self._known = {uid: fact for uid, fact in self._known.items() if uid in known}

    async def _read_one(self, kube: Kube, entry: Object) -> None:
        obj = await kube.get(RESULT, entry["name"], entry["namespace"])
        if obj is None:
            self._known.pop(entry["uid"], None)
        else:
            self._keep(obj)

    def _has(self, uid: str, version: str) -> bool:
        return uid in self._known and self._known[uid].version == version

    def _keep(self, obj: Object) -> None:
        if not self._has(obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]):
            self._known[obj["metadata"]["uid"]] = result_fact(obj)
