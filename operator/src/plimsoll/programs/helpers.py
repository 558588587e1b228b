"""The helpers: `plimsoll caches` (a DaemonSet) drops caches, and `plimsoll burner` (a Deployment) runs kube-burner."""

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from plimsoll.agent.caches import SWITCH, drop_caches, may_drop_caches
from plimsoll.api.quantity import parse_quantity
from plimsoll.programs.termination import log_to_stderr, run_until_stopped
from plimsoll.protocol.helpers import BURNER_AUDIENCE, PORT

if TYPE_CHECKING:
    import ssl

    from aiohttp import web

    from plimsoll.net.listener import Listener

_LIMITED_CONNECTIONS = 64


@click.command(hidden=True, context_settings={"auto_envvar_prefix": "PLIMSOLL"})
@click.option("--node", required=True, help="Name of this node.")
@click.option("--allow", multiple=True, required=True, help="Namespace whose runs may drop caches; * for all.")
@click.option("--ceph-user", help="CephX user that may have OSDs drop their caches, without `client.`.")
@click.option(
    "--switch",
    type=click.Path(readable=False, path_type=Path),
    default=SWITCH,
    show_default=True,
    help="The node's file that drops its caches.",
)
@click.option("--host", default="", help="Address to listen on; empty for all.")
@click.option("--port", type=int, default=PORT, show_default=True)
def caches_command(
    *, node: str, allow: tuple[str, ...], ceph_user: str | None, switch: Path, host: str, port: int
) -> None:
    """Drop the caches of this node on request: the page cache, dentries and inodes. Requires root."""
    log_to_stderr()
    if not may_drop_caches(switch):
        raise click.ClickException(
            f"{switch} is not writable; run as root, and mount the node's {SWITCH} there. With SELinux, set the "
            "chart's caches.seLinuxOptions"
        )

    async def serve() -> None:
        # Imported here because they take longer than everything else.
        from plimsoll.conductor.ceph.commands import Commands  # noqa: PLC0415
        from plimsoll.helpers.caches import Abilities, Helper  # noqa: PLC0415
        from plimsoll.helpers.server import TokenReviews  # noqa: PLC0415

        async with TokenReviews() as reviews:
            abilities = Abilities(
                allowed=allow,
                username=reviews.username,
                drop=partial(drop_caches, node, switch),
                commands=Commands(ceph_user) if ceph_user else None,
            )
            listener = _listener()
            helper = Helper(abilities, know=lambda connection: listener.know(connection, 0))
            await _serve_forever(helper.application(), listener, host, port)

    run_until_stopped(serve())


def _bytes(_context: click.Context, _parameter: click.Parameter, value: str) -> int:
    try:
        return parse_quantity(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command(hidden=True, context_settings={"auto_envvar_prefix": "PLIMSOLL"})
@click.option("--namespace", required=True, help="Namespace of this helper.")
@click.option("--allow", multiple=True, required=True, help="Namespace whose runs may use it; * for all.")
@click.option("--max-objects", type=click.IntRange(min=1), required=True, help="PVCs at the same time.")
@click.option("--max-qps", type=click.IntRange(min=1), required=True, help="Requests per second.")
@click.option("--max-volume-size", callback=_bytes, required=True, help="Size of a PVC, such as 1Gi.")
@click.option("--pod-image", required=True, help="Image of the pods that mount the PVCs.")
@click.option("--program", default="kube-burner", show_default=True, help="Path of kube-burner.")
@click.option("--work", type=click.Path(file_okay=False, path_type=Path), default="/tmp", show_default=True)  # noqa: S108  # an emptyDir
@click.option("--host", default="", help="Address to listen on; empty for all.")
@click.option("--port", type=int, default=PORT, show_default=True)
def burner_command(
    *,
    namespace: str,
    allow: tuple[str, ...],
    max_objects: int,
    max_qps: int,
    max_volume_size: int,
    pod_image: str,
    program: str,
    work: Path,
    host: str,
    port: int,
) -> None:
    """Run kube-burner on request, and remove everything that it creates."""
    log_to_stderr()

    async def serve() -> None:
        # Imported here because they take longer than everything else.
        from plimsoll.helpers.authority import Limits  # noqa: PLC0415
        from plimsoll.helpers.burner import Helper, Means, identity, knower  # noqa: PLC0415
        from plimsoll.helpers.server import TokenReviews  # noqa: PLC0415

        async with TokenReviews(BURNER_AUDIENCE) as api, asyncio.TaskGroup() as group:
            means = Means(
                namespace=namespace,
                program=program,
                pod_image=pod_image,
                directory=work,
                username=api.username,
                api=api,
            )
            limits = Limits(allowed=allow, max_objects=max_objects, max_qps=max_qps, max_volume_size=max_volume_size)
            listener = _listener(await identity(api, namespace, work / "identity"))
            helper = Helper(means, limits, know=knower(listener))
            # What an earlier process left. If this fails, so does the program.
            group.create_task(helper.clean())
            group.create_task(_serve_forever(helper.application(), listener, host, port))

    run_until_stopped(serve())


def _listener(tls: "ssl.SSLContext | None" = None) -> "Listener":
    # Imported here because it takes longer than everything else.
    from plimsoll.net.listener import Listener, ListenerLimits  # noqa: PLC0415

    return Listener(
        ListenerLimits(strangers=_LIMITED_CONNECTIONS, stranger_seconds=15.0, connections=_LIMITED_CONNECTIONS),
        tls=tls,
    )


async def _serve_forever(application: "web.Application", listener: "Listener", host: str, port: int) -> None:
    from plimsoll.net.listener import serving_requests  # noqa: PLC0415

    async with serving_requests(application, listener, host, port, idle_seconds=5.0):
        await asyncio.Event().wait()
