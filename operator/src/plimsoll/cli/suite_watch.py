"""`plimsoll suite watch` and `suite wait`: a round of a suite in a cluster, its view, and how it ends."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from pydantic import ValidationError
from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from plimsoll.api.names import ConditionStatus, SuiteConditionType
from plimsoll.api.reasons.suites import SuiteReason
from plimsoll.api.status import SuiteCondition
from plimsoll.api.suite_status import (
    MAX_ANNOTATION_CHARACTERS,
    BenchmarkSuiteStatus,
    EndedRound,
    RoundVerdict,
    SuiteDisplay,
    round_name,
)
from plimsoll.cli.cluster import ask, cluster_options, program
from plimsoll.cli.options import timeout_option
from plimsoll.cli.source import RUN, SUITE, InCluster, find_in_cluster
from plimsoll.cli.suite_results import show_rounds
from plimsoll.cli.suite_rounds import EXIT_NOT_EVALUATED, exit_code, read_rounds
from plimsoll.cli.tables import Terminal
from plimsoll.cli.watch import BAR_COLUMNS, LineLog, LivePicture, clock
from plimsoll.cli.watched import POLL_SECONDS, Display, Polling, WatchedDisplay, follow, read_leniently
from plimsoll.measure.text import count_text
from plimsoll.suite.rounds.baseline import REQUEST_ROUND
from plimsoll.suite.rounds.observed import JUDGED

if TYPE_CHECKING:
    from plimsoll.kube.client import AioKube


EXIT_NOT_ENDED = 5

Ending = EndedRound | str  # how waiting for a round ended: the round, or why there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedSuite:
    """A suite at one moment."""

    status: BenchmarkSuiteStatus
    # Text of the annotation that requests a round, as far as the status remembers it; empty if absent.
    request: str = ""
    is_current: bool = True  # whether the operator has seen the last change of the specification
    run: str = ""  # progress of the current run; empty without one, or if it cannot be read

    @property
    def is_due(self) -> bool:
        """Whether a round that has not started yet is due, except by the schedule."""
        is_requested = self.request not in {"", self.status.requested_round or ""}
        return not self.is_current or is_requested or self.condition(SuiteConditionType.RECONCILING) is not None

    @property
    def obstacle(self) -> str:
        """Return why the suite cannot measure until someone intervenes; empty if it can."""
        stalled = self.condition(SuiteConditionType.STALLED)
        # A suite that is stalled because of its gate measures nevertheless.
        if stalled is None or stalled.reason == SuiteReason.REGRESSED or not self.is_current:
            return ""
        return f"{stalled.reason}: {stalled.message}"

    def condition(self, kind: SuiteConditionType) -> SuiteCondition | None:
        """Return a condition that is True; None otherwise."""
        conditions = (condition for condition in self.status.conditions if condition.type is kind)
        return next((condition for condition in conditions if condition.status is ConditionStatus.TRUE), None)


def watched_suite(suite: Mapping[str, Any], run: Mapping[str, Any] | None = None) -> WatchedSuite:
    """Read a suite, and the display of the run that is being measured; exits if the status cannot be read."""
    metadata = suite["metadata"]
    try:
        status = BenchmarkSuiteStatus.model_validate(suite.get("status") or {}, extra="ignore")
    except ValidationError as error:
        raise click.ClickException(
            f"the status of suite {metadata['namespace']}/{metadata['name']} cannot be read; is it of a later version "
            f"than this program? {error}"
        ) from error
    display = read_leniently(WatchedDisplay, ((run or {}).get("status") or {}).get("display") or {})
    progress = f"{display.progress} trials" if display.progress else ""
    return WatchedSuite(
        status=status,
        request=(metadata.get("annotations") or {}).get(REQUEST_ROUND, "")[:MAX_ANNOTATION_CHARACTERS],
        is_current=status.observed_generation == metadata.get("generation", status.observed_generation),
        run="  ".join(filter(None, (display.status, progress, display.message))),
    )


class AwaitedRound:
    """The round that a user waits for: the one that answers a request, or else the active or due one, or the last one.

    A round that a change of the suite abandons is replaced by the round of that change.
    """

    def __init__(self, request: str | None = None) -> None:
        self._request = None if request is None else request[:MAX_ANNOTATION_CHARACTERS]
        self._minute: int | None = None

    def ending(self, suite: WatchedSuite) -> Ending | None:
        """Return how the round ended; None while it is due or being measured."""
        status, request = suite.status, self._request
        if self._minute is None and request is not None and status.requested_round == request:
            # None if the status does not have the round that answers the request.
            self._minute = status.requested_minute
        if self._minute is not None and (end := self._ended(suite, self._minute)) is not None:
            return end
        if suite.obstacle:
            return suite.obstacle
        if self._minute is not None:
            return None
        if request is not None:
            return _unknown_answer(suite, request)
        if status.round is None and (suite.is_due or not status.rounds):
            return None if suite.is_due else "no round is active or due, and none has ended"
        self._minute = status.round.minute if status.round else status.rounds[0].minute
        return self._ended(suite, self._minute)

    def _ended(self, suite: WatchedSuite, minute: int) -> Ending | None:
        """Return how the round of a minute, or the one that replaced it, ended; None while it is due or active."""
        active = [suite.status.round.minute] if suite.status.round else []
        if minute in active:
            return None
        rounds = {round_.minute: round_ for round_ in suite.status.rounds}
        if minute not in rounds:
            return f"round {round_name(minute)} is no longer in the suite's status"
        if rounds[minute].verdict != RoundVerdict.SUPERSEDED:
            return rounds[minute]
        # Also if it is no longer kept.
        successor = min((later for later in (*rounds, *suite.status.dropped, *active) if later > minute), default=None)
        if successor is None:
            return None if suite.is_due or suite.obstacle else rounds[minute]
        self._minute = successor
        return self._ended(suite, successor)


def _unknown_answer(suite: WatchedSuite, request: str) -> str | None:
    """Return why the round of a request cannot be known; None while the operator has not answered the request."""
    if suite.status.requested_round == request:
        return f"the status does not say which round answered {request!r}; request one with another text"
    if suite.request == request:
        return None
    present = f"it is {suite.request!r}" if suite.request else "there is none"
    return f"no round {request!r} was requested by annotation {REQUEST_ROUND}: {present}"


class SuiteFollowing(Polling[WatchedSuite]):
    """Follows one round of a suite."""

    def __init__(
        self, suite: InCluster, view: Display[WatchedSuite], awaited: AwaitedRound, *, pause: float = POLL_SECONDS
    ) -> None:
        super().__init__(suite, view, pause=pause)
        self._awaited = awaited
        self.ending: Ending | None = None
        """How the round ended; None while it continues."""

    async def _look(self, kube: "AioKube") -> tuple[WatchedSuite, bool]:
        document = await self._document(kube)
        seen = watched_suite(document)
        self.ending = self._awaited.ending(seen)
        name = seen.status.round.current if seen.status.round else None
        run = await self._readable(kube, RUN, name) if name else None
        return watched_suite(document, run), self.ending is not None


class SuiteLines(LineLog):
    """Prints every change once, with the time (UTC)."""

    def __init__(self, console: Console) -> None:
        super().__init__(console, "suite")

    def show(self, suite: WatchedSuite) -> None:
        """Print the changes."""
        line = "  ".join(filter(None, (_status(suite), activity_text(suite), suite.run)))
        if line != self._last:
            self.note(line)
            self._last = line


def suite_screen(console: Console, title: str) -> LivePicture[WatchedSuite]:
    """Return a live picture of a suite."""
    return LivePicture(console, f"{title}: asking the cluster", partial(suite_picture, title))


def suite_picture(title: str, suite: WatchedSuite, now: float, trouble: str = "") -> RenderableType:
    """Return the picture of a suite at a moment, in Unix seconds."""
    lines: list[RenderableType] = [Text(f"{title}  ", style="bold").append(_status(suite), style="cyan")]
    if suite.status.round is not None:
        children = suite.status.round.children
        grid = Table.grid(padding=(0, 2, 0, 0))
        bar = ProgressBar(total=max(1, children.total), completed=children.done, width=BAR_COLUMNS)
        elapsed = clock(max(0.0, now - datetime.fromisoformat(suite.status.round.start_time).timestamp()))
        grid.add_row(bar, Text(f"{children.done}/{children.total} runs"), Text(f"{elapsed} elapsed"))
        lines.append(grid)
    lines.append(Text(activity_text(suite)))
    if suite.run:
        lines.append(Text(suite.run))
    if suite.obstacle:
        lines.append(Text(suite.obstacle, style="yellow"))
    if trouble:
        lines.append(Text(f"Not up to date: {trouble}", style="red"))
    return Group(*lines)


def activity_text(suite: WatchedSuite) -> str:
    """Return the activity of a suite, in one line."""
    if suite.status.round is None:
        return (suite.status.display or SuiteDisplay()).message or ""
    children = suite.status.round.children
    done = f"{children.done} of {count_text(children.total, 'run')} done"
    current = f", {suite.status.round.current}" if suite.status.round.current else ""
    return f"round {suite.status.round.name} ({suite.status.round.cause}): {done}{current}"


def _status(suite: WatchedSuite) -> str:
    return (suite.status.display or SuiteDisplay()).status or "not seen by the operator yet"


class Silence:
    """Shows nothing, and remembers the last activity of the suite."""

    def __init__(self) -> None:
        self.last = "the cluster has not answered"

    def show(self, suite: WatchedSuite) -> None:
        """Remember the activity of the suite."""
        self.last = activity_text(suite) or "the operator has not seen the suite"

    def trouble(self, problem: str) -> None:
        """Remember why the suite cannot be read."""
        self.last = problem


def follow_round(
    place: InCluster, view: Display[WatchedSuite], request: str | None, seconds: int | None
) -> Ending | None:
    """Return how a round ended; None if it continues after a signal or the timeout; exits if it cannot be followed."""
    following = SuiteFollowing(place, view, AwaitedRound(request))
    return None if follow(following, seconds) is None else following.ending


def conclude(place: InCluster, ending: Ending) -> int:
    """Print how the round ended, and return the exit code."""
    if isinstance(ending, str):
        click.echo(f"Suite {place}: {ending}", err=True)
        return EXIT_NOT_EVALUATED
    accepted = ", accepted" if ending.accepted else ""
    click.echo(f"Round {ending.name} of suite {place} ended: {ending.verdict}{accepted}")
    return exit_code(ending)


_round_option = click.option(
    "--round",
    "request",
    metavar="TEXT",
    help=f"Follow the round that annotation {REQUEST_ROUND}=TEXT requests, even if it has not started.",
)


@click.command()
@click.argument("suite")
@_round_option
@timeout_option("Stop after this time")
@cluster_options
def watch_command(*, suite: str, request: str | None, timeout: int | None) -> None:
    """Follow a SUITE in a cluster until its round has ended, and show its progress and what the round shows.

    SUITE is NAME or NAMESPACE/NAME. The round is the active one, or else the one that is due because of a change or a
    request, or else the last one. If a change replaces the round, its successor is followed. A terminal shows a live
    picture; other outputs get a line for every change. Watching does not affect the suite.

    Exits with 0 if the round shows no regression, or was accepted; 3 if it regressed; 4 if it is inconclusive; 1 if it
    was not evaluated, or the suite cannot measure or be watched; 5 if the round continues after Ctrl-C or --timeout; 2
    for a usage error.
    """
    place = find_in_cluster(suite, SUITE)
    console = Terminal()
    with suite_screen(console, str(place)) if console.is_terminal else SuiteLines(console) as view:
        ending = follow_round(place, view, request, timeout)
    if ending is None:
        click.echo(f"The round continues; `{program()} suite watch {place}` follows it again.", err=True)
        sys.exit(EXIT_NOT_ENDED)
    if isinstance(ending, EndedRound) and ending.verdict in JUDGED:
        show_rounds(console, ask(place.access, lambda kube: read_rounds(kube, place)))
    sys.exit(conclude(place, ending))


@click.command()
@click.argument("suite")
@_round_option
@timeout_option("Stop after this time")
@cluster_options
def wait_command(*, suite: str, request: str | None, timeout: int | None) -> None:
    """Wait until a round of a SUITE in a cluster has ended, and print its verdict; for scripts and pipelines.

    SUITE is NAME or NAMESPACE/NAME. The round is the active one, or else the one that is due because of a change or a
    request, or else the last one. If a change replaces the round, its successor is waited for.

    Exits with 0 if the round shows no regression, or was accepted; 3 if it regressed; 4 if it is inconclusive; 1 if it
    was not evaluated, or the suite cannot measure or be read; 5 if the round continues after Ctrl-C or --timeout; 2 for
    a usage error.
    """
    place = find_in_cluster(suite, SUITE)
    silence = Silence()
    ending = follow_round(place, silence, request, timeout)
    if ending is None:
        click.echo(f"The round of suite {place} has not ended yet: {silence.last}", err=True)
        sys.exit(EXIT_NOT_ENDED)
    sys.exit(conclude(place, ending))
