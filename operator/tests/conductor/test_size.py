"""The parts that are dropped from a result that is too large."""

import pytest

from plimsoll.api.names import LatencyKind, Operation, Outcome, Verdict
from plimsoll.api.operation import Latency, OperationResult, Rates, Series
from plimsoll.api.result import (
    PHASES,
    ClientSummary,
    DisturbanceResult,
    Matrix,
    MatrixMember,
    Phase,
    PhaseOperation,
    ResultStatus,
    Summary,
    ToolUse,
    Trial,
)
from plimsoll.api.surroundings import ClusterSummary, HostSummary, OsdResult, Osds, Spread
from plimsoll.conductor.size import MAX_STATUS_BYTES, fit, replaced_attempt

RATES = Rates(iops=1, bytes_per_second=1)
HOST = HostSummary(node_cpu_busy=0.5, received_bytes_per_second=1, sent_bytes_per_second=1)


def status_of(*, histogram: int, trials: int = 10) -> ResultStatus:
    """Return a status whose trials have a histogram of `histogram` characters, and every optional part."""
    series = Series(interval_seconds=1, iops=(10**9,) * 120, bytes_per_second=(10**9,) * 120)
    operation = OperationResult(
        operation=Operation.READ,
        ios=1,
        bytes=1,
        rates=RATES,
        whole_run=RATES,
        sum_of_rates=RATES,
        latency=Latency(kind=LatencyKind.FULL, count=1, histogram="A" * histogram),
        series=series,
    )
    slowest = tuple(
        ClientSummary(client=n, node="n" * 50, start_offset_seconds=0, runtime_seconds=4, iops=1, host=HOST)
        for n in range(8)
    )
    trial = Trial(
        pass_number=0,
        attempt=0,
        epoch="e",
        clients=(0,),
        outcome=Outcome.MEASURED,
        started_at="",
        finished_at="",
        verdict=Verdict.VALID,
        operations=(operation,),
        slowest=slowest,
        warnings=("w",),
    )
    return ResultStatus(trials=(trial,) * trials)


def size_of(status: ResultStatus) -> int:
    return len(status.model_dump_json(exclude_none=True))


def kept(status: ResultStatus) -> tuple[bool, bool, bool]:
    """Return whether all trials have series, hosts and slowest clients; some having them would be inconsistent."""
    found = {
        (
            trial.operations[0].series is not None,
            any(client.host is not None for client in trial.slowest),
            bool(trial.slowest),
        )
        for trial in status.trials
    }
    (one,) = found
    return one


def test_a_result_that_fits_is_not_changed() -> None:
    status = status_of(histogram=1000)
    assert fit(status) is status


@pytest.mark.parametrize(
    ("histogram", "expected"),
    [
        (20_000, (True, True, True)),
        (22_000, (False, True, True)),
        (23_500, (False, False, True)),
        (24_200, (False, False, False)),
    ],
)
def test_as_little_as_necessary_is_left_out_with_a_warning(histogram: int, expected: tuple[bool, bool, bool]) -> None:
    before = status_of(histogram=histogram)
    after = fit(before)
    assert kept(after) == expected
    assert size_of(after) <= MAX_STATUS_BYTES
    for trial in after.trials:
        names = ("series over time", "use of the hosts", "slowest clients")[: expected.count(False)]
        left_out = [line.split(" left out, because")[0] for line in trial.warnings[1:]]
        assert left_out == ([", ".join(names)] if names else [])


def test_a_trial_without_omissions_has_no_warning() -> None:
    status = status_of(histogram=22_000)
    bare = status.trials[0].model_copy(update={"operations": (), "slowest": ()})
    *_, last = fit(status.model_copy(update={"trials": (*status.trials, bare)})).trials
    assert last == bare


def test_slowest_osds_and_problems_of_the_cluster_go_last() -> None:
    spread = Spread(min=1, median=1, max=1)
    osd = OsdResult(osd=1, iops=1, bytes_per_second=1)
    osds = Osds(
        count=9, iops=spread, bytes_per_second=spread, mean_iops=1, mean_bytes_per_second=1, slowest=(osd,) * 32
    )
    cluster = ClusterSummary(samples=9, failed=0, problems=("p" * 300,) * 8)
    trials = [
        trial.model_copy(update={"osds": osds, "cluster": cluster}) for trial in status_of(histogram=24_200).trials
    ]
    after = fit(ResultStatus(trials=tuple(trials)))
    assert size_of(after) <= MAX_STATUS_BYTES
    for trial in after.trials:
        assert trial.osds == osds.model_copy(update={"slowest": ()})
        assert trial.cluster == ClusterSummary(samples=9, failed=0)
        assert ", slowest OSDs and problems of the cluster left out" in trial.warnings[-1]


def test_commands_go_after_everything_else_and_versions_and_digests_stay() -> None:
    tool = ToolUse(versions=("fio 3.39",), argv=("a" * 500,) * 8, argv_client=1, raw_sha256="0" * 64)
    trials = [trial.model_copy(update={"tool": tool}) for trial in status_of(histogram=24_200).trials]
    for trial in fit(ResultStatus(trials=tuple(trials))).trials:
        assert trial.tool == tool.model_copy(update={"argv": ()})
        assert trial.slowest == ()
        assert ", commands of the tools left out" in trial.warnings[-1]


def test_of_a_disturbance_percentiles_go_before_the_commands_and_the_rates_of_its_phases_stay() -> None:
    tool = ToolUse(versions=("fio 3.39",), argv=("a" * 50,), argv_client=1, raw_sha256="0" * 64)
    tails = {str(percentile): 10**9 for percentile in range(50, 100)}
    part = PhaseOperation(operation=Operation.READ, iops=5, bytes_per_second=5, percentiles=tails)
    phases = tuple(Phase(name=name, seconds=30, operations=(part,)) for name in PHASES)
    times = {"start_seconds": 30, "end_seconds": 60, "clean_seconds": 5, "watched_seconds": 60}
    disturbance = DisturbanceResult(action="Down", osds=(0,), phases=phases, **times)
    trials = [
        trial.model_copy(update={"tool": tool, "disturbance": disturbance})
        for trial in status_of(histogram=23_800).trials
    ]
    for trial in fit(ResultStatus(trials=tuple(trials))).trials:
        assert trial.disturbance is not None
        parts = [phase.operations[0] for phase in trial.disturbance.phases]
        assert [(each.iops, each.percentiles) for each in parts] == [(5, {})] * 3
        assert trial.disturbance.clean_seconds == 5
        assert trial.tool == tool
        assert ", slowest clients, percentiles of the phases left out" in trial.warnings[-1]
    assert replaced_attempt(trials[0]).disturbance is None


def test_an_attempt_that_was_replaced_keeps_its_evidence_but_no_command() -> None:
    tool = ToolUse(versions=("fio 3.39",), argv=("fio",), argv_client=1, raw_sha256="0" * 64)
    trial = status_of(histogram=10, trials=1).trials[0].model_copy(update={"tool": tool})
    assert replaced_attempt(trial).tool == tool.model_copy(update={"argv": ()})
    assert replaced_attempt(trial.model_copy(update={"tool": None})).tool is None


def test_histograms_stay_whatever_their_size() -> None:
    (trial,) = fit(status_of(histogram=2 * MAX_STATUS_BYTES, trials=1)).trials
    assert trial.operations[0].latency.histogram == "A" * 2 * MAX_STATUS_BYTES


def large_matrix() -> Matrix:
    """Return a matrix of 64 by 64 clients with every column and rates as long as they become."""
    cells = range(4096)
    rates = tuple(2**40 + cell for cell in cells)
    return Matrix(
        trials=10,
        members=tuple(MatrixMember(number=number, node="n" * 60) for number in range(128)),
        clients=tuple(cell // 64 for cell in cells),
        peers=tuple(64 + cell % 64 for cell in cells),
        bytes_per_second=rates,
        least_bytes_per_second=rates,
        iops=tuple(1e6 + cell / 8 for cell in cells),
        least_iops=tuple(1e6 + cell / 8 for cell in cells),
        retransmits=tuple(10**5 + cell for cell in cells),
    )


def with_matrix(attempts: int) -> ResultStatus:
    status = status_of(histogram=0, trials=attempts)
    return status.model_copy(update={"summary": Summary(trials=10, operations=(), matrix=large_matrix())})


def test_the_largest_matrix_keeps_its_means_and_fits_with_thirty_attempts() -> None:
    fitted = fit(with_matrix(30))
    assert fitted.summary is not None
    assert fitted.summary.matrix is not None
    assert fitted.summary.matrix.bytes_per_second == large_matrix().bytes_per_second
    assert fitted.summary.matrix.least_bytes_per_second is None
    assert size_of(fitted) <= MAX_STATUS_BYTES
    assert fitted.trials[-1].warnings[-1].startswith("lowest rates and retransmits of pairs left out")


def test_the_matrix_of_a_tool_that_counts_bytes_fits_whole() -> None:
    status = with_matrix(10)
    matrix = large_matrix().model_copy(update={"iops": None, "least_iops": None})
    fitted = fit(status.model_copy(update={"summary": Summary(trials=10, operations=(), matrix=matrix)}))
    assert fitted.summary is not None
    assert fitted.summary.matrix == matrix
