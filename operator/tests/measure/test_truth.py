"""What is measured, against what is true: a simulated storage whose speed and stalls are known."""

import math
import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import pytest

from plimsoll.api.names import LatencyKind, Operation
from plimsoll.api.operation import SteadinessState
from plimsoll.measure.histogram import PERCENTILES, Histogram, bin_index
from plimsoll.measure.intake import TrialFacts
from plimsoll.measure.sample import Cells, ClientDocument, LatencySample, LatencySlices, Measurement, OperationSample
from plimsoll.measure.trial import TrialNumbers, measure_round
from support.client_documents import BLOCK, SECOND, T0, document

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
        return measure_round(facts, {client: self.document(client) for client in facts.clients})

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


RATE = 400
RUNTIME = 120


def skews(seed: int, clients: int, greatest: float) -> list[float]:
    """Return the delays of clients, of which one is 0 and one the greatest."""
    chance = random.Random(seed)  # noqa: S311 - numbers, not secrets
    return [0.0, greatest, *(chance.uniform(0, greatest) for _ in range(clients - 2))]


@pytest.mark.parametrize(("clients", "greatest"), [(2, 0.0), (2, 0.37), (3, 2.5), (8, 10.0), (4, 20.0), (16, 30.0)])
def test_skew_does_not_change_the_headline_but_the_sum_of_rates(clients: int, greatest: float) -> None:
    numbers = Simulated(seed=clients, skews=skews(1, clients, greatest), runtime=RUNTIME, rate=RATE).numbers()
    (result,) = numbers.operations
    assert result.rates.iops == pytest.approx(RATE, rel=0.005)
    assert result.sum_of_rates.iops == pytest.approx(RATE * (1 + greatest / RUNTIME), rel=0.005)
    assert result.bias == pytest.approx(greatest / RUNTIME, abs=0.006)
    assert numbers.window is not None
    assert numbers.window.spread_seconds == pytest.approx(greatest)
    assert result.series is not None
    assert sum(result.series.iops) / len(result.series.iops) == pytest.approx(RATE, rel=0.005)
    assert numbers.steadiness is not None
    assert numbers.steadiness.state is SteadinessState.STEADY


@pytest.mark.parametrize("seed", range(12))
def test_every_stall_of_two_and_a_half_seconds_is_found(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - numbers, not secrets
    begin = chance.uniform(5, 25)
    spread = [chance.uniform(0, 1.5) for _ in range(chance.choice([1, 2, 5]))]
    numbers = Simulated(
        seed=seed, skews=spread, runtime=30, rate=RATE, stalls=[Stall(start=begin, seconds=2.5)]
    ).numbers()
    assert numbers.stalls is not None
    assert 0.5 <= numbers.stalls.seconds <= 2.5
    assert numbers.stalls.seconds <= numbers.stalls.worst_client_seconds <= 2.5
    reasons = [finding.reason for finding in numbers.findings]
    assert "Stalled" in reasons
    assert "ClientStalled" not in reasons, "no client stood still while others went on"
    assert numbers.window is not None
    truth = RATE * (1 - 2.5 / numbers.window.seconds)
    assert numbers.operations[0].rates.iops == pytest.approx(truth, rel=0.01)


@pytest.mark.parametrize("seed", range(6))
def test_a_stall_of_one_client_is_found_and_is_not_one_of_all(seed: int) -> None:
    stall = Stall(start=7 + seed / 7, seconds=2.5, client=seed % 3)
    numbers = Simulated(seed=seed, skews=[0.0, 0.4, 0.9], runtime=30, rate=RATE, stalls=[stall]).numbers()
    assert numbers.stalls is not None
    assert numbers.stalls.seconds == 0
    assert 1 <= numbers.stalls.worst_client_seconds <= 2
    assert numbers.stalls.worst_client == stall.client
    (finding,) = [finding for finding in numbers.findings if finding.reason == "ClientStalled"]
    assert finding.clients == (stall.client,)
    assert numbers.operations[0].rates.iops == pytest.approx(RATE, rel=0.01)


def test_without_a_stall_none_is_found() -> None:
    numbers = Simulated(seed=3, skews=[0.0, 0.6, 0.2], runtime=60, rate=RATE).numbers()
    assert numbers.stalls is not None
    assert numbers.stalls.worst_client_seconds == 0
    assert not {"Stalled", "ClientStalled"} & {finding.reason for finding in numbers.findings}


def test_merged_percentiles_are_those_of_all_operations_together() -> None:
    trial = Simulated(seed=5, skews=[0.0] * 7, runtime=60, rate=2 * RATE)
    latencies = trial.latencies
    found = trial.numbers().operations[0].latency
    assert found.count == len(latencies)
    assert set(found.percentiles) == {"50", "90", "95", "99", "99.9"}
    for p in PERCENTILES[:5]:
        # The exact value of the double decides between two neighbours, as it does in fio.
        truth = latencies[math.ceil(len(latencies) * Fraction(p) / 100) - 1]
        assert found.percentiles[str(p)] == pytest.approx(truth, rel=1 / 128)


def test_percentiles_of_the_rounds_are_those_of_their_operations() -> None:
    trial = Simulated(seed=6, skews=[0.0] * 4, runtime=60, rate=900)
    steadiness = trial.numbers().operations[0].p99_steadiness
    assert steadiness is not None
    assert steadiness.state is not SteadinessState.NOT_STEADY
    inside, outside = list[int](), list[int]()
    for start in range(0, 60, SLICE_SECONDS):
        end = start + SLICE_SECONDS
        part = sorted(latency for done in trial.done for moment, latency in done if start <= moment < end)
        is_inside = steadiness.start_seconds <= start < steadiness.end_seconds
        (inside if is_inside else outside).append(part[math.ceil(len(part) * 0.99) - 1])
    assert steadiness.inside == pytest.approx(sum(inside) / len(inside), rel=1 / 128)
    assert steadiness.outside == pytest.approx(sum(outside) / len(outside), rel=1 / 128)
