"""What an agent does when told to: prepare its volume, and run one command of a known tool."""

import hashlib
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue

from plimsoll.agent import process
from plimsoll.agent.host.facts import host_facts, volume_facts
from plimsoll.agent.host.observation import Observation
from plimsoll.agent.host.open_files import DataSetIdentity, identify
from plimsoll.agent.host.readings import Host
from plimsoll.agent.volume import Volume, VolumeError, discard_is_unsupported
from plimsoll.api.run import Precondition
from plimsoll.measure.sample import ClientDocument, Clock, Measurement
from plimsoll.protocol.messages import Arm, Prepare
from plimsoll.tools.base import (
    Command,
    Output,
    OutputError,
    StepContext,
    StepKind,
    TargetKind,
    Timing,
    ToolParameters,
    VolumeKind,
    VolumeTarget,
)
from plimsoll.tools.fio import parse_precondition, parse_prefill, precondition_command, prefill_command
from plimsoll.tools.registry import TOOLS

_STDERR_TAIL = 2000
_NO_VOLUME = VolumeTarget(kind=VolumeKind.FILE, path="", size=0)
"""What a tool is given that uses none."""


class Progress(Protocol):
    """Who wants to know how far a preparation has come."""

    def __call__(self, done: int, total: int, message: str = "") -> None:
        """Note the bytes prefilled, of how many, and what goes on if it is not the prefill."""
        ...


class PreparationError(Exception):
    """The volume could not be prepared; the message is for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """What has been prepared; `prefilled` is whether every byte was written."""

    target: VolumeTarget
    identity: DataSetIdentity
    prefilled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Armed:
    """A trial that only waits for T0, and whose host is observed from now on."""

    order: Arm
    parameters: ToolParameters
    context: StepContext
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    observation: Observation


class Worker:
    """Runs tools against one client's volume."""

    def __init__(
        self, *, client: int, node: str, volume: Volume | None, directory: Path, binaries: Mapping[str, str], host: Host
    ) -> None:
        """Work in `directory`; `binaries` maps tools' names to other paths than those in PATH."""
        self._client = client
        self._node = node
        self._volume = volume
        self._directory = directory
        self._binaries = binaries
        self._host = host
        self._data_set: DataSet | None = None

    async def facts(self) -> dict[str, JsonValue]:
        """Return what a result should say of where this client runs."""
        tools: dict[str, JsonValue] = {name: await self._version(name) for name in TOOLS}
        return {**host_facts(self._host), **volume_facts(self._volume, self._host), "tools": tools}

    async def prepare(self, order: Prepare, progress: Progress) -> int:
        """Discard and write every byte of the data set, check that, overwrite it at random, and return its size.

        Raises:
            PreparationError: saying what went wrong, in the tool's own words where it has some.

        """
        if self._volume is None:
            message = "this agent was started without a volume; give it --directory, --file or --device"
            raise PreparationError(message)
        self._data_set = None
        try:
            target = self._volume.target(order.fill_percent)
            if order.discard:
                await self._discard(self._volume, target, progress)
            if order.prefill:
                await self._prefill(self._volume, target, order.seed, progress)
            else:
                self._volume.lay_out(target)
            if order.precondition is not None:
                await self._precondition(order.precondition, target, order.seed, progress)
            identity = identify(target)
        except (VolumeError, ValueError, OSError) as error:
            raise PreparationError(str(error)) from error
        self._data_set = DataSet(target=target, identity=identity, prefilled=order.prefill)
        return target.size

    def arm(self, order: Arm) -> Armed:
        """Build the command. Touches nothing but the work directory.

        Raises:
            PreparationError: if the tool is not known, its parameters are not possible, or there is no data set.

        """
        tool = TOOLS.get(order.tool)
        if tool is None:
            message = f"tool {order.tool} is not known; known are {', '.join(sorted(TOOLS))}"
            raise PreparationError(message)
        data_set = self._data_set if tool.target is TargetKind.VOLUME else None
        if data_set is None and tool.target is TargetKind.VOLUME:
            message = f"the volume is not prepared, and {order.tool} uses it; prepare it first"
            raise PreparationError(message)
        context = StepContext(
            step=StepKind.MEASURE,
            target=data_set.target if data_set else _NO_VOLUME,
            timing=Timing(ramp_seconds=order.ramp_seconds, runtime_seconds=order.runtime_seconds),
            seed=order.seed,
            work_directory=str(self._fresh_directory("measure")),
        )
        try:
            parameters = tool.parameters.model_validate(order.parameters)
            command = tool.command(parameters, context)
        except ValueError as error:
            raise PreparationError(str(error)) from error
        return Armed(
            order=order,
            parameters=parameters,
            context=context,
            argv=self._resolved(command.argv),
            environment=command.environment,
            observation=Observation(
                self._host, data_set.identity if data_set else None, work_directory=context.work_directory
            ),
        )

    async def measure(self, armed: Armed, clock: Clock) -> ClientDocument:
        """Run the command now and reduce its output. A tool that fails gives a document that says so."""
        launched_at = time.time_ns()
        finished = await process.run(
            armed.argv,
            directory=Path(armed.context.work_directory),
            environment=armed.environment,
            watch=armed.observation.look,
        )
        armed.observation.end()
        measurement, parse_error = self._parse(armed, finished)
        return ClientDocument(
            client=self._client,
            node=self._node,
            exit_code=finished.exit_code,
            launched_at=launched_at,
            finished_at=time.time_ns(),
            argv=armed.argv,
            measurement=measurement,
            parse_error=parse_error,
            stderr_tail=(finished.stderr or finished.stdout)[-_STDERR_TAIL:],
            raw_sha256=_digest(finished),
            clock=clock,
            data_set_bytes=armed.context.target.size,
            prefilled=self._data_set is None or self._data_set.prefilled,
            host=armed.observation.host_use(measurement),
            foreign_target=armed.observation.foreign_target,
        )

    def _parse(self, armed: Armed, finished: process.Finished) -> tuple[Measurement | None, str | None]:
        try:
            return TOOLS[armed.order.tool].parse(armed.parameters, armed.context, _output(finished)), None
        except OutputError as error:
            return None, str(error)

    async def _discard(self, volume: Volume, target: VolumeTarget, progress: Progress) -> None:
        """Give the storage back what the volume holds.

        Not all storage can: that is told and no error, and the fact `volumeDiscards` of this client says so.
        """
        volume.clear()
        argv = volume.discard_command(target)
        if argv is None:
            return
        directory = self._fresh_directory("discard")
        # Its words are read, so they must not be translated.
        finished = await process.run(self._resolved(argv), directory=directory, environment={"LC_ALL": "C"})
        if discard_is_unsupported(finished.exit_code, finished.stderr):
            progress(0, target.size, f"{target.path} cannot discard, and is overwritten as it is")
        else:
            _check(finished, directory.name, target, remedy="; prepare.discard: false leaves it out")

    async def _prefill(self, volume: Volume, target: VolumeTarget, seed: int, progress: Progress) -> None:
        progress(0, target.size)
        directory = self._fresh_directory("prefill")
        command = prefill_command(target, seed=seed, work_directory=str(directory))

        def tell(pid: int) -> None:
            progress(min(process.written_bytes(pid), target.size), target.size)

        output = await self._write(command, directory, target, tell)
        parse_prefill(output, target)
        volume.check_written(target)

    async def _precondition(
        self, precondition: Precondition, target: VolumeTarget, seed: int, progress: Progress
    ) -> None:
        directory = self._fresh_directory("precondition")
        command = precondition_command(target, precondition, seed=seed, work_directory=str(directory))
        started, seconds = time.monotonic(), precondition.seconds

        def tell(_: int) -> None:
            elapsed = min(int(time.monotonic() - started), seconds)
            progress(target.size, target.size, f"overwriting at random, {elapsed} of {seconds} s")

        output = await self._write(command, directory, target, tell)
        parse_precondition(output, target)

    async def _write(
        self, command: Command, directory: Path, target: VolumeTarget, watch: Callable[[int], None]
    ) -> Output:
        """Run the step of the preparation that its directory is named after, and return its output.

        Raises:
            PreparationError: it failed.

        """
        finished = await process.run(
            self._resolved(command.argv), directory=directory, environment=command.environment, watch=watch
        )
        _check(finished, directory.name, target)
        return _output(finished)

    async def _version(self, name: str) -> str:
        found = await process.run(
            (self._binaries.get(name, name), "--version"), directory=self._fresh_directory("version")
        )
        if found.exit_code != 0:
            message = f"{self._binaries.get(name, name)} cannot be run: {found.stderr.strip()}; install {name}"
            raise PreparationError(message)
        return found.stdout.strip()

    def _resolved(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        return (self._binaries.get(argv[0], argv[0]), *argv[1:])

    def _fresh_directory(self, name: str) -> Path:
        directory = self._directory / name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        return directory


def _check(finished: process.Finished, step: str, target: VolumeTarget, *, remedy: str = "") -> None:
    """Check that a step of the preparation succeeded.

    Raises:
        PreparationError: it failed; in the tool's own words.

    """
    if finished.exit_code != 0:
        words = (finished.stderr or finished.stdout).strip()[-_STDERR_TAIL:]
        message = f"{step} of {target.path} ended with exit code {finished.exit_code}: {words}{remedy}"
        raise PreparationError(message)


def _output(finished: process.Finished) -> Output:
    return Output(exit_code=finished.exit_code, stdout=finished.stdout, stderr=finished.stderr, files=finished.files)


def _digest(finished: process.Finished) -> str:
    """Return the SHA-256 of everything the tool wrote, file by file in order of their names."""
    digest = hashlib.sha256()
    for name in sorted(finished.files):
        digest.update(f"{name}\0{finished.files[name]}\0".encode())
    return digest.hexdigest()
