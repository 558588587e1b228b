"""`plimsoll remove-runs`: delete the runs of an operator before Helm uninstalls it."""

import asyncio
import logging
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import click

from plimsoll.cli.source import RUN
from plimsoll.kube.errors import ApiError, UnknownKindError
from plimsoll.kube.port import Kube, Object
from plimsoll.kube.retry import persist

_POLL_SECONDS = 2.0
_REQUEST_SECONDS = 30.0
_SHOWN_RUNS = 5
_EXIT_LEFT = 1

_log = logging.getLogger(__name__)


@click.command(hidden=True)
@click.option(
    "--timeout", "seconds", type=click.IntRange(min=1), default=240, show_default=True, help="Seconds to wait."
)
@click.option(
    "--namespace", "namespaces", multiple=True, help="Namespace of the runs; may be repeated. All by default."
)
def command(*, seconds: int, namespaces: tuple[str, ...]) -> None:
    """Delete BenchmarkRuns and wait until the operator has cleaned them up."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        left = asyncio.run(_in_cluster(seconds, namespaces))
    except ApiError as error:
        message = f"the runs cannot be deleted: {error}"
        raise click.ClickException(message) from error
    if not left:
        _log.info("all runs are deleted")
        return
    _log.error("after %s s these runs still exist; is the operator running? %s", seconds, _summary(left))
    sys.exit(_EXIT_LEFT)


async def _in_cluster(seconds: float, namespaces: Sequence[str]) -> Sequence[Object]:
    # Imported here because it takes longer than everything else.
    from plimsoll.kube.client import AioKube  # noqa: PLC0415

    async with AioKube() as kube:
        return await remove_runs(kube, namespaces, seconds=seconds)


async def remove_runs(
    kube: Kube, namespaces: Sequence[str] = (), *, seconds: float, poll_seconds: float = _POLL_SECONDS
) -> Sequence[Object]:
    """Delete all runs, including new ones, until none is left; return those that remain after the timeout.

    `namespaces` limits the runs; all namespaces by default.

    Raises:
        ApiError: if the runs cannot be listed or deleted.

    """
    deadline = time.monotonic() + seconds
    logged = ""
    while True:
        left = await persist(lambda: _runs(kube, namespaces), seconds=_REQUEST_SECONDS)
        if (summary := _summary(left)) != logged:
            _log.info("%s", summary or "no runs remain")
            logged = summary
        if not left or time.monotonic() > deadline:
            return left
        await _delete(kube, [run for run in left if "deletionTimestamp" not in run["metadata"]])
        await asyncio.sleep(poll_seconds)


async def _runs(kube: Kube, namespaces: Sequence[str]) -> Sequence[Object]:
    try:
        lists = [await kube.list(RUN, namespace=namespace) for namespace in namespaces or (None,)]
    except UnknownKindError:
        return []  # without the CRD there are no objects
    return [run for found in lists for run in found]


async def _delete(kube: Kube, runs: Sequence[Object]) -> None:
    for run in runs:
        name, namespace, uid = (run["metadata"][field] for field in ("name", "namespace", "uid"))
        await persist(partial(kube.delete, RUN, name, namespace, uid=uid), seconds=_REQUEST_SECONDS)


def _summary(runs: Sequence[Object]) -> str:
    """Return the remaining runs and what blocks their deletion."""
    shown = [_with_blocker(run) for run in runs[:_SHOWN_RUNS]]
    more = len(runs) - len(shown)
    return "; ".join([*shown, f"and {more} more"] if more else shown)


def _with_blocker(run: Object) -> str:
    name = f"{run['metadata']['namespace']}/{run['metadata']['name']}"
    conditions: Sequence[Mapping[str, Any]] = (run.get("status") or {}).get("conditions") or ()
    blocker = next((one.get("message") for one in conditions if one["type"] == "CleanedUp"), None)
    return f"{name}: {blocker}" if blocker else name
