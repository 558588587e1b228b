"""What the operator watches: kopf's handlers with what they share, and the results, without kopf."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NoReturn, cast

import kopf

from plimsoll.api.names import GROUP, SUITE_KIND, VERSION
from plimsoll.kube.errors import ApiError
from plimsoll.kube.port import Kube, Object
from plimsoll.lifecycle.decision import Event
from plimsoll.lifecycle.naming import LABEL_MANAGED_BY, LABEL_RUN_UID, MANAGED_BY
from plimsoll.lifecycle.observed import noticeable
from plimsoll.lifecycle.queue import Entry, entry_of
from plimsoll.lifecycle.run import needs_attention
from plimsoll.metrics.exposition import Instruments
from plimsoll.metrics.objects import Exposed, UnreadableError, result_metrics, run_metrics, suite_metrics
from plimsoll.operator.gather import RESULT, RESULTS_PAGE_SIZE, Digests
from plimsoll.operator.loop import Body
from plimsoll.operator.runs import RunReconciler
from plimsoll.operator.suites import SuiteReconciler

_PAUSE_SECONDS = 1.0
_PAUSE_AFTER_ERROR_SECONDS = 10.0

_log = logging.getLogger(__name__)


class KnownResults:
    """The metrics of the results in some namespaces, or in all.

    kopf would list all results in full at every start: thousands of up to 256 KiB each.
    """

    def __init__(
        self, namespaces: Sequence[str] = (), *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """Start empty; without `namespaces`, watch all of them. `now` returns the time."""

        def metrics(obj: Object) -> tuple[Exposed | None, ...]:
            return _metrics(obj, now().timestamp())

        self._digests: dict[str | None, Digests[tuple[Exposed | None, ...]]] = {
            namespace: Digests(RESULT, metrics, page_size=RESULTS_PAGE_SIZE) for namespace in namespaces or (None,)
        }

    def metrics(self) -> list[Exposed | None]:
        """Return the metrics of each result with a verdict; None for one that cannot be read."""
        return [result for digests in self._digests.values() for digest in digests for result in digest]

    async def follow(self, kube: Kube, *, pause: float = _PAUSE_SECONDS) -> None:
        """Watch the results forever."""
        async with asyncio.TaskGroup() as group:
            for namespace in self._digests:
                group.create_task(self._follow(kube, namespace, pause))

    async def _follow(self, kube: Kube, namespace: str | None, pause: float) -> NoReturn:
        while True:
            try:
                await self._digests[namespace].follow(kube, namespace=namespace)
            except ApiError as error:
                _log.warning("API request failed, the metrics of results are outdated: %s", error)
                await asyncio.sleep(_PAUSE_AFTER_ERROR_SECONDS)
            await asyncio.sleep(pause)


def _metrics(obj: Object, now: float) -> tuple[Exposed | None, ...]:
    try:
        metrics = result_metrics(obj, now)
    except UnreadableError as error:
        place = f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
        _log.warning("no metrics of result %s, which this version cannot read: %s", place, error)
        return (None,)
    return () if metrics is None else (metrics,)


@dataclass(slots=True, kw_only=True)
class Context:
    """The operator's components: `instruments` are its metrics of itself, `results` those of every result."""

    runs: RunReconciler
    suites: SuiteReconciler
    instruments: Instruments = field(default_factory=Instruments)
    results: KnownResults = field(default_factory=KnownResults)


_OURS: Mapping[str, Any] = {LABEL_MANAGED_BY: MANAGED_BY, LABEL_RUN_UID: kopf.PRESENT}


@kopf.index(GROUP, VERSION, "benchmarkruns", id="queue")
async def queue(body: kopf.Body, uid: str, **_: Any) -> dict[str, Entry]:  # noqa: ANN401 - kopf's
    """Index every run's entry in the queue by UID."""
    return {uid: entry_of(body)}


@kopf.index(GROUP, VERSION, "benchmarkruns", id="runs")
async def runs(body: kopf.Body, uid: str, **_: Any) -> dict[str, Exposed]:  # noqa: ANN401 - kopf's
    """Index every run's metrics by UID."""
    return {uid: run_metrics(body)}


@kopf.index(GROUP, VERSION, "benchmarksuites", id="suites")
async def suites(body: kopf.Body, uid: str, **_: Any) -> dict[str, Exposed]:  # noqa: ANN401 - kopf's
    """Index every suite's metrics by UID."""
    return {uid: suite_metrics(body)}


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
    if type == "DELETED":
        records.forget(uid)
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


def _attention(body: kopf.Body, **_: Any) -> bool:  # noqa: ANN401 - kopf's
    return needs_attention(body)


@kopf.daemon(
    GROUP, VERSION, "benchmarkruns", when=_attention, cancellation_backoff=5, cancellation_timeout=10, backoff=15
)
async def drive(body: kopf.Body, memo: kopf.Memo, stopped: kopf.DaemonStopped, logger: kopf.Logger, **_: Any) -> None:  # noqa: ANN401 - kopf's
    """Reconcile one run until it needs no attention, is deleted, or the operator stops.

    It never returns by itself: kopf would not start it again when a later change, such as of `cleanup`, requires it.
    """
    context: Context = memo.context
    await context.runs.drive(body, stopped, logger)


@kopf.on.delete(GROUP, VERSION, "benchmarkruns", when=_attention)
async def remove(body: kopf.Body, memo: kopf.Memo, logger: kopf.Logger, **_: Any) -> None:  # noqa: ANN401
    """Remove a deleted run's objects; the finalizer is kept until they are gone."""
    context: Context = memo.context
    missing = await context.runs.remove(body, logger)
    if missing is not None:
        seconds = context.runs.removal_seconds
        raise kopf.TemporaryError(f"teardown is not complete after {seconds:.0f} s and continues: {missing}", delay=30)


def post(body: Body, event: Event) -> None:
    """Create a Kubernetes event about an object."""
    kopf.event(cast("kopf.Body", body), type=event.kind, reason=event.reason, message=event.message)


@kopf.daemon(GROUP, VERSION, "benchmarksuites", cancellation_backoff=5, cancellation_timeout=10, backoff=15)
async def drive_suite(
    body: kopf.Body,
    memo: kopf.Memo,
    stopped: kopf.DaemonStopped,
    logger: kopf.Logger,
    **_: Any,  # noqa: ANN401 - kopf's
) -> None:
    """Reconcile one suite until it is deleted or the operator stops."""
    context: Context = memo.context
    await context.suites.drive(body, stopped, logger)


@kopf.on.event(GROUP, VERSION, "benchmarksuites")
async def suite_changed(uid: str, type: str | None, memo: kopf.Memo, **_: Any) -> None:  # noqa: A002, ANN401 - kopf's
    """Wake the suite, or drop the record of one that is gone."""
    records = memo.context.suites.records
    records.wake(uid)
    if type == "DELETED":
        records.forget(uid)


@kopf.on.event(GROUP, VERSION, "benchmarkruns")
async def suite_run_changed(body: kopf.Body, memo: kopf.Memo, **_: Any) -> None:  # noqa: ANN401 - kopf's
    """Wake the suite that owns a run."""
    for owner in body["metadata"].get("ownerReferences") or ():
        if owner["kind"] == SUITE_KIND:
            memo.context.suites.records.wake(owner["uid"])
