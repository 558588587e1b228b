import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.names import Operation, Verdict
from plimsoll.measure.intake import ClientMeasurement, receive
from plimsoll.measure.sample import Cells, ClientDocument, OperationSample
from plimsoll.measure.stalls import LEAST_PACE, Standstill, least_pace, standstill_of
from plimsoll.measure.timeline import Interval, common_interval
from support.client_documents import (
    BLOCK,
    RUNTIME,
    SECOND,
    document,
    facts,
    latency,
    measure,
    measurement,
    only,
    operation,
)


def with_cells(cells: list[float], kind: Operation = Operation.WRITE) -> OperationSample:
    ios = round(math.fsum(cells))
    series = Cells(width_nanoseconds=SECOND, ios=tuple(cells), bytes=tuple(cell * BLOCK for cell in cells))
    return operation(operation=kind, ios=ios, bytes=ios * BLOCK, cells=series, latency=latency(ios))


def still(*empty: int, rate: float = 100) -> OperationSample:
    """Make an operation that did nothing in the given seconds."""
    return with_cells([0.0 if second in empty else float(rate) for second in range(RUNTIME)])


def found(*documents: ClientDocument) -> Standstill:
    measured = receive(facts(len(documents)), dict(enumerate(documents))).measured
    window = common_interval([item.interval for item in measured])
    assert window is not None
    result = standstill_of(measured, window)
    assert result is not None
    return result


def client(number: int, *operations: OperationSample, late: float = 0.0) -> ClientDocument:
    return document(number, measurement(*operations, late=late))


def test_all_clients_are_idle_where_each_is() -> None:
    result = found(client(0, still(3, 4, 9)), client(1, still(4, 5, 12)))
    assert (result.clients, result.seconds) == ({0: 3, 1: 3}, 1)
    assert result.published().worst_client == 0


def test_cells_shifted_by_fractions_are_compared_on_the_wall_clock() -> None:
    result = found(client(0, still(3, 4)), client(1, still(3, 4), late=0.25))
    assert result.seconds == 1.75
    assert result.clients == {0: 2, 1: 2}


def test_a_client_is_idle_only_if_none_of_its_operations_completes() -> None:
    reading = with_cells([0.0 if second in {4, 5} else 10.0 for second in range(RUNTIME)], Operation.READ)
    sync = operation(50, operation=Operation.SYNC, bytes=0, cells=None)
    assert found(client(0, still(3, 4), reading, sync)).clients == {0: 1}


def test_only_what_lies_in_the_window_counts() -> None:
    assert found(client(0, still(0, 1)), client(1, late=1.5)).clients == {0: 0.5, 1: 0}


def test_a_last_cell_of_milliseconds_is_no_second() -> None:
    cells = Cells(width_nanoseconds=SECOND, ios=(100.0,) * RUNTIME + (0.0,), bytes=(100.0 * BLOCK,) * RUNTIME + (0.0,))
    item = document(0, measurement(operation(cells=cells), runtime=RUNTIME * SECOND + 3_000_000))
    assert found(item).clients == {0: 0}


def test_nothing_is_known_without_a_series() -> None:
    numbers = measure(document(0), client(1, operation(cells=None)))
    assert numbers.stalls is None
    assert numbers.slowest[0].stall_seconds is None


def test_without_a_stall_no_client_is_the_worst() -> None:
    numbers = measure(document(0), document(1))
    assert numbers.stalls is not None
    assert (numbers.stalls.seconds, numbers.stalls.worst_client_seconds, numbers.stalls.worst_client) == (0, 0, None)


def test_a_stall_of_all_is_suspect_and_a_long_one_invalid() -> None:
    finding = only(measure(client(0, still(7))), "Stalled")
    assert finding.verdict is Verdict.SUSPECT
    assert finding.message.startswith(
        "no client completed anything for 1 s of a window of 20 s: 5 % (limit 0.5 %); if there is NodeCpuSaturated, "
    )
    finding = only(measure(client(0, still(7, 8, 9))), "Stalled")
    assert finding.verdict is Verdict.INVALID
    assert "3 s of a window of 20 s: 15 % (limit 10 %)" in finding.message


def test_a_stall_of_one_client_names_it() -> None:
    numbers = measure(client(0, still(7)), document(1), client(2, still(9, 10)))
    finding = only(numbers, "ClientStalled")
    assert (finding.clients, finding.verdict) == ((0, 2), Verdict.SUSPECT)
    assert finding.message.startswith(
        "client 2: completed nothing while others did for 2 s of a window of 20 s: 10 % (limit 0.5 %); also"
    )
    assert numbers.stalls is not None
    assert (numbers.stalls.seconds, numbers.stalls.worst_client_seconds, numbers.stalls.worst_client) == (0, 2, 2)
    assert {item.client: item.stall_seconds for item in numbers.slowest} == {0: 1, 1: 0, 2: 2}


def test_a_stall_of_all_is_not_charged_to_single_clients() -> None:
    only(measure(client(0, still(3, 4)), client(1, still(3, 4), late=0.25)), "Stalled")


def test_only_the_rest_of_a_stall_that_lasts_longer_on_one_client_is_charged_to_it() -> None:
    findings = measure(client(0, still(3)), client(1, still(3, 4, 5, 6, 7))).findings
    assert [finding.reason for finding in findings] == ["Stalled", "ClientStalled"]
    assert findings[1].clients == (1,)
    assert "completed nothing while others did for 3 s of a window of 20 s: 15 %" in findings[1].message


def test_a_client_that_completed_nothing_at_all_stalled_all_the_time() -> None:
    findings = measure(document(0), client(1, operation(0))).findings
    assert [finding.reason for finding in findings] == ["ClientStalled", "ClientsUneven"]
    assert {(finding.clients, finding.verdict) for finding in findings} == {((1,), Verdict.INVALID)}


def test_slow_storage_is_not_called_stalled() -> None:
    slow = with_cells([3.0 if second % 2 else 0.0 for second in range(RUNTIME)])
    numbers = measure(client(0, slow), client(1, slow))
    assert numbers.findings == ()
    assert numbers.stalls is not None
    assert numbers.stalls.seconds == RUNTIME / 2


def test_a_slow_client_is_judged_by_its_own_pace() -> None:
    slow = with_cells([3.0 if second % 2 else 0.0 for second in range(RUNTIME)])
    numbers = [measure(client(0, still(rate=1000)), client(1, other)) for other in (slow, still(4, 5, rate=15))]
    reasons = [[finding.reason for finding in found.findings] for found in numbers]
    assert reasons == [["ClientsUneven"], ["ClientStalled", "ClientsUneven"]]


@pytest.mark.parametrize(
    ("rate", "seconds", "in_flight", "is_found"),
    [
        (5, 15, 1, False),  # single operations may be very slow
        (9, 17, 1, True),
        (5, 7, 4, False),
        (5, 8, 4, True),
        (5, 15, 32, False),  # its queue may be completed at once every six seconds
        (5, 15, 8, True),
    ],
)
def test_a_stall_of_slow_storage_is_found_if_chance_and_its_queue_do_not_explain_it(
    rate: float, seconds: int, in_flight: int, *, is_found: bool
) -> None:
    stalled = measurement(still(*range(2, 2 + seconds), rate=rate)).model_copy(update={"in_flight": in_flight})
    assert ("Stalled" in {finding.reason for finding in measure(document(0, stalled)).findings}) == is_found


def test_a_client_that_completed_nothing_beside_slow_ones_stalled() -> None:
    slow = [client(number, still(rate=8)) for number in range(3)]
    reasons = [finding.reason for finding in measure(*slow, client(3, operation(0))).findings]
    assert reasons == ["ClientStalled", "ClientsUneven"]


def test_the_more_seconds_there_are_the_faster_a_client_must_be_for_an_empty_one_to_count() -> None:
    assert least_pace(1) == LEAST_PACE
    assert least_pace(1000 * 3600) == pytest.approx(19.7, abs=0.01)


def test_time_inside_a_sync_is_no_stall_and_more_than_the_longest_sync_is() -> None:
    def synced(seconds: float) -> ClientDocument:
        timed = latency(2000, round(seconds * SECOND))
        sync = operation(operation=Operation.SYNC, bytes=0, cells=None, latency=timed)
        return client(0, still(3, 4, 9, rate=1000), sync)

    assert found(synced(2.1)).seconds == 0
    assert measure(synced(2.1)).findings == ()
    assert found(synced(1.5)).seconds == 2
    only(measure(synced(1.5)), "Stalled")


def test_many_slow_clients_together_are_distinguished_from_a_stall() -> None:
    slow = still(7, 8, rate=2)
    reasons = [finding.reason for finding in measure(*(client(n, slow) for n in range(10))).findings]
    assert reasons == ["Stalled"]


stalls = st.tuples(st.floats(0, 17), st.floats(2.001, 3))


@given(stalls, st.lists(st.floats(0, 0.999), min_size=1, max_size=6))
def test_every_stall_of_more_than_two_seconds_is_found_on_all_whatever_their_phases(
    stall: tuple[float, float], phases: list[float]
) -> None:
    begin, length = stall

    def cells(phase: float) -> list[float]:
        """Leave every cell empty that the stall covers wholly."""
        edges = [phase + second for second in range(RUNTIME)]
        return [0.0 if begin <= edge and edge + 1 <= begin + length else 100.0 for edge in edges]

    result = found(*(client(n, with_cells(cells(phase)), late=phase) for n, phase in enumerate(phases)))
    least = max(phases)
    if least + 1 <= begin and begin + length <= RUNTIME + min(phases) - 1:
        assert result.seconds >= length - 2 - 1e-6
        assert result.seconds > 0
    assert result.seconds <= length + 1e-6
    assert result.seconds <= min(result.clients.values()) + 1e-9
    if result.seconds:
        assert {*result.alone.values()} == {0}, "a stall of all is charged to no single client"


@given(st.lists(st.lists(st.booleans(), min_size=RUNTIME, max_size=RUNTIME), min_size=1, max_size=4))
def test_seconds_together_are_those_that_are_empty_everywhere(empty: list[list[bool]]) -> None:
    documents = [
        client(number, with_cells([0.0 if flag else 50.0 for flag in flags])) for number, flags in enumerate(empty)
    ]
    result = found(*documents)
    assert result.seconds == sum(all(column) for column in zip(*empty, strict=True))
    assert result.clients == {number: sum(flags) for number, flags in enumerate(empty)}
    shared = {second for second, column in enumerate(zip(*empty, strict=True)) if all(column)}
    near = {second + step for second in shared for step in (-1, 0, 1)}
    alone = [{second for second, flag in enumerate(flags) if flag} - near for flags in empty]
    assert result.alone == {number: len(seconds) for number, seconds in enumerate(alone)}


def test_there_is_no_standstill_without_a_window() -> None:
    measured: tuple[ClientMeasurement, ...] = receive(facts(1), {0: document(0)}).measured
    assert standstill_of(measured, Interval(start=5, end=5)) is None
    assert standstill_of([], Interval(start=5, end=6)) is None
