"""`plimsoll remove-runs`: deletes the runs that an operator looks after, before Helm takes it away."""

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
@click.option("--namespace", "namespaces", multiple=True, help="Whose runs; may be repeated. All without any.")
def command(*, seconds: int, namespaces: tuple[str, ...]) -> None:
    """Delete BenchmarkRuns, and wait until the operator has taken them down."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        left = asyncio.run(_in_cluster(seconds, namespaces))
    except ApiError as error:
        message = f"the runs cannot be removed: {error}"
        raise click.ClickException(message) from error
    if not left:
        _log.info("no run is left")
        return
    _log.error("after %s s these runs are not gone; is the operator running? %s", seconds, _told(left))
    sys.exit(_EXIT_LEFT)


async def _in_cluster(seconds: float, namespaces: Sequence[str]) -> Sequence[Object]:
    # Only here: its import takes longer than everything else.
    from plimsoll.kube.client import AioKube  # noqa: PLC0415

    async with AioKube() as kube:
        return await remove_runs(kube, namespaces, seconds=seconds)


async def remove_runs(
    kube: Kube, namespaces: Sequence[str] = (), *, seconds: float, poll_seconds: float = _POLL_SECONDS
) -> Sequence[Object]:
    """Delete all runs, also those that are made meanwhile, until there are none; return those left when time is up.

    Of these namespaces, or of all if none is named.

    Raises:
        ApiError: if they can be neither listed nor deleted.

    """
    deadline = time.monotonic() + seconds
    said = ""
    while True:
        left = await persist(lambda: _runs(kube, namespaces), seconds=_REQUEST_SECONDS)
        if (told := _told(left)) != said:
            _log.info("%s", told or "all are gone")
            said = told
        if not left or time.monotonic() > deadline:
            return left
        await _delete(kube, [run for run in left if "deletionTimestamp" not in run["metadata"]])
        await asyncio.sleep(poll_seconds)


async def _runs(kube: Kube, namespaces: Sequence[str]) -> Sequence[Object]:
    try:
        lists = [await kube.list(RUN, namespace=namespace) for namespace in namespaces or (None,)]
    except UnknownKindError:
        return []  # where the definition is gone, so are its objects
    return [run for found in lists for run in found]


async def _delete(kube: Kube, runs: Sequence[Object]) -> None:
    for run in runs:
        name, namespace, uid = (run["metadata"][field] for field in ("name", "namespace", "uid"))
        await persist(partial(kube.delete, RUN, name, namespace, uid=uid), seconds=_REQUEST_SECONDS)


def _told(runs: Sequence[Object]) -> str:
    """Return which runs are left and what they wait for."""
    shown = [_what_it_waits_for(run) for run in runs[:_SHOWN_RUNS]]
    more = len(runs) - len(shown)
    return "; ".join([*shown, f"and {more} more"] if more else shown)


def _what_it_waits_for(run: Object) -> str:
    name = f"{run['metadata']['namespace']}/{run['metadata']['name']}"
    conditions: Sequence[Mapping[str, Any]] = (run.get("status") or {}).get("conditions") or ()
    words = next((one.get("message") for one in conditions if one["type"] == "CleanedUp"), None)
    return f"{name}: {words}" if words else name
