"""A world whose operator looks at a run when an event wakes it or its pause is over, as the daemon does.

The events are those that kopf would tell of: one for each object that has changed since the last time, as it is now.
"""

from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import kopf

from plimsoll.lifecycle.decision import Decision
from plimsoll.lifecycle.naming import LABEL_RUN_UID
from plimsoll.lifecycle.run import needs_attention
from plimsoll.operator import watches
from support.pretend_cluster import Document, is_going, label
from support.pretend_world import PretendWorld

_WATCHED = ("Job", "Pod", "ConfigMap", "PersistentVolumeClaim")
_RETRY_SECONDS = 5.0

# As functions of any arguments: kopf hands over more than these take.
child_changed: Any = watches.child_changed
queue_changed: Any = watches.queue_changed


class WakefulWorld(PretendWorld):
    """A world in which the operator sleeps.

    Attributes:
        looks: how often it has looked.

    """

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0
        self._awake()

    def restart_operator(self) -> None:
        super().restart_operator()
        self._awake()

    def round(self, seconds: float = 5.0) -> None:
        """Let the operator look where it has to, then everybody else do something, and time pass."""
        self.operator.watch_all()
        self._tell()
        for uid in sorted(self.operator.bodies):
            if self._has_to_look(uid):
                self._look(uid)
        for _ in range(2):
            self.cluster.step()
            self.rook.step()
            self.conductors.step()
        self.cluster.pass_time(seconds)

    def _awake(self) -> None:
        self._told: dict[str, Document] = {}
        self._memos: dict[str, Any] = {}
        self._next: dict[str, datetime | None] = {}

    def _tell(self) -> None:
        known = {obj["metadata"]["uid"]: obj for obj in self.cluster.kube.objects()}
        for uid, obj in self._told.items():
            if uid not in known:
                self._tell_of(obj, "DELETED")
        for uid, obj in known.items():
            if uid not in self._told or self._told[uid]["metadata"]["resourceVersion"] != _version(obj):
                self._tell_of(obj, "MODIFIED")
        self._told = known

    def _tell_of(self, obj: Document, kind: str) -> None:
        uid = obj["metadata"]["uid"]
        memo = self._memos.setdefault(uid, kopf.Memo(context=SimpleNamespace(runs=self.operator.runs)))
        event = {"body": obj, "uid": uid, "labels": obj["metadata"].get("labels", {}), "type": kind, "memo": memo}
        if obj["kind"] == "BenchmarkRun":
            self.wait(queue_changed(**event))
        elif obj["kind"] in _WATCHED and label(obj, LABEL_RUN_UID):
            self.wait(child_changed(**event))

    def _has_to_look(self, uid: str) -> bool:
        body, records = self.operator.bodies[uid], self.operator.runs.records
        # kopf starts a daemon, or tries a deletion again.
        if uid not in records or uid not in self._next or is_going(body):
            return needs_attention(body)
        due = self._next[uid]
        return records[uid].wakeup.is_set() or (due is not None and due <= self.cluster.now)

    def _look(self, uid: str) -> None:
        self.looks += 1
        self.operator.runs.records[uid].wakeup.clear()
        decision = self.look(uid)
        seconds = decision.requeue_seconds if isinstance(decision, Decision) else _RETRY_SECONDS
        self._next[uid] = None if seconds is None else self.cluster.now + timedelta(seconds=seconds)


def _version(obj: Document) -> str:
    return str(obj["metadata"]["resourceVersion"])
