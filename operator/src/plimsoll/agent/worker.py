"""An agent's work: prepares its volume, stages a trial, and runs one command of a known tool."""

import asyncio
import hashlib
import os
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pydantic import JsonValue

from plimsoll.agent import process
from plimsoll.agent.caches import CacheDropper
from plimsoll.agent.observation import DataSetIdentity, HostObservation, host_facts, identify, volume_facts
from plimsoll.agent.preparation import PreparedDataSet, Volume, prepare
from plimsoll.agent.readings import Host
from plimsoll.agent.volume import LocalVolume, SharedVolume
from plimsoll.api.json_reader import OutputError
from plimsoll.api.status import LiveRate, TrialKey
from plimsoll.measure.sample import MAX_TEXT, ClientDocument, Clock
from plimsoll.protocol.helpers import CacheDrop
from plimsoll.protocol.messages import ArmOrder, DropCachesOrder, PrepareOrder, ServeOrder, StageOrder, ToolOrder
from plimsoll.tools.base import AnyTool, Command, Output, StepContext, StepKind, Timing, ToolParameters
from plimsoll.tools.registry import TOOLS
from plimsoll.tools.target import (
    ApiTarget,
    ImageTarget,
    OsdsTarget,
    PeerTarget,
    PoolTarget,
    Target,
    TargetKind,
    VolumeTarget,
)

CLEAN_UP_SECONDS = 60.0  # a clean-up may take this much longer than its trial. The conductor waits slightly longer


@dataclass(frozen=True, slots=True, kw_only=True)
class Armed:
    """A trial that waits for `Go` and T0, its command, and the observation of its host."""

    order: ArmOrder
    parameters: ToolParameters
    context: StepContext
    argv: tuple[str, ...]
    observation: HostObservation
    launch: process.Launch
    prefilled: bool = True  # whether the data that the tool reads, if any, was written before


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """The archive of raw output: `POINT/pass-P-attempt-A/client-N[-round-R]`, and the client's document next to it."""

    directory: Path

    def keep(self, trial: TrialKey, document: ClientDocument, source: Path, *, round_number: int = 0) -> None:
        """Store one client's raw output and document of a round; OSError if they exist or cannot be written."""
        attempt = self.directory / trial.point / f"pass-{trial.pass_number}-attempt-{trial.attempt}"
        archived = attempt / (f"client-{document.client}" + (f"-round-{round_number}" if round_number else ""))
        archived.mkdir(parents=True)
        for path in _files(source):
            shutil.copyfile(path, archived / path.name)
        text = document.model_dump_json(by_alias=True, exclude_none=True, indent=1)
        (attempt / f"{archived.name}.json").write_text(text)


class Worker:
    """Runs tools against one client's target: a volume, a part of a RADOS pool, all OSDs, or none."""

    def __init__(
        self,
        *,
        client: int,
        node: str,
        volume: Volume | None,
        directory: Path,
        binaries: Mapping[str, str],
        host: Host,
        tools: Sequence[str] = ("fio",),
        targets: Sequence[PoolTarget | OsdsTarget] = (),
    ) -> None:
        """Set up a worker for the tools with the keys `tools`; `binaries` maps names of programs to paths."""
        self.archive: Archive | None = None  # where raw output is kept; None if it is not
        self.caches = CacheDropper(node, allowed=False)  # of this node; by default they are not dropped
        self._client, self._node, self._volume, self._host, self._tools = client, node, volume, host, tools
        self._programs = process.Programs(directory, binaries)
        self._versions: dict[str, str] = {}
        self._targets = {type(target): target for target in targets}
        self._data_set: PreparedDataSet | None = None
        self._data_set_bytes: int | None = None
        self._staged: TrialKey | None = None
        self._staged_bytes: int | None = None  # what the tool wrote to be read, where it says so
        self._measuring = False

    async def facts(self) -> dict[str, JsonValue]:
        """Return facts about this client's host for the result; PreparationError if a tool's program is missing."""
        self._versions = {key: await self._programs.version(_tool(key)) for key in self._tools}
        tools: dict[str, JsonValue] = {**self._versions}
        look_at_volume = partial(volume_facts, self._volume, self._host)
        volume = await self._programs.in_thread("the check of the volume", look_at_volume)
        return {**host_facts(self._host), **volume, "tools": tools}

    async def prepare(self, order: PrepareOrder, progress: process.Progress) -> int:
        """Prepare the data set as ordered and return its size; see `plimsoll.agent.preparation.prepare`."""
        if self._volume is None:
            raise process.PreparationError("this agent's assignment has no volume")
        self._data_set = None
        self._data_set = await prepare(self._volume, order, self._programs, progress, size=self._data_set_bytes)
        self._data_set_bytes = self._data_set.target.size
        return self._data_set_bytes

    async def stage(self, order: StageOrder, progress: process.Progress) -> None:
        """Run the tool's step before arming, if any; PreparationError, with its output, if it fails or stalls."""
        self._staged = self._staged_bytes = None
        tool = _tool(order.tool)
        target = self._data_set.target if self._data_set else None
        if tool.own_files and isinstance(self._volume, LocalVolume) and isinstance(target, VolumeTarget):
            # Its files have the space of the data set. A quota of CephFS counts the size even of a sparse file.
            await self._programs.in_thread("the removal of the data file", partial(self._volume.clear, target))
        if StepKind.PREPARE in tool.steps(_parameters(tool, order)):
            _, parameters, context, command = self._build(order, StepKind.PREPARE)
            directory, name = Path(context.work_directory), context.target.name
            await self._programs.write_inputs(command, directory)
            if command.argv:
                step = f"{tool.key}'s preparation"
                watches = [process.report_elapsed(f"{tool.key} prepares the trial", progress)]
                if not isinstance(context.target, VolumeTarget):
                    watches.append(process.StallWatch().look)
                try:
                    # Without a time limit while it makes progress.
                    output = await self._programs.run(command, directory, watches=watches)
                except process.StalledError as error:
                    remedy = "check `ceph status`, the pool's placement groups, and full OSDs"
                    raise process.PreparationError(f"{step} of {name} {error}; {remedy}") from error
                process.check_step(output, step, of=name)
                self._staged_bytes = tool.written_by_prepare(parameters, output)
        self._staged = order.trial

    async def serve(self, order: ServeOrder, ready: Callable[[], Awaitable[None]]) -> None:
        """Run the tool's server, if it has one, until it ends or this is cancelled; see `Programs.serve`."""
        if not _tool(order.tool).has_server:
            await ready()
            await asyncio.Event().wait()
        tool, parameters, context, command = self._build(order, StepKind.SERVE)
        await self._programs.serve(
            command,
            Path(context.work_directory),
            name=tool.key,
            is_serving=partial(tool.is_serving, parameters),
            ready=ready,
            ends_with_client=tool.server_ends_with_client,
        )

    async def drop_caches(self, order: DropCachesOrder) -> CacheDrop:
        """Drop the caches of this node, and read the tools' programs again, which would start late otherwise."""
        dropped = await self.caches.drop(order, self._programs)
        await self.facts()
        return dropped

    async def arm(self, order: ArmOrder) -> Armed:
        """Build the command; PreparationError if the order cannot be fulfilled, or the trial was not staged here."""
        tool, parameters, context, command = self._build(order, StepKind.MEASURE)
        needs_staging = StepKind.PREPARE in tool.steps(parameters)
        if needs_staging and self._staged != order.trial:
            message = f"this process has not staged {order.trial}, which {tool.key} needs; order it to stage it first"
            raise process.PreparationError(message)
        data_set = self._data_set if tool.target.is_data_set else None
        look_at_data_set = partial(_identity, tool, context, data_set)
        identity = await self._programs.in_thread("the check of the data set", look_at_data_set)
        observation = HostObservation(self._host, identity, work_directory=context.work_directory)
        run = partial(self._programs.run, command, Path(context.work_directory), watches=[observation.look])
        return Armed(
            order=order,
            parameters=parameters,
            context=context,
            argv=self._programs.resolved(command.argv),
            observation=observation,
            launch=process.Launch(run),
            prefilled=(
                data_set.prefilled if data_set and not tool.own_files else needs_staging or not parameters.reads_data
            ),
        )

    async def launch(self, armed: Armed) -> None:
        """Start the command if it can wait, and return once it does; disarm or measure it afterwards."""
        await armed.launch.start()

    async def disarm(self, armed: Armed) -> None:
        """End the command of a trial, unless it has been measured."""
        await armed.launch.cancel()

    async def measure(self, armed: Armed, clock: Clock) -> ClientDocument:
        """Let the command begin, and reduce its output to a document, which also describes a failure; clean up."""
        self._measuring = True
        if armed.parameters.removes_data and self._data_set is not None:
            # Even if it fails: trimmed blocks are unwritten again.
            self._data_set = replace(self._data_set, prefilled=False)
        try:
            output = await armed.launch.output()
        finally:
            self._measuring = False
        armed.observation.end()
        document = await self._document(armed, clock, output)
        document = _with_warning(document, await self._clean_up(armed))
        if self.archive is None:
            return document
        order, source = armed.order, Path(armed.context.work_directory)
        keep = partial(self.archive.keep, order.trial, document, source, round_number=order.round_number)
        try:
            await self._programs.in_thread("the archiving of the raw output", keep, limit_seconds=None)
        except OSError as error:
            return _with_warning(document, f"the raw output was not kept: {error}")
        return document

    async def _document(self, armed: Armed, clock: Clock, output: Output) -> ClientDocument:
        measurement, parse_error, key, target = None, None, armed.order.tool, armed.context.target
        try:
            version = self._versions.get(key, "")
            measurement = _tool(key).read(armed.parameters, armed.context, output, version=version)
            if self._staged_bytes is not None:
                measurement = measurement.model_copy(update={"data_bytes": self._staged_bytes})
        except OutputError as error:
            parse_error = str(error)[:MAX_TEXT]
        return ClientDocument(
            client=self._client,
            node=self._node,
            exit_code=output.exit_code,
            launched_at=output.launched_at,
            finished_at=max(command.finished_at for command in output.all),
            argv=armed.argv,
            measurement=measurement,
            parse_error=parse_error,
            stderr_tail=(output.stderr or output.stdout)[-process.STDERR_TAIL :],
            raw_sha256=await asyncio.to_thread(raw_digest, Path(armed.context.work_directory)),
            clock=clock,
            data_set_bytes=target.size if isinstance(target, VolumeTarget | ImageTarget) else 0,
            prefilled=armed.prefilled,
            host=armed.observation.host_use(measurement),
            foreign_target=armed.observation.foreign_target,
        )

    @property
    def unended(self) -> str:
        return self._programs.unended

    def live(self, armed: Armed) -> tuple[LiveRate, ...]:
        """Return the tool's current rates; empty if it prints none, or does not run."""
        if not self._measuring:
            return ()
        recent = process.recent_output(Path(armed.context.work_directory))
        return _tool(armed.order.tool).live(armed.parameters, recent)

    async def _clean_up(self, armed: Armed) -> str:
        """Run the tool's clean-up, if any; return a warning, empty on success."""
        tool, order = _tool(armed.order.tool), armed.order
        if StepKind.CLEAN_UP not in tool.steps(armed.parameters):
            return ""
        self._staged = None
        try:
            context = self._context(tool, order, StepKind.CLEAN_UP)
            output = await self._programs.run(
                tool.command(armed.parameters, context),
                Path(context.work_directory),
                limit_seconds=CLEAN_UP_SECONDS + order.ramp_seconds + order.runtime_seconds,
            )
        except (process.OverdueError, ValueError) as error:
            return f"{tool.key}'s clean-up of {armed.context.target.name}: {error}"
        if output.exit_code == 0:
            return ""
        words = process.last_words(output)
        return f"{tool.key}'s clean-up of {context.target.name} ended with exit code {output.exit_code}: {words}"

    def _build(self, order: ToolOrder, step: StepKind) -> tuple[AnyTool, ToolParameters, StepContext, Command]:
        """Return a step's tool, parameters, context and command; PreparationError if the order cannot be fulfilled."""
        tool = _tool(order.tool)
        parameters, context = _parameters(tool, order), self._context(tool, order, step)
        try:
            return tool, parameters, context, tool.command(parameters, context)
        except ValueError as error:
            raise process.PreparationError(str(error)) from error

    def _context(self, tool: AnyTool, order: ToolOrder, step: StepKind) -> StepContext:
        return StepContext(
            step=step,
            target=self._target(tool, order),
            timing=Timing(ramp_seconds=order.ramp_seconds, runtime_seconds=order.runtime_seconds),
            seed=order.seed,
            work_directory=str(self._programs.fresh_directory(step)),
            client=self._client,
            as_root=os.geteuid() == 0,
        )

    def _target(self, tool: AnyTool, order: ToolOrder) -> Target:
        """Return a tool's target; PreparationError if this agent has none, or it is not prepared."""
        kind: type[PoolTarget | OsdsTarget]
        match tool.target:
            case TargetKind.VOLUME | TargetKind.IMAGE:
                return self._prepared_target(tool, order.data_of)
            case TargetKind.POOL:
                kind, what = PoolTarget, "a RADOS pool, but this agent's assignment has no rados"
            case TargetKind.OSDS:
                kind, what = OsdsTarget, "a key for OSDs, but this agent's assignment has no osdKeyring"
            case TargetKind.PEER:
                return PeerTarget(addresses=order.peers)
            case TargetKind.API:
                return ApiTarget()
        if kind not in self._targets:
            raise process.PreparationError(f"{tool.key} needs {what}")
        return self._targets[kind]

    def _prepared_target(self, tool: AnyTool, client: int | None) -> VolumeTarget | ImageTarget:
        """Return the client's own data set, or another client's on a shared volume."""
        if self._data_set is None:
            raise process.PreparationError(f"the volume is not prepared, but {tool.key} uses it; prepare it first")
        target = self._data_set.target
        if tool.target is TargetKind.IMAGE and not isinstance(target, ImageTarget):
            raise process.PreparationError(f"{tool.key} needs an RBD image, but the assignment has {target.name}")
        if client is None:
            return target
        if not isinstance(self._volume, SharedVolume):
            message = f"{tool.key} is to read client {client}'s data, but {target.name} is not shared"
            raise process.PreparationError(message)
        return self._volume.place_of(client, target.size)


def _identity(tool: AnyTool, context: StepContext, data_set: PreparedDataSet | None) -> DataSetIdentity | None:
    """Return how the kernel identifies the data set of a trial; PreparationError if another client's does not exist."""
    target, identity = context.target, data_set.identity if data_set else None
    if data_set is not None and data_set.target != target and isinstance(target, VolumeTarget):
        try:
            identity = identify(target)
        except OSError as error:
            message = f"{target.path}: {error.strerror}; check that all clients mount the same volume"
            raise process.PreparationError(message) from error
    if identity is not None and tool.own_files:
        identity = replace(identity, path=os.path.realpath(context.own_directory))
    return identity


def _tool(key: str) -> AnyTool:
    tool = TOOLS.get(key)
    if tool is None:
        raise process.PreparationError(f"tool {key} is unknown; the known tools are {', '.join(sorted(TOOLS))}")
    return tool


def _parameters(tool: AnyTool, order: ToolOrder) -> ToolParameters:
    try:
        parameters: ToolParameters = tool.parameters.model_validate(order.parameters)
    except ValueError as error:
        raise process.PreparationError(str(error)) from error
    return parameters


def _with_warning(document: ClientDocument, warning: str) -> ClientDocument:
    if not warning:
        return document
    measurement = document.measurement
    if measurement is None:
        return document.model_copy(update={"stderr_tail": f"{document.stderr_tail}\n{warning}"[-process.STDERR_TAIL :]})
    warnings = (*measurement.warnings, warning)
    return document.model_copy(update={"measurement": measurement.model_copy(update={"warnings": warnings})})


def raw_digest(directory: Path) -> str:
    """Return the SHA-256 of the output of `LC_ALL=C sha256sum *` in a directory."""
    whole = hashlib.sha256()
    for path in sorted(_files(directory)):
        with path.open("rb") as file:
            whole.update(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.name}\n".encode())
    return whole.hexdigest()


def _files(directory: Path) -> list[Path]:
    return [path for path in directory.iterdir() if path.is_file()]
