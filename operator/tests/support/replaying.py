"""A simulated replay of arrivals, as fio does it: what is in flight is bounded, and what is late is not caught up."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from plimsoll.api.names import LatencyKind, Operation
from plimsoll.api.operation import Latency, OperationResult, Rates
from plimsoll.measure.histogram import Histogram, bin_index


@dataclass(frozen=True)
class Freezing:
    """A storage that answers after the same time, but completes nothing in some stretches of (start, end), seconds."""

    latency: float
    freezes: Sequence[tuple[float, float]]

    def answers(self, start: float) -> float:
        """Return when an operation completes that started at this time."""
        end = start + self.latency
        for begins, ends in self.freezes:
            if start < ends and end > begins:
                end += ends - max(begins, start)
        return end

    def late_share(self, arrivals: Sequence[float], limit: float) -> float:
        """Return the share of arrivals that a client with room for all of them finds late."""
        return sum(self.answers(arrival) - arrival > limit for arrival in arrivals) / len(arrivals)


@dataclass(frozen=True)
class Slowing:
    """A storage that answers more slowly in some stretches of (start, end), seconds."""

    latency: float
    slow: float
    stretches: Sequence[tuple[float, float]]

    def answers(self, start: float) -> float:
        """Return when an operation completes that started at this time."""
        return start + (self.slow if any(begins <= start < ends for begins, ends in self.stretches) else self.latency)


def queued_late_share(arrivals: Sequence[float], storage: Freezing | Slowing, depth: int, limit: float) -> float:
    """Return the share of arrivals that are late for a client that queues what finds the depth full."""
    in_flight: list[float] = []
    late = 0
    for arrival in arrivals:
        start = arrival if len(in_flight) < depth else max(arrival, heappop(in_flight))
        heappush(in_flight, storage.answers(start))
        late += storage.answers(start) - arrival > limit
    return late / len(arrivals)


@dataclass(frozen=True)
class Replay:
    """What a replay measured: the latencies in seconds, and the share of operations that filled the depth."""

    latencies: Sequence[float]
    full_share: float

    def operation(self, seconds: float) -> OperationResult:
        """Return it as the result of an operation."""
        nanoseconds = [round(1e9 * latency) for latency in self.latencies]
        counts: dict[int, int] = {}
        for value in nanoseconds:
            counts[bin_index(value)] = counts.get(bin_index(value), 0) + 1
        histogram, count = Histogram(counts=counts), len(nanoseconds)
        rates = Rates(iops=count / seconds, bytes_per_second=0)
        latency = Latency(
            kind=LatencyKind.FULL,
            count=count,
            mean_nanoseconds=sum(nanoseconds) / count,
            max_nanoseconds=max(nanoseconds),
            percentiles={"99": histogram.percentile(99) or 0},
            histogram=histogram.encode(),
        )
        return OperationResult(
            operation=Operation.READ,
            ios=count,
            bytes=0,
            rates=rates,
            whole_run=rates,
            sum_of_rates=rates,
            latency=latency,
        )


def replayed(arrivals: Sequence[float], storage: Freezing | Slowing, depth: int, seconds: float) -> Replay:
    """Replay arrivals until the time is over; each gap begins with the end of the submission before it."""
    in_flight: list[float] = []
    latencies, filled, now, before = [], 0, 0.0, 0.0
    for arrival in arrivals:
        now, before = now + arrival - before, arrival
        while in_flight and in_flight[0] <= now:
            heappop(in_flight)
        if len(in_flight) == depth:
            now = heappop(in_flight)
        if now >= seconds:
            break
        end = storage.answers(now)
        heappush(in_flight, end)
        latencies.append(end - now)
        filled += len(in_flight) == depth
    return Replay(latencies, filled / len(latencies))
