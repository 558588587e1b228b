"""Polling a run in a cluster until it has ended.

One small request every two seconds, two while the run is measured, and one more after each trial. The results, which
may be large, are read once the run has ended.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from plimsoll.cli.polling import Polling
from plimsoll.cli.source import CONFIG_MAP
from plimsoll.cli.watched import WatchedPoint, WatchedRun, WatchedState, watched_points, watched_run, watched_state
from plimsoll.kube.errors import ForbiddenError, UnauthorizedError
from plimsoll.lifecycle import naming

if TYPE_CHECKING:
    from plimsoll.kube.client import AioKube


class Following(Polling[WatchedRun]):
    """Follows one run."""

    _can_read_state = True
    _progress: object = None
    _points: Sequence[WatchedPoint] = ()

    async def _look(self, kube: "AioKube") -> WatchedRun:
        document = await self._document(kube)
        state = await self._state(kube, document["metadata"]["uid"])
        return watched_run(document, state, await self._rows(kube, document, state))

    def _has_ended(self, seen: WatchedRun) -> bool:
        return seen.ending is not None

    async def _state(self, kube: "AioKube", uid: str) -> WatchedState | None:
        """Return the conductor's state; None without the right to read it, or if it belongs to another run."""
        if not self._can_read_state:
            return None
        try:
            found = await kube.get(CONFIG_MAP, naming.state_config_map(self._place.name), self._place.namespace)
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
            self._points = await watched_points(kube, self._place.namespace, run)
            self._progress = progress
        return self._points
