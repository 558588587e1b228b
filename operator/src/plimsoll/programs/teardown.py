"""`plimsoll teardown`: remove the objects of a run from a Ceph cluster. Started in a cluster by the operator."""

import logging
import sys
from pathlib import Path
from typing import Any

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
@click.option("--other-pool", "other_pools", multiple=True, help="Another pool of the run; may be given several times.")
@click.option(
    "--images/--no-images", "has_images", default=True, help="Whether the pool may contain RBD images of the run."
)
@click.option("--file-system", default="", help="File system of the run that is removed next.")
@click.option(
    "--options/--no-options",
    "has_options",
    default=False,
    help="Whether the run may have set options of the OSDs, or taken OSDs away.",
)
@click.option("--only-restore", "only_restores", is_flag=True, help="Restore options and OSDs, and remove nothing.")
@click.option("--user", required=True, help="CephX user, without `client.`.")
@click.option("--termination-log", type=click.Path(path_type=Path), help="File for the reason of a failure.")
def command(*, user: str, termination_log: Path | None, **what: Any) -> None:  # noqa: ANN401 - fields of the target
    """Remove a run's images and objects, and restore the options, flags and OSDs that it changed. Idempotent."""
    log_to_stderr()
    target = TeardownTarget(**what)

    async def remove() -> Remains:
        async with Commands(user) as commands:
            return await tear_down(commands, target)

    left = run_until_stopped(remove())
    if left is None:
        _log.info("stopped before everything was removed; the next pod continues")
        sys.exit(EXIT_STOPPED)
    if not left.problems:
        is_left = f"run {target.uid} has no objects left in pool {target.pool}"
        _log.info("the OSDs are restored" if target.only_restores else is_left)
        return
    reason = "; ".join(left.problems)
    write_termination_message(termination_log, reason)
    _log.error("%s", reason)
    sys.exit(EXIT_PURGING if left.is_purging else 1)
