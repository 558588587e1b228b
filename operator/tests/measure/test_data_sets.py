"""What reads are read from, beside the memory of the OSDs."""

import random
from pathlib import Path

import pytest

from plimsoll.api.names import Operation
from plimsoll.api.surroundings import ClusterSummary
from plimsoll.measure.cluster import data_set_text
from plimsoll.measure.intake import Skew, part_read_again, receive
from plimsoll.tools.base import Output
from plimsoll.tools.fio.distribution import Pareto, Zipf, scattered_blocks
from plimsoll.tools.rados_bench import RadosBench, RadosBenchParameters
from support.client_documents import BLOCK, RAMP, RUNTIME, document, facts, measurement, operation

RADOS_BENCH = RadosBench()

GIB = 2**30
GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize(
    ("memory", "text"),
    [(48 * GIB, "of 12 GiB, 25 % of the OSDs' memory"), (None, "of 12 GiB, the OSDs' memory is unknown")],
)
def test_a_label_says_what_reads_are_read_from(memory: int | None, text: str) -> None:
    cluster = ClusterSummary(samples=1, failed=0, data_set_bytes=12 * GIB, osd_memory_bytes=memory)
    assert data_set_text([None, cluster]) == text


def test_a_label_says_nothing_of_writes_and_without_ceph() -> None:
    assert data_set_text([None]) == ""
    assert data_set_text([ClusterSummary(samples=1, failed=0, osd_memory_bytes=GIB)]) == ""


def test_rados_bench_says_what_it_wrote_to_be_read() -> None:
    stdout = (GOLDEN / "ceph-18.2" / "rados-bench-write.txt").read_text()
    output = Output(exit_code=0, stdout=stdout, stderr="", files={})
    parameters = RadosBenchParameters(operation="rand", object_size=4 * 2**20)
    assert RADOS_BENCH.written_by_prepare(parameters, output) == 250 * 4 * 2**20
    assert RADOS_BENCH.written_by_prepare(parameters, Output(exit_code=0, stdout="", stderr="", files={})) is None


def part_again(blocks: int, read: int, *, at_random: bool, windowed: bool = True, skew: Skew | None = None) -> float:
    """Return the part that is read again, of so many blocks read, after the ramp, from a data set of so many."""
    reading = measurement(operation(read, operation=Operation.READ, bytes=read * BLOCK, cells=None))
    known = facts(1, at_random=at_random, windowed=windowed, skew=skew)
    (answer,) = receive(known, {0: document(0, reading, data_set_bytes=blocks * BLOCK)}).measured
    return part_read_again(known, [answer])


@pytest.mark.parametrize("passes", [0.1, 0.5, 1.0, 2.0, 6.0])
def test_reads_at_random_places_are_repeated_as_often_as_in_a_simulation(passes: float) -> None:
    blocks, generator, seen, again = 2000, random.Random(1), set[int](), 0  # noqa: S311 - no secret
    read = round(passes * blocks)
    ramp = round(read * RAMP / RUNTIME)
    for number in range(ramp + read):
        block = generator.randrange(blocks)
        again += block in seen and number >= ramp
        seen.add(block)
    assert part_again(blocks, read, at_random=True) == pytest.approx(again / read, abs=0.03)


@pytest.mark.parametrize("skew", [Zipf(0.9, BLOCK), Zipf(1.2, BLOCK), Pareto(0.2, BLOCK)])
@pytest.mark.parametrize("passes", [0.2, 2.0])
def test_skewed_reads_are_repeated_at_most_as_often_as_assumed(skew: Zipf | Pareto, passes: float) -> None:
    blocks, generator, seen, again = scattered_blocks(3 * 2**12), random.Random(1), set[int](), 0  # noqa: S311 - no secret
    read = round(passes * blocks)
    ramp = round(read * RAMP / RUNTIME)
    for number in range(ramp + read):
        block = skew.rank(generator.random(), blocks) * 0x61C8864680B583EB % 2**64 % blocks
        again += block in seen and number >= ramp
        seen.add(block)
    assert again / read < part_again(blocks, read, at_random=True, skew=skew) < again / read + 0.15


# The ramp reads a quarter as much before.
@pytest.mark.parametrize(("passes", "again"), [(0.5, 0.0), (1.0, 0.25), (4.0, 1.0)])
def test_reads_in_order_are_repeated_once_everything_was_read(passes: float, again: float) -> None:
    assert part_again(1000, round(1000 * passes), at_random=False) == pytest.approx(again, abs=0.01)
    assert part_again(1000, 1000, at_random=False, windowed=False) == pytest.approx(0.0)


def test_a_tool_with_phases_reads_what_it_wrote() -> None:
    known = facts(1, windowed=False)
    phases = [operation(operation=kind, cells=None, runtime=10**9) for kind in (Operation.WRITE, Operation.READ)]
    (answer,) = receive(known, {0: document(0, measurement(*phases))}).measured
    assert part_read_again(known, [answer]) == 1.0


def test_what_was_not_timed_counts_as_read_again() -> None:
    known = facts(1)
    nothing = measurement(operation(0, operation=Operation.READ, bytes=0, cells=None))
    (answer,) = receive(known, {0: document(0, nothing)}).measured
    assert part_read_again(known, [answer]) == 1.0
