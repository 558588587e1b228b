"""The API server's clock, read from the `Date` header of its answers.

Objects carry times of the API server. Compared with the clock of the operator's node, which may be wrong by minutes,
they would end runs too early or too late.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_RESOLUTION_SECONDS = 1.0
"""Of the header, which is cut to whole seconds."""


class ApiClock:
    """The API server's time.

    Every answer says within about a second what the server's clock is ahead of this machine's monotonic one. All
    answers together say it more exactly; one that contradicts them means that a clock was set, and counts alone.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Know nothing yet."""
        self._monotonic = monotonic
        self._ahead: tuple[float, float] | None = None

    def read(self, date: str, asked: float, answered: float) -> None:
        """Take the `Date` of an answer, and when its request began and it came, by the monotonic clock."""
        try:
            server = parsedate_to_datetime(date).timestamp()
        except ValueError:
            return
        least, most = server - answered, server + _RESOLUTION_SECONDS - asked
        if self._ahead is not None and max(least, self._ahead[0]) <= min(most, self._ahead[1]):
            least, most = max(least, self._ahead[0]), min(most, self._ahead[1])
        self._ahead = least, most

    def now(self) -> datetime:
        """Return the API server's time; before its first answer this machine's."""
        if self._ahead is None:
            return datetime.now(UTC)
        return datetime.fromtimestamp(self._monotonic() + sum(self._ahead) / 2, UTC)
