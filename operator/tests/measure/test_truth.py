"""What is measured, against what is true: a simulated storage whose speed and stalls are known."""

import math
import random
from fractions import Fraction

import pytest

from plimsoll.measure.histogram import PERCENTILES
from support.saturated import Simulated, Stall

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
    assert result.steady_state is not None
    assert result.steady_state.rate.attained


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
    state = trial.numbers().operations[0].steady_state
    assert state is not None
    assert state.p99 is not None
    assert state.p99.attained
    for number, value in enumerate(state.p99.rounds):
        part = sorted(
            latency for done in trial.done for moment, latency in done if 12 * number <= moment < 12 * (number + 1)
        )
        assert value == pytest.approx(part[math.ceil(len(part) * 0.99) - 1], rel=1 / 128)
