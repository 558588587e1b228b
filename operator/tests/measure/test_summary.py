import statistics

import pytest

from plimsoll.api.names import AbortReason, LatencyKind, Operation, Outcome, Verdict
from plimsoll.api.operation import Latency, OperationResult, Rates
from plimsoll.api.result import Abort, Finding, ToolUse, Trial
from plimsoll.measure.attempts import counted
from plimsoll.measure.checks.judge import CHECKS
from plimsoll.measure.histogram import Histogram, bin_index, bin_midpoint, merge_latencies
from plimsoll.measure.summary import summarise

MILLISECOND = 10**6


def latency(value: int, count: int = 1000) -> Latency:
    return merge_latencies(
        [
            Latency(
                kind=LatencyKind.FULL,
                count=count,
                mean_nanoseconds=value,
                standard_deviation_nanoseconds=0,
                min_nanoseconds=value,
                max_nanoseconds=value,
                histogram=Histogram(counts={bin_index(value): count}).encode(),
            )
        ]
    )


def operation(iops: int, value: int = MILLISECOND, count: int = 1000) -> OperationResult:
    rates = Rates(iops=iops, bytes_per_second=iops * 4096)
    return OperationResult(
        operation=Operation.WRITE,
        ios=count,
        bytes=count * 4096,
        rates=rates,
        whole_run=rates,
        sum_of_rates=rates,
        latency=latency(value, count),
    )


def trial(
    number: int,
    *operations: OperationResult,
    attempt: int = 0,
    reasons: tuple[tuple[str, Verdict], ...] = (),
    abort: AbortReason | None = None,
) -> Trial:
    findings = tuple(Finding(reason=name, verdict=verdict, message=f"{name} here") for name, verdict in reasons)
    verdicts = [finding.verdict for finding in findings]
    worst = next((v for v in (Verdict.INVALID, Verdict.SUSPECT) if v in verdicts), Verdict.VALID)
    return Trial(
        pass_number=number,
        attempt=attempt,
        epoch="e",
        clients=(0,),
        outcome=Outcome.ABORTED if abort else Outcome.MEASURED,
        started_at="",
        finished_at="",
        abort=Abort(reason=abort, message="gone") if abort else None,
        verdict=Verdict.INVALID if abort else worst,
        findings=findings,
        operations=operations or (operation(1000),),
    )


LATE = ("LateClient", Verdict.SUSPECT)
SHORT = ("ShortRun", Verdict.SUSPECT)
FAILED = ("ToolFailed", Verdict.INVALID)


def test_good_point_is_valid_with_unweighted_statistics() -> None:
    trials = [
        trial(0, operation(180, MILLISECOND, 1000)),
        trial(1, operation(200, 3 * MILLISECOND, 9000)),
        trial(2, operation(220, 5 * MILLISECOND, 5000)),
    ]
    numbers = summarise(trials, 3)
    assert (numbers.verdict, numbers.findings) == (Verdict.VALID, ())
    assert numbers.summary is not None
    (summary,) = numbers.summary.operations
    assert numbers.summary.trials == 3
    assert (summary.iops.trials, summary.iops.mean, summary.iops.standard_deviation) == (3, 200, 20)
    assert summary.bytes_per_second.mean == 200 * 4096
    assert summary.mean_latency is not None
    assert summary.mean_latency.mean == pytest.approx(3 * MILLISECOND)
    assert summary.latency.count == 15_000
    assert summary.latency.mean_nanoseconds == pytest.approx((1 + 27 + 25) / 15 * MILLISECOND)


def test_trials_that_contradict_each_other_make_the_point_suspect() -> None:
    rates = (15_000, 12_750, 10_500, 8_250, 6_000)
    trials = [trial(number, operation(rate)) for number, rate in enumerate(rates)]
    numbers = summarise(trials, 5)
    assert [finding.reason for finding in numbers.findings] == ["Drifting", "Scattered"]
    assert numbers.verdict is Verdict.SUSPECT
    assert "write operations/s fell from 15000 to 6000" in numbers.findings[0].message


def test_trends_are_over_time_and_not_over_the_numbers_of_passes() -> None:
    rates = (15_000, 14_000, 13_000, 12_000, 11_000)
    times = ("T5", "T3", "T1", "T2", "T4")
    trials = [
        trial(number, operation(rate)).model_copy(update={"started_at": time})
        for number, (rate, time) in enumerate(zip(rates, times, strict=True))
    ]
    assert summarise(trials, 5).findings == ()


def test_rates_of_bytes_count_where_the_tool_counts_no_operations() -> None:
    rates = (10**9, 10**8, 10**8)
    streams = [
        operation(0).model_copy(update={"rates": Rates(iops=0, bytes_per_second=rate), "ios": 0}) for rate in rates
    ]
    (finding,) = summarise([trial(number, stream) for number, stream in enumerate(streams)], 3).findings
    assert finding.message.startswith("write bytes/s of 3 trials lie between 100000000 and 1000000000")


def test_percentile_statistics_are_of_the_trials_and_the_histogram_is_for_display() -> None:
    trials = [trial(n, operation(100, value)) for n, value in enumerate([MILLISECOND] * 9 + [100 * MILLISECOND])]
    numbers = summarise(trials, 10)
    assert numbers.summary is not None
    (summary,) = numbers.summary.operations
    own = [item.operations[0].latency.percentiles["99"] for item in trials]
    assert summary.percentiles["99"].mean == pytest.approx(statistics.fmean(own))
    assert summary.latency.percentiles["99"] == bin_midpoint(bin_index(100 * MILLISECOND))


def test_percentile_that_a_trial_lacks_has_no_statistic() -> None:
    numbers = summarise([trial(0, operation(9, count=1000)), trial(1, operation(9, count=100))], 2)
    assert numbers.summary is not None
    (summary,) = numbers.summary.operations
    assert set(summary.percentiles) == {"50", "90"}
    assert set(summary.latency.percentiles) == {"50", "90", "95", "99"}


def test_last_attempt_of_a_pass_counts() -> None:
    trials = [
        trial(1, operation(2), attempt=1),
        trial(0, operation(9), attempt=0, reasons=(FAILED,)),
        trial(1, operation(7), attempt=0, abort=AbortReason.CLIENT_LOST),
        trial(0, operation(1), attempt=1),
    ]
    assert [(item.pass_number, item.attempt) for item in counted(trials)] == [(0, 1), (1, 1)]
    numbers = summarise(trials, 2)
    assert numbers.summary is not None
    assert numbers.summary.operations[0].iops.mean == 1.5


def test_attempts_that_were_replaced_are_named_with_their_reasons() -> None:
    trials = [
        trial(0, reasons=(FAILED,)),
        trial(0, attempt=1, reasons=(FAILED,)),
        trial(0, attempt=2),
        trial(1, abort=AbortReason.TOOL_OVERRAN),
        trial(1, attempt=1),
    ]
    numbers = summarise(trials, 2)
    (finding,) = numbers.findings
    assert (finding.reason, finding.verdict) == ("AttemptsReplaced", Verdict.SUSPECT)
    assert (
        finding.message
        == "3 of 5 attempts: ToolFailed (pass 0); ToolOverran (pass 1); fix the causes, then run again; "
        "repeating bad attempts makes the storage look better than it is" in finding.message
    )


@pytest.mark.parametrize("reason", [AbortReason.INTERRUPTED, AbortReason.CONDUCTOR_RESTARTED])
def test_attempts_that_ended_for_reasons_of_their_own_are_replaced_without_a_mark(reason: AbortReason) -> None:
    assert summarise([trial(0, abort=reason), trial(0, attempt=1), trial(1)], 2).findings == ()


@pytest.mark.parametrize("reason", [AbortReason.INTERRUPTED, AbortReason.CONDUCTOR_RESTARTED])
def test_attempts_that_a_user_interrupted_under_load_are_named(reason: AbortReason) -> None:
    """Who suspends each trial that looks bad, or kills its conductor, chooses the numbers."""
    seen = Abort(reason=reason, message="suspended", after_start=True)
    suspended = [trial(0, attempt=n, abort=reason).model_copy(update={"abort": seen}) for n in (0, 1)]
    numbers = summarise([*suspended, trial(0, attempt=2), trial(1)], 2)
    assert [(finding.reason, finding.verdict) for finding in numbers.findings] == [
        ("AttemptsReplaced", Verdict.SUSPECT)
    ]
    assert numbers.findings[0].message.startswith(f"2 of 4 attempts: {reason} (pass 0); ")


def test_a_point_of_which_no_attempt_counts_names_what_all_of_them_had() -> None:
    stalled = ("Stalled", Verdict.INVALID)
    attempts = [trial(n, attempt=a, reasons=(stalled,)) for n in (0, 1) for a in (0, 1)]
    last = [trial(n, attempt=2, abort=AbortReason.CLIENT_LOST) for n in (0, 1)]
    (*_, finding) = [f for f in summarise([*attempts, *last], 2).findings if f.reason == "NoTrialCounts"]
    assert "passes 0 and 1 Aborted (ClientLost); 6 attempts: Stalled (4); ClientLost (2)" in finding.message


def test_earlier_good_attempt_does_not_stand_in_for_a_bad_last_one() -> None:
    assert counted([trial(0, attempt=0), trial(0, attempt=1, reasons=(FAILED,))]) == []


def test_suspect_trials_make_the_point_suspect_and_are_rolled_up_once() -> None:
    trials = [trial(0, reasons=(LATE, SHORT)), trial(1), trial(2, reasons=(LATE,))]
    numbers = summarise(trials, 3)
    assert numbers.verdict is Verdict.SUSPECT
    assert [(item.reason, item.message) for item in numbers.findings] == [
        ("LateClient", "pass 0 (also pass 2): LateClient here"),
        ("ShortRun", "pass 0: ShortRun here"),
    ]


def test_a_long_finding_keeps_its_remedy() -> None:
    """The end says what to do; what is left out is in the middle."""
    long = Finding(reason="ShortRun", verdict=Verdict.SUSPECT, message=f"client 0: {'x' * 600}; lengthen the runtime")
    message = summarise([trial(0).model_copy(update={"findings": (long,)})], 1).findings[0].message
    assert len(message) == 500
    assert message.startswith("pass 0: client 0: xxx")
    assert message.endswith("xxx; lengthen the runtime")
    assert all(len(check.remedy) < 240 for check in CHECKS)


STALLED = ("ClientStalled", Verdict.SUSPECT)
UNEVEN = ("ClientsUneven", Verdict.SUSPECT)


@pytest.mark.parametrize(
    ("trials", "repetitions", "reasons"),
    [
        pytest.param([trial(0, reasons=(STALLED,))], 1, ["ClientStalled", "Unreplicated"], id="trials-first"),
        pytest.param(
            [trial(0, reasons=(UNEVEN,)), trial(1, reasons=(LATE, STALLED))],
            2,
            ["LateClient", "ClientStalled", "ClientsUneven"],
            id="causes-before-effects",
        ),
        pytest.param(
            [trial(0, reasons=(FAILED,)), trial(0, attempt=1, reasons=(UNEVEN,))],
            3,
            ["ClientsUneven", "AttemptsReplaced", "PassesMissing", "Unreplicated"],
            id="every-lack-of-the-point",
        ),
        pytest.param(
            [trial(0, reasons=(LATE, FAILED))], 1, ["ToolFailed", "NoTrialCounts", "LateClient"], id="worst-first"
        ),
        pytest.param([trial(0, abort=AbortReason.CLIENT_LOST)], 1, ["NoTrialCounts"], id="nothing-else-is-known"),
        pytest.param(
            [trial(0, reasons=(LATE,), abort=AbortReason.CLIENT_LOST)],
            1,
            ["NoTrialCounts", "LateClient"],
            id="nothing-else-is-Invalid",
        ),
    ],
)
def test_the_first_reason_decides_the_verdict(trials: list[Trial], repetitions: int, reasons: list[str]) -> None:
    findings = summarise(trials, repetitions).findings
    assert [finding.reason for finding in findings] == reasons
    assert findings[0].verdict is summarise(trials, repetitions).verdict


def test_versions_that_changed_come_before_what_the_point_lacks() -> None:
    tools = [ToolUse(versions=(version,), argv=(), argv_client=0) for version in ("fio-3.36", "fio-3.39")]
    trials = [trial(number, attempt=1).model_copy(update={"tool": tool}) for number, tool in enumerate(tools)]
    reasons = [finding.reason for finding in summarise([trial(0, reasons=(FAILED,)), *trials], 3).findings]
    assert reasons == ["VersionsChanged", "AttemptsReplaced", "PassesMissing"]


def test_passes_that_do_not_count_are_named_with_their_reasons() -> None:
    trials = [trial(0), trial(1, reasons=(FAILED, LATE)), trial(2, abort=AbortReason.CLIENT_LOST), trial(4)]
    numbers = summarise(trials, 6)
    (finding,) = numbers.findings
    assert (finding.reason, numbers.verdict) == ("PassesMissing", Verdict.SUSPECT)
    for words in ("pass 1 Invalid (ToolFailed)", "pass 2 Aborted (ClientLost)", "passes 3 and 5 not recorded"):
        assert words in finding.message
    assert numbers.summary is not None
    assert numbers.summary.trials == 2


def test_single_trial_of_several_is_suspect_for_being_alone() -> None:
    numbers = summarise([trial(0)], 3)
    assert [finding.reason for finding in numbers.findings] == ["PassesMissing", "Unreplicated"]
    assert numbers.verdict is Verdict.SUSPECT


def test_single_planned_trial_is_suspect_for_being_alone_and_has_no_interval() -> None:
    numbers = summarise([trial(0)], 1)
    assert [finding.reason for finding in numbers.findings] == ["Unreplicated"]
    assert numbers.verdict is Verdict.SUSPECT
    assert numbers.summary is not None
    assert numbers.summary.operations[0].iops.low is None


def test_point_without_a_counting_trial_is_invalid_with_the_reasons() -> None:
    numbers = summarise([trial(0, reasons=(FAILED,)), trial(1, abort=AbortReason.LATE_CLIENT)], 2)
    assert (numbers.summary, numbers.verdict) == (None, Verdict.INVALID)
    assert [finding.reason for finding in numbers.findings] == ["ToolFailed", "NoTrialCounts"]
    assert "pass 0 Invalid (ToolFailed); pass 1 Aborted (LateClient)" in numbers.findings[1].message
    assert numbers.findings[0].message == "pass 0: ToolFailed here"


def test_nothing_recorded_is_invalid() -> None:
    numbers = summarise([], 3)
    assert numbers.verdict is Verdict.INVALID
    assert "passes 0, 1 and 2 not recorded" in numbers.findings[0].message


def test_operations_are_summarised_apart() -> None:
    read = operation(50).model_copy(update={"operation": Operation.READ})
    numbers = summarise([trial(0, operation(10), read), trial(1, operation(20), read)], 2)
    assert numbers.summary is not None
    assert [(item.operation, item.iops.mean) for item in numbers.summary.operations] == [
        (Operation.READ, 50),
        (Operation.WRITE, 15),
    ]


def test_an_operation_that_a_trial_lacks_has_no_summary_and_the_trial_says_why() -> None:
    """One that was too fast to be timed: the mean of the others would be that of the slow trials."""
    read = operation(50).model_copy(update={"operation": Operation.READ})
    untimed = ("Untimed", Verdict.SUSPECT)
    numbers = summarise([trial(0, operation(10), read), trial(1, operation(12), reasons=(untimed,))], 2)
    assert numbers.summary is not None
    assert [(item.operation, item.iops.trials) for item in numbers.summary.operations] == [(Operation.WRITE, 2)]
    assert [item.message for item in numbers.findings] == ["pass 1: Untimed here"]


def test_damaged_histogram_of_a_recorded_trial_costs_the_percentiles_only() -> None:
    damaged = operation(10)
    broken = damaged.model_copy(update={"latency": damaged.latency.model_copy(update={"histogram": "x"})})
    numbers = summarise([trial(0, broken), trial(1)], 2)
    assert numbers.summary is not None
    assert numbers.summary.operations[0].latency.kind is LatencyKind.MEAN_ONLY
