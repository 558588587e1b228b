"""Starts and ends Ceph's commands, which hang where others fail."""

import asyncio
import os
import signal
from contextlib import suppress

_KILLED_SECONDS = 5.0


async def start(argv: tuple[str, ...], *, has_input: bool, logs_errors: bool = False) -> asyncio.subprocess.Process:
    """Start a command in a session of its own, with pipes for output and errors, and for its input if it has one.

    With `logs_errors` its errors go to this program's.

    Raises:
        OSError: it cannot be started.

    """
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE if has_input else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=None if logs_errors else asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        # Otherwise a command that is just starting would outlive its caller.
        with suppress(OSError):
            await end(await starting)
        raise


async def end(process: asyncio.subprocess.Process) -> None:
    """Kill a command that still runs, with its children, and close its output.

    A cancellation waits until this is done, which is quick, because an unreaped process stays a zombie.
    """
    ending = asyncio.ensure_future(_kill(process))
    try:
        await asyncio.shield(ending)
    except asyncio.CancelledError:
        await ending
        raise


async def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    # A process in an uninterruptible wait survives the signal; do not wait for it.
    with suppress(TimeoutError):
        async with asyncio.timeout(_KILLED_SECONDS):
            await process.communicate()
