"""Whether a disturbance changed the rate or the tail of the latency, or whether that is unknown."""

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.ceph.watch import ClusterSample, ClusterWatch, PoolCounters
from plimsoll.measure.checks.evidence import Effect
from plimsoll.measure.histogram import Histogram, bin_index
from plimsoll.measure.sample import Cells, LatencySample, LatencySlices, Measurement, OperationSample
from plimsoll.measure.trial import TrialNumbers
from support.client_documents import BLOCK, QUIET_CLUSTER, RAMP, SECOND, T0, document, measure, measurement, operation

LENGTH = 60
START = T0 + RAMP * SECOND
RATE = 1000
FAST, SLOW = 1_000_000, 8_000_000
"""Nanoseconds."""
SCRUBBED = {"active+clean": 7, "active+clean+scrubbing": 1}


def run(rates: Sequence[float], late: Sequence[float], *, slices: bool = True) -> Measurement:
    """Make a client's minute: operations of each second, and the part of them that took long."""
    ios = [round(rate) for rate in rates]
    histograms = [
        Histogram(counts={bin_index(FAST): count - round(count * part), bin_index(SLOW): round(count * part)})
        for count, part in zip(ios, late, strict=True)
    ]
    cells = Cells(width_nanoseconds=SECOND, ios=tuple(map(float, ios)), bytes=tuple(float(BLOCK * n) for n in ios))
    whole = Histogram.merge(histograms)
    timed = LatencySample(
        kind=LatencyKind.FULL,
        count=whole.total,
        mean_nanoseconds=1e6,
        min_nanoseconds=FAST,
        max_nanoseconds=SLOW + SLOW // 32,
        histogram=whole.encode(),
    )
    logged = LatencySlices(width_nanoseconds=SECOND, histograms=tuple(one.encode() for one in histograms))
    wrote = operation(
        ios=sum(ios), bytes=BLOCK * sum(ios), cells=cells, latency=timed, slices=logged if slices else None
    )
    return measurement(wrote, runtime=LENGTH * SECOND)


def looks(scrubbed: range, *, foreign: float = 0.0) -> ClusterWatch:
    """Look every five seconds; scrubs, and foreign operations per second, are those of some seconds alone."""
    samples = []
    for second in range(-10, LENGTH + 10, 5):
        status = (
            dataclasses.replace(QUIET_CLUSTER, pg_states=SCRUBBED)
            if second in scrubbed and not foreign
            else QUIET_CLUSTER
        )
        done = min(max(0, second + RAMP), RAMP + LENGTH) * RATE
        others = round(foreign * min(max(0, second - scrubbed.start), len(scrubbed)))
        pools = {
            "ours": PoolCounters(reads=0, writes=done, read_bytes=0, written_bytes=done * BLOCK),
            "other": PoolCounters(reads=others, writes=0, read_bytes=0, written_bytes=0),
        }
        samples.append(ClusterSample(at=START + second * SECOND, status=status, pools=pools))
    return ClusterWatch(samples=tuple(samples), pools=("ours",))


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
        ({"rate": 0.85 * RATE}, "the rate was"),
        ({"late": 0.06}, "times as many operations were late"),
        ({"late": 0.06, "usual": 0.0}, "times as many operations were late"),
        ({"rate": 0.6 * RATE, "late": 0.2}, r"meanwhile the rate was [\d.]+ % lower, "),
    ],
)
def test_scrubs_that_made_the_clients_slower_or_their_tail_longer_are(change: dict[str, float], says: str) -> None:
    assert re.search(says, words(trial(looks(MEANWHILE), MEANWHILE, **change), "Scrubbing"))


def test_a_load_with_a_limit_and_a_long_tail_shows_it_in_its_median() -> None:
    """None takes longer than the usual 99th percentile, and the rate is that of the limit all the time."""
    found = [words(trial(looks(MEANWHILE), MEANWHILE, late=late, usual=0.02), "Scrubbing") for late in (0.02, 0.4, 0.9)]
    assert found[:2] == ["", ""]
    assert "and the median latency was" in found[2]


def test_a_client_that_was_faster_meanwhile_was_not_slowed_down() -> None:
    assert words(trial(looks(MEANWHILE), MEANWHILE, rate=1.1 * RATE), "Scrubbing") == ""


@pytest.mark.parametrize("scrubbed", [range(-10, 70), range(55), range(10, 70)])
def test_without_time_to_compare_with_the_effect_is_unknown(scrubbed: range) -> None:
    assert "its effect is unknown" in words(trial(looks(scrubbed), range(0)), "Scrubbing")


def test_without_latencies_over_time_the_effect_is_unknown() -> None:
    assert "effect is unknown" in words(trial(looks(MEANWHILE), MEANWHILE, slices=False), "Scrubbing")


def scrub_message(*operations: OperationSample, scrubbed: range = MEANWHILE, late: float = 0.0) -> str:
    """Return what is said of scrubs while a client did these operations, and began that many seconds late."""
    measured = measurement(*operations, runtime=LENGTH * SECOND, late=late)
    return words(measure(document(0, measured), runtime_seconds=LENGTH, cluster=looks(scrubbed)), "Scrubbing")


def wrote(**changes: Any) -> OperationSample:
    return minute(MEANWHILE, **changes).operations[0]


@pytest.mark.parametrize(("rate", "is_known"), [(27, False), (30, True)])
def test_too_few_operations_in_calm_time_show_no_effect(rate: float, *, is_known: bool) -> None:
    few = run([rate] * LENGTH, [0.0] * LENGTH).operations[0]
    assert ("effect is unknown" not in scrub_message(few)) is is_known


def test_the_effect_is_unknown_if_that_on_one_operation_is_but_syncs_have_none() -> None:
    read = {"operation": Operation.READ}
    assert scrub_message(wrote(), wrote().model_copy(update=read)) == ""
    assert "effect is unknown" in scrub_message(wrote(), wrote(slices=False).model_copy(update=read))
    assert "effect is unknown" in scrub_message(wrote(), wrote().model_copy(update={**read, "cells": None}))
    assert scrub_message(wrote(), operation(100, operation=Operation.SYNC, bytes=0, cells=None)) == ""


def test_the_worst_effect_counts_of_several_operations() -> None:
    late = wrote(late=0.06).model_copy(update={"operation": Operation.READ})
    assert "times as many operations were late" in scrub_message(wrote(rate=0.97 * RATE), late)


@pytest.mark.parametrize(("late", "is_chance"), [(1, True), (2, False)])
def test_of_few_operations_chance_makes_more_than_twice_as_many_late(late: int, *, is_chance: bool) -> None:
    """Of 1000 disturbed operations 10 are expected to be late, and 25 may be by chance."""
    tails = [late / 40 if 15 <= second < 40 else 0.0 for second in range(LENGTH)]
    assert (scrub_message(run([40] * LENGTH, tails).operations[0]) == "") is is_chance


def test_what_was_only_partly_calm_was_disturbed() -> None:
    """Seconds 14 and 24 of the client begin before the disturbance does, and end after it."""
    tails = [0.9 if second in {14, 24} else 0.005 for second in range(LENGTH)]
    shifted = run([RATE] * LENGTH, tails).operations[0]
    assert "times as many operations were late" in scrub_message(shifted, scrubbed=range(20, 21), late=0.5)


@pytest.mark.parametrize(
    ("changes", "is_noticeable"),
    [
        ({"slower": 0.05, "late": 2.5, "longer": 0.1}, False),
        ({"slower": 0.051}, True),
        ({"late": 2.51}, True),
        ({"longer": 0.101}, True),
    ],
)
def test_an_effect_within_all_limits_is_not_noticeable(changes: dict[str, float], *, is_noticeable: bool) -> None:
    effect = Effect(**({"slower": 0.0, "late": 1.0, "late_by_chance": 2.5, "longer": 0.0} | changes))
    assert effect.is_noticeable is is_noticeable


@pytest.mark.parametrize(
    ("slower", "longer", "rate", "median"),
    [(0.2, 0.5, "20 % lower", "50 % longer"), (-0.1, -0.25, "10 % higher", "25 % shorter")],
)
def test_an_effect_is_worded_in_its_direction(slower: float, longer: float, rate: str, median: str) -> None:
    assert Effect(slower=slower, late=3, late_by_chance=2, longer=longer).text == (
        f"meanwhile the rate was {rate}, 3 times as many operations were late, and the median latency was {median}"
    )


def test_neighbours_that_come_and_go_are_judged_by_what_they_changed_up_to_a_fifth() -> None:
    burst = range(20, 30)
    felt = {"rate": 0.8 * RATE}
    seconds = range(10, 30)
    assert words(trial(looks(burst, foreign=0.5 * RATE), seconds), "ForeignLoad") == ""
    slower = words(trial(looks(burst, foreign=0.5 * RATE), seconds, **felt), "ForeignLoad")
    assert re.search(r"meanwhile the rate was [\d.]+ % lower, ", slower)
    finding = next(
        item for item in trial(looks(burst, foreign=1.8 * RATE), seconds).findings if item.reason == "ForeignLoad"
    )
    assert finding.verdict is Verdict.INVALID, "so much is never only looked at by what it changed"


def test_neighbours_that_are_always_there_are_judged_by_their_number() -> None:
    always = range(-10, 70)
    assert "effect is unknown" in words(trial(looks(always, foreign=0.06 * RATE), range(0)), "ForeignLoad")
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
