"""`plimsoll agent`: one client's agent. Started by `plimsoll run`, and in a cluster by the operator."""

import asyncio
import logging
import platform
import sys
from pathlib import Path
from typing import TextIO

import click
from pydantic import ValidationError

from plimsoll.agent.agent import Agent, AgentIdentity
from plimsoll.agent.caches import CacheDropper
from plimsoll.agent.connection import Connection
from plimsoll.agent.host.readings import Host
from plimsoll.agent.preparation import Volume
from plimsoll.agent.process import Archive
from plimsoll.agent.volume import OWN_TABLE, DeviceVolume, FileVolume, ImageVolume, SharedVolume
from plimsoll.agent.worker import Worker
from plimsoll.api.errors import problems_of
from plimsoll.programs.termination import LastError, write_termination_message
from plimsoll.protocol.assignment import (
    AssignedVolume,
    Assignment,
    BlockDevice,
    DataFile,
    DirectoryVolume,
    RbdImage,
    SharedDirectory,
)
from plimsoll.tools.registry import TOOLS
from plimsoll.tools.target import OsdsTarget, PoolTarget

DATA_FILE = "plimsoll.data"
"""The one file in a volume that is a file system."""


@click.command(hidden=True, context_settings={"auto_envvar_prefix": "PLIMSOLL"})
@click.option("--assignment", type=click.File(), required=True, help="Assignment document; - for stdin.")
@click.option("--node", default=platform.node, help="Name of this node.")
def command(*, assignment: TextIO, node: str) -> None:
    """Generate load as one client of a run, as described in an assignment document.

    Both options can be set in the environment, as PLIMSOLL_ASSIGNMENT and PLIMSOLL_NODE.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    last_error = LastError()
    logging.getLogger().addHandler(last_error)
    assigned = _read(assignment.read())
    log = None if assigned.termination_log is None else Path(assigned.termination_log)
    try:
        code = asyncio.run(_serve(assigned, node, _worker(assigned, node)))
    except Exception as error:
        write_termination_message(log, f"{type(error).__name__}: {error}")
        raise
    if code != 0:
        write_termination_message(log, last_error.text)
    sys.exit(code)


def _read(text: str) -> Assignment:
    try:
        assigned = Assignment.model_validate_json(text)
    except ValidationError as error:
        message = f"the assignment is invalid: {'; '.join(map(str, problems_of(error)))}"
        raise click.UsageError(message) from error
    unknown = sorted(set(assigned.tools) - set(TOOLS))
    if unknown:
        message = f"the assignment contains unknown tools: {', '.join(unknown)}"
        raise click.UsageError(message)
    return assigned


def _worker(assigned: Assignment, node: str) -> Worker:
    worker = Worker(
        client=assigned.client,
        node=node,
        volume=None if assigned.volume is None else _volume(assigned.volume, assigned.client),
        directory=Path(assigned.work),
        binaries=assigned.programs,
        host=Host(),
        tools=assigned.tools,
        targets=_targets(assigned),
    )
    worker.caches = CacheDropper(assigned.caches, node)
    worker.archive = None if assigned.raw_output is None else Archive(directory=Path(assigned.raw_output))
    return worker


def _volume(assigned: AssignedVolume, client: int) -> Volume:
    match assigned:
        case DirectoryVolume(path=path, capacity=capacity, mounted=mounted):
            table = OWN_TABLE if mounted else None
            return FileVolume(path=Path(path) / DATA_FILE, capacity=capacity, mount_table=table)
        case DataFile(path=path, capacity=capacity):
            return FileVolume(path=Path(path), capacity=capacity)
        case SharedDirectory(path=path, part=part, clients=clients, one_file=one_file, mounted=mounted):
            return SharedVolume(
                directory=Path(path),
                client=client,
                clients=clients,
                part=part,
                one_file=one_file,
                mount_table=OWN_TABLE if mounted else None,
            )
        case BlockDevice(path=path, offset=offset, size=size):
            return DeviceVolume(path=Path(path), offset=offset, size=size)
        case RbdImage(pool=pool, image=image, user=user, size=size, cache=cache):
            return ImageVolume(pool=pool, image=image, user=user, size=size, cache=cache)


def _targets(assigned: Assignment) -> tuple[PoolTarget | OsdsTarget, ...]:
    found: list[PoolTarget | OsdsTarget] = []
    if assigned.rados is not None:
        pool, namespace = assigned.rados.pool, assigned.rados.namespace
        found.append(PoolTarget(pool=pool, namespace=namespace, run_name=namespace, user=assigned.rados.user))
    if assigned.osd_keyring is not None:
        found.append(OsdsTarget(keyring=assigned.osd_keyring))
    return tuple(found)


async def _serve(assigned: Assignment, node: str, worker: Worker) -> int:
    identity = AgentIdentity(client=assigned.client, attempt=assigned.attempt, node=node)
    connection = Connection(assigned.conductor, Path(assigned.secret))
    try:
        return await Agent(
            identity=identity, connection=connection, work=worker, silence_seconds=assigned.silence_seconds
        ).run()
    finally:
        await connection.close()
