"""`plimsoll teardown`: remove the objects of a run from a Ceph cluster. Started in a cluster by the operator."""

import logging
import sys
from pathlib import Path

import click

from plimsoll.ceph.pools import EXIT_PURGING
from plimsoll.cli import EXIT_STOPPED
from plimsoll.conductor.ceph.commands import Commands
from plimsoll.conductor.ceph.teardown import Remains, TeardownTarget, tear_down
from plimsoll.programs.termination import log_to_stderr, run_until_stopped, write_termination_message

_log = logging.getLogger(__name__)


@click.command(hidden=True, context_settings={"auto_envvar_prefix": "PLIMSOLL"})
@click.option("--uid", required=True, help="UID of the run.")
@click.option("--clients", type=click.IntRange(min=0), required=True, help="Number of clients of the run.")
@click.option("--pool", required=True, help="Pool of the run's images and objects.")
@click.option("--data-pool", help="Pool of the images' data, if different.")
@click.option("--other-pool", "other_pools", multiple=True, help="Another pool of the run; may be given several times.")
@click.option("--images/--no-images", default=True, help="Whether the pool may contain RBD images of the run.")
@click.option("--file-system", default="", help="File system of the run that is removed next.")
@click.option(
    "--options/--no-options",
    default=False,
    help="Whether the run may have set options of the OSDs, or taken OSDs away.",
)
@click.option("--only-restore", is_flag=True, help="Restore options and OSDs, and remove nothing.")
@click.option("--user", required=True, help="CephX user, without `client.`.")
@click.option("--termination-log", type=click.Path(path_type=Path), help="File for the reason of a failure.")
def command(
    *,
    uid: str,
    clients: int,
    pool: str,
    data_pool: str | None,
    other_pools: tuple[str, ...],
    images: bool,
    file_system: str,
    options: bool,
    only_restore: bool,
    user: str,
    termination_log: Path | None,
) -> None:
    """Remove a run's images and objects, and restore the options, flags and OSDs that it changed. Idempotent."""
    log_to_stderr()
    others = other_pools if data_pool is None else (data_pool, *other_pools)
    target = TeardownTarget(
        uid=uid,
        clients=clients,
        pool=pool,
        other_pools=others,
        has_images=images,
        file_system=file_system,
        has_options=options,
        only_restores=only_restore,
    )

    async def remove() -> Remains:
        async with Commands(user) as commands:
            return await tear_down(commands, target)

    left = run_until_stopped(remove())
    if left is None:
        _log.info("stopped before everything was removed; the next pod continues")
        sys.exit(EXIT_STOPPED)
    if not left.problems:
        _log.info("the OSDs are restored" if only_restore else f"run {uid} has no objects left in pool {pool}")
        return
    reason = "; ".join(left.problems)
    write_termination_message(termination_log, reason)
    _log.error("%s", reason)
    sys.exit(EXIT_PURGING if left.is_purging else 1)
