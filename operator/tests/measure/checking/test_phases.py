"""What tools without a common window show: long pauses, and phases that clients did not do together."""

from typing import Any

import pytest

from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.measure.sample import Gaps, LatencySample, Measurement
from plimsoll.measure.trial import TrialNumbers
from support.client_documents import RUNTIME, SECOND, document, measure, measurement, only, operation

UNTIMED = LatencySample(kind=LatencyKind.NONE)
PHASES = (Operation.WRITE, Operation.REWRITE, Operation.READ)


def paused(longest: float, *, windowed: bool = False, rate: int = 1000) -> Any:
    """Measure a phase of 20 s whose longest operation took that many seconds."""
    longest_only = LatencySample(kind=LatencyKind.MAX_ONLY, count=1, max_nanoseconds=int(longest * SECOND))
    sample = operation(rate, latency=longest_only, runtime=None if windowed else RUNTIME * SECOND)
    return measure(document(0, measurement(sample)), windowed=windowed)


@pytest.mark.parametrize(("longest", "verdict"), [(0.99, Verdict.VALID), (1.0, Verdict.VALID), (1.1, Verdict.SUSPECT)])
def test_a_phase_with_a_long_operation_is_suspect(longest: float, verdict: Verdict) -> None:
    numbers = paused(longest)
    assert numbers.verdict is verdict
    if verdict is not Verdict.VALID:
        assert only(numbers, "LongPause").message.startswith("client 0: completed no write for 1.1 s of 20 s: 5.5 %")


def test_an_operation_as_slow_as_the_others_is_no_pause() -> None:
    assert paused(3.0, rate=2).verdict is Verdict.VALID


def test_a_long_operation_of_a_tool_with_a_window_is_judged_by_its_series() -> None:
    assert paused(5.0, windowed=True).verdict is Verdict.VALID


def test_gaps_of_a_tool_without_a_window_add_up() -> None:
    gaps = Gaps(width_nanoseconds=SECOND, starts=(1000, 5000, 9000), lengths=(1500, 900, 1500))
    documents = document(0, measurement(operation(1000, latency=UNTIMED), gaps=gaps))
    numbers = measure(documents, windowed=False)
    assert "completed no write for 3 s of 20 s" in only(numbers, "LongPause").message


def in_phases(*seconds: float) -> Measurement:
    """Measure a client whose phases took so long."""
    samples = [
        operation(operation=kind, runtime=int(time * SECOND), latency=UNTIMED, cells=None)
        for kind, time in zip(PHASES, seconds, strict=True)
    ]
    return measurement(*samples)


def together(*clients: Measurement) -> TrialNumbers:
    documents = [document(number, client) for number, client in enumerate(clients)]
    return measure(*documents, windowed=False)


def test_clients_that_are_in_each_phase_together_are_valid() -> None:
    assert together(in_phases(10, 5, 5), in_phases(10.1, 5, 4.9)).verdict is Verdict.VALID


def test_a_phase_that_begins_later_on_one_client_is_suspect() -> None:
    finding = only(together(in_phases(10, 5, 5), in_phases(9.9, 5.9, 4)), "PhasesApart")
    assert (finding.verdict, finding.clients) == (Verdict.SUSPECT, ())
    assert finding.message.startswith("all clients were in the phase read for 4 s of a mean of 4.5 s: 88.9 % (limit 90")


def test_a_phase_that_one_client_did_too_fast_to_be_timed_has_no_sum() -> None:
    slow, fast = in_phases(10, 5, 5), in_phases(10, 5, 5)
    fast = fast.model_copy(update={"operations": fast.operations[:2], "untimed": (Operation.READ,)})
    numbers = together(slow, fast)
    assert [result.operation for result in numbers.operations] == [Operation.WRITE, Operation.REWRITE]
    assert only(numbers, "Untimed").clients == (1,)


def test_one_client_shares_no_phase() -> None:
    assert together(in_phases(10, 5, 5)).verdict is Verdict.VALID
