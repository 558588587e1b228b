"""Looking at a run again and again, until it has ended.

One small request every two seconds, two while it is measured, and one more when a trial is done: the results
themselves, which may be large, are read once it is over.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import click

from plimsoll.cli.source import CONFIG_MAP, RUN, RunInCluster, no_such_run
from plimsoll.cli.watched import Seen, SeenPoint, SeenState, rows_of, run_seen, state_seen
from plimsoll.kube.errors import ApiError, ForbiddenError, UnauthorizedError
from plimsoll.lifecycle import naming

if TYPE_CHECKING:
    from plimsoll.kube.client import AioKube

POLL_SECONDS = 2.0
SILENCE_SECONDS = 300.0
"""So long an API server may be away before watching ends."""


class View(Protocol):
    """What shows a run."""

    def show(self, seen: Seen) -> None:
        """Show what is seen now."""
        ...

    def trouble(self, problem: str) -> None:
        """Say why nothing is seen now."""
        ...


class Following:
    """Follows one run."""

    def __init__(
        self,
        run: RunInCluster,
        view: View,
        *,
        pause: float = POLL_SECONDS,
        silence: float = SILENCE_SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Show a run on a view: so many seconds between looks, and so many of silence that are borne."""
        self._run = run
        self._view = view
        self._pause = pause
        self._silence = silence
        self._now = now
        self._uid: str | None = None
        self._state_may_be_read = True
        self._progress: object = None
        self._points: Sequence[SeenPoint] = ()
        self._seen_at = 0.0
        self._is_new = True

    async def to_the_end(self) -> Seen:
        """Return what is seen when the run has ended.

        Raises:
            ApiError: if the cluster does not answer, or not any more.
            click.ClickException: if there is no such run, or not any more.

        """
        while True:
            try:
                return await self._while_connected()
            except ApiError as error:
                # An API server that starts may know neither kinds nor rights yet. A token that ran out is replaced by
                # connecting anew; only if that does not help, nothing does.
                is_refused = self._is_new and isinstance(error, UnauthorizedError)
                if self._uid is None or is_refused or self._now() - self._seen_at > self._silence:
                    raise
                self._view.trouble(str(error))
            await asyncio.sleep(self._pause)

    async def _while_connected(self) -> Seen:
        self._is_new = True
        async with self._run.access.connect() as kube:
            while True:
                seen = await self._look(kube)
                self._is_new = False
                if seen.ending is not None:
                    return seen
                await asyncio.sleep(self._pause)

    async def _look(self, kube: "AioKube") -> Seen:
        document = await kube.get(RUN, self._run.name, self._run.namespace)
        if document is None:
            raise await self._absent(kube)
        uid = str(document["metadata"]["uid"])
        if self._uid not in {None, uid}:
            message = f"run {self._run} was deleted, and another one of that name was made"
            raise click.ClickException(message)
        self._uid = uid
        state = await self._state(kube, uid)
        seen = run_seen(document, state, await self._rows(kube, document, state))
        self._seen_at = self._now()
        self._view.show(seen)
        return seen

    async def _absent(self, kube: "AioKube") -> click.ClickException:
        if self._uid is None:
            return await no_such_run(kube, self._run)
        return click.ClickException(f"run {self._run} was deleted before it ended")

    async def _state(self, kube: "AioKube", uid: str) -> SeenState | None:
        """Return what the conductor says; None if that may not be read, or is not of this run."""
        if not self._state_may_be_read:
            return None
        try:
            found = await kube.get(CONFIG_MAP, naming.state_config_map(self._run.name), self._run.namespace)
        except UnauthorizedError:
            raise
        except ForbiddenError:
            # The operator's status says nearly as much.
            self._state_may_be_read = False
            return None
        return state_seen(found, uid) if found is not None else None

    async def _rows(self, kube: "AioKube", run: Mapping[str, Any], state: SeenState | None) -> Sequence[SeenPoint]:
        """Return the points, read anew if anything may have changed."""
        status = run.get("status") or {}
        current = (state.trials_done, state.current and state.current.key) if state else None
        display = status.get("display", {})
        progress = (status.get("points"), status.get("completionTime"), display.get("progress"), current)
        if progress != self._progress:
            self._points = await rows_of(kube, self._run.namespace, run)
            self._progress = progress
        return self._points
