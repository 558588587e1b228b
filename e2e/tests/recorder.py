"""Watches the objects of a namespace, and records when each change arrives."""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from api import Api
from timeline import Change

_KINDS = ("benchmarkruns", "configmaps", "persistentvolumeclaims", "pods")


class Recorder:
    """The changes of a namespace's objects; the latest ones may be missing, because a watch lags behind."""

    def __init__(self, api: Api, namespace: str, kinds: Sequence[str] = _KINDS) -> None:
        self._api = api
        self._namespace = namespace
        self._kinds = kinds
        self._changes: list[Change] = []
        self._failures: list[str] = []
        self._stopped = threading.Event()

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Watch until the context exits, and fail if a watch ended before that: stages would be missing."""
        threads = [threading.Thread(target=self._watch, args=(kind,), daemon=True) for kind in self._kinds]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stopped.set()
        assert not self._failures, self._failures

    def changes(self) -> list[Change]:
        """Return the changes so far."""
        return list(self._changes)

    def created(self) -> dict[tuple[str, str], set[str]]:
        """Return the UIDs that each kind and name has had: more than one if it was created again."""
        uids: dict[tuple[str, str], set[str]] = {}
        for change in self.changes():
            metadata = change.obj["metadata"]
            uids.setdefault((change.obj["kind"], metadata["name"]), set()).add(metadata["uid"])
        return uids

    def _watch(self, kind: str) -> None:
        try:
            for event in self._api.watch(kind, self._namespace):
                if self._stopped.is_set():
                    return
                self._take(kind, event)
            ended = "the API server ended the watch"
        except Exception as error:  # noqa: BLE001 - `recording` reports the errors of its threads
            ended = str(error)
        if not self._stopped.is_set():
            self._failures.append(f"{kind}: {ended}")

    def _take(self, kind: str, event: dict[str, Any]) -> None:
        if event["type"] == "ERROR":
            self._failures.append(f"{kind}: {json.dumps(event['object'])}")
        elif event["type"] in {"ADDED", "MODIFIED"}:
            self._changes.append(Change(time.time(), event["object"]))
