"""The launcher of local mode: starts the processes of a run and restarts them as Jobs restart pods."""

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import click

from plimsoll.agent.agent import EXIT_UNUSABLE
from plimsoll.cli.local_storage import client_volume
from plimsoll.conductor.main import EXIT_COMPLETE, EXIT_INTERRUPTED, EXIT_OF_FAILURE
from plimsoll.conductor.secret import client_directory
from plimsoll.lifecycle.render.ceph import tools_of
from plimsoll.plan.document import Plan
from plimsoll.protocol.assignment import Assignment

MAX_RESTARTS = 3  # of the conductor and of each client; further restarts would not help
_FINAL = {EXIT_COMPLETE, EXIT_INTERRUPTED, *EXIT_OF_FAILURE.values()}  # of a conductor that is not started again
_DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "TERM", "--")


class LaunchError(click.ClickException):
    """The processes of a run end too early; the message has the reason."""


@dataclass(slots=True, kw_only=True)
class _Child:
    name: str
    start: Callable[[int], Awaitable[Process]]  # gets the number of the attempt
    process: Process
    attempt: int = 0


@dataclass(slots=True, kw_only=True)
class Launcher:
    """Starts a conductor and its agents, and restarts those that fail."""

    plan: Plan
    results: Path  # directory with the frozen plan
    secret: Path  # directory that `write_session` has written; also for assignments and the tools' output
    data: Path | None = None  # directory of the run's data; None if devices are measured
    devices: Sequence[Path] = ()
    fio: str  # path of the fio to run
    raw_output: Path | None = None  # directory that keeps it; None if it is not kept
    port: int
    _children: list[_Child] = field(default_factory=list, init=False)  # the conductor first
    _interrupted: bool = field(default=False, init=False)

    async def run(self, on_poll: Callable[[], None]) -> int:
        """Return the conductor's final exit code; a LaunchError if a process fails repeatedly, or cannot work here.

        `on_poll` is called a few times a second.
        """
        (self.results / "logs").mkdir(parents=True, exist_ok=True)
        starts: dict[str, Callable[[int], Awaitable[Process]]] = {"conductor": self._start_conductor}
        starts |= {f"client {client}": partial(self._start_agent, client) for client in range(self.plan.clients)}
        try:
            for name, start in starts.items():
                self._children.append(_Child(name=name, start=start, process=await start(0)))
            while True:
                on_poll()
                code = self._children[0].process.returncode
                if code in _FINAL or (code is not None and self._interrupted):
                    return code if code in _FINAL else EXIT_INTERRUPTED
                for child in self._children:
                    code = child.process.returncode
                    if code == EXIT_UNUSABLE:
                        raise LaunchError(f"{child.name} cannot run on this machine: {self._last_words(child)}")
                    if code not in {None, 0}:
                        if child.attempt >= MAX_RESTARTS:
                            times = f"{child.attempt + 1} times, last with exit code {code}"
                            raise LaunchError(f"{child.name} failed {times}: {self._last_words(child)}")
                        child.attempt += 1
                        child.process = await child.start(child.attempt)
                await asyncio.sleep(0.2)
        finally:
            for child in self._children:
                _signal(child.process, signal.SIGTERM)
            with suppress(TimeoutError):
                async with asyncio.timeout(5):
                    await asyncio.gather(*(child.process.wait() for child in self._children))
            for child in self._children:
                _signal(child.process, signal.SIGKILL)
                await child.process.wait()

    def interrupt(self) -> None:
        """Make the conductor record the current trial and exit."""
        self._interrupted = True
        for conductor in self._children[:1]:
            _signal(conductor.process, signal.SIGTERM)

    def _log(self, name: str) -> Path:
        return self.results / "logs" / f"{name.replace(' ', '-')}.log"

    def _last_words(self, child: _Child) -> str:
        path = self._log(child.name)
        lines = path.read_text(errors="replace").strip().splitlines() if path.exists() else []
        return f"{lines[-1] if lines else 'no output'} (see {path})"

    async def _start_conductor(self, attempt: int) -> Process:
        options = ("--results", str(self.results), "--secret", str(self.secret), "--port", str(self.port))
        process = await self._start("conductor", attempt, "conductor", *options)
        # The signal came while it was being started.
        if self._interrupted:
            _signal(process, signal.SIGTERM)
        return process

    async def _start_agent(self, client: int, attempt: int) -> Process:
        scratch = self.secret / "scratch"
        assignment = Assignment(
            conductor=f"https://127.0.0.1:{self.port}",
            client=client,
            attempt=attempt,
            work=str(scratch / f"client-{client}-{attempt}"),
            tools=tools_of(self.plan),
            volume=client_volume(self.plan, client, data=self.data, devices=self.devices),
            caches=self.plan.prepare.drop_caches or None,
            raw_output=None if self.raw_output is None else str(self.raw_output),
        )
        # A file, not standard input: its name identifies the client in the list of processes.
        file = scratch / f"client-{client}-{attempt}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(assignment.model_dump_json(exclude_none=True))
        options = ("--assignment", str(file), "--secret", str(client_directory(self.secret, client)), "--fio", self.fio)
        return await self._start(f"client {client}", attempt, "agent", *options)

    async def _start(self, name: str, attempt: int, *arguments: str) -> Process:
        """Start a program of this package that ignores Ctrl-C of the terminal and ends with this process."""
        with self._log(name).open("a" if attempt else "w") as output:
            return await asyncio.create_subprocess_exec(
                *_DIE_WITH_PARENT,
                *(sys.executable, "-m", "plimsoll", *arguments),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env=os.environ,
            )


def free_port() -> int:
    """Return an unused TCP port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _signal(process: Process, number: signal.Signals) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.send_signal(number)
