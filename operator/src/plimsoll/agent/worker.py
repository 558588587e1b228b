"""What an agent does when told to: prepare its volume, and run one command of a known tool."""

import hashlib
import os
import platform
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from plimsoll.agent import process
from plimsoll.agent.volume import Volume, VolumeError
from plimsoll.measure.sample import ClientDocument, Clock, Measurement
from plimsoll.protocol.messages import Arm, Prepare
from plimsoll.tools.base import Output, OutputError, StepContext, StepKind, Timing, ToolParameters, VolumeTarget
from plimsoll.tools.fio import parse_prefill, prefill_command
from plimsoll.tools.registry import TOOLS

Progress = Callable[[int, int], None]

_STDERR_TAIL = 2000


class PreparationError(Exception):
    """The volume could not be prepared; the message is for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Armed:
    """A trial that only waits for T0."""

    order: Arm
    parameters: ToolParameters
    context: StepContext
    argv: tuple[str, ...]
    environment: Mapping[str, str]


class Worker:
    """Runs tools against one client's volume."""

    def __init__(
        self, *, client: int, node: str, volume: Volume | None, directory: Path, binaries: Mapping[str, str]
    ) -> None:
        """Work in `directory`; `binaries` maps tools' names to other paths than those in PATH."""
        self._client = client
        self._node = node
        self._volume = volume
        self._directory = directory
        self._binaries = binaries
        self._target: VolumeTarget | None = None
        self._prefilled = False

    async def facts(self) -> dict[str, JsonValue]:
        """Return what a result should say of where this client runs."""
        return {
            "kernel": platform.release(),
            "architecture": platform.machine(),
            "processors": os.cpu_count(),
            "memoryBytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "tools": {name: await self._version(name) for name in TOOLS},
        }

    async def prepare(self, order: Prepare, progress: Progress) -> int:
        """Discard and write every byte of the data set, check that, and return its size.

        Raises:
            PreparationError: saying what went wrong, in the tool's own words where it has some.

        """
        if self._volume is None:
            message = "this agent was started without a volume"
            raise PreparationError(message)
        try:
            target = self._volume.target(order.fill_percent)
            if order.discard:
                await self._discard(self._volume, target)
            if order.prefill:
                await self._prefill(self._volume, target, order.seed, progress)
            else:
                self._volume.lay_out(target)
        except (VolumeError, OutputError, OSError) as error:
            raise PreparationError(str(error)) from error
        self._target, self._prefilled = target, order.prefill
        return target.size

    def arm(self, order: Arm) -> Armed:
        """Build the command. Touches nothing but the work directory.

        Raises:
            PreparationError: if the tool is not known, its parameters are not possible, or there is no data set.

        """
        tool = TOOLS.get(order.tool)
        if tool is None or self._target is None:
            message = f"tool {order.tool} is not known" if tool is None else "the volume is not prepared"
            raise PreparationError(message)
        context = StepContext(
            step=StepKind.MEASURE,
            target=self._target,
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
        )

    async def measure(self, armed: Armed, clock: Clock) -> ClientDocument:
        """Run the command now and reduce its output. A tool that fails gives a document that says so."""
        launched_at = time.time_ns()
        finished = await process.run(
            armed.argv, directory=Path(armed.context.work_directory), environment=armed.environment
        )
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
            prefilled=self._prefilled,
        )

    def _parse(self, armed: Armed, finished: process.Finished) -> tuple[Measurement | None, str | None]:
        try:
            return TOOLS[armed.order.tool].parse(armed.parameters, armed.context, _output(finished)), None
        except OutputError as error:
            return None, str(error)

    async def _discard(self, volume: Volume, target: VolumeTarget) -> None:
        """Give the storage back what the volume holds. Not all storage can; the prefill covers that."""
        volume.clear()
        command = volume.discard_command(target)
        if command is not None:
            await process.run(command, directory=self._fresh_directory("discard"))

    async def _prefill(self, volume: Volume, target: VolumeTarget, seed: int, progress: Progress) -> None:
        progress(0, target.size)
        directory = self._fresh_directory("prefill")
        command = prefill_command(target, seed=seed, work_directory=str(directory))
        finished = await process.run(
            self._resolved(command.argv),
            directory=directory,
            environment=command.environment,
            on_written=lambda written: progress(min(written, target.size), target.size),
        )
        if finished.exit_code != 0:
            words = (finished.stderr or finished.stdout).strip()[-_STDERR_TAIL:]
            message = f"prefill of {target.path} ended with exit code {finished.exit_code}: {words}"
            raise PreparationError(message)
        parse_prefill(_output(finished), target)
        volume.check_written(target)

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


def _output(finished: process.Finished) -> Output:
    return Output(exit_code=finished.exit_code, stdout=finished.stdout, stderr=finished.stderr, files=finished.files)


def _digest(finished: process.Finished) -> str:
    """Return the SHA-256 of everything the tool wrote, file by file in order of their names."""
    digest = hashlib.sha256()
    for name in sorted(finished.files):
        digest.update(f"{name}\0{finished.files[name]}\0".encode())
    return digest.hexdigest()
