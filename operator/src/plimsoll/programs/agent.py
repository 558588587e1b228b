"""`plimsoll agent`: one client's agent. Started by `plimsoll run`, and in a cluster by the operator."""

import logging
import platform
import sys
from pathlib import Path
from typing import TextIO

import click
from pydantic import ValidationError

from plimsoll.agent.agent import Agent, AgentIdentity, Connection
from plimsoll.agent.caches import CacheDropper
from plimsoll.agent.preparation import Volume
from plimsoll.agent.readings import Host
from plimsoll.agent.volume import OWN_TABLE, DeviceVolume, FileVolume, ImageVolume, SharedFileVolume, SharedVolume
from plimsoll.agent.worker import Archive, Worker
from plimsoll.api.errors import problems_of
from plimsoll.cli import EXIT_STOPPED
from plimsoll.programs.termination import LastError, log_to_stderr, run_until_stopped, write_termination_message
from plimsoll.protocol.assignment import (
    AssignedVolume,
    Assignment,
    BlockDevice,
    DataFile,
    RbdImage,
    SharedDirectory,
)
from plimsoll.tools.registry import DATA_SET_TOOL, TOOLS
from plimsoll.tools.target import OsdsTarget, PoolTarget


@click.command(hidden=True, context_settings={"auto_envvar_prefix": "PLIMSOLL"})
@click.option("--assignment", type=click.File(), required=True, help="Assignment document; - for stdin.")
@click.option(
    "--secret",
    type=click.Path(path_type=Path),
    required=True,
    help="Directory with the conductor's certificate and this client's token.",
)
@click.option("--node", default=platform.node, help="Name of this node.")
@click.option("--fio", default=TOOLS[DATA_SET_TOOL].program, help="The fio to run.")
@click.option("--caches-helper", help="URL of the helper that drops this node's caches; by default the agent does it.")
def command(*, assignment: TextIO, secret: Path, node: str, fio: str, caches_helper: str | None) -> None:
    """Generate load as one client of a run, as described in an assignment document.

    Every option can be set in the environment, as PLIMSOLL_ASSIGNMENT, PLIMSOLL_NODE and so on.
    """
    log_to_stderr()
    last_error = LastError()
    logging.getLogger().addHandler(last_error)
    try:
        assigned = Assignment.model_validate_json(assignment.read())
    except ValidationError as error:
        raise click.UsageError(f"the assignment is invalid: {'; '.join(map(str, problems_of(error)))}") from error
    if unknown := sorted(set(assigned.tools) - set(TOOLS)):
        raise click.UsageError(f"the assignment contains unknown tools: {', '.join(unknown)}")
    log = None if assigned.termination_log is None else Path(assigned.termination_log)

    async def serve(worker: Worker) -> int:
        connection = Connection(assigned.conductor, secret)
        identity = AgentIdentity(client=assigned.client, attempt=assigned.attempt, node=node)
        silence = assigned.silence_seconds
        try:
            return await Agent(identity=identity, connection=connection, work=worker, silence_seconds=silence).run()
        finally:
            await connection.close()

    try:
        worker = _worker(assigned, node, fio)
        worker.caches = CacheDropper(node, allowed=bool(assigned.caches), helper=caches_helper)
        code = run_until_stopped(serve(worker))
    except Exception as error:
        write_termination_message(log, f"{type(error).__name__}: {error}")
        raise
    if code is None:
        sys.exit(EXIT_STOPPED)
    if code != 0:
        write_termination_message(log, last_error.text)
    sys.exit(code)


def _worker(assigned: Assignment, node: str, fio: str) -> Worker:
    targets: list[PoolTarget | OsdsTarget] = []
    if rados := assigned.rados:
        targets.append(PoolTarget(pool=rados.pool, namespace=rados.namespace, user=rados.user))
    if assigned.osd_keyring is not None:
        targets.append(OsdsTarget(keyring=assigned.osd_keyring))
    worker = Worker(
        client=assigned.client,
        node=node,
        volume=None if assigned.volume is None else _volume(assigned.volume, assigned.client),
        directory=Path(assigned.work),
        binaries={TOOLS[DATA_SET_TOOL].program: fio},
        host=Host(),
        tools=assigned.tools,
        targets=tuple(targets),
    )
    worker.archive = None if assigned.raw_output is None else Archive(directory=Path(assigned.raw_output))
    return worker


def _volume(assigned: AssignedVolume, client: int) -> Volume:
    match assigned:
        case DataFile():
            table = OWN_TABLE if assigned.mounted else None
            return FileVolume(path=Path(assigned.path), capacity=assigned.capacity, mount_table=table)
        case SharedDirectory():
            kind = SharedFileVolume if assigned.one_file else SharedVolume
            return kind(
                directory=Path(assigned.path),
                client=client,
                clients=assigned.clients,
                part=assigned.part,
                mount_table=OWN_TABLE if assigned.mounted else None,
            )
        case BlockDevice():
            return DeviceVolume(path=Path(assigned.path), offset=assigned.offset, size=assigned.size)
        case RbdImage(pool=pool, image=image, user=user, size=size, cache=cache):
            return ImageVolume(pool=pool, image=image, user=user, size=size, cache=cache)
