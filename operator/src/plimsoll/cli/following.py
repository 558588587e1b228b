"""Polling a run in a cluster until it has ended.

One small request every two seconds, two while the run is measured, and one more after each trial. The results, which
may be large, are read once the run has ended.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import click

from plimsoll.cli.source import CONFIG_MAP, RUN, RunInCluster, no_such_run
from plimsoll.cli.watched import WatchedPoint, WatchedRun, WatchedState, watched_points, watched_run, watched_state
from plimsoll.kube.errors import ApiError, ForbiddenError, UnauthorizedError
from plimsoll.lifecycle import naming

if TYPE_CHECKING:
    from plimsoll.kube.client import AioKube

POLL_SECONDS = 2.0
SILENCE_SECONDS = 300.0
"""How long the API server may be unavailable before watching ends."""


class RunDisplay(Protocol):
    """Shows a run."""

    def show(self, run: WatchedRun) -> None:
        """Show the current state."""
        ...

    def trouble(self, problem: str) -> None:
        """Show why the run cannot be read now."""
        ...


class Following:
    """Follows one run."""

    def __init__(
        self,
        run: RunInCluster,
        view: RunDisplay,
        *,
        pause: float = POLL_SECONDS,
        silence: float = SILENCE_SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Poll a run every `pause` seconds, and tolerate `silence` seconds without an answer."""
        self._run = run
        self._view = view
        self._pause = pause
        self._silence = silence
        self._now = now
        self._uid: str | None = None
        self._can_read_state = True
        self._progress: object = None
        self._points: Sequence[WatchedPoint] = ()
        self._answered_at = 0.0
        self._is_new_connection = True

    async def to_the_end(self) -> WatchedRun:
        """Return the run once it has ended.

        Raises:
            ApiError: if the cluster does not answer, or stops answering.
            click.ClickException: if the run does not exist, or was deleted.

        """
        while True:
            try:
                return await self._while_connected()
            except ApiError as error:
                # An API server that is starting may not know kinds or rights yet. A new connection replaces an expired
                # token; an error right after that is final.
                is_refused = self._is_new_connection and isinstance(error, UnauthorizedError)
                if self._uid is None or is_refused or self._now() - self._answered_at > self._silence:
                    raise
                self._view.trouble(str(error))
            await asyncio.sleep(self._pause)

    async def _while_connected(self) -> WatchedRun:
        self._is_new_connection = True
        async with self._run.access.connect() as kube:
            while True:
                run = await self._poll(kube)
                self._is_new_connection = False
                if run.ending is not None:
                    return run
                await asyncio.sleep(self._pause)

    async def _poll(self, kube: "AioKube") -> WatchedRun:
        document = await kube.get(RUN, self._run.name, self._run.namespace)
        if document is None:
            raise await self._absent(kube)
        uid = str(document["metadata"]["uid"])
        if self._uid not in {None, uid}:
            message = f"run {self._run} was deleted, and another run with this name was created"
            raise click.ClickException(message)
        self._uid = uid
        state = await self._state(kube, uid)
        run = watched_run(document, state, await self._rows(kube, document, state))
        self._answered_at = self._now()
        self._view.show(run)
        return run

    async def _absent(self, kube: "AioKube") -> click.ClickException:
        if self._uid is None:
            return await no_such_run(kube, self._run)
        return click.ClickException(f"run {self._run} was deleted before it ended")

    async def _state(self, kube: "AioKube", uid: str) -> WatchedState | None:
        """Return the conductor's state; None without the right to read it, or if it belongs to another run."""
        if not self._can_read_state:
            return None
        try:
            found = await kube.get(CONFIG_MAP, naming.state_config_map(self._run.name), self._run.namespace)
        except UnauthorizedError:
            raise
        except ForbiddenError:
            # The run's status has nearly the same information.
            self._can_read_state = False
            return None
        return watched_state(found, uid) if found is not None else None

    async def _rows(
        self, kube: "AioKube", run: Mapping[str, Any], state: WatchedState | None
    ) -> Sequence[WatchedPoint]:
        """Return the points; they are read again only after progress."""
        status = run.get("status") or {}
        current = (state.trials_done, state.current and state.current.key) if state else None
        display = status.get("display", {})
        progress = (status.get("points"), status.get("completionTime"), display.get("progress"), current)
        if progress != self._progress:
            self._points = await watched_points(kube, self._run.namespace, run)
            self._progress = progress
        return self._points
