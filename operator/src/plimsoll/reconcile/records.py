"""The operator's state between two looks: one record per object that needs attention."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from plimsoll.lifecycle.decision import Refusal

M = TypeVar("M")


@dataclass(slots=True, kw_only=True)
class Record(Generic[M]):
    """The state of one object.

    Attributes:
        memory: state that only its kind has.
        wakeup: set when something that the object depends on has changed.
        was_woken: whether such a change preceded the present look.
        lock: held during a look, so that daemon and deletion never handle the object at the same time.
        status: the last written status, because a watch lags behind the operator's own writes; None before the first.
        version: resourceVersion that the next status must replace; None for any.
        refusal: the last refused request, until a look at which every request succeeds.

    """

    memory: M
    wakeup: asyncio.Event = field(default_factory=asyncio.Event)
    was_woken: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    status: Mapping[str, Any] | None = None
    version: str | None = None
    refusal: Refusal | None = None


class Records(dict[str, Record[M]]):
    """The records of one kind, by UID. A lookup creates a missing record."""

    def __init__(self, memory: Callable[[], M]) -> None:
        """Start empty; `memory` returns the kind's initial state of an object."""
        super().__init__()
        self._memory = memory

    def __missing__(self, uid: str) -> Record[M]:
        record = self[uid] = Record(memory=self._memory())
        return record

    def wake(self, uid: str) -> None:
        """Wake the object's daemon, if it has a record."""
        if uid in self:
            self[uid].wakeup.set()

    def wake_all(self) -> None:
        """Wake all daemons."""
        for record in self.values():
            record.wakeup.set()

    def forget(self, uid: str) -> None:
        """Drop the record of an object that no longer needs attention."""
        self.pop(uid, None)
