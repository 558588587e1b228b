"""Which unauthenticated connections to keep when there are too many. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar


@dataclass(slots=True, kw_only=True, eq=False)
class Stranger:
    """A connection that has not authenticated yet; `since` is monotonic time."""

    address: str
    since: float


S = TypeVar("S", bound=Stranger)


class Crowd(Generic[S]):
    """Strangers by address. The address with the most loses one first, so a flood from one cannot lock out others."""

    def __init__(self, *, most: int, patience_seconds: float) -> None:
        """Hold at most `most` strangers; among equals, a stranger loses its place only after `patience_seconds`."""
        self._most = most
        self._patience = patience_seconds
        self._by_address: dict[str, dict[S, None]] = {}
        self._count = 0

    def __iter__(self) -> Iterator[S]:
        return iter([stranger for strangers in self._by_address.values() for stranger in strangers])

    def __len__(self) -> int:
        return self._count

    def admit(self, newcomer: S) -> S | None:
        """Admit a newcomer; return the stranger to dismiss, perhaps the newcomer itself, or None if there is room."""
        victim = None
        if self._count >= self._most:
            counts = {address: len(strangers) for address, strangers in self._by_address.items()}
            # Ties go against the newcomer's own address: reconnecting must not displace others.
            crowded = max(counts, key=lambda address: (counts[address], address == newcomer.address))
            oldest = next(iter(self._by_address[crowded]))
            is_unfair = counts[crowded] > counts.get(newcomer.address, 0) + 1
            victim = oldest if is_unfair or newcomer.since - oldest.since >= self._patience else newcomer
        if victim is not None:
            self.remove(victim)
        if victim is not newcomer:
            self._by_address.setdefault(newcomer.address, {})[newcomer] = None
            self._count += 1
        return victim

    def remove(self, stranger: S) -> None:
        """Forget a stranger, if it is known."""
        strangers = self._by_address.get(stranger.address, {})
        if stranger in strangers:
            del strangers[stranger]
            self._count -= 1
            if not strangers:
                del self._by_address[stranger.address]
