"""The API server's clock, read from the `Date` header of its answers.

Objects carry the API server's times. Comparing them with the clock of the operator's node, which may be wrong by
minutes, would end runs too early or too late.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_RESOLUTION_SECONDS = 1.0
"""Resolution of the header."""


class ApiClock:
    """The API server's time.

    Every answer bounds the offset between the server's clock and this machine's monotonic one to about a second, and
    all answers together bound it more tightly. An answer that contradicts them means that a clock was set, and
    replaces them.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Start without an answer."""
        self._monotonic = monotonic
        self._ahead: tuple[float, float] | None = None

    def read(self, date: str, asked: float, answered: float) -> None:
        """Read the `Date` of an answer, given the monotonic times of its request and its arrival."""
        try:
            server = parsedate_to_datetime(date).timestamp()
        except ValueError:
            return
        least, most = server - answered, server + _RESOLUTION_SECONDS - asked
        if self._ahead is not None and max(least, self._ahead[0]) <= min(most, self._ahead[1]):
            least, most = max(least, self._ahead[0]), min(most, self._ahead[1])
        self._ahead = least, most

    def now(self) -> datetime:
        """Return the API server's time; this machine's before the first answer."""
        if self._ahead is None:
            return datetime.now(UTC)
        return datetime.fromtimestamp(self._monotonic() + sum(self._ahead) / 2, UTC)
