"""The traces of random arrivals that fio replays."""

import math
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from plimsoll.tools.base import StepContext, StepKind, Timing
from plimsoll.tools.fio.distribution import Pareto, Zipf, scattered_blocks
from plimsoll.tools.fio.parameters import SPARE_SECONDS, FioParameters, Trace
from plimsoll.tools.fio.tool import Fio
from plimsoll.tools.target import VolumeKind, VolumeTarget

FIO = Fio()

MEBIBYTE = 2**20
Arrival = tuple[int, str, int, int]


def trace(**changes: object) -> Trace:
    fields = {
        "seed": 1,
        "rate": 1000.0,
        "seconds": 20,
        "block_sizes": {4096: 100},
        "offset": 0,
        "blocks": 256,
        "is_random": True,
        "read_percent": 100,
        **changes,
    }
    return Trace(**fields)  # type: ignore[arg-type] # names vary


def arrivals(lines: Trace) -> list[Arrival]:
    """Return microseconds, operation, offset and length of each arrival."""
    header, add, opened, *rest, closed = lines
    assert (header, add, opened) == ("fio version 3 iolog\n", "0 data add\n", "0 data open\n")
    assert closed == f"{lines.seconds * 10**6} data close\n"
    found = []
    for line in rest:
        time, name, operation, offset, length = line.removesuffix("\n").split(" ")
        assert name == "data"
        found.append((int(time), operation, int(offset), int(length)))
    return found


def of(target: VolumeTarget, seed: int = 7, **fields: JsonValue) -> Trace:
    context = StepContext(
        step=StepKind.PREPARE,
        target=target,
        timing=Timing(ramp_seconds=2, runtime_seconds=5),
        seed=seed,
        work_directory="/work/prepare",
    )
    parameters = FioParameters.model_validate({"rateIops": 1000, "arrivals": "Poisson", **fields})
    ((name, lines),) = FIO.command(parameters, context).inputs.items()
    assert name == "arrivals"
    assert isinstance(lines, Trace)
    return lines


@given(
    seed=st.integers(0, 2**64),
    rate=st.floats(1, 10_000),
    seconds=st.integers(1, 3),
    block_sizes=st.integers(1, 2**7).flatmap(
        lambda sectors: st.sampled_from([{512 * sectors: 100}, {512 * sectors: 70, 2048 * sectors: 30}])
    ),
    offset=st.integers(0, 2**40).map(lambda sectors: 512 * sectors),
    blocks=st.integers(4, 2**41),
    skew=st.sampled_from([None, Zipf(0.9, 4096), Zipf(1.1, 4096), Pareto(0.2, 4096)]),
    is_random=st.booleans(),
    read_percent=st.integers(0, 100),
)
def test_arrivals_are_in_order_and_within_their_part(seed: int, **fields: object) -> None:
    lines = trace(seed=seed, **fields)
    found = arrivals(lines)
    times = [0, *(time for time, *_ in found), lines.seconds * 10**6]
    assert all(before <= after for before, after in pairwise(times))
    for _, _, offset, length in found:
        unit = min(lines.block_sizes)
        block, rest = divmod(offset - lines.offset, unit)
        assert rest == 0
        assert length in lines.block_sizes
        assert 0 <= block <= lines.blocks - length // unit
    kinds = {operation for _, operation, *_ in found}
    assert kinds <= {0: {"write"}, 100: {"read"}}.get(lines.read_percent, {"read", "write"})


@given(rate=st.floats(500, 10_000), percent=st.integers(1, 99), seed=st.integers(0, 99))
def test_numbers_of_operations_are_those_of_one_poisson_process(rate: float, percent: int, seed: int) -> None:
    found = arrivals(trace(seed=seed, rate=rate, seconds=4, read_percent=percent))
    expected = 4 * rate
    assert abs(len(found) - expected) < 6 * math.sqrt(expected)
    reads = sum(operation == "read" for _, operation, *_ in found)
    share = percent / 100
    assert abs(reads - len(found) * share) < 6 * math.sqrt(len(found) * share * (1 - share)) + 1


@given(rate=st.floats(500, 50_000), delay=st.floats(0, 8), seed=st.integers(0, 99))
def test_a_replay_makes_up_for_what_its_submissions_take(rate: float, delay: float, seed: int) -> None:
    """Operations start when they are due, or right after the one before: a queue with one server (Lindley 1952)."""
    due = [time for time, *_ in arrivals(trace(rate=rate, seconds=1, seed=seed))]
    times = [time for time, *_ in arrivals(trace(rate=rate, seconds=1, seed=seed, delay=delay))]
    ready, before, free = 0.0, 0, 0.0
    for expected, time in zip(due, times, strict=True):
        # fio waits for each gap from the end of the submission before it.
        start, before = ready + time - before, time
        assert start == pytest.approx(max(expected, free), abs=2)
        ready, free = start + delay, max(expected, free) + delay


@pytest.mark.parametrize("rate", [100.0, 10_000.0])
def test_gaps_are_distributed_exponentially(rate: float) -> None:
    times = [time for time, *_ in arrivals(trace(rate=rate, seconds=int(1e5 / rate)))]
    gaps = [(after - before) * rate / 1e6 for before, after in pairwise(times)]
    for multiple in (0.1, 0.5, 1, 2, 4):
        share = sum(gap > multiple for gap in gaps) / len(gaps)
        # Times are whole microseconds.
        tolerance = 5 * math.sqrt(math.exp(-multiple) / len(gaps)) + rate / 1e6
        assert share == pytest.approx(math.exp(-multiple), abs=tolerance)


def test_random_blocks_are_visited_equally_often() -> None:
    found = arrivals(trace(rate=5000.0, blocks=10))
    for block in range(10):
        visits = sum(offset == 4096 * block for _, _, offset, _ in found)
        assert visits == pytest.approx(len(found) / 10, abs=5 * math.sqrt(len(found) / 10))


def test_sizes_are_mixed_at_random_and_follow_each_other_in_order() -> None:
    found = arrivals(trace(rate=5000.0, block_sizes={4096: 75, 16384: 25}, is_random=False, blocks=2**20))
    assert sum(length == 16384 for *_, length in found) / len(found) == pytest.approx(0.25, abs=0.02)
    assert all(before + length == after for (*_, before, length), (*_, after, _) in pairwise(found))


def of_rank(rank: int, blocks: int) -> int:
    """Return fio's block of a rank."""
    return rank * 0x61C8864680B583EB % 2**64 % blocks


@pytest.mark.parametrize("blocks", [1, 2, 3, 97, 1000, 4096, 18_608, 36_368, 37_280, 57_344, 65_521])
def test_fio_scatters_its_ranks_over_nearly_all_blocks(blocks: int) -> None:
    chosen = scattered_blocks(blocks)
    assert blocks - 40 < chosen <= blocks
    ranks = Counter(of_rank(rank, chosen) for rank in range(chosen))
    assert len(ranks) >= 0.95 * chosen
    assert max(ranks.values()) <= 2


@pytest.mark.parametrize(
    "skew", [Zipf(0.05, 4096), Zipf(0.5, 4096), Zipf(0.8, 4096), Zipf(1.2, 4096), Pareto(0.2, 4096), Pareto(0.45, 4096)]
)
def test_hot_blocks_get_at_most_the_share_that_the_cache_check_assumes_and_hardly_less(skew: Zipf | Pareto) -> None:
    blocks, draws = scattered_blocks(1000), 30_000
    visits = Counter(of_rank(skew.rank((draw + 0.5) / draws, blocks), blocks) for draw in range(draws))
    for hottest in (1, 10, 100, 200, 400):
        share = sum(count for _, count in visits.most_common(hottest)) / draws
        assert share <= skew.share(hottest / blocks, 4096 * blocks) < share + 0.11


def test_sequential_reads_and_writes_have_places_of_their_own() -> None:
    found = arrivals(trace(is_random=False, read_percent=50, blocks=7, offset=MEBIBYTE))
    for kind in ("read", "write"):
        places = [offset for _, operation, offset, _ in found if operation == kind]
        assert places == [MEBIBYTE + number % 7 * 4096 for number in range(len(places))]


def test_a_trace_is_the_same_each_time() -> None:
    assert list(trace()) == list(trace())
    assert list(trace())[3:6] != list(trace(seed=2))[3:6]


TARGET = VolumeTarget(kind=VolumeKind.DEVICE, path="/dev/v", size=8 * MEBIBYTE, offset=MEBIBYTE)


def test_arrivals_are_on_the_data_set_and_outlast_the_measurement() -> None:
    mixed = of(TARGET, pattern="randrw", readPercent=70)
    assert (mixed.rate, mixed.offset, mixed.blocks, mixed.read_percent) == (1000, MEBIBYTE, 2048, 70)
    assert (mixed.seconds, mixed.is_random) == (2 + 5 + SPARE_SECONDS, True)
    assert mixed.delay == 4
    written = of(TARGET, pattern="write", blockSize="3Mi")
    assert (written.blocks, written.is_random, written.read_percent) == (2, False, 0)


def test_clients_have_arrivals_of_their_own() -> None:
    assert list(of(TARGET, seed=7))[3:6] != list(of(TARGET, seed=8))[3:6]
