"""The gate: what the Ceph cluster must be like before the clients prepare, and before each attempt begins."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One look at the cluster.

    Attributes:
        prepared: everything that the run needs there has been made: once true it stays true.
        problems: in words, why nothing may begin now; empty if all is well.

    """

    prepared: bool
    problems: tuple[str, ...] = ()


class Gate:
    """What a session knows of the cluster. The default is one that nobody looks at: it is always open."""

    def __init__(self, *, watched: bool = False, required: bool = True, fresh_seconds: float = 15.0) -> None:
        """Begin closed if somebody looks at the cluster.

        Unless it is `required`, problems do not matter once all is prepared. A look that is older than
        `fresh_seconds` says nothing.
        """
        self._watched = watched
        self._required = required
        self._fresh_seconds = fresh_seconds
        self._view = View(prepared=not watched)
        self._seen_at = float("-inf")

    @property
    def is_prepared(self) -> bool:
        """Whether the clients find everything that they need."""
        return self._view.prepared

    @property
    def is_watched(self) -> bool:
        """Whether there is a cluster that somebody looks at."""
        return self._watched

    def see(self, view: View, now: float) -> None:
        """Take in a look at the cluster."""
        self._view, self._seen_at = view, now

    def problems(self, now: float) -> tuple[str, ...]:
        """Return why no attempt may begin; empty if the gate is open."""
        if not self._watched:
            return ()
        if not self._view.prepared:
            return self._view.problems or ("it is being prepared",)
        if not self._required:
            return ()
        if now - self._seen_at > self._fresh_seconds:
            return (f"Ceph has not said for more than {self._fresh_seconds:g} s how it is",)
        return self._view.problems
