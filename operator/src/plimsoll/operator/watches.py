"""The operator's watches: kopf's handlers, which keep no whole object; and without kopf results and runs' objects."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, NoReturn, cast

import kopf

from plimsoll.api.names import GROUP, SUITE_KIND, VERSION
from plimsoll.api.reasons.entry import Event
from plimsoll.kube.port import ApiError, Followed, Kind, Kube, Object, Shape
from plimsoll.lifecycle import shapes
from plimsoll.lifecycle.children import label, owners
from plimsoll.lifecycle.naming import LABEL_MANAGED_BY, LABEL_RUN_UID, MANAGED_BY
from plimsoll.lifecycle.observed import noticeable
from plimsoll.lifecycle.queue import Entry, entry_of
from plimsoll.lifecycle.run import is_protected, needs_attention
from plimsoll.metrics.objects import Exposed, UnreadableError, result_metrics, run_metrics, suite_metrics
from plimsoll.operator.gather import RESULT, RESULTS_PAGE_SIZE, Digests
from plimsoll.operator.loop import Body, Records
from plimsoll.operator.runs import RunMemory, RunReconciler
from plimsoll.operator.suites import SuiteReconciler

_PAUSE_SECONDS = 1.0
_PAUSE_AFTER_ERROR_SECONDS = 10.0

_log = logging.getLogger(__name__)


class KnownResults:
    """The metrics of the results in some namespaces, or in all."""

    def __init__(
        self, namespaces: Sequence[str] = (), *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        def metrics(obj: Object) -> tuple[Exposed | None, ...]:
            try:
                exposed = result_metrics(obj, now().timestamp())
            except UnreadableError as error:
                place = f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
                _log.warning("no metrics of result %s, which this version cannot read: %s", place, error)
                return (None,)
            return () if exposed is None else (exposed,)

        self._digests: dict[str | None, Digests[tuple[Exposed | None, ...]]] = {
            namespace: Digests(RESULT, metrics, page_size=RESULTS_PAGE_SIZE) for namespace in namespaces or (None,)
        }

    def metrics(self) -> list[Exposed | None]:
        """Return the metrics of each result with a verdict; None for one that cannot be read."""
        return [result for digests in self._digests.values() for digest in digests for result in digest]

    async def follow(
        self, kube: Kube, *, runs_known: Callable[[], Awaitable[None]] | None = None, pause: float = _PAUSE_SECONDS
    ) -> None:
        """Watch the results forever, after the queue of runs is filled: reading all results takes a while."""

        async def watch(digests: Digests[tuple[Exposed | None, ...]], namespace: str | None) -> None:
            if runs_known is not None:
                await runs_known()
            await digests.follow(kube, namespace=namespace)

        async with asyncio.TaskGroup() as group:
            for namespace, digests in self._digests.items():
                watching = partial(watch, digests, namespace)
                group.create_task(_forever(watching, "the metrics of results are outdated", pause))


@dataclass(slots=True)
class ChildWatch:
    """Wakes a run with a record if one of its objects is gone, or has a change that a look at the run can notice."""

    _records: Records[RunMemory]
    _seen: dict[str, object] = field(default_factory=dict)

    def notice(self, change: Followed) -> None:
        run, uid = label(change.obj, LABEL_RUN_UID), change.obj["metadata"]["uid"]
        before = self._seen.pop(uid, None)
        if run not in self._records:
            return
        now = noticeable(change.obj, run)
        if change.is_gone or before != now:
            if change.obj["kind"] != "ConfigMap" and (digests := self._records[run].digests) is not None:
                digests.listed_at = None
            self._records.wake(run)
        if not change.is_gone:
            self._seen[uid] = now

    async def follow(self, changes: AsyncGenerator[Followed]) -> None:
        """Notice all changes, which begin with the existing objects, until the API server ends the watch."""
        earlier, self._seen = self._seen, {}
        async with aclosing(changes):
            async for change in changes:
                uid = change.obj["metadata"]["uid"]
                if uid in earlier:
                    self._seen[uid] = earlier.pop(uid)
                self.notice(change)


CHILDREN: Mapping[Kind, Shape] = {
    Kind(api_version="batch/v1", kind="Job"): shapes.Job,
    Kind(api_version="v1", kind="Pod"): shapes.Pod,
    Kind(api_version="v1", kind="ConfigMap"): shapes.ConfigMap,
    Kind(api_version="v1", kind="PersistentVolumeClaim"): shapes.Claim,
}
"""The kinds of objects whose changes wake runs, and what is read of them."""


async def follow_children(
    kube: Kube, records: Records[RunMemory], namespaces: Sequence[str] = (), *, pause: float = _PAUSE_SECONDS
) -> None:
    async def watch(kind: Kind, namespace: str | None, children: ChildWatch) -> None:
        ours = {LABEL_MANAGED_BY: MANAGED_BY}
        await children.follow(kube.follow(kind, CHILDREN[kind], namespace=namespace, labels=ours))

    async with asyncio.TaskGroup() as group:
        for namespace in namespaces or (None,):
            for kind in CHILDREN:
                looking = partial(watch, kind, namespace, ChildWatch(records))
                group.create_task(_forever(looking, f"changes of {kind.kind}s are noticed late", pause))


async def _forever(watch: Callable[[], Awaitable[None]], consequence: str, pause: float) -> NoReturn:
    while True:
        try:
            await watch()
        except ApiError as error:
            _log.warning("API request failed, %s: %s", consequence, error)
            await asyncio.sleep(_PAUSE_AFTER_ERROR_SECONDS)
        await asyncio.sleep(pause)


@dataclass(slots=True, kw_only=True)
class Context:
    """The operator's components, and what is kept of each run and suite, by UID."""

    runs: RunReconciler
    suites: SuiteReconciler
    queue: dict[str, Entry] = field(default_factory=dict)
    exposed_runs: dict[str, Exposed] = field(default_factory=dict)
    exposed_suites: dict[str, Exposed] = field(default_factory=dict)


# kopf calls the handlers in this order, so a run that is looked at is in the queue. There are none of kopf's indices:
# until all objects are indexed, kopf keeps each of them with a task, and every further one wakes all these tasks. With
# 2000 runs, that blocks the event loop for longer than the Lease lasts. No handler waits, so kopf has no backlog.


@kopf.on.event(GROUP, VERSION, "benchmarkruns")
async def run_changed(event: kopf.RawEvent, uid: str, type: str | None, memo: kopf.Memo, **_: Any) -> None:  # noqa: A002, ANN401 - kopf's
    """Keep a run's entry in the queue and its metrics, have it looked at, and wake the suite that owns it."""
    context, body = memo.context, event["object"]
    _drop_managers(body)
    if type == "DELETED":
        context.queue.pop(uid, None)
        context.exposed_runs.pop(uid, None)
    else:
        context.queue[uid] = entry_of(body, context.runs.settings)
        context.exposed_runs[uid] = run_metrics(body)
    context.runs.notice(body, is_gone=type == "DELETED")
    for owner in owners(body):
        if owner["kind"] == SUITE_KIND:
            context.suites.records.wake(owner["uid"])


@kopf.on.event(GROUP, VERSION, "benchmarksuites")
async def suite_changed(event: kopf.RawEvent, uid: str, type: str | None, memo: kopf.Memo, **_: Any) -> None:  # noqa: A002, ANN401 - kopf's
    context, body = memo.context, event["object"]
    _drop_managers(body)
    if type == "DELETED":
        context.exposed_suites.pop(uid, None)
    else:
        context.exposed_suites[uid] = suite_metrics(body)
    context.suites.notice(body, is_gone=type == "DELETED")
    context.suites.records.wake(uid)


def _drop_managers(body: Mapping[str, Any]) -> None:
    """Drop an object's managed fields, which no policy limits: 1.5 MiB of them are up to 35 MiB of Python objects."""
    body["metadata"].pop("managedFields", None)


@kopf.on.event(GROUP, VERSION, "benchmarkruns")
async def queue_changed(body: kopf.Body, uid: str, type: str | None, memo: kopf.Memo, **_: Any) -> None:  # noqa: A002, ANN401 - kopf's
    """Wake the run if its specification or need of looks changed, and all runs if its queue entry did."""
    records = memo.context.runs.records
    # kopf gives every object its own memo, which lives as long as the object. A deletion increments the generation.
    entry = entry_of(body, memo.context.runs.settings)
    state = body["metadata"].get("generation"), is_protected(body), needs_attention(body)
    if type == "DELETED" or memo.get("entry") != entry:
        records.wake_all()
    elif memo.get("state") != state:
        records.wake(uid)
    memo.entry, memo.state = entry, state


def post(body: Body, event: Event) -> None:
    kopf.event(cast("kopf.Body", body), type=event.severity, reason=event.reason, message=event.message)
