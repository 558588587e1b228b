"""What kube-burner prints: lines of logrus, and those of its Kubernetes client.

Source: kube-burner 2.7.3, client-go 0.34 (`request.go`).
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from plimsoll.tools.command import Output
from plimsoll.tools.reading import printable

_LINE = re.compile(r'level=(?P<level>\w+) msg="(?P<message>(?:[^"\\]|\\.)*)"', re.ASCII)
_THROTTLED = re.compile(r"Waited for (?P<time>[\d.]+m?s) due to (?P<side>client|server)-side throttling", re.ASCII)
_REFUSED = "too many requests"
_FAILURES = frozenset({"error", "fatal", "panic"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """What kube-burner printed.

    Attributes:
        errors: its messages of the level `error` and above.
        throttled: for each request that had to wait: for which side, and how long.
        refused: requests that the API server refused as too many.

    """

    errors: Sequence[str]
    throttled: Sequence[tuple[str, str]]
    refused: int

    @classmethod
    def of(cls, output: Output) -> Self:
        """Read the log, which is on one of the two outputs."""
        text = f"{output.stdout}\n{output.stderr}"
        lines = [(match["level"], printable(match["message"])) for match in _LINE.finditer(text)]
        return cls(
            errors=[*dict.fromkeys(message for level, message in lines if level in _FAILURES)],
            throttled=[(match["side"], match["time"]) for match in _THROTTLED.finditer(text)],
            refused=text.lower().count(_REFUSED),
        )

    def throttling(self) -> Iterator[str]:
        """Yield how often requests were slowed down, and by whom."""
        for side, count in sorted(Counter(side for side, _ in self.throttled).items()):
            longest = max((time for one, time in self.throttled if one == side), key=_seconds)
            yield f"{count} API requests waited for {side}-side throttling, one of them {longest}"
        if self.refused:
            yield f"the API server refused {self.refused} requests as too many"


def _seconds(time: str) -> float:
    """Return the seconds of `1.5s` or `800ms`; 0 of another text."""
    number, factor = (time[:-2], 1e-3) if time.endswith("ms") else (time[:-1], 1.0)
    try:
        return float(number) * factor
    except ValueError:
        return 0.0
