"""Whether an activity changed the rate or the percentiles, or whether that is unknown: in both directions."""

import dataclasses
import math
import random
import re
from collections import Counter
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.ceph.watch import ClusterSample, ClusterWatch, Placement, PoolCounters
from plimsoll.measure.checks.effect import Activity, Difference, Effect
from plimsoll.measure.histogram import Histogram, bin_index, bin_midpoint
from plimsoll.measure.sample import Cells, LatencySample, LatencySlices, Measurement, OperationSample
from plimsoll.measure.trial import TrialNumbers
from plimsoll.tools.base import Timing
from support.client_documents import (
    BLOCK,
    QUIET_CLUSTER,
    RAMP,
    SECOND,
    T0,
    document,
    measure,
    measurement,
    operation,
    quiet_host,
)

LENGTH = 60
START = T0 + RAMP * SECOND
RATE = 1000
FAST, SLOW = 1_000_000, 8_000_000
"""Nanoseconds."""
PLACEMENT = Placement(osds=3, per_read=1, per_write=3)
SCRUBBED = {"active+clean": 7, "active+clean+scrubbing": 1}


def run(
    rates: Sequence[float], late: Sequence[float | Histogram], *, slices: bool = True, width: int = 1
) -> Measurement:
    """Make a client's run: operations of each second, and the part of them that took long, or their latencies.

    `width` is that of a slice of latencies, in seconds.
    """
    ios = [round(rate) for rate in rates]
    histograms = [
        part
        if isinstance(part, Histogram)
        else Histogram(counts={bin_index(FAST): count - round(count * part), bin_index(SLOW): round(count * part)})
        for count, part in zip(ios, late, strict=True)
    ]
    cells = Cells(width_nanoseconds=SECOND, ios=tuple(map(float, ios)), bytes=tuple(float(BLOCK * n) for n in ios))
    whole = Histogram.merge(histograms)
    timed = LatencySample(
        kind=LatencyKind.FULL,
        count=whole.total,
        mean_nanoseconds=1e6,
        min_nanoseconds=FAST,
        max_nanoseconds=max(SLOW + SLOW // 32, bin_midpoint(max(whole.counts))),
        histogram=whole.encode(),
    )
    logged = LatencySlices(
        width_nanoseconds=width * SECOND,
        histograms=tuple(
            Histogram.merge(histograms[start : start + width]).encode() for start in range(0, len(rates), width)
        ),
    )
    wrote = operation(
        ios=sum(ios), bytes=BLOCK * sum(ios), cells=cells, latency=timed, slices=logged if slices else None
    )
    return measurement(wrote, runtime=len(rates) * SECOND)


def looks(scrubbed: range, *, foreign: float = 0.0, length: int = LENGTH) -> ClusterWatch:
    """Look every five seconds; scrubs, and foreign operations per second, are those of some seconds alone."""
    samples = []
    for second in range(-10, length + 10, 5):
        status = (
            dataclasses.replace(QUIET_CLUSTER, pg_states=SCRUBBED)
            if second in scrubbed and not foreign
            else QUIET_CLUSTER
        )
        done = min(max(0, second + RAMP), RAMP + length) * RATE
        others = round(foreign * min(max(0, second - scrubbed.start), len(scrubbed)))
        pools = {
            "ours": PoolCounters(reads=0, writes=done, read_bytes=0, written_bytes=done * BLOCK),
            "other": PoolCounters(reads=others, writes=0, read_bytes=0, written_bytes=0),
        }
        samples.append(ClusterSample(at=START + second * SECOND, status=status, pools=pools))
    return ClusterWatch(samples=tuple(samples), pools=("ours",), placement=PLACEMENT)


def trial(watch: ClusterWatch, seconds: range, **changes: Any) -> TrialNumbers:
    """Judge a minute in which the client had that `rate` and `late` tail for some seconds, and the usual otherwise."""
    return measure(document(0, minute(seconds, **changes)), runtime_seconds=LENGTH, cluster=watch)


def minute(
    seconds: range, *, rate: float = RATE, late: float = 0.005, usual: float = 0.005, slices: bool = True
) -> Measurement:
    rates = [rate if second in seconds else RATE for second in range(LENGTH)]
    tails = [late if second in seconds else usual for second in range(LENGTH)]
    return run(rates, tails, slices=slices)


def words(numbers: TrialNumbers, reason: str) -> str:
    return next((item.message for item in numbers.findings if item.reason == reason), "")


MEANWHILE = range(20, 36)


def test_scrubs_that_changed_nothing_are_no_finding() -> None:
    assert trial(looks(MEANWHILE), MEANWHILE).findings == ()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rate": 0.85 * RATE}, "the write rate was 15 % lower"),
        ({"late": 0.06}, "the 99th percentile of write was 7"),
        ({"late": 0.015}, "the 99th percentile of write was 7"),
        ({"late": 0.06, "usual": 0.0}, "the 99th percentile of write was 7"),
        (
            {"rate": 0.6 * RATE, "late": 0.2},
            "meanwhile the write rate was 40 % lower, the 99th percentile of write was",
        ),
    ],
)
def test_scrubs_that_made_the_clients_slower_or_their_tail_longer_are(change: dict[str, float], says: str) -> None:
    """That a percentile is several times as long counts, not how many operations are: 1.5 % instead of 0.5 %."""
    assert says in words(trial(looks(MEANWHILE), MEANWHILE, **change), "Scrubbing")


def test_a_load_with_a_limit_and_a_long_tail_shows_it_in_its_median() -> None:
    """None takes longer than the usual 99th percentile, and the rate is that of the limit all the time."""
    found = [words(trial(looks(MEANWHILE), MEANWHILE, late=late, usual=0.02), "Scrubbing") for late in (0.02, 0.4, 0.9)]
    assert found[:2] == ["", ""]
    assert "meanwhile the median of write was" in found[2]


def test_a_client_that_was_faster_meanwhile_was_not_slowed_down() -> None:
    assert words(trial(looks(MEANWHILE), MEANWHILE, rate=1.1 * RATE), "Scrubbing") == ""


@pytest.mark.parametrize("scrubbed", [range(-10, 70), range(55), range(10, 70)])
def test_without_time_to_compare_with_the_effect_is_unknown(scrubbed: range) -> None:
    finding = words(trial(looks(scrubbed), range(0)), "Scrubbing")
    assert "its effect is unknown, because there was no calm time to compare with" in finding


def on(watch: ClusterWatch, osds: int | None, *, of: int = 500) -> ClusterWatch:
    """Let the run's data be on some of the OSDs of a cluster."""
    samples = [
        dataclasses.replace(sample, status=dataclasses.replace(sample.status, osds=of, osds_up=of, osds_in=of))
        for sample in watch.samples
        if sample.status
    ]
    placement = dataclasses.replace(watch.placement, osds=osds)
    return dataclasses.replace(watch, samples=tuple(samples), placement=placement)


@pytest.mark.parametrize(("osds", "is_harmless"), [(1800, False), (1801, True), (600, False), (None, False)])
def test_without_time_to_compare_with_half_of_what_a_p99_leaves_out_is_harmless(
    osds: int | None, *, is_harmless: bool
) -> None:
    """One placement group is on three OSDs, and a write on three as well: 9 of 1801 writes meet it."""
    found = words(trial(on(looks(range(-10, 70)), osds, of=2000), range(0)), "Scrubbing")
    assert (found == "") is is_harmless
    assert is_harmless or "of the operations (harmless: less than 0.5 %)" in found


@pytest.mark.parametrize(("osds", "is_harmless"), [(450, False), (451, True)])
def test_without_a_published_99th_percentile_it_is_a_fiftieth(osds: int, *, is_harmless: bool) -> None:
    documents = document(0, run([15] * LENGTH, [0.0] * LENGTH))
    found = measure(documents, runtime_seconds=LENGTH, cluster=on(looks(range(-10, 70)), osds))
    assert (words(found, "Scrubbing") == "") is is_harmless


def test_reads_meet_what_goes_on_on_their_one_osd() -> None:
    read = wrote().model_copy(update={"operation": Operation.READ})
    documents = document(0, measurement(read, runtime=LENGTH * SECOND))
    found = [
        words(measure(documents, runtime_seconds=LENGTH, cluster=on(looks(range(-10, 70)), osds)), "Scrubbing")
        for osds in (600, 601)
    ]
    assert found[0]
    assert not found[1]


@pytest.mark.parametrize(("osds", "is_harmless"), [(10, False), (5000, True)])
def test_data_that_moves_on_the_osds_of_a_small_pool_is_not_diluted_by_the_others(
    osds: int, *, is_harmless: bool
) -> None:
    watch = on(looks(range(0)), osds, of=5000)
    states = {"active+clean": 99, "active+remapped+backfilling": 1}
    samples = [
        dataclasses.replace(sample, status=dataclasses.replace(sample.status, pg_states=states))
        for sample in watch.samples
        if sample.status
    ]
    found = trial(dataclasses.replace(watch, samples=tuple(samples)), range(LENGTH), rate=0.7 * RATE)
    assert (words(found, "RecoveryTraffic") == "") is is_harmless


def silent(watch: ClusterWatch, seconds: range, slow: range = range(0)) -> ClusterWatch:
    """Leave polls without an answer, and let others report slow operations."""

    def look(sample: ClusterSample) -> ClusterSample:
        second = (sample.at - START) // SECOND
        if second in seconds or sample.status is None:
            return dataclasses.replace(sample, status=None, pools={}, problem="no answer")
        if second in slow:
            status = dataclasses.replace(sample.status, health="HEALTH_WARN", checks={"SLOW_OPS": "HEALTH_WARN"})
            return dataclasses.replace(sample, status=status)
        return sample

    return dataclasses.replace(watch, samples=tuple(map(look, watch.samples)))


def test_time_that_nobody_watched_is_not_calm() -> None:
    """Half of the minute is unwatched, and as slow as the scrubs were: what is left shows what they changed."""
    unwatched = range(36, 70)
    found = trial(silent(looks(MEANWHILE), unwatched), range(15, LENGTH), rate=0.8 * RATE)
    assert "the write rate was 20 % lower" in words(found, "Scrubbing")
    nothing = trial(silent(looks(MEANWHILE), range(41, 60)), range(0))
    assert words(nothing, "Scrubbing") == ""


def test_without_calm_time_that_was_watched_the_effect_is_unknown() -> None:
    unwatched = silent(silent(looks(MEANWHILE), range(1, 20)), range(36, 60))
    assert "no calm time to compare with" in words(trial(unwatched, range(0)), "Scrubbing")


def test_an_answer_that_is_missing_between_two_polls_that_show_it_is_no_certain_time() -> None:
    def at(parts: Sequence[float | None]) -> Activity:
        return Activity.polled([(5 * number * SECOND, part) for number, part in enumerate(parts)], None)

    whole, gap = at([0, 0.2, 0.2, 0.2, 0]), at([0, 0.2, None, 0.2, 0])
    assert [it.length // SECOND for it in whole.certain] == [5, 5]
    assert gap.certain == []
    assert [it.length // SECOND for it in gap.unknown] == [10]
    assert gap.part == whole.part, "a poll without an answer may have shown as much as the others"
    assert at([0, None, 0]).part == 0


def test_the_time_to_compare_with_is_free_of_all_activities() -> None:
    """Slow operations fill the rest: compared with these, the scrubs changed little."""
    rest = range(36, 70)
    both = silent(looks(MEANWHILE), range(0), slow=rest)
    found = trial(both, range(15, LENGTH), rate=0.7 * RATE)
    assert "30 % lower" in words(found, "Scrubbing")
    assert "30 % lower" in words(found, "SlowOps")


def test_an_activity_that_cannot_matter_is_calm_for_the_others() -> None:
    """One group of very many is scrubbed all the time; slow operations come and go."""
    both = silent(on(looks(range(-10, 70)), 2000), range(0), slow=MEANWHILE)
    assert words(trial(both, range(0)), "SlowOps") == ""
    assert "% lower" in words(trial(both, MEANWHILE, rate=0.7 * RATE), "SlowOps")


def test_an_effect_on_a_few_osds_that_can_be_seen_counts() -> None:
    found = trial(on(looks(MEANWHILE), 4000, of=4000), MEANWHILE, rate=0.8 * RATE)
    assert "20 % lower" in words(found, "Scrubbing")


def test_without_latencies_over_time_the_effect_is_unknown() -> None:
    found = words(trial(looks(MEANWHILE), MEANWHILE, slices=False), "Scrubbing")
    assert "effect is unknown, because rates or latencies over time are missing" in found


def scrub_message(*operations: OperationSample, scrubbed: range = MEANWHILE, late: float = 0.0) -> str:
    """Return what is said of scrubs while a client did these operations, and began that many seconds late."""
    measured = measurement(*operations, runtime=LENGTH * SECOND, late=late)
    return words(measure(document(0, measured), runtime_seconds=LENGTH, cluster=looks(scrubbed)), "Scrubbing")


def wrote(**changes: Any) -> OperationSample:
    return minute(MEANWHILE, **changes).operations[0]


@pytest.mark.parametrize(("rate", "is_known"), [(20, False), (40, True), (120, True)])
def test_too_few_operations_show_no_effect_on_a_percentile(rate: float, *, is_known: bool) -> None:
    few = run([rate] * LENGTH, [0.0] * LENGTH).operations[0]
    assert ("to distinguish it from chance" not in scrub_message(few)) is is_known


def test_of_so_few_operations_that_no_99th_percentile_is_published_the_rate_and_the_median_count() -> None:
    assert scrub_message(run([15] * LENGTH, [0.0] * LENGTH).operations[0]) == ""
    slow = [9 if second in range(15, 41) else 15 for second in range(LENGTH)]
    assert "the write rate was 39.3 % lower" in scrub_message(run(slow, [0.0] * LENGTH).operations[0])


def test_of_a_tool_without_percentiles_the_rate_counts() -> None:
    plain = LatencySample(kind=LatencyKind.MEAN_ONLY, count=RATE * LENGTH, mean_nanoseconds=1e6, max_nanoseconds=10**6)
    changes = {"latency": plain, "slices": None}
    assert scrub_message(wrote().model_copy(update=changes)) == ""
    assert "20 % lower" in scrub_message(wrote(rate=0.8 * RATE).model_copy(update=changes))


def test_the_effect_is_unknown_if_that_on_one_operation_is_but_syncs_have_none() -> None:
    read = {"operation": Operation.READ}
    assert scrub_message(wrote(), wrote().model_copy(update=read)) == ""
    assert "effect is unknown" in scrub_message(wrote(), wrote(slices=False).model_copy(update=read))
    assert "effect is unknown" in scrub_message(wrote(), wrote().model_copy(update={**read, "cells": None}))
    assert scrub_message(wrote(), operation(100, operation=Operation.SYNC, bytes=0, cells=None)) == ""


def test_the_worst_effect_counts_of_several_operations() -> None:
    late = wrote(late=0.06).model_copy(update={"operation": Operation.READ})
    assert "meanwhile the 99th percentile of read was" in scrub_message(wrote(rate=0.97 * RATE), late)


def test_operations_that_are_late_together_once_show_nothing() -> None:
    """A burst that falls into the scrub by chance is no effect of it."""
    tails = [0.5 if second == 24 else 0.005 for second in range(LENGTH)]
    found = scrub_message(run([RATE] * LENGTH, tails).operations[0])
    assert "the 99th percentile" not in found
    assert "too few operations to distinguish it from chance" in found


def test_what_was_only_partly_calm_was_disturbed() -> None:
    """Seconds 14 and 24 of the client begin before the disturbance does, and end after it."""
    tails = [0.9 if second in {14, 24} else 0.005 for second in range(LENGTH)]
    shifted = run([RATE] * LENGTH, tails).operations[0]
    assert scrub_message(run([RATE] * LENGTH, [0.005] * LENGTH).operations[0], scrubbed=range(20, 21), late=0.5) == ""
    assert scrub_message(shifted, scrubbed=range(20, 21), late=0.5) != ""


@pytest.mark.parametrize(("late", "is_found"), [(0.005, False), (0.015, True)])
def test_half_a_minute_of_scrubs_in_ten_are_judged_by_their_own_latencies(late: float, *, is_found: bool) -> None:
    """In slices of 30 s most of what overlaps the scrubs would be from other times."""
    length, scrubbed = 600, range(290, 320)
    tails = [late if second in range(285, 321) else 0.005 for second in range(length)]
    measured = run([RATE] * length, tails, width=Timing(ramp_seconds=RAMP, runtime_seconds=length).slice_seconds)
    numbers = measure(document(0, measured), runtime_seconds=length, cluster=looks(scrubbed, length=length))
    assert ("the 99th percentile of write was 7" in words(numbers, "Scrubbing")) is is_found
    assert is_found or words(numbers, "Scrubbing") == ""


def test_a_client_that_is_stopped_every_other_second_for_an_hour_is_compared_with_the_seconds_between() -> None:
    length = 3600
    spans = tuple((1000 * second, 1000 * second + 1000) for second in range(0, length, 2))
    stopped = quiet_host(float(length))
    cpu = {"throttled_seconds": 90.0, "throttled_periods": 900, "throttled": spans}
    stopped = stopped.model_copy(update={"cpu": stopped.cpu.model_copy(update=cpu)})
    for rate, says in ((RATE, ""), (0.9 * RATE, "the write rate was 10 % lower")):
        measured = run([rate if second % 2 == 0 else RATE for second in range(length)], [0.0] * length, slices=False)
        plain = {"latency": LatencySample(kind=LatencyKind.NONE), "slices": None}
        sample = measured.operations[0].model_copy(update=plain)
        answer = document(0, measurement(sample, runtime=length * SECOND), host=stopped)
        found = words(measure(answer, runtime_seconds=length), "ClientThrottled")
        assert says in found
        assert bool(found) is bool(says)


@pytest.mark.parametrize(
    ("noticeable", "known", "time", "part", "is_harmless"),
    [
        (False, True, 0.5, 1.0, True),
        (True, True, 0.5, 0.001, False),
        (False, False, 0.5, 0.005, False),
        (False, False, 0.5, 0.0049, True),
        (True, False, 0.0049, 1.0, True),
    ],
)
def test_an_effect_is_harmless_if_it_is_none_or_cannot_matter(
    noticeable: bool,  # noqa: FBT001 - a table
    known: bool,  # noqa: FBT001
    time: float,
    part: float,
    *,
    is_harmless: bool,
) -> None:
    difference = Difference(text="x", size=0.2, is_noticeable=noticeable, is_known=known)
    activity = Activity(certain=(), possible=(), part=part)
    assert Effect(activity=activity, time=time, differences=(difference,)).is_harmless is is_harmless


def noisy(
    chance: random.Random, *, rate: float = 1.0, tail: float = 1.0, operations: float = 300, scatter: float = 0.05
) -> Measurement:
    """Make a minute at storage that wanders, whose latency is log-normal, with an effect for half of the time."""
    wander, histograms, ios = 0.0, [], []
    for second in range(LENGTH):
        wander = 0.7 * wander + chance.gauss(0, scatter * (1 - 0.7**2) ** 0.5)
        is_busy = second in HALF
        expected = operations * (1 + wander) * (rate if is_busy else 1)
        ios.append(max(1, round(chance.gauss(expected, expected**0.5))))
        slow = (tail if is_busy else 1) * (1 - wander) * FAST
        counts: Counter[int] = Counter()
        for latency, operations_of_it in Counter(chance.choices(LATENCIES, k=ios[-1])).items():
            counts[bin_index(int(slow * latency))] += operations_of_it
        histograms.append(Histogram(counts=counts))
    return run(ios, histograms)


HALF = range(15, 45)
LATENCIES = [math.exp(0.6 * NormalDist().inv_cdf((part + 0.5) / 500)) for part in range(500)]
"""Of a log-normal distribution, equally likely."""


@pytest.mark.parametrize("operations", [100, 300, 1500])
def test_storage_that_scatters_is_not_blamed_on_scrubs(operations: int) -> None:
    chance = random.Random(39)  # noqa: S311 - numbers, not secrets
    documents = [document(0, noisy(chance, operations=operations)) for _ in range(60)]
    found = [words(measure(each, runtime_seconds=LENGTH, cluster=looks(HALF)), "Scrubbing") for each in documents]
    assert sum(text != "" for text in found) <= 1, "the goal is 2 %"


@pytest.mark.parametrize("effect", [{"rate": 0.7}, {"tail": 1.5}])
def test_scrubs_with_an_effect_beyond_chance_are_found(effect: dict[str, float]) -> None:
    chance = random.Random(39)  # noqa: S311 - numbers, not secrets
    documents = [document(0, noisy(chance, **effect)) for _ in range(25)]
    found = [words(measure(each, runtime_seconds=LENGTH, cluster=looks(HALF)), "Scrubbing") for each in documents]
    assert sum(text == "" for text in found) == 0


def mixed(chance: random.Random, *, reads: dict[str, float], writes: dict[str, float]) -> Measurement:
    """Make a minute of a disk with 285 reads and 15 writes per second, with effects for half of the time."""
    (read,), (write,) = (
        noisy(chance, operations=operations, scatter=0.02, **effect).operations
        for operations, effect in ((285, reads), (15, writes))
    )
    return measurement(read.model_copy(update={"operation": Operation.READ}), write, runtime=LENGTH * SECOND)


def share_found(trials: int, **effects: dict[str, float]) -> float:
    chance = random.Random(39)  # noqa: S311 - numbers, not secrets
    documents = [document(0, mixed(chance, **effects)) for _ in range(trials)]
    found = [words(measure(each, runtime_seconds=LENGTH, cluster=looks(HALF)), "Scrubbing") for each in documents]
    return sum(text != "" for text in found) / trials


def test_few_writes_beside_many_reads_do_not_make_harmless_scrubs_unknown() -> None:
    assert share_found(50, reads={}, writes={}) <= 1 / 50, "the goal is 2 %"


@pytest.mark.parametrize(
    "effects",
    [
        {"reads": {"rate": 0.7}, "writes": {"rate": 0.7}},
        {"reads": {"tail": 1.5}, "writes": {}},
        {"reads": {}, "writes": {"tail": 2.5}},
    ],
)
def test_scrubs_that_change_many_reads_or_few_writes_are_found(effects: dict[str, dict[str, float]]) -> None:
    assert share_found(15, **effects) == 1


def test_neighbours_that_come_and_go_are_judged_by_what_they_changed_up_to_a_fifth() -> None:
    burst = range(20, 30)
    felt = {"rate": 0.8 * RATE}
    seconds = range(10, 30)
    assert words(trial(looks(burst, foreign=0.5 * RATE), seconds), "ForeignLoad") == ""
    slower = words(trial(looks(burst, foreign=0.5 * RATE), seconds, **felt), "ForeignLoad")
    assert re.search(r"meanwhile the write rate was [\d.]+ % lower", slower)
    finding = next(
        item for item in trial(looks(burst, foreign=1.8 * RATE), seconds).findings if item.reason == "ForeignLoad"
    )
    assert finding.verdict is Verdict.INVALID, "so much is never only looked at by what it changed"


def test_neighbours_that_are_always_there_are_judged_by_their_number() -> None:
    always = range(-10, 70)
    assert "effect is unknown" in words(trial(looks(always, foreign=0.1 * RATE), range(0)), "ForeignLoad")
    assert words(trial(looks(always, foreign=0.03 * RATE), range(0)), "ForeignLoad") == ""


parts = st.floats(0, 1)


@settings(max_examples=20)
@given(parts, parts, parts, parts)
def test_more_harm_is_never_judged_milder(slower: float, more_slower: float, late: float, more_late: float) -> None:
    def found(slower: float, late: float) -> bool:
        numbers = trial(looks(MEANWHILE), MEANWHILE, rate=RATE * (1 - 0.9 * slower), late=0.005 + 0.9 * late)
        return bool(words(numbers, "Scrubbing"))

    before = found(slower, late)
    assert before <= found(max(slower, more_slower), late)
    assert before <= found(slower, max(late, more_late))


@settings(max_examples=20)
@given(st.integers(0, 11), st.integers(1, 12), st.integers(0, 12), st.sampled_from([0.7, 0.9, 1.0]))
def test_longer_scrubs_of_the_same_harm_are_never_judged_milder(
    first: int, length: int, more: int, rate: float
) -> None:
    def found(looks_long: int) -> bool:
        scrubbed = range(5 * first, 5 * (first + looks_long))
        slow = range(5 * first - 5, 5 * (first + looks_long))
        return bool(words(trial(looks(scrubbed), slow, rate=rate * RATE), "Scrubbing"))

    assert found(length) <= found(length + more)
