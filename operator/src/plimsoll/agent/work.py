"""What an agent can do, as its loop sees it."""

from typing import Protocol

from pydantic import JsonValue

from plimsoll.agent.worker import Armed, Progress
from plimsoll.api.state import LiveRate
from plimsoll.measure.sample import ClientDocument, Clock
from plimsoll.protocol.messages import Arm, Prepare, Stage


class Work(Protocol):
    """What an agent can do: `plimsoll.agent.worker.Worker`, or a simulation of it."""

    async def facts(self) -> dict[str, JsonValue]:
        """Return what a result should say of where this client runs."""
        ...

    async def prepare(self, order: Prepare, progress: Progress) -> int:
        """Prepare the volume, and return its data set's size in bytes."""
        ...

    async def stage(self, order: Stage, progress: Progress) -> None:
        """Do what a trial needs before it can be armed."""
        ...

    def arm(self, order: Arm) -> Armed:
        """Get ready to measure without touching the target."""
        ...

    async def measure(self, armed: Armed, clock: Clock) -> ClientDocument:
        """Measure now."""
        ...

    def live(self, armed: Armed) -> tuple[LiveRate, ...]:
        """Return what the tool that measures now says of its rates; at once, and empty if it says nothing."""
        ...
