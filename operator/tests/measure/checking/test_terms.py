import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.names import Operation, Verdict
from plimsoll.api.result import Finding
from plimsoll.measure.sample import ClientDocument, OperationSample
from plimsoll.measure.trial import TrialNumbers
from support.documents import BLOCK, RUNTIME, document, latency, measure, measurement, only, operation

_WORSE = (Verdict.VALID, Verdict.SUSPECT, Verdict.INVALID)


def total(ios: int, kind: Operation = Operation.WRITE) -> OperationSample:
    """Make so many operations in all, without a series."""
    return operation(operation=kind, ios=ios, bytes=ios * BLOCK, cells=None, latency=latency(ios))


def doing(*totals: int) -> list[ClientDocument]:
    return [document(number, measurement(total(ios))) for number, ios in enumerate(totals)]


def uneven(numbers: TrialNumbers) -> Finding | None:
    return next((finding for finding in numbers.findings if finding.reason == "ClientsUneven"), None)


def severity(*totals: int) -> Verdict:
    finding = uneven(measure(*doing(*totals)))
    return finding.verdict if finding else Verdict.VALID


@pytest.mark.parametrize(
    ("totals", "clients"),
    [
        ((10**6, 10**6 // 20), (1,)),
        ((10**6, 10**6, 10**6 // 20), (2,)),
        ((10**6 // 20,) * 3 + (10**6,), (0, 1, 2)),
        ((10**6, 10**6 // 20, 10**6, 10**6 // 20), (1, 3)),
    ],
)
def test_clients_that_do_much_less_than_the_others_are_named(totals: tuple[int, ...], clients: tuple[int, ...]) -> None:
    finding = uneven(measure(*doing(*totals)))
    assert finding is not None
    assert finding.clients == clients


def test_a_client_with_most_of_the_operations_is_seen_however_many_share_the_rest() -> None:
    assert severity(*[10_000] * 8, 1_000_000) is Verdict.INVALID
    assert severity(*[10_000] * 99, 30_000) is Verdict.VALID


@given(others=st.lists(st.integers(0, 10**7), min_size=1, max_size=5), own=st.integers(0, 10**7), less=st.integers(0))
def test_the_less_a_client_does_the_worse_it_is(others: list[int], own: int, less: int) -> None:
    """As long as it is the one that does the least: a client beyond the others is their fault, and not its own."""
    own = min(own, *others)
    before, after = severity(*others, own), severity(*others, max(0, own - less))
    assert _WORSE.index(after) >= _WORSE.index(before)


@given(mean=st.integers(1, 10**6), share=st.floats(-2, 2))
def test_what_chance_explains_is_held_against_nobody(mean: int, share: float) -> None:
    own = max(0, round(mean + share * math.sqrt(mean)))
    assert severity(mean, mean, own) is Verdict.VALID


def test_a_client_alone_and_clients_that_do_nothing_are_not_uneven() -> None:
    assert [severity(1000), severity(0, 0)] == [Verdict.VALID] * 2


def test_a_client_whose_tool_failed_is_not_called_slow() -> None:
    failed = document(1, measurement(total(1), errors=("an error",)))
    assert uneven(measure(document(0), failed)) is None


def test_syncs_do_not_count() -> None:
    syncing = measurement(total(1000), total(10**6, Operation.SYNC))
    assert uneven(measure(document(0, measurement(total(1000))), document(1, syncing))) is None


def test_clients_that_do_not_run_for_a_time_are_not_compared() -> None:
    assert uneven(measure(*doing(10**6, 1), windowed=False)) is None


# Versions


def test_two_versions_of_a_tool_name_the_clients_of_the_rarer_one() -> None:
    others = [document(number, measurement(tool_version="3.36")) for number in (1, 3)]
    finding = only(measure(document(0), document(2), document(4), *others, planned=5), "MixedVersions")
    assert (finding.verdict, finding.clients) == (Verdict.SUSPECT, (1, 3))
    assert "2 versions of the tool (fio 3.39: clients 0, 2 and 4; fio 3.36: clients 1 and 3)" in finding.message


def test_a_version_that_is_not_known_is_no_other_one() -> None:
    assert measure(document(0), document(1, measurement(tool_version=""))).verdict is Verdict.VALID


def test_many_versions_are_still_a_short_message() -> None:
    documents = [document(number, measurement(tool_version=f"3.{number}" + "x" * 500)) for number in range(40)]
    numbers = measure(*documents)
    assert len(only(numbers, "MixedVersions").message) < 1000
    assert numbers.tool is not None
    assert len(numbers.tool.versions) == 8


# Runtime


@pytest.mark.parametrize(
    ("runtime", "ramp", "least", "verdict"),
    [
        (1, 0, 3, Verdict.SUSPECT),
        (2, 1, 3, Verdict.SUSPECT),
        (3, 1, 3, Verdict.VALID),
        (29, 0, 3, Verdict.SUSPECT),
        (30, 0, 3, Verdict.VALID),
        (1, 0, 0, Verdict.VALID),
    ],
)
def test_least_runtime(runtime: int, ramp: int, least: int, verdict: Verdict) -> None:
    numbers = measure(document(0), runtime_seconds=runtime, ramp_seconds=ramp, least_runtime_seconds=least)
    found = [finding for finding in numbers.findings if finding.reason == "RuntimeTooShort"]
    assert [finding.verdict for finding in found] == [verdict] * (verdict is not Verdict.VALID)


def test_a_tool_that_does_not_run_for_a_time_has_no_least_runtime() -> None:
    numbers = measure(document(0), runtime_seconds=1, windowed=False, least_runtime_seconds=3)
    assert "RuntimeTooShort" not in {finding.reason for finding in numbers.findings}


def test_the_default_trial_of_these_tests_is_long_enough() -> None:
    assert measure(document(0), least_runtime_seconds=RUNTIME).verdict is Verdict.VALID
