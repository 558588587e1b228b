"""Whether the trial was long enough, of one tool, and measured by all clients together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.names import Verdict
from support.client_documents import RAMP, RUNTIME, SECOND, document, measure, measurement, only, operation

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


def test_work_that_ends_counts_with_the_time_that_it_took() -> None:
    """Without a ramp, 20 s are enough for a tool that needs 2 s with one, and not for a tool that needs 3 s."""
    long = {"runtime_seconds": 3600, "ramp_seconds": 0, "ends_when_done": True}
    one = document(0, measurement(work_bytes=1, late=-RAMP))
    assert "RuntimeTooShort" not in {each.reason for each in measure(one, **long, least_runtime_seconds=2).findings}
    finding = only(measure(one, **long, least_runtime_seconds=3), "RuntimeTooShort")
    assert "the first client ended after 20 s" in finding.message


def test_work_without_a_window_has_no_ramp() -> None:
    one = document(0, measurement(work_bytes=1))
    work = {"runtime_seconds": 3600, "ramp_seconds": 9, "ends_when_done": True, "windowed": False}
    assert "RuntimeTooShort" not in {each.reason for each in measure(one, **work, least_runtime_seconds=2).findings}
    assert only(measure(one, **work, least_runtime_seconds=3), "RuntimeTooShort").verdict is Verdict.SUSPECT


def test_a_tool_that_does_not_run_for_a_time_has_no_least_runtime() -> None:
    numbers = measure(document(0), runtime_seconds=1, windowed=False, least_runtime_seconds=3)
    assert "RuntimeTooShort" not in {finding.reason for finding in numbers.findings}


def test_the_default_trial_of_these_tests_is_long_enough() -> None:
    assert measure(document(0), least_runtime_seconds=RUNTIME).verdict is Verdict.VALID


# Overlap

SEVERITY = [Verdict.VALID, Verdict.SUSPECT, Verdict.INVALID]


def overlap_verdict(runtime: int, late: float) -> Verdict:
    """Judge the overlap of two clients, the second of which measured so many seconds later."""
    wrote = operation(cells=None)
    runs = [measurement(wrote, late=seconds, runtime=runtime * SECOND) for seconds in (0.0, late)]
    numbers = measure(*(document(client, run) for client, run in enumerate(runs)), runtime_seconds=runtime)
    return next((item.verdict for item in numbers.findings if item.reason == "LowOverlap"), Verdict.VALID)


@pytest.mark.parametrize(
    ("runtime", "late", "expected"),
    [
        (3, 0.25, Verdict.VALID),
        (3, 0.26, Verdict.SUSPECT),
        (3, 0.31, Verdict.INVALID),
        (5, 0.25, Verdict.VALID),
        (5, 0.49, Verdict.SUSPECT),
        (60, 1.1, Verdict.VALID),
        (60, 1.3, Verdict.SUSPECT),
        (60, 6.1, Verdict.INVALID),
        (1, 0.2, Verdict.INVALID),
    ],
)
def test_little_of_a_short_runtime_is_no_reason(runtime: int, late: float, expected: Verdict) -> None:
    assert overlap_verdict(runtime, late) is expected


@given(st.integers(1, 100), st.lists(st.floats(0, 100), min_size=2, max_size=2))
def test_a_later_client_is_never_judged_milder(runtime: int, seconds: list[float]) -> None:
    earlier, later = (SEVERITY.index(overlap_verdict(runtime, late)) for late in sorted(seconds))
    assert earlier <= later
