"""The namespaces that kube-burner creates: what in them is not ready, and their removal with their volumes."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from plimsoll.kube.errors import ApiError
from plimsoll.kube.port import Kind, Object
from plimsoll.tools.kube_burner.tool import STARTED, is_going, is_ready, pods_text

_NAMESPACE = Kind(api_version="v1", kind="Namespace")
_CLAIM = Kind(api_version="v1", kind="PersistentVolumeClaim")
_POD = Kind(api_version="v1", kind="Pod")
_EVENT = Kind(api_version="v1", kind="Event")
_VOLUME = Kind(api_version="v1", kind="PersistentVolume")

_POLL_SECONDS = 1.0
_MAX_PROBLEMS = 10
_MAX_CHARACTERS = 300


class Api(Protocol):
    """The part of `plimsoll.kube.port.Kube` that this needs."""

    async def list(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> Sequence[Object]:
        """Return the objects with these labels and fields."""
        ...

    async def delete(self, kind: Kind, name: str, namespace: str | None = None, *, uid: str | None = None) -> bool:
        """Delete an object; false if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Starts:
    """When pods started.

    Attributes:
        text: content of PODS_FILE; empty if no pod is known to be ready.
        lost: what could not be read, and why; empty if everything was.

    """

    text: str = ""
    lost: str = ""


class Namespaces:
    """All namespaces with certain labels, or only those called `base`, or `base` and a number."""

    def __init__(
        self, api: Api, labels: Mapping[str, str], *, base: str = "", poll_seconds: float = _POLL_SECONDS
    ) -> None:
        """Look at nothing yet."""
        self._api = api
        self._labels = labels
        self._base = base
        self._poll_seconds = poll_seconds

    async def names(self) -> list[str]:
        """Return the names of those that exist."""
        return [namespace["metadata"]["name"] for namespace in await self._existing()]

    async def problems(self) -> list[str]:
        """Return why PVCs are not bound and pods not ready, according to their newest events."""
        found: list[str] = []
        for namespace in await self._existing():
            name = namespace["metadata"]["name"]
            waiting = [obj for obj in await self._api.list(_CLAIM, namespace=name) if _phase(obj) != "Bound"]
            waiting += [obj for obj in await self._api.list(_POD, namespace=name) if not is_ready(obj)]
            events = await self._api.list(_EVENT, namespace=name) if waiting else ()
            found.extend(_problem(obj, events) for obj in waiting)
            if len(found) >= _MAX_PROBLEMS:
                break
        return found[:_MAX_PROBLEMS]

    async def started(self) -> Starts:
        """Return when their pods started. After a failure nothing more is read: an API server that is down stays so."""
        try:
            names = [obj["metadata"]["name"] for obj in await self._existing() if not is_going(obj)]
        except ApiError as error:
            return Starts(lost=f"when pods started is unknown: {error}")
        pods: list[Object] = []
        events: list[Object] = []
        for number, name in enumerate(names):
            try:
                found = await self._api.list(_POD, namespace=name)
                events += await self._api.list(_EVENT, namespace=name, fields={"reason": STARTED})
            except ApiError as error:
                which = f"in {len(names) - number} of {len(names)} namespaces"
                return Starts(pods_text(pods, events), f"when pods started is unknown {which}: {error}")
            pods += found
        return Starts(pods_text(pods, events))

    async def remove(self, *, limit_seconds: float) -> list[str]:
        """Delete them and wait until they and their volumes are gone; return what is left after the limit.

        An API server that does not answer is asked again. A volume whose reclaim policy is Retain is left and named at
        once, because nothing will delete it.
        """
        deadline = time.monotonic() + limit_seconds
        removed: set[str] = set()
        while left := await self._remove_once(removed):
            if time.monotonic() > deadline or all(text.endswith(_RETAINED) for text in left):
                return left
            await asyncio.sleep(self._poll_seconds)
        return []

    async def _remove_once(self, removed: set[str]) -> list[str]:
        try:
            namespaces = await self._existing()
            for obj in namespaces:
                removed.add(obj["metadata"]["name"])
                if not is_going(obj):
                    await self._api.delete(_NAMESPACE, obj["metadata"]["name"], uid=obj["metadata"]["uid"])
            if namespaces:
                return [f"namespace {obj['metadata']['name']}{_blocker(obj)}" for obj in namespaces]
            return [*_volumes_of(removed, await self._api.list(_VOLUME) if removed else ())]
        except ApiError as error:
            return [str(error)]

    async def _existing(self) -> Sequence[Object]:
        found = await self._api.list(_NAMESPACE, labels=self._labels)
        return [obj for obj in found if _is_of(str(obj["metadata"]["name"]), self._base)]


_RETAINED = "is kept by its reclaim policy"


def _volumes_of(namespaces: set[str], volumes: Sequence[Object]) -> Iterator[str]:
    for volume in volumes:
        spec = volume.get("spec", {})
        if (spec.get("claimRef") or {}).get("namespace") in namespaces:
            kept = f" {_RETAINED}" if spec.get("persistentVolumeReclaimPolicy") == "Retain" else ""
            yield f"PersistentVolume {volume['metadata']['name']}{kept}"


def _is_of(name: str, base: str) -> bool:
    return not base or name == base or name.startswith(f"{base}-")


def _blocker(namespace: Object) -> str:
    """Return why a namespace is not gone, in the words of its conditions, in parentheses; empty if they say nothing."""
    conditions = namespace.get("status", {}).get("conditions") or ()
    said = next((one.get("message", "") for one in conditions if one.get("status") == "True"), "")
    return f" ({said[:_MAX_CHARACTERS]})" if said else ""


def _phase(obj: Object) -> str:
    return str(obj.get("status", {}).get("phase", ""))


def _problem(obj: Object, events: Sequence[Object]) -> str:
    """Return an object's phase and the message of its newest event."""
    own = [event for event in events if event.get("involvedObject", {}).get("uid") == obj["metadata"]["uid"]]
    newest = max(own, key=_time, default=None)
    words = f": {' '.join(str(newest.get('message', '')).split())[:_MAX_CHARACTERS]}" if newest else ""
    return f"{obj['kind']} {obj['metadata']['name']} is {_phase(obj) or 'new'}{words}"


def _time(event: Mapping[str, Any]) -> str:
    """Return when an event occurred last, in a format that sorts by time."""
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")
