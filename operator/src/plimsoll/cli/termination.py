"""The last words of a program in a pod: what `kubectl describe` and the operator show of why it ended."""

import logging
from pathlib import Path

MAX_BYTES = 4096
"""Source: Kubernetes, the longest termination message of a container."""

_log = logging.getLogger(__name__)


class LastError(logging.Handler):
    """Remembers the last error that was logged."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        super().__init__(level=logging.ERROR)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Remember a message."""
        self.text = record.getMessage()


def write_last_words(path: Path | None, reason: str) -> None:
    """Write a reason on one line, if there is a place for it. A place that takes none is no failure of its own."""
    if path is None:
        return
    line = " ".join(reason.split()).encode()[:MAX_BYTES]
    try:
        path.write_bytes(line)
    except OSError as error:
        _log.warning("the reason cannot be left in %s: %s", path, error.strerror)
