"""Polling a suite in a cluster until a round has ended: two small requests every two seconds."""

from typing import TYPE_CHECKING

from plimsoll.cli.polling import POLL_SECONDS, Display, Polling
from plimsoll.cli.source import RUN, SuiteInCluster
from plimsoll.cli.suite_watched import AwaitedRound, Ending, WatchedSuite, watched_suite
from plimsoll.kube.errors import ForbiddenError, UnauthorizedError
from plimsoll.kube.port import Object

if TYPE_CHECKING:
    from plimsoll.kube.client import AioKube


class SuiteFollowing(Polling[WatchedSuite]):
    """Follows one round of a suite."""

    _can_read_runs = True

    def __init__(
        self,
        suite: SuiteInCluster,
        view: Display[WatchedSuite],
        awaited: AwaitedRound,
        *,
        pause: float = POLL_SECONDS,
    ) -> None:
        """Poll a suite every `pause` seconds until the awaited round has ended."""
        super().__init__(suite, view, pause=pause)
        self._awaited = awaited
        self.ending: Ending | None = None
        """How the round ended; None while it continues."""

    async def _look(self, kube: "AioKube") -> WatchedSuite:
        document = await self._document(kube)
        seen = watched_suite(document)
        self.ending = self._awaited.ending(seen)
        run = await self._run(kube, seen.active.current) if seen.active else None
        return watched_suite(document, run)

    def _has_ended(self, seen: WatchedSuite) -> bool:  # noqa: ARG002 - the awaited round remembers what it has seen
        return self.ending is not None

    async def _run(self, kube: "AioKube", name: str) -> Object | None:
        """Return the run that is being measured; None without one, or without the right to read it."""
        if not name or not self._can_read_runs:
            return None
        try:
            return await kube.get(RUN, name, self._place.namespace)
        except UnauthorizedError:
            raise
        except ForbiddenError:
            self._can_read_runs = False
            return None
