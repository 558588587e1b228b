"""The paths of kinds in the API.

The client library's discovery is not used: it caches in a file with a predictable name, mistakes a restarting API
server for one that does not know the kind, and queries every group for a kind of the core group.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from plimsoll.kube.errors import InvalidError, UnknownKindError
from plimsoll.kube.port import Kind

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0
_NO_NAMES = {"", ".", ".."}

Fetch = Callable[[str], Awaitable[Mapping[str, Any]]]
"""Return the document at a path; UnknownKindError if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """The paths of a kind. `root` is `/api/v1` or `/apis/<group>/<version>`."""

    root: str
    plural: str
    namespaced: bool

    def collection(self, namespace: str | None) -> str:
        """Return the path of all objects, or of those in a namespace."""
        inside = f"/namespaces/{quote(namespace, safe='')}" if self.namespaced and namespace else ""
        return f"{self.root}{inside}/{self.plural}"

    def single(self, name: str, namespace: str | None) -> str:
        """Return the path of one object.

        Raises:
            InvalidError: if the name or a required namespace is missing.

        """
        # In a path, `.` and `..` would lead to another object.
        if name in _NO_NAMES or (self.namespaced and (namespace or "") in _NO_NAMES):
            raise InvalidError(f"{self.plural} {namespace or ''}/{name}", "needs a name and a namespace")
        return f"{self.collection(namespace)}/{quote(name, safe='')}"


@dataclass(slots=True, kw_only=True)
class _Unknown:
    until: float
    pause: float


class Discovery:
    """Looks up resources, and caches them for the life of the process."""

    def __init__(self, fetch: Fetch, *, now: Callable[[], float] = time.monotonic) -> None:
        """Look up with `fetch` when a kind is first needed."""
        self._fetch = fetch
        self._now = now
        self._known: dict[Kind, Resource] = {}
        self._unknown: dict[Kind, _Unknown] = {}
        self._lock = asyncio.Lock()

    async def resource(self, kind: Kind) -> Resource:
        """Return the paths of a kind.

        Raises:
            UnknownKindError: if the API server does not know it; the next lookup waits for a growing pause.

        """
        if kind in self._known:
            return self._known[kind]
        async with self._lock:
            if kind not in self._known:
                await self._look_up(kind)
            return self._known[kind]

    def forget(self, kind: Kind) -> None:
        """Drop a kind whose path no longer exists, so that it is looked up again."""
        self._known.pop(kind, None)

    async def _look_up(self, kind: Kind) -> None:
        unknown = self._unknown.get(kind)
        if unknown is not None and self._now() < unknown.until:
            raise _unknown_kind(kind)
        root = f"/apis/{kind.api_version}" if "/" in kind.api_version else f"/api/{kind.api_version}"
        try:
            document = await self._fetch(root)
        except UnknownKindError:
            document = {}
        for found in document.get("resources") or ():
            if "/" not in found["name"]:  # not a subresource
                key = Kind(api_version=kind.api_version, kind=found["kind"])
                self._known[key] = Resource(root=root, plural=found["name"], namespaced=found["namespaced"])
        if kind not in self._known:
            pause = min(unknown.pause * 2, _LONGEST_PAUSE_SECONDS) if unknown else _FIRST_PAUSE_SECONDS
            self._unknown[kind] = _Unknown(until=self._now() + pause, pause=pause)
            raise _unknown_kind(kind)
        self._unknown.pop(kind, None)


def _unknown_kind(kind: Kind) -> UnknownKindError:
    return UnknownKindError(
        f"look up {kind.kind} of {kind.api_version}",
        "the API server does not serve this kind; install its CRD or API service",
    )
