"""`plimsoll caches`: the helper of a node that drops its caches. Started by the chart's DaemonSet."""

import asyncio
import logging
import signal
from functools import partial

import click

from plimsoll.agent.page_cache import SWITCH, drop_caches, may_drop_caches
from plimsoll.protocol.helpers import PORT

_LIMITED_CONNECTIONS = 64
_STRANGER_SECONDS = 15.0
_IDLE_SECONDS = 5.0


@click.command(hidden=True, context_settings={"auto_envvar_prefix": "PLIMSOLL"})
@click.option("--node", required=True, help="Name of this node.")
@click.option("--allow", multiple=True, required=True, help="Namespace whose runs may drop caches; * for all.")
@click.option("--ceph-user", help="CephX user that may have OSDs drop their caches, without `client.`.")
@click.option("--host", default="", help="Address to listen on; empty for all.")
@click.option("--port", type=int, default=PORT, show_default=True)
def command(*, node: str, allow: tuple[str, ...], ceph_user: str | None, host: str, port: int) -> None:
    """Drop the caches of this node on request: the page cache, dentries and inodes. Requires a privileged container."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    if not may_drop_caches():
        message = f"/proc/{SWITCH} is not writable; run as root in a privileged container"
        raise click.ClickException(message)
    asyncio.run(_serve(node, allow, ceph_user, host, port))


async def _serve(node: str, allow: tuple[str, ...], ceph_user: str | None, host: str, port: int) -> None:
    """Serve until SIGTERM."""
    # Imported here because they take longer than everything else.
    from plimsoll.conductor.ceph.commands import Commands  # noqa: PLC0415
    from plimsoll.helpers.caches import Abilities, Helper  # noqa: PLC0415
    from plimsoll.helpers.server import TokenReviews  # noqa: PLC0415
    from plimsoll.net.listener import (  # noqa: PLC0415
        Listener,
        ListenerLimits,
        serving_requests,
    )

    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    limits = ListenerLimits(
        strangers=_LIMITED_CONNECTIONS, stranger_seconds=_STRANGER_SECONDS, connections=_LIMITED_CONNECTIONS
    )
    listener = Listener(limits)
    async with TokenReviews() as reviews:
        abilities = Abilities(
            allowed=allow,
            username=reviews.username,
            drop=partial(drop_caches, node),
            commands=Commands(ceph_user) if ceph_user else None,
        )
        helper = Helper(abilities, know=lambda connection: listener.know(connection, 0))
        async with serving_requests(helper.application(), listener, host, port, idle_seconds=_IDLE_SECONDS):
            await stopped.wait()
