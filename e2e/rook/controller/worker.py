"""One of Rook's controllers: a single thread that processes one object at a time, however long it takes."""

import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Never, Protocol

from release import Release

from kube import Api, ApiError, Object, now, now_exactly

from ceph import CommandError

_POLL_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0
_LONGEST_MESSAGE = 1024
"""Of an event with `eventTime`, for the API server."""


class ReconcileError(Exception):
    """An object could not be reconciled.

    Attributes:
        phase: new phase of its status; None leaves it unchanged.
        again_seconds: time until the next attempt; None for a growing pause.

    """

    def __init__(self, message: str, *, phase: str | None = None, again_seconds: float | None = None) -> None:
        super().__init__(message)
        self.phase = phase
        self.again_seconds = again_seconds


class Reconciler(Protocol):
    """The reconciliation of one kind."""

    kind: str
    component: str
    release: Release

    def reconcile(self, found: Object) -> float | None:
        """Reconcile an object; return the seconds until the next time, None if only a change is to trigger it."""


@dataclass(slots=True)
class _Seen:
    generation: int
    due_at: float | None
    failures: int = 0


class Worker:
    """The queue of one controller."""

    def __init__(self, api: Api, controller: Reconciler) -> None:
        self._api = api
        self._controller = controller
        self._seen: dict[str, _Seen] = {}
        self._events = Recorder(api, controller.component, controller.release)

    def run(self) -> Never:
        """Reconcile due objects forever."""
        while True:
            try:
                for found in self._due(self._api.list(self._controller.kind)):
                    self._reconcile(found)
            except ApiError as error:
                say(f"{self._controller.kind}: {error}")
            time.sleep(_POLL_SECONDS)

    def _due(self, objects: list[Object]) -> Iterable[Object]:
        """Return the objects that have changed or whose pause is over, the longest waiting first."""
        clock = time.monotonic()
        waiting = []
        for found in objects:
            seen = self._seen.get(found["metadata"]["uid"])
            if seen is None or seen.generation != found["metadata"]["generation"]:
                waiting.append((clock, found["metadata"]["creationTimestamp"], found))
            elif seen.due_at is not None and seen.due_at <= clock:
                waiting.append((seen.due_at, "", found))
        return [found for _, _, found in sorted(waiting, key=lambda each: each[:2])]

    def _reconcile(self, listed: Object) -> None:
        kind, name, uid = self._controller.kind, listed["metadata"]["name"], listed["metadata"]["uid"]
        found = self._api.get(kind, name)
        if found is None or found["metadata"]["uid"] != uid:
            return
        where = f'{kind} "{self._api.namespace}/{name}"'
        seen = self._seen.setdefault(uid, _Seen(generation=0, due_at=None))
        seen.generation = found["metadata"]["generation"]
        try:
            again = self._controller.reconcile(found)
        except (ReconcileError, CommandError) as error:
            seen.failures += 1
            failure = error if isinstance(error, ReconcileError) else ReconcileError(str(error))
            pause = min(2.0 ** (seen.failures - 1), _LONGEST_PAUSE_SECONDS)
            again = pause if failure.again_seconds is None else failure.again_seconds
            if failure.phase is not None:
                self._api.patch_status(kind, name, {"phase": failure.phase})
            self._events.warn(found, f"failed to reconcile {where}. {failure}")
        except ApiError:
            seen.due_at = time.monotonic()
            raise
        else:
            seen.failures = 0
            self._events.inform(found, "ReconcileSucceeded", f"successfully configured {where}")
        seen.due_at = None if again is None else time.monotonic() + again


class Recorder:
    """Writes events, and counts repeated ones, in the format of each release."""

    def __init__(self, api: Api, component: str, release: Release) -> None:
        self._api = api
        self._component = component
        self._release = release
        self._written: dict[tuple[str, ...], tuple[str, int]] = {}

    def inform(self, about: Object, reason: str, message: str) -> None:
        """Record a success."""
        self._record(about, "Normal", reason, message)

    def warn(self, about: Object, message: str) -> None:
        """Record a failure."""
        say(message)
        self._record(about, "Warning", "ReconcileFailed", message)

    def _record(self, about: Object, severity: str, reason: str, message: str) -> None:
        # In a newer Rook, another version of the object begins another series.
        version = about["metadata"]["resourceVersion"] if self._release.is_new else ""
        key = (about["metadata"]["uid"], version, message)
        name, count = self._written.get(key, ("", 0))
        if count:
            repeated = {"count": count + 1, "lastTimestamp": now()}
            if self._release.is_new:
                repeated = {"series": {"count": count + 1, "lastObservedTime": now_exactly()}}
            self._api.patch("Event", name, repeated)
        else:
            name = self._api.create("Event", self._event(about, severity, reason, message))["metadata"]["name"]
        self._written[key] = (name, count + 1)

    def _event(self, about: Object, severity: str, reason: str, message: str) -> Object:
        metadata = about["metadata"]
        times = {"count": 1, "firstTimestamp": now(), "lastTimestamp": now(), "source": {"component": self._component}}
        if self._release.is_new:
            instance = f"{self._component}-{socket.gethostname()}"
            times = {"action": reason, "eventTime": now_exactly(), "reportingInstance": instance}
        subject = {key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion")}
        return {
            "metadata": {"generateName": f"{metadata['name']}.", "namespace": self._api.namespace},
            "involvedObject": {"apiVersion": about["apiVersion"], "kind": about["kind"]} | subject,
            "type": severity,
            "reason": reason,
            "message": message[:_LONGEST_MESSAGE],
            "reportingComponent": self._component,
            **times,
        }


def say(text: str) -> None:
    """Write a line to the pod's log."""
    print(now(), text, flush=True)  # noqa: T201 - a program's output
