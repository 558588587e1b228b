"""Clients that share a storage of known speed, operation by operation, and the documents that they would send.

The storage completes one operation in each of equal stretches of time, at a random moment of it, for one of the clients
that are running then. So its rate is known exactly, whoever is running. While it stands still nothing completes at all;
while one client is cut off the others get its part.
"""

import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from plimsoll.api.names import LatencyKind, Operation
from plimsoll.measure.histogram import Histogram, bin_index
from plimsoll.measure.intake import TrialFacts
from plimsoll.measure.sample import Cells, ClientDocument, LatencySample, LatencySlices, Measurement, OperationSample
from plimsoll.measure.trial import TrialNumbers, measure_trial
from support.documents import BLOCK, SECOND, T0, document

SLICE_SECONDS = 6


@dataclass(frozen=True, kw_only=True)
class Stall:
    """A stretch of time, seconds after T0, in which `client` completes nothing; nobody does if that is None."""

    start: float
    seconds: float
    client: int | None = None

    def covers(self, moment: float, client: int) -> bool:
        return self.client in {None, client} and self.start <= moment < self.start + self.seconds


@dataclass(kw_only=True)
class Simulated:
    """One trial.

    Attributes:
        skews: of each client, seconds after T0 until it begins to measure.
        rate: operations per second of the storage.
        done: of each client, (seconds since its start, latency in ns) of every operation.

    """

    seed: int
    skews: Sequence[float]
    runtime: int
    rate: int
    stalls: Sequence[Stall] = ()
    done: list[list[tuple[float, int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        chance = random.Random(self.seed)  # noqa: S311 - numbers, not secrets
        self.done = [[] for _ in self.skews]
        for number in range(int((max(self.skews) + self.runtime) * self.rate)):
            moment = (number + chance.random()) / self.rate
            running = [client for client, skew in enumerate(self.skews) if self._can_complete(client, skew, moment)]
            if running:
                client = chance.choice(running)
                latency = int(chance.lognormvariate(14, 0.8)) + 1
                self.done[client].append((moment - self.skews[client], latency))

    def _can_complete(self, client: int, skew: float, moment: float) -> bool:
        return skew <= moment < skew + self.runtime and not any(stall.covers(moment, client) for stall in self.stalls)

    @property
    def latencies(self) -> list[int]:
        """Every latency of every client, in ascending order."""
        return sorted(latency for done in self.done for _, latency in done)

    def numbers(self) -> TrialNumbers:
        """Measure the trial."""
        facts = TrialFacts(
            clients=tuple(range(len(self.skews))), runtime_seconds=self.runtime, ramp_seconds=0, t0_nanoseconds=T0
        )
        return measure_trial(facts, {client: self.document(client) for client in facts.clients})

    def document(self, client: int) -> ClientDocument:
        """Return what an agent would send of a client."""
        done = self.done[client]
        latencies = [latency for _, latency in done]
        sample = OperationSample(
            operation=Operation.READ,
            ios=len(done),
            bytes=len(done) * BLOCK,
            latency=LatencySample(
                kind=LatencyKind.FULL,
                count=len(done),
                mean_nanoseconds=sum(latencies) / max(1, len(done)),
                min_nanoseconds=min(latencies, default=0),
                max_nanoseconds=max(latencies, default=0),
                histogram=_histogram(latencies),
            ),
            cells=self._cells(client),
            slices=self._slices(client),
        )
        return document(
            client,
            Measurement(
                tool="fio",
                tool_version="3.39",
                started_at=T0 + round(self.skews[client] * SECOND),
                runtime=self.runtime * SECOND,
                operations=(sample,),
            ),
        )

    def _cells(self, client: int) -> Cells:
        counts = Counter(int(moment) for moment, _ in self.done[client])
        ios = tuple(float(counts[second]) for second in range(self.runtime))
        return Cells(width_nanoseconds=SECOND, ios=ios, bytes=tuple(count * BLOCK for count in ios))

    def _slices(self, client: int) -> LatencySlices:
        edges = range(SLICE_SECONDS, self.runtime + 1, SLICE_SECONDS)
        parts: list[list[int]] = [[] for _ in edges]
        for moment, latency in self.done[client]:
            parts[bisect_right(edges, moment)].append(latency)
        return LatencySlices(
            width_nanoseconds=SLICE_SECONDS * SECOND, histograms=tuple(_histogram(part) for part in parts)
        )


def _histogram(latencies: Sequence[int]) -> str:
    return Histogram(counts=Counter(map(bin_index, latencies))).encode()
