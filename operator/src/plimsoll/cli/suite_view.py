"""A suite in the terminal while a round is measured: a live picture, or a line per change elsewhere."""

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from plimsoll.cli.screen import LineLog, LivePicture, clock
from plimsoll.cli.suite_watched import WatchedActiveRound, WatchedSuite
from plimsoll.report.text import count_text

_BAR_COLUMNS = 32


def suite_view_on(console: Console, title: str) -> "SuiteScreen | SuiteLines":
    """Return the view that suits the console."""
    return SuiteScreen(console, title) if console.is_terminal else SuiteLines(console)


class SuiteLines(LineLog):
    """Prints every change once, with the time (UTC)."""

    def __init__(self, console: Console) -> None:
        """Print nothing yet."""
        super().__init__(console, "suite")

    def show(self, suite: WatchedSuite) -> None:
        """Print what has changed."""
        line = "  ".join(filter(None, (_status(suite), activity_text(suite), suite.run)))
        if line != self._last:
            self.note(line)
            self._last = line


class SuiteScreen(LivePicture[WatchedSuite]):
    """Shows a live picture of a suite and removes it at the end."""

    def __init__(self, console: Console, title: str) -> None:
        """Show nothing yet."""
        super().__init__(
            console,
            f"{title}: asking the cluster",
            lambda suite, now, trouble: suite_picture(title, suite, now, trouble=trouble),
        )


def suite_picture(title: str, suite: WatchedSuite, now: float, *, trouble: str = "") -> RenderableType:
    """Return the picture of a suite at a moment, in Unix seconds."""
    return Group(*_picture(title, suite, now, trouble))


def activity_text(suite: WatchedSuite) -> str:
    """Return what a suite does, in one line."""
    if suite.active is None:
        return suite.status.display.message
    children = suite.active.children
    done = f"{children.done} of {count_text(children.total, 'run')} done"
    current = f", {suite.active.current}" if suite.active.current else ""
    return f"round {suite.active.minute} ({suite.active.cause}): {done}{current}"


def _picture(title: str, suite: WatchedSuite, now: float, trouble: str) -> Iterator[RenderableType]:
    yield Text(f"{title}  ", style="bold").append(_status(suite), style="cyan")
    if suite.active is not None:
        yield _bar(suite.active, now)
    yield Text(activity_text(suite))
    if suite.run:
        yield Text(suite.run)
    if suite.obstacle:
        yield Text(suite.obstacle, style="yellow")
    if trouble:
        yield Text(f"Not up to date: {trouble}", style="red")


def _bar(active: WatchedActiveRound, now: float) -> RenderableType:
    children = active.children
    grid = Table.grid(padding=(0, 2, 0, 0))
    bar = ProgressBar(total=max(1, children.total), completed=children.done, width=_BAR_COLUMNS)
    elapsed = clock(max(0.0, now - active.start_time.timestamp()))
    grid.add_row(bar, Text(f"{children.done}/{children.total} runs"), Text(f"{elapsed} elapsed"))
    return grid


def _status(suite: WatchedSuite) -> str:
    return suite.status.display.status or "not seen by the operator yet"
