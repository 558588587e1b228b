"""`plimsoll agent`: one client's agent. Started by `plimsoll run`, and in a cluster by the operator."""

import asyncio
import logging
import platform
import sys
from pathlib import Path

import click

from plimsoll.agent.agent import Agent, Identity
from plimsoll.agent.connection import Connection
from plimsoll.agent.host.mounts import OWN_TABLE
from plimsoll.agent.host.readings import Host
from plimsoll.agent.volume import DeviceVolume, FileVolume, Volume
from plimsoll.agent.worker import Worker
from plimsoll.cli.termination import LastError, write_last_words

DATA_FILE = "plimsoll.data"
"""The one file in a volume that is a file system."""


@click.command(hidden=True, context_settings={"auto_envvar_prefix": "PLIMSOLL"})
@click.option("--conductor", required=True, help="URL of the conductor.")
@click.option("--secret", type=click.Path(path_type=Path), required=True, help="Directory with the session secret.")
@click.option("--client", type=int, required=True, help="Number of this client, from 0.")
@click.option("--attempt", type=int, default=0, help="How many processes this client had before.")
@click.option("--node", default=platform.node, help="Name of this node.")
@click.option("--work", type=click.Path(path_type=Path), required=True, help="Directory for the tools' output.")
@click.option("--directory", type=click.Path(path_type=Path), help="Mounted volume that is all this client's own.")
@click.option("--mounted", is_flag=True, help="Refuse a --directory that is not a mount point.")
@click.option("--file", type=click.Path(path_type=Path), help="Data file, in a file system that others use too.")
@click.option("--capacity", type=int, help="Bytes of the file system that this client may take as its volume.")
@click.option("--device", type=click.Path(path_type=Path), help="Block device. Its content is destroyed.")
@click.option("--offset", type=int, default=0, help="First byte of the device that belongs to this client.")
@click.option("--size", type=int, help="Bytes of the device that belong to this client.")
@click.option("--fio", "fio_path", default="fio", envvar="PLIMSOLL_FIO", help="The fio to run.")
@click.option("--silence", type=float, default=60.0, help="Seconds without a conductor after which to exit.")
@click.option("--termination-log", type=click.Path(path_type=Path), help="File for the reason of a failure.")
def command(
    *,
    conductor: str,
    secret: Path,
    client: int,
    attempt: int,
    node: str,
    work: Path,
    directory: Path | None,
    mounted: bool,
    file: Path | None,
    capacity: int | None,
    device: Path | None,
    offset: int,
    size: int | None,
    fio_path: str,
    silence: float,
    termination_log: Path | None,
) -> None:
    """Generate load as one client of a run; without --directory, --file and --device as one that has no volume.

    Every option may also stand in the environment, as PLIMSOLL_NODE, PLIMSOLL_CLIENT and so on.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    last_error = LastError()
    logging.getLogger().addHandler(last_error)
    volume = _volume(
        directory=directory, mounted=mounted, file=file, capacity=capacity, device=device, offset=offset, size=size
    )
    worker = Worker(client=client, node=node, volume=volume, directory=work, binaries={"fio": fio_path}, host=Host())
    identity = Identity(client=client, attempt=attempt, node=node)
    try:
        code = asyncio.run(_serve(conductor, secret, identity, worker, silence))
    except Exception as error:
        write_last_words(termination_log, f"{type(error).__name__}: {error}")
        raise
    if code != 0:
        write_last_words(termination_log, last_error.text)
    sys.exit(code)


def _volume(
    *,
    directory: Path | None,
    mounted: bool,
    file: Path | None,
    capacity: int | None,
    device: Path | None,
    offset: int,
    size: int | None,
) -> Volume | None:
    if sum(place is not None for place in (directory, file, device)) > 1:
        message = "a client has one volume: --directory, --file or --device"
        raise click.UsageError(message)
    if mounted and directory is None:
        message = "--mounted is about --directory, which is not given"
        raise click.UsageError(message)
    if directory is not None:
        table = OWN_TABLE if mounted else None
        return FileVolume(path=directory / DATA_FILE, capacity=capacity, mount_table=table)
    if file is not None:
        return FileVolume(path=file, capacity=capacity)
    return None if device is None else DeviceVolume(path=device, offset=offset, size=size)


async def _serve(url: str, secret: Path, identity: Identity, worker: Worker, silence: float) -> int:
    connection = Connection(url, secret)
    try:
        return await Agent(identity=identity, connection=connection, work=worker, silence_seconds=silence).run()
    finally:
        await connection.close()
