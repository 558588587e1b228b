"""Running programs that an agent was given, each in a directory of its own; and what a failure of one is called."""

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from plimsoll.agent import process
from plimsoll.tools.base import Command, Output

STDERR_TAIL = 2000
"""Characters of a tool's own words that are kept."""

_MAX_VERSION_CHARACTERS = 128


class Progress(Protocol):
    """Who wants to know how far a preparation has come."""

    def __call__(self, done: int, total: int, message: str = "") -> None:
        """Note the bytes prefilled, of how many, and what goes on if it is not the prefill."""
        ...


class PreparationError(Exception):
    """What is to be measured could not be got ready; the message is for the user."""


class Programs:
    """The programs of one agent, and the directory below which they leave their output."""

    def __init__(self, directory: Path, binaries: Mapping[str, str]) -> None:
        """Work in `directory`; `binaries` maps programs' names to other paths than those in PATH."""
        self._directory = directory
        self._binaries = binaries

    def resolved(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Return a command with the path of its program."""
        return (self._binaries.get(argv[0], argv[0]), *argv[1:])

    def fresh_directory(self, name: str) -> Path:
        """Return a directory of that name which is empty."""
        directory = self._directory / name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        return directory

    async def run(
        self,
        command: Command,
        directory: Path,
        *,
        watch: Callable[[int], None] | None = None,
        limit_seconds: float | None = None,
    ) -> process.Finished:
        """Run a command in a directory of its own; see `plimsoll.agent.process.run`."""
        return await process.run(
            self.resolved(command.argv),
            directory=directory,
            environment=command.environment,
            watch=watch,
            limit_seconds=limit_seconds,
        )

    async def version(self, program: str) -> str:
        """Return what a program calls its version.

        Raises:
            PreparationError: it is not there or does not work.

        """
        path = self._binaries.get(program, program)
        found = await process.run((path, "--version"), directory=self.fresh_directory("version"))
        if found.exit_code != 0:
            message = f"{path} cannot be run: {found.stderr.strip()}; install {program}"
            raise PreparationError(message)
        return found.stdout.strip()[:_MAX_VERSION_CHARACTERS]


def in_time(words: str, progress: Progress, *, total: int = 0) -> Callable[[int], None]:
    """Return a watch that tells how long something has gone on, for want of a count of bytes: `writing, 40 s`."""
    started = time.monotonic()

    def tell(_: int) -> None:
        progress(0, total, f"{words}, {int(time.monotonic() - started)} s")

    return tell


def check_step(finished: process.Finished, step: str, *, of: str, remedy: str = "") -> None:
    """Check that a step, by its name and that of what it was done to, succeeded.

    Raises:
        PreparationError: it failed; in the tool's own words.

    """
    if finished.exit_code != 0:
        message = f"{step} of {of} ended with exit code {finished.exit_code}: {last_words(finished)}{remedy}"
        raise PreparationError(message)


def last_words(finished: process.Finished) -> str:
    """Return the end of what a command said."""
    return (finished.stderr or finished.stdout).strip()[-STDERR_TAIL:]


def output_of(finished: process.Finished) -> Output:
    """Return what a tool's parser reads."""
    return Output(
        exit_code=finished.exit_code,
        stdout=finished.stdout,
        stderr=finished.stderr,
        files=finished.files,
        launched_at=finished.launched_at,
        finished_at=finished.finished_at,
    )
