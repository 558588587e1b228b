"""`plimsoll remove-runs`: delete the suites and runs of an operator before Helm uninstalls it."""

import asyncio
import logging
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import click

from plimsoll.api.names import SUITE_KIND
from plimsoll.cli.options import timeout_option
from plimsoll.cli.source import RUN, SUITE
from plimsoll.kube.errors import ApiError, UnknownKindError, persist
from plimsoll.kube.port import Kind, Kube, Object

_REQUEST_SECONDS = 30.0
_SHOWN = 5

_log = logging.getLogger(__name__)


@click.command(hidden=True)
@timeout_option("Time to wait", default="240s")
@click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    help="Namespace of the suites and runs; may be repeated. All by default.",
)
def command(*, timeout: int, namespaces: tuple[str, ...]) -> None:
    """Delete BenchmarkSuites and BenchmarkRuns, and wait until the operator has cleaned them up."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    # Imported here because it takes longer than everything else.
    from plimsoll.kube.client import AioKube  # noqa: PLC0415

    async def remove() -> Sequence[Object]:
        async with AioKube() as kube:
            return await remove_runs(kube, namespaces, seconds=timeout)

    try:
        left = asyncio.run(remove())
    except ApiError as error:
        raise click.ClickException(f"the runs cannot be deleted: {error}") from error
    if not left:
        _log.info("all suites and runs are deleted")
        return
    _log.error("after %s s these suites and runs still exist; is the operator running? %s", timeout, _summary(left))
    sys.exit(1)


async def remove_runs(
    kube: Kube, namespaces: Sequence[str] = (), *, seconds: float, poll_seconds: float = 2.0
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
        for obj in left:
            if "deletionTimestamp" not in obj["metadata"]:
                name, namespace, uid = (obj["metadata"][field] for field in ("name", "namespace", "uid"))
                delete = partial(kube.delete, Kind.of(obj), name, namespace, uid=uid)
                await persist(delete, seconds=_REQUEST_SECONDS)
        await asyncio.sleep(poll_seconds)


async def _objects(kube: Kube, namespaces: Sequence[str]) -> Sequence[Object]:
    objects: list[Object] = []
    # Suites first: a suite would create other runs.
    for kind in (SUITE, RUN):
        for namespace in namespaces or (None,):
            # Without the CRD there are no objects.
            with suppress(UnknownKindError):
                objects += await kube.list(kind, namespace=namespace)
    return objects


def _summary(left: Sequence[Object]) -> str:
    """Return the remaining objects and what blocks their deletion."""
    shown = []
    for obj in left[:_SHOWN]:
        kind = "suite " if obj["kind"] == SUITE_KIND else ""
        name = f"{kind}{obj['metadata']['namespace']}/{obj['metadata']['name']}"
        conditions = (obj.get("status") or {}).get("conditions") or ()
        messages = (condition.get("message") for condition in conditions if condition["type"] == "CleanedUp")
        blocker = next(messages, None)
        shown.append(f"{name}: {blocker}" if blocker else name)
    if len(left) > _SHOWN:
        shown.append(f"and {len(left) - _SHOWN} more")
    return "; ".join(shown)
