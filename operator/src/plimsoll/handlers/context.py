"""What all handlers share: one object, put into kopf's memo at start-up."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from plimsoll.handlers.results import KnownResults
from plimsoll.kube.gather import Known
from plimsoll.kube.port import Kube
from plimsoll.lifecycle.refusal import Refusal
from plimsoll.lifecycle.settings import Settings
from plimsoll.metrics.instruments import Instruments


@dataclass(slots=True, kw_only=True)
class Context:
    """The operator's connections and what it knows between two looks at a run, by UID.

    Attributes:
        now: the API server's time: whatever it is compared with, the API server has set.
        instruments: what the operator measures of itself.
        results: what Prometheus is told of every result.
        wakeups: set when something of a run, or of the queue, has changed.
        locks: held while a run is looked at, so that daemon and deletion never work on it at once.
        known: what the last look at a run kept, so that the next one reads only those objects that have changed.
        said: the last status written, because kopf's view of a run lags behind the operator's own writes.
        admitted: runs that have been given their turn, for the same reason.
        refused: what could not be done at the last look, until a look at which everything can.
    """

    kube: Kube
    settings: Settings
    now: Callable[[], datetime]
    instruments: Instruments = field(default_factory=Instruments)
    results: KnownResults = field(default_factory=KnownResults)
    wakeups: defaultdict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))
    locks: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    known: dict[str, Known] = field(default_factory=dict)
    said: dict[str, dict[str, Any]] = field(default_factory=dict)
    admitted: set[str] = field(default_factory=set)
    refused: dict[str, Refusal] = field(default_factory=dict)

    def wake(self, uid: str) -> None:
        """Have a run looked at soon; one that nobody waits for is not remembered."""
        if uid in self.wakeups:
            self.wakeups[uid].set()

    def wake_all(self) -> None:
        """Have all unfinished runs looked at soon."""
        for event in self.wakeups.values():
            event.set()

    def forget(self, uid: str) -> None:
        """Drop what is known of a run that needs no attention any more."""
        self.wakeups.pop(uid, None)
        self.locks.pop(uid, None)
        self.known.pop(uid, None)
        self.said.pop(uid, None)
        self.refused.pop(uid, None)
        self.admitted.discard(uid)
