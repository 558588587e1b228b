"""The indices of runs and suites, for the queue and for metrics, and the events that wake a run's daemon.

Changes of a run's objects that it can notice wake it, and changes of the queue wake all runs.
"""

from collections.abc import Mapping
from typing import Any

import kopf

from plimsoll.api.names import GROUP, VERSION
from plimsoll.lifecycle.naming import LABEL_MANAGED_BY, LABEL_RUN_UID, MANAGED_BY
from plimsoll.lifecycle.observed import noticeable
from plimsoll.lifecycle.queue import Entry, entry_of
from plimsoll.metrics import runs as run_metrics
from plimsoll.metrics import suites as suite_metrics
from plimsoll.metrics.runs import RunRecord
from plimsoll.metrics.suites import SuiteRecord

_OURS: Mapping[str, Any] = {LABEL_MANAGED_BY: MANAGED_BY, LABEL_RUN_UID: kopf.PRESENT}


@kopf.index(GROUP, VERSION, "benchmarkruns", id="queue")
async def queue(body: kopf.Body, uid: str, **_: Any) -> dict[str, Entry]:  # noqa: ANN401 - kopf's
    """Index every run's entry in the queue by UID."""
    return {uid: entry_of(body)}


@kopf.index(GROUP, VERSION, "benchmarkruns", id="runs")
async def runs(body: kopf.Body, uid: str, **_: Any) -> dict[str, RunRecord]:  # noqa: ANN401 - kopf's
    """Index every run's metrics by UID."""
    return {uid: run_metrics.record_of(body)}


@kopf.index(GROUP, VERSION, "benchmarksuites", id="suites")
async def suites(body: kopf.Body, uid: str, **_: Any) -> dict[str, SuiteRecord]:  # noqa: ANN401 - kopf's
    """Index every suite's metrics by UID."""
    return {uid: suite_metrics.record_of(body)}


@kopf.on.event(GROUP, VERSION, "benchmarkruns")
async def queue_changed(body: kopf.Body, uid: str, type: str | None, memo: kopf.Memo, **_: Any) -> None:  # noqa: A002, ANN401 - kopf's
    """Wake the run if its specification changed or it is being deleted, and all runs if its queue entry changed.

    Most changes, several a minute, are of its status, which only the operator writes: a look starts from the status
    that the last one wrote, whatever the watch shows.
    """
    records = memo.context.runs.records
    # kopf gives every object its own memo, which lives as long as the object.
    generation, entry = body["metadata"].get("generation"), entry_of(body)
    if type == "DELETED" or memo.get("entry") != entry:
        records.wake_all()
    elif memo.get("generation") != generation:
        records.wake(uid)
    memo.generation, memo.entry = generation, entry


@kopf.on.event("batch", "v1", "jobs", labels=_OURS)
@kopf.on.event("", "v1", "pods", labels=_OURS)
@kopf.on.event("", "v1", "configmaps", labels=_OURS)
@kopf.on.event("", "v1", "persistentvolumeclaims", labels=_OURS)
async def child_changed(
    body: kopf.Body,
    labels: Mapping[str, str],
    type: str | None,  # noqa: A002 - kopf's
    memo: kopf.Memo,
    **_: Any,  # noqa: ANN401 - kopf's
) -> None:
    """Wake the run that an object belongs to, if the object is gone or a look can notice the change.

    A change that is undone before kopf tells of it wakes no run, though a look may have seen it; like a missed event,
    it is made up for by the next look at regular intervals.
    """
    run = labels[LABEL_RUN_UID]
    seen = noticeable(body, run)
    if type == "DELETED" or memo.get("seen") != seen:
        memo.context.runs.records.wake(run)
    memo.seen = seen
