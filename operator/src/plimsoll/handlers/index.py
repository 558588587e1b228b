"""What kopf keeps in memory: the queue. And what wakes a run: changes of its objects, and of the queue."""

from collections.abc import Mapping
from typing import Any

import kopf

from plimsoll.api.names import GROUP, VERSION
from plimsoll.lifecycle.admission import Entry, entry_of
from plimsoll.lifecycle.naming import LABEL_MANAGED_BY, LABEL_RUN_UID, MANAGED_BY

_OURS: Mapping[str, Any] = {LABEL_MANAGED_BY: MANAGED_BY, LABEL_RUN_UID: kopf.PRESENT}


@kopf.index(GROUP, VERSION, "benchmarkruns", id="queue")
async def queue(body: kopf.Body, uid: str, **_: Any) -> dict[str, Entry]:  # noqa: ANN401 - kopf's
    """Keep the little of every run that the queue needs, by UID."""
    return {uid: entry_of(body)}


@kopf.on.event(GROUP, VERSION, "benchmarkruns")
async def queue_changed(memo: kopf.Memo, **_: Any) -> None:  # noqa: ANN401 - kopf's
    """Wake the run itself, and whoever may wait for it."""
    memo.context.wake_all()


@kopf.on.event("batch", "v1", "jobs", labels=_OURS)
@kopf.on.event("", "v1", "pods", labels=_OURS)
@kopf.on.event("", "v1", "configmaps", labels=_OURS)
@kopf.on.event("", "v1", "persistentvolumeclaims", labels=_OURS)
async def child_changed(labels: Mapping[str, str], memo: kopf.Memo, **_: Any) -> None:  # noqa: ANN401 - kopf's
    """Wake the run that an object belongs to."""
    memo.context.wake(labels[LABEL_RUN_UID])
