"""`plimsoll caches`: the helper of a node that drops its caches. Started by the chart's DaemonSet."""

import logging
from functools import partial

import click

from plimsoll.agent.page_cache import SWITCH, drop_caches, may_drop_caches
from plimsoll.programs.termination import run_until_stopped
from plimsoll.protocol.helpers import PORT


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
        raise click.ClickException(f"/proc/{SWITCH} is not writable; run as root in a privileged container")
    run_until_stopped(_serve(node, allow, ceph_user, host, port))


async def _serve(node: str, allow: tuple[str, ...], ceph_user: str | None, host: str, port: int) -> None:
    # Imported here because they take longer than everything else.
    from plimsoll.conductor.ceph.commands import Commands  # noqa: PLC0415
    from plimsoll.helpers.caches import Abilities, Helper  # noqa: PLC0415
    from plimsoll.helpers.server import TokenReviews  # noqa: PLC0415
    from plimsoll.programs.serving import helper_listener, serve_forever  # noqa: PLC0415

    async with TokenReviews() as reviews:
        abilities = Abilities(
            allowed=allow,
            username=reviews.username,
            drop=partial(drop_caches, node),
            commands=Commands(ceph_user) if ceph_user else None,
        )
        listener = helper_listener()
        helper = Helper(abilities, know=lambda connection: listener.know(connection, 0))
        await serve_forever(helper.application(), listener, host, port)
