"""Looking at a cluster again and again."""

import asyncio
import time
from dataclasses import replace

from plimsoll.ceph.pools import parse_counters
from plimsoll.ceph.status import parse_status
from plimsoll.ceph.watch import ClusterSample, ClusterWatch
from plimsoll.conductor.ceph.cli import CommandError, Commands

_LIMIT_SECONDS = 12.0
"""A cluster that takes longer to say how it is, is not well; and a conductor that is asked to end has 30 s to do so."""


class Watcher:
    """Keeps the looks at the cluster that belong to the trial under way."""

    def __init__(self, commands: Commands, template: ClusterWatch) -> None:
        """Look for a run: `template` says for which, and has no samples yet."""
        self._commands = commands
        self._template = template
        self._samples: list[ClusterSample] = []
        self._measuring = False

    async def look(self) -> ClusterSample:
        """Look at the cluster, and keep what is seen."""
        sample = await self._look()
        # Outside of trials only the last look is of use: it may become the one from before T0.
        self._samples = [*(self._samples if self._measuring else ()), sample]
        return sample

    def begin(self) -> None:
        """Keep all looks from the last one on: a trial begins."""
        self._samples = self._samples[-1:]
        self._measuring = True

    async def end(self) -> ClusterWatch:
        """Look once more, and return everything that was seen since `begin`, by time."""
        await self.look()
        self._measuring = False
        # The last look and one that was under way at the same time may have come in the wrong order.
        samples = tuple(sorted(self._samples, key=lambda sample: sample.at))
        return replace(self._template, samples=samples)

    async def _look(self) -> ClusterSample:
        async def ask(*arguments: str) -> str | CommandError:
            try:
                return await self._commands.ceph(*arguments, limit_seconds=_LIMIT_SECONDS)
            except CommandError as error:
                return error

        status, counters = await asyncio.gather(ask("status"), ask("df", "detail"))
        at = time.time_ns()
        if isinstance(status, CommandError):
            return ClusterSample(at=at, status=None, problem=str(status))
        try:
            parsed = parse_status(status)
            pools = {} if isinstance(counters, CommandError) else parse_counters(counters)
        except ValueError as error:
            return ClusterSample(at=at, status=None, problem=str(error))
        return ClusterSample(at=at, status=parsed, pools=pools, problem="" if pools else str(counters))
