"""Who of many strangers may stay when there is no room for all of them. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stranger:
    """A connection that has not proved whose it is; `since` is on any clock that does not jump."""

    address: str
    since: float


class Crowd:
    """Strangers by address. The address with the most gives way first, so a flood from one does not shut out others."""

    def __init__(self, *, most: int, patience_seconds: float) -> None:
        """Hold at most `most` strangers; among equals one has to leave only after `patience_seconds`."""
        self._most = most
        self._patience = patience_seconds
        self._by_address: dict[str, dict[Stranger, None]] = {}
        self._count = 0

    def __iter__(self) -> Iterator[Stranger]:
        """Go over all strangers."""
        return iter([stranger for strangers in self._by_address.values() for stranger in strangers])

    def __len__(self) -> int:
        """Return how many there are."""
        return self._count

    def admit(self, newcomer: Stranger) -> Stranger | None:
        """Take in a newcomer; return who has to leave for it, which may be itself, or None if there is room."""
        victim = self._victim(newcomer) if self._count >= self._most else None
        if victim is not None:
            self.remove(victim)
        if victim is not newcomer:
            self._by_address.setdefault(newcomer.address, {})[newcomer] = None
            self._count += 1
        return victim

    def remove(self, stranger: Stranger) -> None:
        """Forget a stranger; nothing happens if it is not there."""
        strangers = self._by_address.get(stranger.address, {})
        if stranger in strangers:
            del strangers[stranger]
            self._count -= 1
            if not strangers:
                del self._by_address[stranger.address]

    def _victim(self, newcomer: Stranger) -> Stranger:
        own = len(self._by_address.get(newcomer.address, ())) + 1
        # Among equals the newcomer's own address comes first: who knocks again shall not push out others.
        crowded = max(self._by_address, key=lambda address: (self._at(address), address == newcomer.address))
        oldest = next(iter(self._by_address[crowded]))
        is_unfair = self._at(crowded) > own
        return oldest if is_unfair or newcomer.since - oldest.since >= self._patience else newcomer

    def _at(self, address: str) -> int:
        return len(self._by_address[address])
