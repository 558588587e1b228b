"""A lasting connection to the monitors, in a process of its own: librados may hang, or end the process it is in."""

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from plimsoll.conductor.ceph.processes import end, start

_PROGRAM = Path(__file__).with_name("monitor_program.py")
_INTERPRETER = Path(sys.base_prefix) / "bin" / "python3"
"""The distribution's interpreter, which sees Ceph's modules; a virtual environment on top of it does not."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What `ceph` would exit with, write to standard error, and print."""

    code: int
    message: str
    output: bytes


class Monitors:
    """Runs `ceph` commands one after the other; `ceph` itself takes a quarter of a processor second for each."""

    def __init__(self, user: str) -> None:
        """Connect as `user` (without `client.`) with the first command."""
        self._user = user
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def ask(self, arguments: tuple[str, ...]) -> Answer:
        """Run a command.

        A command that fails or is cancelled ends the connection, and the next one makes another: a monitor knows the
        capabilities that a user had when it connected.

        Raises:
            OSError: the process cannot be started.
            EOFError: the process ended, or its answer is none.

        """
        async with self._turn:
            if self._process is not None and self._process.returncode is not None:
                await self._end()
            process = self._process = self._process or await start(
                (str(_INTERPRETER), "-P", str(_PROGRAM), self._user), has_input=True, logs_errors=True
            )
            answer = None
            try:
                answer = await _exchange(process, arguments)
            finally:
                if answer is None or answer.code:
                    await self._end()
            return answer

    async def close(self) -> None:
        """End the connection, if there is one; the next command makes another."""
        async with self._turn:
            await self._end()

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await end(process)


async def _exchange(process: asyncio.subprocess.Process, arguments: tuple[str, ...]) -> Answer:
    if process.stdin is None or process.stdout is None:
        raise EOFError
    try:
        process.stdin.write(json.dumps(arguments).encode() + b"\n")
        await process.stdin.drain()
        header = json.loads(await process.stdout.readuntil())
        output = await process.stdout.readexactly(header["bytes"])
        return Answer(header["code"], header["message"], output)
    except (ConnectionError, asyncio.LimitOverrunError, ValueError, LookupError, TypeError) as error:
        raise EOFError from error
