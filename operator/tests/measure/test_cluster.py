import dataclasses
from typing import Any

import pytest

from plimsoll.ceph.watch import LAG, ClusterSample, ClusterWatch, PoolCounters
from plimsoll.measure.cluster import cluster_summary, polls_around, pool_io, pool_io_within, unwatched_nanoseconds
from plimsoll.measure.timeline import Interval
from support.client_documents import QUIET_CLUSTER

SECOND = 10**9
SPAN = Interval(start=100 * SECOND, end=160 * SECOND)


def counters(ios: int) -> PoolCounters:
    return PoolCounters(reads=ios, writes=ios, read_bytes=ios * 4096, written_bytes=ios * 1024)


def look(second: int, *, silent: str = "", **changes: Any) -> ClusterSample:
    """Look at a cluster with 100 reads and writes per second on the run's pool, and 10 on another."""
    pools = {"ours": counters(100 * second), "other": counters(10 * second), ".mgr": counters(1000 * second)}
    status = None if silent else dataclasses.replace(QUIET_CLUSTER, **changes)
    return ClusterSample(at=second * SECOND, status=status, problem=silent, pools={} if silent else pools)


def watched(*samples: ClusterSample) -> ClusterWatch:
    return ClusterWatch(samples=samples, pools=("ours",))


REGULAR = watched(*(look(second) for second in range(90, 175, 5)))


def test_looks_that_count_are_those_within_and_one_on_either_side() -> None:
    assert [
        sample.at // SECOND for sample in polls_around(watched(*map(look, (80, 95, 101, 159, 161, 170))), SPAN)
    ] == [95, 101, 159, 161]
    at_ends = polls_around(watched(*map(look, (99, 100, 130, 160, 161))), SPAN)
    assert [sample.at // SECOND for sample in at_ends] == [100, 130, 160]
    assert len(polls_around(REGULAR, None)) == len(REGULAR.samples)


@pytest.mark.parametrize(
    ("seconds", "missed"),
    [
        (range(90, 175, 5), 0),
        (range(90, 175, 15), 0),
        ((95, 165), 60),
        ((95, 110, 130, 145, 160), 20),
        ((130,), 60),
        ((100, 115, 130), 30),
        ((), 60),
    ],
)
def test_pauses_of_more_than_three_looks_were_not_watched(seconds: Any, missed: int) -> None:
    assert unwatched_nanoseconds(watched(*map(look, seconds)), SPAN) == missed * SECOND


def test_look_without_an_answer_does_not_count() -> None:
    watch = watched(look(95), look(110, silent="x"), look(125), look(140), look(155), look(165))
    assert unwatched_nanoseconds(watch, SPAN) == 25 * SECOND


def test_counters_are_those_of_the_run_and_of_others_without_the_managers() -> None:
    found = pool_io(REGULAR, polls_around(REGULAR, SPAN))
    assert found is not None
    assert found.between == Interval(start=100 * SECOND, end=160 * SECOND)
    assert (found.ours.operations, found.foreign.operations, found.foreign.bytes) == (12_000, 1200, 600 * 5120)
    assert found.per_second(found.foreign.operations) == 20


def test_looks_inside_are_those_whose_counters_tell_of_inside_only() -> None:
    found = pool_io_within(REGULAR, SPAN)
    assert found is not None
    assert found.between == Interval(start=SPAN.start + LAG, end=SPAN.end)
    assert pool_io_within(REGULAR, Interval(start=SPAN.start, end=SPAN.start + 3 * LAG)) is None
    assert pool_io_within(dataclasses.replace(REGULAR, pools=()), SPAN) is None


def test_a_recreated_pool_is_not_counted_twice() -> None:
    first, last = look(100), look(150)
    anew = dataclasses.replace(last, pools={**last.pools, "other": counters(1)})
    found = pool_io(watched(first, anew), (first, anew))
    assert found is not None
    assert (found.foreign.operations, found.ours.operations) == (0, 10_000)


def test_a_pool_that_exists_for_a_part_of_the_time_counts_from_zero() -> None:
    first, second, last = look(100), look(125), look(150)
    between = dataclasses.replace(second, pools={**second.pools, "new": counters(1000)})
    found = pool_io(watched(first, between, last), (first, between, last))
    assert found is not None
    assert found.foreign.operations == 1000 + 2000


def test_a_pool_without_counters_is_not_counted() -> None:
    watch = ClusterWatch(samples=REGULAR.samples, pools=("ours", "data"))
    assert pool_io(watch, watch.samples) is None


def test_summary() -> None:
    bad = look(120, health="HEALTH_WARN", checks={"SLOW_OPS": "HEALTH_WARN"}, used_bytes=2)
    samples = (look(95), look(110), bad, look(125, silent="no answer\nfor 10 s"), *map(look, range(130, 175, 5)))
    found = cluster_summary(watched(*samples), SPAN)
    assert found is not None
    assert (found.samples, found.failed, found.worst_health, found.used_ratio) == (11, 1, "HEALTH_WARN", 0.5)
    assert "SLOW_OPS" in found.problems[0]
    assert found.problems[1] == "Ceph did not answer: no answer for 10 s"
    assert (found.read_bytes_per_second, found.written_bytes_per_second) == (409_600, 102_400)
    assert (found.operations_per_second, found.foreign_operations_per_second) == (200, 20)


def test_summary_of_a_watch_that_saw_nothing() -> None:
    found = cluster_summary(watched(), SPAN)
    assert found is not None
    assert found.model_dump(exclude_none=True) == {"samples": 0, "failed": 0, "problems": ()}
    assert cluster_summary(None, SPAN) is None
