"""The kopf handlers of a `BenchmarkSuite`: its daemon, and the events that wake it.

A deleted suite needs no handler: its runs are garbage-collected, and clean up after themselves.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import kopf

from plimsoll.api.names import GROUP, SUITE_KIND, VERSION
from plimsoll.handlers.context import Context
from plimsoll.handlers.run import post
from plimsoll.kube.port import Kube
from plimsoll.lifecycle.settings import Settings
from plimsoll.metrics.instruments import Instruments
from plimsoll.reconcile.suites.steps import SuiteReconciler, SuiteSteps


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
async def suite_changed(uid: str, memo: kopf.Memo, **_: Any) -> None:  # noqa: ANN401 - kopf's
    """Wake the suite."""
    memo.context.suites.records.wake(uid)


@kopf.on.event(GROUP, VERSION, "benchmarkruns")
async def suite_run_changed(body: kopf.Body, memo: kopf.Memo, **_: Any) -> None:  # noqa: ANN401 - kopf's
    """Wake the suite that owns a run."""
    for owner in body["metadata"].get("ownerReferences") or ():
        if owner["kind"] == SUITE_KIND:
            memo.context.suites.records.wake(owner["uid"])


def suite_reconciler(
    kube: Kube, settings: Settings, *, now: Callable[[], datetime], instruments: Instruments
) -> SuiteReconciler:
    """Return the reconciler of suites."""
    steps = SuiteSteps(kube=kube, settings=settings, now=now)
    return SuiteReconciler(steps=steps, kube=kube, instruments=instruments, post=post)
