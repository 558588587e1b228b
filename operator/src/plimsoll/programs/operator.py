"""`plimsoll operator`: the control plane."""

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import AsyncExitStack

import click
import kopf
from aiohttp import web
from prometheus_client.registry import Collector

import plimsoll.operator.main  # noqa: F401 - registers the handlers
from plimsoll.kube.client import AioKube
from plimsoll.kube.port import CredentialsError
from plimsoll.metrics.exposition import FollowerScrape, serving
from plimsoll.net.address import AddressError, serving_address
from plimsoll.operator.leader import Leadership, LeaseSettingError, lease_of, new_identity
from plimsoll.operator.main import settings_of


@click.command(hidden=True)
@click.option(
    "--liveness",
    default="http://:8080/healthz",
    show_default=True,
    help="Address of the liveness probe; the readiness probe is /readyz next to it.",
)
@click.option(
    "--metrics", default="", help="Address of the metrics, such as http://0.0.0.0:8081/metrics; off by default."
)
@click.option(
    "--namespace", "namespaces", multiple=True, help="Namespace to watch; may be repeated. All namespaces by default."
)
@click.option("--log-format", type=click.Choice(["json", "plain"]), default="json", show_default=True)
def command(*, liveness: str, metrics: str, namespaces: tuple[str, ...], log_format: str) -> None:
    """Reconcile BenchmarkRuns and BenchmarkSuites, in the cluster of the pod or of KUBECONFIG."""
    formats = {"json": kopf.LogFormat.JSON, "plain": kopf.LogFormat.PLAIN}
    kopf.configure(verbose=False, log_format=formats[log_format])
    try:
        asyncio.run(_operate(liveness, metrics, namespaces))
    except (CredentialsError, LeaseSettingError, kopf.PermanentError) as error:
        raise click.ClickException(str(error)) from error


async def _operate(liveness: str, metrics: str, namespaces: Sequence[str]) -> None:
    """Serve probes and metrics, wait for the Lease, and run kopf while this process has it."""
    settings, lease, stop = settings_of(dict(os.environ)), lease_of(os.environ), asyncio.Event()
    async with AsyncExitStack() as opened:
        leadership = None
        if lease is not None:
            kube = await opened.enter_async_context(AioKube())
            leadership = Leadership(kube, *lease, identity=new_identity(os.environ))
        guard = None if leadership is None else leadership.check
        memo = kopf.Memo(metrics=metrics, namespaces=namespaces, stop=stop, settings=settings, guard=guard)
        await _serve(opened, liveness, metrics, memo, leadership)
        if leadership is not None:
            # kopf replaces these.
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
            if not await leadership.acquire(stop):
                return
            await opened.enter_async_context(leadership.kept())
        await kopf.operator(
            clusterwide=not namespaces, namespaces=namespaces, standalone=True, memo=memo, stop_flag=stop
        )
        if "failure" in memo:
            raise click.ClickException(memo.failure)


async def _serve(
    opened: AsyncExitStack, liveness: str, metrics: str, memo: kopf.Memo, leadership: Leadership | None
) -> None:
    """Serve probes and metrics, also while another operator leads. click.ClickException: an address is invalid."""

    async def answer_liveness(_: web.Request) -> web.Response:
        """Answer at all: a blocked event loop does not."""
        return web.Response(status=500 if "failure" in memo else 200, text=memo.get("failure", "ok"))

    async def answer_readiness(request: web.Request) -> web.Response:
        if leadership is None or leadership.leads or leadership.sees_lease:
            return await answer_liveness(request)
        return web.Response(status=503, text="the Lease cannot be read")

    def snapshot() -> Collector:
        return memo.scrape() if "scrape" in memo else FollowerScrape()

    example, option = "http://0.0.0.0:8080/healthz", "--liveness"
    try:
        await opened.enter_async_context(
            serving_address(liveness, answer_liveness, example=example, readyz=answer_readiness)
        )
        option = "--metrics"
        if metrics:
            await opened.enter_async_context(serving(metrics, snapshot))
    except AddressError as error:
        raise click.ClickException(f"{option} {error}") from error
