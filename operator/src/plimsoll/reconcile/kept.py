"""Objects that only the operator changes: read again after it has acted, and otherwise from time to time.

A run's rights and network policies would otherwise be half of what each look reads.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from plimsoll.kube.port import Kind, Kube
from plimsoll.lifecycle.children import Child, child_of, is_of_run

KEPT_SECONDS = 30.0
"""After which objects are read again, although the operator did nothing: somebody else may have deleted one."""


class Kept:
    """The objects of one kind that belong to a run, as the last look that read them found them."""

    def __init__(self, kind: Kind, uid: str, now: Callable[[], datetime]) -> None:
        """Start with nothing; `uid` is the run's, and `now` returns the time."""
        self._kind = kind
        self._uid = uid
        self._now = now
        self._found: tuple[Child, ...] = ()
        self._read_at: datetime | None = None

    def forget(self) -> None:
        """Have the next look read them."""
        self._read_at = None

    async def look(self, kube: Kube, *, namespace: str, labels: Mapping[str, str]) -> Sequence[Child]:
        """Return the objects in the order of the list."""
        if not self._is_current():
            self.forget()
            read_at = self._now()
            found = await kube.list(self._kind, namespace=namespace, labels=labels)
            self._found = tuple(child_of(obj) for obj in found if is_of_run(obj, self._uid))
            self._read_at = read_at
        return self._found

    def _is_current(self) -> bool:
        if self._read_at is None or any(child.deleting for child in self._found):
            return False
        return abs(self._now() - self._read_at) < timedelta(seconds=KEPT_SECONDS)
