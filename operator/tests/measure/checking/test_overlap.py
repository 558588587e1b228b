"""How much of a runtime clients may miss of each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.names import Verdict
from support.client_documents import SECOND, document, measure, measurement, operation

SEVERITY = [Verdict.VALID, Verdict.SUSPECT, Verdict.INVALID]


def verdict(runtime: int, late: float) -> Verdict:
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
    assert verdict(runtime, late) is expected


@given(st.integers(1, 100), st.lists(st.floats(0, 100), min_size=2, max_size=2))
def test_a_later_client_is_never_judged_milder(runtime: int, seconds: list[float]) -> None:
    earlier, later = (SEVERITY.index(verdict(runtime, late)) for late in sorted(seconds))
    assert earlier <= later
