"""`plimsoll operator`: its probes and Lease, its settings, and what kopf starts and stops."""

import asyncio
import logging
import os
import signal
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Annotated, Any

import aiohttp
import click
import kopf
from aiohttp import web
from prometheus_client.registry import Collector
from pydantic import StringConstraints, TypeAdapter, ValidationError

from plimsoll.api.environment import OPTION_NAME_PATTERN
from plimsoll.conductor.secret import make_secret
from plimsoll.kube.client import AioKube
from plimsoll.kube.connection import guarding
from plimsoll.kube.port import READ_SECONDS, CredentialsError
from plimsoll.lifecycle.naming import MANAGED_BY
from plimsoll.lifecycle.queue import Entry
from plimsoll.lifecycle.run import Burning, Helper, Limits, NetworkPolicies, PodDefaults, Settings
from plimsoll.metrics.catalogue import OPERATOR_LEADER, Sample
from plimsoll.metrics.exposition import Instruments, Snapshot, operator_snapshot, serving
from plimsoll.net.listener import AddressError, serving_address
from plimsoll.operator.leader import Leadership, LeaseSettingError, lease_of, new_identity
from plimsoll.operator.loop import in_background
from plimsoll.operator.runs import RunReconciler
from plimsoll.operator.suites import SuiteReconciler
from plimsoll.operator.watches import Context, KnownResults, follow_children, post
from plimsoll.plan.windows import WINDOWS

_MIN_SECONDS = 60

_QualifiedName = Annotated[str, StringConstraints(pattern=r"^[-a-z0-9]+/[-a-z0-9]+$")]
_OptionName = Annotated[str, StringConstraints(pattern=OPTION_NAME_PATTERN)]
_DOCUMENTS: Mapping[str, tuple[str, TypeAdapter[Any], str]] = {
    "rook_clusters": ("PLIMSOLL_ROOK_CLUSTERS", TypeAdapter(dict[_QualifiedName, tuple[str, ...]]), "rook.clusters"),
    "rook_options": (
        "PLIMSOLL_ROOK_OPTIONS",
        TypeAdapter(dict[_QualifiedName, tuple[_OptionName, ...]]),
        "rook.options",
    ),
    "disturb": ("PLIMSOLL_DISTURB", TypeAdapter(dict[_QualifiedName, tuple[str, ...]]), "disturb"),
    "caches": ("PLIMSOLL_CACHES", TypeAdapter(Helper), "caches"),
    "burning": ("PLIMSOLL_KUBE_BURNER", TypeAdapter(Burning), "kubeBurner"),
    "pod_defaults": ("PLIMSOLL_POD_DEFAULTS", TypeAdapter(PodDefaults), "podDefaults"),
    "limits": ("PLIMSOLL_LIMITS", TypeAdapter(Limits), "limits"),
    "windows": ("PLIMSOLL_MAINTENANCE_WINDOWS", WINDOWS, "maintenanceWindows"),
    "network_policies": ("PLIMSOLL_NETWORK_POLICIES", TypeAdapter(NetworkPolicies), "networkPolicies"),
}
"""Field of the settings -> the variable with its JSON document, its form, and the chart's value that it comes from."""

_log = logging.getLogger(__name__)


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
        return memo.scrape() if "scrape" in memo else Snapshot(lambda: [Sample(OPERATOR_LEADER, (), 0)])

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


@kopf.on.startup()
async def configure(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:  # noqa: ANN401 - kopf's
    """Configure kopf, and connect to the API server with the memo's `settings` and `guard`.

    The memo gets `scrape`, which returns a snapshot of the metrics. If a background task ends, the memo's event `stop`
    is set, and its `failure` is the reason.
    """
    _configure_kopf(settings)
    async with AsyncExitStack() as opened:
        instruments = Instruments()
        connection = AioKube(observer=instruments.answered, guard=memo.guard, read_seconds=READ_SECONDS)
        kube = await opened.enter_async_context(connection)
        namespaces, queue = memo.get("namespaces", ()), dict[str, Entry]()
        shared: dict[str, Any] = {"kube": kube, "settings": memo.settings, "now": kube.clock.now, "post": post}
        shared["instruments"] = instruments
        runs = RunReconciler(**shared, queue=queue.values, namespaces=namespaces, make_secret=make_secret)
        suites = SuiteReconciler(**shared, runs_known=runs.complete_queue)
        results = KnownResults(namespaces, now=kube.clock.now)
        context = Context(runs=runs, suites=suites, queue=queue)
        memo.context = context
        for reconciler in (runs, suites):
            opened.push_async_callback(reconciler.stop)
        await opened.enter_async_context(_in_background(instruments.watch_loop(), "loop lag", memo))
        children = follow_children(kube, runs.records, namespaces)
        await opened.enter_async_context(_in_background(children, "objects of runs", memo))

        def scrape() -> Snapshot:
            of_runs, of_suites = context.exposed_runs.values(), context.exposed_suites.values()
            return operator_snapshot(results.metrics(), of_runs, instruments, of_suites)

        if memo.get("metrics"):
            memo.scrape = scrape
            await opened.enter_async_context(
                _in_background(results.follow(kube, runs_known=runs.complete_queue), "results", memo)
            )
        # kopf calls `close` only if all of this succeeded.
        memo.opened = opened.pop_all()


def _configure_kopf(settings: kopf.OperatorSettings) -> None:
    # Every watch is renewed after a minute, because only then is a connection noticed that died in silence. kopf
    # continues at the version that it has seen, so this costs one request. A page is in memory as bytes, text and
    # objects at once, up to 40 MiB for an object of the largest size that etcd stores.
    settings.watching.connect_timeout = 10
    settings.watching.server_timeout = 60
    settings.watching.client_timeout = 70
    settings.watching.reconnect_backoff = 1.0
    settings.watching.chunk_size = 5
    # How long kopf keeps an object after handling it.
    settings.queueing.idle_timeout = 0.5
    settings.networking.connect_timeout = 10
    settings.networking.request_timeout = 30
    settings.networking.enforce_retry_after = True
    # The operator sets and removes its own finalizer. No object can have this finalizer, so kopf never writes any.
    settings.persistence.finalizer = ""
    settings.persistence.diffbase_storage = _NoDiffs()
    settings.peering.standalone = True
    settings.posting.loggers = False
    settings.posting.level = logging.INFO
    settings.posting.reporting_component = MANAGED_BY
    settings.posting.reporting_instance = os.environ.get("POD_NAME", "local")
    settings.execution.max_workers = 4
    settings.process.ultimate_exiting_timeout = 60
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    # One line per event of every run would be noise; transitions are posted as events about the run.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)


class _NoDiffs(kopf.DiffBaseStorage):
    """Finds no object new or changed, since no handler is called for that, and copies none into an annotation."""

    def build(self, **_: object) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def fetch(self, **_: object) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def store(self, **_: object) -> None:
        """Store nothing."""


@kopf.on.login(retries=5)
async def login(memo: kopf.Memo, **kwargs: Any) -> kopf.AiohttpSession | None:  # noqa: ANN401 - kopf's
    """Log in as the pod's ServiceAccount, or with KUBECONFIG; kopf's requests are guarded like all others."""
    found = kopf.login_with_service_account(**kwargs) or kopf.login_with_kubeconfig(**kwargs)
    if found is None:
        return None
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=found.as_ssl_context()),
        headers=found.as_http_headers(),
        trace_configs=[] if memo.guard is None else [guarding(memo.guard)],
    )
    return kopf.AiohttpSession(aiohttp_session=session, server=found.server, default_namespace=found.default_namespace)


@kopf.on.cleanup()
async def close(memo: kopf.Memo, **_: Any) -> None:  # noqa: ANN401 - kopf's
    if "opened" in memo:
        await memo.opened.aclose()
    # kopf would wait 5 s for its own task that waits for this event.
    memo.stop.set()


def _in_background(work: Coroutine[Any, Any, Any], name: str, memo: kopf.Memo) -> AbstractAsyncContextManager[None]:
    """Do work that never ends. If it does end, the process stops: its metrics would freeze silently."""

    def stop_process(error: BaseException | None) -> None:
        memo.failure = f"background task {name!r} ended: {error!r}" if error else f"background task {name!r} ended"
        _log.critical("%s; the operator stops", memo.failure, exc_info=error)
        memo.stop.set()

    return in_background(work, name, stop_process)


def settings_of(environment: dict[str, str]) -> Settings:
    """Return the settings in an environment. kopf.PermanentError: a variable is missing or invalid."""
    image = environment.get("PLIMSOLL_RUNNER_IMAGE", "")
    if not image:
        raise kopf.PermanentError("PLIMSOLL_RUNNER_IMAGE is not set; set it to the image of conductor and agents")
    hold = environment.get("PLIMSOLL_HOLD_SECONDS", "").strip() or "3600"
    if not hold.isdecimal() or int(hold) < _MIN_SECONDS:
        raise kopf.PermanentError(f"PLIMSOLL_HOLD_SECONDS is {hold!r}: write whole seconds, {_MIN_SECONDS} or more")
    documents = {}
    for field, (name, form, chart_value) in _DOCUMENTS.items():
        if text := environment.get(name, "").strip():
            try:
                documents[field] = form.validate_json(text)
            except ValidationError as error:
                problem = error.errors()[0]
                place = "".join(f"[{part!r}]" for part in problem["loc"])
                message = f"{name}{place}: {problem['msg']}; correct the chart's value {chart_value}"
                raise kopf.PermanentError(message) from error
    return Settings(
        runner_image=image,
        teardown_namespace=environment.get("PLIMSOLL_TEARDOWN_NAMESPACE") or "plimsoll-teardown",
        platform_assigns_user=_switch(environment, "PLIMSOLL_PLATFORM_ASSIGNS_USER"),
        osd_bench=_switch(environment, "PLIMSOLL_OSD_BENCH"),
        hold_seconds=int(hold),
        image_pull_policy=environment.get("PLIMSOLL_IMAGE_PULL_POLICY", "IfNotPresent"),
        **documents,
    )


def _switch(environment: dict[str, str], name: str) -> bool:
    text = environment.get(name, "").strip().lower()
    if text not in {"", "false", "true"}:
        raise kopf.PermanentError(f"{name} is {environment[name]!r}: write true or false")
    return text == "true"
