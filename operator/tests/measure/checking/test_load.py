from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.line import LineSearch, Objective, Vary
from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.measure.intake import Offer
from plimsoll.measure.sample import LatencySample, PeerRate
from plimsoll.measure.trial import trial_of_rounds
from support.client_documents import RUNTIME, SECOND, document, latency, measure, measurement, only, operation

MILLISECOND = 10**6


@pytest.mark.parametrize(("rate", "is_enough"), [(50, True), (49, False)])
def test_few_operations_have_no_p99_and_a_rate_as_good_as_any(rate: int, *, is_enough: bool) -> None:
    numbers = trial_of_rounds([measure(document(0, measurement(operation(rate))))])
    assert ("99" in numbers.operations[0].latency.percentiles) is is_enough
    assert numbers.verdict is Verdict.VALID
    too_few = "980 timed write operations are too few for a 99th percentile, which needs 1,000 (10 beyond it)"
    assert numbers.warnings == (() if is_enough else (f"{too_few}; measure longer",))


def test_operations_of_all_rounds_are_counted_together() -> None:
    numbers = measure(document(0, measurement(operation(25))))
    assert trial_of_rounds([numbers, numbers]).warnings == ()
    assert "500 timed" in trial_of_rounds([numbers]).warnings[0]


def test_a_search_decides_itself_which_loads_have_too_few_operations() -> None:
    objectives = (Objective(percentile="99", latency="5ms"),)
    search = LineSearch(vary=Vary.RATE, start=1, limit=1000, objectives=objectives)
    numbers = measure(
        document(0, measurement(operation(49), depth_full_share=0.0)), offer=Offer(search=search, load=49)
    )
    assert trial_of_rounds([numbers]).warnings == ()


def test_operations_of_all_clients_are_counted_together() -> None:
    assert trial_of_rounds([measure(*(document(n, measurement(operation(25))) for n in range(2)))]).warnings == ()


def test_few_operations_of_a_tool_without_percentiles_are_no_matter() -> None:
    mean_only = LatencySample(kind=LatencyKind.MEAN_ONLY, count=20 * RUNTIME, mean_nanoseconds=1e6)
    assert trial_of_rounds([measure(document(0, measurement(operation(20, latency=mean_only))))]).warnings == ()


def submitting(*busy: float, submitters: int = 1) -> Any:
    """Make a measurement whose threads submit for these parts of the time, one for each kind of operation."""
    rate = 1000
    samples = [
        operation(rate, operation=kind, submission_nanoseconds=part * submitters * SECOND / rate)
        for kind, part in zip((Operation.READ, Operation.WRITE), busy, strict=False)
    ]
    return measurement(*samples, submitters=submitters)


def test_threads_that_do_nothing_but_submit_are_suspect() -> None:
    """0.96 and 0.37 are what fio showed for buffered and for direct I/O through libaio."""
    assert measure(document(0, submitting(0.37))).verdict is Verdict.VALID
    finding = only(measure(document(0, submitting(0.37)), document(1, submitting(0.96))), "SubmissionBound")
    assert (finding.verdict, finding.clients) == (Verdict.SUSPECT, (1,))
    assert "client 1: part of the time that the tool's threads spent submitting: 96 % (limit 90 %)" in finding.message


def test_submission_is_summed_over_operations_and_shared_among_threads() -> None:
    assert only(measure(document(0, submitting(0.5, 0.45))), "SubmissionBound").clients == (0,)
    assert measure(document(0, submitting(0.5, 0.35, submitters=4))).verdict is Verdict.VALID


def test_a_tool_that_is_busy_all_the_time_is_suspect() -> None:
    def busy(percent: float | None) -> Any:
        return measurement(operation(1000), thread_percent=percent)

    assert measure(document(0, busy(90)), document(1, busy(None))).verdict is Verdict.VALID
    finding = only(measure(document(0, busy(50)), document(1, busy(97))), "ToolCpuBound")
    assert (finding.verdict, finding.clients) == (Verdict.SUSPECT, (1,))
    assert "97 % (limit 90 %)" in finding.message


@pytest.mark.parametrize(
    ("lost", "verdict"), [(1, Verdict.VALID), (1.5, Verdict.SUSPECT), (50, Verdict.SUSPECT), (51, Verdict.INVALID)]
)
def test_lost_datagrams_count_for_each_pair(lost: float, verdict: Verdict) -> None:
    peers = tuple(PeerRate(peer=peer, bytes=1, seconds=1, lost_percent=part) for peer, part in ((3, 0), (4, lost)))
    numbers = measure(document(0, measurement(operation(1000), peers=peers)))
    assert numbers.verdict is verdict
    if verdict is not Verdict.VALID:
        message = only(numbers, "PacketsLost").message
        assert f"client 0: {lost} % of the datagrams between it and client 4 were lost" in message


def test_pair_over_which_nothing_arrived_is_no_measurement_of_it() -> None:
    """The other pairs of the round hide it in the sum, and two pairs are too few to find an outlier among."""
    peers = (PeerRate(peer=3, bytes=10**9, seconds=1), PeerRate(peer=4, bytes=0, seconds=1))
    finding = only(measure(document(0, measurement(operation(1000), peers=peers))), "NoIo")
    assert finding.verdict is Verdict.INVALID
    assert "client 0: no data arrived from or at client 4" in finding.message


def queued(mean: float, in_flight: int | None, longest: float = 0.001) -> Any:
    """Make a measurement of 2 x 1000 operations/s with that mean latency, in ms."""
    moments = {"mean_nanoseconds": mean * MILLISECOND, "max_nanoseconds": int(longest * SECOND)}
    timed = latency(1000 * RUNTIME).model_copy(update=moments)
    samples = [operation(1000, operation=kind, latency=timed) for kind in (Operation.READ, Operation.WRITE)]
    return measurement(*samples, in_flight=in_flight)


@pytest.mark.parametrize(("mean", "holds"), [(8, True), (7.61, True), (8.39, True), (7.5, False), (8.5, False)])
def test_rate_times_latency_is_the_queue_depth(mean: float, *, holds: bool) -> None:
    assert (measure(document(0, queued(mean, 16))).verdict is Verdict.VALID) is holds


def test_a_queue_that_was_not_kept_full_is_a_finding() -> None:
    finding = only(measure(document(0, queued(8, 16)), document(1, queued(6, 16))), "LittlesLaw")
    assert (finding.verdict, finding.clients) == (Verdict.SUSPECT, (1,))
    assert finding.message.startswith(
        "client 1: rate and latency give 12 operations in flight instead of 16: "
        "24.9 % beyond the tolerance (limit 5 %); give"
    )


def test_long_operations_at_the_edges_explain_a_difference() -> None:
    assert measure(document(0, queued(7.5, 16, longest=0.5))).verdict is Verdict.VALID


@pytest.mark.parametrize(("mean", "holds"), [(5.61, True), (5.5, False), (0.75, False), (10.39, True), (10.5, False)])
def test_one_long_operation_explains_no_more_than_a_quarter(mean: float, *, holds: bool) -> None:
    found = measure(document(0, queued(mean, 16, longest=0.9 * RUNTIME)))
    assert ("LittlesLaw" not in [finding.reason for finding in found.findings]) is holds


def test_nothing_is_known_of_the_queue_of_a_limited_rate_or_without_latency() -> None:
    assert measure(document(0, queued(1, None))).verdict is Verdict.VALID
    untimed = measurement(operation(latency=LatencySample(kind=LatencyKind.NONE)), in_flight=16)
    assert measure(document(0, untimed)).verdict is Verdict.VALID


def alone(latency_microseconds: float, thinking_microseconds: float, jobs: int = 1) -> Any:
    """Make a measurement of threads that wait for each operation, and think before the next."""
    nanoseconds = round(1000 * latency_microseconds)
    ios = int(jobs * RUNTIME * 10**6 / (latency_microseconds + thinking_microseconds))
    timed = operation(ios=ios, bytes=ios * 4096, cells=None, latency=latency(ios, nanoseconds))
    return measurement(timed, in_flight=jobs, submitters=jobs)


def law(measured: Any) -> list[Verdict]:
    return [item.verdict for item in measure(document(0, measured)).findings if item.reason == "LittlesLaw"]


@pytest.mark.parametrize("jobs", [1, 4])
@pytest.mark.parametrize("latency_microseconds", [20, 40, 60, 80, 200, 5000])
def test_fast_storage_is_not_blamed_for_what_the_tool_needs_between_operations(
    latency_microseconds: float, jobs: int
) -> None:
    for thinking in (0, 2, 4):
        assert law(alone(latency_microseconds, thinking, jobs)) == []


def test_a_tool_that_thinks_longer_than_it_waits_limits_the_rate_itself() -> None:
    assert law(alone(5, 8)) == [Verdict.SUSPECT]
    assert law(alone(100, 30)) == [Verdict.SUSPECT], "no tool needs that long, so its processor was taken from it"


@given(st.floats(1, 10_000), st.lists(st.floats(0, 1000), min_size=2, max_size=2))
def test_longer_thinking_is_never_judged_milder(latency_microseconds: float, thinking: list[float]) -> None:
    shorter, longer = (law(alone(latency_microseconds, pause)) for pause in sorted(thinking))
    assert len(shorter) <= len(longer)
