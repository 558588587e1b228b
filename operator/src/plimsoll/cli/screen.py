"""What views of a changing object share: a live picture in a terminal, or a line per change elsewhere."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from types import TracebackType
from typing import Generic, Self, TypeVar

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from plimsoll.api.status import format_time

_REFRESHES_PER_SECOND = 2

S = TypeVar("S")


class LivePicture(AbstractContextManager["LivePicture[S]"], Generic[S]):
    """Shows a live picture and removes it at the end."""

    def __init__(self, console: Console, waiting: str, draw: Callable[[S, float, str], RenderableType]) -> None:
        """Show a text until there is a state. `draw` gets the state, the time (Unix seconds) and why it is outdated."""
        self._waiting, self._draw = waiting, draw
        self._seen: S | None = None
        self._trouble = ""
        self._live = Live(
            console=console, transient=True, get_renderable=self._picture, refresh_per_second=_REFRESHES_PER_SECOND
        )

    def __enter__(self) -> Self:
        """Start the picture."""
        self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the picture."""
        self._live.stop()

    def show(self, seen: S) -> None:
        """Show this state from now on."""
        self._seen, self._trouble = seen, ""

    def trouble(self, problem: str) -> None:
        """Keep showing the last state, with the reason why it is not up to date."""
        self._trouble = problem

    def note(self, text: str) -> None:
        """Print a line above the picture."""
        self._live.console.print(Text(text), soft_wrap=True)

    def _picture(self) -> RenderableType:
        return Text(self._waiting) if self._seen is None else self._draw(self._seen, time.time(), self._trouble)


class LineLog(AbstractContextManager["LineLog"]):
    """Prints lines with the time (UTC)."""

    def __init__(self, console: Console, word: str) -> None:
        """Print nothing yet. `word` is what messages call the object."""
        self._console = console
        self._word = word
        self._last = ""

    def __enter__(self) -> Self:
        """Return the log."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Keep the printed lines."""

    def trouble(self, problem: str) -> None:
        """Print why the object cannot be read now."""
        if problem != self._last:
            self.note(f"the {self._word} cannot be read now: {problem}")
            self._last = problem

    def note(self, text: str) -> None:
        """Print a line."""
        self._console.print(Text(f"{format_time(datetime.now(UTC))}  {text}"), soft_wrap=True)


def clock(seconds: float) -> str:
    """Return a duration as hours, minutes and seconds: `1:05:00`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
