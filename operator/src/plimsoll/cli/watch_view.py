"""A run that is being watched: a picture on a terminal, a line for every change elsewhere."""

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.filesize import decimal
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from plimsoll.api.names import Verdict
from plimsoll.api.status import format_time
from plimsoll.cli.cluster import program
from plimsoll.cli.fitted import NONE, Column, FittedTable, text_of
from plimsoll.cli.source import RunInCluster
from plimsoll.cli.watched import Seen, SeenPoint, SeenTrial
from plimsoll.measure.rates import rate_text

_COLOUR = {Verdict.VALID: "green", Verdict.SUSPECT: "yellow", Verdict.INVALID: "red"}
_UNDER_WAY = "measuring"
_BAR_COLUMNS = 32
_REFRESHES_PER_SECOND = 2
_MEBIBYTE = 2**20
_LEAST_POINTS = 2


def view_on(console: Console, run: RunInCluster) -> "Screen | Lines":
    """Return the view that suits where it is shown."""
    return Screen(console, run) if console.is_terminal else Lines(console)


class Lines(AbstractContextManager["Lines"]):
    """Prints every change once, with the time (UTC)."""

    def __init__(self, console: Console) -> None:
        """Print nothing yet."""
        self._console = console
        self._said = ""
        self._points: dict[str, SeenPoint] = {}
        self._problems: Sequence[str] = ()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave what was printed."""

    def show(self, seen: Seen) -> None:
        """Print what has changed."""
        for point in seen.points:
            # The results of a run that had ended before are about to be shown as a whole.
            is_news = bool(self._said) or seen.ending is None
            if is_news and (point.iops or point.verdict) and point != self._points.get(point.name):
                self._print(_sentence(point))
            self._points[point.name] = point
        headline = _headline(seen)
        # Between two trials there is nothing to say.
        if headline != self._said and (seen.status.display.message or not self._said):
            self._print(headline)
            self._said = headline
        for problem in seen.problems:
            if problem not in self._problems:
                self._print(problem)
        self._problems = seen.problems

    def trouble(self, problem: str) -> None:
        """Print why nothing is seen."""
        if problem != self._said:
            self._print(f"nothing is seen now: {problem}")
            self._said = problem

    def _print(self, text: str) -> None:
        self._console.print(Text(f"{format_time(datetime.now(UTC))}  {text}"), soft_wrap=True)


class Screen(AbstractContextManager["Screen"]):
    """Shows one picture, which is gone afterwards."""

    def __init__(self, console: Console, run: RunInCluster) -> None:
        """Show nothing yet."""
        self._name = str(run)
        self._seen: Seen | None = None
        self._trouble = ""
        self._live = Live(
            console=console, transient=True, get_renderable=self._picture, refresh_per_second=_REFRESHES_PER_SECOND
        )

    def __enter__(self) -> Self:
        """Begin to show."""
        self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the picture away."""
        self._live.stop()

    def show(self, seen: Seen) -> None:
        """Show this from now on."""
        self._seen, self._trouble = seen, ""

    def trouble(self, problem: str) -> None:
        """Show the last that was seen, and why it is not newer."""
        self._trouble = problem

    def _picture(self) -> RenderableType:
        if self._seen is None:
            return Text(f"{self._name}: asking the cluster")
        return Picture(self._name, self._seen, time.time(), self._trouble)


class Picture:
    """A run at a moment, in Unix seconds, as large as the console permits."""

    def __init__(self, name: str, seen: Seen, now: float, trouble: str = "") -> None:
        """Draw this."""
        self._name = name
        self._seen = seen
        self._now = now
        self._trouble = trouble

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        head = Group(*self._head(), Text())
        yield head
        if self._seen.points:
            room = max(0, console.height - len(console.render_lines(head, options)) - 1)
            # How many lines a point takes depends on the width, so the most that fit are found by trying.
            for count in range(min(room, len(self._seen.points)), 0, -1):
                points = Group(*self._points(count))
                if count <= _LEAST_POINTS or len(console.render_lines(points, options)) <= room:
                    yield points
                    break

    def _head(self) -> Iterator[RenderableType]:
        seen = self._seen
        status = "being deleted" if seen.is_going else seen.status.display.status or "not seen by the operator yet"
        yield Text(f"{self._name}  ", style="bold").append(status, style="cyan")
        yield from self._bar()
        yield Text(self._doing())
        if live := _live(seen):
            yield Text(live)
        for problem in seen.problems:
            yield Text(problem, style="yellow")
        if seen.status.points.invalid:
            yield Text(f"{seen.status.points.invalid} points are Invalid", style="red")
        if self._trouble:
            yield Text(f"This is not up to date: {self._trouble}", style="red")

    def _doing(self) -> str:
        trial, message = self._seen.trial, self._seen.status.display.message
        return _trial(trial, self._now) if trial is not None else message or _phase(self._seen)

    def _bar(self) -> Iterator[RenderableType]:
        done, total = self._seen.trials
        if not total:
            return
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_row(
            ProgressBar(total=total, completed=done, width=_BAR_COLUMNS),
            Text(f"{done}/{total} trials"),
            Text(self._left()),
        )
        yield grid

    def _left(self) -> str:
        end = self._seen.status.estimated_completion_time
        if end is None or self._seen.ending is not None:
            return ""
        seconds = end.timestamp() - self._now
        if seconds < 0:
            return f"late by {_clock(-seconds)}"
        return f"about {_clock(seconds)} left"

    def _points(self, room: int) -> Iterator[RenderableType]:
        """Yield as many points as there is room for, around the one that is being measured."""
        points, trial = self._seen.points, self._seen.trial
        current = trial.key.point if trial is not None else ""
        middle = next((number for number, point in enumerate(points) if point.name == current), 0)
        first = max(0, min(middle - room // 2, len(points) - room))
        shown = [_Row(point=point, is_current=point.name == current) for point in points[first : first + room]]
        yield FittedTable(rows=shown, layouts=_LAYOUTS, missed=_NUMBERS, remedy="kubectl get bres")
        if len(shown) < len(points):
            left_out = len(points) - len(shown)
            yield Text(f"and {left_out} points more: {program()} results {self._name}", style="dim")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A point, and whether it is the one being measured."""

    point: SeenPoint
    is_current: bool


def _headline(seen: Seen) -> str:
    done, total = seen.trials
    display = seen.status.display
    status = "being deleted" if seen.is_going else display.status or "not seen by the operator yet"
    words = (status, f"{done}/{total}" if total else "", display.message)
    return "  ".join(filter(None, words))


def _sentence(point: SeenPoint) -> str:
    words = (
        f"{point.iops} IOPS {point.operation}" if point.iops else "",
        f"p99 {point.p99}" if any(map(str.isdecimal, point.p99)) else "",
        f"{point.trials} trials" if point.trials else "",
        f"{point.verdict} {point.reason}".strip(),
    )
    return f"point {point.name} ({point.label}): {', '.join(filter(None, words))}"


def _trial(trial: SeenTrial, now: float) -> str:
    attempt = f", attempt {trial.key.attempt + 1}" if trial.key.attempt else ""
    clients = f"{len(trial.clients)} client{'' if len(trial.clients) == 1 else 's'}"
    length = trial.ends_at - trial.starts_at
    passed = f"{min(max(0.0, now - trial.starts_at), length):.0f} of {length:.0f} s"
    return f"pass {trial.key.pass_number + 1}{attempt}: {trial.key.point} ({trial.label}), {clients}, {passed}"


def _phase(seen: Seen) -> str:
    state = seen.state
    if state is None:
        return ""
    prefill = state.prefill
    if prefill.total_bytes and prefill.done_bytes < prefill.total_bytes:
        done, total = (decimal(size, separator=" ") for size in (prefill.done_bytes, prefill.total_bytes))
        return f"prefilling: {done} of {total}"
    return state.message


def _live(seen: Seen) -> str:
    """Return what the tools say while they run."""
    live, trial = seen.state.live if seen.state else None, seen.trial
    if live is None or trial is None:
        return ""
    rates = (
        f"{one.operation} {rate_text(one.iops, None)} IOPS, {one.bytes_per_second / _MEBIBYTE:,.1f} MiB/s"
        for one in live.rates
    )
    said = "" if live.clients == len(trial.clients) else f" ({live.clients} of {len(trial.clients)} clients)"
    return f"now: {'; '.join(rates)}{said}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"


def _name(row: _Row) -> Text:
    return Text(row.point.name, style="bold" if row.is_current else "")


def _verdict(row: _Row) -> Text:
    if row.is_current:
        return Text(_UNDER_WAY, style="cyan")
    return Text(row.point.verdict or NONE, style=_COLOUR.get(row.point.verdict, "dim"))  # type: ignore[call-overload]


def _stacked(row: _Row) -> Text:
    text = _name(row).append(f"\n{row.point.label}", style="not bold dim")
    return text.append(f"  {row.point.reason}", style="not bold yellow") if row.point.reason else text


_CLIENTS = Column[_Row](heading="Clients", cell=text_of(lambda row: row.point.clients), right=True)
_OPERATION = Column[_Row](heading="Op", cell=text_of(lambda row: row.point.operation or NONE))
_IOPS = Column[_Row](heading="IOPS ± 95 %", cell=text_of(lambda row: row.point.iops or NONE), right=True)
_P99 = Column[_Row](heading="p99", cell=text_of(lambda row: row.point.p99 or NONE), right=True)
_TRIALS = Column[_Row](heading="Trials", cell=text_of(lambda row: row.point.trials or NONE), right=True)
_VERDICT = Column[_Row](heading="Verdict", cell=_verdict)
_REASON = Column[_Row](heading="Because", cell=text_of(lambda row: row.point.reason))
_NUMBERS = (_CLIENTS, _OPERATION, _IOPS, _P99, _TRIALS, _VERDICT)
_STACKED = Column[_Row](heading="Point", cell=_stacked, folded=True)
_LAYOUTS = (
    (
        Column[_Row](heading="Point", cell=_name, folded=True),
        Column[_Row](heading="Parameters", cell=text_of(lambda row: row.point.label), folded=True),
        *_NUMBERS,
        _REASON,
    ),
    (_STACKED, *_NUMBERS),
    (_STACKED, _IOPS, _P99, _TRIALS, _VERDICT),
    (_STACKED, _IOPS, _VERDICT),
)
