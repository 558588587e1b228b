"""What is kept in memory of runs: the queue, and what Prometheus is told of them. And what wakes a run.

A run is woken by changes of its objects, and of the queue.
"""

from collections.abc import Mapping
from typing import Any

import kopf

from plimsoll.api.names import GROUP, VERSION
from plimsoll.lifecycle.admission import Entry, entry_of
from plimsoll.lifecycle.naming import LABEL_MANAGED_BY, LABEL_RUN_UID, MANAGED_BY
from plimsoll.metrics import runs as run_metrics
from plimsoll.metrics.runs import RunRecord

_OURS: Mapping[str, Any] = {LABEL_MANAGED_BY: MANAGED_BY, LABEL_RUN_UID: kopf.PRESENT}


@kopf.index(GROUP, VERSION, "benchmarkruns", id="queue")
async def queue(body: kopf.Body, uid: str, **_: Any) -> dict[str, Entry]:  # noqa: ANN401 - kopf's
    """Keep the little of every run that the queue needs, by UID."""
    return {uid: entry_of(body)}


@kopf.index(GROUP, VERSION, "benchmarkruns", id="runs")
async def runs(body: kopf.Body, uid: str, **_: Any) -> dict[str, RunRecord]:  # noqa: ANN401 - kopf's
    """Keep what Prometheus is told of every run, by UID."""
    return {uid: run_metrics.record_of(body)}


@kopf.on.event(GROUP, VERSION, "benchmarkruns")
async def queue_changed(body: kopf.Body, uid: str, type: str | None, memo: kopf.Memo, **_: Any) -> None:  # noqa: A002, ANN401 - kopf's
    """Wake the run itself; and whoever may wait for it, if its place in the queue is another or it is gone.

    Most changes are of its status, several a minute, and looking at a run asks the API for all of its objects.
    """
    memo.context.wake(uid)
    # kopf hands every object a memo of its own, which lives as long as the object.
    entry = entry_of(body)
    if type == "DELETED" or memo.get("entry") != entry:
        memo.context.wake_all()
    memo.entry = entry


@kopf.on.event("batch", "v1", "jobs", labels=_OURS)
@kopf.on.event("", "v1", "pods", labels=_OURS)
@kopf.on.event("", "v1", "configmaps", labels=_OURS)
@kopf.on.event("", "v1", "persistentvolumeclaims", labels=_OURS)
async def child_changed(labels: Mapping[str, str], memo: kopf.Memo, **_: Any) -> None:  # noqa: ANN401 - kopf's
    """Wake the run that an object belongs to."""
    memo.context.wake(labels[LABEL_RUN_UID])
