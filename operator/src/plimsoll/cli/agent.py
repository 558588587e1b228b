"""`plimsoll agent`: one client's agent. Started by `plimsoll run`."""

import asyncio
import logging
import platform
import sys
from pathlib import Path

import click

from plimsoll.agent.agent import Agent, Identity
from plimsoll.agent.connection import Connection
from plimsoll.agent.volume import DeviceVolume, FileVolume, Volume
from plimsoll.agent.worker import Worker


@click.command(hidden=True)
@click.option("--conductor", required=True, help="URL of the conductor.")
@click.option("--secret", type=click.Path(path_type=Path), required=True, help="Directory with the session secret.")
@click.option("--client", type=int, required=True, help="Number of this client, from 0.")
@click.option("--attempt", type=int, default=0, help="How many processes this client had before.")
@click.option("--node", default=platform.node, help="Name of this node.")
@click.option("--work", type=click.Path(path_type=Path), required=True, help="Directory for the tools' output.")
@click.option("--file", type=click.Path(path_type=Path), help="Data file, in a file system.")
@click.option("--capacity", type=int, help="Bytes of the file system that this client may take as its volume.")
@click.option("--device", type=click.Path(path_type=Path), help="Block device. Its content is destroyed.")
@click.option("--offset", type=int, default=0, help="First byte of the device that belongs to this client.")
@click.option("--size", type=int, help="Bytes of the device that belong to this client.")
@click.option("--fio", "fio_path", default="fio", help="The fio to run.")
@click.option("--silence", type=float, default=60.0, help="Seconds without a conductor after which to exit.")
def command(
    *,
    conductor: str,
    secret: Path,
    client: int,
    attempt: int,
    node: str,
    work: Path,
    file: Path | None,
    capacity: int | None,
    device: Path | None,
    offset: int,
    size: int | None,
    fio_path: str,
    silence: float,
) -> None:
    """Generate load as one client of a run."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    volume: Volume | None = None
    if file is not None:
        volume = FileVolume(path=file, capacity=capacity)
    elif device is not None:
        volume = DeviceVolume(path=device, offset=offset, size=size)
    worker = Worker(client=client, node=node, volume=volume, directory=work, binaries={"fio": fio_path})
    identity = Identity(client=client, attempt=attempt, node=node)
    sys.exit(asyncio.run(_serve(conductor, secret, identity, worker, silence)))


async def _serve(url: str, secret: Path, identity: Identity, worker: Worker, silence: float) -> int:
    connection = Connection(url, secret)
    try:
        return await Agent(identity=identity, connection=connection, work=worker, silence_seconds=silence).run()
    finally:
        await connection.close()
