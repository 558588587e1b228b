"""`plimsoll conductor`: one run's conductor. Started by `plimsoll run`, and in a cluster by the operator."""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import click
from pydantic import ValidationError

from plimsoll.api.errors import SpecError
from plimsoll.conductor.attempt import Timings
from plimsoll.conductor.main import Listen, conduct, exit_code
from plimsoll.conductor.phases import Ended
from plimsoll.conductor.secret import server_context
from plimsoll.conductor.sink import FilesSink, KubeSink
from plimsoll.kube.port import ApiError
from plimsoll.plan.document import Plan, load_plan
from plimsoll.plan.windows import WINDOWS
from plimsoll.programs.termination import log_to_stderr, write_termination_message
from plimsoll.protocol.assignment import TOKEN_KEY_FILE

_DEFAULTS = Timings()


@click.command(hidden=True, context_settings={"auto_envvar_prefix": "PLIMSOLL"})
@click.option("--results", type=click.Path(path_type=Path), help="Results directory with the frozen plan.")
@click.option("--namespace", help="Namespace of the run, whose objects store the results; requires --plan.")
@click.option("--plan", "plan_file", type=click.Path(path_type=Path), envvar="PLIMSOLL_PLAN", help="The frozen plan.")
@click.option("--secret", type=click.Path(path_type=Path), required=True, help="Directory with the session secret.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; empty for all.")
@click.option("--port", type=int, required=True)
@click.option("--metrics-port", type=int, help="Port of the metrics for Prometheus; plain HTTP. Off by default.")
@click.option("--lost-after", type=float, default=_DEFAULTS.lost_after, show_default=True, help="Seconds.")
@click.option("--silence", type=float, default=_DEFAULTS.silence, show_default=True, help="Seconds.")
@click.option("--epoch", help="Identity of this process; random by default.")
@click.option("--job", default="", help="UID of its Job in a cluster.")
@click.option(
    "--caches-token", type=click.Path(path_type=Path), help="File with the token for the helpers that drop caches."
)
@click.option("--maintenance-windows", default="[]", help="When trials may load, as JSON; at any time by default.")
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
    job: str,
    caches_token: Path | None,
    maintenance_windows: str,
    termination_log: Path | None,
) -> None:
    """Measure the missing trials of a plan, with the agents that connect to this address.

    Every option can be set in the environment, as PLIMSOLL_NAMESPACE, PLIMSOLL_LOST_AFTER and so on.
    """
    log_to_stderr()
    try:
        token_key = (secret / TOKEN_KEY_FILE).read_bytes()
        listen = Listen(
            host=host, port=port, tls=server_context(secret), token_key=token_key, caches_token=caches_token
        )
        windows = WINDOWS.validate_json(maintenance_windows)
        hold = min(_DEFAULTS.hold, lost_after / 2)
        timings = Timings(lost_after=lost_after, silence=silence, hold=hold, windows=windows)
        measure = partial(conduct, listen=listen, timings=timings, epoch=epoch, metrics_port=metrics_port, job=job)
        if results is not None:
            # Also if both are given, as by the local launcher. Local clients measure a directory or a device, not the
            # storage of the run's specification.
            files = FilesSink(results)
            ended = asyncio.run(measure(plan=files.plan, sink=files))
        elif namespace is not None and plan_file is not None:
            ended = asyncio.run(_in_cluster(load_plan(plan_file.read_text()), namespace, measure))
        else:
            raise click.UsageError(
                "there is no place for results; give --results DIR, or --namespace NAME with --plan FILE"
            )
    except (ApiError, SpecError, ValidationError, OSError) as error:
        write_termination_message(termination_log, str(error))
        logging.getLogger(__name__).error("%s", error)  # noqa: TRY400 - the message is enough
        sys.exit(1)
    if (failure := ended.failure) is not None:
        write_termination_message(termination_log, f"{failure.reason}: {failure.message}")
    sys.exit(exit_code(ended))


async def _in_cluster(plan: Plan, namespace: str, measure: Callable[..., Awaitable[Ended]]) -> Ended:
    # Imported here because it takes as much memory as the rest of a conductor.
    from plimsoll.kube.client import AioKube  # noqa: PLC0415

    cluster = None
    if plan.ceph is not None:
        # Imported here so that the conductors of other runs start faster.
        from plimsoll.conductor.ceph.commands import Commands  # noqa: PLC0415
        from plimsoll.conductor.ceph.watch import CephCluster  # noqa: PLC0415

        cluster = CephCluster(plan, plan.ceph, Commands(plan.ceph.conductor_user))
    async with AioKube() as kube:
        return await measure(plan=plan, sink=KubeSink(kube, plan, namespace), cluster=cluster)
