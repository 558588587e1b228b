"""`plimsoll teardown`: removes what a run left in a Ceph cluster. Started in a cluster by the operator."""

import asyncio
import logging
import sys
from pathlib import Path

import click

from plimsoll.cli.termination import write_last_words
from plimsoll.conductor.ceph.cli import Commands
from plimsoll.conductor.ceph.teardown import Leftovers, tear_down

_EXIT_UNCLEAN = 1

_log = logging.getLogger(__name__)


@click.command(hidden=True, context_settings={"auto_envvar_prefix": "PLIMSOLL"})
@click.option("--uid", required=True, help="UID of the run.")
@click.option("--clients", type=click.IntRange(min=0), required=True, help="How many clients the run had.")
@click.option("--pool", required=True, help="Pool that the run's images and objects are in.")
@click.option("--data-pool", help="Pool of the images' data, if that is another one.")
@click.option("--user", required=True, help="CephX user, without `client.`.")
@click.option("--termination-log", type=click.Path(path_type=Path), help="File for the reason of a failure.")
def command(
    *, uid: str, clients: int, pool: str, data_pool: str | None, user: str, termination_log: Path | None
) -> None:
    """Remove a run's images and objects, and take back the flags that it set on its pools. May be repeated."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    left = Leftovers(uid=uid, clients=clients, pool=pool, data_pool=data_pool)
    problems = asyncio.run(tear_down(Commands(user), left))
    if not problems:
        _log.info("nothing of run %s is left in pool %s", uid, pool)
        return
    reason = "; ".join(problems)
    write_last_words(termination_log, reason)
    _log.error("%s", reason)
    sys.exit(_EXIT_UNCLEAN)
