"""The indices of runs and suites, for the queue and for metrics, and the events that wake a run's daemon.

Changes of a run's objects wake it, and changes of the queue wake all runs.
"""

from collections.abc import Mapping
from typing import Any

import kopf

from plimsoll.api.names import GROUP, VERSION
from plimsoll.lifecycle.admission import Entry, entry_of
from plimsoll.lifecycle.naming import LABEL_MANAGED_BY, LABEL_RUN_UID, MANAGED_BY
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
    """Wake the run, and all others if its queue entry changed or it is gone.

    Most changes, several a minute, are of its status, and each look at a run lists all of its objects.
    """
    records = memo.context.runs.records
    records.wake(uid)
    # kopf gives every object its own memo, which lives as long as the object.
    entry = entry_of(body)
    if type == "DELETED" or memo.get("entry") != entry:
        records.wake_all()
    memo.entry = entry


@kopf.on.event("batch", "v1", "jobs", labels=_OURS)
@kopf.on.event("", "v1", "pods", labels=_OURS)
@kopf.on.event("", "v1", "configmaps", labels=_OURS)
@kopf.on.event("", "v1", "persistentvolumeclaims", labels=_OURS)
async def child_changed(labels: Mapping[str, str], memo: kopf.Memo, **_: Any) -> None:  # noqa: ANN401 - kopf's
    """Wake the run that an object belongs to."""
    memo.context.runs.records.wake(labels[LABEL_RUN_UID])
