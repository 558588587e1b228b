"""What an agent reports while it prepares."""

import asyncio
from typing import Any

from plimsoll.agent.agent import Agent, Identity
from plimsoll.protocol.messages import AgentState, Prepare, Report


class Listening:
    """A conductor that only listens."""

    def __init__(self) -> None:
        self.heard: list[Report] = []
        self.told = asyncio.Event()

    async def report(self, report: Report) -> None:
        self.heard.append(report)
        self.told.set()


class Preparing:
    """A preparation that goes on until its progress has been heard of."""

    def __init__(self, conductor: Listening) -> None:
        self._conductor = conductor

    async def prepare(self, _: Prepare, progress: Any) -> int:
        progress(5, 10, "overwriting at random, 1 of 2 s")
        await self._conductor.told.wait()
        return 10


async def test_an_agent_says_what_it_is_at() -> None:
    conductor = Listening()
    identity = Identity(client=0, attempt=0, node="here")
    connection: Any = conductor
    work: Any = Preparing(conductor)
    agent = Agent(identity=identity, connection=connection, work=work, silence_seconds=9)
    await agent._prepare(Prepare(discard=True, prefill=True, fill_percent=80, seed=1), 3)
    first, last = conductor.heard[0], conductor.heard[-1]
    assert (first.state, first.message) == (AgentState.PREPARING, "overwriting at random, 1 of 2 s")
    assert (first.done_bytes, first.total_bytes, first.sequence) == (5, 10, 3)
    assert (last.state, last.done_bytes, last.message) == (AgentState.PREPARED, 10, "")
