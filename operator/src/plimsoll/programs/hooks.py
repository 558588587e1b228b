"""Hooks of the Helm chart: `plimsoll check-installation` for `helm test`, `remove-runs` before it is uninstalled."""

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from secrets import token_hex

import click

from plimsoll.api.names import API_VERSION, RUN_KIND, SUITE_KIND
from plimsoll.cli.options import timeout_option
from plimsoll.cli.source import RUN, SUITE
from plimsoll.kube.port import ApiError, Kind, Kube, Object, UnknownKindError, persist
from plimsoll.measure.text import first_few
from plimsoll.programs.termination import log_to_stderr

_REQUEST_SECONDS = 30.0
_SHOWN = 5

_log = logging.getLogger(__name__)


class NotInstalledError(Exception):
    """The operator does not work; the message names the failed step and where to look."""


@click.command(hidden=True)
@click.option("--namespace", required=True, help="Namespace of the test run.")
@timeout_option("Time for each step", default="60s")
def check_command(*, namespace: str, timeout: int) -> None:
    """Create and delete a suspended run, and check that the operator handles both. Generates no load."""
    log_to_stderr()
    # Imported here because it takes longer than everything else.
    from plimsoll.kube.client import AioKube  # noqa: PLC0415

    async def check() -> None:
        async with AioKube() as kube:
            await check_installation(kube, namespace, seconds=timeout)

    try:
        asyncio.run(check())
    except (ApiError, NotInstalledError) as error:
        raise click.ClickException(str(error)) from error
    _log.info("the operator works")


async def check_installation(kube: Kube, namespace: str, *, seconds: float, poll_seconds: float = 1.0) -> None:
    """Have the operator observe and release a run; ApiError if it is rejected, NotInstalledError if it is not done."""
    name = f"check-{token_hex(4)}"
    await persist(lambda: kube.create(_suspended_run(name, namespace)), seconds=_REQUEST_SECONDS)
    _log.info("created run %s/%s", namespace, name)

    async def wait_until(is_done: Callable[[Object | None], bool], verb: str) -> None:
        deadline = time.monotonic() + seconds
        while not is_done(await persist(lambda: kube.get(RUN, name, namespace), seconds=_REQUEST_SECONDS)):
            if time.monotonic() > deadline:
                problem = f"the operator has not {verb} run {namespace}/{name} after {seconds:.0f} s"
                raise NotInstalledError(f"{problem}; check the logs of its Deployment")
            await asyncio.sleep(poll_seconds)

    def is_observed(run: Object | None) -> bool:
        conditions = ((run or {}).get("status") or {}).get("conditions") or ()
        return any((condition["type"], condition["status"]) == ("Suspended", "True") for condition in conditions)

    try:
        await wait_until(is_observed, "observed")
        _log.info("the operator has observed the run")
    finally:
        await persist(lambda: kube.delete(RUN, name, namespace), seconds=_REQUEST_SECONDS)
    await wait_until(lambda run: run is None, "released")


def _suspended_run(name: str, namespace: str) -> Object:
    """Return a run that creates no objects, because it is suspended."""
    return {
        "apiVersion": API_VERSION,
        "kind": RUN_KIND,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "suspend": True,
            "storage": {"storageClass": {"name": "none"}, "volume": {"size": "1Gi", "mode": "Filesystem"}},
            "clients": {"count": 1},
            "workloads": [{"name": "read", "fio": {"pattern": "randread"}}],
        },
    }


@click.command(hidden=True)
@timeout_option("Time to wait", default="240s")
@click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    help="Namespace of the suites and runs; may be repeated. All by default.",
)
def remove_command(*, timeout: int, namespaces: tuple[str, ...]) -> None:
    """Delete BenchmarkSuites and BenchmarkRuns, and wait until the operator has cleaned them up."""
    log_to_stderr()
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
    """Delete all suites and runs, new ones too; return those left after the timeout. See `Kube` for errors."""
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
    shown = []
    for obj in left:
        kind = "suite " if obj["kind"] == SUITE_KIND else ""
        name = f"{kind}{obj['metadata']['namespace']}/{obj['metadata']['name']}"
        conditions = (obj.get("status") or {}).get("conditions") or ()
        messages = (condition.get("message") for condition in conditions if condition["type"] == "CleanedUp")
        blocker = next(messages, None)
        shown.append(f"{name}: {blocker}" if blocker else name)
    return first_few(shown, _SHOWN, "; ")
