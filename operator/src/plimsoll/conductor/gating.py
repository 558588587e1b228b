"""The gate: the conditions on the Ceph cluster before the clients prepare, and before each attempt."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """The state of the cluster at one time.

    Attributes:
        prepared: the cluster contains everything that the run needs; never reverts to false.
        problems: reasons why no attempt may start now.
        differing_options: those of the problems that matter even if the cluster's health does not: options that do not
            have the run's values, so that a trial would be Invalid.
        refused: whether these would remain, however long one waits.

    """

    prepared: bool
    problems: tuple[str, ...] = ()
    differing_options: tuple[str, ...] = ()
    refused: bool = False


class Gate:
    """A session's knowledge of the cluster. The default gate watches no cluster and is always open."""

    def __init__(self, *, watched: bool = False, required: bool = True, fresh_seconds: float = 15.0) -> None:
        """Start closed if a cluster is `watched`.

        Unless a healthy cluster is `required`, the gate ignores all problems but differing options once the cluster is
        prepared. A view expires after `fresh_seconds`.
        """
        self._watched = watched
        self._required = required
        self._fresh_seconds = fresh_seconds
        self._view = ClusterView(prepared=not watched)
        self._seen_at = float("-inf")

    @property
    def is_prepared(self) -> bool:
        """Whether the cluster contains everything that the clients need."""
        return self._view.prepared

    @property
    def is_watched(self) -> bool:
        """Whether there is a cluster to watch."""
        return self._watched

    @property
    def is_refused(self) -> bool:
        """Whether the cluster will never be prepared, because Ceph refuses what the run asks for."""
        return self._view.refused

    def see(self, view: ClusterView, now: float) -> None:
        """Update the view of the cluster."""
        self._view, self._seen_at = view, now

    def problems(self, now: float) -> tuple[str, ...]:
        """Return the reasons why no attempt may start; empty if the gate is open."""
        if not self._watched:
            return ()
        if not self._view.prepared:
            return self._view.problems or ("it is being prepared",)
        if not self._required:
            return self._view.differing_options
        if now - self._seen_at > self._fresh_seconds:
            return (f"Ceph has not reported its status for more than {self._fresh_seconds:g} s",)
        return self._view.problems
