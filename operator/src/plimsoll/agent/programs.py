"""Runs the programs of one agent, each in its own directory, and names their failures."""

import asyncio
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Protocol

from plimsoll.agent import process
from plimsoll.agent.process import Watch
from plimsoll.tools.base import AnyTool, Command, Output

STDERR_TAIL = 2000
"""Characters of a tool's own output that are kept."""

ACCEPT_LIBRARY = "/usr/lib/plimsoll/accept.so"
"""The library that limits a command to one peer; built from `runner/accept.c`."""

_MAX_VERSION_CHARACTERS = 128
_POLL_SECONDS = 0.1
_LINES_AT_ONCE = 20_000
"""Lines of an input between which a preparation can be cancelled."""


class Progress(Protocol):
    """Receives the progress of a preparation."""

    def __call__(self, done: int, total: int, message: str = "") -> None:
        """Report the bytes prefilled and their total, and the current step unless it is the prefill."""
        ...


class PreparationError(Exception):
    """Preparing a measurement failed; the message is for the user."""


def _never(_: Output) -> bool:
    return False


class Programs:
    """The programs of one agent, and the directory for their output."""

    def __init__(self, directory: Path, binaries: Mapping[str, str]) -> None:
        self._directory = directory
        self._binaries = binaries

    def resolved(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Return a command with the path of its program."""
        return (self._binaries.get(argv[0], argv[0]), *argv[1:])

    def environment(self, command: Command) -> dict[str, str]:
        """Return a command's environment; PreparationError if it would serve anyone."""
        if not command.accepts_only:
            return dict(command.environment)
        library = self._binaries.get(ACCEPT_LIBRARY, ACCEPT_LIBRARY)
        if not Path(library).is_file():
            raise PreparationError(
                f"{library} is not installed, without which {command.argv[0]} would accept connections from anyone; "
                "use the runner image of this version"
            )
        return {**command.environment, "LD_PRELOAD": library, "PLIMSOLL_ACCEPT": command.accepts_only}

    def fresh_directory(self, name: str) -> Path:
        """Return an empty directory of that name."""
        directory = self._directory / name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        return directory

    async def write_inputs(self, command: Command, directory: Path) -> None:
        """Write the inputs of a command into its directory; PreparationError if that fails."""
        for name, lines in command.inputs.items():
            rest = iter(lines)
            try:
                with (directory / name).open("w") as file:
                    while text := await asyncio.to_thread("".join, islice(rest, _LINES_AT_ONCE)):
                        await asyncio.to_thread(file.write, text)
            except OSError as error:
                raise PreparationError(f"{directory / name}: {error.strerror}") from error

    async def run(
        self,
        command: Command,
        directory: Path,
        *,
        watches: Sequence[Watch] = (),
        limit_seconds: float | None = None,
        excused: Callable[[Output], bool] = _never,
    ) -> Output:
        """Run a command and those beside it in its own directory; see `plimsoll.agent.process.run`.

        `excused` is whether a command has done its work whatever its exit code, which then counts as 0.

        Returns:
            the output of the command, with those of the commands beside it; or that of the first one that failed, which
            ends the others.

        """
        environments = [self.environment(one) for one in command.all]
        running = [
            asyncio.create_task(
                process.run(
                    self.resolved(one.argv),
                    directory=directory,
                    environment=environment,
                    watches=() if number else watches,
                    limit_seconds=limit_seconds,
                    stdin=one.stdin,
                    metered_seconds=one.metered_seconds,
                    number=number,
                )
            )
            for number, (one, environment) in enumerate(zip(command.all, environments, strict=True))
        ]
        return await _all_outputs(running, excused)

    async def version(self, tool: AnyTool) -> str:
        """Return the version of a tool's program; PreparationError if it cannot be run."""
        path = self._binaries.get(tool.program, tool.program)
        output = await process.run((path, tool.version_argument), directory=self.fresh_directory("version"))
        version = tool.version(output)
        if version is None:
            raise PreparationError(f"{path} cannot be run: {output.stderr.strip()}; install {tool.program}")
        return version[:_MAX_VERSION_CHARACTERS]

    async def serve(
        self,
        command: Command,
        directory: Path,
        *,
        name: str,
        is_serving: Callable[[str], bool],
        ready: Callable[[], Awaitable[None]],
        ends_with_client: bool = False,
    ) -> None:
        """Run a server until it ends or this is cancelled, which ends the server.

        Args:
            command: the server's command.
            directory: its own, empty directory.
            name: the server's name in messages.
            is_serving: whether clients may connect, judged by the server's recent output.
            ready: awaited once clients may connect.
            ends_with_client: whether a server that has listened may end with any exit code.

        Raises:
            PreparationError: the server failed, or ended before clients could connect.

        """

        def excused(output: Output) -> bool:
            return ends_with_client and is_serving(output.stdout)

        running = asyncio.create_task(self.run(command, directory, excused=excused))
        # Output is recent for some seconds only, and a thousand servers take longer to start.
        starting = set(range(len(command.all)))
        try:
            while not running.done() and starting:
                await asyncio.wait({running}, timeout=_POLL_SECONDS)
                starting = {number for number in starting if not is_serving(process.recent_output(directory, number))}
            has_served = not running.done()
            if has_served:
                await ready()
            check_step(await running, "the server", of=name)
        finally:
            running.cancel()
            await asyncio.wait({running})
        if not has_served:
            raise PreparationError(f"the server of {name} ended before any client could connect")


async def _all_outputs(running: Sequence[asyncio.Task[Output]], excused: Callable[[Output], bool]) -> Output:
    """Return the first command's output with the others', or that of the first one that failed without an excuse."""
    pending = set(running)
    try:
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if task.result().exit_code and not excused(task.result()):
                    return task.result()
    finally:
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending)
    first, *others = (replace(task.result(), exit_code=0) for task in running)
    return replace(first, beside=tuple(others))


def report_elapsed(step: str, progress: Progress, *, total: int = 0) -> Watch:
    """Return a watch that reports the elapsed time where bytes cannot be counted: `writing, 40 s`."""
    started = time.monotonic()
    return lambda _: progress(0, total, f"{step}, {int(time.monotonic() - started)} s")


def check_step(output: Output, step: str, *, of: str, remedy: str = "") -> None:
    """Raise PreparationError, with the tool's own output, if a step on the target `of` failed."""
    if output.exit_code != 0:
        raise PreparationError(f"{step} of {of} ended with exit code {output.exit_code}: {last_words(output)}{remedy}")


def last_words(output: Output) -> str:
    """Return the end of what a command printed, on standard error if anything."""
    return (output.stderr or output.stdout).strip()[-STDERR_TAIL:]
