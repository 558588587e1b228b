"""How a program in a pod logs, and how it ends: on request, and with a message for `kubectl describe`."""

import asyncio
import logging
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

MAX_BYTES = 4096  # Source: Kubernetes, the maximum length of a termination message
T = TypeVar("T")

_log = logging.getLogger(__name__)


def log_to_stderr() -> None:
    """Log with times and levels."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")


def run_until_stopped(work: Coroutine[Any, Any, T]) -> T | None:
    """Return the result of `work`; None if SIGTERM or SIGINT has cancelled it, as they do once it has started."""

    async def run() -> T | None:
        task = asyncio.ensure_future(work)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        await asyncio.wait({task})
        return None if task.cancelled() else task.result()

    return asyncio.run(run())


class LastError(logging.Handler):
    """Remembers the last logged error."""

    text = ""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR:
            self.text = record.getMessage()


def write_termination_message(path: Path | None, reason: str) -> None:
    """Write a reason on one line if there is a file for it; a failure to write is only logged."""
    if path is None:
        return
    line = " ".join(reason.split()).encode()[:MAX_BYTES]
    try:
        path.write_bytes(line)
    except OSError as error:
        _log.warning("cannot write the termination message to %s: %s", path, error.strerror)
