"""A toy check: tools that end long after their measurement. It follows the recipe "Add a check" of CONTRIBUTING.md."""

from collections.abc import Iterator

import pytest

from plimsoll.api.names import Verdict
from plimsoll.api.result import Finding
from plimsoll.measure.checks import judge
from plimsoll.measure.checks.check import Check, CheckedValue, evaluate
from plimsoll.measure.checks.evidence import Evidence
from plimsoll.measure.checks.load import judge_load
from plimsoll.measure.checks.registry import CHECKS, markdown_table
from plimsoll.measure.timeline import NANOSECONDS
from support.client_documents import RAMP, RUNTIME, SECOND, T0, document, measure, only

SLOW_END = Check(
    reason="ToySlowEnd",
    what="time from the end of the measurement to the end of the tool",
    unit="s",
    suspect=2,
    invalid=10,
    remedy="look for storage that is slow to close",
)
END = T0 + (RAMP + RUNTIME) * SECOND


def delays(evidence: Evidence) -> Iterator[CheckedValue]:
    for item in evidence.measured:
        seconds = (item.answer.document.finished_at - item.interval.end) / NANOSECONDS
        yield CheckedValue(clients=(item.client,), value=seconds)


@pytest.fixture(autouse=True)
def added(monkeypatch: pytest.MonkeyPatch) -> None:

    def with_toy(evidence: Evidence) -> tuple[Finding, ...]:
        return (*judge_load(evidence), *evaluate(SLOW_END, delays(evidence)))

    monkeypatch.setattr(judge, "judge_load", with_toy)


@pytest.mark.parametrize(("seconds", "verdict"), [(2.5, Verdict.SUSPECT), (10.5, Verdict.INVALID)])
def test_a_value_beyond_a_limit_is_a_finding_with_client_value_limit_and_remedy(
    seconds: float, verdict: Verdict
) -> None:
    late = document(1, finished_at=END + int(seconds * SECOND))
    finding = only(measure(document(0), late), "ToySlowEnd")
    limit = 2 if verdict is Verdict.SUSPECT else 10
    assert (finding.verdict, finding.clients) == (verdict, (1,))
    assert finding.message.startswith(
        f"client 1: time from the end of the measurement to the end of the tool: {seconds}"
    )
    assert f"(limit {limit} s)" in finding.message
    assert finding.message.endswith("look for storage that is slow to close")


def test_a_value_equal_to_its_limit_passes() -> None:
    assert measure(document(0, finished_at=END + 2 * SECOND)).findings == ()


def test_its_row_stands_in_the_table() -> None:
    row = "| `ToySlowEnd` | time from the end of the measurement to the end of the tool | above 2 s | above 10 s |"
    assert row in markdown_table((*CHECKS, SLOW_END))
