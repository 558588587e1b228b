"""The termination message of a program in a pod, shown by `kubectl describe` and the operator."""

import logging
from pathlib import Path

MAX_BYTES = 4096
"""Source: Kubernetes, the maximum length of a termination message."""

_log = logging.getLogger(__name__)


class LastError(logging.Handler):
    """Remembers the last logged error."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        super().__init__(level=logging.ERROR)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Remember a message."""
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
