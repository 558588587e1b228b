import signal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.api.names import Operation, Verdict
from plimsoll.measure.histogram import Histogram
from plimsoll.measure.sample import ClientDocument, Clock, LatencySlices, Measurement
from plimsoll.measure.trial import MAX_SLOWEST, MAX_WARNINGS, measure_round
from support.client_documents import (
    BLOCK,
    RAMP,
    RUNTIME,
    SECOND,
    T0,
    document,
    facts,
    latency,
    measure,
    measurement,
    only,
    operation,
)


def test_good_trial_is_valid_and_counts_all_twelve_clients() -> None:
    numbers = measure(*(document(client) for client in range(12)))
    assert (numbers.verdict, numbers.findings, numbers.warnings) == (Verdict.VALID, (), ())
    assert numbers.window is not None
    assert (numbers.window.seconds, numbers.window.overlap, numbers.window.spread_seconds) == (RUNTIME, 1, 0)
    (result,) = numbers.operations
    assert (result.operation, result.ios, result.bytes) == (Operation.WRITE, 24_000, 24_000 * BLOCK)
    assert (result.rates.iops, result.rates.bytes_per_second) == (1200, 1200 * BLOCK)
    assert result.rates == result.whole_run == result.sum_of_rates
    assert (result.bias, result.latency.count) == (0, 24_000)
    assert set(result.latency.percentiles) == {"50", "90", "95", "99", "99.9"}


def test_operations_are_kept_apart_and_sync_is_one_of_them() -> None:
    sync = operation(60, operation=Operation.SYNC, bytes=0, cells=None)
    numbers = measure(document(0, measurement(sync, operation(), operation(50, operation=Operation.READ))))
    assert [result.operation for result in numbers.operations] == [Operation.READ, Operation.WRITE, Operation.SYNC]
    assert [result.rates.iops for result in numbers.operations] == [50, 100, 60]
    assert numbers.operations[2].bytes == 0
    assert numbers.verdict is Verdict.VALID
    assert numbers.slowest[0].iops == 150


def test_failed_tool_is_invalid_in_its_own_words() -> None:
    broken = document(1, exit_code=1, stderr_tail="fio: pid=7, err=5/file:io_u.c:1876, func=io_u error")
    finding = only(measure(document(0), broken), "ToolFailed")
    assert finding.verdict is Verdict.INVALID
    assert finding.clients == (1,)
    assert "client 1: exit code 1: fio: pid=7, err=5/file" in finding.message


def test_errors_of_a_tool_that_ended_well_count_as_failure() -> None:
    numbers = measure(document(0, measurement(errors=("job a: error 84", "job b: error 84"))))
    assert "exit code 0: job a: error 84; job b: error 84" in only(numbers, "ToolFailed").message


def test_signal_is_named() -> None:
    numbers = measure(document(0, exit_code=-signal.SIGKILL, measurement=None))
    assert "ended by signal 9 (SIGKILL): no error message" in only(numbers, "ToolFailed").message
    assert "ended by signal 9999:" in measure(document(0, exit_code=-9999)).findings[0].message


def test_unreadable_output_is_invalid_and_the_others_are_shown() -> None:
    numbers = measure(document(0), document(1, measurement=None, parse_error="jobs[0].write.io_bytes is missing"))
    assert "client 1: the tool's output cannot be parsed: jobs[0].write" in only(numbers, "OutputUnreadable").message
    assert numbers.operations[0].rates.iops == 100


def test_no_measurement_without_a_reason_is_unreadable() -> None:
    assert "but there is no measurement" in only(measure(document(0, measurement=None)), "OutputUnreadable").message
    nothing = measure(document(0, measurement(runtime=0)))
    assert "measured part has no length" in only(nothing, "OutputUnreadable").message


def test_missing_client_is_named_and_the_others_are_shown() -> None:
    numbers = measure(document(0), document(2), planned=4)
    finding = only(numbers, "ClientMissing")
    assert (finding.clients, finding.verdict) == ((1, 3), Verdict.INVALID)
    assert numbers.operations[0].rates.iops == 200


def test_no_client_answered() -> None:
    numbers = measure(planned=2)
    assert only(numbers, "ClientMissing").clients == (0, 1)
    assert (numbers.window, numbers.operations, numbers.slowest) == (None, (), ())


def test_client_that_failed_before_it_measured_does_not_blow_up_the_window() -> None:
    nothing = measurement(
        operation(0, latency=latency(0), cells=None), started_at=0, runtime=0, errors=("no such file",)
    )
    numbers = measure(document(0), document(1, nothing, exit_code=1))
    only(numbers, "ToolFailed")
    assert numbers.window is not None
    assert numbers.window.spread_seconds == 0
    assert numbers.operations[0].rates.iops == 100


def test_late_client_leads_to_low_overlap_and_spread() -> None:
    numbers = measure(document(0), document(1, measurement(late=1.5)))
    assert [finding.reason for finding in numbers.findings] == ["LateClient", "LowOverlap", "WideSpread"]
    assert numbers.verdict is Verdict.SUSPECT
    assert "client 1" in numbers.findings[0].message
    assert "started 1.5 s after the planned time; operations of all clients explain 0.001 s (limit 1 s)" in (
        numbers.findings[0].message
    )
    assert "0.925 (limit 0.98)" in numbers.findings[1].message
    assert measure(document(0), document(1, measurement(late=6))).verdict is Verdict.INVALID


def test_the_longest_operation_explains_a_late_start_and_a_long_run() -> None:
    slow = operation(latency=latency(2000, 2 * SECOND))
    late = measurement(slow, late=2.9)
    assert measure(document(0, late)).verdict is Verdict.VALID
    assert only(measure(document(0, measurement(slow, late=3.1))), "LateClient").verdict is Verdict.SUSPECT
    stopped = measure(document(0), document(1, late))
    assert "LateClient" in [item.reason for item in stopped.findings], "the storage was not slow for the other client"
    cells = operation().cells
    assert cells is not None
    longer = cells.model_copy(update={"ios": (*cells.ios, 0.0, 0.0), "bytes": (*cells.bytes, 0.0, 0.0)})
    reasons = [
        finding.reason
        for finding in measure(
            document(0, measurement(slow.model_copy(update={"cells": longer}), runtime=22 * SECOND))
        ).findings
    ]
    assert "ShortRun" not in reasons


def test_a_tool_that_ends_its_ramp_in_steps_of_a_second_explains_one_of_them() -> None:
    def begun(late: float) -> ClientDocument:
        return document(1, measurement(late=late).model_copy(update={"ramp_step": SECOND}))

    assert measure(document(0), begun(1.2)).verdict is Verdict.VALID
    reasons = [finding.reason for finding in measure(document(0), begun(2.1)).findings]
    assert reasons == ["LateClient", "LowOverlap", "WideSpread"]
    invented = document(1, measurement(late=3).model_copy(update={"ramp_step": 5 * SECOND}))
    assert "OutputUnreadable" in [finding.reason for finding in measure(document(0), invented).findings]
    launched = begun(0.0).model_copy(update={"launched_at": T0 + 3 * SECOND // 2})
    assert only(measure(document(0), launched), "LateClient").clients == (1,)


def test_late_launch_counts_although_the_ramp_was_cut() -> None:
    assert only(measure(document(0, launched_at=T0 + 3 * SECOND)), "LateClient").verdict is Verdict.SUSPECT


@pytest.mark.parametrize(("late", "verdict"), [(-1.001, Verdict.SUSPECT), (-5.001, Verdict.INVALID)])
def test_measuring_before_the_end_of_the_ramp(late: float, verdict: Verdict) -> None:
    finding = only(measure(*(document(client, measurement(late=late)) for client in range(2))), "EarlyClient")
    assert (finding.verdict, finding.clients) == (verdict, (0, 1))
    assert f"start before the planned time: {-late} s (limit" in finding.message


def test_a_tool_without_a_ramp_is_not_early() -> None:
    early = {0: document(0, measurement(late=-RAMP))}
    assert measure_round(facts(1, windowed=False), early).verdict is Verdict.VALID
    assert measure_round(facts(1), early).verdict is not Verdict.VALID


@pytest.mark.parametrize(("seconds", "verdict"), [(19.7, Verdict.SUSPECT), (23, Verdict.INVALID), (2, Verdict.INVALID)])
def test_runtime_other_than_requested(seconds: float, verdict: Verdict) -> None:
    part = operation(cells=None, operation=Operation.SYNC)
    numbers = measure(document(0, measurement(part, runtime=int(seconds * SECOND))))
    assert only(numbers, "ShortRun").verdict is verdict


def test_work_that_ends_before_its_limit_is_no_short_run() -> None:
    work = sum(sample.bytes for sample in measurement().operations)
    documents = {0: document(0, measurement(work_bytes=work))}
    assert measure_round(facts(1, runtime_seconds=3600, ends_when_done=True), documents).verdict is Verdict.VALID


def test_work_that_its_limit_ended_is_invalid() -> None:
    work = sum(sample.bytes for sample in measurement().operations)
    one, other = document(0, measurement(work_bytes=work)), document(1, measurement(work_bytes=work + BLOCK))
    numbers = measure(one, other, ends_when_done=True)
    finding = only(numbers, "DataSetUnfinished")
    assert (finding.verdict, finding.clients) == (Verdict.INVALID, (1,))
    assert f"{work} of {work + BLOCK} bytes" in finding.message


def test_a_client_cannot_declare_that_its_load_ends_early() -> None:
    short = document(0, measurement(work_bytes=1))
    assert measure_round(facts(1, runtime_seconds=3600), {0: short}).verdict is Verdict.INVALID
    assert only(measure(document(0), ends_when_done=True), "DataSetUnfinished").verdict is Verdict.INVALID


@pytest.mark.parametrize(("tool", "version"), [("fio", "3.33"), ("ioping", "1.3")])
def test_an_estimated_start_is_suspect_and_only_that_of_fio_has_a_remedy_for_fio(tool: str, version: str) -> None:
    estimated = measurement(start_is_estimated=True, tool=tool, tool_version=version)
    finding = only(measure(document(0, estimated)), "ToolTooOld")
    assert (finding.verdict, finding.clients) == (Verdict.SUSPECT, (0,))
    assert f"{tool} {version} does not report exactly when it began" in finding.message
    assert ("fio 3.36" in finding.message) is (tool == "fio")


def test_reads_of_what_was_never_written_are_suspect() -> None:
    reading = measurement(operation(operation=Operation.READ))
    finding = only(measure(document(0, reading, prefilled=False), document(1, reading)), "NotPrefilled")
    assert (finding.verdict, finding.clients) == (Verdict.SUSPECT, (0,))


def test_first_writes_to_a_new_data_set_are_intended_where_each_block_is_written_once() -> None:
    work = sum(sample.bytes for sample in measurement().operations)
    unwritten = document(0, measurement(work_bytes=work), prefilled=False)
    assert measure(unwritten, ends_when_done=True, new_data_set=True).verdict is Verdict.VALID
    for planned in ({"ends_when_done": True}, {"new_data_set": True}):
        assert only(measure(unwritten, **planned), "NotPrefilled").verdict is Verdict.SUSPECT
    reading = measurement(operation(operation=Operation.READ), work_bytes=work)
    once = measure(document(0, reading, prefilled=False), ends_when_done=True, new_data_set=True)
    assert only(once, "NotPrefilled").verdict is Verdict.SUSPECT


def test_writes_to_what_was_never_written_are_suspect_and_so_are_trims() -> None:
    finding = only(measure(document(0, prefilled=False)), "NotPrefilled")
    assert (finding.verdict, finding.clients) == (Verdict.SUSPECT, (0,))
    assert "wrote to a data set that was never written" in finding.message
    trimming = measurement(operation(operation=Operation.TRIM))
    nothing = only(measure(document(0, trimming, prefilled=False)), "NothingTrimmed")
    assert (nothing.verdict, nothing.clients) == (Verdict.SUSPECT, (0,))
    assert measure(document(0, trimming)).verdict is Verdict.VALID


def test_short_and_dropped_operations() -> None:
    short = only(measure(document(0, measurement(operation(short_ios=3)))), "ShortIo")
    assert (short.verdict, "3 write operations" in short.message) == (Verdict.SUSPECT, True)
    dropped = only(measure(document(0, measurement(operation(dropped_ios=4)))), "DroppedIo")
    assert (dropped.verdict, "dropped 4 write operations" in dropped.message) == (Verdict.INVALID, True)


@pytest.mark.parametrize(("lost", "verdict"), [(1, Verdict.SUSPECT), (2, Verdict.SUSPECT), (3, Verdict.INVALID)])
def test_lost_operations_are_judged_by_their_part(lost: int, verdict: Verdict) -> None:
    """Of 20 000 that completed, 2 are just under one in ten thousand of all."""
    losing = measurement(operation(1000, lost_ios=lost))
    finding = only(measure(document(0, measurement(operation(1000))), document(1, losing)), "LostIo")
    assert (finding.verdict, finding.clients) == (verdict, (1,))
    assert f"client 1: {lost} write operations never completed" in finding.message


def test_operation_without_io_is_invalid() -> None:
    idle = operation(0, operation=Operation.READ)
    finding = only(measure(document(0, measurement(operation(), idle))), "NoIo")
    assert finding.verdict is Verdict.INVALID
    assert "0 read operations completed in the window (limit 1)" in finding.message
    nothing = measure(document(0, measurement(operations=())))
    assert "no operation was measured" in only(nothing, "NoIo").message


def test_client_without_series_is_suspect_and_counts_with_its_mean_rate() -> None:
    numbers = measure(document(0), document(1, measurement(operation(cells=None))))
    finding = only(numbers, "SeriesIncomplete")
    assert (finding.verdict, finding.clients) == (Verdict.SUSPECT, (1,))
    assert numbers.operations[0].rates.iops == 200


def test_tool_without_a_window_needs_neither_series_nor_runtime() -> None:
    documents = {
        client: document(client, measurement(operation(cells=None), runtime=seconds * SECOND))
        for client, seconds in enumerate((3, 40))
    }
    numbers = measure_round(facts(2, windowed=False), documents)
    assert (numbers.verdict, numbers.window) == (Verdict.VALID, None)
    assert numbers.operations[0].rates == numbers.operations[0].whole_run
    assert numbers.operations[0].rates.iops == 100


def test_clocks() -> None:
    assert only(measure(document(0, clock=None)), "ClockUnknown").verdict is Verdict.SUSPECT
    assert only(measure(document(0, clock=Clock(offset=float("nan"), error=0))), "ClockUnknown").clients == (0,)
    assert measure(document(0, clock=Clock(offset=0.019, error=0.010))).verdict is Verdict.VALID
    finding = only(measure(document(0, clock=Clock(offset=0.030, error=0.025))), "ClockUnknown")
    assert (finding.verdict, "only to within 25 ms" in finding.message) == (Verdict.SUSPECT, True)
    finding = only(measure(document(0, clock=Clock(offset=-0.030, error=0.005))), "ClockOffset")
    assert (finding.verdict, "25 ms (limit 10 ms)" in finding.message) == (Verdict.SUSPECT, True)
    assert measure(document(0, clock=Clock(offset=1.0, error=0.1))).verdict is Verdict.INVALID


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"count": 1999}, "1999 operations were timed, but 2000 completed"),
        ({"histogram": None}, "contains 0 of 2000"),
        ({"histogram": Histogram(counts={9: 1999}).encode()}, "contains 1999 of 2000"),
        ({"histogram": "fio-plat-7-29:AA"}, "layout"),
    ],
)
def test_histogram_that_does_not_hold_the_operations_is_invalid(changes: dict[str, Any], words: str) -> None:
    broken = operation(latency=latency(2000).model_copy(update=changes))
    finding = only(measure(document(0, measurement(broken))), "HistogramMismatch")
    assert finding.verdict is Verdict.INVALID
    assert f"write latency: {words}" in finding.message or words in finding.message


def test_slowest_clients_are_kept() -> None:
    numbers = measure(*(document(client, measurement(operation(100 - client))) for client in range(12)))
    assert [item.client for item in numbers.slowest] == [11, 10, 9, 8, 7, 6, 5, 4]
    assert len(numbers.slowest) == MAX_SLOWEST
    assert (numbers.slowest[0].iops, numbers.slowest[0].node) == (89, "node-11")
    assert numbers.slowest[0].clock_offset_seconds == 0.0001


def test_hosts_of_all_clients_are_summarised_and_not_of_the_slowest_alone() -> None:
    hosts = measure(*(document(number) for number in range(12))).hosts
    assert hosts is not None
    assert hosts.clients == 12 > MAX_SLOWEST


def test_warnings_appear_once_and_are_bounded() -> None:
    same = [document(client, measurement(warnings=("unknown field x",))) for client in range(3)]
    assert measure(*same).warnings == ("clients 0, 1 and 2: unknown field x",)
    many = measure(document(0, measurement(warnings=tuple(f"field {n}" + "y" * 1000 for n in range(100)))))
    assert len(many.warnings) == MAX_WARNINGS
    assert many.warnings[-1] == "81 more warnings"
    assert max(map(len, many.warnings)) < 250


def test_document_of_a_client_that_takes_no_part_is_ignored() -> None:
    numbers = measure(document(0), document(5), planned=1)
    assert numbers.operations[0].rates.iops == 100


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (measurement(started_at=-1), "startedAt is -1"),
        (measurement(runtime=10**400), "runtime is 1000"),
        (measurement(operation(ios=-5)), "write.ios is -5"),
        (measurement(operation(lost_ios=-5)), "write.lostIos is -5"),
        (measurement(operation(latency=latency(1).model_copy(update={"mean_nanoseconds": float("nan")}))), "is nan"),
        (measurement(operation(), operation()), "write appears 2 times"),
        (measurement(submitters=0), "submitters is 0"),
        (measurement(in_flight=0), "inFlight is 0"),
        (measurement(operation(submission_nanoseconds=float("inf"))), "write.submissionNanoseconds is inf"),
        (
            measurement(operation(slices=LatencySlices(width_nanoseconds=-1, histograms=()))),
            "write.slices.widthNanoseconds is -1",
        ),
    ],
)
def test_impossible_number_makes_a_document_unreadable(broken: Measurement, words: str) -> None:
    numbers = measure(document(0), document(1, broken))
    assert words in only(numbers, "OutputUnreadable").message
    assert numbers.operations[0].rates.iops == 100


@given(st.permutations(range(4)))
@settings(deadline=None)  # slow under load, not stuck
def test_order_of_answers_does_not_matter(order: list[int]) -> None:
    documents = {client: document(client, measurement(operation(100 + client), late=client / 10)) for client in order}
    expected = {client: documents[client] for client in sorted(documents)}
    assert measure_round(facts(4), documents) == measure_round(facts(4), expected)
