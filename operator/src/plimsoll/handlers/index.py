"""What is kept in memory: the queue, and what Prometheus is told of runs and results. And what wakes a run.

A run is woken by changes of its objects, and of the queue.
"""

from collections.abc import Mapping
from typing import Any

import kopf

from plimsoll.api.names import GROUP, VERSION
from plimsoll.lifecycle.admission import Entry, entry_of
from plimsoll.lifecycle.naming import LABEL_MANAGED_BY, LABEL_RUN_UID, MANAGED_BY
from plimsoll.metrics import results as result_metrics
from plimsoll.metrics import runs as run_metrics
from plimsoll.metrics.document import UnreadableError
from plimsoll.metrics.results import ResultRecord
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


@kopf.on.event(GROUP, VERSION, "benchmarkresults")
async def result_changed(
    body: kopf.Body,
    uid: str,
    type: str | None,  # noqa: A002 - kopf's
    memo: kopf.Memo,
    logger: kopf.Logger,
    **_: Any,  # noqa: ANN401 - kopf's
) -> None:
    """Keep what Prometheus is told of a result that has a verdict, or that it cannot be read.

    No index: kopf holds everything up until all of an index is there, whole and in memory, which takes minutes with
    thousands of results. Nor does kopf mark with annotations, or keep with finalizers, what it only watches.
    """
    results: dict[str, ResultRecord | None] = memo.context.results
    results.pop(uid, None)
    if type == "DELETED":
        return
    try:
        record = result_metrics.record_of(body)
    except UnreadableError as error:
        logger.warning("Prometheus is not told of this result, which this operator cannot read: %s", error)
        results[uid] = None
        return
    if record is not None:
        results[uid] = record
