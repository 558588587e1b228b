"""`plimsoll watch`, and how a run or a suite looks while it measures: a live picture, or a line per change."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime, timedelta
from typing import Generic, Self, TypeVar

import click
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from plimsoll.api.line import MOST_PROBES, MOST_STORM_PROBES, STORM_SUFFIX
from plimsoll.api.names import ConditionStatus
from plimsoll.api.reasons.reason import Reason
from plimsoll.api.reasons.suites import SuiteReason
from plimsoll.api.status import CurrentTrial, RunState, format_time
from plimsoll.cli import Exit, watched
from plimsoll.cli.cluster import ask, cluster_options, program
from plimsoll.cli.options import strict_option, timeout_option
from plimsoll.cli.results import exit_of_numbers, show_conclusion, show_results, show_rounds
from plimsoll.cli.source import SUITE, InCluster, find_in_cluster, results_of_run
from plimsoll.cli.suite_rounds import exit_code, read_rounds
from plimsoll.cli.tables import MEASURING, Terminal, fitted, print_line
from plimsoll.measure.line.summary import current_text
from plimsoll.measure.rates import rate_text
from plimsoll.measure.text import count_text, size_text
from plimsoll.report.view import NONE, Column, bytes_rate_text
from plimsoll.suite.rounds.observed import JUDGED
from plimsoll.suite.rounds.turns import REQUEST_ROUND

_WAITING = "asking the cluster"
BAR_COLUMNS = 32
_LEAST_POINTS = 2

S = TypeVar("S", bound=watched.WatchedRun | watched.WatchedSuite)


class LivePicture(AbstractContextManager["LivePicture"]):
    """Shows a live picture of a run and removes it at the end."""

    def __init__(self, console: Console, title: str, source: str, *, waiting: str) -> None:
        """Show `waiting` until there is a state; `source` names the run for `plimsoll results`."""
        self._run: watched.WatchedRun | None = None
        self._trouble = ""

        def picture() -> RenderableType:
            if self._run is None:
                return Text(f"{title}: {waiting}")
            return Picture(title, self._run, time.time(), self._trouble, source=source)

        # Redirected streams would show styles that a text asks for.
        self._live = Live(
            console=console,
            transient=True,
            get_renderable=picture,
            refresh_per_second=2,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, run: watched.WatchedRun) -> None:
        self._run, self._trouble = run, ""

    def trouble(self, problem: str) -> None:
        """Keep showing the last state, with the reason why it is not up to date."""
        self._trouble = problem

    def note(self, text: str) -> None:
        print_line(self._live.console, text)


class Lines(AbstractContextManager["Lines[S]"], Generic[S]):
    """Prints every change once, with the time (UTC)."""

    def __init__(self, console: Console, word: str) -> None:
        """Print nothing yet. `word` is what messages call the object."""
        self._console, self._word = console, word
        self._last = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, seen: S) -> None:
        if seen.headline != self._last:
            self._last = seen.headline
            self.note(self._last)

    def trouble(self, problem: str) -> None:
        """Print why the object cannot be read now."""
        if problem != self._last:
            self._last = problem
            self.note(f"the {self._word} cannot be read now: {problem}")

    def note(self, text: str) -> None:
        print_line(self._console, f"{format_time(datetime.now(UTC))}  {text}")


def clock(seconds: float) -> str:
    return str(timedelta(seconds=max(0, round(seconds))))


def view_on(console: Console, title: str, source: str, *, waiting: str) -> "LivePicture | RunLines":
    return LivePicture(console, title, source, waiting=waiting) if console.is_terminal else RunLines(console)


class RunLines(Lines[watched.WatchedRun]):
    """Prints every change once, with its points."""

    def __init__(self, console: Console) -> None:
        super().__init__(console, "run")
        self._points: dict[str, watched.WatchedPoint] = {}
        self._problems: Sequence[str] = ()

    def show(self, run: watched.WatchedRun) -> None:
        # The caller prints all results of a run that ended before.
        is_new = bool(self._last) or run.ending is None
        for point in run.points:
            if is_new and (point.iops or point.line or point.verdict) and point != self._points.get(point.name):
                parts = (
                    f"{point.iops} IOPS {point.operation}" if point.iops else "",
                    f"p99 {point.p99}" if any(map(str.isdecimal, point.p99)) else "",
                    f"line {point.line}" if point.line else "",
                    f"{point.trials} {'probes' if point.line else 'trials'}" if point.trials else "",
                    f"{point.verdict} {point.reason}".strip(),
                )
                self.note(f"point {point.name} ({point.label}): {', '.join(filter(None, parts))}")
            self._points[point.name] = point
        # Between two trials there is no message.
        if run.message or not self._last:
            super().show(run)
        for problem in run.problems:
            if problem not in self._problems:
                self.note(problem)
        self._problems = run.problems


class SuiteLines(Lines[watched.WatchedSuite]):
    """Prints every change once, and those of the run that is being measured, with its points."""

    def __init__(self, console: Console) -> None:
        super().__init__(console, "suite")
        self._run = RunLines(console)
        self._current: str | None = None

    def show(self, suite: watched.WatchedSuite) -> None:
        current = suite.status.round.current if suite.status.round else None
        if current != self._current:
            self._run, self._current = RunLines(self._console), current
        if suite.shown_status != SuiteReason.IDLE:
            super().show(suite)
        elif not self._last:
            # The operator may not have seen the request yet.
            self._last = "no round is active"
            self.note(self._last)
        if suite.run is not None:
            self._run.show(suite.run)


@dataclass(frozen=True, slots=True)
class Picture:
    """A run at a moment, in Unix seconds, in the size that fits the console."""

    title: str
    run: watched.WatchedRun
    now: float
    trouble: str = ""
    _: KW_ONLY
    source: str = ""  # how `plimsoll results` finds it, if not by its title

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        head = Group(*self._head(), Text())
        yield head
        if self.run.points:
            room = max(0, console.height - len(console.render_lines(head, options)) - 1)
            # The number of lines per point depends on the width, so the number of points that fit is found by trying.
            for count in range(min(room, len(self.run.points)), 0, -1):
                points = Group(*self._points(count))
                if count <= _LEAST_POINTS or len(console.render_lines(points, options)) <= room:
                    yield points
                    break

    def _head(self) -> Iterator[RenderableType]:
        run = self.run
        yield Text(f"{self.title}  ", style="bold").append(run.shown_status, style="cyan")
        done, total = run.trials
        if total:
            times: list[str] = []
            start, end = run.start, run.estimated_end
            if run.ending is None and start is not None:
                times.append(f"{clock(self.now - start.timestamp())} elapsed")
            if run.ending is None and end is not None:
                left = end.timestamp() - self.now
                times.append(f"late by {clock(-left)}" if left < 0 else f"about {clock(left)} left")
            grid = Table.grid(padding=(0, 2, 0, 0))
            share = done / total if run.share is None else run.share
            bar = ProgressBar(total=1.0, completed=share, width=BAR_COLUMNS)
            grid.add_row(bar, Text(f"{done}/{total} trials"), Text(", ".join(times)))
            yield grid
        trial, activity = run.trial, run.message
        if trial is not None:
            length = trial.ends_at - trial.starts_at
            elapsed = f"{min(max(0.0, self.now - trial.starts_at), length):.0f} of {length:.0f} s"
            words = trial_text(trial, run.passes, is_probe=run.is_searching)
            activity = f"{words}, {count_text(len(trial.clients), 'client')}, {elapsed}"
        elif not activity and run.state:
            activity = activity_text(run.state)
        yield Text(activity)
        if run.state and (live := run.state.live) and trial:
            rates = [
                f"{rate.operation} {rate_text(rate.iops)} IOPS, {bytes_rate_text(rate.bytes_per_second)}"
                for rate in live.rates
            ]
            part = "" if live.clients == len(trial.clients) else f" ({live.clients} of {len(trial.clients)} clients)"
            yield Text(f"now: {'; '.join(rates)}{part}")
        for problem in run.problems:
            yield Text(problem, style="yellow")
        if run.invalid:
            yield Text(f"{count_text(run.invalid, 'point')} Invalid", style="red")
        if self.trouble:
            yield Text(f"Not up to date: {self.trouble}", style="red")

    def _points(self, room: int) -> Iterator[RenderableType]:
        points, trial = self.run.points, self.run.trial
        current = trial.key.point if trial is not None else ""
        middle = next((number for number, point in enumerate(points) if point.name == current), 0)
        first = max(0, min(middle - room // 2, len(points) - room))
        shown = points[first : first + room]
        results = f"{program()} results {self.source or self.title}"
        yield fitted(_columns(shown, current), shown, remedy=results)
        if len(shown) < len(points):
            yield Text(f"and {len(points) - len(shown)} more points: {results}", style="dim")


def trial_text(trial: CurrentTrial, passes: int, *, is_probe: bool) -> str:
    """Return a trial in one line: its pass or probe and its attempt, counted from 1, and its point."""
    of_all = f"/{passes}" if passes else ""
    most = MOST_STORM_PROBES if trial.key.point.endswith(STORM_SUFFIX) else MOST_PROBES
    number = current_text(trial.key.pass_number, most) if is_probe else f"pass {trial.key.pass_number + 1}{of_all}"
    attempt = f", attempt {trial.key.attempt + 1}" if trial.key.attempt else ""
    return f"{number}{attempt}: {trial.key.point} ({trial.label})"


def activity_text(state: RunState) -> str:
    if state.message:
        return state.message
    prefill = state.prefill
    if prefill.done_bytes < prefill.total_bytes:
        done, total = (size_text(size) for size in (prefill.done_bytes, prefill.total_bytes))
        return f"prefilling: {done} of {total}"
    return state.phase.lower()


def _columns(points: Sequence[watched.WatchedPoint], current: str) -> Sequence[Column[watched.WatchedPoint]]:
    """Return the columns: rates of points measured at one load, and lines of searches, as far as there are such."""

    def verdict(point: watched.WatchedPoint) -> str:
        return MEASURING if point.name == current else point.verdict or NONE

    column = Column[watched.WatchedPoint]
    searches = [bool(point.line) for point in points]
    rates = (
        column("Op", lambda point: point.operation or None, priority=2),
        column("IOPS ± 95 %", lambda point: point.iops or None, right=True),
        column("p99", lambda point: point.p99 or None, right=True, priority=1),
    )
    return (
        column("Point", lambda point: point.name, stacked=True),
        column("Parameters", lambda point: point.label, stacked=True),
        column("Clients", lambda point: point.clients, right=True, priority=2),
        *(() if all(searches) else rates),
        *((column("Line", lambda point: point.line or None, right=True),) if any(searches) else ()),
        column("Trials", lambda point: point.trials or None, right=True, priority=1),
        column("Verdict", verdict, mark=verdict),
        column("Reason", lambda point: point.reason, stacked=True),
    )


@click.command(short_help="Follow a run or a suite in a cluster to its results.")
@click.argument("source", metavar="RUN|bsuite/SUITE")
@click.option(
    "--round",
    "request",
    metavar="TEXT",
    help=f"For a suite: follow the round that annotation {REQUEST_ROUND}=TEXT requests, even before it starts.",
)
@timeout_option("Stop after this time")
@click.option("-q", "--quiet", is_flag=True, help="Print only how it ended; for scripts and pipelines.")
@strict_option
@cluster_options
def command(*, source: str, request: str | None, timeout: int | None, quiet: bool, strict: bool) -> None:
    """Follow a run or a round of a suite in a cluster until it has ended, and show its progress and its results.

    RUN and SUITE are NAME or NAMESPACE/NAME. A terminal shows a live view of a run; other outputs, and suites, get a
    line for every change. Watching does not affect the run or the suite, and can be stopped and started again at any
    time.

    For a search for the line, it shows the interval as it narrows. A line that is only a bound, because the search
    ended with NeverBroke or BrokenAtFirst, is a Valid result.

    The round of a suite is the active one, or else the one that is due because of a change or a request, or else the
    last one. If a change replaces the round, its successor is followed.

    Exits with 0 if the run succeeded, or the round shows no regression or was accepted; 1 if the run failed or the
    round was not evaluated; 3 if the round regressed; 4 if it is inconclusive; otherwise 5 if a number is Invalid; 6 if
    the run or the round continues after --timeout; 130 if interrupted.
    """
    place = find_in_cluster(source)
    if request == "":
        raise click.UsageError("--round is empty, and an empty annotation requests nothing; name a text")
    if request is not None and place.kind != SUITE:
        raise click.UsageError(f"--round is for suites; write bsuite/{source} if you mean a suite")
    sys.exit(watch(place, timeout, request=request, quiet=quiet, strict=strict))


def watch(
    place: InCluster, timeout: int | None, *, request: str | None = None, quiet: bool = False, strict: bool = False
) -> Exit:
    if place.kind == SUITE:
        return _watch_round(place, request, timeout, quiet=quiet, strict=strict)
    return _watch_run(place, timeout, quiet=quiet, strict=strict)


def _watch_run(place: InCluster, timeout: int | None, *, quiet: bool, strict: bool) -> Exit:
    console = Terminal()
    view = nullcontext() if quiet else view_on(console, str(place), str(place), waiting=_WAITING)
    with view as shown:
        following = watched.Following(place, shown)
        last = watched.follow(following, timeout)
    if isinstance(last, Exit):
        return _not_ended(f"Run {place}", following.last, place, last)
    if not quiet and last.points:
        results = ask(place.access, lambda kube: results_of_run(kube, place.namespace, place.name))
        if any(point.iops or point.line for point in last.points):
            show_results(console, results)
    if last.ending is None:
        raise ValueError("an active run has no ending")
    succeeded = last.ending.status is ConditionStatus.TRUE
    words = "ended" if succeeded else "did not succeed"
    if last.leftovers:
        click.echo(f"Cleanup: {last.leftovers}")
    click.echo(f"Run {place} {words}: {last.ending.reason}: {last.ending.message}")
    if last.ending.reason in {Reason.SUSPECT, Reason.INVALID_RESULTS}:
        return Exit.NOT_VALID if strict or not succeeded else Exit.DONE
    return Exit.DONE if succeeded else Exit.ERROR


def _watch_round(place: InCluster, request: str | None, timeout: int | None, *, quiet: bool, strict: bool) -> Exit:
    console = Terminal()
    view = nullcontext() if quiet else SuiteLines(console)
    with view as shown:
        following = watched.SuiteFollowing(place, shown, watched.AwaitedRound(request))
        last = watched.follow(following, timeout)
    ending = following.ending
    if isinstance(last, Exit):
        return _not_ended(f"The round of suite {place}", following.last, place, last)
    if ending is None or isinstance(ending, str):
        click.echo(f"Suite {place}: {ending}", err=True)
        return Exit.ERROR
    code, rounds = exit_code(ending), None
    # The numbers decide only where the verdict does not.
    if ending.verdict in JUDGED and not (quiet and code):
        rounds = ask(place.access, lambda kube: read_rounds(kube, place))
        if not quiet:
            show_rounds(console, rounds)
    click.echo(f"Round {ending.name} of suite {place} ended: {ending.ending}")
    if rounds is not None and not quiet:
        show_conclusion(rounds)
    return code or exit_of_numbers(rounds.last_results if rounds else (), strict=strict)


def _not_ended(what: str, last: str, place: InCluster, why: Exit) -> Exit:
    course = " ".join(last.split())
    click.echo(f"{what} has not ended yet: {course}; `{program()} watch {place.source}` follows it again", err=True)
    return why
