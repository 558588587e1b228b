"""How often a helper drops caches, whoever asks. Pure."""

MIN_SECONDS = 2.0
"""Time from the end of one drop to the beginning of the next."""


class Turns:
    """At most one drop at a time, and a pause between two."""

    def __init__(self, min_seconds: float = MIN_SECONDS) -> None:
        """Start with a free turn."""
        self._min_seconds = min_seconds
        self._is_taken = False
        self._ended = float("-inf")

    def take(self, now: float) -> float:
        """Take a turn and return 0, or return how long to wait before the next attempt."""
        if self._is_taken:
            return self._min_seconds
        wait = self._ended + self._min_seconds - now
        if wait > 0:
            return wait
        self._is_taken = True
        return 0.0

    def end(self, now: float) -> None:
        """End the turn."""
        self._is_taken, self._ended = False, now
