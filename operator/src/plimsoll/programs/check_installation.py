"""`plimsoll check-installation`: whether the operator works. Started by `helm test`."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from secrets import token_hex

import click

from plimsoll.api.names import API_VERSION, RUN_KIND
from plimsoll.cli.options import timeout_option
from plimsoll.cli.source import RUN
from plimsoll.kube.errors import ApiError, persist
from plimsoll.kube.port import Kube, Object

_REQUEST_SECONDS = 30.0

_log = logging.getLogger(__name__)


class NotInstalledError(Exception):
    """The operator does not work; the message names the failed step and where to look."""


@click.command(hidden=True)
@click.option("--namespace", required=True, help="Namespace of the test run.")
@timeout_option("Time for each step", default="60s")
def command(*, namespace: str, timeout: int) -> None:
    """Create and delete a suspended run, and check that the operator handles both. Generates no load."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
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
    """Create a run, wait for the operator to observe it, delete it, and wait until it is gone.

    Raises:
        ApiError: if the API server rejects the run: its CRD is missing or of another version.
        NotInstalledError: if the operator does not react in time.

    """
    name = f"check-{token_hex(4)}"
    await persist(lambda: kube.create(_suspended_run(name, namespace)), seconds=_REQUEST_SECONDS)
    _log.info("created run %s/%s", namespace, name)

    async def read() -> Object | None:
        return await persist(lambda: kube.get(RUN, name, namespace), seconds=_REQUEST_SECONDS)

    async def is_observed() -> bool:
        conditions = ((await read() or {}).get("status") or {}).get("conditions") or ()
        return any((condition["type"], condition["status"]) == ("Suspended", "True") for condition in conditions)

    async def is_gone() -> bool:
        return await read() is None

    try:
        await _until(is_observed, seconds, poll_seconds, f"the operator has not observed run {namespace}/{name}")
        _log.info("the operator has observed the run")
    finally:
        await persist(lambda: kube.delete(RUN, name, namespace), seconds=_REQUEST_SECONDS)
    await _until(is_gone, seconds, poll_seconds, f"the operator has not released run {namespace}/{name}")


async def _until(condition: Callable[[], Awaitable[bool]], seconds: float, poll_seconds: float, otherwise: str) -> None:
    deadline = time.monotonic() + seconds
    while not await condition():
        if time.monotonic() > deadline:
            raise NotInstalledError(f"{otherwise} after {seconds:.0f} s; check the logs of its Deployment")
        await asyncio.sleep(poll_seconds)


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
