"""What `plimsoll suite watch` and `plimsoll suite wait` share: following a round, and its exit code."""

import asyncio
import signal

import click

from plimsoll.api.suite_status import RoundVerdict
from plimsoll.cli.cluster import explain
from plimsoll.cli.polling import Display
from plimsoll.cli.source import SuiteInCluster
from plimsoll.cli.suite_following import SuiteFollowing
from plimsoll.cli.suite_view import activity_text
from plimsoll.cli.suite_watched import AwaitedRound, Ending, WatchedRound, WatchedSuite
from plimsoll.kube.errors import ApiError
from plimsoll.suite.rounds.state import JUDGED

EXIT_NOT_EVALUATED = 1
EXIT_NOT_ENDED = 5

_EXIT_OF = {RoundVerdict.NO_REGRESSION: 0, RoundVerdict.REGRESSED: 3, RoundVerdict.INCONCLUSIVE: 4}


class Silence:
    """Shows nothing, and remembers what the suite did last."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self.last = "the cluster has not answered"

    def show(self, suite: WatchedSuite) -> None:
        """Remember what the suite does."""
        self.last = activity_text(suite) or "the operator has not seen the suite"

    def trouble(self, problem: str) -> None:
        """Remember why the suite cannot be read."""
        self.last = problem


def follow_round(
    place: SuiteInCluster, view: Display[WatchedSuite], request: str | None, seconds: int | None
) -> Ending | None:
    """Return how a round ended; None if it continues after a signal or the timeout.

    Raises:
        click.ClickException: if the suite cannot be followed.

    """
    try:
        return asyncio.run(_unless_stopped(SuiteFollowing(place, view, AwaitedRound(request)), seconds))
    except ApiError as error:
        raise click.ClickException(explain(error, place.access)) from error


def conclude(place: SuiteInCluster, ending: Ending) -> int:
    """Print how the round ended, and return the exit code."""
    if ending.round is None:
        click.echo(f"Suite {place}: {ending.problem}", err=True)
        return EXIT_NOT_EVALUATED
    accepted = ", accepted" if ending.round.accepted else ""
    click.echo(f"Round {ending.round.minute} of suite {place} ended: {ending.round.verdict}{accepted}")
    return exit_code(ending.round)


def is_evaluated(ending: Ending) -> bool:
    """Whether the results of the round were compared."""
    return ending.round is not None and ending.round.verdict in JUDGED


def exit_code(ended: WatchedRound) -> int:
    """Return the exit code of a round; the regression of an accepted one is intended."""
    if ended.verdict == RoundVerdict.REGRESSED and ended.accepted:
        return 0
    return next((code for verdict, code in _EXIT_OF.items() if verdict == ended.verdict), EXIT_NOT_EVALUATED)


async def _unless_stopped(following: SuiteFollowing, seconds: int | None) -> Ending | None:
    task = asyncio.current_task()
    if task is not None:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        async with asyncio.timeout(seconds):
            await following.to_the_end()
    except (TimeoutError, asyncio.CancelledError):
        return None
    return following.ending
