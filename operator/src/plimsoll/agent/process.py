"""Runs commands so that they cannot outlive their agent, and keeps what they print."""

import asyncio
import concurrent.futures
import fcntl
import os
import re
import shutil
import signal
import termios
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import Any, BinaryIO, TypeVar

from plimsoll.agent.readings import interfaces, process_io
from plimsoll.ceph.document import without_keys
from plimsoll.tools.base import DIE_WITH_PARENT, AnyTool, Command, HeldInput, Output

STDOUT_FILE = "stdout"
STDERR_FILE = "stderr"
_IS_OUTPUT = re.compile(rf"(?:{STDOUT_FILE}|{STDERR_FILE})(?:-\d+)?")
_TAIL_BYTES = 4096
_STALE_SECONDS = 5.0
# Overwritten terminal lines. Anchored at the start of a line: unanchored, a line of a megabyte would take hours.
_OVERWRITTEN = re.compile(r"^[^\n]*\r(?!\n)", re.MULTILINE)
_MAX_FILE_BYTES = 64 * 2**20
_POLL_SECONDS = 1.0
_READ_SECONDS = 0.01  # interval of looks whether a command has begun to read its input
_TERM_SECONDS = 2.0  # time for a tool to end after SIGTERM; fio closes its image within 0.2 s
# Time for a killed tool, or a cancelled file operation, to end. One that needs more waits in the kernel for its storage
_KILL_SECONDS = 5.0
FILE_SECONDS = 300.0  # time for a file operation, which takes seconds on storage that responds
Watch = Callable[[int], None]  # called with a running command's process id every second; an exception kills it
Progress = Callable[[int, int, str], None]  # called with prefilled bytes, their total, and the step; empty in a prefill
STDERR_TAIL = 2000  # characters of a tool's own output that are kept
ACCEPT_LIBRARY = "/usr/lib/plimsoll/accept.so"  # limits a command to one peer; built from `runner/accept.c`
_LINES_AT_ONCE = 20_000  # lines of an input between which a preparation can be cancelled
STALL_SECONDS = 300.0  # a command that sends nothing for this long is stuck; Ceph replaces a dead OSD much sooner
_STALL_BYTES = 2**20  # far above the traffic that keeps connections to a cluster alive in that time

T = TypeVar("T")


class OverdueError(Exception):
    """A command exceeded its time limit and was killed; the message contains the limit and its last output."""


class Gate:
    """Holds back a command and its companions until they may begin."""

    def __init__(self) -> None:
        self.is_reached = asyncio.Event()  # set once the command waits; its companions cannot
        self.is_open = asyncio.Event()

    async def wait(self) -> None:
        """Wait at the gate, as one of the commands, until it is open."""
        self.is_reached.set()
        await self.is_open.wait()


async def run(
    command: Command,
    *,
    directory: Path,
    watches: Sequence[Watch] = (),
    limit_seconds: float | None = None,
    number: int = 0,
    started: Callable[[asyncio.subprocess.Process], None] = lambda _: None,
    gate: Gate | None = None,
) -> Output:
    """Run a command in a directory and return its output; OverdueError if it did not end within `limit_seconds`.

    Cancellation ends it with all its children. With a `gate`, it begins when that is opened, and is watched and limited
    from then on; only one with `Command.held` is started before. `number` tells commands apart that run in one
    directory at the same time. `started` is called with the process, which may still exist afterwards: see
    `Programs.unended`. A command that cannot be started ends with exit code 127, as in a shell.
    """
    if gate is not None and command.held is None:
        await gate.wait()
    launched_at = time.time_ns()
    stdout_path, stderr_path = _output(directory, STDOUT_FILE, number), _output(directory, STDERR_FILE, number)
    with stdout_path.open("wb") as stdout, stderr_path.open("wb") as stderr:

        async def begin(stdin: BinaryIO, *arguments: str) -> asyncio.subprocess.Process:
            with stdin:
                process = await asyncio.create_subprocess_exec(
                    *DIE_WITH_PARENT,
                    *command.argv,
                    *arguments,
                    cwd=directory,
                    env={**os.environ, **command.environment},
                    stdin=stdin,
                    stdout=asyncio.subprocess.DEVNULL if command.metered_seconds else stdout,
                    stderr=stderr,
                    start_new_session=True,
                )
            started(process)
            return process

        def print_read_bytes(pid: int) -> None:
            if (read := (process_io(pid) or {}).get("rchar")) is not None:
                stdout.write(f"{time.time_ns()} {read}\n".encode())
                stdout.flush()

        try:
            if gate is not None and command.held is not None:
                process, launched_at = await _start_at(gate, command.held, begin)
            else:
                process = await begin(Path(command.stdin).open("rb"))  # noqa: SIM115, ASYNC230 - closed there; at once
        except OSError as error:
            stderr.write(f"{DIE_WITH_PARENT[0]}: {error}".encode())
            exit_code = 127
        else:
            meter = print_read_bytes if command.metered_seconds else None
            limit = command.metered_seconds or limit_seconds
            exit_code = await _wait(process, watches, limit, meter=meter, stderr=stderr_path)
    finished_at = time.time_ns()

    def read_output() -> Output:
        paths = (path for path in sorted(directory.iterdir()) if path.is_file())
        return Output(
            exit_code=exit_code,
            stdout=_OVERWRITTEN.sub("", _read(stdout_path)),
            stderr=without_keys(_read(stderr_path)),
            files={path.name: _read(path) for path in paths if not _IS_OUTPUT.fullmatch(path.name)},
            launched_at=launched_at,
            finished_at=finished_at,
        )

    # The files may have many MiB.
    return await asyncio.to_thread(read_output)


def recent_output(directory: Path, number: int = 0) -> str:
    """Return the last 4 KiB that a command in a directory has printed; empty if nothing in the last 5 s."""
    try:
        with _output(directory, STDOUT_FILE, number).open("rb") as file:
            status = os.fstat(file.fileno())
            if time.time() - status.st_mtime > _STALE_SECONDS:
                return ""
            file.seek(max(0, status.st_size - _TAIL_BYTES))
            return file.read(_TAIL_BYTES).decode(errors="replace")
    except OSError:
        return ""


async def _start_at(
    gate: Gate, held: HeldInput, begin: Callable[..., Awaitable[asyncio.subprocess.Process]]
) -> tuple[asyncio.subprocess.Process, int]:
    """Start a command, and complete its input once the gate is open; return it, and when that was."""
    read_end, write_end = os.pipe()
    try:
        os.write(write_end, held.unfinished.encode())
        process = await begin(os.fdopen(read_end, "rb"), *held.arguments)
        try:
            # Until it has read everything that was written.
            while fcntl.ioctl(write_end, termios.FIONREAD, bytes(4)) != bytes(4):
                if gate.is_open.is_set() or process.returncode is not None:
                    break
                await asyncio.sleep(_READ_SECONDS)
            await gate.wait()
        except asyncio.CancelledError:
            await _end(process)
            raise
        opened_at = time.time_ns()
        with suppress(BrokenPipeError):  # it has ended
            os.write(write_end, held.rest.encode())
        return process, opened_at
    finally:
        os.close(write_end)


async def _wait(
    process: asyncio.subprocess.Process,
    watches: Sequence[Watch],
    limit_seconds: float | None,
    *,
    meter: Watch | None,
    stderr: Path,
) -> int:
    """Return the exit code; with a `meter`, the end of the time is a success."""
    all_watches = [*watches, *([meter] if meter else [])]
    try:
        async with asyncio.timeout(limit_seconds):
            while True:
                for watch in all_watches:
                    watch(process.pid)
                with suppress(TimeoutError):
                    async with asyncio.timeout(_POLL_SECONDS if all_watches else None):
                        return await process.wait()
    except TimeoutError as error:
        if meter:
            meter(process.pid)
            return 0 if await _end(process) else 128 + signal.SIGKILL
        words = without_keys(_read(stderr)).strip()[-1000:]
        message = f"did not end within {limit_seconds} s, and was killed{words and f'; its last output: {words}'}"
        raise OverdueError(message) from error
    finally:
        if process.returncode is None:
            await _end(process)


async def _end(process: asyncio.subprocess.Process) -> bool:
    """End a command and all its children, by force if SIGTERM, which closes images, does not; false if neither does."""
    try:
        _signal(process, signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(_TERM_SECONDS):
                await process.wait()
    finally:
        _signal(process, signal.SIGKILL)
        with suppress(TimeoutError):
            async with asyncio.timeout(_KILL_SECONDS):
                await process.wait()
    return process.returncode is not None


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _output(directory: Path, name: str, number: int) -> Path:
    return directory / (f"{name}-{number}" if number else name)


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_MAX_FILE_BYTES).decode(errors="replace")


class Launch:
    """One run of a command, which may start before it begins."""

    def __init__(self, run: Callable[..., Coroutine[None, None, Output]]) -> None:
        """Take what runs the command with a `gate`; see `plimsoll.agent.process.run`."""
        self._run = run
        self._gate = Gate()
        self._running: asyncio.Task[Output] | None = None

    async def start(self) -> None:
        """Start the command if it can wait, and return once it does, or has failed; it has not begun."""
        self._started().add_done_callback(lambda _: self._gate.is_reached.set())
        await self._gate.is_reached.wait()

    async def output(self) -> Output:
        """Let the command begin, and return its output."""
        self._gate.is_open.set()
        return await self._started()

    async def cancel(self) -> None:
        """End the command, if it has started and still runs."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})

    def _started(self) -> asyncio.Task[Output]:
        self._running = self._running or asyncio.create_task(self._run(gate=self._gate))
        return self._running


class PreparationError(Exception):
    """Preparing a measurement failed; the message is for the user."""


class Programs:
    """The programs of one agent, and the directory for their output."""

    def __init__(self, directory: Path, binaries: Mapping[str, str]) -> None:
        self._directory = directory
        self._binaries = binaries
        self._processes: list[tuple[str, asyncio.subprocess.Process]] = []
        self._file_operations: list[tuple[str, asyncio.Future[Any]]] = []

    @property
    def unended(self) -> str:
        """A message with the commands and file operations that run although their work is over; empty without any."""
        left = [f"{program} (process {process.pid})" for program, process in self._alive()]
        left += [name for name, operation in self._file_operations if not operation.done()]
        if not left:
            return ""
        return (
            f"{', '.join(left[:4])} cannot be ended, as if waiting in the kernel for storage; "
            "check the storage of this client for stalled I/O"
        )

    async def in_thread(self, name: str, operation: Callable[[], T], limit_seconds: float | None = FILE_SECONDS) -> T:
        """Return the result of a file operation that may hang with its storage; `name` is its name in messages.

        After its time limit (PreparationError), or a few seconds after a cancellation, it counts as unended.
        """
        result: concurrent.futures.Future[T] = concurrent.futures.Future()

        def work() -> None:
            try:
                result.set_result(operation())
            except BaseException as error:  # noqa: BLE001 - the caller raises it
                result.set_exception(error)

        done = asyncio.wrap_future(result)
        pending = (other for other in self._file_operations if not other[1].done())
        self._file_operations = [*pending, (name, done)]
        # In a thread of its own, it keeps neither other operations waiting nor the agent from exiting.
        Thread(target=work, daemon=True).start()
        try:
            await asyncio.wait({done}, timeout=limit_seconds)
        except asyncio.CancelledError:
            # Otherwise asyncio would log its error.
            done.add_done_callback(asyncio.Future.exception)
            await asyncio.wait({done}, timeout=_KILL_SECONDS)
            raise
        if not done.done():
            done.add_done_callback(asyncio.Future.exception)
            remedy = "check the storage of this client for stalled I/O"
            raise PreparationError(f"{name} has not ended within {limit_seconds:g} s; {remedy}")
        return done.result()

    def _alive(self) -> list[tuple[str, asyncio.subprocess.Process]]:
        return [(program, process) for program, process in self._processes if process.returncode is None]

    def _note_start(self, program: str, process: asyncio.subprocess.Process) -> None:
        self._processes = [*self._alive(), (program, process)]

    def resolved(self, argv: tuple[str, ...]) -> tuple[str, ...]:
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
        gate: Gate | None = None,
        excused: Callable[[Output], bool] = lambda _: False,
    ) -> Output:
        """Run a command and its companions in its own directory; see `plimsoll.agent.process.run`.

        The first one that fails ends the others, and its output is returned. An `excused` output counts as a success.
        """
        runnable = [
            replace(single, argv=self.resolved(single.argv), environment=self.environment(single))
            for single in command.all
        ]
        running = [
            asyncio.create_task(
                run(
                    single,
                    directory=directory,
                    watches=() if number else watches,
                    limit_seconds=limit_seconds,
                    number=number,
                    started=partial(self._note_start, command.all[number].argv[0]),
                    gate=gate,
                )
            )
            for number, single in enumerate(runnable)
        ]
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
        return replace(first, parallel=tuple(others))

    async def version(self, tool: AnyTool) -> str:
        """Return the version of a tool's program; PreparationError if it cannot be run."""
        path = self._binaries.get(tool.program, tool.program)
        output = await run(Command(argv=(path, tool.version_argument)), directory=self.fresh_directory("version"))
        version = tool.version(output)
        if version is None:
            raise PreparationError(f"{path} cannot be run: {output.stderr.strip()}; install {tool.program}")
        return version[:128]

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
        """Run a server in its own empty directory until it ends; PreparationError if it fails or never listened.

        Once `is_serving` judges by its recent output that clients may connect, `ready` is awaited. With
        `ends_with_client`, a server that has listened may end with any exit code.
        """
        running = asyncio.create_task(
            self.run(command, directory, excused=lambda output: ends_with_client and is_serving(output.stdout))
        )
        # Output is recent for some seconds only, and a thousand servers take longer to start.
        starting = set(range(len(command.all)))
        try:
            while not running.done() and starting:
                await asyncio.wait({running}, timeout=0.1)
                starting = {number for number in starting if not is_serving(recent_output(directory, number))}
            has_served = not running.done()
            if has_served:
                await ready()
            check_step(await running, "the server", of=name)
        finally:
            running.cancel()
            await asyncio.wait({running})
        if not has_served:
            raise PreparationError(f"the server of {name} ended before any client could connect")


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


class StalledError(Exception):
    """A command has sent nothing for too long."""


class StallWatch:
    """Watches that a command that writes through librbd, which the kernel does not count, sends data."""

    def __init__(self, proc: Path = Path("/proc"), *, clock: Callable[[], float] = time.monotonic) -> None:
        self._proc, self._clock = proc, clock
        self._sent, self._sent_at = 0, clock()

    def look(self, pid: int) -> None:
        """Raise StalledError if the process has sent too little for too long. Call it about every second."""
        now = self._clock()
        sent: int | None = None
        with suppress(OSError, ValueError, IndexError):
            sent = sum(traffic.sent for traffic in interfaces(self._proc / str(pid)).values())
        if sent is None or abs(sent - self._sent) >= _STALL_BYTES:
            self._sent, self._sent_at = sent or 0, now
        if now - self._sent_at >= STALL_SECONDS:
            raise StalledError(f"has sent nothing for {STALL_SECONDS:.0f} s, and was killed")
