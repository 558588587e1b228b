"""What an agent does when told to: prepare its volume, stage a trial, and run one command of a known tool."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import JsonValue

from plimsoll.agent import process
from plimsoll.agent.host.facts import host_facts, volume_facts
from plimsoll.agent.host.observation import Observation
from plimsoll.agent.host.readings import Host
from plimsoll.agent.preparation import DataSet, Volume, prepare
from plimsoll.agent.programs import (
    STDERR_TAIL,
    PreparationError,
    Programs,
    Progress,
    check_step,
    in_time,
    last_words,
    output_of,
)
from plimsoll.agent.raw_output import Archive, raw_digest
from plimsoll.agent.stall import StalledError, StallWatch
from plimsoll.api.state import LiveRate, TrialKey
from plimsoll.measure.sample import MAX_TEXT, ClientDocument, Clock, Measurement
from plimsoll.protocol.messages import Arm, Prepare, Stage
from plimsoll.tools.base import (
    Command,
    ImageTarget,
    OsdsTarget,
    OutputError,
    PoolTarget,
    StepContext,
    StepKind,
    Target,
    TargetKind,
    Timing,
    Tool,
    ToolParameters,
    VolumeKind,
    VolumeTarget,
)
from plimsoll.tools.registry import TOOLS

__all__ = ["Armed", "PreparationError", "Progress", "Worker"]

CLEAN_UP_SECONDS = 60.0
"""A clean-up may take so much longer than the trial did. The conductor waits a little longer still."""

_NO_VOLUME = VolumeTarget(kind=VolumeKind.FILE, path="", size=0)
"""What a tool is given that uses none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Armed:
    """A trial that only waits for T0, and whose host is observed from now on.

    Attributes:
        prefilled: whether what the tool reads, if it reads at all, was written before.

    """

    order: Arm
    parameters: ToolParameters
    context: StepContext
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    observation: Observation
    prefilled: bool = True


class Worker:
    """Runs tools against what one client was given: a volume, a part of a RADOS pool, all OSDs, or nothing.

    Attributes:
        archive: where everything that the tools write is kept; nothing is without.

    """

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
        """Work in `directory`.

        Args:
            client: number of this client.
            node: that it runs on.
            volume: what its data set is in.
            directory: for the tools' output.
            binaries: names of programs -> other paths than those in PATH.
            host: that is observed.
            tools: keys of those whose programs must be there.
            targets: what tools work on that use no volume.

        """
        self.archive: Archive | None = None
        self._client = client
        self._node = node
        self._volume = volume
        self._programs = Programs(directory, binaries)
        self._host = host
        self._tools = tools
        self._versions: dict[str, str] = {}
        self._pool = next((target for target in targets if isinstance(target, PoolTarget)), None)
        self._osds = next((target for target in targets if isinstance(target, OsdsTarget)), None)
        self._data_set: DataSet | None = None
        self._staged: TrialKey | None = None
        self._measuring = False

    async def facts(self) -> dict[str, JsonValue]:
        """Return what a result should say of where this client runs.

        Raises:
            PreparationError: the program of a tool that is to be used is missing.

        """
        self._versions = {key: await self._programs.version(_tool(key).program) for key in self._tools}
        tools: dict[str, JsonValue] = {**self._versions}
        return {**host_facts(self._host), **volume_facts(self._volume, self._host), "tools": tools}

    async def prepare(self, order: Prepare, progress: Progress) -> int:
        """Discard and write every byte of the data set, check that, overwrite it at random, and return its size.

        Raises:
            PreparationError: saying what went wrong, in the tool's own words where it has some.

        """
        if self._volume is None:
            message = "this agent was started without a volume; give it --directory, --file, --device or --image"
            raise PreparationError(message)
        self._data_set = None
        self._data_set = await prepare(self._volume, order, self._programs, progress)
        return self._data_set.target.size

    async def stage(self, order: Stage, progress: Progress) -> None:
        """Run the step of a tool that comes before it is armed, if it has one.

        Raises:
            PreparationError: it failed, in the tool's own words, or came to a stop.

        """
        self._staged = None
        tool = _tool(order.tool)
        context = self._context(tool, order, StepKind.PREPARE)
        try:
            parameters = tool.parameters.model_validate(order.parameters)
            if StepKind.PREPARE in tool.steps(parameters):
                await self._run_preparation(tool, tool.command(parameters, context), context, progress)
        except ValueError as error:
            raise PreparationError(str(error)) from error
        self._staged = order.trial

    def arm(self, order: Arm) -> Armed:
        """Build the command. Touches nothing but the work directory.

        Raises:
            PreparationError: the tool is not known, its parameters are not possible, what it works on is not there or
                not prepared, or this process has not staged a trial that needs it.

        """
        tool = _tool(order.tool)
        context = self._context(tool, order, StepKind.MEASURE)
        try:
            parameters = tool.parameters.model_validate(order.parameters)
            command = tool.command(parameters, context)
        except ValueError as error:
            raise PreparationError(str(error)) from error
        staged = StepKind.PREPARE in tool.steps(parameters)
        if staged and self._staged != order.trial:
            message = f"this process has not staged {order.trial}, which {tool.key} needs; order it to stage it first"
            raise PreparationError(message)
        data_set = self._data_set if tool.target in (TargetKind.VOLUME, TargetKind.IMAGE) else None
        return Armed(
            order=order,
            parameters=parameters,
            context=context,
            argv=self._programs.resolved(command.argv),
            environment=command.environment,
            observation=Observation(
                self._host, data_set.identity if data_set else None, work_directory=context.work_directory
            ),
            prefilled=data_set.prefilled if data_set else staged or not parameters.reads_data,
        )

    async def measure(self, armed: Armed, clock: Clock) -> ClientDocument:
        """Run the command now and reduce its output, then clean up. A tool that fails gives a document that says so."""
        self._measuring = True
        if armed.parameters.removes_data and self._data_set is not None:
            # However it ends: what is trimmed is unwritten again.
            self._data_set = replace(self._data_set, prefilled=False)
        try:
            finished = await process.run(
                armed.argv,
                directory=Path(armed.context.work_directory),
                environment=armed.environment,
                watch=armed.observation.look,
            )
        finally:
            self._measuring = False
        armed.observation.end()
        document = await self._document(armed, clock, finished)
        document = _warned(document, await self._clean_up(armed))
        return _warned(document, await self._keep(armed, document))

    async def _document(self, armed: Armed, clock: Clock, finished: process.Finished) -> ClientDocument:
        measurement, parse_error = _parse(armed, finished)
        if measurement is not None and not measurement.tool_version:
            # The tools of Ceph do not say it beside what they measure.
            version = self._versions.get(armed.order.tool, "")
            measurement = measurement.model_copy(update={"tool_version": version})
        target = armed.context.target
        return ClientDocument(
            client=self._client,
            node=self._node,
            exit_code=finished.exit_code,
            launched_at=finished.launched_at,
            finished_at=finished.finished_at,
            argv=armed.argv,
            measurement=measurement,
            parse_error=parse_error,
            stderr_tail=(finished.stderr or finished.stdout)[-STDERR_TAIL:],
            raw_sha256=await asyncio.to_thread(raw_digest, Path(armed.context.work_directory)),
            clock=clock,
            data_set_bytes=target.size if isinstance(target, VolumeTarget | ImageTarget) else 0,
            prefilled=armed.prefilled,
            host=armed.observation.host_use(measurement),
            foreign_target=armed.observation.foreign_target,
        )

    def live(self, armed: Armed) -> tuple[LiveRate, ...]:
        """Return what the tool says of its rates while it is measured; empty if it says nothing, or does not run."""
        if not self._measuring:
            return ()
        said = process.said_last(Path(armed.context.work_directory))
        return _tool(armed.order.tool).live(armed.parameters, said)

    async def _keep(self, armed: Armed, document: ClientDocument) -> str:
        """Keep the raw output if it is wanted; return what went wrong, if anything did: the numbers are as good."""
        if self.archive is None:
            return ""
        source = Path(armed.context.work_directory)
        try:
            await asyncio.to_thread(self.archive.keep, armed.order.trial, document, source)
        except OSError as error:
            return f"the raw output was not kept: {error}"
        return ""

    async def _clean_up(self, armed: Armed) -> str:
        """Run the step of the tool that comes after it, if it has one; return what went wrong, if anything did."""
        tool, order = _tool(armed.order.tool), armed.order
        if StepKind.CLEAN_UP not in tool.steps(armed.parameters):
            return ""
        self._staged = None
        try:
            context = self._context(tool, order, StepKind.CLEAN_UP)
            finished = await self._programs.run(
                tool.command(armed.parameters, context),
                Path(context.work_directory),
                limit_seconds=CLEAN_UP_SECONDS + order.ramp_seconds + order.runtime_seconds,
            )
        except (process.OverdueError, ValueError) as error:
            return f"{tool.key}'s clean-up of {armed.context.target.name}: {error}"
        if finished.exit_code == 0:
            return ""
        words = last_words(finished)
        return f"{tool.key}'s clean-up of {context.target.name} ended with exit code {finished.exit_code}: {words}"

    async def _run_preparation(self, tool: Tool, command: Command, context: StepContext, progress: Progress) -> None:
        """Run what a tool does before it is armed, however long it takes as long as it does something."""
        step, of = f"{tool.key}'s preparation", context.target.name
        tell = in_time(f"{tool.key} prepares the trial", progress)
        stall = None if isinstance(context.target, VolumeTarget) else StallWatch()

        def watch(pid: int) -> None:
            tell(pid)
            if stall is not None:
                stall.look(pid)

        try:
            finished = await self._programs.run(command, Path(context.work_directory), watch=watch)
        except StalledError as error:
            message = f"{step} of {of} {error}; look at `ceph status`, at the pool's placement groups and what is full"
            raise PreparationError(message) from error
        check_step(finished, step, of=of)

    def _context(self, tool: Tool, order: Arm | Stage, step: StepKind) -> StepContext:
        return StepContext(
            step=step,
            target=self._target(tool),
            timing=Timing(ramp_seconds=order.ramp_seconds, runtime_seconds=order.runtime_seconds),
            seed=order.seed,
            work_directory=str(self._programs.fresh_directory(step)),
        )

    def _target(self, tool: Tool) -> Target:
        """Return what a tool works on.

        Raises:
            PreparationError: this agent was not given it, or it is not prepared.

        """
        match tool.target:
            case TargetKind.VOLUME | TargetKind.IMAGE:
                return self._prepared(tool)
            case TargetKind.POOL:
                return _given(self._pool, tool, "a RADOS pool", "--rados-pool, --rados-namespace and --ceph-user")
            case TargetKind.OSDS:
                return _given(self._osds, tool, "a key for OSDs", "--osd-keyring")
            case TargetKind.PEER:
                return _NO_VOLUME

    def _prepared(self, tool: Tool) -> VolumeTarget | ImageTarget:
        if self._data_set is None:
            message = f"the volume is not prepared, and {tool.key} uses it; prepare it first"
            raise PreparationError(message)
        target = self._data_set.target
        if tool.target is TargetKind.IMAGE and not isinstance(target, ImageTarget):
            message = f"{tool.key} needs an RBD image, but this agent was started with {target.name}; give it --image"
            raise PreparationError(message)
        return target


def _given(target: Target | None, tool: Tool, what: str, options: str) -> Target:
    if target is None:
        message = f"{tool.key} needs {what}, but this agent was started without one; give it {options}"
        raise PreparationError(message)
    return target


def _tool(key: str) -> Tool:
    tool = TOOLS.get(key)
    if tool is None:
        message = f"tool {key} is not known; known are {', '.join(sorted(TOOLS))}"
        raise PreparationError(message)
    return tool


def _parse(armed: Armed, finished: process.Finished) -> tuple[Measurement | None, str | None]:
    try:
        return _tool(armed.order.tool).parse(armed.parameters, armed.context, output_of(finished)), None
    except OutputError as error:
        return None, str(error)[:MAX_TEXT]


def _warned(document: ClientDocument, warning: str) -> ClientDocument:
    """Return a document that says what went wrong after the measurement, if anything did."""
    if not warning:
        return document
    measurement = document.measurement
    if measurement is None:
        return document.model_copy(update={"stderr_tail": f"{document.stderr_tail}\n{warning}"[-STDERR_TAIL:]})
    warnings = (*measurement.warnings, warning)
    return document.model_copy(update={"measurement": measurement.model_copy(update={"warnings": warnings})})
