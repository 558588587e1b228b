"""A trial that takes OSDs away: what that causes is no finding, all else is; and its phases."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from measure.checking.test_cluster import LENGTH, START, look, looks, reasons, trial, watch
from plimsoll.api.line import LineSearch, Objective, Probe, ProbeOutcome
from plimsoll.api.names import Cause, LatencyKind, Operation, Verdict
from plimsoll.api.run import Disturbance
from plimsoll.api.storage import DisturbedOsds
from plimsoll.ceph.disturbance import clean_after
from plimsoll.ceph.watch import ClusterSample, ClusterWatch, Outage, PoolCounters
from plimsoll.measure.checks.judge import cause_of
from plimsoll.measure.histogram import Histogram, bin_index
from plimsoll.measure.intake import Offer
from plimsoll.measure.sample import Cells, LatencySample, LatencySlices
from plimsoll.measure.timeline import Interval, Share
from plimsoll.measure.trial import TrialNumbers
from support.client_documents import (
    BLOCK,
    SECOND,
    document,
    even_cells,
    latency,
    measure,
    measurement,
    only,
    operation,
)

BEGIN, END, CLEAN = 20, 40, 50  # seconds of the measured part
DISTURBANCE = Disturbance(after_seconds=BEGIN, osds=DisturbedOsds(action="Down"), for_seconds=END - BEGIN)
OUTAGE = Outage(osds=(2,), action="Down", start=START + BEGIN * SECOND, end=START + END * SECOND)
DEGRADED = {"active+clean": 88, "active+undersized+degraded": 6, "peering": 2, "unknown": 2}
BEFORE = look(0).status
assert BEFORE is not None
UP = BEFORE.osds_up


def suffering(*, later: Mapping[str, Any] | None = None, **changes: Any) -> tuple[ClusterSample, ...]:
    """Return looks at a cluster that loses an OSD, and recovers.

    `changes` are while it is away, and `later` after the cluster is clean.
    """
    away: dict[str, Any] = {
        "osds_up": UP - 1,
        "osds_up_since": "later",
        "pg_states": DEGRADED,
        "health": "HEALTH_WARN",
        "checks": {
            **dict.fromkeys(("OSD_DOWN", "OSD_FLAGS", "PG_DEGRADED", "SLOW_OPS"), "HEALTH_WARN"),
            "POOL_SCRUB_FLAGS": "HEALTH_OK",
        },
        **changes,
    }
    recovering: dict[str, Any] = {
        "pg_states": {"active+recovering+degraded": 3, "active+clean": 95},
        "osds_up_since": "last",
        "recovering_bytes_per_second": 10**6,
        "remapped_pgs": 3,
        "health": "HEALTH_WARN",
        "checks": {"PG_DEGRADED": "HEALTH_WARN"},
    }

    def at(second: int) -> ClusterSample:
        if second <= BEGIN:
            return look(second)
        clean = {"osds_up_since": "last", **(later or {})}
        return look(second, **(away if second < END else recovering if second < CLEAN else clean))

    return tuple(at(second) for second in range(-10, 71, 5))


def disturbed(samples: tuple[ClusterSample, ...], outage: Outage | None = OUTAGE, **changes: Any) -> TrialNumbers:
    watched: ClusterWatch | None = watch(*samples, outage=outage)
    return trial(watched, disturbance=DISTURBANCE, **changes)


def test_what_the_outage_causes_is_no_finding_and_without_one_it_is() -> None:
    assert reasons(disturbed(suffering())) == []
    assert reasons(disturbed(suffering(checks={}))) == [], "Ceph's summary may warn while it lists no check"
    assert {"OsdsChanged", "GroupsNotClean", "ClusterUnhealthy"} <= {*reasons(trial(watch(*suffering())))}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"osds_up": UP - 2}, "OsdsChanged"),
        ({"osds_in": UP - 2}, "OsdsChanged"),
        ({"pg_states": {**DEGRADED, "down": 1}}, "GroupsNotClean"),
        ({"pg_states": {**DEGRADED, "active+clean+inconsistent": 1}}, "GroupsNotClean"),
        ({"checks": {}, "health": "HEALTH_ERR"}, "ClusterUnhealthy"),
        ({"checks": {"OSD_DOWN": "HEALTH_WARN", "MON_DISK_LOW": "HEALTH_WARN"}}, "ClusterUnhealthy"),
        ({"later": {"osds_up": UP - 1}}, "OsdsChanged"),  # another one, after the first is back
        ({"later": {"osds_up_since": "even later"}}, "OsdsChanged"),  # between two polls
        ({"later": {"osds_in": UP - 1}}, "OsdsChanged"),
    ],
)
def test_everything_else_is_a_finding(changes: dict[str, Any], reason: str) -> None:
    assert reason in reasons(disturbed(suffering(**changes)))


def changed(samples: tuple[ClusterSample, ...], second: int, **changes: Any) -> tuple[ClusterSample, ...]:
    """Return the samples with changes from that second of the measured part on."""
    return tuple(
        dataclasses.replace(it, status=dataclasses.replace(it.status, **changes))
        if it.status and it.at >= START + second * SECOND
        else it
        for it in samples
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"osds_up": UP - 1}, ["OsdsChanged"]),  # that is another one: those that are out are up
        ({"osds_up_since": "later"}, ["OsdsChanged"]),
        ({"osds_in": UP - 2}, ["OsdsChanged"]),
    ],
)
def test_of_osds_that_are_out_none_is_down(changes: dict[str, Any], expected: list[str]) -> None:
    assert BEFORE is not None
    up = {"osds_up": UP, "osds_up_since": BEFORE.osds_up_since}
    out = suffering(**{**up, "osds_in": UP - 1, "osds_in_since": "later", **changes})
    samples = changed(out, END, **up, osds_in_since="last")
    assert reasons(disturbed(samples, dataclasses.replace(OUTAGE, action="Out"))) == expected


def test_another_osd_that_leaves_and_returns_between_two_polls_of_the_outage_is_a_finding() -> None:
    assert reasons(disturbed(changed(suffering(), END - 5, osds_up_since="later still"))) == ["OsdsChanged"]


@pytest.mark.parametrize(
    ("seconds", "again", "expected"),
    [
        (65, "later", []),
        (90, "later", []),  # at the end, so that no poll before it shows that
        (5, "later", ["OsdsChanged"]),
        (65, "later still", ["OsdsChanged"]),
    ],
)
def test_an_osd_that_is_down_for_long_goes_out_too(seconds: int, again: str, expected: list[str]) -> None:
    """It is down for 90 s, and after some of them one is out; 10 s later, another one may have changed."""
    begin, end, back, length = BEGIN, BEGIN + 90, BEGIN + 110, 150
    samples = tuple(
        look(second, osds_up=UP - (begin < second < back), osds_up_since=str(second > begin) + str(second >= back))
        for second in range(-10, length + 10, 5)
    )
    out = changed(samples, begin + seconds, osds_in=UP - 1, osds_in_since="later")
    out = changed(changed(out, begin + seconds + 10, osds_in_since=again), back, osds_in=UP, osds_in_since="last")
    outage = dataclasses.replace(OUTAGE, end=START + end * SECOND)
    found = trial(watch(*out, outage=outage), disturbance=DISTURBANCE, length=length)
    assert [reason for reason in reasons(found) if reason == "OsdsChanged"] == expected


@pytest.mark.parametrize(("seconds", "is_found"), [(55, False), (65, True)])
def test_an_osd_that_does_not_come_back_within_a_minute_is_a_finding(seconds: int, *, is_found: bool) -> None:
    samples = tuple(look(second, osds_up=UP - (second > BEGIN)) for second in range(-10, 115, 5))
    found = watch(*samples, outage=OUTAGE)
    assert ("OsdsChanged" in reasons(trial(found, disturbance=DISTURBANCE, length=END + seconds))) is is_found


def test_what_was_bad_before_the_outage_is_a_finding() -> None:
    early = look(5, pg_states=DEGRADED)
    assert reasons(disturbed((*suffering()[:3], early, *suffering()[4:]))) == ["GroupsNotClean"]


def counted(sample: ClusterSample, did: Operation, factor: float) -> ClusterSample:
    """Return the look with that part of the run's bytes in the pool's counter."""
    volume = round(sample.pools["ours"].written_bytes * factor)
    ours = PoolCounters(
        reads=0,
        writes=0,
        read_bytes=volume if did is Operation.READ else 0,
        written_bytes=volume if did is Operation.WRITE else 0,
    )
    return dataclasses.replace(sample, pools={**sample.pools, "ours": ours})


@pytest.mark.parametrize(
    ("did", "factor", "begin", "is_found"),
    [
        (Operation.READ, 0.5, BEGIN, False),
        (Operation.READ, 2.0, BEGIN, False),
        (Operation.READ, 1.0, 45, False),
        (Operation.READ, 0.0, 45, True),
        (Operation.READ, 2.0, 45, True),
        (Operation.WRITE, 0.5, BEGIN, True),
        (Operation.WRITE, 1.0, BEGIN, False),
    ],
)
def test_reads_are_compared_before_the_outage_because_ceph_forgets_some_then(
    did: Operation, factor: float, begin: int, *, is_found: bool
) -> None:
    samples = tuple(counted(sample, did, factor) for sample in looks())
    outage = dataclasses.replace(OUTAGE, start=START + begin * SECOND, end=START + (begin + 5) * SECOND)
    assert ("PoolCountersDisagree" in reasons(disturbed(samples, outage, did=did))) is is_found
    assert ("PoolCountersDisagree" in reasons(trial(watch(*samples), did=did))) is (factor != 1)


@pytest.mark.parametrize(
    ("samples", "outage", "words"),
    [
        (looks(), None, "no OSD was taken away"),
        (looks(), dataclasses.replace(OUTAGE, problem="access denied"), "no OSD was taken away: access denied"),
        (looks(), dataclasses.replace(OUTAGE, start=0, end=0), "no OSD was taken away: the trial ended before"),
        (suffering(osds_up=UP), OUTAGE, "osd.2 came up again before the disturbance ended"),
        (looks(), dataclasses.replace(OUTAGE, action="Out"), "osd.2 came in again"),
        (suffering(), dataclasses.replace(OUTAGE, returned=(2,)), "osd.2 came up again before"),  # another one is down
        (suffering(), dataclasses.replace(OUTAGE, end=0), "osd.2 could not be given back before the trial ended"),
        (
            suffering(),
            dataclasses.replace(OUTAGE, end=START + 62 * SECOND),
            "osd.2 was down from second 20 to 62 of 60 measured ones",
        ),
    ],
)
def test_a_disturbance_that_did_not_happen_is_said(
    samples: tuple[ClusterSample, ...], outage: Outage | None, words: str
) -> None:
    (finding,) = (each for each in disturbed(samples, outage).findings if each.reason == "NotDisturbed")
    assert words in finding.message
    assert (finding.verdict, cause_of(finding)) == (Verdict.INVALID, Cause.HARNESS)


@pytest.mark.parametrize(("away", "is_found"), [(0, True), (BEGIN + 6, False)])
def test_osds_count_as_away_once_ceph_has_taken_all_of_them_away(away: int, *, is_found: bool) -> None:
    slowly = tuple(
        dataclasses.replace(it, status=dataclasses.replace(it.status, osds_up=UP))
        if it.status and it.at < START + (BEGIN + 10) * SECOND
        else it
        for it in suffering()
    )
    late = tuple(dataclasses.replace(it, at=it.at + SECOND) for it in slowly)
    outage = dataclasses.replace(OUTAGE, away=START + away * SECOND)
    assert ("NotDisturbed" in reasons(disturbed(late, outage))) is is_found


@pytest.mark.parametrize(
    ("silent", "where"),
    [
        (range(0), ""),
        (range(BEGIN + 1, END), "during 100 % of the disturbance"),
        (range(END, CLEAN + 6), "of the recovery"),
    ],
)
def test_polls_that_fail_while_osds_are_away_or_the_cluster_recovers_are_a_finding(silent: range, where: str) -> None:
    unanswered = tuple(
        dataclasses.replace(it, status=None) if (it.at - START) // SECOND in silent else it for it in suffering()
    )
    found = disturbed(unanswered).findings
    assert [finding.reason for finding in found] == (["ClusterNotWatched"] if where else [])
    assert all(where in finding.message for finding in found)


def test_a_trial_without_a_watched_cluster_was_not_disturbed() -> None:
    assert only(trial(None, disturbance=DISTURBANCE), "NotDisturbed").verdict is Verdict.INVALID


def test_phases_have_the_rates_of_their_time_and_the_time_until_all_groups_are_clean() -> None:
    result = disturbed(suffering()).disturbance
    assert result is not None
    assert (result.osds, result.action, result.start_seconds, result.end_seconds) == ((2,), "Down", BEGIN, END)
    assert (result.clean_seconds, result.watched_seconds) == (CLEAN - END, 70 - END)
    assert [(phase.name, phase.seconds, phase.stall_seconds) for phase in result.phases] == [
        ("Before", 20, 0), ("During", 20, 0), ("After", 20, 0)
    ]  # fmt: skip
    assert {(op.iops, op.bytes_per_second) for phase in result.phases for op in phase.operations} == {
        (200, 200 * BLOCK)
    }


def test_a_cluster_that_is_not_clean_by_the_end_has_no_time() -> None:
    ill = (*suffering()[:-1], look(70, pg_states=DEGRADED))
    result = disturbed(ill).disturbance
    assert result is not None
    assert (result.clean_seconds, result.watched_seconds) == (None, 30)


@pytest.mark.parametrize(("last", "seconds"), [(END + 5, None), (END + 10, 0)])
def test_groups_that_ceph_shows_as_clean_before_it_can_know_prove_nothing(last: int, seconds: float | None) -> None:
    samples = tuple(look(second) for second in range(-10, last + 1, 5))
    assert clean_after(samples, dataclasses.replace(OUTAGE, action="Out")) == seconds


SLOW, FAST = 8_000_000, 1_000_000  # nanoseconds, of an objective of 5 ms
NEVER_CLEAN = tuple(
    dataclasses.replace(it, status=dataclasses.replace(it.status, pg_states=DEGRADED))
    if it.status and it.at > OUTAGE.end
    else it
    for it in suffering()
)


def stormy(
    slow: tuple[int, int], samples: tuple[ClusterSample, ...] = suffering(), full: float = 0.0
) -> tuple[Probe, TrialNumbers]:
    """Judge a probe of two clients whose operations are slow in these seconds of the measured part."""
    slices = LatencySlices(
        width_nanoseconds=SECOND,
        histograms=tuple(
            Histogram(counts={bin_index(SLOW if slow[0] <= second < slow[1] else FAST): 100}).encode()
            for second in range(LENGTH)
        ),
    )
    count = 100 * LENGTH
    cells = even_cells(100, LENGTH)
    wrote = operation(ios=count, bytes=count * BLOCK, latency=latency(count), cells=cells, slices=slices)
    measured = measurement(wrote, runtime=LENGTH * SECOND, depth_full_share=full)
    numbers = measure(
        *(document(client, measured) for client in range(2)),
        runtime_seconds=LENGTH,
        cluster=watch(*samples, outage=OUTAGE),
        disturbance=DISTURBANCE,
        offer=Offer(search=LineSearch(start=100, objectives=(Objective(latency="5ms"),)), load=200, depth=64),
    )
    assert numbers.probe is not None
    return numbers.probe, numbers


@pytest.mark.parametrize(
    ("slow", "samples", "full", "outcome"),
    [
        ((0, 0), suffering(), 0.0, ProbeOutcome.MET),
        ((0, BEGIN), suffering(), 0.0, ProbeOutcome.MET),  # before
        ((CLEAN, LENGTH), suffering(), 0.0, ProbeOutcome.MET),  # after
        ((BEGIN, BEGIN + 1), suffering(), 0.0, ProbeOutcome.LATE),
        ((CLEAN - 1, CLEAN), suffering(), 0.0, ProbeOutcome.LATE),
        ((0, 0), suffering(), 0.006, ProbeOutcome.DEPTH_FULL),  # of all submissions; 1.2 % of those in the storm
        ((0, 0), suffering(), 0.004, ProbeOutcome.MET),
        ((0, 0), NEVER_CLEAN, 0.0, ProbeOutcome.NOT_RECOVERED),
        ((BEGIN, BEGIN + 1), NEVER_CLEAN, 0.0, ProbeOutcome.LATE),
    ],
)
def test_a_probe_of_a_storm_line_is_judged_from_the_start_of_the_outage_until_all_groups_are_clean(
    slow: tuple[int, int], samples: tuple[ClusterSample, ...], full: float, outcome: ProbeOutcome
) -> None:
    probe, numbers = stormy(slow, samples, full)
    assert (probe.outcome, numbers.verdict, numbers.findings) == (outcome, Verdict.VALID, ())
    assert probe.achieved == 200
    assert numbers.disturbance is not None
    storm = numbers.disturbance.phase("Storm")
    assert storm is not None
    assert storm.seconds == (CLEAN if samples is not NEVER_CLEAN else LENGTH) - BEGIN


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [(20, 40, [4, 5, 6, 7]), (23, 38, [4, 5, 6]), (24.9, 40, [5, 6, 7]), (40, 60, [8, 9, 10, 11])],
)
def test_operations_that_wait_from_the_start_of_a_phase_on_are_in_it(
    begin: float, end: float, expected: list[int]
) -> None:
    """Clients begin 0.1 s late, and what they wait for completes until the end of the slice of 5 s."""
    slices = LatencySlices(width_nanoseconds=5 * SECOND, histograms=tuple(str(number) for number in range(12)))
    late = Interval(start=START + SECOND // 10, end=START + LENGTH * SECOND)
    share = Share(sample=operation(ios=1, bytes=1, latency=latency(1), slices=slices), interval=late)
    part = Interval(start=START + round(begin * SECOND), end=START + round(end * SECOND))
    assert [*share.slices_in(part)] == [str(number) for number in expected]


def test_an_undisturbed_trial_has_no_phases() -> None:
    assert trial(watch(*looks())).disturbance is None


def test_a_change_before_the_disturbance_is_told_as_part_of_the_time_before_it() -> None:
    rates = (*[200.0] * (BEGIN // 2), *[100.0] * (LENGTH - BEGIN // 2))
    cells = Cells(width_nanoseconds=SECOND, ios=rates, bytes=tuple(rate * BLOCK for rate in rates))
    ios = int(sum(rates))
    mean = LatencySample(kind=LatencyKind.MEAN_ONLY, count=ios, mean_nanoseconds=1e7, max_nanoseconds=10**7)
    wrote = operation(operation=Operation.WRITE, ios=ios, bytes=ios * BLOCK, cells=cells, latency=mean)
    measured = measurement(wrote, runtime=LENGTH * SECOND)
    numbers = measure(
        *(document(client, measured) for client in range(2)),
        runtime_seconds=LENGTH,
        cluster=watch(*suffering(), outage=OUTAGE),
        disturbance=DISTURBANCE,
    )
    assert "400 in the first 10 s of 20 s, 200 in the rest" in only(numbers, "NotSteady").message
