"""The kopf handlers of a `BenchmarkRun`: its daemon and its deletion."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, cast

import kopf

from plimsoll.api.names import GROUP, VERSION
from plimsoll.conductor.secret import make_secret
from plimsoll.handlers.context import Context
from plimsoll.kube.port import Kube
from plimsoll.lifecycle.decision import Event
from plimsoll.lifecycle.queue import Entry
from plimsoll.lifecycle.run import needs_attention
from plimsoll.lifecycle.settings import Settings
from plimsoll.metrics.instruments import Instruments
from plimsoll.reconcile.run import RunReconciler, RunSteps
from plimsoll.reconcile.steps import Body


def _attention(body: kopf.Body, **_: Any) -> bool:  # noqa: ANN401 - kopf's
    return needs_attention(body)


@kopf.daemon(
    GROUP, VERSION, "benchmarkruns", when=_attention, cancellation_backoff=5, cancellation_timeout=10, backoff=15
)
async def drive(
    body: kopf.Body,
    memo: kopf.Memo,
    stopped: kopf.DaemonStopped,
    logger: kopf.Logger,
    **_: Any,  # noqa: ANN401 - kopf's
) -> None:
    """Reconcile one run until it needs no attention, is deleted, or the operator stops.

    It never returns by itself: kopf would not start it again when a later change, such as of `cleanup`, requires it.
    """
    context: Context = memo.context
    await context.runs.drive(body, stopped, logger)


@kopf.on.delete(GROUP, VERSION, "benchmarkruns", when=_attention)
async def remove(body: kopf.Body, memo: kopf.Memo, logger: kopf.Logger, **_: Any) -> None:  # noqa: ANN401
    """Remove a deleted run's objects; the finalizer stays until they are gone."""
    context: Context = memo.context
    missing = await context.runs.remove(body, logger)
    if missing is not None:
        seconds = context.runs.removal_seconds
        raise kopf.TemporaryError(f"teardown is not complete after {seconds:.0f} s and continues: {missing}", delay=30)


def run_reconciler(
    kube: Kube,
    settings: Settings,
    *,
    now: Callable[[], datetime],
    queue: Callable[[], Iterable[Entry]],
    instruments: Instruments,
) -> RunReconciler:
    """Return the reconciler of runs."""
    steps = RunSteps(
        kube=kube, settings=settings, now=now, queue=queue, make_secret=make_secret, instruments=instruments
    )
    return RunReconciler(steps=steps, kube=kube, instruments=instruments, post=post)


def post(body: Body, event: Event) -> None:
    """Create a Kubernetes event about an object."""
    kopf.event(cast("kopf.Body", body), type=event.kind, reason=event.reason, message=event.message)
