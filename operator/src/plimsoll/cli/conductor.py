"""`plimsoll conductor`: one run's conductor. Started by `plimsoll run`."""

import asyncio
import logging
import sys
from pathlib import Path

import click

from plimsoll.conductor.conduct import Listen, conduct
from plimsoll.conductor.secret import server_context
from plimsoll.conductor.sink import FilesSink
from plimsoll.conductor.timings import Timings
from plimsoll.protocol.secret import TOKEN_FILE

_DEFAULTS = Timings()


@click.command(hidden=True)
@click.option("--results", type=click.Path(path_type=Path), required=True, help="Directory with the frozen plan.")
@click.option("--secret", type=click.Path(path_type=Path), required=True, help="Directory with the session secret.")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=int, required=True)
@click.option("--lost-after", type=float, default=_DEFAULTS.lost_after, show_default=True, help="Seconds.")
@click.option("--silence", type=float, default=_DEFAULTS.silence, show_default=True, help="Seconds.")
@click.option("--epoch", help="Identity of this process; random if not given.")
def command(
    *, results: Path, secret: Path, host: str, port: int, lost_after: float, silence: float, epoch: str | None
) -> None:
    """Measure what is missing of a plan, with agents that come to this address."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    sink = FilesSink(results)
    listen = Listen(host=host, port=port, tls=server_context(secret), token=(secret / TOKEN_FILE).read_text().strip())
    timings = Timings(lost_after=lost_after, silence=silence, hold=min(_DEFAULTS.hold, lost_after / 2))
    sys.exit(asyncio.run(conduct(plan=sink.plan, sink=sink, listen=listen, timings=timings, epoch=epoch)))
