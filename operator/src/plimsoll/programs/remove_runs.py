"""`plimsoll remove-runs`: delete the suites and runs of an operator before Helm uninstalls it."""

import asyncio
import logging
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import click

from plimsoll.api.names import API_VERSION, SUITE_KIND
from plimsoll.cli.source import RUN
from plimsoll.kube.errors import ApiError, UnknownKindError, persist
from plimsoll.kube.port import Kind, Kube, Object

_POLL_SECONDS = 2.0
_REQUEST_SECONDS = 30.0
_SHOWN = 5
_EXIT_LEFT = 1

_SUITE = Kind(api_version=API_VERSION, kind=SUITE_KIND)
_KINDS = (_SUITE, RUN)
"""A suite would create other runs."""

_log = logging.getLogger(__name__)


@click.command(hidden=True)
@click.option(
    "--timeout", "seconds", type=click.IntRange(min=1), default=240, show_default=True, help="Seconds to wait."
)
@click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    help="Namespace of the suites and runs; may be repeated. All by default.",
)
def command(*, seconds: int, namespaces: tuple[str, ...]) -> None:
    """Delete BenchmarkSuites and BenchmarkRuns, and wait until the operator has cleaned them up."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        left = asyncio.run(_in_cluster(seconds, namespaces))
    except ApiError as error:
        message = f"the runs cannot be deleted: {error}"
        raise click.ClickException(message) from error
    if not left:
        _log.info("all suites and runs are deleted")
        return
    _log.error("after %s s these suites and runs still exist; is the operator running? %s", seconds, _summary(left))
    sys.exit(_EXIT_LEFT)


async def _in_cluster(seconds: float, namespaces: Sequence[str]) -> Sequence[Object]:
    # Imported here because it takes longer than everything else.
    from plimsoll.kube.client import AioKube  # noqa: PLC0415

    async with AioKube() as kube:
        return await remove_runs(kube, namespaces, seconds=seconds)


async def remove_runs(
    kube: Kube, namespaces: Sequence[str] = (), *, seconds: float, poll_seconds: float = _POLL_SECONDS
) -> Sequence[Object]:
    """Delete all suites and runs, including new ones, until none is left; return those that remain after the timeout.

    `namespaces` limits them; all namespaces by default.

    Raises:
        ApiError: if they cannot be listed or deleted.

    """
    deadline = time.monotonic() + seconds
    logged = ""
    while True:
        left = await persist(lambda: _objects(kube, namespaces), seconds=_REQUEST_SECONDS)
        if (summary := _summary(left)) != logged:
            _log.info("%s", summary or "nothing remains")
            logged = summary
        if not left or time.monotonic() > deadline:
            return left
        await _delete(kube, [obj for obj in left if "deletionTimestamp" not in obj["metadata"]])
        await asyncio.sleep(poll_seconds)


async def _objects(kube: Kube, namespaces: Sequence[str]) -> Sequence[Object]:
    return [obj for kind in _KINDS for namespace in namespaces or (None,) for obj in await _list(kube, kind, namespace)]


async def _list(kube: Kube, kind: Kind, namespace: str | None) -> Sequence[Object]:
    try:
        return await kube.list(kind, namespace=namespace)
    except UnknownKindError:
        return []  # without the CRD there are no objects


async def _delete(kube: Kube, objects: Sequence[Object]) -> None:
    for obj in objects:
        name, namespace, uid = (obj["metadata"][field] for field in ("name", "namespace", "uid"))
        await persist(partial(kube.delete, Kind.of(obj), name, namespace, uid=uid), seconds=_REQUEST_SECONDS)


def _summary(left: Sequence[Object]) -> str:
    """Return the remaining objects and what blocks their deletion."""
    shown = [_with_blocker(obj) for obj in left[:_SHOWN]]
    more = len(left) - len(shown)
    return "; ".join([*shown, f"and {more} more"] if more else shown)


def _with_blocker(obj: Object) -> str:
    kind = "suite " if obj["kind"] == SUITE_KIND else ""
    name = f"{kind}{obj['metadata']['namespace']}/{obj['metadata']['name']}"
    conditions: Sequence[Mapping[str, Any]] = (obj.get("status") or {}).get("conditions") or ()
    blocker = next((one.get("message") for one in conditions if one["type"] == "CleanedUp"), None)
    return f"{name}: {blocker}" if blocker else name
