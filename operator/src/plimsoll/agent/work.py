"""The interface between an agent's loop and its work."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from pydantic import JsonValue

from plimsoll.agent.programs import Progress
from plimsoll.agent.worker import Armed
from plimsoll.api.state import LiveRate
from plimsoll.measure.sample import ClientDocument, Clock
from plimsoll.protocol.caches import CacheDrop
from plimsoll.protocol.messages import ArmOrder, DropCachesOrder, PrepareOrder, ServeOrder, StageOrder


class Work(Protocol):
    """The work of an agent: `plimsoll.agent.worker.Worker`, or a simulation of it."""

    async def facts(self) -> dict[str, JsonValue]:
        """Return facts about the client's host for the result."""
        ...

    async def prepare(self, order: PrepareOrder, progress: Progress) -> int:
        """Prepare the volume and return the size of its data set in bytes."""
        ...

    async def stage(self, order: StageOrder, progress: Progress) -> None:
        """Run the step that a trial needs before it can be armed."""
        ...

    async def serve(self, order: ServeOrder, ready: Callable[[], Awaitable[None]]) -> None:
        """Serve other clients until cancelled; await `ready` once they may connect."""
        ...

    async def drop_caches(self, order: DropCachesOrder) -> CacheDrop:
        """Drop the caches of this node and return what was dropped."""
        ...

    def arm(self, order: ArmOrder) -> Armed:
        """Get ready to measure without touching the target."""
        ...

    async def measure(self, armed: Armed, clock: Clock) -> ClientDocument:
        """Run the tool and return its measurement."""
        ...

    def live(self, armed: Armed) -> tuple[LiveRate, ...]:
        """Return the current rates of the running tool; empty if it prints none."""
        ...
