import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.api.status import OsdsSeen
from plimsoll.ceph.watch import ClusterSample, ClusterWatch, Placement, PoolCounters
from plimsoll.measure.sample import Cells, LatencySample
from plimsoll.measure.trial import TrialNumbers
from support.client_documents import (
    BLOCK,
    QUIET_CLUSTER,
    RAMP,
    SECOND,
    T0,
    document,
    measure,
    measurement,
    only,
    operation,
)

LENGTH = 60
START = T0 + RAMP * SECOND
RATE = 200
"""Operations per second of two clients together."""


def look(
    second: float, *, lag: float = 5.0, factor: float = 1.0, foreign: float = 0.0, **changes: Any
) -> ClusterSample:
    """Look at the cluster at that second of the measured part."""
    done = min(max(0.0, second - lag + RAMP), RAMP + LENGTH) * RATE
    written = PoolCounters(reads=0, writes=int(done), read_bytes=0, written_bytes=int(done * BLOCK * factor))
    others = PoolCounters(reads=int(foreign * (second + 100)), writes=0, read_bytes=0, written_bytes=0)
    status = dataclasses.replace(QUIET_CLUSTER, **changes)
    return ClusterSample(at=START + int(second * SECOND), status=status, pools={"ours": written, "other": others})


def watch(*samples: ClusterSample, **changes: Any) -> ClusterWatch:
    return dataclasses.replace(
        ClusterWatch(samples=samples, pools=("ours",), placement=Placement(osds=3, per_read=1)), **changes
    )


def looks(**changes: Any) -> tuple[ClusterSample, ...]:
    return tuple(look(second, **changes) for second in range(-10, LENGTH + 10, 5))


def trial(
    found: ClusterWatch | None,
    *,
    did: Operation = Operation.WRITE,
    synced: bool = False,
    length: int = LENGTH,
    **changes: Any,
) -> TrialNumbers:
    """Judge two clients that wrote or read 100 blocks per second each for a minute."""
    ios = 100 * length
    cells = Cells(width_nanoseconds=SECOND, ios=(100.0,) * length, bytes=(100.0 * BLOCK,) * length)
    mean = LatencySample(kind=LatencyKind.MEAN_ONLY, count=ios, mean_nanoseconds=1e7, max_nanoseconds=10**7)
    wrote = operation(operation=did, ios=ios, bytes=ios * BLOCK, cells=cells, latency=mean)
    sync = operation(operation=Operation.SYNC, ios=ios, bytes=0, cells=None, latency=mean)
    samples = (wrote, sync) if synced else (wrote,)
    measured = measurement(*samples, runtime=length * SECOND)
    documents = [document(client, measured) for client in range(2)]
    return measure(*documents, runtime_seconds=length, cluster=found, **changes)


def reasons(numbers: TrialNumbers) -> list[str]:
    return [finding.reason for finding in numbers.findings]


def test_without_a_watch_nothing_is_judged_and_with_a_quiet_one_all_is_well() -> None:
    assert trial(None).verdict is Verdict.VALID
    assert reasons(trial(watch(*looks()))) == []
    # What Ceph still shows long after a pool has been created or an OSD has returned.
    assert reasons(trial(watch(*looks(recovering_bytes_per_second=7)))) == []


def test_watch_that_was_asked_for_and_saw_nothing_is_suspect() -> None:
    assert only(trial(watch()), "ClusterNotWatched").verdict is Verdict.SUSPECT


@pytest.mark.parametrize(
    ("changes", "reason", "verdict"),
    [
        ({"recovering_bytes_per_second": 1024**2}, "RecoveryTraffic", Verdict.INVALID),
        ({"foreign": 12}, "ForeignLoad", Verdict.SUSPECT),
        ({"foreign": 80}, "ForeignLoad", Verdict.INVALID),
    ],
)
def test_run_that_demands_no_healthy_cluster_keeps_its_numbers(
    changes: dict[str, Any], reason: str, verdict: Verdict
) -> None:
    assert only(trial(watch(*looks(**changes))), reason).verdict is verdict
    assert only(trial(watch(*looks(**changes), required=False)), reason).verdict is Verdict.SUSPECT


def test_run_that_demands_no_healthy_cluster_still_needs_a_tool_that_succeeds() -> None:
    numbers = measure(document(0, exit_code=1), cluster=watch(*looks(), required=False))
    assert [item.verdict for item in numbers.findings if item.reason == "ToolFailed"] == [Verdict.INVALID]


@pytest.mark.parametrize("changes", [{"osds_up": 2}, {"osds_in": 2}])
def test_osd_that_is_missing_all_the_time_is_a_fact_unless_the_run_has_seen_it(changes: dict[str, int]) -> None:
    assert reasons(trial(watch(*looks(**changes)))) == []
    finding = only(trial(watch(*looks(**changes), osds=OsdsSeen(up=3, members=3))), "OsdsChanged")
    assert finding.verdict is Verdict.INVALID
    assert "1 of 3" in finding.message or "1 were out" in finding.message


def test_osd_that_went_out_after_the_gate_opened_and_before_the_window() -> None:
    before, *others = looks(osds_in=2)
    before = dataclasses.replace(before, at=before.at - 60 * SECOND, status=QUIET_CLUSTER)
    assert only(trial(watch(before, *others)), "OsdsChanged").verdict is Verdict.INVALID


def test_osd_that_was_added_is_a_change() -> None:
    before = [look(second) for second in range(-10, 20, 5)]
    after = [look(second, osds=4, osds_up=4, osds_in=4) for second in range(20, 70, 5)]
    assert only(trial(watch(*before, *after)), "OsdsChanged").verdict is Verdict.INVALID


def test_an_accepted_check_is_no_finding() -> None:
    samples = looks(health="HEALTH_WARN", checks={"SLOW_OPS": "HEALTH_WARN", "MON_DISK_LOW": "HEALTH_WARN"})
    assert reasons(trial(watch(*samples))) == ["SlowOps", "ClusterUnhealthy"]
    accepted = frozenset({"SLOW_OPS", "MON_DISK_LOW"})
    assert reasons(trial(watch(*samples, accepted_checks=accepted))) == []


def test_a_few_foreign_operations_are_what_clusters_do_by_themselves() -> None:
    assert reasons(trial(watch(*looks(foreign=0.9)))) == []


@given(lag=st.floats(0, 10))
def test_lag_of_the_counters_is_never_a_finding(lag: float) -> None:
    assert reasons(trial(watch(*looks(lag=lag)))) == []


@given(lag=st.floats(0, 10), factor=st.sampled_from([0.0, 0.5, 0.6, 1.6, 2.0, 10.0]))
def test_bytes_that_lag_cannot_explain_are(lag: float, factor: float) -> None:
    finding = only(trial(watch(*looks(lag=lag, factor=factor))), "PoolCountersDisagree")
    assert finding.verdict is Verdict.SUSPECT
    assert "the clients measured 800 KiB/s" in finding.message


def test_a_short_window_is_not_compared_with_the_counters() -> None:
    assert reasons(trial(watch(*looks(factor=3.0)), length=25)) == []


def test_file_system_that_is_synced_may_write_more_and_not_less() -> None:
    assert reasons(trial(watch(*looks(factor=3.0)), synced=True)) == []
    assert reasons(trial(watch(*looks(factor=0.3)), synced=True)) == ["PoolCountersDisagree"]


def test_counters_are_not_compared_without_a_window() -> None:
    assert "PoolCountersDisagree" not in reasons(trial(watch(*looks(factor=3.0)), windowed=False))
