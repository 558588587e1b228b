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
from plimsoll.agent.image import ImageVolume
from plimsoll.agent.preparation import Volume
from plimsoll.agent.raw_output import Archive
from plimsoll.agent.volume import DeviceVolume, FileVolume
from plimsoll.agent.worker import Worker
from plimsoll.cli.termination import LastError, write_last_words
from plimsoll.tools.base import OsdsTarget, PoolTarget
from plimsoll.tools.registry import TOOLS

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
@click.option("--size", type=int, help="Bytes of the device that belong to this client, or of its image.")
@click.option("--image", help="RBD image, as POOL/IMAGE, reached through librbd. Its content is destroyed.")
@click.option("--rbd-cache", is_flag=True, help="Use librbd's writeback cache.")
@click.option("--rados-pool", help="Pool for tools that write RADOS objects.")
@click.option("--rados-namespace", help="RADOS namespace for their objects, and the run name that these carry.")
@click.option("--ceph-user", help="CephX user, without `client.`; its key is where CEPH_CONF says.")
@click.option("--osd-keyring", help="File with an administrator's key, for tools that measure OSDs.")
@click.option(
    "--tool",
    "tools",
    multiple=True,
    default=("fio",),
    type=click.Choice(sorted(TOOLS)),
    help="A tool that will be used; its program must be there. May be repeated.",
)
@click.option("--fio", "fio_path", default="fio", envvar="PLIMSOLL_FIO", help="The fio to run.")
@click.option("--raw-output", type=click.Path(path_type=Path), help="Directory to keep all that the tools write in.")
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
    image: str | None,
    rbd_cache: bool,
    rados_pool: str | None,
    rados_namespace: str | None,
    ceph_user: str | None,
    osd_keyring: str | None,
    tools: tuple[str, ...],
    fio_path: str,
    raw_output: Path | None,
    silence: float,
    termination_log: Path | None,
) -> None:
    """Generate load as one client of a run; without --directory, --file, --device and --image it has no volume.

    Every option may also stand in the environment, as PLIMSOLL_NODE, PLIMSOLL_CLIENT and so on.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    last_error = LastError()
    logging.getLogger().addHandler(last_error)
    volume = _volume(
        _image(image, user=ceph_user, size=size, cache=rbd_cache),
        directory=directory,
        mounted=mounted,
        file=file,
        capacity=capacity,
        device=device,
        offset=offset,
        size=size,
    )
    worker = Worker(
        client=client,
        node=node,
        volume=volume,
        directory=work,
        binaries={"fio": fio_path},
        host=Host(),
        tools=tools,
        targets=(*_pool(rados_pool, rados_namespace, user=ceph_user), *_osds(osd_keyring)),
    )
    worker.archive = None if raw_output is None else Archive(directory=raw_output)
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
    image: ImageVolume | None,
    *,
    directory: Path | None,
    mounted: bool,
    file: Path | None,
    capacity: int | None,
    device: Path | None,
    offset: int,
    size: int | None,
) -> Volume | None:
    if sum(place is not None for place in (directory, file, device, image)) > 1:
        message = "a client has one volume: --directory, --file, --device or --image"
        raise click.UsageError(message)
    if mounted and directory is None:
        message = "--mounted is about --directory, which is not given"
        raise click.UsageError(message)
    if directory is not None:
        table = OWN_TABLE if mounted else None
        return FileVolume(path=directory / DATA_FILE, capacity=capacity, mount_table=table)
    if file is not None:
        return FileVolume(path=file, capacity=capacity)
    return image if device is None else DeviceVolume(path=device, offset=offset, size=size)


def _image(name: str | None, *, user: str | None, size: int | None, cache: bool) -> ImageVolume | None:
    if name is None:
        if cache:
            message = "--rbd-cache is about --image, which is not given"
            raise click.UsageError(message)
        return None
    pool, _, image = name.partition("/")
    if not pool or not image:
        message = f"--image is POOL/IMAGE, not {name}"
        raise click.UsageError(message)
    if size is None:
        message = "--image needs --size"
        raise click.UsageError(message)
    if user is None:
        message = "--image needs --ceph-user"
        raise click.UsageError(message)
    return ImageVolume(pool=pool, image=image, user=user, size=size, cache=cache)


def _pool(pool: str | None, namespace: str | None, *, user: str | None) -> tuple[PoolTarget, ...]:
    if pool is None:
        if namespace is not None:
            message = "--rados-namespace is about --rados-pool, which is not given"
            raise click.UsageError(message)
        return ()
    if namespace is None:
        message = "--rados-pool needs --rados-namespace"
        raise click.UsageError(message)
    if user is None:
        message = "--rados-pool needs --ceph-user"
        raise click.UsageError(message)
    return (PoolTarget(pool=pool, namespace=namespace, run_name=namespace, user=user),)


def _osds(keyring: str | None) -> tuple[OsdsTarget, ...]:
    return () if keyring is None else (OsdsTarget(keyring=keyring),)


async def _serve(url: str, secret: Path, identity: Identity, worker: Worker, silence: float) -> int:
    connection = Connection(url, secret)
    try:
        return await Agent(identity=identity, connection=connection, work=worker, silence_seconds=silence).run()
    finally:
        await connection.close()
