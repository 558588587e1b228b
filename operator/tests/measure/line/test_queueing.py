import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.simulated_storage import Queue


def erlang(utilisation: float, waited: float) -> float:
    """Return P(W <= t) by Erlang's formula of 1909, with t in services; precise only for few of them."""
    terms = (
        (utilisation * (k - waited)) ** k * math.exp(-utilisation * (k - waited)) / math.factorial(k)
        for k in range(math.floor(waited) + 1)
    )
    return (1 - utilisation) * math.fsum(terms)


@given(st.floats(0.05, 0.95), st.floats(0, 6))
def test_it_agrees_with_erlang(utilisation: float, waited: float) -> None:
    assert Queue(utilisation, 1).share_within(1 + waited) == pytest.approx(erlang(utilisation, waited), abs=1e-9)


@settings(max_examples=30)
@given(st.floats(0.05, 0.97))
def test_its_mean_is_that_of_pollaczek_and_khinchine(utilisation: float) -> None:
    queue = Queue(utilisation, 1)
    width, longest = 1 / 64, queue.percentile(99.9999)
    beyond = sum(1 - queue.share_within((step + 0.5) * width) for step in range(math.ceil(longest / width)))
    assert beyond * width == pytest.approx(queue.mean_latency, rel=0.005)


def test_it_agrees_with_a_simulated_queue() -> None:
    chance = random.Random(7)  # noqa: S311 - numbers, not secrets
    waiting, latencies = 0.0, []
    for _ in range(200_000):
        latencies.append(waiting + 1)
        waiting = max(0.0, waiting + 1 - chance.expovariate(0.7))
    latencies.sort()
    queue = Queue(0.7, 1)
    for percent, precision in ((50, 0.02), (90, 0.02), (99, 0.05)):
        assert latencies[round(len(latencies) * percent / 100)] == pytest.approx(
            queue.percentile(percent), rel=precision
        )


@given(st.floats(0.05, 0.9), st.floats(1, 1e6), st.sampled_from([50, 90, 99, 99.9]))
def test_a_percentile_scales_with_the_time_of_one_service(utilisation: float, capacity: float, percent: float) -> None:
    whole = Queue(utilisation, 1).percentile(percent)
    assert Queue(utilisation * capacity, capacity).percentile(percent) == pytest.approx(whole / capacity, rel=1e-6)


def test_a_percentile_rises_with_the_load() -> None:
    percentiles = [Queue(load, 100).percentile(99) for load in range(5, 100, 5)]
    assert percentiles == sorted(percentiles)
    assert percentiles[0] > 0.01


def test_an_idle_server_needs_one_service() -> None:
    assert Queue(1, 100).share_within(0.00999) == 0
    assert Queue(1, 100).share_within(0.01) == pytest.approx(0.99)
    assert Queue(1, 100).percentile(50) == 0.01


@pytest.mark.parametrize("load", [0, 100, 101])
def test_an_overloaded_queue_has_no_percentiles(load: float) -> None:
    with pytest.raises(ValueError, match="100 operations per second"):
        Queue(load, 100)
