"""`plimsoll conductor`: one run's conductor. Started by `plimsoll run`, and in a cluster by the operator."""

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from plimsoll.api.errors import SpecError
from plimsoll.api.result import ResultStatus, Trial
from plimsoll.api.state import RunState
from plimsoll.cli.termination import write_last_words
from plimsoll.conductor.ceph.cli import Commands
from plimsoll.conductor.ceph.cluster import Cluster
from plimsoll.conductor.conduct import Listen, conduct
from plimsoll.conductor.kube_sink import KubeSink
from plimsoll.conductor.secret import server_context
from plimsoll.conductor.sink import FilesSink, Sink
from plimsoll.conductor.timings import Timings
from plimsoll.kube.errors import ApiError
from plimsoll.plan.document import Plan, load_plan
from plimsoll.protocol.secret import TOKEN_KEY_FILE

_DEFAULTS = Timings()
_EXIT_FAILED = 1

Conduct = Callable[[Plan, Sink, Cluster | None], Coroutine[Any, Any, int]]


@click.command(hidden=True, context_settings={"auto_envvar_prefix": "PLIMSOLL"})
@click.option("--results", type=click.Path(path_type=Path), help="Directory with the frozen plan, to keep results in.")
@click.option("--namespace", help="Namespace of the run, to keep results in its objects; needs --plan.")
@click.option("--plan", "plan_file", type=click.Path(path_type=Path), envvar="PLIMSOLL_PLAN", help="The frozen plan.")
@click.option("--secret", type=click.Path(path_type=Path), required=True, help="Directory with the session secret.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; empty for all.")
@click.option("--port", type=int, required=True)
@click.option("--metrics-port", type=int, help="Where Prometheus may ask how it goes; plain HTTP. Off if not given.")
@click.option("--lost-after", type=float, default=_DEFAULTS.lost_after, show_default=True, help="Seconds.")
@click.option("--silence", type=float, default=_DEFAULTS.silence, show_default=True, help="Seconds.")
@click.option("--epoch", help="Identity of this process; random if not given.")
@click.option("--termination-log", type=click.Path(path_type=Path), help="File for the reason of a failure.")
def command(
    *,
    results: Path | None,
    namespace: str | None,
    plan_file: Path | None,
    secret: Path,
    host: str,
    port: int,
    metrics_port: int | None,
    lost_after: float,
    silence: float,
    epoch: str | None,
    termination_log: Path | None,
) -> None:
    """Measure what is missing of a plan, with agents that come to this address.

    Every option may also stand in the environment, as PLIMSOLL_NAMESPACE, PLIMSOLL_LOST_AFTER and so on.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        token_key = (secret / TOKEN_KEY_FILE).read_bytes()
        listen = Listen(host=host, port=port, tls=server_context(secret), token_key=token_key)
        timings = Timings(lost_after=lost_after, silence=silence, hold=min(_DEFAULTS.hold, lost_after / 2))
        measure = partial(
            _measure,
            listen=listen,
            timings=timings,
            epoch=epoch,
            metrics_port=metrics_port,
            termination_log=termination_log,
        )
        code = _run(results, namespace, plan_file, measure)
    except (ApiError, SpecError, OSError) as error:
        write_last_words(termination_log, str(error))
        logging.getLogger(__name__).error("%s", error)  # noqa: TRY400 - the message says it all
        sys.exit(_EXIT_FAILED)
    sys.exit(code)


def _run(results: Path | None, namespace: str | None, plan_file: Path | None, measure: Conduct) -> int:
    """Conduct with the sink that the options name; files if they name both, as the launcher of local mode does."""
    if results is not None:
        files = FilesSink(results)
        # Local clients are on a directory or a device: whatever storage the run names is not what they measure.
        return asyncio.run(measure(files.plan, files, None))
    if namespace is None or plan_file is None:
        message = "say where results are kept: --results DIR, or --namespace NAME with --plan FILE"
        raise click.UsageError(message)
    return asyncio.run(_in_cluster(load_plan(plan_file.read_text()), namespace, measure))


async def _in_cluster(plan: Plan, namespace: str, measure: Conduct) -> int:
    # Only here: its import takes as much memory as the rest of a conductor.
    from plimsoll.kube.client import AioKube  # noqa: PLC0415

    cluster = Cluster(plan, plan.ceph, Commands(plan.ceph.conductor_user)) if plan.ceph else None
    async with AioKube() as kube:
        return await measure(plan, KubeSink(kube, plan, namespace), cluster)


async def _measure(
    plan: Plan,
    sink: Sink,
    cluster: Cluster | None,
    *,
    listen: Listen,
    timings: Timings,
    epoch: str | None,
    metrics_port: int | None,
    termination_log: Path | None,
) -> int:
    """Conduct, and leave the reason if it failed for good."""
    watched = _WatchedSink(sink)
    code = await conduct(
        plan=plan,
        sink=watched,
        listen=listen,
        timings=timings,
        epoch=epoch,
        cluster=cluster,
        metrics_port=metrics_port,
    )
    if watched.state is not None and watched.state.failure is not None:
        failure = watched.state.failure
        write_last_words(termination_log, f"{failure.reason}: {failure.message}")
    return code


class _WatchedSink:
    """A sink that remembers the last state: it says why a run failed."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.progress_seconds = sink.progress_seconds
        self.pulse_seconds = sink.pulse_seconds
        self.state: RunState | None = None

    async def load(self) -> tuple[Mapping[str, Sequence[Trial]], RunState | None]:
        return await self._sink.load()

    async def publish(self, state: RunState) -> None:
        self.state = state
        await self._sink.publish(state)

    async def record(self, point: str, status: ResultStatus) -> None:
        await self._sink.record(point, status)
